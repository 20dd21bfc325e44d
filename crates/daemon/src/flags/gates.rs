//! Feature gates that change something here; every other name is accepted and named in the log.
//! Specification: core.md 1.3.

/// A gate, for the documentation and the log.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) name: &'static str,
    /// As the documentation shows it.
    pub(super) default: &'static str,
    /// One of Volcano's, all of which are alpha: `AllAlpha` is meant for it too.
    pub(super) is_alpha: bool,
    pub(super) help: &'static str,
}

pub(crate) const WORKLOADS: &str = "WorkLoadSupport";
pub(crate) const BUDGETS: &str = "PodDisruptionBudgetsSupport";
pub(crate) const NUMA_TOPOLOGIES: &str = "ResourceTopology";
pub(crate) const PRIORITY_CLASSES: &str = "PriorityClass";
pub(crate) const QUEUE_ADMISSION: &str = "SchedulingGatesQueueAdmission";
pub(crate) const RESIZE: &str = "InPlacePodVerticalScaling";
pub(crate) const POD_LEVEL: &str = "PodLevelResources";
pub(crate) const DEVICES: &str = "DynamicResourceAllocation";
pub(crate) const DEVICE_CAPACITY: &str = "DRAConsumableCapacity";
pub(crate) const STORAGE_SCORING: &str = "StorageCapacityScoring";
pub(super) const ALL_ALPHA: &str = "AllAlpha";

const fn gate(
    name: &'static str,
    default: &'static str,
    is_alpha: bool,
    help: &'static str,
) -> Gate {
    Gate { name, default, is_alpha, help }
}

#[rustfmt::skip] // a table is read by its rows
pub(super) const GATES: &[Gate] = &[
    gate(WORKLOADS, "on", true,
        "off: ReplicationControllers, ReplicaSets and StatefulSets are not watched; \
        default spread constraints then follow Services only"),
    gate(BUDGETS, "on", true,
        "off: PodDisruptionBudgets are not watched; the plugin pdb sees none"),
    gate(NUMA_TOPOLOGIES, "on", true,
        "off: Numatopologies are not watched; for the plugin numa-aware no node has NUMA data"),
    gate(PRIORITY_CLASSES, "on", true, "off: the same as `--priority-class=false`"),
    gate(QUEUE_ADMISSION, "off", true,
        "on: the gate `scheduling.volcano.sh/queue-allocation-gate` is removed from pods whose \
        queue has room"),
    gate(ALL_ALPHA, "", false, "for each gate above that is not given by name"),
    gate(RESIZE, "on from 1.33", false,
        "a container that is resized counts the larger of what it asks for and what it has"),
    gate(POD_LEVEL, "on from 1.34", false, "requests of a pod as a whole count"),
    gate(DEVICES, "on where the server has resource.k8s.io/v1", false,
        "off: claims for devices are neither watched nor looked at"),
    gate(DEVICE_CAPACITY, "on from 1.36", false,
        "quotas of devices in `capacity` count the capacity that claims consume"),
    gate(STORAGE_SCORING, "off", false,
        "on: `predicates` scores nodes by how full their storage gets (`volumebinding.weight`, \
        `volumebinding.shape`)"),
];
