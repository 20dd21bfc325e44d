//! Comprehensions of two variables: key and value of a map, index and element of a list. Each goes
//! over the list of pairs of its range; what it says about a pair is said with both named.
//! Specification: plugins-nodes.md 6.6.

use std::collections::HashMap;

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, ListExpr, LiteralValue, MapExpr};
use cel::common::types::{CelInt, CelList, CelMap, CelMapKey, DYN_TYPE, LIST_TYPE, MAP_TYPE};
use cel::common::value::{CowVal, Val};
use cel::parser::{Macro, MacroExprHelper};
use cel::{DeclarationError, Env, ExecutionError, IdedExpr, ParseError};

use crate::bind::named;
use crate::lists::{Answer, Arg, elements, the};

/// The pairs of a range, in order; keys of maps are in order, too.
pub(crate) const PAIRS: &str = "@pairs";
/// A map with one entry more, or with those of another map.
const INSERT: &str = "@mapInsert";
/// The pair that a comprehension is at.
const PAIR: &str = "@pair";
const RESULT: &str = "@result";

/// Adds the macros and what they are made of.
pub(crate) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(PAIRS, "@pairs(list)", vec![LIST_TYPE], pairs)?;
    env.add_overload(PAIRS, "@pairs(map)", vec![MAP_TYPE], pairs)?;
    let entry = vec![MAP_TYPE, DYN_TYPE, DYN_TYPE];
    env.add_overload(INSERT, "@mapInsert(map,dyn,dyn)", entry, insert)?;
    env.add_overload(INSERT, "@mapInsert(map,map)", vec![MAP_TYPE, MAP_TYPE], insert_all)?;
    for (name, n_filters, make) in MACROS {
        env.add_macro(Macro::receiver(*name, 3 + n_filters, move |helper, target, args| {
            let Some(range) = target.take() else { return Ok(None) };
            let mut args = std::mem::take(args).into_iter();
            let names = [variable(helper, args.next())?, variable(helper, args.next())?];
            let mut pair = OfPair { helper, names };
            let said: Vec<IdedExpr> = args.map(|arg| pair.says(arg)).collect();
            Ok(Some(make(helper, range, said)))
        }))?;
    }
    Ok(())
}

type Make = fn(&mut MacroExprHelper<'_>, IdedExpr, Vec<IdedExpr>) -> IdedExpr;

/// Name, number of filters before what is said of a pair, and the expansion.
const MACROS: &[(&str, usize, Make)] = &[
    ("all", 0, all),
    ("exists", 0, exists),
    ("existsOne", 0, exists_one),
    ("exists_one", 0, exists_one),
    ("transformList", 0, transform_list),
    ("transformList", 1, transform_list),
    ("transformMap", 0, transform_map),
    ("transformMap", 1, transform_map),
    ("transformMapEntry", 0, transform_map_entry),
    ("transformMapEntry", 1, transform_map_entry),
];

fn variable(helper: &MacroExprHelper<'_>, arg: Option<IdedExpr>) -> Result<String, ParseError> {
    let arg = arg.unwrap_or_default();
    match arg.expr {
        Expr::Ident(name) => Ok(name),
        _ => Err(helper.new_error(arg.id, "argument must be a simple name")),
    }
}

/// Names both parts of a pair in what is said of it.
struct OfPair<'h, 'a> {
    helper: &'h mut MacroExprHelper<'a>,
    names: [String; 2],
}

impl OfPair<'_, '_> {
    fn says(&mut self, of_both: IdedExpr) -> IdedExpr {
        let parts = self.names.clone().into_iter().zip([0, 1]).rev();
        parts.fold(of_both, |said, (name, place)| {
            let pair = ident(self.helper, PAIR);
            let place = int(self.helper, place);
            let part = call(self.helper, "_[_]", vec![pair, place]);
            named(self.helper, name, part, said)
        })
    }
}

fn ident(helper: &mut MacroExprHelper<'_>, name: &str) -> IdedExpr {
    helper.next_expr(Expr::Ident(name.to_owned()))
}

fn int(helper: &mut MacroExprHelper<'_>, value: i64) -> IdedExpr {
    helper.next_expr(Expr::Literal(LiteralValue::Int(value.into())))
}

fn boolean(helper: &mut MacroExprHelper<'_>, value: bool) -> IdedExpr {
    helper.next_expr(Expr::Literal(LiteralValue::Boolean(value.into())))
}

fn call(helper: &mut MacroExprHelper<'_>, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    let func_name = name.to_owned();
    helper.next_expr(Expr::Call(CallExpr { func_name, target: None, args }))
}

/// How a comprehension begins, when it goes on, what it does and what comes of it.
struct Loop {
    accu_init: IdedExpr,
    loop_cond: IdedExpr,
    loop_step: IdedExpr,
    result: IdedExpr,
}

fn over(helper: &mut MacroExprHelper<'_>, range: IdedExpr, of: Loop) -> IdedExpr {
    let iter_range = call(helper, PAIRS, vec![range]);
    helper.next_expr(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range,
        iter_var: PAIR.to_owned(),
        iter_var2: None,
        accu_var: RESULT.to_owned(),
        accu_init: of.accu_init,
        loop_cond: of.loop_cond,
        loop_step: of.loop_step,
        result: of.result,
    })))
}

