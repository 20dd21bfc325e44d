//! Declarations of what a plugin's answers may read, and what caches conclude from them. A plugin
//! that declares nothing reads everything: none of its answers is cached. Every conclusion is a
//! function of declared inputs and of nothing else. Specification: core.md 5.3.

mod caches;

use crate::points::{ALL_POINTS, Points};

pub use caches::{CacheOff, caches_off};

/// A set of inputs that an answer may read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inputs(u32);

macro_rules! inputs {
    ($($name:ident = $bit:literal, $text:literal, $doc:literal;)+) => {
        impl Inputs {
            $(#[doc = $doc]
            pub const $name: Inputs = Inputs(1 << $bit);)+
        }
        /// Every input with its name for people.
        pub const ALL_INPUTS: &[(Inputs, &str)] = &[$((Inputs::$name, $text),)+];
    };
}

inputs! {
    NODE_OBJECT = 0, "node object",
        "Labels, taints and zone of the node in question, or of the nodes of the candidates.";
    NODE_ROW = 1, "node row", "What the node in question offers, and what its pods use.";
    POD_ROW = 2, "pod row",
        "Priorities, marks and zone of the pod in question; queue, priority and mark of its job.";
    POD_SHAPE = 3, "pod shape", "What the pod asks for and demands of nodes.";
    POD_LABELS = 4, "pod labels", "Namespace and labels of the pod in question.";
    IDENTITY = 5, "identity", "State that the plugin keeps for this pod or this job alone.";
    JOB_REQUEST = 6, "job request", "Queue, namespace and `minResources` of the job in question.";
    JOB_ROW = 7, "job row", "Everything that the PodGroup of the job in question says.";
    JOB_COUNTS = 8, "job counts", "What the pods of the job in question are and hold together.";
    CANDIDATE_ROW = 9, "candidate row",
        "The candidates, their jobs, and the other candidates of the same job.";
    OWN_QUEUE_USAGE = 10, "own queue usage", "What the pods of the queue in question hold together.";
    CANDIDATE_QUEUE_USAGE = 11, "candidate queue usage",
        "What the pods of the queue of a candidate hold, and the other candidates of that queue.";
    OTHER_QUEUE_USAGE = 12, "other queue usage", "What the pods of any other queue hold together.";
    QUEUE_OBJECT = 13, "queue object", "The objects of queues.";
    CLUSTER_TOTAL = 14, "cluster total", "The sum of what all nodes offer.";
    OTHER_PODS = 15, "other pods", "Pods, nodes and jobs other than those in question.";
    OTHER_OBJECTS = 16, "other objects",
        "Volumes, devices, images, ResourceQuotas and their users.";
    BUDGETS = 17, "budgets",
        "PodDisruptionBudgets, and the other candidates that they cover.";
    CLOCK = 18, "clock", "The time of the session.";
    JOB_TOPOLOGY = 19, "job topology",
        "Network topologies of the job in question and of its sub-jobs.";
    OWN_QUEUE = 20, "own queue", "Which queue the pod in question is in. The pod row includes it.";
}

impl Inputs {
    /// The empty set.
    pub const NONE: Inputs = Inputs(0);
    /// The set of all inputs.
    pub const EVERYTHING: Inputs = Inputs((1 << ALL_INPUTS.len()) - 1);
    /// The inputs that [`crate::PodSignature`] covers, besides [`Inputs::JOB_TOPOLOGY`].
    pub const POD_SIGNATURE: Inputs = Inputs::POD_ROW.and(Inputs::POD_SHAPE);

    /// Returns the union of both sets.
    pub const fn and(self, other: Inputs) -> Inputs {
        Inputs(self.0 | other.0)
    }

    /// Returns the set without the inputs of `other`.
    pub const fn without(self, other: Inputs) -> Inputs {
        Inputs(self.0 & !other.0)
    }

    /// True if the set has all inputs of `other`.
    pub const fn has(self, other: Inputs) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if the set has some input of `other`.
    pub const fn has_any(self, other: Inputs) -> bool {
        self.0 & other.0 != 0
    }

