//! Blocking sets. Specification: answers.md 20, cases 19, 20, 22 to 28, 31. Further atoms are in `atoms.rs`.

use std::sync::Arc;

use proptest::prelude::*;
use vc_answers::{
    Depth, LeftOut, RemedyKind, SubjectKind, SubjectQuery, explain, find_subject, try_lifted,
};
use vc_engine::Evaluator;
use vc_model::fixture::events_of;
use vc_model::{
    ClusterEvent, LabelSelector, PodAffinity, PodSelector, PodTerm, SpreadConstraint, Unsatisfiable,
};

use crate::support::{Asked, conf, random_cases, sets};

const PLAIN: &str = "gang predicates nodeorder";

fn asked(text: &str) -> Asked {
    Asked::new(&conf("enqueue, allocate", PLAIN), text)
}

#[test]
fn ans_25_limits_are_named_by_the_field_that_sets_them() {
    let shared = "node n cpu=16\nqueue b\nqueue a
        job big queue=b\n task a cpu=4 selector.zone=none x4
        job k queue=a running\n task a cpu=2 @n running x4
        job j queue=a\n task a cpu=2";
    let capped = "node n cpu=64\nqueue q cap.cpu=3
        job k queue=q running\n task a cpu=3 @n running
        job j queue=q\n task a cpu=5";
    let admitted = "node n cpu=4\nquota x hard.cpu=8\njob j minres.cpu=9\n task a cpu=2";
    let whole = "the cluster without spec.guarantee of other queues";
    for (plugin, atom, text, place) in [
        ("capacity", "share/capacity", capped, "Queue q spec.capability"),
        ("proportion", "share/proportion", shared, "Queue a spec.weight"),
        ("proportion", "admission/proportion", admitted, whole),
        ("overcommit", "admission/overcommit", admitted, "the cluster (overcommit-factor)"),
        (
            "resourcequota",
            "admission/resourcequota",
            admitted,
            "ResourceQuota of namespace default",
        ),
    ] {
        let tiers = format!("gang predicates {plugin}");
        let why = Asked::new(&conf("enqueue, allocate", &tiers), text).why("j");
        let mut atoms = why.blocking.iter().flat_map(|it| &it.sets).flat_map(|set| &set.atoms);
        let found = atoms.find(|it| it.atom == atom).map(|it| it.place.as_str());
        assert_eq!(found, Some(place), "{atom}");
    }
}

/// A node that an atom opens attracts the first member, so that the second one would be the second of its zone, the
/// only one with GPUs.
#[test]
fn ans_22_a_node_that_is_opened_attracts_a_member_and_breaks_the_spread() {
    let mut events = events_of(
        "queue default\nnode a1 cpu=4 zone=a\nnode b1 cpu=2 gpu=1 zone=b taint=y:NoSchedule
         node b2 cpu=100 gpu=1 zone=b taint=x:NoSchedule
         job j min=2\n task a cpu=1 priority=9 label.app=web\n task b cpu=1 gpu=1 label.app=web",
    );
    let labels = [(Arc::from("app"), Arc::from("web"))].into();
    let labels = LabelSelector { match_labels: labels, ..LabelSelector::default() };
    for event in &mut events {
        if let ClusterEvent::PodApplied(pod) = event {
            pod.spread = vec![SpreadConstraint {
                topology_key: "zone".into(),
                when: Unsatisfiable::DoNotSchedule,
                labels: Some(labels.clone()),
                ..SpreadConstraint::default()
            }];
        }
    }
    let mut it = asked("");
    it.cycle(events);
    let why = it.why("j");
    let mut state = it.state();
    let job = vc_model::fixture::job(state.cluster(), "j");
    let mut starts = |atoms: &[&str]| {
        let atoms: Vec<String> = atoms.iter().map(|&atom| atom.to_owned()).collect();
        try_lifted(&mut state, job, &atoms)
    };
    let (x, y) = ("taint/x:NoSchedule", "taint/y:NoSchedule");
    assert!(!starts(&[x]) && !starts(&[x, y]) && starts(&[y]), "the first member takes b2");
    let blocking = why.blocking.as_ref().unwrap();
    assert_eq!(blocking.atoms, [x, y, "minimum"]);
    assert_eq!(sets(&why), [y, "minimum"]);
    for set in &blocking.sets {
        let atoms: Vec<&str> = set.atoms.iter().map(|atom| &*atom.atom).collect();
        assert!(starts(&atoms), "{atoms:?}");
    }
}