fn all(helper: &mut MacroExprHelper<'_>, range: IdedExpr, mut said: Vec<IdedExpr>) -> IdedExpr {
    let so_far = ident(helper, RESULT);
    let loop_cond = call(helper, "@not_strictly_false", vec![so_far]);
    said.insert(0, ident(helper, RESULT));
    let loop_step = call(helper, "_&&_", said);
    let (accu_init, result) = (boolean(helper, true), ident(helper, RESULT));
    over(helper, range, Loop { accu_init, loop_cond, loop_step, result })
}

fn exists(helper: &mut MacroExprHelper<'_>, range: IdedExpr, mut said: Vec<IdedExpr>) -> IdedExpr {
    let so_far = ident(helper, RESULT);
    let none = call(helper, "!_", vec![so_far]);
    let loop_cond = call(helper, "@not_strictly_false", vec![none]);
    said.insert(0, ident(helper, RESULT));
    let loop_step = call(helper, "_||_", said);
    let (accu_init, result) = (boolean(helper, false), ident(helper, RESULT));
    over(helper, range, Loop { accu_init, loop_cond, loop_step, result })
}

fn exists_one(helper: &mut MacroExprHelper<'_>, range: IdedExpr, said: Vec<IdedExpr>) -> IdedExpr {
    let (so_far, one) = (ident(helper, RESULT), int(helper, 1));
    let more = call(helper, "_+_", vec![so_far, one]);
    let loop_step = filtered(helper, said, more);
    let (count, one) = (ident(helper, RESULT), int(helper, 1));
    let result = call(helper, "_==_", vec![count, one]);
    let (accu_init, loop_cond) = (int(helper, 0), boolean(helper, true));
    over(helper, range, Loop { accu_init, loop_cond, loop_step, result })
}

fn transform_list(
    helper: &mut MacroExprHelper<'_>,
    range: IdedExpr,
    mut said: Vec<IdedExpr>,
) -> IdedExpr {
    let element = ListExpr::new(said.pop().into_iter().collect());
    let element = helper.next_expr(Expr::List(element));
    let so_far = ident(helper, RESULT);
    let more = call(helper, "_+_", vec![so_far, element]);
    let accu_init = helper.next_expr(Expr::List(ListExpr::new(Vec::new())));
    transformed(helper, range, accu_init, said, more)
}

fn transform_map(
    helper: &mut MacroExprHelper<'_>,
    range: IdedExpr,
    mut said: Vec<IdedExpr>,
) -> IdedExpr {
    let (so_far, pair, place) = (ident(helper, RESULT), ident(helper, PAIR), int(helper, 0));
    let key = call(helper, "_[_]", vec![pair, place]);
    let entry = [so_far, key].into_iter().chain(said.pop()).collect();
    let more = call(helper, INSERT, entry);
    let accu_init = helper.next_expr(Expr::Map(MapExpr { entries: Vec::new() }));
    transformed(helper, range, accu_init, said, more)
}

fn transform_map_entry(
    helper: &mut MacroExprHelper<'_>,
    range: IdedExpr,
    mut said: Vec<IdedExpr>,
) -> IdedExpr {
    let so_far = ident(helper, RESULT);
    let more = call(helper, INSERT, [so_far].into_iter().chain(said.pop()).collect());
    let accu_init = helper.next_expr(Expr::Map(MapExpr { entries: Vec::new() }));
    transformed(helper, range, accu_init, said, more)
}

