//! Kubernetes' functions over lists, and the sets of the CEL community: a list taken as a set.
//! Specification: plugins-nodes.md 6.6.

use std::cmp::Ordering;

use cel::common::types::{CelBool, CelInt, DYN_TYPE, LIST_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

/// An argument or a result.
pub(crate) type Arg<'b, 'v> = CowVal<'b, 'v>;
pub(crate) type Answer<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

/// Adds the functions.
pub(crate) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let any = || vec![DYN_TYPE];
    env.add_member_overload("isSorted", "list.isSorted()", LIST_TYPE, vec![], is_sorted)?;
    env.add_member_overload("sum", "list.sum()", LIST_TYPE, vec![], sum)?;
    env.add_member_overload("min", "list.min()", LIST_TYPE, vec![], min)?;
    env.add_member_overload("max", "list.max()", LIST_TYPE, vec![], max)?;
    env.add_member_overload("indexOf", "list.indexOf(dyn)", LIST_TYPE, any(), index_of)?;
    let last = "list.lastIndexOf(dyn)";
    env.add_member_overload("lastIndexOf", last, LIST_TYPE, any(), last_index_of)?;
    let lists = || vec![LIST_TYPE, LIST_TYPE];
    env.add_overload("sets.contains", "sets.contains(list,list)", lists(), contains)?;
    env.add_overload("sets.equivalent", "sets.equivalent(list,list)", lists(), equivalent)?;
    env.add_overload("sets.intersects", "sets.intersects(list,list)", lists(), intersects)
}

pub(crate) fn elements<'b, 'v>(
    list: &'b (dyn Val + 'v),
) -> Result<Vec<&'b (dyn Val + 'v)>, ExecutionError> {
    let iterable = list.as_iterable().ok_or_else(|| ExecutionError::UnexpectedType {
        got: list.get_type().name().to_owned(),
        want: "list".to_owned(),
    })?;
    let mut iterator = iterable.iter();
    let mut elements = Vec::new();
    while let Some(element) = iterator.next() {
        elements.push(element);
    }
    Ok(elements)
}

pub(crate) fn the<'b, 'v, const N: usize>(
    args: Vec<Arg<'b, 'v>>,
) -> Result<[Arg<'b, 'v>; N], ExecutionError> {
    let n_given = args.len();
    args.try_into().map_err(|_| ExecutionError::invalid_argument_count(N, n_given))
}

fn compare(left: &dyn Val, right: &dyn Val) -> Result<Ordering, ExecutionError> {
    let comparer = left.as_comparer();
    let none = || ExecutionError::function_error("compare", "list elements must be comparable");
    comparer.ok_or_else(none)?.compare(right)
}

fn is_sorted<'b, 'v>(args: Vec<Arg<'b, 'v>>) -> Answer<'b, 'v> {
    let [list] = the(args)?;
    for pair in elements(list.as_ref())?.windows(2) {
        if compare(pair[0], pair[1])? == Ordering::Greater {
            return Ok(CowVal::owned(CelBool::from(false)));
        }
    }
    Ok(CowVal::owned(CelBool::from(true)))
}

/// Of numbers or durations; 0 of none.
fn sum<'b, 'v>(args: Vec<Arg<'b, 'v>>) -> Answer<'b, 'v> {
    let [list] = the(args)?;
    let elements = elements(list.as_ref())?;
    let Some((first, rest)) = elements.split_first() else {
        return Ok(CowVal::owned(CelInt::from(0)));
    };
    let mut sum = first.clone_as_boxed();
    for element in rest {
        let adder = sum.as_adder();
        let none = || ExecutionError::function_error("sum", "list elements must be numbers");
        sum = adder.ok_or_else(none)?.add(*element)?.into_owned();
    }
    Ok(CowVal::Owned(sum))
}

fn min<'b, 'v>(args: Vec<Arg<'b, 'v>>) -> Answer<'b, 'v> {
    extreme(args, "min", Ordering::Less)
}

fn max<'b, 'v>(args: Vec<Arg<'b, 'v>>) -> Answer<'b, 'v> {
    extreme(args, "max", Ordering::Greater)
}

fn extreme<'b, 'v>(args: Vec<Arg<'b, 'v>>, name: &str, wanted: Ordering) -> Answer<'b, 'v> {
    let [list] = the(args)?;
    let elements = elements(list.as_ref())?;
    let Some((first, rest)) = elements.split_first() else {
        let text = format!("{name} called on empty list");
        return Err(ExecutionError::function_error(name, text));
    };
    let mut best = *first;
    for element in rest {
        if compare(*element, best)? == wanted {
            best = *element;
        }
    }
    Ok(CowVal::Owned(best.clone_as_boxed()))
}

fn index_of<'b, 'v>(args: Vec<Arg<'b, 'v>>) -> Answer<'b, 'v> {
    let [list, wanted] = the(args)?;
    let elements = elements(list.as_ref())?;
    index(elements.iter().position(|element| element.equals(wanted.as_ref())))
}

fn last_index_of<'b, 'v>(args: Vec<Arg<'b, 'v>>) -> Answer<'b, 'v> {
    let [list, wanted] = the(args)?;
    let elements = elements(list.as_ref())?;
    index(elements.iter().rposition(|element| element.equals(wanted.as_ref())))
}

fn index<'b, 'v>(found: Option<usize>) -> Answer<'b, 'v> {
    let index = found.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1);
    Ok(CowVal::owned(CelInt::from(index)))
}

fn has(set: &[&dyn Val], element: &dyn Val) -> bool {
    set.iter().any(|one| one.equals(element))
}

fn contains<'b, 'v>(args: Vec<Arg<'b, 'v>>) -> Answer<'b, 'v> {
    sets(args, |left, right| right.iter().all(|element| has(left, *element)))
}

fn equivalent<'b, 'v>(args: Vec<Arg<'b, 'v>>) -> Answer<'b, 'v> {
    sets(args, |left, right| {
        right.iter().all(|element| has(left, *element))
            && left.iter().all(|element| has(right, *element))
    })
}

fn intersects<'b, 'v>(args: Vec<Arg<'b, 'v>>) -> Answer<'b, 'v> {
    sets(args, |left, right| right.iter().any(|element| has(left, *element)))
}

fn sets<'b, 'v>(
    args: Vec<Arg<'b, 'v>>,
    holds: impl Fn(&[&dyn Val], &[&dyn Val]) -> bool,
) -> Answer<'b, 'v> {
    let [left, right] = the(args)?;
    let (left, right) = (elements(left.as_ref())?, elements(right.as_ref())?);
    Ok(CowVal::owned(CelBool::from(holds(&left, &right))))
}
