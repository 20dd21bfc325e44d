//! Sums of requests that do not depend on the order of additions and removals. A sum has a scalar
//! exactly while its amount is not 0. Therefore a removal undoes an addition bit for bit.
//! Specification: core.md 3.1.

use std::ops::Deref;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use vc_resource::Resource;

/// Adds a request to a sum.
pub(crate) fn enter(sum: &mut Resource, request: &Resource) {
    sum.add(request);
    settle(sum, request);
}

/// Subtracts a request from a sum.
pub(crate) fn leave(sum: &mut Resource, request: &Resource) {
    sum.sub(request);
    settle(sum, request);
}

fn settle(sum: &mut Resource, request: &Resource) {
    for dim in request.scalars() {
        if sum.get(dim) == 0 {
            sum.remove(dim);
        }
    }
}

/// A sum that is empty for most jobs. An empty sum takes no memory beyond the pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seldom(Option<Box<Resource>>);

static NOTHING: LazyLock<Resource> = LazyLock::new(Resource::default);

impl Deref for Seldom {
    type Target = Resource;
    fn deref(&self) -> &Resource {
        self.0.as_deref().unwrap_or_else(|| &NOTHING)
    }
}

impl Seldom {
    /// Applies `by`, [`enter`] or [`leave`], to the sum with a request.
    pub(crate) fn change(&mut self, by: fn(&mut Resource, &Resource), request: &Resource) {
        let sum = self.0.get_or_insert_default();
        by(sum, request);
        if **sum == *NOTHING {
            self.0 = None;
        }
    }
}
