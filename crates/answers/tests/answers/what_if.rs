//! What-ifs. Specification: answers.md 20, cases 48 to 56.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use vc_answers::{
    Change, CycleLimit, ExpectedEnds, KnownBaselines, LiveObject, NewNodes, NodePatch,
    NodeSelection, PodChange, PodGroupChange, QueueChange, SupposedKubelet, WhatIf, WhatIfBound,
    WhatIfResult, WhatIfState, what_if,
};
use vc_engine::Evaluator;
use vc_model::fixture::events_of;
use vc_model::{
    ClusterEvent, LabelSelector, Labels, NodeGroupAffinity, ObjectKey, PodAffinity, PodSelector,
    PodTerm, SelectorKind,
};

use crate::support::{Asked, conf};

/// A full node, and a gang of two that needs two empty ones.
const FULL: &str = "node n1 cpu=4
    job run min=1 running\n task a cpu=4 @n1 running
    job j min=2\n task a cpu=4 x2";

fn full() -> Asked {
    Asked::new(&conf("enqueue, allocate", "gang predicates"), FULL)
}

/// One text for each pod whose node differs: `+ j-a-0 n1`, `- j-a-0 n1`, `j-a-0 n1>n2`.
pub(crate) fn placements(result: &WhatIfResult) -> Vec<String> {
    let placed = result.placed.iter().map(|row| format!("+ {} {}", row.pod.name, row.node));
    let not = result.not_placed.iter().map(|row| format!("- {} {}", row.pod.name, row.node));
    let moved = result.moved.iter().map(|row| format!("{} {}>{}", row.pod.name, row.from, row.to));
    placed.chain(not).chain(moved).collect()
}

/// One text for each row: those of [`placements`], `evicted run-a drain`, `waits j NoRoom`.
fn rows(result: &WhatIfResult) -> Vec<String> {
    let evicted =
        result.evicted.iter().map(|row| format!("evicted {} {}", row.pod.name, row.action));
    let spared = result.spared.iter().map(|row| format!("spared {} {}", row.pod.name, row.action));
    let waiting = result.waiting.iter();
    let waiting = waiting.map(|row| format!("waits {} {}", row.key.name, row.code.as_str()));
    placements(result).into_iter().chain(evicted).chain(spared).chain(waiting).collect()
}

pub(crate) fn named(name: &str) -> NodeSelection {
    NodeSelection { names: vec![name.into()], match_labels: None }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("default", name)
}

fn add_nodes(like: &str, count: u64) -> Change {
    Change::AddNodes { nodes: NewNodes::Like(like.into()), count }
}

#[test]
fn ans_48_nodes_are_added() {
    let result = full().what_if(vec![add_nodes("n1", 2)]);
    assert_eq!(rows(&result), ["+ j-a-0 n1-whatif-1", "+ j-a-1 n1-whatif-2"]);
    assert!(result.is_settled && result.is_complete());
    assert_eq!(result.warnings, ["new nodes have no images"]);
    let queue = &result.queues[0];
    assert_eq!(
        (&*queue.queue, queue.allocated[0].clone()),
        ("default", ("cpu".to_owned(), ["4".to_owned(), "12".to_owned()]))
    );
    assert_eq!(rows(&full().what_if(vec![add_nodes("n1", 1)])), [""; 0], "one is too few");
}

#[test]
fn ans_48_uncordoned_nodes_lose_the_taint_of_their_cordon() {
    let taint = "taint=node.kubernetes.io/unschedulable:NoSchedule";
    let text = format!("node n1 cpu=4 unschedulable {taint}\njob a\n task a cpu=2");
    let it = Asked::new(&conf("enqueue, allocate", "gang predicates"), &text);
    let node = NodeSelection { names: vec!["n1".into()], match_labels: None };
    assert_eq!(placements(&it.what_if(vec![Change::Uncordon(node)])), ["+ a-a n1"]);
}

