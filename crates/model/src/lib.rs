//! The cluster state: typed tables that events update, with derived sums. Only [`Cluster::apply`]
//! and the placements of a session change a table. Specification: core.md 3, 4.

#![deny(missing_docs)]

mod budget;
mod change_log;
mod class;
mod cluster;
mod copy_on_write;
mod counts_by_role;
mod default_spread;
mod device;
mod device_share;
mod division;
mod domains;
mod duration;
mod event;
#[cfg(feature = "fixture")]
pub mod fixture;
mod group_controller;
mod hyper_node;
mod ids;
mod images;
mod index;
mod job;
mod lru_cache;
mod node;
mod node_group;
mod node_load;
pub mod node_selector;
mod numa;
mod other_scheduler;
mod pod_affinity;
mod queue;
mod quota;
pub mod reads;
mod reason;
mod record;
mod request;
mod resource_strategy;
mod run_template;
mod saved_usage;
mod selector;
mod stated_run;
mod status;
mod sums;
mod task;
mod toleration;
mod tournament_tree;
mod utc_offset;
mod volume;

pub use budget::{Budget, BudgetRecord, Budgets, Covers};
pub use change_log::{ChangeLog, ChangeReader, ChangedRows, Revision};
pub use class::{Class, Classes, NonZero, NonZeroSum, PodLimits, Shape};
pub use cluster::{Cluster, Settings, Sharding, ShardingMode};
pub use copy_on_write::CopyOnWrite;
pub use counts_by_role::CountsByRole;
pub use default_spread::{Controller, SelectorKind, SelectorObject};
pub use device::{
    Allocation, AllocationMode, Attribute, ClaimPromise, ClaimSource, Consumer, Device,
    DeviceClass, DeviceConfig, DeviceConstraint, DeviceId, DeviceKind, DeviceObject, DeviceRequest,
    DeviceResult, DeviceTaint, DeviceToleration, Devices, ExactRequest, InFlight, PodResourceClaim,
    RequestKind, ResourceClaim, ResourceSlice, SliceNodes,
};
pub use device_share::{ContainerDemand, DEVICE_ANNOTATIONS, DeviceDemand};
pub use division::Division;
pub use domains::{Domains, Links, NodeDomains, Spread, Spreading, Term, TermCount, Wants};
pub use duration::go_duration_micros;
pub use event::{ClusterEvent, ReadAfter};
pub use group_controller::{ControllerName, GroupController};
pub use hyper_node::{
    HyperNode, HyperNodeId, HyperNodeMember, HyperNodeProblem, HyperNodeRecord, HyperNodeTree,
    HyperNodes, NodePattern,
};
pub use ids::{
    ClassId, Column, Id, ImageId, InclusionId, JobId, KeyId, MatcherId, NodeId, QueueId, SpreadId,
    Table, TaskId, TermId, ValueId,
};
pub use images::{Image, Images};
pub use index::Index;
pub use job::{
    Job, JobBudget, MinResources, PodGroup, Portion, SubJob, TaskTopology, WrittenStatus,
};
pub use lru_cache::ByteLruCache;
pub use node::{Node, NodeView};
pub use node_group::{NodeGroupAffinity, NodeGroupLimits};
pub use node_load::{LOAD_INTERVAL_MICROS, NodeLoad};
pub use numa::{
    CpuAllocation, CpuPlace, CpuSet, MAX_CPUS, NumaDemand, NumaTopology, parse_cpu_list,
};
pub use other_scheduler::OtherScheduler;
pub use pod_affinity::{
    InclusionPolicy, PodAffinity, PodSelector, PodTerm, PreferredPodTerm, SpreadConstraint,
    Unsatisfiable,
};
pub use queue::Queue;
pub use quota::{Quota, QuotaRecord, Quotas, ResourceQuotaAmounts};
pub use reason::{Code, Finding, FitErrors, NodeSet, Reason, joined, single_node_text};
pub use record::{
    ContainerRecord, InPlace, NetworkTopology, NodeRecord, NodeShardRecord, ObjectKey,
    PodCondition, PodGroupCondition, PodGroupPhase, PodGroupRecord, PodGroupStatus, PodPhase,
    PodRecord, PriorityClassRecord, QueueRecord, QueueState, ResourceList, SubGroupPolicy,
};
pub use request::{RequestGates, non_zero_request, pod_request, to_resource};
pub use resource_strategy::{PodResourceStrategy, ResourceStrategy};
pub use run_template::{RUN_TEMPLATE, RunTemplate};
pub use saved_usage::{SavedAccount, SavedShare, SavedUsage, SavedUsages, UsageScale};
pub use selector::{
    HostPort, LabelSelector, Labels, NodeAffinity, NodeSelectorTerm, Operator, PreferredTerm,
    Protocol, Requirement, Taint, TaintEffect, Toleration, TolerationOperator,
};
pub use stated_run::{MAX_EXEC_SECONDS, RUNTIME, StatedRun};
pub use status::{Counts, STATUSES, TaskStatus};
pub use sums::Seldom;
pub use task::{Gates, Pause, QUEUE_GATE, Task};
pub use toleration::any_tolerates;
pub use tournament_tree::TournamentTree;
pub use utc_offset::UtcOffset;
pub use volume::{
    AccessModes, BindingMode, BindingStage, ClaimRef, CsiDriver, CsiNode, Decision, Disk, InTree,
    NodeVolumes, PersistentVolume, PersistentVolumeClaim, PodClaim, PodVolume, Reservation,
    ReservedClaim, Selected, StorageCapacity, StorageClass, StorageKind, StorageObject,
    TopologyTerm, VolumeAttachment, VolumeMode, VolumeName, VolumePhase, VolumeSource, Volumes,
    aws_ebs, csi_dimension, gce_pd,
};
