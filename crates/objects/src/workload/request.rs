//! Requests of pods that do not exist yet, for `minResources`. Specification: core.md 3.5.

use serde_json::{Value, json};
use vc_model::{ClusterEvent, RequestGates, pod_request};
use vc_resource::{Dims, Resource};
use vc_wire::Kind;

/// The sum of the requests of pods.
#[derive(Debug, Default)]
pub(super) struct RequestTotal {
    dims: Dims,
    sum: Resource,
}

impl RequestTotal {
    /// Adds `count` times the request of a pod. A pod that cannot be read adds nothing: it is
    /// reported when it is decoded itself.
    pub(super) fn add(&mut self, pod: &Value, count: i64) {
        let mut pod = pod.clone();
        pod["metadata"]["uid"] = json!("-");
        let Ok(decoded) = vc_wire::decode(Kind::Pod, &pod) else {
            return;
        };
        if let ClusterEvent::PodApplied(record) = decoded.event {
            let request = pod_request(&record, RequestGates::default(), &mut self.dims);
            let mut product = Resource::default();
            for dim in request.dims() {
                product.set(dim, request.get(dim).saturating_mul(count));
            }
            self.sum.add(&product);
        }
    }

    /// The sum as a Kubernetes resource list.
    pub(super) fn to_json(&self) -> Value {
        let quantities = self.sum.to_quantities(&self.dims);
        quantities.into_iter().map(|(name, text)| (name, Value::from(text))).collect()
    }
}
