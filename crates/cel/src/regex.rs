//! Kubernetes' `find` and `findAll`: what of a text a regular expression matches. Specification:
//! plugins-nodes.md 6.6.

use cel::common::types::{CelInt, CelList, CelString};
use cel::common::value::Val;
use cel::{DeclarationError, Env, ExecutionError, add_member_overload};
use regex::Regex;

/// Adds the functions.
pub(crate) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    add_member_overload!(env, fn find: (CelString, CelString) -> Result<CelString>)?;
    add_member_overload!(env, fn find_all: (CelString, CelString) -> Result<CelList>)?;
    add_member_overload!(env, fn find_n: (CelString, CelString, CelInt) -> Result<CelList>,
        name = "findAll")
}

fn parsed(pattern: &CelString<'_>) -> Result<Regex, ExecutionError> {
    Regex::new(pattern.inner()).map_err(|error| ExecutionError::function_error("find", error))
}

/// The first match; empty: none.
fn find(
    text: &CelString<'_>,
    pattern: &CelString<'_>,
) -> Result<CelString<'static>, ExecutionError> {
    let found = parsed(pattern)?.find(text.inner()).map_or("", |found| found.as_str()).to_owned();
    Ok(CelString::from(found))
}

fn find_all(
    text: &CelString<'_>,
    pattern: &CelString<'_>,
) -> Result<CelList<'static>, ExecutionError> {
    all(text, pattern, usize::MAX)
}

/// At most so many; a negative number means all.
fn find_n(
    text: &CelString<'_>,
    pattern: &CelString<'_>,
    limit: &CelInt,
) -> Result<CelList<'static>, ExecutionError> {
    all(text, pattern, usize::try_from(*limit.inner()).unwrap_or(usize::MAX))
}

fn all(
    text: &CelString<'_>,
    pattern: &CelString<'_>,
    limit: usize,
) -> Result<CelList<'static>, ExecutionError> {
    let pattern = parsed(pattern)?;
    let found = pattern.find_iter(text.inner()).take(limit);
    let texts = found.map(|found| {
        let text: Box<dyn Val> = Box::new(CelString::from(found.as_str().to_owned()));
        text
    });
    Ok(texts.collect::<Vec<_>>().into())
}
