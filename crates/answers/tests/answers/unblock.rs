//! Remedies. Specification: answers.md 20, cases 32 to 34, 36.

use std::sync::Arc;

use proptest::prelude::*;
use vc_answers::{Change, Depth, Remedy, RemedyChange, RemedyKind, Subject, explain};
use vc_engine::EngineOptions;
use vc_model::fixture::{events_of, job};
use vc_model::{
    ClusterEvent, HostPort, LabelSelector, NodeAffinity, NodeSelectorTerm, ObjectKey, Operator,
    Protocol, Requirement, Settings, SpreadConstraint, TaintEffect, Toleration, TolerationOperator,
    Unsatisfiable,
};

use crate::support::{Asked, conf, random_cases};

const TIERS: &str = "gang predicates capacity nodeorder";

/// A cluster with a gang `j` that probably waits.
#[derive(Clone, Debug)]
struct Story {
    /// Words of each node.
    nodes: Vec<String>,
    /// Cpus that a running pod holds on each node.
    busy: Vec<i64>,
    minimum: i64,
    n_pods: i64,
    /// Request of a pod.
    milli: i64,
    zoned: bool,
    /// True if all pods have one host port.
    has_port: bool,
    /// `spec.capability` of the queue. `None`: unlimited.
    cap_milli: Option<i64>,
    tolerated: Vec<String>,
}

impl Story {
    fn events(&self) -> Vec<ClusterEvent> {
        let mut text = "queue default\n".to_owned();
        for (at, node) in self.nodes.iter().enumerate() {
            text.push_str(&format!("node n{at} {node}\n"));
        }
        let cap = self.cap_milli.map_or_else(String::new, |cap| format!("cap.cpu={cap}m"));
        text.push_str(&format!("queue q {cap}\n"));
        for (at, busy) in self.busy.iter().enumerate().filter(|(_, busy)| 0 < **busy) {
            let running = format!("task a cpu={busy} @n{at} running");
            text.push_str(&format!("job k{at} queue=q running\n {running}\n"));
        }
        let zone = if self.zoned { "selector.zone=a" } else { "" };
        let (minimum, milli, n_pods) = (self.minimum, self.milli, self.n_pods);
        text.push_str(&format!(
            "job j queue=q min={minimum}\n task a cpu={milli}m {zone} x{n_pods}\n"
        ));
        let mut events = events_of(&text);
        for event in &mut events {
            if let ClusterEvent::PodApplied(pod) = event
                && self.has_port
            {
                let (ip, protocol) = ("0.0.0.0".into(), Protocol::Tcp);
                pod.containers[0].host_ports.push(HostPort { ip, protocol, port: 8080 });
            }
            if let ClusterEvent::PodApplied(pod) = event
                && pod.key.name.starts_with("j-")
            {
                let tolerations = self.tolerated.iter().map(|key| Toleration {
                    key: key.as_str().into(),
                    operator: TolerationOperator::Equal,
                    value: "".into(),
                    effect: Some(TaintEffect::NoSchedule),
                });
                pod.tolerations.extend(tolerations);
            }
        }
        events
    }

    fn run(&self) -> Asked {
        let mut it = Asked::new(&conf("enqueue, allocate", TIERS), "");
        it.cycle(self.events());
        it
    }

    /// True if the engine starts the gang.
    fn starts(&self) -> bool {
        let it = self.run();
        let cluster = it.engine.cluster();
        let row = &cluster.jobs[job(cluster, "j")];
        self.minimum <= i64::from(row.counts.ready()) && 0 < row.counts.ready()
    }