#[test]
fn ans_23_thirty_taints_are_twenty_four_atoms() {
    let mut text: String =
        (10..40).map(|at| format!("node n{at} cpu=4 taint=t{at}:NoSchedule\n")).collect();
    (0..3).for_each(|at| text.push_str(&format!("node m{at} cpu=4 taint=t39:NoSchedule\n")));
    text.push_str("job j min=2\n task a cpu=4 x2");
    let why = asked(&text).why("j");
    let blocking = why.blocking.as_ref().unwrap();
    assert_eq!(blocking.atoms.len(), 24);
    assert!(blocking.atoms.contains(&"filter/others".to_owned()));
    assert_eq!(sets(&why), ["taint/t39:NoSchedule", "filter/others"]);
    assert!(blocking.is_complete());
}

#[test]
fn ans_23_of_a_large_set_those_with_one_atom_less_were_tried() {
    for (n_taints, certified) in [(4, "all"), (5, "one-less")] {
        let taints = (0..n_taints).map(|at| format!(" taint=t{at}:NoSchedule"));
        let taints: String = taints.collect();
        let why = asked(&format!("node n cpu=4{taints}\njob j\n task a cpu=1")).why("j");
        let blocking = why.blocking.unwrap();
        let set = &blocking.sets[0];
        assert_eq!((blocking.sets.len(), set.atoms.len(), set.certified), (1, n_taints, certified));
        assert!(blocking.is_complete());
    }
}

#[test]
fn ans_24_room_that_jobs_before_it_hold() {
    let leaving = "node n cpu=4\njob old running\n task a cpu=4 @n releasing\n";
    let first = "job first created=1\n task a cpu=4\n";
    let it = asked(&format!("{leaving}{first}job second created=2\n task a cpu=4"));
    assert_eq!(it.sets("second"), ["order", "room/cpu"]);
    let it = asked(&format!("{leaving}{first}job second created=2\n task a cpu=5"));
    assert_eq!(it.sets("second"), [""; 0], "too large in any case");
    let it = asked(&format!("{leaving}{first}job zeroth created=0\n task a cpu=5"));
    let atoms = it.why("zeroth").blocking.unwrap().atoms;
    assert_eq!(atoms, ["room/cpu"], "a job behind it holds nothing of it");
}

#[test]
fn ans_24_a_queue_that_stands_still() {
    let text = "node n cpu=4\nqueue q fifo\njob first queue=q created=1\n task a cpu=5
        job second queue=q created=2\n task a cpu=1";
    assert_eq!(asked(text).sets("second"), ["order"]);
}

#[test]
fn ans_25_a_hard_topology() {
    let text = "node n1 cpu=4 gpu=8\nnode n2 cpu=4 gpu=8\nnode n3 cpu=4 gpu=8\nnode n4 cpu=4 gpu=8
        hypernode a tier=1 node=n1 node=n2\nhypernode b tier=1 node=n3 node=n4
        job k min=2 running\n task a gpu=8 @n2 running\n task b gpu=8 @n4 running
        job j min=2 topology=hard:1\n task a gpu=8 x2";
    let tiers = "gang predicates network-topology-aware";
    let it = Asked::new(&conf("allocate", tiers), text);
    assert_eq!(it.sets("j"), ["topology", "room/nvidia.com/gpu"]);
    // With minResources the plugin compares them with the sums of whole HyperNodes.
    let with_minimum = text.replace("topology=hard:1", "topology=hard:1 minres.gpu=16");
    let it = Asked::new(&conf("allocate", tiers), &with_minimum);
    assert_eq!(it.sets("j"), ["topology", "room/nvidia.com/gpu"]);
}

/// The root has a sum of room, also where nobody has made HyperNodes.
#[test]
fn ans_25_a_soft_topology_without_hyper_nodes() {
    let text = "node n cpu=4\njob k running\n task a cpu=4 @n running
        job j topology=soft\n task a cpu=4";
    let it = Asked::new(&conf("allocate", "gang predicates network-topology-aware"), text);
    assert_eq!(it.sets("j"), ["room/cpu"]);
    assert_eq!(it.why("j").blocking.unwrap().even_empty, Some(true));
}

#[test]
fn ans_26_anti_affinity_of_other_pods() {
    let mut events = events_of(
        "queue default\nnode n cpu=4 zone=a\njob k running\n task a cpu=1 @n running
         job j\n task a cpu=1 label.app=web",
    );
    for event in &mut events {
        if let ClusterEvent::PodApplied(pod) = event
            && pod.node_name.is_some()
        {
            let labels = [(Arc::from("app"), Arc::from("web"))].into();
            let labels = LabelSelector { match_labels: labels, ..LabelSelector::default() };
            let namespaces = vec!["default".into()];
            let pods = PodSelector { labels: Some(labels), namespaces, ..PodSelector::default() };
            let term = PodTerm { pods, topology_key: "zone".into() };
            let affinity = PodAffinity { anti_required: vec![term], ..PodAffinity::default() };
            pod.pod_affinity = Some(Arc::new(affinity));
        }
    }
    let mut it = asked("");
    it.cycle(events);
    assert_eq!(it.sets("j"), ["filter/AntiAffinityOfOthers"]);
}

