//! Plugin `conformance`: critical pods are never evicted. The plugin is a victim filter; it does
//! not vote.
//! Specification: plugins-jobs-queues.md 9, D1.

use vc_framework::{Depends, Inputs, Plugin, PluginEntry, Points, SessionView, VictimFilter};
use vc_model::{Task, TaskId};

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("conformance", |_, _| Box::new(Conformance));

const CRITICAL_CLASSES: [&str; 2] = ["system-cluster-critical", "system-node-critical"];
const SYSTEM_NAMESPACE: &str = "kube-system";

struct Conformance;

/// The state that each extension point reads.
const READS: &[(Points, Inputs)] = &[
    (Points::PREEMPTABLE, Inputs::CANDIDATE_ROW),
    (Points::RECLAIMABLE, Inputs::CANDIDATE_ROW),
    (Points::UNIFIED_EVICTABLE, Inputs::CANDIDATE_ROW),
];

impl Plugin for Conformance {
    fn points(&self) -> Points {
        Points::PREEMPTABLE.and(Points::RECLAIMABLE).and(Points::UNIFIED_EVICTABLE)
    }

    fn depends(&self) -> Depends {
        Depends::of(READS)
    }

    fn as_victim_filter(&self) -> Option<&dyn VictimFilter> {
        Some(self)
    }
}

impl VictimFilter for Conformance {
    fn protects(&self, view: SessionView<'_>, candidate: TaskId) -> bool {
        is_critical(&view.cluster.tasks[candidate])
    }
}

/// True if the pod is critical: it is never evicted.
pub(crate) fn is_critical(task: &Task) -> bool {
    CRITICAL_CLASSES.contains(&&*task.priority_class_name)
        || &*task.key.namespace == SYSTEM_NAMESPACE
}
