//! Questions, and the documents that answer them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vc_objects::what_if::WhatIfTexts;

use crate::cluster::{
    HyperNodeJson, ListJson, NodeJson, NodeLabelJson, OneJson, QueueJson, SummaryJson,
    WaitingJobJson,
};
use crate::explanation::{API_VERSION, AsOfJson, ExplanationJson};
use crate::runs::RunJson;
use crate::start::StartJson;
use crate::timeline::{AskedTimeline, CycleJson, TimelineJson};
use crate::what_if::WhatIfResultJson;

/// Explanations of jobs that wait.
pub type ExplanationListJson = ListJson<ExplanationJson>;

/// Items of a list if nobody says how many.
const PAGE: usize = 500;
/// Items of a list at most.
pub(crate) const LONGEST_PAGE: usize = 5_000;

/// Which part of a list is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRange {
    /// Items that are left out at the beginning.
    pub offset: usize,
    /// Items at most.
    pub limit: usize,
}

impl Default for PageRange {
    /// The first page.
    fn default() -> Self {
        Self { offset: 0, limit: PAGE }
    }
}

impl PageRange {
    /// Returns this part of a list.
    pub fn of<T>(self, all: &[T]) -> &[T] {
        let from = self.offset.min(all.len());
        let to = from.saturating_add(self.limit.min(LONGEST_PAGE)).min(all.len());
        &all[from..to]
    }
}

/// What an explanation is wanted of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AskedJob {
    /// Namespace.
    pub namespace: String,
    /// Name of a PodGroup, of its controller, or of a pod.
    pub name: String,
    /// What the name may stand for. `None`: anything.
    pub kind: Option<String>,
    /// Uid of the controller.
    pub controller_uid: Option<String>,
    /// True if blocking sets, remedies, and why nobody was evicted are not wanted.
    pub quick: bool,
    /// True if it is also wanted when the job starts. With `quick` no remedies are looked for.
    pub when: bool,
}

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Why one job waits.
    Explanation(AskedJob),
    /// Which jobs wait, and why.
    Explanations {
        /// Only jobs of this namespace.
        namespace: Option<String>,
        /// Only jobs of this queue.
        queue: Option<String>,
        /// Only jobs with this code.
        code: Option<String>,
        /// Part of the list.
        range: PageRange,
    },
    /// Which jobs hold nodes, and until when.
    Runs {
        /// Only jobs of this namespace.
        namespace: Option<String>,
        /// Only jobs of this queue.
        queue: Option<String>,
        /// Part of the list.
        range: PageRange,
    },
    /// All queues.
    Queues,
    /// One queue.
    Queue {
        /// Its name.
        name: String,
    },
    /// The jobs that wait in a queue.
    Line {
        /// Name of the queue.
        queue: String,
        /// Part of the list.
        range: PageRange,
    },
    /// All nodes.
    Nodes {
        /// Part of the list.
        range: PageRange,
        /// Key of the label that each node is wanted with.
        label: Option<String>,
    },
    /// The labels that nodes have.
    NodeLabels,
    /// One node.
    Node {
        /// Its name.
        name: String,
    },
    /// All HyperNodes.
    HyperNodes {
        /// Part of the list.
        range: PageRange,
    },
    /// Sums over the cluster.
    Summary,
    /// What happened lately.
    Timeline(AskedTimeline),
    /// The last cycles.
    Cycles {
        /// Number of cycles at most.
        last: usize,
    },
    /// What would happen with changes.
    WhatIf(Box<WhatIfTexts>),
    /// What the scheduler was given lately.
    Bundle {
        /// Cycles at least. `None`: all that are kept.
        n_cycles: Option<u64>,
    },
}

/// A file with what the scheduler was given lately.
#[derive(Clone, Debug, PartialEq)]
pub struct BundleFile {
    /// Number of the last cycle in it.
    pub cycle: u64,
    /// Its contents.
    pub contents: Vec<u8>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Document {
    /// Why one job waits.
    Explanation(Box<ExplanationJson>),
    /// Which jobs wait, and why.
    Explanations(ListJson<ExplanationJson>),
    /// All queues, each behind its parent.
    Queues(ListJson<QueueJson>),
    /// One queue.
    Queue(OneJson<QueueJson>),
    /// The jobs that wait in a queue, the first one first.
    Line(ListJson<WaitingJobJson>),
    /// The jobs that hold nodes, those that end first first.
    Runs(ListJson<RunJson>),
    /// All nodes.
    Nodes(ListJson<NodeJson>),
    /// The labels that nodes have, by key.
    NodeLabels(ListJson<NodeLabelJson>),
    /// One node.
    Node(OneJson<NodeJson>),
    /// All HyperNodes, each behind the one that it is a member of.
    HyperNodes(ListJson<HyperNodeJson>),
    /// Sums over the cluster.
    Summary(OneJson<SummaryJson>),
    /// What happened lately.
    Timeline(OneJson<TimelineJson>),
    /// The last cycles, the last one first.
    Cycles(ListJson<CycleJson>),
    /// What would happen with changes.
    WhatIf(Box<WhatIfResultJson>),
    /// What the scheduler was given lately. It is no JSON.
    #[serde(skip)]
    Bundle(Box<BundleFile>),
}

impl Document {
    /// True if something was left out because the budget of the question was spent.
    pub(crate) fn is_incomplete(&self) -> bool {
        match self {
            Self::Explanation(one) => {
                one.blocking.as_ref().is_some_and(|it| !it.complete)
                    || one.start.as_ref().is_some_and(StartJson::is_incomplete)
            }
            Self::WhatIf(result) => !result.complete,
            _ => false,
        }
    }
}

impl<T> ListJson<T> {
    /// Returns a list of all items.
    pub fn new(kind: &str, as_of: AsOfJson, items: Vec<T>) -> Self {
        let (api_version, kind) = (API_VERSION.to_owned(), kind.to_owned());
        Self { api_version, kind, as_of, total: items.len(), items }
    }
}

impl<T> OneJson<T> {
    /// Returns one thing as a document.
    pub fn new(kind: &str, as_of: AsOfJson, content: T) -> Self {
        Self { api_version: API_VERSION.to_owned(), kind: kind.to_owned(), as_of, content }
    }
}
