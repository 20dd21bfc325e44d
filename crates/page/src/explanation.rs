//! An explanation as JSON. Specification: answers.md 11 (ANS-70), 18.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::history::HistoryJson;
use crate::start::{EvictJson, EvictedPodJson, StartJson};

/// Group and version of all documents.
pub const API_VERSION: &str = "answers.volcano.sh/v1";

/// Amounts by resource name, as quantities.
pub type AmountsJson = BTreeMap<String, String>;

/// The state that an answer is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AsOfJson {
    /// Time of the last cycle, RFC 3339.
    pub time: String,
    /// Number of the last cycle, from 1.
    pub cycle: u64,
    /// Where the state is from: `daemon`, `local` (lists of the cluster), `file` or `bundle`.
    pub source: String,
    /// Version of the scheduler.
    pub version: String,
    /// Age of the oldest change that the answer does not know yet. Absent if the state is not that of a process.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub behind_millis: Option<u64>,
}

/// Why a job waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplanationJson {
    /// Group and version.
    pub api_version: String,
    /// `Explanation`.
    pub kind: String,
    /// The state that it is about.
    pub as_of: AsOfJson,
    /// The job.
    pub subject: SubjectJson,
    /// Where it stands.
    pub verdict: VerdictJson,
    /// What its PodGroup says, if that differs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_condition: Option<ConditionJson>,
    /// Its members.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub gang: Option<GangJson>,
    /// `unknown` if it waits and has no pods yet: controllers may create them once it is admitted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pods: Option<String>,
    /// The nodes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub nodes: Option<NodeNumbersJson>,
    /// The resources that it asks for.
    pub short: Vec<ShortJson>,
    /// Up to eight further classes of its pods that find no place. The first one, which `nodes` and `short` are
    /// about, is not among them. Absent in a list.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub classes: Vec<FailingClassJson>,
    /// Limits that it would exceed.
    pub quota: Vec<QuotaJson>,
    /// What keeps it from its place.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub blocking: Option<BlockingJson>,
    /// Changes that would let it start, each tried.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub unblock: Vec<RemedyJson>,
    /// Its place in the line.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<LineJson>,
    /// When it starts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub start: Option<StartJson>,
    /// Why nobody was evicted for it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub evict: Option<EvictJson>,
    /// Pods that were evicted for it, or of it, as far as they are remembered.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub evictions: Vec<EvictedPodJson>,
    /// What is known of its life until now. Absent in a list, of what is gone, and without a scheduler that
    /// remembers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub history: Option<HistoryJson>,
}

/// The job that was asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubjectJson {
    /// `PodGroup`, or `Pod` if there is none.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name of the PodGroup or pod.
    pub name: String,
    /// Name of the controller that owns the PodGroup.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub job: Option<String>,
    /// Kind of that controller in lower case.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub job_kind: Option<String>,
    /// The pod that was asked about, if it was one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pod: Option<String>,
    /// Name of the queue.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub queue: Option<String>,
    /// Priority of the job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub priority: Option<i32>,
    /// Seconds since the PodGroup was created.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waiting_seconds: Option<i64>,
}

/// Where the job stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictJson {
    /// Stage of the code.
    pub stage: String,
    /// The first obstacle, as a stable name.
    pub code: String,
    /// Further obstacles that would remain without the earlier ones.
    pub also: Vec<String>,
    /// The obstacle in one line.
    pub text: String,
}

/// A condition of the PodGroup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConditionJson {
    /// One word.
    pub reason: String,
    /// Message for users.
    pub message: String,
}

/// The members of the job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GangJson {
    /// Members that must have places before any of them starts.
    pub needed: u32,
    /// Waiting members that find a place.
    pub placed: u32,
    /// Members that have a node.
    pub ready: u32,
    /// Members that wait.
    pub waiting: u32,
    /// Members that wait or have a node.
    #[serde(default)]
    pub total: u32,
    /// Roles with a minimum.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub roles: Vec<RoleJson>,
    /// Sub-groups with a minimum.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub sub_groups: Vec<SubGroupJson>,
    /// Waiting members that ask for the same.
    pub pods: Vec<PodClassJson>,
}

/// The members of one role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoleJson {
    /// Name of the role.
    pub role: String,
    /// Its minimum.
    pub needed: u32,
    /// Waiting members of it that find a place.
    pub placed: u32,
    /// Members of it that have a node.
    pub ready: u32,
}