#[test]
fn ans_48_nodes_are_removed_cordoned_and_patched() {
    let text = "node n1 cpu=4\nnode n2 cpu=4 zone=a taint=x:NoSchedule unschedulable
        job run min=1 running\n task a cpu=4 @n1 running\njob j\n task a cpu=4";
    let it = Asked::new(&conf("allocate", "gang predicates"), text);
    let patch = |selection: NodeSelection| {
        let remove_taints = vec!["x".into()];
        Change::PatchNodes(selection, NodePatch { remove_taints, ..NodePatch::default() })
    };
    assert_eq!(rows(&it.what_if(vec![patch(named("n2"))])), [""; 0], "it is cordoned, too");
    assert_eq!(rows(&it.what_if(vec![Change::Uncordon(named("n2"))])), [""; 0], "and tainted");
    let zone = Labels::from([("zone".into(), "a".into())]);
    let of_zone = NodeSelection { names: Vec::new(), match_labels: Some(zone) };
    let both = vec![patch(of_zone), Change::Uncordon(named("n2"))];
    assert_eq!(rows(&it.what_if(both)), ["+ j-a n2"]);
    let removed = it.what_if(vec![Change::RemoveNodes(named("n1"))]);
    assert_eq!(rows(&removed), ["evicted run-a drain"]);
    it.engine.cluster().check().unwrap();
}

#[test]
fn ans_49_what_happens_anyway_is_in_no_list() {
    let text = "node n1 cpu=4\nnode n2 cpu=4 taint=x:NoSchedule";
    let mut it = Asked::new(&conf("allocate", "gang predicates"), text);
    it.apply("job a\n task a cpu=3\njob b\n task a cpu=4");
    // Without changes one of them is placed in the next cycle.
    assert_eq!(rows(&it.what_if(Vec::new())), [""; 0]);
    assert_eq!(rows(&it.what_if(vec![add_nodes("n1", 1)])), ["+ b-a n1-whatif-1"]);
    let cordoned = it.what_if(vec![Change::Cordon(named("n1"))]);
    assert_eq!(rows(&cordoned), ["- a-a n1", "waits a NodesRefuse"]);
    let moved = vec![add_nodes("n1", 2), Change::Cordon(named("n1"))];
    let moved = rows(&it.what_if(moved));
    assert!(moved[1].starts_with("a-a n1>n1-whatif-"), "{moved:?}");
    assert!(moved[0].starts_with("+ b-a n1-whatif-"), "{moved:?}");
}

/// Cycles, kubelets and changes of which each is asked with each other.
fn questions() -> Vec<WhatIf> {
    let mut questions = Vec::new();
    for kubelet in [SupposedKubelet::Instant, SupposedKubelet::None] {
        for cycles in [CycleLimit::Settled, CycleLimit::Number(1), CycleLimit::Number(3)] {
            for changes in [vec![], vec![add_nodes("n1", 1)], vec![Change::Cordon(named("n1"))]] {
                questions.push(WhatIf { changes, cycles, kubelet });
            }
        }
    }
    questions
}

#[test]
fn ans_49_a_kept_outcome_changes_no_answer() {
    let text = "node n1 cpu=4\nnode n2 cpu=4 taint=x:NoSchedule";
    let mut it = Asked::new(&conf("enqueue, allocate", "gang predicates"), text);
    it.apply("job a\n task a cpu=3\njob b\n task a cpu=4");
    let known = KnownBaselines::default();
    for question in questions().iter().flat_map(|question| [question, question]) {
        let mut state = WhatIfState::new(&it.engine, &it.ends);
        state.share_baselines(known.clone());
        let expected = what_if(&it.engine, &it.ends, question);
        assert_eq!(state.ask(question), expected, "{question:?}");
    }
}

