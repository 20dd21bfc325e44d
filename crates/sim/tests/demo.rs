//! The demo without its processes: the manifests that ship, what is seen of a cluster, the view of
//! it as lines, when it has settled, and the figures of the summary.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use vc_objects::input::Input;
use vc_sim::demo::line::{Style, StyledLine};
use vc_sim::demo::manifests::{ManifestPlan, Workload};
use vc_sim::demo::picture::{self, DemoPicture};
use vc_sim::demo::state::DemoState;
use vc_sim::demo::summary::{DemoSummary, Quantiles, quantiles};
use vc_sim::demo::view::{self, Screen};
use vc_sim::serve::{Change, HYPER_NODES, NODES, POD_GROUPS, PODS, QUEUES, ServedKind};

const QUIET: Duration = Duration::from_secs(2);
const NARROW: Screen = Screen { width: 80, height: 24, unicode: false, color: false };

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Two nodes of 8 cpu and queues `research` (weight 3) and `product` (weight 1).
fn cluster() -> DemoState {
    let mut state = DemoState::default();
    for name in ["node-10", "node-2"] {
        let node = json!({
            "metadata": { "name": name }, "status": { "allocatable": { "cpu": "8" } },
        });
        state.observe(&NODES, Change::Added, &node, ms(0));
    }
    for (name, weight) in [("root", 1), ("default", 1), ("research", 3), ("product", 1)] {
        let queue = json!({ "metadata": { "name": name }, "spec": { "weight": weight } });
        state.observe(&QUEUES, Change::Added, &queue, ms(0));
    }
    state
}

fn gang(name: &str, min: u32, phase: &str, reason: &str) -> Value {
    let condition = json!({ "type": "Unschedulable", "status": "True", "message": reason });
    let conditions = if reason.is_empty() { json!([]) } else { json!([condition]) };
    json!({
        "metadata": {
            "name": format!("{name}-uid"), "namespace": "default",
            "ownerReferences": [{ "name": name }],
        },
        "spec": { "minMember": min, "queue": "research" },
        "status": { "phase": phase, "conditions": conditions },
    })
}

fn pod(gang: &str, index: u32, node: &str, phase: &str) -> Value {
    let name = format!("{gang}-{index}");
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "uid": name,
            "annotations": { "scheduling.k8s.io/group-name": format!("{gang}-uid") },
        },
        "spec": {
            "nodeName": node, "schedulerName": "volcano",
            "containers": [{ "name": "c", "resources": { "requests": { "cpu": "2" } } }],
        },
        "status": { "phase": phase },
    })
}

fn change(state: &mut DemoState, kind: &ServedKind, object: &Value, at: Duration) {
    state.observe(kind, Change::Modified, object, at);
}

/// `train` of two pods on node-2, bound after 10 and 30 ms; `giant` of one pod waits.
fn busy_cluster() -> DemoState {
    let mut state = cluster();
    for (name, min) in [("train", 2), ("giant", 1)] {
        state.observe(&POD_GROUPS, Change::Added, &gang(name, min, "Pending", ""), ms(100));
    }
    for (name, index) in [("train", 0), ("train", 1), ("giant", 0)] {
        state.observe(&PODS, Change::Added, &pod(name, index, "", "Pending"), ms(100));
    }
    change(&mut state, &POD_GROUPS, &gang("train", 2, "Inqueue", ""), ms(105));
    change(&mut state, &PODS, &pod("train", 0, "node-2", "Pending"), ms(110));
    change(&mut state, &PODS, &pod("train", 1, "node-2", "Pending"), ms(130));
    change(&mut state, &POD_GROUPS, &gang("train", 2, "Running", ""), ms(131));
    change(&mut state, &POD_GROUPS, &gang("giant", 1, "Inqueue", "no room"), ms(140));
    state
}

fn notes(state: &mut DemoState) -> Vec<String> {
    state.take_notes().iter().map(|note| view::note(note).text()).collect()
}

fn frame(state: &DemoState, screen: Screen) -> Vec<String> {
    let lines = view::frame(state, "demo", ms(7300), screen);
    lines.iter().map(|line| line.text().trim_end().to_owned()).collect()
}

