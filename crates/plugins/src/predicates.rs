//! `predicates`: the number of pods of a node and the Kubernetes filters, as PrePredicate and
//! Predicate. Specification: plugins-nodes.md 2.1-2.5, 4.10.

use std::ops::ControlFlow;

use vc_conf::{Arguments, PluginOption, Warning};
use vc_filters::{node_affinity, node_ports, node_unschedulable, taint_toleration};
use vc_framework::{Ask, Plugin, PluginEntry, Points};
use vc_model::{Class, Code, Finding, Node, NodeId, TaskId};
use vc_resource::Dim;

pub(crate) const ENTRY: PluginEntry = PluginEntry { name: "predicates", build };

const POINTS: Points = Points::PRE_PREDICATE.and(Points::PREDICATE);

const NO_NODE: &str = "node info not found";
const TOO_MANY_PODS: &str = "node(s) pod number exceeded";

/// A Kubernetes filter as this plugin runs it (2.2).
struct Wrapped {
    name: &'static str,
    /// The argument that switches it off; `None`: nothing does.
    switch: Option<&'static str>,
    /// Reads pod and node object only and so runs before the others.
    stable: bool,
    /// Whether the pod gives it nothing to check; it is then not asked for any node. What 2.3 keeps
    /// as the skip set follows from the class at any time and cannot go stale.
    skips: fn(&Class) -> bool,
    pre_filter: fn(&Class) -> Result<(), Finding>,
    filter: fn(&Class, &Node) -> Option<Finding>,
}

/// In the order in which they run inside their phase.
const WRAPPED: &[Wrapped] = &[
    Wrapped {
        name: "NodeUnschedulable",
        switch: None,
        stable: true,
        skips: |_| false,
        pre_filter: |_| Ok(()),
        filter: node_unschedulable::filter,
    },
    Wrapped {
        name: "NodeAffinity",
        switch: Some("predicate.NodeAffinityEnable"),
        stable: true,
        skips: node_affinity::skips_filter,
        pre_filter: node_affinity::pre_filter,
        filter: node_affinity::filter,
    },
    Wrapped {
        name: "NodePorts",
        switch: Some("predicate.NodePortsEnable"),
        stable: false,
        skips: node_ports::skips_filter,
        pre_filter: |_| Ok(()),
        filter: node_ports::filter,
    },
    Wrapped {
        name: "TaintToleration",
        switch: Some("predicate.TaintTolerationEnable"),
        stable: true,
        skips: |_| false,
        pre_filter: |_| Ok(()),
        filter: taint_toleration::filter,
    },
];

/// Switches without effect: of filters for volumes, claims, pod affinity and spread, and of the
/// cache, which never changes a result (2.5). A value of the wrong type is still reported.
const WITHOUT_EFFECT: &[&str] = &[
    "predicate.PodAffinityEnable",
    "predicate.NodeVolumeLimitsEnable",
    "predicate.VolumeZoneEnable",
    "predicate.PodTopologySpreadEnable",
    "predicate.VolumeBindingEnable",
    "predicate.VolumeRestrictionsEnable",
    "predicate.DynamicResourceAllocationEnable",
    "predicate.CacheEnable",
];

struct Predicates {
    /// Those that are on, the stable ones first.
    filters: Vec<&'static Wrapped>,
}

fn build(option: &PluginOption, warnings: &mut Vec<Warning>) -> Box<dyn Plugin> {
    for switch in WITHOUT_EFFECT {
        option.arguments.bool(switch, true, warnings);
    }
    Box::new(Predicates { filters: filters(&option.arguments, warnings) })
}

fn filters(arguments: &Arguments, warnings: &mut Vec<Warning>) -> Vec<&'static Wrapped> {
    let mut is_on = |wrapped: &&Wrapped| match wrapped.switch {
        Some(switch) => arguments.bool(switch, true, warnings),
        None => true,
    };
    let (mut stable, others): (Vec<_>, Vec<_>) =
        WRAPPED.iter().filter(|wrapped| is_on(wrapped)).partition(|wrapped| wrapped.stable);
    stable.extend(others);
    stable
}

impl Plugin for Predicates {
    fn points(&self) -> Points {
        POINTS
    }

