//! Plugin `nodeorder`: runs the Kubernetes scorers with their weights over the candidate nodes of a
//! task.
//! Specification: plugins-nodes.md 7, 8.

use vc_conf::{Argument, Arguments, OneOf, PluginOption, Warning};
use vc_filters::balanced_allocation::{self, BalanceMode, NodeAmounts, UsedShares, score_each};
use vc_filters::normalize::Best;
use vc_filters::resource_allocation::{
    ScorerAmounts, least, least_allocated, most, most_allocated,
};
use vc_filters::{
    Pod, image_locality, inter_pod_affinity, node_affinity, pod_topology_spread, taint_toleration,
};
use vc_framework::{
    ClassField, ColumnFill, Depends, DimColumns, Inputs, Outbox, Plugin, PluginEntry, Points,
    Records, ScoreColumn, SessionView, VectorizedPlugin,
};
use vc_model::{NodeId, NonZero, TaskId};
use vc_resource::Dim;

use crate::scorers::{NodeScore, Score, Scorer, Scorers};

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("nodeorder", build).arguments(&[
    &LEAST.weight,
    &MOST.weight,
    &BALANCED.weight,
    &MODE,
    &NODE_AFFINITY.weight,
    &POD_AFFINITY.weight,
    &TAINT_TOLERATION.weight,
    &TOPOLOGY_SPREAD.weight,
    &IMAGE_LOCALITY.weight,
]);

const MODE: Argument<OneOf> = Argument::new(
    "balancedresource.mode",
    OneOf { words: &["delta", "absolute"], is_strict: false },
    "`delta` as in Kubernetes 1.36, `absolute` as before",
);

const LEAST: Scorer = Scorer {
    name: "LeastAllocated",
    weight: Argument::new("leastrequested.weight", 1, "LeastAllocated"),
    score: Score::Amounts {
        skips: |_| false,
        score: |pod| Box::new(|node| least_allocated(pod.class, node)),
        fill: |pod| allocation(pod, least),
    },
};
const MOST: Scorer = Scorer {
    name: "MostAllocated",
    weight: Argument::new("mostrequested.weight", 0, "MostAllocated"),
    score: Score::Amounts {
        skips: |_| false,
        score: |pod| Box::new(|node| most_allocated(pod.class, node)),
        fill: |pod| allocation(pod, most),
    },
};
/// BalancedAllocation in mode `delta`.
const BALANCED: Scorer = Scorer {
    name: "BalancedAllocation",
    weight: Argument::new("balancedresource.weight", 1, "BalancedAllocation"),
    score: Score::Amounts {
        skips: skips_balance,
        score: |pod| balanced(pod, BalanceMode::Delta),
        fill: |pod| balance(pod, BalanceMode::Delta),
    },
};
/// BalancedAllocation in mode `absolute`.
const BALANCED_ABSOLUTE: Scorer = Scorer {
    score: Score::Amounts {
        skips: skips_balance,
        score: |pod| balanced(pod, BalanceMode::Absolute),
        fill: |pod| balance(pod, BalanceMode::Absolute),
    },
    ..BALANCED
};
const NODE_AFFINITY: Scorer = Scorer {
    name: "NodeAffinity",
    weight: Argument::new("nodeaffinity.weight", 2, "preferred node affinity"),
    score: Score::Object {
        part: ClassField::PreferredNodes,
        raw: preferred_nodes,
        best: Some(Best::Highest),
        version: |_| 0,
    },
};
const TAINT_TOLERATION: Scorer = Scorer {
    name: "TaintToleration",
    weight: Argument::new("tainttoleration.weight", 3, "taints PreferNoSchedule"),
    score: Score::Object {
        part: ClassField::Tolerations,
        raw: |pod| Ok(Some(Box::new(|node| taint_toleration::score(pod.class, node)))),
        best: Some(Best::Lowest),
        version: |_| 0,
    },
};
const POD_AFFINITY: Scorer = Scorer {
    name: "InterPodAffinity",
    weight: Argument::new("podaffinity.weight", 2, "preferred pod affinity"),
    score: Score::Batch {
        skips: inter_pod_affinity::skips_score,
        score: |of, scores| {
            inter_pod_affinity::score(of.pod, of.nodes, scores);
            Ok(())
        },
    },
};
const TOPOLOGY_SPREAD: Scorer = Scorer {
    name: "PodTopologySpread",
    weight: Argument::new("podtopologyspread.weight", 2, "spread with ScheduleAnyway"),
    score: Score::Batch {
        skips: pod_topology_spread::skips_score,
        score: |of, scores| pod_topology_spread::score(of.pod, of.nodes, scores),
    },
};
const IMAGE_LOCALITY: Scorer = Scorer {
    name: "ImageLocality",
    weight: Argument::new("imagelocality.weight", 1, "images on the node"),
    score: Score::Object {
        part: ClassField::Images,
        raw: |pod| Ok(Some(Box::new(image_locality::scorer(pod)))),
        best: None,
        version: image_locality::version,
    },
};