/// The members of one sub-group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubGroupJson {
    /// Name of the sub-group, as in texts.
    pub name: String,
    /// Its minimum.
    pub needed: u32,
    /// Waiting members of it that find a place.
    pub placed: u32,
    /// Members of it that have a node.
    pub ready: u32,
}

/// Waiting members that ask for the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PodClassJson {
    /// What each of them asks for.
    pub request: AmountsJson,
    /// Number of members.
    pub count: u32,
    /// Number of members that find a place.
    pub placed: u32,
}

/// Waiting pods of one class that find no place, beside the class that the numbers are about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailingClassJson {
    /// What each of them asks for.
    pub request: AmountsJson,
    /// Number of pods.
    pub count: u32,
    /// Why they find no place, as a stable name.
    pub code: String,
    /// The same in one line.
    pub text: String,
}

/// The nodes as the first waiting pod that finds no place sees them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeNumbersJson {
    /// Nodes of the session.
    pub total: usize,
    /// Nodes that only lack room, or lack nothing.
    pub eligible: usize,
    /// Every node is in exactly one group.
    pub groups: Vec<NodeGroupJson>,
    /// Up to three nodes that come closest.
    pub nearest: Vec<NearestNodeJson>,
}

/// Nodes that the same things refuse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeGroupJson {
    /// What refuses them. Empty: nothing.
    pub atoms: Vec<String>,
    /// Number of nodes.
    pub count: usize,
    /// Names of up to five nodes.
    pub names: Vec<String>,
    /// What each of them lacks, if all lack the same.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub lacks: AmountsJson,
    /// What refuses them, as a phrase after `6 nodes`.
    #[serde(default)]
    pub text: String,
}

/// A node that comes close.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NearestNodeJson {
    /// Its name.
    pub name: String,
    /// What refuses it.
    pub atoms: Vec<String>,
    /// What it lacks.
    pub lacks: AmountsJson,
}

/// One resource that the job asks for, over the eligible nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShortJson {
    /// Name.
    pub resource: String,
    /// Σ requests of the members that must still be placed.
    pub need: String,
    /// Σ free amounts.
    pub free: String,
    /// Σ over whole pods that fit.
    pub usable: String,
    /// The largest free amount on one node.
    pub largest: String,
    /// What is missing in total.
    pub short: String,
    /// The smallest amount that one node lacks for one pod.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub per_pod: Option<String>,
}

/// One amount of a limit that the job would exceed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuotaJson {
    /// The plugin whose vote turned on it.
    pub plugin: String,
    /// Name of the queue or cohort. Absent: the limit is one of the cluster or of a ResourceQuota.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub queue: Option<String>,
    /// Name of the ResourceQuota of the job's namespace that sets the limit. Absent: none does.
    #[serde(rename = "resourceQuota", skip_serializing_if = "Option::is_none", default)]
    pub resource_quota: Option<String>,
    /// Name of the resource.
    pub resource: String,
    /// Name of the limit.
    pub limit: String,
    /// The limit. Absent if the reader may not see the queue.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub amount: Option<String>,
    /// What counts already. Absent if the reader may not see the queue.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub used: Option<String>,
    /// What is asked in addition.
    pub asked: String,
    /// Used and asked, less the limit.
    pub short: String,
}

/// What keeps the job from its place, in sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockingJson {
    /// True if it would be placed on empty nodes with nobody before it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub even_empty: Option<bool>,
    /// True if nothing was left out for lack of budget.
    pub complete: bool,
    /// What was left out for lack of budget: `evenEmpty`, `sets`, and kinds of remedies.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub left_out: Vec<String>,
    /// True if it may start without anybody changing anything.
    pub helps_waiting: bool,
    /// The atoms that are present.
    pub atoms: Vec<String>,
    /// Sets, each of which suffices.
    pub sets: Vec<BlockingSetJson>,
}

/// Atoms that suffice together, none of which could be left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockingSetJson {
    /// The atoms.
    pub atoms: Vec<BlockingAtomJson>,
    /// What was tried: `all` proper subsets, or those with one atom less: `one-less`.
    pub certified: String,
}

/// One atom of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockingAtomJson {
    /// Its name.
    pub atom: String,
    /// What it is in the objects of the user.
    pub r#in: String,
    /// Number of nodes that it refuses.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub nodes: Option<usize>,
    /// Whose it is to change.
    pub who: String,
}