    /// True if the set has no input beyond those of `most`.
    pub const fn is_within(self, most: Inputs) -> bool {
        self.0 & !most.0 == 0
    }

    /// Returns the names of the inputs, for people.
    pub fn names(self) -> Vec<&'static str> {
        let named = ALL_INPUTS.iter().filter(|(input, _)| self.has(*input));
        named.map(|(_, name)| *name).collect()
    }
}

/// Inputs that the answers of a plugin may read, by extension point. Inputs of the event handlers
/// are declared at Reserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Depends {
    by_point: [Inputs; ALL_POINTS.len()],
    eased_by_evictions: Points,
    requires_minimum: Points,
}

impl Depends {
    /// Declaration that every answer may read everything.
    pub const EVERYTHING: Depends = Depends {
        by_point: [Inputs::EVERYTHING; ALL_POINTS.len()],
        eased_by_evictions: Points::NONE,
        requires_minimum: Points::NONE,
    };

    /// Builds a declaration from a table of points and their inputs. Any point that is not in the
    /// table may read everything.
    pub fn of(table: &[(Points, Inputs)]) -> Self {
        let mut depends = Self::EVERYTHING;
        for &(points, inputs) in table {
            for &(point, ..) in ALL_POINTS.iter().filter(|(point, ..)| points.has(*point)) {
                depends.by_point[point.index()] = inputs;
            }
        }
        depends
    }

    /// Adds the declaration that one more eviction never turns an answer of these points from yes
    /// to no (monotonicity).
    pub fn eased_by_evictions(self, points: Points) -> Self {
        Self { eased_by_evictions: points, ..self }
    }

    /// Adds the declaration that the plugin answers no at these points, or rejects, as long as fewer
    /// tasks of the job, or of the sub-job, are placed than its minimum says
    /// ([`vc_model::Counts::is_pipelined`]).
    pub fn requires_minimum(self, points: Points) -> Self {
        Self { requires_minimum: points, ..self }
    }

    /// True if an answer of this point is yes only once the minimum is placed.
    pub(crate) fn is_no_below_minimum(&self, point: Points) -> bool {
        self.requires_minimum.has(point)
    }

    /// Reduces the declaration to the points that the plugin states. All other points, and points
    /// without an answer, read nothing.
    pub(crate) fn stated_by(mut self, points: Points) -> Self {
        let has_answer = |point: Points| points.has(point) && !WITHOUT_ANSWER.has(point);
        for (point, ..) in ALL_POINTS.iter().filter(|(point, ..)| !has_answer(*point)) {
            self.by_point[point.index()] = Inputs::NONE;
        }
        self
    }

    /// Removes these inputs at every point.
    pub(crate) fn without(mut self, inputs: Inputs) -> Self {
        for of_point in &mut self.by_point {
            *of_point = of_point.without(inputs);
        }
        self
    }

    /// Returns the inputs of one point.
    pub fn at(&self, point: Points) -> Inputs {
        self.by_point[point.index()]
    }

    /// Returns the union of the inputs of these points.
    pub(crate) fn at_any(&self, points: &[Points]) -> Inputs {
        points.iter().fold(Inputs::NONE, |inputs, &point| inputs.and(self.at(point)))
    }

    /// True if some answer depends on the time.
    pub(crate) fn reads_clock(&self) -> bool {
        self.by_point.iter().any(|inputs| inputs.has(Inputs::CLOCK))
    }

    /// Returns whether answers about a preemptor follow from its [`crate::PodSignature`].
    pub(crate) fn signature(&self) -> Signature {
        let labels = |point: &&Points| self.at(**point).has(Inputs::POD_LABELS);
        if PREEMPTOR_POINTS.iter().any(|point| labels(&point)) {
            return Signature::Incomplete;
        }
        let inputs = self.at_any(PREEMPTOR_POINTS).and(self.at_any(NODE_POINTS));
        match inputs.has(Inputs::IDENTITY) {
            true => Signature::CompleteWithoutOwnState,
            false => Signature::Complete,
        }
    }

