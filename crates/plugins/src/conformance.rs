//! Critical pods are never evicted. A protective filter instead of a voter.
//! Specification: plugins-jobs-queues.md 9, D1.

use vc_framework::{Ask, Clock, Plugin, PluginEntry, Points};
use vc_model::TaskId;

pub(crate) const ENTRY: PluginEntry =
    PluginEntry { name: "conformance", build: |_, _| Box::new(Conformance) };

const CRITICAL_CLASSES: [&str; 2] = ["system-cluster-critical", "system-node-critical"];
const SYSTEM_NAMESPACE: &str = "kube-system";

struct Conformance;

impl Plugin for Conformance {
    fn points(&self) -> Points {
        Points::PREEMPTABLE.and(Points::RECLAIMABLE).and(Points::UNIFIED_EVICTABLE)
    }

    fn clock(&self, _ask: Ask<'_>) -> Clock {
        Clock::Ignores
    }

    fn votes_by_job(&self, _ask: Ask<'_>) -> bool {
        true
    }

    fn knows_askers(&self, _ask: Ask<'_>, _task: TaskId) -> bool {
        true
    }

    fn is_victim_filter(&self) -> bool {
        true
    }

    fn protects(&self, ask: Ask<'_>, candidate: TaskId) -> bool {
        let task = &ask.cluster.tasks[candidate];
        CRITICAL_CLASSES.contains(&&*task.priority_class_name)
            || &*task.key.namespace == SYSTEM_NAMESPACE
    }
}
