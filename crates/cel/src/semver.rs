//! The type `kubernetes.Semver` and its functions: versions by the rules of semver.org 2.0.
//! Specification: plugins-nodes.md 6.6.

use std::any::Any;
use std::cmp::Ordering;
use std::str::FromStr;

use cel::common::traits::Comparer;
use cel::common::types::{CelBool, CelInt, CelString, Type};
use cel::common::value::{StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError, add_member_overload, add_overload};

static TYPE: Type = Type::new_unspecified_type("kubernetes.Semver");

/// A version; what follows `+` does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Semver {
    numbers: [u64; 3],
    /// What follows `-`; empty: it is a release.
    before: Vec<Identifier>,
}

/// Numbers are lower than texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(String),
}

impl FromStr for Semver {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let (version, _build) = text.split_once('+').unwrap_or((text, ""));
        let (numbers, before) = match version.split_once('-') {
            Some((_, "")) => return Err("the pre-release is empty"),
            Some((numbers, before)) => (numbers, before),
            None => (version, ""),
        };
        let parts: Option<Vec<u64>> = numbers.split('.').map(number).collect();
        let numbers = parts.and_then(|parts| <[u64; 3]>::try_from(parts).ok());
        let numbers = numbers.ok_or("the version is not three numbers")?;
        let before = before.split('.').filter(|_| !before.is_empty()).map(identifier);
        Ok(Self { numbers, before: before.collect::<Option<_>>().ok_or("a part is empty")? })
    }
}

/// Digits without a leading zero.
fn number(text: &str) -> Option<u64> {
    let plain = text == "0" || !text.starts_with('0');
    let digits = plain && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn identifier(text: &str) -> Option<Identifier> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if text.is_empty() || !text.bytes().all(allowed) {
        return None;
    }
    match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => number(text).map(Identifier::Number),
        false => Some(Identifier::Text(text.to_owned())),
    }
}

impl Ord for Semver {
    fn cmp(&self, other: &Self) -> Ordering {
        let releases = self.before.is_empty().cmp(&other.before.is_empty());
        let numbers = self.numbers.cmp(&other.numbers);
        numbers.then(releases).then_with(|| self.before.cmp(&other.before))
    }
}

impl PartialOrd for Semver {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Val for Semver {
    fn get_type(&self) -> &Type {
        &TYPE
    }
    fn cel_type() -> &'static Type {
        &TYPE
    }
    fn as_comparer(&self) -> Option<&dyn Comparer> {
        Some(self)
    }
    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Self>().is_some_and(|other| self == other)
    }
    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }
    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Semver {}

impl Comparer for Semver {
    fn compare(&self, other: &dyn Val) -> Result<Ordering, ExecutionError> {
        match other.downcast_ref::<Self>() {
            Some(other) => Ok(self.cmp(other)),
            None => Err(ExecutionError::UnexpectedType {
                got: other.get_type().name().to_owned(),
                want: TYPE.name().to_owned(),
            }),
        }
    }
}

/// Adds the functions.
pub(crate) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_type(TYPE.to_owned())?;
    add_overload!(env, fn semver: (CelString) -> Result<Semver>)?;
    add_overload!(env, fn is_semver: (CelString) -> CelBool)?;
    add_overload!(env, fn lenient: (CelString, CelBool) -> Result<Semver>, name = "semver")?;
    add_overload!(env, fn is_lenient: (CelString, CelBool) -> CelBool, name = "isSemver")?;
    add_member_overload!(env, fn is_greater_than: (Semver, Semver) -> CelBool)?;
    add_member_overload!(env, fn is_less_than: (Semver, Semver) -> CelBool)?;
    add_member_overload!(env, fn compare_to: (Semver, Semver) -> CelInt)?;
    add_member_overload!(env, fn major: (Semver) -> CelInt)?;
    add_member_overload!(env, fn minor: (Semver) -> CelInt)?;
    add_member_overload!(env, fn patch: (Semver) -> CelInt)
}

fn semver(text: &CelString<'_>) -> Result<Semver, ExecutionError> {
    text.inner().parse().map_err(|error: &str| ExecutionError::function_error("semver", error))
}

fn is_semver(text: &CelString<'_>) -> CelBool {
    text.inner().parse::<Semver>().is_ok().into()
}

/// A text made a version where it can be, if `normalize` says so: without `v` and leading zeros,
/// with the parts that are missing.
fn normalized(text: &str, normalize: &CelBool) -> Result<Semver, &'static str> {
    if !*normalize.inner() {
        return text.parse();
    }
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
    if parts.len() < 3 && parts.iter().any(|part| part.contains(['+', '-'])) {
        return Err("a short version has no pre-release and no build");
    }
    parts.resize(3, "0".to_owned());
    parts.join(".").parse()
}

fn without_zeros(part: &str) -> String {
    let rest = part.trim_start_matches('0');
    match rest.starts_with(|first: char| first.is_ascii_digit()) || rest.len() == part.len() {
        true => rest.to_owned(),
        false => format!("0{rest}"),
    }
}

fn lenient(text: &CelString<'_>, normalize: &CelBool) -> Result<Semver, ExecutionError> {
    let parsed = normalized(text.inner(), normalize);
    parsed.map_err(|error| ExecutionError::function_error("semver", error))
}

fn is_lenient(text: &CelString<'_>, normalize: &CelBool) -> CelBool {
    normalized(text.inner(), normalize).is_ok().into()
}

fn is_greater_than(l: &Semver, r: &Semver) -> CelBool {
    (r < l).into()
}

fn is_less_than(l: &Semver, r: &Semver) -> CelBool {
    (l < r).into()
}

fn compare_to(l: &Semver, r: &Semver) -> CelInt {
    (l.cmp(r) as i64).into()
}

fn part(of: &Semver, index: usize) -> CelInt {
    i64::try_from(of.numbers[index]).unwrap_or(i64::MAX).into()
}

fn major(of: &Semver) -> CelInt {
    part(of, 0)
}

fn minor(of: &Semver) -> CelInt {
    part(of, 1)
}

fn patch(of: &Semver) -> CelInt {
    part(of, 2)
}