    /// True if the pod signature must name its job, even if no task of the job holds resources.
    pub(crate) fn names_job(&self) -> bool {
        self.at_any(PREEMPTOR_POINTS).and(self.at_any(NODE_POINTS)).has(Inputs::JOB_ROW)
    }

    /// True if one more eviction never turns an answer of this point from yes to no (monotonicity).
    pub(crate) fn is_eased_by_evictions(&self, point: Points) -> bool {
        self.eased_by_evictions.has(point) || !self.at(point).has_any(CHANGED_BY_EVICTIONS)
    }
}

/// Completeness of the pod signature: whether answers about a preemptor follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signature {
    /// Answers follow from the signature.
    Complete,
    /// Answers follow from the signature for pods without plugin state
    /// ([`crate::CacheKeys::has_own_state`]).
    CompleteWithoutOwnState,
    /// Answers read more than the signature.
    Incomplete,
}

/// Points that are called for a preemptor, except [`NODE_POINTS`].
const PREEMPTOR_POINTS: &[Points] = &[
    Points::PREEMPTABLE,
    Points::RECLAIMABLE,
    Points::VICTIM_QUEUE_ORDER,
    Points::OVERUSED,
    Points::ALLOCATABLE,
    Points::PREEMPTIVE,
    Points::EVENT_HANDLERS,
];

/// Points that judge nodes for a pod. If one of them reads labels, the signature holds the whole
/// class ([`crate::Session::class_signature`]). PrePredicate reads labels where Predicate does.
const NODE_POINTS: &[Points] =
    &[Points::PRE_PREDICATE, Points::PREDICATE, Points::NODE_ORDER, Points::BATCH_NODE_ORDER];

/// Points that notify a plugin or only guard other points, and so return no answer.
const WITHOUT_ANSWER: Points =
    Points::JOB_ENQUEUED.and(Points::RESERVED_NODES).and(Points::SIMULATION);

const JOB: Inputs = Inputs::JOB_ROW.and(Inputs::JOB_COUNTS);

/// Inputs that an eviction may change: all except those listed here.
const CHANGED_BY_EVICTIONS: Inputs = Inputs::EVERYTHING.without(
    Inputs::POD_SIGNATURE
        .and(Inputs::OWN_QUEUE)
        .and(Inputs::POD_LABELS)
        .and(Inputs::NODE_OBJECT)
        .and(Inputs::JOB_REQUEST)
        .and(Inputs::JOB_TOPOLOGY)
        .and(Inputs::QUEUE_OBJECT)
        .and(Inputs::CLUSTER_TOTAL)
        .and(Inputs::CLOCK),
);

/// Inputs that a vote on victims may read and still be cached until the node, its pods or their
/// jobs change. A change of a queue object drops all cached votes.
const VOTE_BY_JOB: Inputs = Inputs::CANDIDATE_ROW
    .and(Inputs::POD_ROW)
    .and(Inputs::NODE_OBJECT)
    .and(Inputs::QUEUE_OBJECT)
    .and(Inputs::CLOCK);

const QUEUE_USAGE: Inputs = Inputs::OWN_QUEUE_USAGE.and(Inputs::CANDIDATE_QUEUE_USAGE);

const VOTE_BY_QUEUE: Inputs =
    VOTE_BY_JOB.and(QUEUE_USAGE).and(Inputs::CLUSTER_TOTAL).and(Inputs::POD_SHAPE);

/// Inputs that distinguish jobs with equal requests at admission.
const BEYOND_REQUEST: Inputs = JOB
    .and(Inputs::IDENTITY)
    .and(Inputs::JOB_TOPOLOGY)
    .and(Inputs::POD_SIGNATURE)
    .and(Inputs::POD_LABELS)
    .and(Inputs::CANDIDATE_ROW);

impl Inputs {
    /// True if an answer about a job follows from the job's row alone, even before the session
    /// begins.
    pub(crate) fn is_by_job(self) -> bool {
        self.is_within(JOB)
    }

