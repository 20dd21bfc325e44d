//! Texts of vectors, for users and for the API server (core.md 3.1 "Text form", "Back to
//! Kubernetes").

use crate::amount::Amount;
use crate::dims::{Dim, Dims};
use crate::quantity::{format_binary, format_milli, format_whole};
use crate::reading::{NameKind, stored_kind};
use crate::vector::Vector;

/// Returns an amount of the resource of this name, in the scheduler's unit, as Kubernetes quantity.
pub fn quantity_text(amount: i64, name: &str) -> String {
    match stored_kind(name) {
        NameKind::Memory => format_binary(amount),
        NameKind::Pods | NameKind::Count => format_whole(amount),
        NameKind::Cpu | NameKind::Milli | NameKind::Dropped => format_milli(amount),
    }
}

impl<T: Amount> Vector<T> {
    /// Returns a text like `cpu 2000.00, memory 4096.00, nvidia.com/gpu 1000.00`. Units are as
    /// stored; scalars are sorted by name.
    pub fn text(&self, dims: &Dims) -> String {
        let part = |dim| format!("{} {}", dims.name(dim), self.get(dim).text());
        self.in_report_order(dims).map(part).collect::<Vec<_>>().join(", ")
    }

    /// Returns names and Kubernetes quantities in report order. Fractions are truncated toward
    /// zero. Attachable volumes are plain counts (C-12).
    pub fn to_quantities(&self, dims: &Dims) -> Vec<(String, String)> {
        self.in_report_order(dims)
            .map(|dim| (dims.name(dim).to_owned(), self.quantity(dims.name(dim), dim)))
            .collect()
    }

    fn quantity(&self, name: &str, dim: Dim) -> String {
        quantity_text(self.get(dim).whole(), name)
    }

    fn in_report_order<'a>(&'a self, dims: &'a Dims) -> impl Iterator<Item = Dim> + 'a {
        dims.in_report_order().iter().copied().filter(|&dim| self.has(dim))
    }
}
