//! Kubernetes scorers with their weights as two plugins run them: over the candidate nodes of a
//! task, normalised, and each by itself where it fails. Specification: plugins-nodes.md 2.10, 7.2,
//! 8.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use vc_conf::{Arguments, Warning};
use vc_filters::Pod;
use vc_filters::normalize::invalid;
use vc_framework::{Ask, Outbox};
use vc_model::{Cluster, Node, NodeId, TaskId};

/// A Kubernetes scorer as a plugin runs it.
pub(crate) struct Scorer {
    pub(crate) name: &'static str,
    /// Argument and default.
    pub(crate) weight: (&'static str, i64),
    /// Fills the scores of the candidates, or says that it has none.
    pub(crate) score: fn(&Candidates<'_>, &mut [i64]) -> Result<Answer, String>,
}

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
        let answer = (scorer.score)(self, scores)?;
        match invalid(scores) {
            Some((at, score)) if matches!(answer, Answer::Scores) => {
                let node = &self.cluster().nodes[self.nodes[at]].name;
                Err(format!("{} returns an invalid score {score} for node {node}", scorer.name))
            }
            _ => Ok(answer),
        }
    }

    /// Scores each node by its row.
    pub(crate) fn each(
        &self,
        scores: &mut [i64],
        score: impl Fn(&Node) -> i64,
    ) -> Result<Answer, String> {
        for (filled, &node) in scores.iter_mut().zip(self.nodes) {
            *filled = score(&self.cluster().nodes[node]);
        }
        Ok(Answer::Scores)
    }
}
