//! An explanation as plain data. Amounts are quantities as text, times are microseconds since 1970.
//! Specification: answers.md 2, 3, 6.

use std::sync::Arc;

use vc_framework::rfc3339;
use vc_model::ObjectKey;

use crate::code::WaitCode;
use crate::evict::EvictionAnswer;
use crate::remedy_change::RemedyChange;
use crate::when::StartAnswer;

/// The state that an answer is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerTime {
    /// Time of the last cycle.
    pub time_micros: i64,
    /// Number of the last cycle, from 1.
    pub cycle: u64,
}

/// The job that was asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AskedSubject {
    /// PodGroup, or the pod if it has none.
    pub key: ObjectKey,
    /// True if `key` names a pod without PodGroup.
    pub is_bare: bool,
    /// The pod that was asked about. `None` if the question was about the job.
    pub pod: Option<ObjectKey>,
    /// Name of the queue. `None` if there is no PodGroup.
    pub queue: Option<Arc<str>>,
    /// Priority of the job.
    pub priority: i32,
    /// Seconds since the PodGroup was created. `None` if nothing waits.
    pub waiting_seconds: Option<i64>,
}

/// Where the job stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The first obstacle.
    pub code: WaitCode,
    /// The obstacle in one line.
    pub text: String,
    /// Further obstacles that would apply if the earlier ones did not, each once.
    pub also: Vec<WaitCode>,
}

/// The condition that the PodGroup shows, where it says something else than the verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastCondition {
    /// One word.
    pub reason: Arc<str>,
    /// Message for users.
    pub message: Arc<str>,
}

/// The members of the job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GangNumbers {
    /// Members that must have places before any of them starts.
    pub needed: u32,
    /// Waiting members that find a place.
    pub placed: u32,
    /// Members that have a node.
    pub ready: u32,
    /// Members that wait.
    pub waiting: u32,
    /// Roles with a minimum, by name.
    pub roles: Vec<RoleNumbers>,
    /// Sub-groups with a minimum, by name.
    pub sub_groups: Vec<SubGroupNumbers>,
    /// Waiting members that ask for the same, in task order.
    pub pods: Vec<PodClassNumbers>,
}

/// The members of one role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleNumbers {
    /// Name of the role.
    pub role: Arc<str>,
    /// Its minimum.
    pub needed: u32,
    /// Waiting members of it that find a place.
    pub placed: u32,
    /// Members of it that have a node.
    pub ready: u32,
}

/// The members of one sub-group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubGroupNumbers {
    /// Name of the sub-group, as in texts: `ml/train/workers-1`.
    pub name: Arc<str>,
    /// Its minimum, `subGroupSize`.
    pub needed: u32,
    /// Waiting members of it that find a place.
    pub placed: u32,
    /// Members of it that have a node.
    pub ready: u32,
}

/// Waiting members that ask for the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodClassNumbers {
    /// Resource names and quantities, in report order.
    pub request: Vec<(String, String)>,
    /// Number of members.
    pub count: u32,
    /// Number of members that find a place.
    pub placed: u32,
}

/// Waiting members of one class that find no place, beside the class that the numbers are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingClass {
    /// What each of them asks for: resource names and quantities, in report order.
    pub request: Vec<(String, String)>,
    /// Number of members.
    pub count: u32,
    /// Why they find no place.
    pub code: WaitCode,
    /// The same in one line, without the numbers of a queue.
    pub text: String,
}

/// The nodes as the first waiting pod that finds no place sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeNumbers {
    /// Nodes of the session.
    pub total: usize,
    /// Nodes that only lack room, or lack nothing.
    pub eligible: usize,
    /// Every node is in exactly one group.
    pub groups: Vec<RefusedNodes>,
    /// Up to three nodes that come closest.
    pub nearest: Vec<NearestNode>,
}

/// Nodes that the same things refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedNodes {
    /// Names of the atoms, in rank order. Empty: nothing refuses these nodes. The group `others`
    /// has the nodes of all groups beyond the twelfth.
    pub atoms: Vec<String>,
    /// Number of nodes.
    pub count: usize,
    /// Names of up to five nodes.
    pub names: Vec<Arc<str>>,
    /// What each of these nodes lacks, if all lack the same amounts. Empty otherwise.
    pub lacks: Vec<(String, String)>,
}

/// A node that comes close.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearestNode {
    /// Its name.
    pub name: Arc<str>,
    /// Names of the atoms that refuse it, in rank order.
    pub atoms: Vec<String>,
    /// What it lacks: resource names and quantities, in report order.
    pub lacks: Vec<(String, String)>,
}

/// One resource that the job asks for, over the eligible nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortResource {
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
    /// The smallest amount that one node lacks for one pod. `None` if no node lacks it.
    pub per_pod: Option<String>,
}