/// Returns all scorers, with BalancedAllocation in the given mode.
fn all(mode: BalanceMode) -> [&'static Scorer; 8] {
    let balanced = match mode {
        BalanceMode::Delta => &BALANCED,
        BalanceMode::Absolute => &BALANCED_ABSOLUTE,
    };
    [
        &LEAST,
        &MOST,
        balanced,
        &NODE_AFFINITY,
        &POD_AFFINITY,
        &TAINT_TOLERATION,
        &TOPOLOGY_SPREAD,
        &IMAGE_LOCALITY,
    ]
}

struct NodeOrder(Scorers);

fn build(option: &PluginOption, warnings: &mut Vec<Warning>) -> Box<dyn Plugin> {
    Box::new(NodeOrder(scorers(&option.arguments, warnings)))
}

fn scorers(arguments: &Arguments, warnings: &mut Vec<Warning>) -> Scorers {
    let mode = match MODE.read(arguments, warnings) {
        "absolute" => BalanceMode::Absolute,
        _ => BalanceMode::Delta,
    };
    Scorers::new(ENTRY.name(), all(mode).into_iter(), arguments, warnings)
}

/// The state that each extension point reads.
const READS: &[(Points, Inputs)] = &[(
    Points::BATCH_NODE_ORDER,
    Inputs::POD_SHAPE
        .and(Inputs::POD_LABELS)
        .and(Inputs::NODE_ROW)
        .and(Inputs::NODE_OBJECT)
        .and(Inputs::OTHER_PODS)
        .and(Inputs::OTHER_OBJECTS),
)];

impl Plugin for NodeOrder {
    fn points(&self) -> Points {
        match self.0.weighted.is_empty() {
            true => Points::NONE,
            false => Points::BATCH_NODE_ORDER,
        }
    }

    fn depends(&self) -> Depends {
        Depends::of(READS)
    }

    fn as_vectorized(&self) -> Option<&dyn VectorizedPlugin> {
        Some(self)
    }

    fn open(&mut self, _view: SessionView<'_>) {
        self.0.open();
    }

    fn close(&mut self, _view: SessionView<'_>, _records: &Records, out: &mut Outbox) {
        self.0.close(out);
    }

    fn batch_node_order(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        nodes: &[NodeId],
        out: &mut [f64],
    ) -> Result<(), String> {
        self.0.add(view, task, nodes, out);
        Ok(())
    }
}

impl VectorizedPlugin for NodeOrder {
    fn columns<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> Option<Vec<ScoreColumn<'a>>> {
        self.0.columns(view, task)
    }
}

fn skips_balance(pod: Pod<'_>) -> bool {
    balanced_allocation::skips_score(pod.class, pod.cluster.dims.get(balanced_allocation::GPU))
}

