//! Comprehensions over the keys of a map take them in order: the crate would go through its hash
//! map, and `map` would yield another list, or `exists` meet another error first, in every process.
//! Specification: plugins-nodes.md 6.6.

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedEntryExpr};
use cel::common::types::{CelList, DYN_TYPE, MAP_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, IdedExpr};

use crate::lists::{Answer, Arg, elements, the};
use crate::two_variables::{PAIRS, as_key};

/// The elements of a list, or the keys of a map, in order.
pub(crate) const IN_ORDER: &str = "@inOrder";

/// Adds the function.
pub(crate) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(IN_ORDER, "@inOrder(map)", vec![MAP_TYPE], keys)?;
    env.add_overload(IN_ORDER, "@inOrder(dyn)", vec![DYN_TYPE], as_it_is)
}

/// Every comprehension below goes over its range in order.
pub(crate) fn in_order(expression: &mut IdedExpr) {
    match &mut expression.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        Expr::Call(call) => {
            let target = call.target.as_deref_mut();
            target.into_iter().chain(&mut call.args).for_each(in_order);
        }
        Expr::Select(select) => in_order(&mut select.operand),
        Expr::List(list) => list.elements.iter_mut().for_each(in_order),
        Expr::Map(map) => map.entries.iter_mut().for_each(entry_in_order),
        Expr::Struct(made) => made.entries.iter_mut().for_each(entry_in_order),
        Expr::Comprehension(loops) => {
            let range = &mut loops.iter_range;
            in_order(range);
            if may_be_map(range) {
                let of = CallExpr {
                    func_name: IN_ORDER.to_owned(),
                    target: None,
                    args: vec![std::mem::take(range)],
                };
                *range = IdedExpr { id: of.args[0].id, expr: Expr::Call(of) };
            }
            [&mut loops.accu_init, &mut loops.loop_cond, &mut loops.loop_step, &mut loops.result]
                .into_iter()
                .for_each(in_order);
        }
    }
}

fn entry_in_order(entry: &mut IdedEntryExpr) {
    match &mut entry.expr {
        EntryExpr::StructField(field) => in_order(&mut field.value),
        EntryExpr::MapEntry(entry) => {
            in_order(&mut entry.key);
            in_order(&mut entry.value);
        }
    }
}

/// Lists that are written down, or made of pairs, have their order.
fn may_be_map(range: &IdedExpr) -> bool {
    match &range.expr {
        Expr::List(_) => false,
        Expr::Call(call) => call.func_name != PAIRS,
        _ => true,
    }
}

fn keys<'b, 'v>(args: Vec<Arg<'b, 'v>>) -> Answer<'b, 'v> {
    let [map] = the(args)?;
    let mut keys = elements(map.as_ref())?;
    keys.sort_by_cached_key(|key| as_key(*key).ok());
    let keys: Vec<Box<dyn Val + 'v>> = keys.into_iter().map(Val::clone_as_boxed).collect();
    Ok(CowVal::owned(CelList::from(keys)))
}

fn as_it_is<'b, 'v>(args: Vec<Arg<'b, 'v>>) -> Answer<'b, 'v> {
    let [value] = the(args)?;
    Ok(value)
}