    fn uncordoned_nodes(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.replace("unschedulable", "")).collect()
    }

    /// Returns the story after several changes at once.
    fn with_all(&self, text: &str) -> Self {
        let mut after = self.clone();
        for change in text.split(", ") {
            match change.split_once(' ') {
                Some(("tolerate", taints)) => {
                    let keys = taints.split(" and ").map(|taint| taint.split(':').next().unwrap());
                    after.tolerated.extend(keys.map(str::to_owned));
                }
                Some(("uncordon", _)) => after.nodes = self.uncordoned_nodes(),
                _ => after.zoned = false,
            }
        }
        after
    }

    /// Returns the story after the remedy, and those that go less far.
    fn with(&self, remedy: &Remedy) -> (Self, Vec<Self>) {
        let (mut after, mut less) = (self.clone(), self.clone());
        let word = |from_end: usize| remedy.text.split(' ').rev().nth(from_end).unwrap();
        let number = |text: &str| text.parse::<usize>().unwrap();
        match remedy.kind {
            RemedyKind::Tolerate => {
                let key = word(0).split(':').next().unwrap();
                after.tolerated.push(key.to_owned());
                return (after, Vec::new());
            }
            RemedyKind::Selector => {
                after.zoned = false;
                return (after, Vec::new());
            }
            RemedyKind::Filter if remedy.text.contains("NodePorts") => {
                after.has_port = false;
                return (after, Vec::new());
            }
            RemedyKind::Filter => {
                after.nodes = self.uncordoned_nodes();
                return (after, Vec::new());
            }
            RemedyKind::AskLess => {
                after.milli = milli(word(3));
                less.milli = after.milli + 1;
                let is_less = less.milli < self.milli;
                return (after, is_less.then_some(less).into_iter().collect());
            }
            RemedyKind::LowerMinimum => {
                after.minimum = number(word(0)) as i64;
                less.minimum = after.minimum + 1;
                let is_less = less.minimum < self.minimum;
                return (after, is_less.then_some(less).into_iter().collect());
            }
            RemedyKind::Together => return (self.with_all(&remedy.text), Vec::new()),
            RemedyKind::Wait | RemedyKind::RaisePriority | RemedyKind::CreateQueue => {
                unreachable!("no start, no evictions, and the queue exists");
            }
            RemedyKind::RaiseQuota => {
                after.cap_milli = Some(milli(word(1)));
                less.cap_milli = after.cap_milli.map(|cap| cap - 1);
            }
            RemedyKind::AddNodes => {
                let count = number(remedy.text.split(' ').next().unwrap());
                let like = self.nodes[number(&word(0)[1..])].clone();
                after.nodes.extend(vec![like.clone(); count]);
                less.nodes.extend(vec![like; count - 1]);
            }
            RemedyKind::EndJobs => {
                let jobs = remedy.text.trim_start_matches("end ").split(" and ");
                let numbers: Vec<usize> =
                    jobs.map(|job| number(job.trim_start_matches("default/k"))).collect();
                numbers.iter().for_each(|&at| after.busy[at] = 0);
                let still_running = |&at: &usize| {
                    let mut busy = after.busy.clone();
                    busy[at] = self.busy[at];
                    Self { busy, ..self.clone() }
                };
                let all = numbers.iter().map(still_running).collect();
                return (after, all);
            }
        }
        (after, vec![less])
    }
}

fn milli(quantity: &str) -> i64 {
    match quantity.strip_suffix('m') {
        Some(milli) => milli.parse().unwrap(),
        None => quantity.parse::<i64>().unwrap() * 1_000,
    }
}

fn story() -> impl Strategy<Value = Story> {
    let mark = prop::sample::select(vec![
        "zone=a",
        "zone=a",
        "zone=a taint=x:NoSchedule",
        "zone=a unschedulable",
        "zone=b",
    ]);
    let node = (2..9_i64, mark).prop_map(|(cpu, mark)| format!("cpu={cpu} {mark}"));
    let nodes = prop::collection::vec((node, 0..4_i64), 1..6);
    let gang = (1..5_i64, 0..2_i64, 1..12_i64, any::<bool>());
    let cap = prop::option::of(1..16_i64);
    let all = (nodes, gang, cap, prop::bool::weighted(0.3));
    all.prop_map(|(nodes, (minimum, extra, halves, zoned), cap, has_port)| Story {
        busy: nodes.iter().map(|(_, busy)| *busy).collect(),
        nodes: nodes.into_iter().map(|(node, _)| node).collect(),
        minimum,
        n_pods: minimum + extra,
        milli: halves * 500,
        zoned,
        has_port,
        cap_milli: cap.map(|cap| cap * 1_000),
        tolerated: Vec::new(),
    })
}