    fn pre_predicate(&self, ask: Ask<'_>, task: TaskId) -> Result<(), String> {
        let class = ask.cluster.class(task);
        for wrapped in self.filters.iter().filter(|wrapped| !(wrapped.skips)(class)) {
            if let Err(finding) = (wrapped.pre_filter)(class) {
                let message = finding.reason.text(&ask.cluster.dims);
                return Err(format!("plugin {} pre-predicates failed {message}", wrapped.name));
            }
        }
        Ok(())
    }

    fn predicate(&self, ask: Ask<'_>, task: TaskId, node: NodeId, findings: &mut Vec<Finding>) {
        let node = &ask.cluster.nodes[node];
        if !node.present {
            findings.push(Finding::new(Code::Error, NO_NODE));
            return;
        }
        if node.allocatable.get(Dim::PODS) <= i64::from(node.view.n_pods) {
            findings.push(Finding::new(Code::Unschedulable, TOO_MANY_PODS));
        }
        let class = ask.cluster.class(task);
        let _ = self.filters.iter().try_for_each(|wrapped| wrapped.run(class, node, findings));
    }
}

impl Wrapped {
    /// Appends what the filter finds. Findings that eviction may cure add up; any other ends the
    /// list of the node.
    fn run(&self, class: &Class, node: &Node, findings: &mut Vec<Finding>) -> ControlFlow<()> {
        if (self.skips)(class) {
            return ControlFlow::Continue(());
        }
        let Some(finding) = (self.filter)(class, node) else {
            return ControlFlow::Continue(());
        };
        let ends = finding.code != Code::Unschedulable;
        findings.push(finding);
        if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(arguments: Arguments, warnings: &mut Vec<Warning>) -> Vec<&'static str> {
        filters(&arguments, warnings).iter().map(|wrapped| wrapped.name).collect()
    }

    #[test]
    fn nodes_12_stable_filters_run_first_each_phase_in_table_order() {
        let table = WRAPPED.iter().map(|wrapped| wrapped.name);
        let expected = ["NodeUnschedulable", "NodeAffinity", "NodePorts", "TaintToleration"];
        assert!(table.eq(expected));
        let running = names(Arguments::default(), &mut Vec::new());
        assert_eq!(running, ["NodeUnschedulable", "NodeAffinity", "TaintToleration", "NodePorts"]);
        let stable = WRAPPED.iter().filter(|wrapped| wrapped.stable).count();
        assert_eq!(stable, 3);
    }

    #[test]
    fn nodes_10_a_skipped_filter_is_not_asked() {
        let refusing = |skips| Wrapped {
            name: "Refusing",
            switch: None,
            stable: false,
            skips,
            pre_filter: |_| Ok(()),
            filter: |_, _| Some(Finding::new(Code::Unschedulable, "no")),
        };
        let run = |skips| {
            let mut findings = Vec::new();
            let flow = refusing(skips).run(&Class::default(), &Node::default(), &mut findings);
            assert!(flow.is_continue(), "eviction may help");
            findings.len()
        };
        assert_eq!(run(|_| true), 0);
        assert_eq!(run(|_| false), 1);
    }

    #[test]
    fn nodes_24_bools_may_be_strings() {
        let switch = |value| [("predicate.NodePortsEnable", value)].into_iter().collect();
        let mut warnings = Vec::new();
        let running = names(switch(json!("false")), &mut warnings);
        assert_eq!((running.contains(&"NodePorts"), warnings.len()), (false, 0));
        let running = names(switch(json!(0)), &mut warnings);
        assert_eq!((running.contains(&"NodePorts"), warnings.len()), (true, 1));
    }

    #[test]
    fn arguments_of_filters_that_are_not_there_are_accepted() {
        let keys = WITHOUT_EFFECT.iter().map(|&key| (key, json!(false)));
        let structured = [
            ("volumebinding.weight", json!(5)),
            ("dynamicresources.filterTimeoutSeconds", json!(-5)),
        ];
        let arguments = keys.chain(structured).collect();
        let mut warnings = Vec::new();
        build(&PluginOption { arguments, ..PluginOption::default() }, &mut warnings);
        assert_eq!(warnings, []);
    }
}