    /// True if an answer about a job follows from the job's row and the time.
    pub(crate) fn is_by_job_and_clock(self) -> bool {
        self.is_within(JOB.and(Inputs::CLOCK))
    }

    /// True if an answer about a pod and a node follows from the pod's shape and queue, and the
    /// node's row. With `has_revision` it may also read the time and the objects of queues, because
    /// the plugin has a revision for them.
    pub(crate) fn is_by_shape_and_node(self, has_revision: bool) -> bool {
        let row = Inputs::POD_SHAPE.and(Inputs::OWN_QUEUE);
        let row = row.and(Inputs::NODE_ROW).and(Inputs::NODE_OBJECT);
        let revised = Inputs::CLOCK.and(Inputs::QUEUE_OBJECT);
        self.is_within(row) || has_revision && self.is_within(row.and(revised))
    }

    /// True if votes on victims follow from the candidates and their jobs, one job at a time.
    pub(crate) fn votes_by_job(self) -> bool {
        self.is_within(VOTE_BY_JOB)
    }

    /// True if votes on victims follow from the candidates, their jobs, the preemptor's request, its
    /// job and queue usage. Queue usage, and the job with it, are allowed with `has_keys` only: the
    /// plugin then says what it reads of them.
    pub(crate) fn votes_by_queue(self, has_keys: bool) -> bool {
        match has_keys && self.has(Inputs::OWN_QUEUE_USAGE) {
            true => self.is_within(VOTE_BY_QUEUE.and(JOB)),
            false => self.is_within(VOTE_BY_QUEUE) && (has_keys || !self.has_any(QUEUE_USAGE)),
        }
    }

    /// True if votes on victims read nothing of the preemptor but its request, and what the plugin
    /// states of its job and queue, for which it needs `has_keys`.
    pub(crate) fn votes_by_request(self, has_keys: bool) -> bool {
        let own = JOB.and(Inputs::JOB_REQUEST).and(Inputs::OWN_QUEUE_USAGE);
        let is_stated = !self.has_any(own) || self.votes_by_queue(has_keys);
        let row = Inputs::POD_ROW.and(Inputs::POD_LABELS).and(Inputs::OWN_QUEUE);
        is_stated && !self.has_any(row.and(Inputs::IDENTITY).and(Inputs::JOB_TOPOLOGY))
    }

    /// True if votes on victims do not depend on the preemptor's class or identity.
    pub(crate) fn votes_for_any_class(self) -> bool {
        !self.has_any(Inputs::POD_SHAPE.and(Inputs::POD_LABELS).and(Inputs::IDENTITY))
    }

    /// True if jobs of one queue and namespace with equal requests get the same admission answer in
    /// one state.
    pub(crate) fn admits_by_request(self) -> bool {
        !self.has_any(BEYOND_REQUEST.and(Inputs::CLOCK))
    }

    /// True if an answer about the HyperNodes of a job that holds nothing is the same for jobs of one
    /// [`crate::GangShape`] in one state.
    pub(crate) fn is_by_gang_shape(self) -> bool {
        !self.has_any(Inputs::IDENTITY.and(Inputs::JOB_ROW).and(Inputs::POD_LABELS))
    }

    /// True if placements and evictions of other jobs may change the order of two jobs.
    pub(crate) fn moves_jobs(self) -> bool {
        let usage = Inputs::OWN_QUEUE_USAGE.and(Inputs::OTHER_QUEUE_USAGE);
        self.has_any(usage.and(Inputs::CANDIDATE_QUEUE_USAGE).and(Inputs::OTHER_PODS))
    }

    /// True if the sort key of a queue in QueueOrder depends on the queue alone.
    pub(crate) fn orders_by_own_queue(self) -> bool {
        let own = Inputs::QUEUE_OBJECT.and(Inputs::CLUSTER_TOTAL).and(Inputs::OWN_QUEUE_USAGE);
        self.is_within(own)
    }
}
