//! Kubernetes scorers with their weights as two plugins run them: over the candidate nodes of a
//! task, normalised, and each by itself where it fails. Specification: plugins-nodes.md 2.10, 7.2,
//! 8.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use vc_conf::{Arguments, Warning};
use vc_filters::Pod;
use vc_filters::normalize::{Best, invalid, normalize, scaled};
use vc_framework::{Ask, Column, Fill, Normal, ObjectRule, Outbox, Part, Raw};
use vc_model::{Cluster, Node, NodeId, TaskId};

/// Beyond it, sums of weighted scores might not be exact.
const LARGEST_WEIGHT: u64 = 1_000_000;

/// A Kubernetes scorer as a plugin runs it.
pub(crate) struct Scorer {
    pub(crate) name: &'static str,
    /// Argument and default.
    pub(crate) weight: (&'static str, i64),
    pub(crate) score: Score,
}

/// How a scorer comes to its scores.
#[derive(Clone, Copy)]
pub(crate) enum Score {
    /// By a part of the class and the object of one node at a time.
    Object {
        part: Part,
        /// `None`: it has none.
        raw: for<'a> fn(Pod<'a>) -> Result<Option<NodeScore<'a>>, String>,
        /// `None`: raw scores are scores.
        best: Option<Best>,
        /// A number that is another one when raw scores may have changed without that part or the
        /// object of a node.
        version: fn(Pod<'_>) -> u64,
    },
    /// By the class of the pod and the amounts of one node at a time.
    Amounts {
        /// There is nothing to score for this pod.
        skips: fn(Pod<'_>) -> bool,
        score: for<'a> fn(Pod<'a>) -> NodeScore<'a>,
        /// The same scores over columns.
        fill: for<'a> fn(Pod<'a>) -> Fill<'a, i64>,
    },
    /// By what is in the cluster and all candidates at once.
    Batch {
        /// There is nothing to score for this pod now.
        skips: fn(Pod<'_>) -> bool,
        /// Fills the scores.
        score: fn(&Candidates<'_>, &mut [i64]) -> Result<(), String>,
    },
}

/// The score of a node.
pub(crate) type NodeScore<'a> = Box<dyn Fn(&Node) -> i64 + 'a>;

/// What a scorer did with the scores it was given to fill.
pub(crate) enum Answer {
    Skip,
    Scores,
}

/// The nodes that a task may use.
pub(crate) struct Candidates<'a> {
    pub(crate) pod: Pod<'a>,
    pub(crate) nodes: &'a [NodeId],
}

/// The scorers of a plugin.
pub(crate) struct Scorers {
    plugin: &'static str,
    /// Those with a weight, which may be negative.
    pub(crate) weighted: Vec<(&'static Scorer, i64)>,
    /// Per scorer that failed in this session the first message by text, for the report.
    failures: Mutex<BTreeMap<&'static str, String>>,
}

impl Scorers {
    pub(crate) fn new(
        plugin: &'static str,
        scorers: impl Iterator<Item = &'static Scorer>,
        arguments: &Arguments,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let weighted = scorers.map(|scorer| {
            let (key, default) = scorer.weight;
            (scorer, arguments.int(key, default, warnings))
        });
        let weighted = weighted.filter(|(_, weight)| *weight != 0).collect();
        Self { plugin, weighted, failures: Mutex::default() }
    }

    /// A session begins.
    pub(crate) fn open(&mut self) {
        self.failures = Mutex::default();
    }

    /// A session ends.
    pub(crate) fn close(&mut self, out: &mut Outbox) {
        let failures = self.failures.get_mut().unwrap_or_else(PoisonError::into_inner);
        out.warnings.extend(std::mem::take(failures).into_values());
    }

