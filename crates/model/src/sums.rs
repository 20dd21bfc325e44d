//! Sums of requests that are the same whatever came and went before: a scalar exists in a sum
//! exactly while its amount is not 0, so that leaving undoes entering bit for bit. Specification:
//! core.md 3.1.

use vc_resource::Resource;

/// Adds a request to a sum.
pub(crate) fn enter(sum: &mut Resource, request: &Resource) {
    sum.add(request);
    settle(sum, request);
}

/// Takes a request out of a sum.
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
