//! Queues, nodes and sums over the cluster as JSON. Specification: answers.md 11.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::explanation::{AheadJson, AmountsJson, AsOfJson, is_false};

/// A queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueJson {
    /// Name.
    pub name: String,
    /// Name of the parent. Absent for `root`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parent: Option<String>,
    /// `Open`, `Closed`, `Closing`, `Unknown`.
    pub state: String,
    /// `spec.weight`.
    pub weight: i32,
    /// `spec.priority`.
    pub priority: i32,
    /// Jobs of the queue itself.
    pub jobs: usize,
    /// Jobs of the queue itself that wait.
    pub waiting: usize,
    /// What its jobs and those of all queues below it hold.
    pub allocated: AmountsJson,
    /// What it deserves.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub deserved: AmountsJson,
    /// What is kept for it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub guarantee: AmountsJson,
    /// What it may hold at most.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub capability: AmountsJson,
    /// Largest part of a deserved amount that it holds. With `proportion`, which divides between queues without a
    /// tree, both are of the jobs of the queue itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub share: Option<f64>,
    /// Quota by resource, if a plugin gives one.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub quota: Vec<QueueQuotaJson>,
}

/// Quota of a queue for one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueQuotaJson {
    /// Name of the resource.
    pub resource: String,
    /// Quota of the subtree.
    pub nominal: String,
    /// Usage of the subtree.
    pub used: String,
    /// Part of the usage that is quota of others.
    pub borrowed: String,
    /// Part of its unused quota that others use.
    pub lent: String,
    /// What a job could get now.
    pub available: String,
}

/// A job in the line of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingJobJson {
    /// Rank in the queue, from 1.
    pub place: usize,
    /// Namespace and name.
    pub job: String,
    /// True if the reader may not see the job.
    #[serde(skip_serializing_if = "is_false", default)]
    pub hidden: bool,
    /// Priority.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub priority: Option<i32>,
    /// Pods that wait.
    pub pods: u32,
    /// Seconds since it was created.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waiting_seconds: Option<i64>,
    /// Why it waits.
    pub code: String,
    /// The plugin that decides that it comes after the job before it, or `created`, or `name`. Absent for the first.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub decided_by: Option<String>,
    /// What is compared: of the job, and of the job before it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub values: Option<[String; 2]>,
    /// What decides, in words: `created: 08:30 before 09:10`. Absent for the first.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
    /// The jobs before it. Absent from a scheduler of an older version.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ahead: Option<AheadJson>,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeJson {
    /// Name.
    pub name: String,
    /// True if it is cordoned.
    #[serde(skip_serializing_if = "is_false", default)]
    pub cordoned: bool,
    /// Taints as `key=value:effect`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub taints: Vec<String>,
    /// What pods may use.
    pub allocatable: AmountsJson,
    /// What pods use.
    pub used: AmountsJson,
    /// What pods use in percent of what they may use.
    #[serde(default)]
    pub used_percent: BTreeMap<String, i64>,
    /// What is free once terminating pods have left, less what is promised.
    pub free: AmountsJson,
    /// Number of pods.
    pub pods: usize,
    /// Jobs with pods on the node. Empty in lists.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub jobs: Vec<NodeJobJson>,
    /// HyperNodes that contain it, the smallest first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub hyper_nodes: Vec<String>,
    /// Labels. In lists only the one that was asked for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub labels: BTreeMap<String, String>,
}

/// A label that nodes have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeLabelJson {
    /// Its key.
    pub key: String,
    /// Number of its values.
    pub values: usize,
    /// Number of nodes that have it.
    pub nodes: usize,
}

/// A HyperNode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HyperNodeJson {
    /// Name.
    pub name: String,
    /// Tier.
    pub tier: i32,
    /// The HyperNode that it is a member of.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parent: Option<String>,
    /// Number of HyperNodes above it.
    pub depth: usize,
    /// Number of nodes in it.
    pub nodes: usize,
    /// Number of pods on them.
    pub pods: usize,
    /// What pods may use.
    pub allocatable: AmountsJson,
    /// What pods use.
    pub used: AmountsJson,
    /// What is free once terminating pods have left, less what is promised.
    pub free: AmountsJson,
}

/// The pods of a job on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeJobJson {
    /// Namespace and name.
    pub job: String,
    /// True if the reader may not see the job.
    #[serde(skip_serializing_if = "is_false", default)]
    pub hidden: bool,
    /// Number of pods.
    pub pods: usize,
}

/// Sums over the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SummaryJson {
    /// Nodes.
    pub nodes: usize,
    /// Queues.
    pub queues: usize,
    /// Jobs.
    pub jobs: usize,
    /// Pods by status.
    pub pods: BTreeMap<String, usize>,
    /// Pods of every status.
    pub total_pods: usize,
    /// Jobs that wait, by code.
    pub waiting: BTreeMap<String, usize>,
    /// Jobs that wait, with any code.
    pub total_waiting: usize,
    /// What all nodes offer.
    pub allocatable: AmountsJson,
    /// What pods use.
    pub used: AmountsJson,
    /// What pods use in percent of what all nodes offer.
    pub used_percent: BTreeMap<String, i64>,
    /// How many of the last predictions of a start held, and the number of these. Absent if nothing that was
    /// predicted has started yet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub held: Option<[usize; 2]>,
}

/// One thing with the state that it is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OneJson<T> {
    /// Group and version.
    pub api_version: String,
    /// What it is.
    pub kind: String,
    /// The state that it is about.
    pub as_of: AsOfJson,
    /// The thing.
    #[serde(flatten)]
    pub content: T,
}

/// A list with the state that it is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListJson<T> {
    /// Group and version.
    pub api_version: String,
    /// What it is.
    pub kind: String,
    /// The state that it is about.
    pub as_of: AsOfJson,
    /// Number of all, of which `items` may be a part.
    pub total: usize,
    /// The things.
    pub items: Vec<T>,
}