proptest! {
    #![proptest_config(random_cases(150))]

    /// Cases 32 and 33: the engine starts the job after every remedy, and does not if the remedy
    /// goes less far. The same holds if the remedy is asked about as a what-if.
    #[test]
    fn ans_32_every_remedy_starts_the_job_and_none_is_larger_than_needed(story in story()) {
        // The remedies of a gang that has started are about its further pods.
        if story.starts() {
            return Ok(());
        }
        let it = story.run();
        let why = it.full_in(&mut it.state(), "j");
        for remedy in &why.unblock {
            if let Some(change) = &remedy.change {
                let result = story.run().what_if(change.as_changes());
                let n_placed = result.placed.iter().filter(|it| it.pod.name.starts_with("j-"));
                let n_placed = n_placed.count() as i64;
                prop_assert!(story.minimum.min(n_placed) > 0, "{story:?}\n{remedy:?}\n{result:?}");
            }
            let (after, less) = story.with(remedy);
            prop_assert!(after.starts(), "{story:?}\n{remedy:?}");
            for less in less {
                prop_assert!(!less.starts(), "{story:?}\n{remedy:?}");
            }
        }
    }
}

/// A gang `j` alone waits for nodes of which some are refused, and for jobs that end and may be evicted.
pub(crate) fn waiting_alone() -> impl Strategy<Value = String> {
    let mark = prop::sample::select(vec![
        "",
        "zone=a",
        "zone=a taint=x:NoSchedule",
        "zone=b taint=x:NoSchedule taint=y:NoSchedule",
        "zone=b unschedulable taint=node.kubernetes.io/unschedulable:NoSchedule",
    ]);
    let node = (0..5_i64, mark, 0..5_i64, 2..8_i64, 1..40_i64);
    let nodes = prop::collection::vec(node, 1..4);
    (nodes, 1..4_i64, 1..5_i64, any::<bool>()).prop_map(|(nodes, n_pods, cpu, is_zoned)| {
        let mut text = "priorityclass c5 value=5\npriorityclass c9 value=9\n".to_owned();
        for (at, (free, mark, busy, priority, minutes)) in nodes.iter().enumerate() {
            text.push_str(&format!("node n{at} cpu={} {mark}\n", free + busy));
            let run =
                format!("started=0 annotation.reservation.volcano.sh/runtime={}m", 90 + minutes);
            if 0 < *busy {
                let pod = format!("task a cpu={busy} @n{at} running priority={priority} {run}");
                text.push_str(&format!("job k{at} priority={priority} running\n {pod}\n"));
            }
        }
        let zone = if is_zoned { "selector.zone=a" } else { "" };
        let pods = format!("task a cpu={cpu} {zone} priority=1 x{n_pods}");
        text + &format!("job j min={n_pods} priority=1\n {pods}")
    })
}

/// A remedy that was asked about as a what-if, at the time of which it speaks.
struct TriedRemedy {
    remedy: Remedy,
    /// Number of its changes, without the wait.
    n_changes: usize,
    /// True if a pod of `j` gets a node.
    is_placed: bool,
}

/// Tries the remedies that come with the start of `j`. Those without a change and a time are left out.
fn try_remedies_beside_start(text: &str) -> Vec<TriedRemedy> {
    let tiers = "priority conformance | gang predicates nodeorder";
    let it = Asked::new(&conf("enqueue, allocate, preempt", tiers), text);
    let why = it.why_with_start("j");
    let now_micros = why.as_of.time_micros;
    let mut tried = Vec::new();
    for remedy in why.unblock {
        let mut changes = remedy.change.as_ref().map(RemedyChange::as_changes).unwrap_or_default();
        let n_changes = changes.len();
        changes.extend(remedy.at_micros.map(|at| Change::Advance(at - now_micros)));
        if !changes.is_empty() {
            let placed = it.what_if(changes).placed;
            let is_placed = placed.iter().any(|row| row.pod.name.starts_with("j-"));
            tried.push(TriedRemedy { remedy, n_changes, is_placed });
        }
    }
    tried
}

proptest! {
    #![proptest_config(random_cases(150))]

    /// Case 32 with the remedies that come with the start, at the time of which they speak.
    #[test]
    fn ans_32_remedies_beside_the_start_place_the_job_as_what_ifs(text in waiting_alone()) {
        for TriedRemedy { remedy, is_placed, .. } in try_remedies_beside_start(&text) {
            prop_assert!(is_placed, "{text}\n{remedy:?}");
        }
    }
}

