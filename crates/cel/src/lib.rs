//! CEL selectors of devices: one expression over the variable `device` that yields a boolean.
//! Specification: plugins-nodes.md 6.6.

mod bind;
mod budget;
mod domains;
mod format;
mod lists;
mod net;
mod ordered;
mod quantity;
mod regex;
mod semver;
mod two_variables;
mod url;

use std::sync::{Arc, LazyLock};

use cel::common::types::{CelBool, CelInt, CelMap, CelString};
use cel::common::value::Val;
use cel::{Context, Env, IdedExpr, Value, extensions};
use vc_model::{Attribute, Device};

use domains::Domains;
use quantity::CelQuantity;
use semver::Semver;

/// An expression, ready to be evaluated.
#[derive(Debug)]
pub struct Selector(IdedExpr);

/// Why a selector says nothing about a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The expression is none.
    #[error("CEL compile error: {0}")]
    Compile(String),
    /// It could not be evaluated for the device.
    #[error("CEL runtime error: {0}")]
    Runtime(String),
}

static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(environment()));

/// The standard library and those Kubernetes extensions that devices are selected by.
fn environment() -> Env {
    let mut env = Env::stdlib().with_optional_support(true);
    let added = env
        .add_extension(extensions::strings)
        .and_then(|()| lists::declare(&mut env))
        .and_then(|()| net::declare(&mut env))
        .and_then(|()| regex::declare(&mut env))
        .and_then(|()| quantity::declare(&mut env))
        .and_then(|()| semver::declare(&mut env))
        .and_then(|()| url::declare(&mut env))
        .and_then(|()| format::declare(&mut env))
        .and_then(|()| two_variables::declare(&mut env))
        .and_then(|()| ordered::declare(&mut env))
        .and_then(|()| env.add_macro(bind::cel_bind()));
    debug_assert!(added.is_ok(), "{added:?}");
    env
}

impl Selector {
    /// Parses an expression.
    ///
    /// # Errors
    /// It is none, or could cost more than the limit of Kubernetes allows.
    pub fn compile(expression: &str) -> Result<Self, SelectorError> {
        if !budget::is_short(expression) {
            return Err(SelectorError::Compile("the expression is too long".to_owned()));
        }
        let parsed = std::thread::scope(|scope| {
            let parser = std::thread::Builder::new().stack_size(STACK_BYTES);
            let parser = parser.spawn_scoped(scope, || parse(expression))?;
            parser.join().map_err(|_| std::io::Error::other("the parser has given up"))
        });
        parsed.unwrap_or_else(|error| Err(SelectorError::Compile(error.to_string())))
    }

    /// Whether a device of this driver is selected.
    ///
    /// # Errors
    /// The evaluation fails, or yields no boolean.
    pub fn matches(&self, driver: &str, device: &Device) -> Result<bool, SelectorError> {
        let mut context = Context::with_env(ENVIRONMENT.clone());
        context.add_variable_as_val("device", Box::new(variable(driver, device)));
        match Value::resolve(&self.0, &context) {
            Ok(Value::Bool(selected)) => Ok(selected),
            Ok(other) => {
                Err(SelectorError::Runtime(format!("must be a boolean: {}", other.type_of())))
            }
            Err(error) => Err(SelectorError::Runtime(one_line(&error))),
        }
    }
}

/// Enough to parse any expression that is short enough; the stack of an engine is not.
const STACK_BYTES: usize = 64 << 20;

fn parse(expression: &str) -> Result<Selector, SelectorError> {
    let program = ENVIRONMENT.compile(expression);
    let program = program.map_err(|error| SelectorError::Compile(one_line(&error)))?;
    let mut expression = program.expression().clone();
    if let Some(problem) = budget::problem(&expression) {
        return Err(SelectorError::Compile(problem.to_owned()));
    }
    ordered::in_order(&mut expression);
    Ok(Selector(expression))
}

/// Characters of an error that go into conditions and events.
const MOST_TEXT: usize = 300;

/// Parsers draw the place of an error below it, in as many columns as the expression has.
fn one_line(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    first.chars().take(MOST_TEXT).collect()
}

/// The variable `device`.
fn variable(driver: &str, device: &Device) -> CelMap<'static> {
    let attributes = device.attributes.iter().map(|(name, value)| (name, attribute(value)));
    let capacity = device.capacity.iter().map(|(name, &amount)| {
        let amount: Box<dyn Val> = Box::new(CelQuantity(amount));
        (name, amount)
    });
    let fields: [(&str, Box<dyn Val>); 4] = [
        ("driver", Box::new(CelString::from(driver.to_owned()))),
        ("attributes", Box::new(Domains::new(driver, attributes))),
        ("capacity", Box::new(Domains::new(driver, capacity))),
        ("allowMultipleAllocations", Box::new(CelBool::from(device.shared))),
    ];
    domains::map(fields)
}

fn attribute(value: &Attribute) -> Box<dyn Val> {
    match value {
        Attribute::Int(value) => Box::new(CelInt::from(*value)),
        Attribute::Bool(value) => Box::new(CelBool::from(*value)),
        Attribute::Text(text) => Box::new(CelString::from(text.to_string())),
        Attribute::Version(text) => match text.parse::<Semver>() {
            Ok(version) => Box::new(version),
            Err(_) => Box::new(CelString::from(text.to_string())),
        },
    }
}
