//! Pod affinity and anti-affinity in `predicates` and `nodeorder`.

use vc_framework::Plugin;
use vc_model::{
    ClusterEvent, Code, LabelSelector, Labels, NodeRecord, Operator, PodAffinity, PodRecord,
    PodSelector, PodTerm, PreferredPodTerm, Requirement, TaskStatus,
};

use crate::bed::{PluginFixture, node, plugin, pod, running};

const NO_AFFINITY: &str = "node(s) didn't match pod affinity rules";
const ANTI: &str = "node(s) didn't match pod anti-affinity rules";
const EXISTING: &str = "node(s) didn't satisfy existing pods anti-affinity rules";

fn predicates() -> Box<dyn Plugin> {
    plugin("predicates", &[])
}

fn in_zone(name: &str, zone: &str) -> NodeRecord {
    let mut node = node(name, &[("cpu", "8"), ("memory", "8Gi")]);
    node.labels.insert("zone".into(), zone.into());
    node.labels.insert("kubernetes.io/hostname".into(), name.into());
    node
}

/// Nodes `a1` and `a2` in zone a, `b1` in zone b, and `x` in none.
fn zones() -> Vec<NodeRecord> {
    let mut nodes = vec![in_zone("a1", "a"), in_zone("a2", "a"), in_zone("b1", "b")];
    nodes.push(node("x", &[("cpu", "8"), ("memory", "8Gi")]));
    nodes
}

fn app(name: &str, app: &str) -> PodRecord {
    PodRecord { labels: [("app".into(), app.into())].into(), ..pod(name, &[]) }
}

/// Pods of namespace `ns` with this app.
fn term(app: &str, key: &str) -> PodTerm {
    let labels = LabelSelector {
        match_labels: [("app".into(), app.into())].into(),
        ..LabelSelector::default()
    };
    let namespaces = vec!["ns".into()];
    let pods = PodSelector { namespaces, namespace_selector: None, labels: Some(labels) };
    PodTerm { pods, topology_key: key.into() }
}

fn near(pod: PodRecord, terms: Vec<PodTerm>) -> PodRecord {
    let affinity = PodAffinity { required: terms, ..PodAffinity::default() };
    PodRecord { pod_affinity: Some(affinity.into()), ..pod }
}

fn away(pod: PodRecord, terms: Vec<PodTerm>) -> PodRecord {
    let affinity = PodAffinity { anti_required: terms, ..PodAffinity::default() };
    PodRecord { pod_affinity: Some(affinity.into()), ..pod }
}

/// Reasons against the pod on each node of [`zones`]; empty: it fits.
fn reasons(bed: &PluginFixture, pod: &str) -> [String; 4] {
    ["a1", "a2", "b1", "x"].map(|node| bed.reasons(&*predicates(), pod, node).join(", "))
}

#[test]
fn nodes_33_near_the_database() {
    let pods = vec![running(app("db", "db"), "a1"), near(pod("p", &[]), vec![term("db", "zone")])];
    let bed = PluginFixture::new(zones(), pods);
    assert_eq!(reasons(&bed, "p"), ["", "", NO_AFFINITY, NO_AFFINITY]);
    let found = bed.findings(&*predicates(), "p", "b1");
    assert_eq!(found[0].code, Code::Unresolvable, "nothing is evicted for it");
}

#[test]
fn nodes_34_the_first_of_a_group_may_start_anywhere_with_the_key() {
    let first = near(app("p", "web"), vec![term("web", "zone")]);
    let mut bed =
        PluginFixture::new(zones(), vec![first, near(pod("q", &[]), vec![term("web", "zone")])]);
    assert_eq!(reasons(&bed, "p"), ["", "", "", NO_AFFINITY]);
    assert!(reasons(&bed, "q").iter().all(|found| found == NO_AFFINITY), "does not want itself");
    bed.cluster.set_task(bed.task("p"), TaskStatus::Allocated, Some(bed.node("b1")));
    assert_eq!(reasons(&bed, "q")[2], "");
}

#[test]
fn nodes_35_two_terms_want_one_pod() {
    let tier = |record: PodRecord| {
        let mut record = record;
        record.labels.insert("tier".into(), "1".into());
        record
    };
    let mut by_tier = term("", "zone");
    by_tier.pods.labels = Some(LabelSelector {
        match_labels: [("tier".into(), "1".into())].into(),
        ..LabelSelector::default()
    });
    let wants = near(pod("p", &[]), vec![term("db", "zone"), by_tier]);
    let two =
        vec![running(app("r", "db"), "a1"), running(tier(app("s", "x")), "a1"), wants.clone()];
    assert_eq!(reasons(&PluginFixture::new(zones(), two), "p")[0], NO_AFFINITY);
    let one = vec![running(tier(app("r", "db")), "a1"), wants];
    assert_eq!(reasons(&PluginFixture::new(zones(), one), "p")[0], "");
}

