//! Kubernetes scorers with their weights, as plugins run them: over the candidate nodes of a task,
//! normalized. A scorer that fails is dropped alone.
//! Specification: plugins-nodes.md 2.10, 7.2, 8.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use vc_conf::{Argument, Arguments, Warning};
use vc_filters::Pod;
use vc_filters::normalize::{Best, invalid, normalize, scaled};
use vc_framework::{
    ClassField, ColumnFill, NodeColumnRule, Normalizer, Outbox, RawScore, ScoreColumn, SessionView,
};
use vc_model::{Cluster, Node, NodeId, TaskId};

/// Largest absolute weight at which sums of weighted scores are exact.
const LARGEST_WEIGHT: u64 = 1_000_000;

/// A Kubernetes scorer as a plugin runs it.
pub(crate) struct Scorer {
    pub(crate) name: &'static str,
    pub(crate) weight: Argument<i64>,
    pub(crate) score: Score,
}

/// The input of a scorer, with its functions.
#[derive(Clone, Copy)]
pub(crate) enum Score {
    /// Scores from one class field and the object of one node at a time.
    Object {
        part: ClassField,
        /// `None` if there is nothing to score for this pod.
        raw: for<'a> fn(Pod<'a>) -> Result<Option<NodeScore<'a>>, String>,
        /// How raw scores are normalized. `None` if raw scores are final.
        best: Option<Best>,
        /// Returns a number that changes whenever raw scores may have changed while class field and
        /// node object did not.
        version: fn(Pod<'_>) -> u64,
    },
    /// Scores from the class of the pod and the amounts of one node at a time.
    Amounts {
        /// True if there is nothing to score for this pod.
        skips: fn(Pod<'_>) -> bool,
        score: for<'a> fn(Pod<'a>) -> NodeScore<'a>,
        /// Computes the scores of `score` over columns.
        fill: for<'a> fn(Pod<'a>) -> ColumnFill<'a, i64>,
    },
    /// Scores from the state of the cluster and all candidate nodes at once.
    Batch {
        /// True if there is nothing to score for this pod in the current state.
        skips: fn(Pod<'_>) -> bool,
        /// Writes one score per node.
        score: fn(&ScoredNodes<'_>, &mut [i64]) -> Result<(), String>,
    },
}

/// A function from a node to its score.
pub(crate) type NodeScore<'a> = Box<dyn Fn(&Node) -> i64 + 'a>;

/// Tells whether a scorer has written scores.
pub(crate) enum ScorerAnswer {
    Skip,
    Scores,
}

/// The candidate nodes of a pod.
pub(crate) struct ScoredNodes<'a> {
    pub(crate) pod: Pod<'a>,
    pub(crate) nodes: &'a [NodeId],
}

/// The scorers of a plugin.
pub(crate) struct Scorers {
    plugin: &'static str,
    /// The scorers with a weight other than 0. A weight may be negative.
    pub(crate) weighted: Vec<(&'static Scorer, i64)>,
    /// The first message, sorted by text, of each scorer that failed in this session.
    failures: Mutex<BTreeMap<&'static str, String>>,
}

impl Scorers {
    pub(crate) fn new(
        plugin: &'static str,
        scorers: impl Iterator<Item = &'static Scorer>,
        arguments: &Arguments,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let weighted = scorers.map(|scorer| (scorer, scorer.weight.read(arguments, warnings)));
        let weighted = weighted.filter(|(_, weight)| *weight != 0).collect();
        Self { plugin, weighted, failures: Mutex::default() }
    }

    /// Starts a session without failures.
    pub(crate) fn open(&mut self) {
        self.failures = Mutex::default();
    }

    /// Reports the failures of the session.
    pub(crate) fn close(&mut self, out: &mut Outbox) {
        let failures = self.failures.get_mut().unwrap_or_else(PoisonError::into_inner);
        out.warnings.extend(std::mem::take(failures).into_values());
    }

    /// Adds the weighted scores of the nodes to `out`.
    pub(crate) fn add(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        nodes: &[NodeId],
        out: &mut [f64],
    ) {
        let of = ScoredNodes { pod: Pod::new(view.cluster, task), nodes };
        let mut scores = vec![0; nodes.len()];
        for (scorer, weight) in &self.weighted {
            match of.run(scorer, &mut scores) {
                Ok(ScorerAnswer::Skip) => {}
                Ok(ScorerAnswer::Scores) => add(out, &scores, *weight),
                Err(error) => self.drop_scorer(view, task, scorer, &error),
            }
        }
    }