/// The signal that stops a question is read before each cycle, so that cycles can be counted.
#[test]
fn ans_49_what_happens_without_changes_is_found_once() {
    for (evaluator, is_kept) in [(Evaluator::Fast, true), (Evaluator::Plain, false)] {
        let config = conf("enqueue, allocate", "gang predicates");
        let it = Asked::evaluated(evaluator, &config, FULL);
        let known = KnownBaselines::default();
        let n_read = || {
            let n_read = Arc::new(AtomicUsize::new(0));
            let mut state = WhatIfState::new(&it.engine, &it.ends);
            state.share_baselines(known.clone());
            let counter = n_read.clone();
            state.stop_if(Arc::new(move || {
                counter.fetch_add(1, Ordering::Relaxed);
                false
            }));
            let changes = vec![add_nodes("n1", 2)];
            state.ask(&WhatIf { changes, ..WhatIf::default() }).unwrap();
            n_read.load(Ordering::Relaxed)
        };
        let (first, second) = (n_read(), n_read());
        assert_eq!(second < first, is_kept, "{evaluator:?}: {first}, then {second}");
    }
}

#[test]
fn ans_48_objects_are_applied_deleted_and_finished() {
    let it = full();
    let applied = it.what_if(vec![Change::Apply(events_of("job k\n task a cpu=1"))]);
    assert_eq!(rows(&applied), ["waits k NoRoom"]);
    assert_eq!(applied.unplaced_applied, [key("k-a")]);
    let node = it.what_if(vec![Change::Apply(events_of("node n2 cpu=9\njob k\n task a cpu=1"))]);
    assert!(node.unplaced_applied.is_empty(), "{node:?}");
    let single = "node n1 cpu=4\njob run min=1 running\n task a cpu=4 @n1 running
        job j\n task a cpu=4";
    let it = Asked::new(&conf("enqueue, allocate", "gang predicates"), single);
    for change in [
        Change::Finish(vec![key("run")]),
        Change::Delete(vec![LiveObject::Job(key("run"))]),
        Change::Delete(vec![LiveObject::Pod(key("run-a"))]),
    ] {
        assert_eq!(rows(&it.what_if(vec![change.clone()])), ["+ j-a n1"], "{change:?}");
    }
    let gone = Change::Delete(vec![LiveObject::Node("n1".into())]);
    assert_eq!(rows(&it.what_if(vec![gone])), ["evicted run-a drain"]);
}

#[test]
fn ans_48_controllers_of_all_kinds_are_named() {
    let text = "node n1 cpu=4
        job podgroup-1 owner=web-5d9f7c kind=ReplicaSet min=1 running\n task a cpu=2 @n1 running
        job podgroup-2 owner=web-77b8cd kind=ReplicaSet min=1 running\n task a cpu=2 @n1 running
        job podgroup-3 owner=big kind=PyTorchJob\n task a cpu=4";
    let it = Asked::new(&conf("enqueue, allocate", "gang predicates"), text);
    let delete = |kind: &str, name: &str| {
        Change::Delete(vec![LiveObject::Controller(kind.into(), key(name))])
    };
    let placed = ["+ podgroup-3-a n1"];
    assert_eq!(rows(&it.what_if(vec![delete("Deployment", "web")])), placed);
    let sets = vec![delete("ReplicaSet", "web-5d9f7c"), Change::Finish(vec![key("web-77b8cd")])];
    assert_eq!(rows(&it.what_if(sets)), placed);
    let requests = Some(vec![("cpu".into(), "2".parse().unwrap())]);
    let change = Box::new(PodChange { requests, ..PodChange::default() });
    let smaller = vec![delete("ReplicaSet", "web-5d9f7c"), Change::SetPods(key("big"), change)];
    assert_eq!(rows(&it.what_if(smaller)), placed);
    let error = |change: Change| {
        let question = WhatIf { changes: vec![change], ..WhatIf::default() };
        what_if(&it.engine, &it.ends, &question).unwrap_err().to_string()
    };
    assert_eq!(
        error(delete("StatefulSet", "web")),
        "spec.changes[0].delete[0].name: no StatefulSet default/web controls pods"
    );
    assert_eq!(
        error(Change::Finish(vec![key("web")])),
        "spec.changes[0].finish.jobs[0]: default/web means several jobs: give the name of one PodGroup"
    );
}

