//! The controllers of workloads for the embedded API server, which knows workloads one at a time.

use serde_json::Value;
use vc_objects::workload::{WorkloadContext, expand};

use crate::serve::Expander;

/// Volcano Jobs, Jobs, Deployments, ReplicaSets and StatefulSets become PodGroups and pods.
pub struct Controllers;

impl Expander for Controllers {
    fn expand(&self, object: &Value) -> Vec<Value> {
        expand(object, &WorkloadContext::default()).unwrap_or_default()
    }
}