#[test]
fn ans_32_several_changes_together_place_the_job_when_an_end_has_come() {
    let text = "node n cpu=4 zone=b taint=x:NoSchedule
        job k priority=2 running
          task a cpu=4 @n running priority=2 started=0 annotation.reservation.volcano.sh/runtime=100m
        job j priority=1
          task a cpu=4 selector.zone=a priority=1";
    let tried = try_remedies_beside_start(text);
    let together = tried.iter().find(|it| it.remedy.kind == RemedyKind::Together).unwrap();
    assert!(together.remedy.at_micros.is_some(), "{:?}", together.remedy);
    assert_eq!((together.n_changes, together.is_placed), (2, true), "{:?}", together.remedy);
}

/// Returns what the remedy `selector` of the job `j` changes.
fn changed_selector(it: &Asked) -> Option<RemedyChange> {
    let remedies = it.why("j").unblock;
    remedies.into_iter().find(|it| it.kind == RemedyKind::Selector).unwrap().change
}

/// Asks about a job with these tasks, for which zone a has room.
fn with_selectors(tasks: &str) -> Asked {
    let text = format!("node n cpu=4 zone=a pool=c\njob j min=2\n{tasks}");
    Asked::new(&conf("allocate", "gang predicates"), &text)
}

#[test]
fn ans_32_a_node_selector_without_the_label_keeps_the_others() {
    let it = with_selectors("task a cpu=1 selector.zone=b selector.pool=c x2");
    let labels = [(Arc::from("pool"), Arc::from("c"))].into();
    let change = RemedyChange::NodeSelector { job: ObjectKey::new("default", "j"), labels };
    assert_eq!(changed_selector(&it), Some(change.clone()));
    assert_eq!(it.what_if(change.as_changes()).placed.len(), 2);
    // Both have none without it.
    let it = with_selectors("task a cpu=1 selector.zone=b\ntask b cpu=1");
    let change = changed_selector(&it).unwrap();
    assert_eq!(it.what_if(change.as_changes()).placed.len(), 2);
}

/// A what-if sets one node selector for all pods, and no affinity.
#[test]
fn ans_32_selectors_that_differ_and_affinities_are_no_change() {
    let it = with_selectors("task a cpu=1 selector.zone=b selector.pool=c\ntask b cpu=1");
    assert_eq!(changed_selector(&it), None);
    let mut events = events_of("node n cpu=4 zone=a\njob j\ntask a cpu=1");
    for event in &mut events {
        if let ClusterEvent::PodApplied(pod) = event {
            let values = vec!["b".into()];
            let zone = Requirement { key: "zone".into(), operator: Operator::In, values };
            let term = NodeSelectorTerm { match_expressions: vec![zone], match_fields: Vec::new() };
            pod.node_affinity = NodeAffinity { required: Some(vec![term]), preferred: Vec::new() };
        }
    }
    let mut it = Asked::new(&conf("allocate", "gang predicates"), "");
    it.cycle(events);
    assert_eq!(changed_selector(&it), None);
}

#[test]
fn ans_34_shapes_of_nodes() {
    let mut text: String = (0..9).map(|at| format!("node n{at} cpu={} x=y\n", at + 4)).collect();
    text.push_str("node t cpu=64 taint=x:NoSchedule\n");
    (0..9).for_each(|at| {
        text.push_str(&format!("job k{at} running\n task a cpu={} @n{at} running\n", at + 4));
    });
    text.push_str("job j\n task a cpu=1");
    let it = Asked::new(&conf("allocate", "gang predicates"), &text);
    let remedies = it.remedies("j");
    assert_eq!(remedies.len(), 8, "{remedies:?}");
    assert_eq!(remedies[0], "you: tolerate x:NoSchedule: t");
    assert_eq!(remedies[1], "you: end default/k0");
    assert_eq!(remedies[2], "admin: 1 more node like n0");
    assert!(remedies.iter().all(|text| !text.contains("like t")), "a tainted shape is left out");
}