#[test]
fn ans_48_names_mean_what_is_there_after_the_changes_before() {
    let text = "node n1 cpu=4
        job podgroup-1 owner=web-5d9f7c kind=ReplicaSet min=1 running\n task a cpu=2 @n1 running
        job podgroup-2 owner=web-77b8cd kind=ReplicaSet min=1 running\n task a cpu=2 @n1 running
        job big\n task a cpu=4";
    let it = Asked::new(&conf("enqueue, allocate", "gang predicates"), text);
    let delete = |kind: &str, name: &str| {
        Change::Delete(vec![LiveObject::Controller(kind.into(), key(name))])
    };
    let finish = |name: &str| Change::Finish(vec![key(name)]);
    let one_is_left = vec![delete("rs", "web-5d9f7c"), finish("web")];
    assert_eq!(rows(&it.what_if(one_is_left)), ["+ big-a n1"]);
    let late = || Change::Apply(events_of("job late-9 owner=late kind=MPIJob\n task a cpu=9"));
    let both = vec![finish("web-5d9f7c"), late(), finish("late"), delete("mpijob", "late")];
    assert_eq!(rows(&it.what_if(both)), [""; 0]);
    let error = |changes: Vec<Change>| {
        let question = WhatIf { changes, ..WhatIf::default() };
        what_if(&it.engine, &it.ends, &question).unwrap_err().to_string()
    };
    assert_eq!(
        error(vec![late(), delete("MPIJob", "late"), finish("late")]),
        "spec.changes[2].finish.jobs[0]: no job default/late"
    );
    assert_eq!(
        error(vec![delete("rs", "web-5d9f7c"), delete("rs", "web-5d9f7c")]),
        "spec.changes[1].delete[0].name: no rs default/web-5d9f7c controls pods"
    );
}

#[test]
fn ans_48_only_kinds_of_controllers_delete_controllers() {
    let text = "node n1 cpu=4
        job train-7f owner=train kind=Job min=1 running\n task a cpu=4 @n1 running";
    let it = Asked::new(&conf("enqueue, allocate", "gang predicates"), text);
    let error = |object: LiveObject| {
        let changes = vec![Change::Delete(vec![object])];
        let question = WhatIf { changes, ..WhatIf::default() };
        what_if(&it.engine, &it.ends, &question).unwrap_err().message
    };
    for kind in ["Pod", "pod", "po", "pods", "PodGroup", "pg", "podgroups"] {
        let object = LiveObject::Controller(kind.into(), key("train"));
        assert_eq!(error(object), format!("default/train of kind {kind} is no controller"));
    }
    assert_eq!(error(LiveObject::Pod(key("train"))), "no pod default/train");
    assert_eq!(error(LiveObject::Job(key("train-7f-a"))), "no job default/train-7f-a");
}

#[test]
fn ans_16_a_name_that_means_several_pods() {
    let mut events = events_of("pod db-0 cpu=9\npod db-1 cpu=9");
    for event in &mut events {
        if let ClusterEvent::PodApplied(pod) = event {
            pod.controller = Some((SelectorKind::StatefulSet, "db".into()));
        }
    }
    let mut it = full();
    it.cycle(events);
    let error = |name: &str| {
        let changes = vec![Change::Finish(vec![key(name)])];
        let question = WhatIf { changes, ..WhatIf::default() };
        what_if(&it.engine, &it.ends, &question).unwrap_err().message
    };
    assert_eq!(error("db"), "default/db means several pods: give the name of one pod");
    assert_eq!(error("db-0"), "default/db-0 has no PodGroup");
}

#[test]
fn ans_48_pods_of_a_controller_in_other_groups_are_deleted_with_it() {
    let mut events = events_of(
        "queue default\nnode n1 cpu=4\njob shared min=1 running\n task a cpu=4 @n1 running
         job j\n task a cpu=4",
    );
    for event in &mut events {
        if let ClusterEvent::PodApplied(pod) = event
            && &*pod.key.name == "shared-a"
        {
            pod.controller = Some((SelectorKind::StatefulSet, "db".into()));
        }
    }
    let mut it = Asked::new(&conf("enqueue, allocate", "gang predicates"), "");
    it.cycle(events);
    let set = LiveObject::Controller("StatefulSet".into(), key("db"));
    let result = it.what_if(vec![Change::Delete(vec![set])]);
    assert_eq!(placements(&result), ["+ j-a n1"]);
}

