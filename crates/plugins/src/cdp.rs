//! Cooldown protection: a pod that was scheduled recently is not evicted. A protective filter instead
//! of a voter. Specification: plugins-jobs-queues.md 12, D1, D3.

use vc_framework::{Ask, Clock, Plugin, PluginEntry, Points};
use vc_model::{TaskId, TaskStatus};

pub(crate) const ENTRY: PluginEntry = PluginEntry { name: "cdp", build: |_, _| Box::new(Cdp) };

struct Cdp;

impl Plugin for Cdp {
    fn points(&self) -> Points {
        Points::PREEMPTABLE.and(Points::RECLAIMABLE).and(Points::UNIFIED_EVICTABLE)
    }

    fn clock(&self, ask: Ask<'_>) -> Clock {
        let until = ask.cluster.cooling_until_micros(ask.facts.now_micros);
        until.map_or(Clock::Ignores, Clock::Until)
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
        let cools = task.cooling_until_micros.is_some_and(|until| ask.facts.now_micros < until);
        cools && task.status == TaskStatus::Running
    }
}