#[test]
fn ans_27_a_claim_that_does_not_exist() {
    let it = asked("node n cpu=4\njob j\n task a cpu=1 pvc=data");
    assert_eq!(it.sets("j"), ["need/Volumes"]);
    let it = asked(
        "node n cpu=4\njob k running\n task a cpu=4 @n running\njob j\n task a cpu=1 pvc=data",
    );
    assert_eq!(it.sets("j"), ["need/Volumes + room/cpu"]);
}

#[test]
fn ans_28_a_lifted_label_keeps_the_other_keys() {
    let text = "node a cpu=4 zone=a type=x\nnode b cpu=4 zone=b type=y\nnode c cpu=4 zone=a type=y
        job j min=2\n task a cpu=3 x2 selector.zone=b selector.type=x";
    let it = asked(text);
    assert_eq!(it.sets("j"), ["label/type + label/zone"], "each key alone opens one node");
    let one = text.replace("min=2", "min=1").replace("x2", "");
    assert_eq!(asked(&one).sets("j"), ["label/type", "label/zone"]);
}

#[test]
fn ans_31_a_small_budget() {
    let text = "node a cpu=4 taint=x:NoSchedule\nnode b cpu=4 taint=y:NoSchedule
        job j min=2\n task a cpu=3 x2";
    let it = asked(text);
    assert_eq!(
        it.sets("j"),
        ["taint/x:NoSchedule + taint/y:NoSchedule", "minimum"].map(str::to_owned)[..1]
    );
    let mut state = it.state();
    let kind = SubjectKind::Any;
    let query = SubjectQuery { namespace: "default", name: "j", controller_uid: None, kind };
    let subject = find_subject(state.cluster(), query).unwrap();
    for units in [0, 1, 1_000, 5_000] {
        let why = explain(&mut state, subject, Depth::Within(units));
        let blocking = why.blocking.unwrap();
        assert!(!blocking.is_complete() || 1_000 < units, "{units}");
        for set in &blocking.sets {
            let atoms: Vec<String> = set.atoms.iter().map(|atom| atom.atom.clone()).collect();
            assert!(try_lifted(&mut state, subject.job.unwrap(), &atoms), "{units}");
        }
    }
}

#[test]
fn ans_31_what_was_left_out_is_named() {
    let text = "node n cpu=4\njob j\n task a cpu=8";
    let it = Asked::new(&conf("allocate", "gang predicates nodeorder"), text);
    let ask_less = vec![LeftOut::Remedy(RemedyKind::AskLess)];
    // Lifted room is one trial. Of the largest request it is known that one unit more fails.
    for (units, expected) in [
        (0, vec![LeftOut::EvenEmpty, LeftOut::Sets]),
        (1, ask_less.clone()),
        (2, ask_less),
        (2_000, Vec::new()),
    ] {
        let why = it.why_within("j", units);
        let asks_less = why.unblock.iter().any(|remedy| remedy.kind == RemedyKind::AskLess);
        assert_eq!(asks_less, expected.is_empty(), "{units}");
        assert_eq!(why.blocking.unwrap().left_out, expected, "{units}");
    }
    let minimum = "node n cpu=4\njob j min=3\n task a cpu=2 x3";
    let it = Asked::new(&conf("allocate", "gang predicates nodeorder"), minimum);
    let whole = it.why("j");
    assert!(whole.unblock.iter().any(|remedy| remedy.kind == RemedyKind::LowerMinimum));
    let budgets = [0, 1, 2_000, 4_000, 6_000, 8_000, 12_000, 16_000, 24_000, 40_000, u64::MAX];
    for units in budgets {
        let why = it.why_within("j", units);
        let blocking = why.blocking.unwrap();
        let has_all = why.unblock.len() == whole.unblock.len();
        assert_eq!(blocking.is_complete(), has_all, "{units}: {:?}", blocking.left_out);
    }
}

/// One node: free cpus, GPUs, and what stands in the way.
fn node() -> impl Strategy<Value = String> {
    let amounts = (2..6_i64, 0..3_i64, 0..4_i64);
    let marks = prop::sample::select(vec![
        "",
        "",
        "taint=x:NoSchedule",
        "taint=y:NoSchedule",
        "taint=x:NoSchedule taint=y:NoSchedule",
        "unschedulable",
        "zone=b",
        "zone=b taint=x:NoSchedule",
    ]);
    (amounts, marks).prop_map(|((cpu, gpu, busy), mark)| {
        let zone = if mark.contains("zone") { "" } else { "zone=a" };
        let gpu = if gpu == 0 { String::new() } else { format!("gpu={gpu}") };
        format!("cpu={cpu} {gpu} {zone} {mark} # {busy}")
    })
}