#[test]
fn ans_48_queues_jobs_and_pods_change() {
    let text =
        "node n1 cpu=8\nqueue q cap.cpu=4\nqueue other\njob j queue=q min=2\n task a cpu=3 x2";
    let it = Asked::new(&conf("enqueue, allocate", "gang predicates capacity"), text);
    assert_eq!(rows(&it.what_if(Vec::new())), [""; 0]);
    let both = ["+ j-a-0 n1", "+ j-a-1 n1"];
    let capability = Some(vec![("cpu".into(), "6".parse().unwrap())]);
    let change = QueueChange { capability, ..QueueChange::default() };
    assert_eq!(rows(&it.what_if(vec![Change::SetQueue("q".into(), Box::new(change))])), both);
    let change = PodGroupChange { queue: Some("other".into()), ..PodGroupChange::default() };
    assert_eq!(rows(&it.what_if(vec![Change::SetJob(key("j"), change)])), both);
    let change = PodGroupChange { min_member: Some(1), ..PodGroupChange::default() };
    let one = it.what_if(vec![Change::SetJob(key("j"), change)]);
    assert_eq!(rows(&one), ["+ j-a-0 n1", "waits j QueueFull"]);
    let requests = Some(vec![("cpu".into(), "2".parse().unwrap())]);
    let change = PodChange { requests, ..PodChange::default() };
    assert_eq!(rows(&it.what_if(vec![Change::SetPods(key("j"), Box::new(change))])), both);
}

#[test]
fn ans_48_a_queue_gets_other_node_groups() {
    let text = "node n1 cpu=4 group=g1\nnode n2 cpu=4 group=g2\nqueue q groups.required=g1
        job run queue=q min=1 running\n task a cpu=4 @n1 running
        job j queue=q\n task a cpu=4";
    let it = Asked::new(&conf("enqueue, allocate", "gang predicates nodegroup"), text);
    assert_eq!(rows(&it.what_if(Vec::new())), [""; 0]);
    let required = vec!["g1".into(), "g2".into()];
    let affinity = Some(NodeGroupAffinity { required, ..NodeGroupAffinity::default() });
    let change = Box::new(QueueChange { affinity, ..QueueChange::default() });
    assert_eq!(rows(&it.what_if(vec![Change::SetQueue("q".into(), change)])), ["+ j-a n2"]);
    let weight = Box::new(QueueChange { weight: Some(2), ..QueueChange::default() });
    assert_eq!(rows(&it.what_if(vec![Change::SetQueue("q".into(), weight)])), [""; 0], "it stays");
}

#[test]
fn ans_54_volumes_are_provisioned_at_once() {
    let text = "class slow provisioner=d delayed\ncsinode n1 d=9\npvc data 1Gi class=slow
        node n1 cpu=4 unschedulable\njob j\n task a cpu=1 pvc=data";
    let it = Asked::new(&conf("enqueue, allocate", "gang predicates"), text);
    let result = it.what_if(vec![Change::Uncordon(named("n1"))]);
    assert_eq!((rows(&result), result.is_settled), (vec!["+ j-a n1".to_owned()], true));
    assert_eq!(result.warnings, ["volumes are provisioned at once, on every node"]);
    let finished = it.what_if(vec![Change::Finish(vec![key("j")])]);
    assert_eq!(finished.warnings, [""; 0], "nothing was provisioned");
}