#[test]
fn ans_36_remedies_of_the_user_come_first() {
    let text = "node a cpu=4 unschedulable\nnode b cpu=4 taint=x:NoSchedule\nnode c cpu=4
        job k running\n task a cpu=2 @c running\njob j\n task a cpu=3";
    let it = Asked::new(&conf("allocate", "gang predicates"), text);
    assert_eq!(
        it.remedies("j"),
        [
            "you: tolerate x:NoSchedule: b",
            "you: ask for at most 2 cpu a pod: c",
            "you: end default/k",
            "admin: uncordon nodes: a",
            "admin: 1 more node like c",
        ]
    );
}

/// Only the jobs to end among the remedies.
fn ending(actions: &str, tiers: &str, text: &str) -> Vec<String> {
    let it = Asked::new(&conf(actions, tiers), text);
    it.remedies("ml/j").into_iter().filter(|text| text.contains(": end ")).collect()
}

#[test]
fn ans_35_jobs_to_end_are_small_ones_of_the_own_namespace() {
    let nodes = "node a cpu=4\nnode b cpu=4\nnode c cpu=4 taint=x:NoSchedule\n";
    let running = |jobs: &[&str]| -> String {
        jobs.iter().map(|job| format!("job {job} running\n")).collect()
    };
    let asks = |text: String| ending("allocate", "gang predicates", &(nodes.to_owned() + &text));
    let asked = "job ml/j min=2\n task a cpu=2 x2\n";
    // Nodes a and b are full.
    let four = running(&[
        "ml/k0\n task a cpu=2 @a running",
        "ml/k1\n task a cpu=1 x2 @a running",
        "ml/k2\n task a cpu=1 x4 @b running",
        "z/k3\n task a cpu=4 @c running",
    ]);
    // The smallest one leaves room for one of two.
    assert_eq!(asks(four + asked), ["you: end ml/k0 and ml/k1"]);
    // Either job would do, and the one of the own namespace is named, although it has more pods.
    let others = running(&["a/k0\n task a cpu=4 @a running", "ml/k1\n task a cpu=2 x2 @b running"]);
    assert_eq!(asks(others + asked), ["you: end ml/k1"]);
    let others = running(&["a/k0\n task a cpu=4 @a running", "a/k1\n task a cpu=2 x2 @b running"]);
    assert_eq!(asks(others + asked), ["admin: end a/k0"]);
    let tainted = running(&[
        "ml/k0\n task a cpu=1 @c running",
        "ml/k1\n task a cpu=4 @a running",
        "ml/k2\n task a cpu=4 @b running",
    ]);
    let whole_node = "job ml/j\n task a cpu=4\n";
    assert_eq!(asks(tainted + whole_node), ["you: end ml/k1"], "c is tainted");
    // Nine small ones would do, and so does a large one.
    let small: Vec<String> =
        (0..9).map(|at| format!("ml/k{at}\n task a cpu=1 @e running")).collect();
    let mut jobs: Vec<&str> = small.iter().map(String::as_str).collect();
    jobs.push("ml/large\n task a cpu=1 @d running\n task b cpu=15 @d running");
    jobs.push("z/full\n task a cpu=4 @a running\n task b cpu=4 @b running");
    let asked = "job ml/j min=9\n task a cpu=1 x9\n";
    let text = "node d cpu=16\nnode e cpu=9\n".to_owned() + &running(&jobs) + asked;
    assert_eq!(asks(text), ["you: end ml/large"]);
}

#[test]
fn ans_35_jobs_to_end_of_a_queue_that_is_at_its_limit() {
    let text = "node a cpu=9
        queue q cap.cpu=4
        job ml/k0 queue=q running
          task a cpu=3 @a running
        job ml/a running
          task a cpu=3 @a running
        job ml/j queue=q
          task a cpu=3";
    let found = ending("allocate", "gang predicates capacity", text);
    assert_eq!(found, ["you: end ml/k0"], "what another queue holds does not count against it");
}