fn transformed(
    helper: &mut MacroExprHelper<'_>,
    range: IdedExpr,
    accu_init: IdedExpr,
    filter: Vec<IdedExpr>,
    more: IdedExpr,
) -> IdedExpr {
    let loop_step = match filter.is_empty() {
        true => more,
        false => filtered(helper, filter, more),
    };
    let (loop_cond, result) = (boolean(helper, true), ident(helper, RESULT));
    over(helper, range, Loop { accu_init, loop_cond, loop_step, result })
}

/// The step `more`, where the filter holds.
fn filtered(
    helper: &mut MacroExprHelper<'_>,
    mut filter: Vec<IdedExpr>,
    more: IdedExpr,
) -> IdedExpr {
    filter.extend([more, ident(helper, RESULT)]);
    call(helper, "_?_:_", filter)
}

fn pairs<'b, 'v>(args: Vec<Arg<'b, 'v>>) -> Answer<'b, 'v> {
    let [range] = the(args)?;
    let range = range.as_ref();
    let mut keys = elements(range)?;
    let Some(values) = range.as_indexer().filter(|_| *range.get_type() == MAP_TYPE) else {
        let index = |place: usize| CelInt::from(i64::try_from(place).unwrap_or(i64::MAX));
        let pairs = keys.into_iter().enumerate();
        return Ok(list(
            pairs.map(|(place, element)| list_of(Box::new(index(place)), element.clone_as_boxed())),
        ));
    };
    keys.sort_by_cached_key(|key| as_key(*key).ok());
    let mut pairs = Vec::with_capacity(keys.len());
    for key in keys {
        pairs.push(list_of(key.clone_as_boxed(), values.get(key)?.into_owned()));
    }
    Ok(list(pairs))
}

fn list_of<'v>(first: Box<dyn Val + 'v>, second: Box<dyn Val + 'v>) -> Box<dyn Val + 'v> {
    Box::new(CelList::from(vec![first, second]))
}

fn list<'b, 'v>(elements: impl IntoIterator<Item = Box<dyn Val + 'v>>) -> CowVal<'b, 'v> {
    CowVal::owned(CelList::from(elements.into_iter().collect::<Vec<_>>()))
}

pub(crate) fn as_key(value: &dyn Val) -> Result<CelMapKey<'static>, ExecutionError> {
    CelMapKey::try_from(value.clone_as_boxed()).map(CelMapKey::into_static)
}

fn insert<'b, 'v>(args: Vec<Arg<'b, 'v>>) -> Answer<'b, 'v> {
    let [map, key, value] = the(args)?;
    let mut entries = entries(map.as_ref())?;
    add(&mut entries, as_key(key.as_ref())?, value.into_owned())?;
    Ok(CowVal::owned(CelMap::from(entries)))
}

fn insert_all<'b, 'v>(args: Vec<Arg<'b, 'v>>) -> Answer<'b, 'v> {
    let [map, more] = the(args)?;
    let mut all = entries(map.as_ref())?;
    for (key, value) in entries(more.as_ref())? {
        add(&mut all, key, value)?;
    }
    Ok(CowVal::owned(CelMap::from(all)))
}

type Entries<'v> = HashMap<CelMapKey<'v>, Box<dyn Val + 'v>>;

fn entries<'v>(map: &(dyn Val + 'v)) -> Result<Entries<'v>, ExecutionError> {
    let wrong = || ExecutionError::function_error(INSERT, "not a map");
    let map = map.downcast_ref::<CelMap<'_>>().ok_or_else(wrong)?;
    let entries = map.inner().iter();
    Ok(entries.map(|(key, value)| (key.clone(), value.clone_as_boxed())).collect())
}

fn add<'v>(
    entries: &mut Entries<'v>,
    key: CelMapKey<'v>,
    value: Box<dyn Val + 'v>,
) -> Result<(), ExecutionError> {
    let text = format!("insert failed: key {key:?} already exists");
    match entries.insert(key, value) {
        None => Ok(()),
        Some(_) => Err(ExecutionError::function_error(INSERT, text)),
    }
}