fn balanced(pod: Pod<'_>, mode: BalanceMode) -> NodeScore<'_> {
    let gpu = pod.cluster.dims.get(balanced_allocation::GPU);
    Box::new(move |node| balanced_allocation::score(pod.class, node, gpu, mode))
}

/// Returns [`least_allocated`] or [`most_allocated`] as a function over columns.
fn allocation<'a>(
    pod: Pod<'a>,
    score: impl Fn(NonZero, ScorerAmounts) -> i64 + 'a,
) -> ColumnFill<'a, i64> {
    let wanted = pod.class.non_zero;
    Box::new(move |columns, range, scores| {
        let [cpu, memory] =
            [Dim::CPU, Dim::MEMORY].map(|dim| &columns.of(dim).allocatable[range.clone()]);
        let held_cpu = &columns.held_cpu_milli[range.clone()];
        let held = held_cpu.iter().zip(&columns.held_memory_bytes[range]);
        let rooms = held.zip(cpu.iter().zip(memory)).map(|(held, offered)| {
            let held = NonZero { cpu_milli: *held.0, memory_bytes: *held.1 };
            ScorerAmounts { cpu_milli: *offered.0, memory_bytes: *offered.1, held }
        });
        scores.iter_mut().zip(rooms).for_each(|(filled, room)| *filled = score(wanted, room));
    })
}

/// Returns [`balanced`] as a function over columns.
fn balance(pod: Pod<'_>, mode: BalanceMode) -> ColumnFill<'_, i64> {
    let gpu = pod.cluster.dims.get(balanced_allocation::GPU);
    let counted: Vec<Dim> = balanced_allocation::counted(pod.class, gpu).collect();
    Box::new(move |columns, range, scores| {
        if let [first, second] = *counted {
            let amounts = |dim: Dim| {
                let requested = pod.class.request.get(dim);
                let DimColumns { allocatable, requested: held, .. } = columns.of(dim);
                let (allocatable, held) = (&allocatable[range.clone()], &held[range.clone()]);
                NodeAmounts { allocatable, held, requested }
            };
            return score_each([amounts(first), amounts(second)], mode, scores);
        }
        for (filled, at) in scores.iter_mut().zip(range) {
            let mut shares = UsedShares::default();
            for &dim in &counted {
                let amounts = columns.of(dim);
                let requested = pod.class.request.get(dim);
                shares.add(amounts.allocatable[at], amounts.requested[at], requested);
            }
            *filled = shares.score(mode);
        }
    })
}

fn preferred_nodes(pod: Pod<'_>) -> Result<Option<NodeScore<'_>>, String> {
    if node_affinity::skips_score(pod.class) {
        return Ok(None);
    }
    node_affinity::pre_score(pod.class)?;
    Ok(Some(Box::new(|node| node_affinity::score(pod.class, node))))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn weights(pairs: &[(&'static str, Value)]) -> (Vec<(&'static str, i64)>, usize) {
        let mut warnings = Vec::new();
        let scorers = scorers(&pairs.iter().cloned().collect(), &mut warnings);
        let named = scorers.weighted.iter().map(|(scorer, weight)| (scorer.name, *weight));
        (named.collect(), warnings.len())
    }

    #[test]
    fn nodes_89_defaults_are_all_but_most_allocated() {
        let defaults = [
            ("LeastAllocated", 1),
            ("BalancedAllocation", 1),
            ("NodeAffinity", 2),
            ("InterPodAffinity", 2),
            ("TaintToleration", 3),
            ("PodTopologySpread", 2),
            ("ImageLocality", 1),
        ];
        assert_eq!(weights(&[]), (defaults.to_vec(), 0));
    }

    #[test]
    fn nodes_89_without_weights_there_is_no_scorer() {
        let built = all(BalanceMode::Delta).map(|scorer| scorer.weight.key).into_iter();
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
            let mode = MODE.read(&[(MODE.key, value)].into_iter().collect(), &mut warnings);
            (mode, warnings.len())
        };
        assert_eq!(read(json!("absolute")), ("absolute", 0));
        assert_eq!(read(json!("delta")), ("delta", 0));
        assert_eq!(read(json!("both")), ("delta", 1));
        assert_eq!(MODE.read(&Arguments::default(), &mut Vec::new()), "delta");
    }
}
