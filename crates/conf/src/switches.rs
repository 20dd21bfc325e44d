//! The switches of a plugin entry and the extension points they guard (core.md 2.3).

use serde::{Deserialize, Serialize};

/// One switch; the extension points that it guards have the same name or are named beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Switch {
    JobOrder,
    JobReady,
    JobPipelined,
    /// JobEnqueueable and JobEnqueued.
    JobEnqueued,
    TaskOrder,
    /// Also simulated adding and removing of a task, or-ed with `Allocatable`.
    Preemptable,
    Reclaimable,
    Preemptive,
    QueueOrder,
    ClusterOrder,
    /// Predicate, PrePredicate, SimulatePredicate.
    Predicate,
    BestNode,
    /// NodeOrder, BatchNodeOrder, NodeMap, NodeReduce.
    NodeOrder,
    TargetJob,
    ReservedNodes,
    /// VictimTasks.
    Victim,
    JobStarving,
    Overused,
    /// Allocatable, SimulateAllocatable; also simulated adding and removing of a task.
    Allocatable,
    HyperNodeOrder,
    SubJobReady,
    SubJobPipelined,
    SubJobOrder,
    /// HyperNodeGradient for job and sub-job.
    HyperNodeGradient,
    /// Hierarchical queues of `drf` and `capacity`; guards no extension point.
    Hierarchy,
}

/// Key in the file, switch, value when the key is absent. Only the exact key works.
pub const SWITCHES: &[(&str, Switch, bool)] = &[
    ("enableJobOrder", Switch::JobOrder, true),
    ("enableJobReady", Switch::JobReady, true),
    ("enableJobPipelined", Switch::JobPipelined, true),
    ("enableJobEnqueued", Switch::JobEnqueued, true),
    ("enableTaskOrder", Switch::TaskOrder, true),
    ("enablePreemptable", Switch::Preemptable, true),
    ("enableReclaimable", Switch::Reclaimable, true),
    ("enablePreemptive", Switch::Preemptive, true),
    ("enableQueueOrder", Switch::QueueOrder, true),
    ("enabledClusterOrder", Switch::ClusterOrder, false),
    ("enablePredicate", Switch::Predicate, true),
    ("enableBestNode", Switch::BestNode, true),
    ("enableNodeOrder", Switch::NodeOrder, true),
    ("enableTargetJob", Switch::TargetJob, true),
    ("enableReservedNodes", Switch::ReservedNodes, true),
    ("enabledVictim", Switch::Victim, true),
    ("enableJobStarving", Switch::JobStarving, true),
    ("enabledOverused", Switch::Overused, true),
    ("enabledAllocatable", Switch::Allocatable, true),
    ("enabledHyperNodeOrder", Switch::HyperNodeOrder, true),
    ("enabledSubJobReady", Switch::SubJobReady, true),
    ("enabledSubJobPipelined", Switch::SubJobPipelined, true),
    ("enabledSubJobOrder", Switch::SubJobOrder, true),
    ("enabledHyperNodeGradient", Switch::HyperNodeGradient, true),
    ("enableHierarchy", Switch::Hierarchy, false),
];

/// The switches of one plugin entry. Two sets are equal when they switch the same things on,
/// whether written in the file or by default.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Switches {
    on: u32,
    /// Those that the file sets itself, for showing what is in force.
    written: u32,
}

impl Switches {
    /// Whether the extension points of the switch are called.
    pub fn on(self, switch: Switch) -> bool {
        self.on & bit(switch) != 0
    }

    /// Whether the file sets the switch, instead of leaving it at its default.
    pub fn is_written(self, switch: Switch) -> bool {
        self.written & bit(switch) != 0
    }

    /// The same switches with one of them set as if by the file.
    #[must_use]
    pub fn with(self, switch: Switch, on: bool) -> Switches {
        let bits = if on { self.on | bit(switch) } else { self.on & !bit(switch) };
        Switches { on: bits, written: self.written | bit(switch) }
    }
}

impl Default for Switches {
    fn default() -> Self {
        let on = SWITCHES.iter().filter(|(_, _, default)| *default);
        Switches { on: on.fold(0, |bits, (_, switch, _)| bits | bit(*switch)), written: 0 }
    }
}

impl PartialEq for Switches {
    fn eq(&self, other: &Self) -> bool {
        self.on == other.on
    }
}

impl Eq for Switches {}

/// The switch of an exact key.
pub(crate) fn switch_of(key: &str) -> Option<Switch> {
    SWITCHES.iter().find(|(name, _, _)| *name == key).map(|(_, switch, _)| *switch)
}

fn bit(switch: Switch) -> u32 {
    1 << switch as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_8_every_switch_is_on_but_hierarchy_and_cluster_order() {
        let switches = Switches::default();
        let off: Vec<_> = SWITCHES.iter().filter(|row| !switches.on(row.1)).collect();
        let keys: Vec<_> = off.iter().map(|row| row.0).collect();
        assert_eq!(keys, ["enabledClusterOrder", "enableHierarchy"]);
    }

    #[test]
    fn the_table_has_every_switch_once_at_its_own_bit() {
        assert_eq!(SWITCHES.len(), Switch::Hierarchy as usize + 1);
        for (position, (key, switch, _)) in SWITCHES.iter().enumerate() {
            assert_eq!(*switch as usize, position, "{key}");
            assert_eq!(switch_of(key), Some(*switch));
        }
    }

    #[test]
    fn a_written_default_equals_an_absent_switch() {
        let written = Switches::default().with(Switch::JobOrder, true);
        assert_eq!(written, Switches::default());
        assert!(written.is_written(Switch::JobOrder));
        assert_ne!(written.with(Switch::JobOrder, false), Switches::default());
    }
}