    /// Adds the weighted scores of the nodes.
    pub(crate) fn add(&self, ask: Ask<'_>, task: TaskId, nodes: &[NodeId], out: &mut [f64]) {
        let of = Candidates { pod: Pod::new(ask.cluster, task), nodes };
        let mut scores = vec![0; nodes.len()];
        for (scorer, weight) in &self.weighted {
            match of.run(scorer, &mut scores) {
                Ok(Answer::Skip) => {}
                Ok(Answer::Scores) => add(out, &scores, *weight),
                Err(error) => self.drop_scorer(ask, task, scorer, &error),
            }
        }
    }

    /// The same as columns. `None`: a scorer is not of that form.
    pub(crate) fn columns<'a>(&self, ask: Ask<'a>, task: TaskId) -> Option<Vec<Column<'a>>> {
        let pod = Pod::new(ask.cluster, task);
        let mut columns = Vec::with_capacity(self.weighted.len());
        for (scorer, weight) in &self.weighted {
            columns.extend(column(pod, scorer, *weight)?);
        }
        Some(columns)
    }

    /// A scorer that fails counts nothing for this task; Volcano drops all of them (deviation of
    /// section 8).
    fn drop_scorer(&self, ask: Ask<'_>, task: TaskId, scorer: &Scorer, error: &str) {
        let pod = &ask.cluster.tasks[task].key;
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

impl<'a> Candidates<'a> {
    pub(crate) fn cluster(&self) -> &'a Cluster {
        self.pod.cluster
    }

    fn run(&self, scorer: &Scorer, scores: &mut [i64]) -> Result<Answer, String> {
        let answer = match scorer.score {
            Score::Object { raw, best, .. } => self.each(raw(self.pod)?, best, scores),
            Score::Amounts { skips, .. } if skips(self.pod) => Answer::Skip,
            Score::Amounts { score, .. } => self.each(Some(score(self.pod)), None, scores),
            Score::Batch { skips, .. } if skips(self.pod) => Answer::Skip,
            Score::Batch { score, .. } => {
                score(self, scores)?;
                Answer::Scores
            }
        };
        match invalid(scores) {
            Some((at, score)) if matches!(answer, Answer::Scores) => {
                let node = &self.cluster().nodes[self.nodes[at]].name;
                Err(format!("{} returns an invalid score {score} for node {node}", scorer.name))
            }
            _ => Ok(answer),
        }
    }

    /// Scores each node by its row.
    fn each(&self, score: Option<NodeScore<'_>>, best: Option<Best>, scores: &mut [i64]) -> Answer {
        let Some(score) = score else { return Answer::Skip };
        for (filled, &node) in scores.iter_mut().zip(self.nodes) {
            *filled = score(&self.cluster().nodes[node]);
        }
        if let Some(best) = best {
            normalize(scores, best);
        }
        Answer::Scores
    }
}

/// `None`: it has none. The outer `None`: it is not of that form.
fn column<'a>(pod: Pod<'a>, scorer: &'static Scorer, weight: i64) -> Option<Option<Column<'a>>> {
    if LARGEST_WEIGHT < weight.unsigned_abs() {
        return None;
    }
    let raw = match scorer.score {
        Score::Object { part, raw, best, version } => {
            // One that fails is left to the plain evaluator, which says so.
            let Some(score) = raw(pod).ok()? else { return Some(None) };
            let ask = Box::new(move |node: NodeId| score(&pod.cluster.nodes[node]));
            let rule = ObjectRule { name: scorer.name, part, version: version(pod), ask };
            Raw::Object { rule, normal: best.map(normal) }
        }
        Score::Amounts { skips, fill, .. } if !skips(pod) => Raw::Amounts(fill(pod)),
        Score::Batch { skips, .. } if !skips(pod) => Raw::Batch(Box::new(move |nodes, scores| {
            Candidates { pod, nodes }.run(scorer, scores).is_ok()
        })),
        Score::Amounts { .. } | Score::Batch { .. } => return Some(None),
    };
    Some(Some(Column { weight, raw }))
}

fn normal(best: Best) -> Normal {
    match best {
        Best::Highest => |raw, highest| scaled(raw, highest, Best::Highest),
        Best::Lowest => |raw, highest| scaled(raw, highest, Best::Lowest),
    }
}