#[test]
fn ans_28_remedies_of_pods_without_a_group_have_changes() {
    let settings = Settings { bare_pods: true, ..Settings::default() };
    let config = conf("allocate", "gang predicates");
    let asked =
        |text: &str| Asked::with_options(EngineOptions::from(settings.clone()), &config, text);
    let n_placed = |it: &Asked, remedy: &Remedy| {
        let placed = it.what_if(remedy.change.as_ref().unwrap().as_changes()).placed;
        placed.iter().filter(|row| &*row.pod.name == "p").count()
    };
    let it = asked("node n cpu=4 taint=x:NoSchedule\npod p cpu=2");
    let why = it.why("p");
    let tolerate = why.unblock.iter().find(|it| it.kind == RemedyKind::Tolerate).unwrap();
    assert_eq!(n_placed(&it, tolerate), 1);
    // The name stands for the PodGroup.
    let it = asked("node n cpu=4 taint=x:NoSchedule\njob p\npod p cpu=2");
    let (mut state, cluster) = (it.state(), it.engine.cluster());
    let pod = cluster.task_named(&ObjectKey::new("default", "p")).unwrap();
    let subject = Subject { job: cluster.tasks[pod].job, pod: Some(pod) };
    let why = explain(&mut state, subject, Depth::Full);
    let tolerate = why.unblock.iter().find(|it| it.kind == RemedyKind::Tolerate).unwrap();
    assert_eq!(tolerate.change, None);
    let it = asked("node n cpu=4\npod q cpu=3 @n running\npod p cpu=2");
    let why = it.why("p");
    let end = why.unblock.iter().find(|it| it.kind == RemedyKind::EndJobs).unwrap();
    assert_eq!(end.text, "end default/q");
    assert_eq!(n_placed(&it, end), 1);
}

/// A job before it would take the room.
#[test]
fn ans_35_no_job_is_ended_for_another_one() {
    let text = "node a cpu=4
        job k running
          task a cpu=4 @a running
        job first priority=9
          task a cpu=4
        job j priority=1
          task a cpu=4";
    let it = Asked::new(&conf("enqueue, allocate", "priority gang predicates"), text);
    let ends = |name: &str| {
        let remedies = it.why_with_start(name).unblock;
        remedies.iter().any(|remedy| remedy.kind == RemedyKind::EndJobs)
    };
    assert_eq!([ends("first"), ends("j")], [true, false]);
}

/// The volume of `x` is promised to its node as long as `x` has not ended, also after a trial in which it had.
#[test]
fn ans_35_a_job_that_is_put_back_keeps_its_claim() {
    let text = "class slow provisioner=d delayed
        pvc data 5Gi class=slow
        node n1 cpu=2 at=1
        node n3 cpu=2 at=3
        csinode n1 d=9
        csinode n3 d=9
        job a running
          task w cpu=1 @n1 running
        job x priority=9
          task w cpu=1 pvc=data selector.at=1
        job j
          task w cpu=2 pvc=data";
    let it = Asked::new(&conf("allocate", "priority gang predicates"), text);
    let ends = |text: &String| text.contains(": end ");
    let remedies: Vec<String> = it.remedies("j").into_iter().filter(ends).collect();
    assert_eq!(remedies, ["you: end default/x"]);
}

/// A pod whose node is gone counts for no spread constraint once it is being deleted. A trial in which it has
/// ended changes nothing for the next question.
#[test]
fn ans_35_a_deleting_pod_of_unknown_phase_is_put_back_as_it_was() {
    let mut events = events_of(
        "node a cpu=4 zone=a\nnode b cpu=4 zone=b
         job k running\n task w cpu=4 @a releasing unknown label.app=web
         job first\n task w cpu=4 selector.zone=a
         job s min=2\n task w cpu=2 x2 label.app=web",
    );
    let labels = [(Arc::from("app"), Arc::from("web"))].into();
    let labels = LabelSelector { match_labels: labels, ..LabelSelector::default() };
    for event in &mut events {
        if let ClusterEvent::PodApplied(pod) = event
            && pod.key.name.starts_with("s-")
        {
            pod.spread = vec![SpreadConstraint {
                topology_key: "zone".into(),
                max_skew: 1,
                when: Unsatisfiable::DoNotSchedule,
                labels: Some(labels.clone()),
                ..SpreadConstraint::default()
            }];
        }
    }
    let mut it = Asked::new(&conf("allocate", "gang predicates"), "");
    it.cycle(events);
    let ends = |remedies: &[Remedy]| remedies.iter().any(|it| it.kind == RemedyKind::EndJobs);
    let mut state = it.state();
    for _ in 0..2 {
        assert!(ends(&it.why_in(&mut state, "first").unblock));
        assert_eq!(it.why_in(&mut state, "s"), it.why("s"));
    }
}
