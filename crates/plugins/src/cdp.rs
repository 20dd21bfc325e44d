//! Plugin `cdp`: cooldown protection. A pod that was scheduled recently is not evicted. The plugin
//! is a victim filter; it does not vote.
//! Specification: plugins-jobs-queues.md 12, D1, D3.

use vc_framework::{
    CacheKeys, Clock, Depends, Inputs, Plugin, PluginEntry, Points, SessionView, VictimFilter,
};
use vc_model::{TaskId, TaskStatus};

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("cdp", |_, _| Box::new(Cdp));

struct Cdp;

/// The state that each extension point reads.
const READS: &[(Points, Inputs)] = &[
    (Points::PREEMPTABLE, Inputs::CANDIDATE_ROW.and(Inputs::CLOCK)),
    (Points::RECLAIMABLE, Inputs::CANDIDATE_ROW.and(Inputs::CLOCK)),
    (Points::UNIFIED_EVICTABLE, Inputs::CANDIDATE_ROW.and(Inputs::CLOCK)),
];

impl Plugin for Cdp {
    fn points(&self) -> Points {
        Points::PREEMPTABLE.and(Points::RECLAIMABLE).and(Points::UNIFIED_EVICTABLE)
    }

    fn depends(&self) -> Depends {
        Depends::of(READS)
    }

    fn as_cache_keys(&self) -> Option<&dyn CacheKeys> {
        Some(self)
    }

    fn as_victim_filter(&self) -> Option<&dyn VictimFilter> {
        Some(self)
    }
}

impl CacheKeys for Cdp {
    fn clock(&self, view: SessionView<'_>) -> Clock {
        let until = view.cluster.cooling_until_micros(view.now_micros());
        until.map_or(Clock::Ignores, Clock::Until)
    }
}

impl VictimFilter for Cdp {
    fn protects(&self, view: SessionView<'_>, candidate: TaskId) -> bool {
        let task = &view.cluster.tasks[candidate];
        let cools = task.cooling_until_micros.is_some_and(|until| view.now_micros() < until);
        cools && task.status == TaskStatus::Running
    }
}
