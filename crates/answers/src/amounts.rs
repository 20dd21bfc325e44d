//! Amounts as quantities, and counted words. Specification: answers.md 3 (ANS-10).

use vc_framework::quantity;
use vc_resource::{Dim, Dims, Resource};

/// Returns a sum as quantity text. A sum beyond 64 bits is shown as the nearest amount.
pub(crate) fn quantity_of(amount: i128, dim: Dim, dims: &Dims) -> String {
    let nearest = i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX });
    quantity(nearest, dim, dims)
}

/// Returns the positive amounts by name, in report order and without `pods`.
pub(crate) fn positive(amounts: &Resource, dims: &Dims) -> Vec<(String, String)> {
    let shown = |dim: &Dim| *dim != Dim::PODS && 0 < amounts.get(*dim);
    let shown = dims.in_report_order().iter().copied().filter(shown);
    shown.map(|dim| (dims.name(dim).to_owned(), quantity(amounts.get(dim), dim, dims))).collect()
}

/// Returns the number of pods with this request for which these free amounts suffice.
pub(crate) fn n_pods_in(free: &Resource, request: &Resource) -> i128 {
    let dims = request.dims().filter(|&dim| 0 < request.get(dim));
    dims.map(|dim| free.exact(dim).max(0) / request.exact(dim)).min().unwrap_or(0)
}

/// Returns `1 pod`, `2 pods`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