    /// Returns the scores of [`Self::add`] as columns. Returns `None` if a scorer cannot be a
    /// column.
    pub(crate) fn columns<'a>(
        &self,
        view: SessionView<'a>,
        task: TaskId,
    ) -> Option<Vec<ScoreColumn<'a>>> {
        let pod = Pod::new(view.cluster, task);
        let mut columns = Vec::with_capacity(self.weighted.len());
        for (scorer, weight) in &self.weighted {
            columns.extend(column(pod, scorer, *weight)?);
        }
        Some(columns)
    }

    /// Records that a scorer failed; it adds no score for this task. Volcano drops all scorers
    /// (deviation of section 8).
    fn drop_scorer(&self, view: SessionView<'_>, task: TaskId, scorer: &Scorer, error: &str) {
        let pod = &view.cluster.tasks[task].key;
        let text = format!("{}: {} does not score pod {pod}: {error}", self.plugin, scorer.name);
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = failures.entry(scorer.name).or_insert_with(|| text.clone());
        if text < *kept {
            *kept = text;
        }
    }
}

fn add(out: &mut [f64], scores: &[i64], weight: i64) {
    for (sum, &score) in out.iter_mut().zip(scores) {
        *sum += weight as f64 * score as f64;
    }
}

impl<'a> ScoredNodes<'a> {
    pub(crate) fn cluster(&self) -> &'a Cluster {
        self.pod.cluster
    }

    fn run(&self, scorer: &Scorer, scores: &mut [i64]) -> Result<ScorerAnswer, String> {
        let answer = match scorer.score {
            Score::Object { raw, best, .. } => self.each(raw(self.pod)?, best, scores),
            Score::Amounts { skips, .. } if skips(self.pod) => ScorerAnswer::Skip,
            Score::Amounts { score, .. } => self.each(Some(score(self.pod)), None, scores),
            Score::Batch { skips, .. } if skips(self.pod) => ScorerAnswer::Skip,
            Score::Batch { score, .. } => {
                score(self, scores)?;
                ScorerAnswer::Scores
            }
        };
        match invalid(scores) {
            Some((at, score)) if matches!(answer, ScorerAnswer::Scores) => {
                let node = &self.cluster().nodes[self.nodes[at]].name;
                Err(format!("{} returns an invalid score {score} for node {node}", scorer.name))
            }
            _ => Ok(answer),
        }
    }

    /// Scores each node by its row, and normalizes the scores if `best` is given.
    fn each(
        &self,
        score: Option<NodeScore<'_>>,
        best: Option<Best>,
        scores: &mut [i64],
    ) -> ScorerAnswer {
        let Some(score) = score else { return ScorerAnswer::Skip };
        for (filled, &node) in scores.iter_mut().zip(self.nodes) {
            *filled = score(&self.cluster().nodes[node]);
        }
        if let Some(best) = best {
            normalize(scores, best);
        }
        ScorerAnswer::Scores
    }
}

/// `None` if there is nothing to score for this pod.
fn column<'a>(
    pod: Pod<'a>,
    scorer: &'static Scorer,
    weight: i64,
) -> Option<Option<ScoreColumn<'a>>> {
    if LARGEST_WEIGHT < weight.unsigned_abs() {
        return None;
    }
    let raw = match scorer.score {
        Score::Object { part, raw, best, version } => {
            // One that fails is left to the plain evaluator, which says so.
            let Some(score) = raw(pod).ok()? else { return Some(None) };
            let view = Box::new(move |node: NodeId| score(&pod.cluster.nodes[node]));
            let rule =
                NodeColumnRule { name: scorer.name, part, version: version(pod), value: view };
            RawScore::Object { rule, normal: best.map(normal) }
        }
        Score::Amounts { skips, fill, .. } if !skips(pod) => RawScore::Amounts(fill(pod)),
        Score::Batch { skips, .. } if !skips(pod) => {
            RawScore::Batch(Box::new(move |nodes, scores| {
                ScoredNodes { pod, nodes }.run(scorer, scores).is_ok()
            }))
        }
        Score::Amounts { .. } | Score::Batch { .. } => return Some(None),
    };
    Some(Some(ScoreColumn { weight, raw }))
}

fn normal(best: Best) -> Normalizer {
    match best {
        Best::Highest => |raw, highest| scaled(raw, highest, Best::Highest),
        Best::Lowest => |raw, highest| scaled(raw, highest, Best::Lowest),
    }
}
