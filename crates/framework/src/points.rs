//! The extension points as bits, and the switch that guards each. Specification: core.md 2.3, 5.3.

use vc_conf::Switch;

/// A set of extension points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Points(u64);

macro_rules! points {
    ($($name:ident = $bit:literal, $text:literal, $guard:expr;)+) => {
        impl Points {
            $(#[doc = concat!("The extension point ", $text, ".")]
            pub const $name: Points = Points(1 << $bit);)+
        }
        /// Every point with its name in the specification and the switch that guards it, if any.
        pub const ALL_POINTS: &[(Points, &str, Option<Switch>)] =
            &[$((Points::$name, $text, $guard),)+];
    };
}

points! {
    JOB_ORDER = 0, "JobOrder", Some(Switch::JobOrder);
    QUEUE_ORDER = 1, "QueueOrder", Some(Switch::QueueOrder);
    TASK_ORDER = 2, "TaskOrder", Some(Switch::TaskOrder);
    SUB_JOB_ORDER = 3, "SubJobOrder", Some(Switch::SubJobOrder);
    VICTIM_QUEUE_ORDER = 4, "VictimQueueOrder", None;
    PRE_PREDICATE = 5, "PrePredicate", Some(Switch::Predicate);
    PREDICATE = 6, "Predicate", Some(Switch::Predicate);
    BEST_NODE = 7, "BestNode", Some(Switch::BestNode);
    NODE_ORDER = 8, "NodeOrder", Some(Switch::NodeOrder);
    BATCH_NODE_ORDER = 9, "BatchNodeOrder", Some(Switch::NodeOrder);
    PREEMPTABLE = 10, "Preemptable", Some(Switch::Preemptable);
    RECLAIMABLE = 11, "Reclaimable", Some(Switch::Reclaimable);
    UNIFIED_EVICTABLE = 12, "UnifiedEvictable", None;
    OVERUSED = 13, "Overused", Some(Switch::Overused);
    PREEMPTIVE = 14, "Preemptive", Some(Switch::Preemptive);
    ALLOCATABLE = 15, "Allocatable", Some(Switch::Allocatable);
    JOB_READY = 16, "JobReady", Some(Switch::JobReady);
    SUB_JOB_READY = 17, "SubJobReady", Some(Switch::SubJobReady);
    JOB_PIPELINED = 18, "JobPipelined", Some(Switch::JobPipelined);
    SUB_JOB_PIPELINED = 19, "SubJobPipelined", Some(Switch::SubJobPipelined);
    JOB_ENQUEUEABLE = 20, "JobEnqueueable", Some(Switch::JobEnqueued);
    JOB_ENQUEUED = 21, "JobEnqueued", Some(Switch::JobEnqueued);
    JOB_STARVING = 22, "JobStarving", Some(Switch::JobStarving);
    JOB_VALID = 23, "JobValid", None;
    VICTIM_TASKS = 24, "VictimTasks", Some(Switch::Victim);
    EVENT_HANDLERS = 25, "event handlers", None;
    NODE_MAP = 26, "NodeMap", Some(Switch::NodeOrder);
    NODE_REDUCE = 27, "NodeReduce", Some(Switch::NodeOrder);
    CLUSTER_ORDER = 28, "ClusterOrder", Some(Switch::ClusterOrder);
    TARGET_JOB = 29, "TargetJob", Some(Switch::TargetJob);
    RESERVED_NODES = 30, "ReservedNodes", Some(Switch::ReservedNodes);
    // Guarded by two switches: see `allowed_points` in `plugin_set.rs`.
    SIMULATION = 31, "SimulateAddTask and SimulateRemoveTask", None;
    NEXT_QUEUE = 32, "NextQueue", Some(Switch::QueueOrder);
    // Guarded by the plugin itself, with one switch for each side.
    PREEMPT_TARGETS = 33, "PreemptTargets", None;
    HYPER_NODE_ORDER = 34, "HyperNodeOrder", Some(Switch::HyperNodeOrder);
    HYPER_NODE_GRADIENT = 35, "HyperNodeGradient", Some(Switch::HyperNodeGradient);
    QUEUE_WEIGHT = 36, "QueueWeight", None;
}

impl Points {
    /// The empty set.
    pub const NONE: Points = Points(0);

    /// Returns the union of both sets.
    pub const fn and(self, other: Points) -> Points {
        Points(self.0 | other.0)
    }

    /// Returns the intersection of both sets.
    pub(crate) const fn both(self, other: Points) -> Points {
        Points(self.0 & other.0)
    }

    /// Returns the position of a single point in [`ALL_POINTS`].
    pub(crate) fn index(self) -> usize {
        self.0.trailing_zeros() as usize
    }

    /// True if the set has all points of `other`.
    pub const fn has(self, other: Points) -> bool {
        self.0 & other.0 == other.0
    }
}

#[cfg(test)]
mod tests {
    use super::ALL_POINTS;

    #[test]
    fn every_point_stands_at_its_bit() {
        for (place, (point, name, _)) in ALL_POINTS.iter().enumerate() {
            assert_eq!(point.index(), place, "{name}");
        }
    }
}