#[test]
fn nodes_36_a_node_without_the_key_is_away_from_everybody() {
    let pods = vec![running(app("r", "web"), "a1"), away(pod("p", &[]), vec![term("web", "zone")])];
    let bed = PluginFixture::new(zones(), pods);
    assert_eq!(reasons(&bed, "p"), [ANTI, ANTI, "", ""]);
    assert_eq!(bed.findings(&*predicates(), "p", "a1")[0].code, Code::Unschedulable);
}

#[test]
fn nodes_37_existing_pods_keep_others_away() {
    let owner = running(away(pod("r", &[]), vec![term("web", "zone")]), "a1");
    let bed = PluginFixture::new(zones(), vec![owner, app("p", "web"), app("q", "other")]);
    assert_eq!(reasons(&bed, "p"), [EXISTING, EXISTING, "", ""]);
    assert_eq!(bed.findings(&*predicates(), "p", "a1")[0].code, Code::Unschedulable);
    assert!(reasons(&bed, "q").iter().all(String::is_empty));
}

#[test]
fn nodes_38_an_empty_namespace_selector_is_every_namespace() {
    let mut foreign = running(app("r", "web"), "a1");
    foreign.key.namespace = "other".into();
    let mut everywhere = term("web", "zone");
    everywhere.pods.namespaces.clear();
    everywhere.pods.namespace_selector = Some(LabelSelector::default());
    let pods = vec![
        foreign,
        away(pod("p", &[]), vec![everywhere]),
        away(pod("q", &[]), vec![term("web", "zone")]),
    ];
    let bed = PluginFixture::new(zones(), pods);
    assert_eq!(reasons(&bed, "p")[0], ANTI);
    assert_eq!(reasons(&bed, "q")[0], "");
}

#[test]
fn nodes_39_a_namespace_that_is_relabelled_counts_or_not() {
    let rule =
        Requirement { key: "env".into(), operator: Operator::NotIn, values: vec!["prod".into()] };
    let mut not_prod = term("web", "zone");
    not_prod.pods.namespaces.clear();
    not_prod.pods.namespace_selector =
        Some(LabelSelector { match_expressions: vec![rule], ..LabelSelector::default() });
    let pods = vec![running(app("r", "web"), "a1"), away(pod("p", &[]), vec![not_prod])];
    let mut bed = PluginFixture::new(zones(), pods);
    assert_eq!(reasons(&bed, "p")[0], ANTI, "without labels");
    for (env, expected) in [("prod", ""), ("test", ANTI)] {
        let labels = Labels::from([("env".into(), env.into())]);
        bed.apply(ClusterEvent::NamespaceApplied { name: "ns".into(), labels });
        assert_eq!(reasons(&bed, "p")[0], expected, "{env}");
    }
}

#[test]
fn nodes_40_a_pod_placed_in_this_cycle_keeps_others_away() {
    let owner = away(app("b", "b"), vec![term("a", "kubernetes.io/hostname")]);
    let mut bed = PluginFixture::new(zones(), vec![owner, app("a", "a")]);
    for status in [TaskStatus::Allocated, TaskStatus::Pipelined] {
        assert_eq!(reasons(&bed, "a")[0], "");
        bed.cluster.set_task(bed.task("b"), status, Some(bed.node("a1")));
        assert_eq!(reasons(&bed, "a"), [EXISTING, "", "", ""]);
        bed.cluster.set_task(bed.task("b"), TaskStatus::Pending, None);
    }
}

#[test]
fn nodes_16_a_filter_that_had_nothing_to_check_is_asked_again() {
    let owner = away(pod("r", &[]), vec![term("web", "zone")]);
    let mut bed = PluginFixture::new(zones(), vec![owner, app("p", "web")]);
    let predicates = predicates();
    assert_eq!(predicates.pre_predicate(bed.view(), bed.task("p")), Ok(()));
    assert!(bed.findings(&*predicates, "p", "a1").is_empty());
    bed.cluster.set_task(bed.task("r"), TaskStatus::Allocated, Some(bed.node("a2")));
    assert_eq!(predicates.pre_predicate(bed.view(), bed.task("p")), Ok(()));
    assert_eq!(bed.reasons(&*predicates, "p", "a1"), [EXISTING]);
}

#[test]
fn nodes_19_what_a_discarded_attempt_counted_is_gone() {
    let alike = |name: &str| away(app(name, "web"), vec![term("web", "kubernetes.io/hostname")]);
    let mut bed = PluginFixture::new(vec![in_zone("a1", "a")], vec![alike("p"), alike("q")]);
    let predicates = predicates();
    bed.cluster.set_task(bed.task("p"), TaskStatus::Allocated, Some(bed.node("a1")));
    assert_eq!(bed.reasons(&*predicates, "q", "a1"), [ANTI]);
    bed.cluster.set_task(bed.task("p"), TaskStatus::Pending, None);
    assert!(bed.findings(&*predicates, "q", "a1").is_empty());
    assert_eq!(bed.cluster.check(), Ok(()));
}