/// A change after which the job gets its places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RemedyJson {
    /// What it changes.
    pub kind: String,
    /// Whose it is to change.
    pub who: String,
    /// The change in one line.
    pub text: String,
    /// Up to five nodes that the job gets.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub nodes: Vec<String>,
    /// Time until which to wait, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub at: Option<String>,
    /// The same as one change of a document `WhatIf`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub change: Option<Value>,
    /// All changes of a document `WhatIf`, in order, where it takes several. `change` is absent then.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub changes: Vec<Value>,
}

/// The place of a job among the waiting jobs of its queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineJson {
    /// Rank in the queue, from 1.
    pub in_queue: usize,
    /// Waiting jobs of the queue.
    pub of_queue: usize,
    /// Number of its turn in the last cycle, from 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turn: Option<usize>,
    /// Rank of the queue if a cycle began now, among the queues in which jobs wait, from 1. Each placement of a cycle
    /// may change it.
    pub queue_turn: usize,
    /// The job just before it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<NeighbourJson>,
    /// The job just behind it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub behind: Option<NeighbourJson>,
    /// The jobs before it.
    pub ahead: AheadJson,
}

/// A neighbour in the line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NeighbourJson {
    /// Namespace and name.
    pub job: String,
    /// True if the reader may not see the job; `job` then only tells hidden jobs apart.
    #[serde(skip_serializing_if = "is_false", default)]
    pub hidden: bool,
    /// The plugin that decides which of the two comes first, or `created`, or `name`.
    pub decided_by: String,
    /// What is compared: of the job that was asked about, and of the neighbour.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub values: Option<[String; 2]>,
    /// What decides, in words: `created: 08:30 before 09:10`.
    #[serde(default)]
    pub text: String,
}

/// Sums over the jobs before a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AheadJson {
    /// Number of jobs.
    pub jobs: usize,
    /// Number of their waiting pods.
    pub pods: usize,
    /// What these pods ask for.
    pub amounts: AmountsJson,
    /// Number of them that were tried, the first ones, at most 20. Absent in a list of explanations, and in a quick one
    /// if there are more than 20 jobs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tried: Option<usize>,
    /// Jobs among those that were tried that could not start now either. Absent where `tried` is.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub blocked: Option<usize>,
}

impl ExplanationJson {
    /// True if something of the job waits.
    pub fn waits(&self) -> bool {
        !matches!(self.verdict.code.as_str(), "Placed" | "NotOurs" | "Binding" | "Gone")
    }

    /// Returns the answer about a pod that was evicted and is gone.
    pub fn gone(evicted: EvictedPodJson, as_of: AsOfJson) -> Self {
        let (namespace, name) = evicted.pod.split_once('/').unwrap_or(("", &evicted.pod));
        let how = evicted.text.strip_prefix(&evicted.pod).unwrap_or(&evicted.text);
        let text = format!("evicted{how}");
        let subject = SubjectJson {
            kind: "Pod".to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..SubjectJson::default()
        };
        Self { evictions: vec![evicted], ..Self::without_numbers(subject, text, as_of) }
    }

    /// Returns the answer about a job or pod that is gone, in one line.
    pub(crate) fn without_numbers(subject: SubjectJson, text: String, as_of: AsOfJson) -> Self {
        Self {
            api_version: API_VERSION.to_owned(),
            kind: "Explanation".to_owned(),
            as_of,
            subject,
            verdict: VerdictJson {
                stage: "ours".to_owned(),
                code: "Gone".to_owned(),
                also: Vec::new(),
                text,
            },
            evictions: Vec::new(),
            last_condition: None,
            gang: None,
            pods: None,
            nodes: None,
            short: Vec::new(),
            classes: Vec::new(),
            quota: Vec::new(),
            blocking: None,
            unblock: Vec::new(),
            line: None,
            start: None,
            evict: None,
            history: None,
        }
    }

    /// True for the answer about a pod that is gone.
    pub(crate) fn is_gone_pod(&self) -> bool {
        self.verdict.code == "Gone" && self.subject.kind == "Pod"
    }

    /// Returns the name of the job as users know it, with its namespace.
    pub fn job_name(&self) -> String {
        let SubjectJson { namespace, name, job, .. } = &self.subject;
        format!("{namespace}/{}", job.as_ref().unwrap_or(name))
    }
}

pub(crate) fn is_false(value: &bool) -> bool {
    !value
}