#[test]
fn ans_54_pods_without_a_controller_are_not_made_anew() {
    let text = "queue default\nnode n1 cpu=4\nnode n2 cpu=4
        job run min=1 running\n task a cpu=3 @n1 running";
    let warning = "pods whose PodGroup has no controller are not made anew";
    for (controller, expected, warnings) in [
        (None, &["evicted run-a drain"][..], &[warning][..]),
        (Some("uid".into()), &["+ run-a n2", "evicted run-a drain"][..], &[][..]),
    ] {
        let mut events = events_of(text);
        for event in &mut events {
            if let ClusterEvent::PodGroupApplied(group) = event {
                group.controller_uid = controller.clone();
            }
        }
        let mut it = Asked::new(&conf("enqueue, allocate", "gang predicates"), "");
        it.cycle(events);
        let result = it.what_if(vec![Change::RemoveNodes(named("n1"))]);
        assert_eq!((rows(&result), result.warnings), (texts(expected), texts(warnings)));
    }
}

fn texts(of: &[&str]) -> Vec<String> {
    of.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn ans_48_another_configuration_evicts() {
    let text = "node n1 cpu=4
        job low min=1 priority=1 running\n task a cpu=4 @n1 running priority=1
        job high priority=9\n task a cpu=4 priority=9";
    let it = Asked::new(&conf("enqueue, allocate", "priority gang | predicates"), text);
    let preempting = conf("enqueue, allocate, preempt", "priority conformance | predicates");
    let result = it.what_if(vec![Change::Configure(Box::new(preempting.clone()))]);
    assert_eq!(rows(&result), ["+ high-a n1", "evicted low-a preempt"]);
    let evicted = &result.evicted[0];
    assert_eq!(evicted.for_group, Some(key("high")));
    assert_eq!(evicted.plugins, ["priority"]);
    let gentle = WhatIf {
        changes: vec![Change::Configure(Box::new(preempting))],
        kubelet: SupposedKubelet::None,
        ..WhatIf::default()
    };
    let result = what_if(&it.engine, &it.ends, &gentle).unwrap();
    assert_eq!(rows(&result), ["evicted low-a preempt", "waits high AwaitsVictims"][..1]);
}

#[test]
fn ans_50_a_drained_gang_is_named_with_its_members() {
    let mut events = events_of(
        "queue default\nnode n1 cpu=4\nnode n2 cpu=4
         job g min=2 running\n task a cpu=3 @n1 running\n task b cpu=3 @n2 running",
    );
    for event in &mut events {
        if let ClusterEvent::PodGroupApplied(group) = event {
            group.controller_uid = Some("owner".into());
        }
    }
    let mut it = Asked::new(&conf("enqueue, allocate", "gang predicates"), "");
    it.cycle(events);
    let result = it.what_if(vec![Change::RemoveNodes(named("n2"))]);
    assert_eq!(rows(&result), ["evicted g-b drain", "waits g NoRoom"]);
    let with_room = it.what_if(vec![add_nodes("n1", 1), Change::RemoveNodes(named("n2"))]);
    assert_eq!(rows(&with_room), ["+ g-b n1-whatif-1", "evicted g-b drain"]);
}

#[test]
fn ans_55_cycles_and_the_clock() {
    let ending = "node n1 cpu=4
        job run min=1 running\n task a cpu=4 @n1 running started=0 annotation.reservation.volcano.sh/runtime=2h
        job j\n task a cpu=4";
    let it = Asked::new(&conf("enqueue, allocate", "gang predicates"), ending);
    // The cycle was 5,400 s after the start.
    assert_eq!(rows(&it.what_if(vec![Change::Advance(1_799_000_000)])), [""; 0]);
    assert_eq!(rows(&it.what_if(vec![Change::Advance(1_800_000_000)])), ["+ j-a n1"]);
    let run = |cycles: CycleLimit| {
        let changes = vec![add_nodes("n1", 2)];
        what_if(
            &full().engine,
            &ExpectedEnds::default(),
            &WhatIf { changes, cycles, ..WhatIf::default() },
        )
        .unwrap()
    };
    let settled = run(CycleLimit::Settled);
    assert!(settled.is_settled && settled.cycles < 6, "{settled:?}");
    let one = run(CycleLimit::Number(1));
    assert_eq!((one.cycles, one.is_settled, one.placed.len()), (1, false, 2));
    assert_eq!(run(CycleLimit::Number(1_000)).cycles, 20);
}

/// Nothing follows from what a cycle decides if pods do not start and do not go: one is run, whatever is asked for.
#[test]
fn ans_55_without_kubelets_one_cycle_is_run() {
    let kubelet = SupposedKubelet::None;
    for cycles in [CycleLimit::Settled, CycleLimit::Number(1), CycleLimit::Number(5)] {
        let it = full();
        let question = WhatIf { changes: vec![add_nodes("n1", 2)], cycles, kubelet };
        let result = what_if(&it.engine, &it.ends, &question).unwrap();
        assert_eq!(rows(&result), ["+ j-a-0 n1-whatif-1", "+ j-a-1 n1-whatif-2"]);
        assert_eq!((result.cycles, result.is_settled, result.is_complete()), (1, false, true));
    }
    // Nor does an end bring cycles, while the clock moves on.
    let it = Asked::new(&conf("enqueue, allocate", "gang predicates"), &ending(3));
    let changes = vec![Change::Advance(600 * MINUTE_MICROS)];
    let question = WhatIf { changes, kubelet, ..WhatIf::default() };
    let result = what_if(&it.engine, &it.ends, &question).unwrap();
    assert_eq!((rows(&result), result.cycles), (texts(&["+ j-a n1"]), 1));
}

/// The end of a pod whose start is not known is not put off by an end before it.
#[test]
fn ans_55_without_kubelets_the_clock_passes_the_end_of_a_pod_without_a_start() {
    let runtime = "annotation.reservation.volcano.sh/runtime";
    let text = format!(
        "node n1 cpu=4\njob run min=1 running\n task a cpu=1 @n1 running started=0 {runtime}=91m
         task b cpu=3 @n1 running {runtime}=2m\njob j\n task a cpu=3"
    );
    let it = Asked::new(&conf("enqueue, allocate", "gang predicates"), &text);
    for kubelet in [SupposedKubelet::Instant, SupposedKubelet::None] {
        let n_placed = |minutes: i64| {
            let changes = vec![Change::Advance(minutes * MINUTE_MICROS)];
            let question = WhatIf { changes, kubelet, ..WhatIf::default() };
            what_if(&it.engine, &it.ends, &question).unwrap().placed.len()
        };
        assert_eq!([1, 2].map(n_placed), [0, 1], "{kubelet:?}");
    }
}

const MINUTE_MICROS: i64 = 60_000_000;

/// A job whose pods end one after the other, one in each minute from the first one on, and one that waits.
fn ending(n_pods: usize) -> String {
    let runtime = "annotation.reservation.volcano.sh/runtime";
    // The first cycle is at minute 90, so that no pod has ended by then.
    let pod = |number: usize| {
        format!(" task a{number} cpu=1 @n1 running started=0 {runtime}={}m\n", 91 + number)
    };
    let pods: String = (0..n_pods).map(pod).collect();
    format!("node n1 cpu={n_pods} pods=600\njob run min=1 running\n{pods}job j\n task a cpu=1")
}

#[test]
fn ans_55_at_500_ends_the_answer_says_that_later_ones_were_left_out() {
    let it = Asked::new(&conf("enqueue, allocate", "gang predicates"), &ending(501));
    let kubelet = SupposedKubelet::None;
    let left_out = |minutes: i64| {
        let changes = vec![Change::Advance(minutes * MINUTE_MICROS)];
        let question = WhatIf { changes, kubelet, ..WhatIf::default() };
        what_if(&it.engine, &it.ends, &question).unwrap().left_out
    };
    assert!(left_out(500).is_empty(), "500 pods end");
    assert_eq!(left_out(501), [WhatIfBound::Ends]);
    assert_eq!((WhatIfBound::Ends.as_str(), WhatIfBound::Ends.most()), ("ends", 500));
}

/// Jobs of which each has to be near to the one behind it, so that each cycle places the last one that waits.
fn chain(n_jobs: usize) -> Vec<ClusterEvent> {
    let job = |at: usize| format!("job j{at} priority={at}\n task a cpu=1 label.app=a{at}\n");
    let mut events = events_of(&(0..n_jobs).map(job).collect::<String>());
    for event in &mut events {
        let ClusterEvent::PodApplied(pod) = event else { continue };
        let at: usize = pod.labels["app"][1..].parse().unwrap();
        let Some(before) = at.checked_sub(1) else { continue };
        let match_labels = Labels::from([("app".into(), format!("a{before}").into())]);
        let labels = Some(LabelSelector { match_labels, ..LabelSelector::default() });
        let namespaces = vec!["default".into()];
        let pods = PodSelector { labels, namespaces, ..PodSelector::default() };
        let required = vec![PodTerm { pods, topology_key: "zone".into() }];
        pod.pod_affinity = Some(Arc::new(PodAffinity { required, ..PodAffinity::default() }));
    }
    events
}

#[test]
fn ans_55_at_20_cycles_the_answer_says_that_later_ones_were_left_out() {
    let config = conf("enqueue, allocate", "priority gang | predicates");
    let it = Asked::new(&config, "node n1 cpu=64 zone=a");
    let ask = |n_jobs: usize, cycles: CycleLimit| {
        let changes = vec![Change::Apply(chain(n_jobs))];
        let question = WhatIf { changes, cycles, ..WhatIf::default() };
        what_if(&it.engine, &it.ends, &question).unwrap()
    };
    let cut = ask(25, CycleLimit::Settled);
    assert_eq!((cut.cycles, cut.is_settled, cut.is_complete()), (20, false, false));
    assert_eq!(cut.left_out, [WhatIfBound::Cycles]);
    assert!(!cut.unplaced_applied.is_empty(), "the last ones have no node yet");
    let asked_for = ask(25, CycleLimit::Number(20));
    assert!(!asked_for.is_settled && asked_for.is_complete(), "nobody has asked for more cycles");
    let short = ask(3, CycleLimit::Settled);
    assert!(short.is_settled && short.is_complete(), "{short:?}");
    assert_eq!((WhatIfBound::Cycles.as_str(), WhatIfBound::Cycles.most()), ("cycles", 20));
}

#[test]
fn ans_56_long_lists_end() {
    let text = "node n1 cpu=501 pods=600 taint=x:NoSchedule\njob j min=1\n task a cpu=1 x501";
    let it = Asked::new(&conf("allocate", "gang predicates"), text);
    let patch = NodePatch { remove_taints: vec!["x".into()], ..NodePatch::default() };
    let result = it.what_if(vec![Change::PatchNodes(named("n1"), patch)]);
    assert_eq!(result.placed.len(), 500);
    assert_eq!(result.truncated, [("placed", 501)]);
}

#[test]
fn ans_16_names_that_do_not_exist() {
    let it = full();
    let error = |change: Change| {
        let changes = vec![add_nodes("n1", 1), change];
        what_if(&it.engine, &it.ends, &WhatIf { changes, ..WhatIf::default() })
            .unwrap_err()
            .to_string()
    };
    let selection = NodeSelection { names: vec!["n1".into(), "g9".into()], match_labels: None };
    assert_eq!(
        error(Change::RemoveNodes(selection)),
        "spec.changes[1].removeNodes.names[1]: no node g9"
    );
    assert_eq!(error(add_nodes("g9", 1)), "spec.changes[1].addNodes.like: no node g9");
    assert_eq!(
        error(Change::Finish(vec![key("nobody")])),
        "spec.changes[1].finish.jobs[0]: no job default/nobody"
    );
    let change = PodGroupChange { queue: Some("q9".into()), ..PodGroupChange::default() };
    assert_eq!(
        error(Change::SetJob(key("j"), change)),
        "spec.changes[1].setJob.queue: no queue q9"
    );
    let change = Box::new(QueueChange::default());
    assert_eq!(
        error(Change::SetQueue("q9".into(), change)),
        "spec.changes[1].setQueue.name: no queue q9"
    );
}