/// One amount of a limit that the job would exceed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaRow {
    /// The plugin whose vote turned on it.
    pub plugin: &'static str,
    /// Name of the queue or cohort. `None`: the limit is one of the cluster, or of a ResourceQuota.
    pub queue: Option<Arc<str>>,
    /// Name of the ResourceQuota in the namespace of the job. `None`: something else sets the limit.
    pub resource_quota: Option<Arc<str>>,
    /// Name of the resource.
    pub resource: String,
    /// Name of the limit: `capability`, `deserved`, `overcommit`.
    pub limit: String,
    /// The limit.
    pub amount: String,
    /// What counts already.
    pub used: String,
    /// What is asked in addition.
    pub asked: String,
    /// Used and asked, less the limit.
    pub short: String,
}

/// The place of a job among the waiting jobs of its queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinePlace {
    /// Rank in the queue, from 1.
    pub in_queue: usize,
    /// Waiting jobs of the queue.
    pub of_queue: usize,
    /// Number of its turn in the last cycle, from 1. `None` if it had none.
    pub turn: Option<usize>,
    /// Rank of the queue by QueueOrder if a cycle began now, among the queues in which jobs wait, from 1.
    pub queue_turn: usize,
    /// The job just before it. `None` for the first.
    pub before: Option<LineNeighbour>,
    /// The job just behind it. `None` for the last.
    pub behind: Option<LineNeighbour>,
    /// The jobs before it.
    pub ahead: JobsAhead,
}

/// A neighbour in the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineNeighbour {
    /// Its PodGroup, or its pod.
    pub job: ObjectKey,
    /// The plugin that decides which of the two comes first, or `created`, or `name`.
    pub decided_by: &'static str,
    /// What is compared. `None` if the plugin has no texts for it.
    pub values: Option<ComparedValues>,
}

/// What is compared of two jobs: of the one that was asked about, and of its neighbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComparedValues {
    /// Values of a plugin.
    OfPlugin(String, String),
    /// Times of creation, in microseconds since 1970.
    Created(i64, i64),
    /// Names.
    Names(ObjectKey, ObjectKey),
}

impl ComparedValues {
    /// Returns both as texts.
    pub fn texts(&self) -> [String; 2] {
        match self {
            Self::OfPlugin(own, other) => [own.clone(), other.clone()],
            Self::Created(own, other) => [rfc3339(*own), rfc3339(*other)],
            Self::Names(own, other) => [own.to_string(), other.to_string()],
        }
    }
}

/// Sums over the jobs before a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobsAhead {
    /// Number of jobs.
    pub jobs: usize,
    /// Number of their waiting pods.
    pub pods: usize,
    /// What these pods ask for, in report order.
    pub amounts: Vec<(String, String)>,
    /// Number of them that were tried, the first ones. `None` in a list, and in a quick explanation if there are too
    /// many to try all of them.
    pub tried: Option<usize>,
    /// Jobs among those that could not start now either. `None` where `tried` is.
    pub blocked: Option<usize>,
}

/// Who may change what an atom stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Responsible {
    /// The owner of the job.
    You,
    /// Whoever administers queues and nodes.
    Admin,
    /// Nobody: it changes as other pods end.
    Time,
}

impl Responsible {
    /// Returns the word in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::You => "you",
            Self::Admin => "admin",
            Self::Time => "time",
        }
    }
}

/// A part of an explanation for which there was no budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// Whether the job would be placed on empty nodes with nobody before it.
    EvenEmpty,
    /// Some blocking sets, or all.
    Sets,
    /// A remedy of this kind.
    Remedy(RemedyKind),
}

impl LeftOut {
    /// Returns the word in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EvenEmpty => "evenEmpty",
            Self::Sets => "sets",
            Self::Remedy(kind) => kind.as_str(),
        }
    }
}

/// What keeps the job from its place, in sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockingSets {
    /// True if the job would be placed on empty nodes with nobody before it. `None` if there was no
    /// budget for it.
    pub even_empty: Option<bool>,
    /// What was left out for lack of budget, of sets and remedies. Empty: nothing.
    pub left_out: Vec<LeftOut>,
    /// Names of the atoms that are present, in rank order.
    pub atoms: Vec<String>,
    /// Sets, each of which suffices. Empty: nothing that is present suffices, even all together.
    pub sets: Vec<BlockingSet>,
}

impl BlockingSets {
    /// True if nothing was left out for lack of budget.
    pub fn is_complete(&self) -> bool {
        self.left_out.is_empty()
    }

    /// True if all sets are known, and whether empty nodes would do.
    pub(crate) fn are_sets_complete(&self) -> bool {
        self.left_out.iter().all(|it| matches!(it, LeftOut::Remedy(_)))
    }

