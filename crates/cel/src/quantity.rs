//! The type `kubernetes.Quantity` and its functions. Specification: plugins-nodes.md 6.6.

use std::any::Any;
use std::cmp::Ordering;

use cel::common::traits::Comparer;
use cel::common::types::{CelBool, CelDouble, CelInt, CelString, Type};
use cel::common::value::{StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError, add_member_overload, add_overload};
use vc_resource::Quantity;

static TYPE: Type = Type::new_unspecified_type("kubernetes.Quantity");

/// An amount.
#[derive(Clone, Debug)]
pub(crate) struct CelQuantity(pub(crate) Quantity);

impl Val for CelQuantity {
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
        other.downcast_ref::<Self>().is_some_and(|other| self.0 == other.0)
    }
    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }
    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for CelQuantity {}

impl Comparer for CelQuantity {
    fn compare(&self, other: &dyn Val) -> Result<Ordering, ExecutionError> {
        match other.downcast_ref::<Self>() {
            Some(other) => Ok(self.0.cmp(&other.0)),
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
    add_overload!(env, fn quantity: (CelString) -> Result<CelQuantity>)?;
    add_overload!(env, fn is_quantity: (CelString) -> CelBool)?;
    add_member_overload!(env, fn is_greater_than: (CelQuantity, CelQuantity) -> CelBool)?;
    add_member_overload!(env, fn is_less_than: (CelQuantity, CelQuantity) -> CelBool)?;
    add_member_overload!(env, fn compare_to: (CelQuantity, CelQuantity) -> CelInt)?;
    add_member_overload!(env, fn add: (CelQuantity, CelQuantity) -> CelQuantity)?;
    add_member_overload!(env, fn sub: (CelQuantity, CelQuantity) -> CelQuantity)?;
    add_member_overload!(env, fn add_whole: (CelQuantity, CelInt) -> CelQuantity, name = "add")?;
    add_member_overload!(env, fn sub_whole: (CelQuantity, CelInt) -> CelQuantity, name = "sub")?;
    add_member_overload!(env, fn is_integer: (CelQuantity) -> CelBool)?;
    add_member_overload!(env, fn as_integer: (CelQuantity) -> Result<CelInt>)?;
    add_member_overload!(env, fn as_approximate_float: (CelQuantity) -> CelDouble)?;
    add_member_overload!(env, fn sign: (CelQuantity) -> CelInt)
}

fn quantity(text: &CelString<'_>) -> Result<CelQuantity, ExecutionError> {
    let parsed = text.inner().parse();
    parsed.map(CelQuantity).map_err(|error| ExecutionError::function_error("quantity", error))
}

fn is_quantity(text: &CelString<'_>) -> CelBool {
    text.inner().parse::<Quantity>().is_ok().into()
}

fn is_greater_than(l: &CelQuantity, r: &CelQuantity) -> CelBool {
    (r.0 < l.0).into()
}

fn is_less_than(l: &CelQuantity, r: &CelQuantity) -> CelBool {
    (l.0 < r.0).into()
}

fn compare_to(l: &CelQuantity, r: &CelQuantity) -> CelInt {
    (l.0.cmp(&r.0) as i64).into()
}

fn add(l: &CelQuantity, r: &CelQuantity) -> CelQuantity {
    CelQuantity(l.0 + r.0)
}

fn sub(l: &CelQuantity, r: &CelQuantity) -> CelQuantity {
    CelQuantity(l.0 - r.0)
}

fn add_whole(l: &CelQuantity, r: &CelInt) -> CelQuantity {
    CelQuantity(l.0 + Quantity::from_value(*r.inner()))
}

fn sub_whole(l: &CelQuantity, r: &CelInt) -> CelQuantity {
    CelQuantity(l.0 - Quantity::from_value(*r.inner()))
}

fn is_whole(quantity: Quantity) -> bool {
    Quantity::from_value(quantity.value()) == quantity
}

fn is_integer(of: &CelQuantity) -> CelBool {
    is_whole(of.0).into()
}

fn as_integer(of: &CelQuantity) -> Result<CelInt, ExecutionError> {
    match is_whole(of.0) {
        true => Ok(of.0.value().into()),
        false => Err(ExecutionError::function_error("asInteger", "the quantity is no integer")),
    }
}

fn as_approximate_float(of: &CelQuantity) -> CelDouble {
    (of.0.milli() as f64 / 1000.0).into()
}

fn sign(of: &CelQuantity) -> CelInt {
    of.0.milli().signum().into()
}
