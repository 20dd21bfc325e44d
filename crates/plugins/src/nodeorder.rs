//! `nodeorder`: the Kubernetes scorers with their weights, over the candidate nodes of a task.
//! Specification: plugins-nodes.md 7.1-7.6, 8.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use vc_conf::{Arguments, PluginOption, Warning};
use vc_filters::balanced_allocation::{self, Mode};
use vc_filters::normalize::{Best, invalid, normalize};
use vc_filters::resource_allocation::{least_allocated, most_allocated};
use vc_filters::{node_affinity, taint_toleration};
use vc_framework::{Ask, Outbox, Plugin, PluginEntry, Points, Records};
use vc_model::{Class, Cluster, Node, NodeId, TaskId};

pub(crate) const ENTRY: PluginEntry = PluginEntry { name: "nodeorder", build };

/// Weights of scorers that have nothing to say about a pod without pod affinity, spread and images:
/// they contribute 0. A value of the wrong type is still reported.
const WITHOUT_EFFECT: &[(&str, i64)] =
    &[("podaffinity.weight", 2), ("podtopologyspread.weight", 2), ("imagelocality.weight", 1)];

const MODE: &str = "balancedresource.mode";

/// A Kubernetes scorer as this plugin runs it.
struct Scorer {
    name: &'static str,
    weight: (&'static str, i64),
    score: fn(&Candidates<'_>, &mut [i64]) -> Result<Answer, String>,
}

/// What a scorer did with the scores it was given to fill.
enum Answer {
    Skip,
    Scores,
}

const SCORERS: &[Scorer] = &[
    Scorer {
        name: "LeastAllocated",
        weight: ("leastrequested.weight", 1),
        score: |of, scores| of.each(scores, |node| least_allocated(of.class, node)),
    },
    Scorer {
        name: "MostAllocated",
        weight: ("mostrequested.weight", 0),
        score: |of, scores| of.each(scores, |node| most_allocated(of.class, node)),
    },
    Scorer {
        name: "BalancedAllocation",
        weight: ("balancedresource.weight", 1),
        score: |of, scores| of.balanced(scores),
    },
    Scorer {
        name: "NodeAffinity",
        weight: ("nodeaffinity.weight", 2),
        score: |of, scores| of.node_affinity(scores),
    },
    Scorer {
        name: "TaintToleration",
        weight: ("tainttoleration.weight", 3),
        score: |of, scores| {
            of.each(scores, |node| taint_toleration::score(of.class, node))?;
            normalize(scores, Best::Lowest);
            Ok(Answer::Scores)
        },
    },
];

struct NodeOrder {
    /// Those with a weight, which may be negative.
    scorers: Vec<(&'static Scorer, i64)>,
    mode: Mode,
    /// Per scorer that failed in this session the first message by text, for the report.
    failures: Mutex<BTreeMap<&'static str, String>>,
}

fn build(option: &PluginOption, warnings: &mut Vec<Warning>) -> Box<dyn Plugin> {
    for (key, default) in WITHOUT_EFFECT {
        option.arguments.int(key, *default, warnings);
    }
    Box::new(NodeOrder {
        scorers: scorers(&option.arguments, warnings),
        mode: mode(&option.arguments, warnings),
        failures: Mutex::default(),
    })
}

fn scorers(arguments: &Arguments, warnings: &mut Vec<Warning>) -> Vec<(&'static Scorer, i64)> {
    let weighted = SCORERS.iter().map(|scorer| {
        let (key, default) = scorer.weight;
        (scorer, arguments.int(key, default, warnings))
    });
    weighted.filter(|(_, weight)| *weight != 0).collect()
}

fn mode(arguments: &Arguments, warnings: &mut Vec<Warning>) -> Mode {
    match arguments.string(MODE, "delta", warnings).as_str() {
        "delta" => Mode::Delta,
        "absolute" => Mode::Absolute,
        other => {
            let message = format!("unknown value {other}");
            let remedy = "write one of delta, absolute; until then delta is in force";
            warnings.push(arguments.warning(MODE, &message, remedy));
            Mode::Delta
        }
    }
}

impl Plugin for NodeOrder {
    fn points(&self) -> Points {
        match self.scorers.is_empty() {
            true => Points::NONE,
            false => Points::BATCH_NODE_ORDER,
        }
    }

    fn open(&mut self, _ask: Ask<'_>) {
        self.failures = Mutex::default();
    }

    fn close(&mut self, _ask: Ask<'_>, _records: &Records, out: &mut Outbox) {
        let failures = self.failures.get_mut().unwrap_or_else(PoisonError::into_inner);
        out.warnings.extend(std::mem::take(failures).into_values());
    }

    fn batch_node_order(
        &self,
        ask: Ask<'_>,
        task: TaskId,
        nodes: &[NodeId],
        out: &mut [f64],
    ) -> Result<(), String> {
        let cluster = ask.cluster;
        let of = Candidates { cluster, class: cluster.class(task), nodes, mode: self.mode };
        let mut scores = vec![0; nodes.len()];
        for (scorer, weight) in &self.scorers {
            match of.run(scorer, &mut scores) {
                Ok(Answer::Skip) => {}
                Ok(Answer::Scores) => add(out, &scores, *weight),
                Err(error) => self.drop_scorer(ask, task, scorer, &error),
            }
        }
        Ok(())
    }
}

impl NodeOrder {
    /// A scorer that fails counts nothing for this task; Volcano drops all of them (deviation of
    /// section 8).
    fn drop_scorer(&self, ask: Ask<'_>, task: TaskId, scorer: &Scorer, error: &str) {
        let pod = &ask.cluster.tasks[task].key;
        let text = format!("nodeorder: {} does not score pod {pod}: {error}", scorer.name);
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

/// The nodes that a task may use.
struct Candidates<'a> {
    cluster: &'a Cluster,
    class: &'a Class,
    nodes: &'a [NodeId],
    mode: Mode,
}

impl Candidates<'_> {
    fn run(&self, scorer: &Scorer, scores: &mut [i64]) -> Result<Answer, String> {
        let answer = (scorer.score)(self, scores)?;
        match invalid(scores) {
            Some((at, score)) if matches!(answer, Answer::Scores) => {
                let node = &self.cluster.nodes[self.nodes[at]].name;
                Err(format!("{} returns an invalid score {score} for node {node}", scorer.name))
            }
            _ => Ok(answer),
        }
    }

    fn each(&self, scores: &mut [i64], score: impl Fn(&Node) -> i64) -> Result<Answer, String> {
        for (filled, &node) in scores.iter_mut().zip(self.nodes) {
            *filled = score(&self.cluster.nodes[node]);
        }
        Ok(Answer::Scores)
    }

    fn balanced(&self, scores: &mut [i64]) -> Result<Answer, String> {
        let gpu = self.cluster.dims.get(balanced_allocation::GPU);
        if balanced_allocation::skips_score(self.class, gpu) {
            return Ok(Answer::Skip);
        }
        self.each(scores, |node| balanced_allocation::score(self.class, node, gpu, self.mode))
    }

    fn node_affinity(&self, scores: &mut [i64]) -> Result<Answer, String> {
        if node_affinity::skips_score(self.class) {
            return Ok(Answer::Skip);
        }
        node_affinity::pre_score(self.class)?;
        self.each(scores, |node| node_affinity::score(self.class, node))?;
        normalize(scores, Best::Highest);
        Ok(Answer::Scores)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn weights(pairs: &[(&'static str, Value)]) -> (Vec<(&'static str, i64)>, usize) {
        let mut warnings = Vec::new();
        let scorers = scorers(&pairs.iter().cloned().collect(), &mut warnings);
        let named = scorers.iter().map(|(scorer, weight)| (scorer.name, *weight));
        (named.collect(), warnings.len())
    }

    #[test]
    fn nodes_89_defaults_are_all_but_most_allocated() {
        let defaults = [
            ("LeastAllocated", 1),
            ("BalancedAllocation", 1),
            ("NodeAffinity", 2),
            ("TaintToleration", 3),
        ];
        assert_eq!(weights(&[]), (defaults.to_vec(), 0));
    }

    #[test]
    fn nodes_89_without_weights_there_is_no_scorer() {
        let built = SCORERS.iter().map(|scorer| scorer.weight.0);
        let all: Vec<_> = built.map(|key| (key, json!(0))).collect();
        assert_eq!(weights(&all), (vec![], 0));
        let arguments = all.into_iter().collect();
        let option = PluginOption { arguments, ..PluginOption::default() };
        assert_eq!(build(&option, &mut Vec::new()).points(), Points::NONE);
    }

    #[test]
    fn nodes_24_a_weight_as_string_keeps_the_default_and_warns() {
        let (scorers, n_warnings) = weights(&[("leastrequested.weight", json!("5"))]);
        assert_eq!((scorers[0], n_warnings), (("LeastAllocated", 1), 1));
        let option = PluginOption {
            arguments: [("imagelocality.weight", json!("5"))].into_iter().collect(),
            ..PluginOption::default()
        };
        let mut warnings = Vec::new();
        build(&option, &mut warnings);
        assert_eq!(warnings.len(), 1);
    }

    #[test]
    fn the_mode_is_one_of_two_words() {
        let read = |value: Value| {
            let mut warnings = Vec::new();
            let mode = mode(&[(MODE, value)].into_iter().collect(), &mut warnings);
            (mode, warnings.len())
        };
        assert_eq!(read(json!("absolute")), (Mode::Absolute, 0));
        assert_eq!(read(json!("delta")), (Mode::Delta, 0));
        assert_eq!(read(json!("both")), (Mode::Delta, 1));
        assert_eq!(mode(&Arguments::default(), &mut Vec::new()), Mode::Delta);
    }
}