    /// True if the job may start without anybody changing anything: empty nodes would do, or a set has
    /// only what running pods and jobs before it hold, on nodes or of a limit. Also true if that is not known.
    pub fn helps_waiting(&self) -> bool {
        let is_held = |it: &BlockingAtom| {
            let is_of = |prefix: &str| it.atom.starts_with(prefix);
            it.atom == "order" || ["room/", "share/", "admission/"].into_iter().any(is_of)
        };
        let by_time = |set: &BlockingSet| set.atoms.iter().all(is_held);
        let is_known = self.even_empty == Some(false) && self.are_sets_complete();
        !is_known || self.sets.iter().any(by_time)
    }
}

/// Atoms that suffice together, none of which could be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockingSet {
    /// The atoms in rank order.
    pub atoms: Vec<BlockingAtom>,
    /// What was tried: `all` proper subsets, or those with one atom less: `one-less`.
    pub certified: &'static str,
}

/// One atom of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockingAtom {
    /// Its name.
    pub atom: String,
    /// What it is in the objects of the user.
    pub place: String,
    /// Number of nodes that it refuses. `None` if it is not about nodes.
    pub n_nodes: Option<usize>,
    /// Whose it is to change.
    pub who: Responsible,
}

/// What a remedy changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RemedyKind {
    /// Nothing: other pods end.
    Wait,
    /// The pods tolerate a taint.
    Tolerate,
    /// The pods do not ask for a label.
    Selector,
    /// A filter lets the pods in.
    Filter,
    /// Each pod asks for less.
    AskLess,
    /// Fewer pods must start together.
    LowerMinimum,
    /// The job may evict others.
    RaisePriority,
    /// The queue of the job is created.
    CreateQueue,
    /// A queue may hold more.
    RaiseQuota,
    /// The cluster has more nodes.
    AddNodes,
    /// Several things at once, or one and then an end.
    Together,
    /// Running jobs end.
    EndJobs,
}

impl RemedyKind {
    /// Returns the word in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Tolerate => "tolerate",
            Self::Selector => "selector",
            Self::Filter => "filter",
            Self::AskLess => "askLess",
            Self::LowerMinimum => "lowerMinimum",
            Self::RaisePriority => "raisePriority",
            Self::CreateQueue => "createQueue",
            Self::RaiseQuota => "raiseQuota",
            Self::AddNodes => "addNodes",
            Self::Together => "together",
            Self::EndJobs => "endJobs",
        }
    }
}

/// A change after which the job gets its places. It was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// What it changes.
    pub kind: RemedyKind,
    /// Whose it is to change.
    pub who: Responsible,
    /// The change in one line.
    pub text: String,
    /// Up to five nodes that the job gets. Empty if they are not known.
    pub nodes: Vec<Arc<str>>,
    /// When it happens by itself, in microseconds since 1970. `None` if somebody has to act.
    pub at_micros: Option<i64>,
    /// The change as data. `None` if it cannot be asked about.
    pub change: Option<RemedyChange>,
}

/// The answer to "why does it wait". What rows of a list never have is boxed, as a list has 10,000 rows and more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The state that it is about.
    pub as_of: AnswerTime,
    /// The job.
    pub subject: AskedSubject,
    /// Where it stands.
    pub verdict: Verdict,
    /// What its PodGroup says, if that differs. `None` otherwise.
    pub last_condition: Option<LastCondition>,
    /// Its members. `None` if they are not known.
    pub gang: Option<GangNumbers>,
    /// True if it waits and has no pods yet: controllers may create them once it is admitted.
    pub has_unknown_pods: bool,
    /// The nodes. `None` if no pod was tried on them.
    pub nodes: Option<Arc<NodeNumbers>>,
    /// The resources that it asks for, in report order.
    pub short: Arc<[ShortResource]>,
    /// Up to eight further classes of its members that find no place. The first one, which `nodes` and `short` are
    /// about, is not among them. Empty in a list.
    pub classes: Vec<FailingClass>,
    /// Limits that it would exceed.
    pub quota: Arc<[QuotaRow]>,
    /// What keeps it from its place. `None` in a quick explanation, and if nothing does.
    pub blocking: Option<Box<BlockingSets>>,
    /// Changes that would let it start, each tried. Empty in a quick explanation.
    pub unblock: Vec<Remedy>,
    /// Its place in the line. `None` if it is in none.
    pub line: Option<LinePlace>,
    /// When it starts. `None` unless [`crate::add_start`] was asked, and if it starts in the next
    /// cycle.
    pub start: Option<Box<StartAnswer>>,
    /// Why nobody was evicted for it. `None` in a quick explanation, and if it has its room or lacks
    /// something else than room.
    pub evict: Option<Box<EvictionAnswer>>,
}

impl Explanation {
    /// True if something of the job waits.
    pub fn waits(&self) -> bool {
        !matches!(self.verdict.code, WaitCode::Placed | WaitCode::NotOurs | WaitCode::Binding)
    }
}

/// Returns a time as RFC 3339 in UTC with whole seconds.
pub fn time_text(unix_micros: i64) -> String {
    vc_framework::rfc3339(unix_micros)
}