#[test]
fn every_manifest_of_the_directory_is_built_in() {
    for workload in [Workload::Gangs, Workload::Topology] {
        let (directory, embedded) = workload.embedded().unwrap();
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(directory);
        let files = std::fs::read_dir(directory).unwrap();
        let files: BTreeSet<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        let names: Vec<&str> =
            files.iter().map(|it| it.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, embedded.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
}

#[test]
fn the_built_in_workload_is_applied_over_time_queues_first() {
    let plan = ManifestPlan::read(&Workload::Gangs, 1.0).unwrap();
    assert_eq!(plan.unreadable, []);
    let kinds: Vec<&str> =
        plan.steps.iter().map(|it| it.object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds[..2], ["Queue", "Queue"]);
    assert!(kinds[2..].iter().all(|kind| *kind == "Job"), "{kinds:?}");
    assert!(plan.steps.is_sorted_by_key(|step| step.at));
    let last = plan.steps.last().unwrap().at;
    assert!(Duration::from_secs(8) < last && last < Duration::from_secs(15), "{last:?}");
}

#[test]
fn a_faster_workload_shortens_times_and_pods() {
    let text = "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, \
        metadata: {name: a, annotations: {vcsim/apply-at: '3'}}, spec: {tasks: [\
        {template: {metadata: {annotations: {vcsim/run-seconds: '5', other: '5'}}}}]}}";
    let mut input = Input::default();
    input.add_text(&"a.yaml".into(), &text.replace("{apiVersion", "---\n{apiVersion"));
    let plan = ManifestPlan::of(input, 2.0);
    assert_eq!(plan.steps[0].at, ms(1500));
    let annotations =
        &plan.steps[0].object["spec"]["tasks"][0]["template"]["metadata"]["annotations"];
    assert_eq!(annotations, &json!({ "vcsim/run-seconds": "2.5", "other": "5" }));
}

#[test]
fn a_time_that_is_none_is_reported_with_its_place() {
    for bad in ["'soon'", "'-1'", "5"] {
        let text = format!(
            "# comment\napiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  annotations:\n    \
             vcsim/apply-at: {bad}\n"
        );
        let mut input = Input::default();
        input.add_text(&"a.yaml".into(), &text);
        let plan = ManifestPlan::of(input, 1.0);
        assert_eq!(plan.steps, []);
        let line = plan.unreadable[0].to_string();
        let given = bad.replace('\'', "\"");
        let wanted = format!("pod a: vcsim/apply-at: not a number of seconds: {given}");
        assert!(line.starts_with("a.yaml:") && line.ends_with(&wanted), "{line}");
    }
}

#[test]
fn a_directory_that_does_not_exist_is_an_error() {
    let error = ManifestPlan::read(&Workload::Given("/nowhere".into()), 1.0).unwrap_err();
    assert!(error.to_string().starts_with("cannot read /nowhere: "), "{error}");
}

#[test]
fn lines_tell_the_life_of_a_gang_in_order() {
    let mut state = busy_cluster();
    assert_eq!(
        notes(&mut state),
        [
            "  0.000 s  queue default: weight 1",
            "  0.000 s  queue research: weight 3",
            "  0.000 s  queue product: weight 1",
            "  0.100 s  gang train created: min 2, queue research",
            "  0.100 s  gang giant created: min 1, queue research",
            "  0.105 s  gang train admitted after 5 ms",
            "  0.110 s  bound 2 pods of train to node-2 (2/2)",
            "  0.130 s  gang train complete: 2 pods in 30 ms",
            "  0.140 s  gang giant admitted after 40 ms",
            "  0.140 s  gang giant waits: no room",
        ]
    );
    assert_eq!(notes(&mut state), [""; 0]);
    // The same again is nothing new.
    change(&mut state, &POD_GROUPS, &gang("giant", 1, "Inqueue", "no room"), ms(150));
    assert_eq!(notes(&mut state), [""; 0]);
    change(&mut state, &POD_GROUPS, &gang("giant", 1, "Inqueue", "less room"), ms(160));
    assert_eq!(notes(&mut state), ["  0.160 s  gang giant waits: less room"]);
}

#[test]
fn reasons_of_gangs_are_shown_without_their_counts() {
    let counts = "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending; \
                  Pending: 1 Unschedulable. Origin reason is";
    for (tail, wanted) in [
        (
            " giant-0: 0/2 nodes are unavailable: 2 Insufficient cpu.",
            "0/2 nodes are unavailable: 2 Insufficient cpu.",
        ),
        (
            ": resource in cluster is overused: overused cpu",
            "resource in cluster is overused: overused cpu",
        ),
    ] {
        let mut state = busy_cluster();
        let reason = format!("{counts}{tail}");
        change(&mut state, &POD_GROUPS, &gang("giant", 1, "Inqueue", &reason), ms(150));
        let summary = DemoSummary::of(&state, ms(200), true, Vec::new());
        assert_eq!(summary.waiting[0].reason, wanted);
    }
}

#[test]
fn use_of_queues_and_nodes() {
    let mut state = busy_cluster();
    let queues = |state: &DemoState| -> Vec<(String, i64, i64)> {
        state.queues().into_iter().map(|it| (it.name, it.used, it.share)).collect()
    };
    let shares = [("product".to_owned(), 0, 4000), ("research".to_owned(), 4000, 12_000)];
    assert_eq!(queues(&state), shares);
    let nodes: Vec<_> = state.nodes().into_iter().map(|it| (it.name, it.used)).collect();
    assert_eq!(nodes, [("node-2".to_owned(), 4000), ("node-10".to_owned(), 0)]);
    // What has ended holds nothing.
    change(&mut state, &PODS, &pod("train", 0, "node-2", "Succeeded"), ms(500));
    assert_eq!(queues(&state)[1].1, 2000);
    // `default` has a share as soon as somebody uses it.
    let mut other = gang("other", 1, "Pending", "");
    other["spec"]["queue"] = json!("default");
    state.observe(&POD_GROUPS, Change::Added, &other, ms(500));
    let names: Vec<_> = queues(&state).into_iter().map(|(name, _, share)| (name, share)).collect();
    let wanted = [("default", 3200), ("product", 3200), ("research", 9600)];
    assert_eq!(names, wanted.map(|(name, share)| (name.to_owned(), share)));
}

#[test]
fn the_view_shows_queues_gangs_nodes_and_events() {
    let mut state = busy_cluster();
    state.take_notes();
    let text = frame(&state, NARROW).join("\n");
    let wanted = "\
demo                                                                      7.3 s

QUEUE          WEIGHT  CPU IN USE, | = SHARE
product             1  .........|.........................  0 / 4 cpu
research            3  #########.................|........  4 / 12 cpu

GANG           QUEUE     MEMBERS, | = MIN
train          research  ################   2/2  running Running    complete in
giant          research  ................   0/1  running Inqueue    no room

NODES, CPU IN USE
node-2   ###########..........   4/8    node-10  .....................   0/8

  0.000 s  queue default: weight 1
";
    assert!(text.starts_with(wanted), "{text}");
    assert!(text.ends_with("  0.140 s  gang giant waits: no room"), "{text}");
}

#[test]
fn the_view_shows_hyper_nodes_with_their_gangs() {
    let mut state = busy_cluster();
    let member = |kind: &str, name: &str| json!({ "type": kind, "selector": { "exactMatch": { "name": name } } });
    let hyper_node = |name: &str, tier: i32, member: Value| {
        json!({ "apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode",
            "metadata": { "name": name }, "spec": { "tier": tier, "members": [member] } })
    };
    for (name, tier, member) in [
        ("hall", 2, member("HyperNode", "rack")),
        ("rack", 1, member("Node", "node-2")),
        ("spare", 1, member("Node", "node-10")),
    ] {
        let object = hyper_node(name, tier, member);
        state.observe(&HYPER_NODES, Change::Added, &object, ms(0));
    }
    let text = frame(&state, NARROW).join("\n");
    let wanted = "
HYPERNODE      TIER  CPU IN USE
hall              2  ########........   4/8    train 2
  rack            1  ########........   4/8    train 2
spare             1  ................   0/8
";
    assert!(text.contains(wanted), "{text}");
    let rack = hyper_node("rack", 1, member("Node", "node-2"));
    state.observe(&HYPER_NODES, Change::Deleted, &rack, ms(1));
    let names: Vec<String> = state.hyper_nodes().into_iter().map(|load| load.name).collect();
    assert_eq!(names, ["hall", "spare"]);
}

#[test]
fn the_view_stays_within_the_screen() {
    let mut state = busy_cluster();
    for index in 0..60 {
        let name = format!("gang-with-a-rather-long-name-{index}");
        state.observe(&POD_GROUPS, Change::Added, &gang(&name, 3, "Pending", ""), ms(200));
        let node = json!({ "metadata": { "name": format!("machine-in-the-rack-{index}") },
            "status": { "allocatable": { "cpu": "96500m" } } });
        state.observe(&NODES, Change::Added, &node, ms(200));
    }
    state.take_notes();
    for (width, height) in [(20, 5), (80, 24), (100, 40), (300, 100), (1, 1), (0, 0)] {
        for unicode in [false, true] {
            let screen = Screen { width, height, unicode, color: true };
            let lines = view::frame(&state, &"demo ".repeat(30), ms(123_456), screen);
            assert!(lines.len() <= height, "{width}x{height}: {}", lines.len());
            for line in &lines {
                assert!(line.text().chars().count() < width.max(1), "{width}: {line:?}");
                assert!(unicode || line.text().is_ascii(), "{line:?}");
            }
        }
    }
}

#[test]
fn gangs_that_are_done_give_way_to_others() {
    let mut state = cluster();
    for index in 0..10 {
        let phase = if index < 8 { "Completed" } else { "Pending" };
        let object = gang(&format!("g{index}"), 1, phase, "");
        state.observe(&POD_GROUPS, Change::Added, &object, ms(index));
    }
    let text = frame(&state, Screen { height: 20, ..NARROW }).join("\n");
    assert!(text.contains("more not shown)"), "{text}");
    assert!(text.contains("\ng8 ") && text.contains("\ng9 "), "{text}");
    assert!(!text.contains("\ng0 "), "{text}");
}

#[test]
fn bars_are_empty_and_full_only_where_that_is_so() {
    for (used, wanted) in [(0, "...."), (1, "#..."), (7999, "###."), (8000, "####")] {
        let mut state = DemoState::default();
        let node =
            json!({ "metadata": { "name": "n" }, "status": { "allocatable": { "cpu": "8" } } });
        state.observe(&NODES, Change::Added, &node, ms(0));
        let mut one = pod("train", 0, "n", "Running");
        one["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!(format!("{used}m"));
        state.observe(&PODS, Change::Added, &one, ms(0));
        let screen = Screen { width: 20, ..NARROW };
        let text = frame(&state, screen).join("\n");
        let bar = text.lines().last().unwrap().split_whitespace().nth(1).unwrap();
        assert_eq!(bar, wanted, "{text}");
    }
}

#[test]
fn lines_are_cut_by_characters_and_carry_no_control_codes_of_others() {
    let line = StyledLine::of(Style::Good, "ab█").then(Style::Plain, "cd\x1b[2J\n");
    assert_eq!(line.text(), "ab█cd [2J ");
    assert_eq!(line.cut(4).text(), "ab█c");
    assert_eq!(line.cut(2).ansi(), "\x1b[32mab\x1b[0m");
    assert_eq!(line.cut(0).text(), "");
}

/// The picture itself: `UPDATE_SNAPSHOT=1` writes it anew, to be looked at in a browser.
#[test]
fn the_picture_shows_the_busiest_moment_and_the_summary() {
    let mut state = busy_cluster();
    state.take_notes();
    let mut picture = DemoPicture::default();
    picture.observe(&state, ms(7300));
    // With one pod more it is busier, and when that pod has ended it is not.
    state.observe(&PODS, Change::Added, &pod("train", 2, "node-10", "Running"), ms(7400));
    picture.observe(&state, ms(7400));
    change(&mut state, &PODS, &pod("train", 2, "node-10", "Succeeded"), ms(8000));
    picture.observe(&state, ms(8000));
    let made = picture.svg(&DemoSummary::of(&state, ms(9300), true, Vec::new()));
    assert!(made.contains("7.4\u{a0}s"), "{made}");
    assert!(made.contains("settled\u{a0}after\u{a0}9.3\u{a0}s"), "{made}");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/demo.svg");
    if std::env::var_os("UPDATE_SNAPSHOT").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    let wanted = std::fs::read_to_string(path).unwrap_or_default();
    assert!(made == wanted, "{path} differs from\n{made}");
}

#[test]
fn a_picture_has_bars_as_rectangles_and_text_of_a_fixed_width() {
    let line = StyledLine::of(Style::Good, "██░").then(Style::Bold, " a<b & c ");
    let made = picture::svg(&[StyledLine::default(), line]);
    let shapes: Vec<&str> = made.lines().skip(2).collect();
    assert_eq!(
        shapes,
        [
            "<rect x=\"16\" y=\"37\" width=\"16\" height=\"12\" fill=\"#3fb950\" fill-opacity=\"1\"/>",
            "<rect x=\"32\" y=\"37\" width=\"8\" height=\"12\" fill=\"#3fb950\" fill-opacity=\"0.2\"/>",
            "<text x=\"48\" y=\"47\" textLength=\"56\" fill=\"#ffffff\" font-weight=\"bold\">\
             a&lt;b\u{a0}&amp;\u{a0}c</text>",
            "</svg>",
        ]
    );
}

#[test]
fn settled_when_nothing_changes_and_nothing_runs_out() {
    let mut state = busy_cluster();
    assert!(!state.is_settled(ms(140) + QUIET - ms(1), QUIET));
    assert!(state.is_settled(ms(140) + QUIET, QUIET));
    // A pod that has its end before it.
    let mut short = pod("train", 1, "node-2", "Running");
    short["metadata"]["name"] = json!("short");
    short["metadata"]["annotations"]["vcsim/run-seconds"] = json!("60");
    state.observe(&PODS, Change::Added, &short, ms(200));
    assert!(!state.is_settled(ms(9000), QUIET));
    short["status"]["phase"] = json!("Succeeded");
    change(&mut state, &PODS, &short, ms(9000));
    assert!(!state.is_settled(ms(9001), QUIET));
    assert!(state.is_settled(ms(11_000), QUIET));
    // A pod that is being deleted.
    short["metadata"]["deletionTimestamp"] = json!("2026-08-01T00:00:00Z");
    change(&mut state, &PODS, &short, ms(9000));
    assert!(!state.is_settled(ms(11_000), QUIET));
    state.observe(&PODS, Change::Deleted, &short, ms(9100));
    assert!(state.is_settled(ms(12_000), QUIET));
}

#[test]
fn not_settled_while_a_gang_waits_without_having_been_told_why() {
    let mut state = busy_cluster();
    state.observe(&POD_GROUPS, Change::Added, &gang("late", 1, "Pending", ""), ms(1000));
    // Without pods there is nothing to say about it.
    assert!(state.is_settled(ms(9000), QUIET));
    state.observe(&PODS, Change::Added, &pod("late", 0, "", "Pending"), ms(1000));
    assert!(!state.is_settled(ms(9000), QUIET));
    change(&mut state, &POD_GROUPS, &gang("late", 1, "Pending", "full"), ms(2000));
    assert!(state.is_settled(ms(9000), QUIET));
}

#[test]
fn a_slow_scheduler_is_given_more_time() {
    let mut state = busy_cluster();
    state.observe(&POD_GROUPS, Change::Added, &gang("late", 1, "Pending", ""), ms(1000));
    state.observe(&PODS, Change::Added, &pod("late", 0, "", "Pending"), ms(1000));
    change(&mut state, &POD_GROUPS, &gang("late", 1, "Inqueue", "full"), ms(4000));
    assert!(!state.is_settled(ms(15_999), QUIET));
    assert!(state.is_settled(ms(16_000), QUIET));
}

#[test]
fn pods_that_come_with_their_nodes_complete_a_gang() {
    for gang_first in [true, false] {
        let mut state = cluster();
        let group = gang("train", 1, "Running", "");
        if gang_first {
            state.observe(&POD_GROUPS, Change::Added, &group, ms(5));
        }
        state.observe(&PODS, Change::Added, &pod("train", 0, "node-2", "Running"), ms(5));
        if !gang_first {
            state.observe(&POD_GROUPS, Change::Added, &group, ms(5));
        }
        let summary = DemoSummary::of(&state, ms(9), true, Vec::new());
        assert_eq!((summary.gangs_complete, summary.pods_bound), (1, 0), "{gang_first}");
    }
}

#[test]
fn quantiles_by_nearest_rank() {
    assert_eq!(quantiles(&[]), None);
    let cases: [(Vec<u64>, [u64; 3]); 4] = [
        (vec![7], [7, 7, 7]),
        (vec![3, 1, 2, 4], [2, 4, 4]),
        ((1..=100).rev().collect(), [50, 99, 100]),
        ((1..=1000).collect(), [500, 990, 1000]),
    ];
    for (times, wanted) in cases {
        let times: Vec<Duration> = times.into_iter().map(ms).collect();
        let [p50, p99, max] = wanted.map(ms);
        assert_eq!(quantiles(&times), Some(Quantiles { p50, p99, max }));
    }
}

#[test]
fn the_summary_says_what_ran_and_what_waits_and_why() {
    let mut state = busy_cluster();
    let mut single = pod("single", 0, "", "Pending");
    single["metadata"]["annotations"] = json!({});
    let refused = json!({ "type": "PodScheduled", "status": "False", "message": "0/2 nodes" });
    single["status"]["conditions"] = json!([refused]);
    state.observe(&PODS, Change::Added, &single, ms(200));
    let summary = DemoSummary::of(&state, ms(9300), true, vec!["x.yaml:1: bad".to_owned()]);
    assert_eq!(
        summary.lines(),
        [
            "settled after 9.3 s",
            "",
            "pods bound       2 of 4",
            "gangs complete   1 of 2",
            "time to bind     p50 10 ms, p99 30 ms, longest 30 ms",
            "                 (created to bound at the API server, waiting for room included)",
            "still waiting    2 pods",
            "  gang giant, 1 pod: no room",
            "  pod default/single-0, 1 pod: 0/2 nodes",
            "not applied      x.yaml:1: bad",
        ]
    );
    let nothing = DemoSummary::of(&DemoState::default(), ms(900), false, Vec::new());
    assert_eq!(
        nothing.lines(),
        [
            "not settled after 900 ms",
            "",
            "pods bound       0 of 0",
            "gangs complete   0 of 0",
            "still waiting    nothing",
        ]
    );
}

#[test]
fn members_above_the_minimum_wait_with_the_reason_of_their_own() {
    let mut state = cluster();
    state.observe(&POD_GROUPS, Change::Added, &gang("wide", 1, "Running", ""), ms(0));
    for index in 0..3 {
        state.observe(&PODS, Change::Added, &pod("wide", index, "", "Pending"), ms(0));
    }
    change(&mut state, &PODS, &pod("wide", 0, "node-2", "Running"), ms(5));
    let mut waiting = pod("wide", 2, "", "Pending");
    let refused = json!({ "type": "PodScheduled", "status": "False", "message": "no cpu" });
    waiting["status"]["conditions"] = json!([refused]);
    change(&mut state, &PODS, &waiting, ms(6));
    let summary = DemoSummary::of(&state, ms(100), true, Vec::new());
    assert_eq!((summary.gangs_complete, summary.waiting.len()), (1, 1));
    let lines = summary.lines();
    assert_eq!(lines.last().unwrap(), "  gang wide, 2 pods: no cpu");
    let text = frame(&state, Screen { width: 120, ..NARROW }).join("\n");
    assert!(text.contains("complete in 5 ms, 2 more would start"), "{text}");
}
