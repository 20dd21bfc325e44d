//! What the plugins register against the list of core.md 5.3 "Who registers what", both ways.

use std::collections::{BTreeMap, BTreeSet};

use vc_conf::{EnqueueVote, QueueRule};
use vc_framework::{ALL_POINTS, Points};
use vc_plugins::{ALL, NOT_BUILT};

use crate::extender;
use crate::support::plugin;

const CORE: &str = include_str!("../../../../docs/spec/core.md");

/// Plugin and point where we knowingly register something else, and why. `true`: we do, the list
/// does not.
const EXCEPTIONS: &[(&str, &str, bool, &str)] = &[
    ("capacity", "PrePredicate", false, "trials use the journal instead of a copied state"),
    ("cdp", "UnifiedEvictable", true, "D3: cooldowns hold for the gang actions too"),
    (
        "drf",
        "UnifiedEvictable",
        true,
        "D3: with hierarchy its reclaim rule also guards gangreclaim",
    ),
    ("deviceshare", "BatchNodeOrder", false, "only vNPUs by MindCluster are scored in a batch"),
    ("deviceshare", "event handlers", true, "it reserves devices itself, without predicates"),
    (
        "deviceshare",
        "SimulateAddTask and SimulateRemoveTask",
        true,
        "the list has only points that an action asks",
    ),
    ("nodeorder", "NodeOrder", false, "all of its scorers answer for all nodes at once"),
    ("pdb", "UnifiedEvictable", true, "D3: budgets hold for the gang actions too"),
    ("pdb", "event handlers", true, "D22: what the session has evicted counts"),
    (
        "predicates",
        "SimulateAddTask and SimulateRemoveTask",
        true,
        "the list has only points that an action asks",
    ),
    ("proportion", "UnifiedEvictable", true, "D3: its reclaim rule also guards gangreclaim"),
    (
        "network-topology-aware",
        "event handlers",
        false,
        "sums of HyperNodes are taken from their nodes, which are up to date",
    ),
    ("proportion", "PrePredicate", false, "trials use the journal instead of a copied state"),
    ("task-topology", "NodeOrder", false, "scores of a bucket are not kept for pods of one shape"),
    ("task-topology", "BatchNodeOrder", true, "it answers for all nodes at once"),
    ("resource-strategy-fit", "Predicate", false, "only with the argument proportional"),
];

/// Point to plugins, from the text of the specification.
fn listed() -> BTreeMap<String, BTreeSet<String>> {
    let from = CORE.find("Who registers what").expect("the list is in core.md 5.3");
    let list = &CORE[from..];
    let list = &list[list.find("documents): ").expect("the list begins") + "documents): ".len()..];
    let list = &list[..list.find("BestNode, NodeMap").expect("the list ends")];
    let mut listed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let built = ALL.iter().map(|entry| entry.name());
    let plugins: Vec<&str> = built.chain(NOT_BUILT.iter().map(|plugin| plugin.name)).collect();
    for item in list.trim_end().trim_end_matches('.').split(';') {
        let words: Vec<&str> = item.split_whitespace().collect();
        let n_points = words.iter().take_while(|word| !plugins.contains(word)).count();
        let (points, plugins) = words.split_at(n_points);
        for point in expand(&points.join(" ")) {
            let plugins = plugins.iter().map(ToString::to_string);
            listed.entry(point).or_default().extend(plugins);
        }
    }
    listed
}

/// `Preemptive, Allocatable` and `SubJobReady/Pipelined` are two points each.
fn expand(points: &str) -> Vec<String> {
    match points {
        "SubJobReady/Pipelined" => vec!["SubJobReady".to_owned(), "SubJobPipelined".to_owned()],
        "HyperNodeOrder and gradients" => {
            vec!["HyperNodeOrder".to_owned(), "HyperNodeGradient".to_owned()]
        }
        _ => points.split(", ").map(str::to_owned).collect(),
    }
}

fn exception(name: &str, point: &str) -> Option<bool> {
    let found = EXCEPTIONS.iter().find(|row| (row.0, row.1) == (name, point));
    found.map(|row| row.2)
}

/// Arguments with which a plugin has all of its rules.
fn arguments(name: &str) -> &'static str {
    match name {
        "deviceshare" => "deviceshare.VGPUEnable=true deviceshare.ScheduleWeight=1",
        "extender" => extender::ALL_HOOKS,
        "fairshare" => {
            "fairshare.queueOrder=true fairshare.enableEnqueueGate=true fairshare.preempt=true"
        }
        _ => "",
    }
}

#[test]
fn plugins_register_what_the_specification_lists() {
    let listed = listed();
    assert!(listed["JobOrder"].contains("gang") && listed["SubJobPipelined"].contains("gang"));
    for entry in vc_plugins::ALL.iter().filter(|entry| entry.name() != "cohort") {
        let arguments = arguments(entry.name());
        let points = plugin(&format!("{} +enableHierarchy {arguments}", entry.name())).points();
        for &(point, name, _) in ALL_POINTS {
            let is_listed = listed.get(name).is_some_and(|plugins| plugins.contains(entry.name()));
            let expected = match exception(entry.name(), name) {
                Some(ours) => {
                    assert_ne!(ours, is_listed, "{} {name}: no exception any more", entry.name());
                    ours
                }
                None => is_listed,
            };
            assert_eq!(points.has(point), expected, "{}: {name}", entry.name());
        }
    }
}

/// Volcano does not have it; its own list is in cohort.md B.1.
#[test]
fn cohort_registers_what_its_specification_lists() {
    const LISTED: &[&str] = &[
        "QueueOrder",
        "Allocatable",
        "JobEnqueueable",
        "JobEnqueued",
        "event handlers",
        "NextQueue",
        "PreemptTargets",
    ];
    let points = plugin("cohort").points();
    let with = ALL_POINTS.iter().filter(|(point, ..)| points.has(*point));
    assert_eq!(with.map(|(_, name, _)| *name).collect::<Vec<_>>(), LISTED);
}

#[test]
fn without_hierarchy_drf_has_no_rule_for_queues() {
    let names = |text| {
        let points = plugin(text).points();
        let with = ALL_POINTS.iter().filter(|(point, ..)| points.has(*point));
        with.map(|(_, name, _)| *name).collect::<Vec<_>>()
    };
    assert_eq!(names("drf"), ["JobOrder", "Preemptable", "event handlers"]);
}

#[test]
fn entries_are_sorted_and_declared_once() {
    let built: Vec<&str> = ALL.iter().map(|entry| entry.name()).collect();
    let not_built: Vec<&str> = NOT_BUILT.iter().map(|plugin| plugin.name).collect();
    assert!(built.is_sorted() && not_built.is_sorted());
    assert!(not_built.iter().all(|name| !built.contains(name)));
}

/// What the loader reads before a plugin is built agrees with what the plugin says when it is built.
#[test]
fn declarations_agree_with_the_plugins() {
    for entry in ALL {
        let (name, declared) = (entry.name(), entry.declaration);
        let plugin =
            plugin(&format!("{name} {}", if name == "extender" { arguments(name) } else { "" }));
        let votes = plugin.points().has(Points::JOB_ENQUEUEABLE);
        assert_eq!(declared.enqueue_vote != EnqueueVote::None, votes, "{name}: its vote");
        let has_quota = matches!(declared.queue_rule, QueueRule::Quota | QueueRule::ExclusiveQuota);
        assert_eq!(has_quota, plugin.as_quota().is_some(), "{name}: its quota");
    }
}