/// A cluster of at most eight nodes with a gang that probably waits, perhaps behind another one, and
/// perhaps for nodes of one rack of three.
fn cluster() -> impl Strategy<Value = String> {
    let nodes = prop::collection::vec(node(), 1..8);
    let job = (1..5_i64, 1..5_i64, 0..3_i64, 1..4_i64);
    let more = (any::<bool>(), any::<bool>(), 2..12_i64, any::<bool>());
    let first = prop::sample::select(vec![
        String::new(),
        String::new(),
        "job i queue=q min=2 created=1\n task a cpu=2 x2\n".to_owned(),
        "job i queue=q min=9 created=1\n task a cpu=1 x9\n".to_owned(),
    ]);
    let racks = prop::sample::select(vec!["", "", "topology=hard:1", "topology=soft"]);
    (nodes, job, more, first, racks).prop_map(|(nodes, job, more, first, topology)| {
        let ((min, cpu, gpu, extra), (zoned, open, cap, bounded)) = (job, more);
        let mut text = String::new();
        for (at, node) in nodes.iter().enumerate() {
            text.push_str(&format!("node n{at} {node}\n"));
        }
        let state = if open { "" } else { "state=Closed" };
        let cap = if bounded { format!("cap.cpu={cap}") } else { String::new() };
        text.push_str(&format!("queue q {state} {cap}\n"));
        for (at, node) in nodes.iter().enumerate() {
            let busy = node.rsplit(' ').next().unwrap_or("0");
            if busy != "0" {
                text.push_str(&format!("job k{at} running\n task a cpu={busy} @n{at} running\n"));
            }
        }
        for first in (0..nodes.len()).step_by(3) {
            let members = (first..nodes.len().min(first + 3)).map(|at| format!(" node=n{at}"));
            let members: String = members.collect();
            text.push_str(&format!("hypernode rack-{first} tier=1{members}\n"));
        }
        let gpu = if gpu == 0 { String::new() } else { format!("gpu={gpu}") };
        let zone = if zoned { "selector.zone=a" } else { "" };
        let n_pods = min + extra - 1;
        let job = format!("job j queue=q min={min} minres.cpu={cpu} created=2 {topology}");
        text.push_str(&format!("{first}{job}\n task a cpu={cpu} {gpu} {zone} x{n_pods}\n"));
        text
    })
}

proptest! {
    #![proptest_config(random_cases(150))]

    /// Cases 19 and 20: a set suffices, no proper subset does, every single is listed, and without
    /// sets all atoms together do not suffice.
    #[test]
    fn ans_19_sets_are_minimal_by_brute_force(text in cluster()) {
        let config = conf(
            "enqueue, allocate",
            "gang overcommit predicates capacity nodeorder network-topology-aware",
        );
        let it = Asked::new(&config, &text);
        let why = it.why("j");
        let Some(blocking) = &why.blocking else { return Ok(()) };
        prop_assert!(blocking.is_complete());
        prop_assume!(blocking.atoms.len() <= 8);
        // Brute force has no caches.
        let mut state = Asked::evaluated(Evaluator::Plain, &config, &text).state();
        let job = vc_model::fixture::job(state.cluster(), "j");
        let n_sets = 1_usize << blocking.atoms.len();
        let atoms_of = |bits: usize| -> Vec<String> {
            let chosen = (0..blocking.atoms.len()).filter(|at| bits & (1 << at) != 0);
            chosen.map(|at| blocking.atoms[at].clone()).collect()
        };
        let succeeds: Vec<bool> =
            (0..n_sets).map(|bits| try_lifted(&mut state, job, &atoms_of(bits))).collect();
        let bits_of = |set: &vc_answers::BlockingSet| -> usize {
            let place = |atom: &vc_answers::BlockingAtom| {
                blocking.atoms.iter().position(|other| *other == atom.atom).unwrap()
            };
            set.atoms.iter().map(|atom| 1 << place(atom)).sum()
        };
        let found: Vec<usize> = blocking.sets.iter().map(bits_of).collect();
        for &bits in &found {
            prop_assert!(succeeds[bits], "{text}\n{:?}", atoms_of(bits));
            let is_proper = |other: &usize| *other != bits && other & bits == *other;
            for subset in (0..n_sets).filter(is_proper) {
                prop_assert!(!succeeds[subset], "{text}\n{:?}", atoms_of(subset));
            }
        }
        if !succeeds[0] {
            for at in 0..blocking.atoms.len() {
                prop_assert_eq!(succeeds[1 << at], found.contains(&(1 << at)), "{}", text);
            }
            prop_assert_eq!(found.is_empty(), !succeeds[n_sets - 1], "{}", text);
        }
    }
}
