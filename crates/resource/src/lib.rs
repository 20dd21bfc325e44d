//! Exact integer amounts and resource vectors (core.md 3.1, plugins-jobs-queues.md 1.1).
//!
//! Amounts are integers in the smallest unit (millicores, bytes, whole pods, thousandths of every
//! other resource); sums of them are exact; fractions exist only in plugin arithmetic.

mod amount;
mod compare;
mod dims;
mod exact;
mod lattice;
mod mask;
mod quantity;
mod reading;
mod share;
mod text;
mod vector;

pub use amount::Amount;
pub use dims::{Dim, Dims};
pub use quantity::{Quantity, QuantityError, format_binary, format_milli};
pub use reading::{NameKind, amount, name_kind, stored_kind};
pub use share::{EPS, share};
pub use text::quantity_text;
pub use vector::{Absent, Fractional, Resource, Vector};