#[test]
fn nodes_20_an_eviction_that_is_taken_back_counts_again() {
    let owner = running(away(pod("r", &[]), vec![term("web", "zone")]), "a1");
    let mut bed = PluginFixture::new(zones(), vec![owner, app("p", "web")]);
    bed.cluster.evict_task(bed.task("r"));
    assert_eq!(reasons(&bed, "p")[0], "");
    bed.cluster.unevict_task(bed.task("r"), TaskStatus::Running);
    assert_eq!(reasons(&bed, "p")[0], EXISTING);
}

#[test]
fn a_selector_that_cannot_be_understood_refuses_its_pod_alone() {
    let rule = Requirement { key: "app".into(), operator: Operator::Unknown, values: vec![] };
    let mut broken = term("", "zone");
    broken.pods.labels =
        Some(LabelSelector { match_expressions: vec![rule], ..LabelSelector::default() });
    let bed = PluginFixture::new(zones(), vec![away(pod("p", &[]), vec![broken]), app("q", "web")]);
    let text = "plugin InterPodAffinity pre-predicates failed parsing pod: \
                label selector requirement on app: unknown operator";
    assert_eq!(predicates().pre_predicate(bed.view(), bed.task("p")), Err(text.to_owned()));
    assert!(reasons(&bed, "q").iter().all(String::is_empty));
}

#[test]
fn pod_affinity_can_be_switched_off() {
    let pods = vec![near(pod("p", &[]), vec![term("db", "zone")])];
    let bed = PluginFixture::new(zones(), pods);
    let off = plugin("predicates", &[("predicate.PodAffinityEnable", false.into())]);
    assert!(bed.findings(&*off, "p", "x").is_empty());
}

#[test]
fn a_node_that_moves_takes_its_pods_along() {
    let owner = running(away(pod("r", &[]), vec![term("web", "zone")]), "a1");
    let mut bed = PluginFixture::new(zones(), vec![owner, app("p", "web")]);
    bed.apply(ClusterEvent::NodeApplied(Box::new(in_zone("a1", "b"))));
    assert_eq!(reasons(&bed, "p"), [EXISTING, "", EXISTING, ""]);
}

fn scores(pods: Vec<PodRecord>) -> Vec<f64> {
    let others = [
        "leastrequested.weight",
        "balancedresource.weight",
        "nodeaffinity.weight",
        "tainttoleration.weight",
    ];
    let arguments: Vec<_> = others.iter().map(|&key| (key, 0.into())).collect();
    let (scores, warnings) =
        PluginFixture::new(zones(), pods).scores(&mut *plugin("nodeorder", &arguments), "p");
    assert_eq!(warnings, [""; 0]);
    scores
}

fn preferring(pod: PodRecord, weight: i32, wanted: PodTerm) -> PodRecord {
    let preferred = PreferredPodTerm { weight: weight.abs(), term: wanted };
    let mut affinity = PodAffinity::default();
    match 0 < weight {
        true => affinity.preferred.push(preferred),
        false => affinity.anti_preferred.push(preferred),
    }
    PodRecord { pod_affinity: Some(affinity.into()), ..pod }
}

#[test]
fn nodes_88_preferred_affinity_of_either_side() {
    let by_host = || term("web", "kubernetes.io/hostname");
    let own = preferring(pod("p", &[]), 5, by_host());
    assert_eq!(scores(vec![running(app("r", "web"), "a2"), own]), [0.0, 200.0, 0.0, 0.0]);
    let theirs = running(preferring(pod("r", &[]), 5, by_host()), "a2");
    assert_eq!(scores(vec![theirs, app("p", "web")]), [0.0, 200.0, 0.0, 0.0]);
    let required = running(near(pod("r", &[]), vec![by_host()]), "a2");
    assert_eq!(scores(vec![required, app("p", "web")]), [0.0; 4], "counts 0 in Volcano");
}

#[test]
fn nodes_91_only_dislikes_leave_the_best_at_100() {
    let own = preferring(pod("p", &[]), -3, term("web", "zone"));
    let web = |name: &str, node: &str| running(app(name, "web"), node);
    let pods = vec![web("r", "a1"), web("s", "a2"), web("t", "b1"), own];
    assert_eq!(scores(pods), [0.0, 0.0, 100.0, 200.0]);
    assert_eq!(scores(vec![preferring(pod("p", &[]), 3, term("web", "zone"))]), [0.0; 4]);
}
