//! What is kept of a trial: an answer is the same with nothing kept, with the plain evaluator, and in
//! a state that was asked about other jobs before. Specification: answers.md 1 (ANS-1), 20, case 29.

use std::collections::BTreeMap;

use proptest::prelude::*;
use vc_answers::{Explanation, explain_waiting};
use vc_engine::Evaluator;

use crate::support::{Asked, conf, random_cases, without_sets};

/// What pods of a job ask for and need. Jobs of one shape differ by name and creation.
fn shape() -> impl Strategy<Value = String> {
    let amounts = (1..4_i64, 1..7_i64, 0..2_i64, 1..3_i64);
    let marks = prop::sample::select(vec![
        "",
        "",
        "",
        "selector.zone=a",
        "selector.zone=b selector.pool=c",
        "disk=d",
        "label.app=web",
        "pvc=data",
        "gate=example.com/wait",
        "role=ps",
    ]);
    (amounts, marks, any::<bool>()).prop_map(|((min, cpu, gpu, more), mark, urgent)| {
        let gpu = if gpu == 0 { String::new() } else { format!("gpu={gpu}") };
        let priority = if urgent { 10 } else { 0 };
        let n_pods = min + more - 1;
        format!("{min} {priority}|task a cpu={cpu} {gpu} {mark} priority={priority} x{n_pods}")
    })
}

/// Returns the part of a name before the name itself: the namespace, if it is not `default`.
fn namespace(is_other: bool) -> &'static str {
    if is_other { "ml/" } else { "" }
}

/// Jobs that run on the first nodes.
fn running() -> impl Strategy<Value = String> {
    let phases = vec!["running", "running", "running", "releasing", "releasing unknown"];
    let phase = prop::sample::select(phases);
    let jobs = prop::collection::vec((1..3_i64, 0..2_usize, any::<bool>(), phase), 0..4);
    jobs.prop_map(|jobs| {
        let jobs = jobs.iter().enumerate().map(|(at, (cpu, node, is_other, phase))| {
            let namespace = namespace(*is_other);
            format!("job {namespace}r{at} running\n task a cpu={cpu} @n{node} {phase}\n")
        });
        jobs.collect()
    })
}

/// A few nodes, and jobs of at most four shapes in two queues and two namespaces.
pub(crate) fn cluster() -> impl Strategy<Value = String> {
    let marks = vec![
        "",
        "zone=a",
        "zone=b",
        "zone=b pool=c",
        "taint=x:NoSchedule",
        "taint=x:NoSchedule taint=y:NoExecute",
        "unschedulable",
    ];
    let nodes = prop::collection::vec((1..9_i64, 0..3_i64, prop::sample::select(marks)), 1..6);
    let shapes = prop::collection::vec(shape(), 1..4);
    let topology = prop::sample::select(vec!["", "", "topology=soft", "topology=hard:1"]);
    let marks = (any::<bool>(), any::<bool>(), any::<bool>(), topology);
    let jobs = prop::collection::vec((0..4_usize, marks), 1..9);
    let hyper_nodes = prop::sample::select(vec!["", "hypernode h tier=1 node=n0 node=n1\n"]);
    let all = (nodes, shapes, jobs, running(), 1..20_i64, hyper_nodes);
    all.prop_map(|(nodes, shapes, jobs, running, cap, hyper_nodes)| {
        let mut text = format!("queue a cap.cpu={cap}\nqueue b\n{hyper_nodes}");
        for (at, (cpu, gpu, mark)) in nodes.iter().enumerate() {
            let gpu = if *gpu == 0 { String::new() } else { format!("gpu={gpu}") };
            text.push_str(&format!("node n{at} cpu={cpu} {gpu} {mark}\n"));
        }
        text.push_str("job old running\n task a cpu=1 @n0 releasing\n");
        text.push_str(&running);
        for (at, (shape, (in_b, admitted, is_other, topology))) in jobs.iter().enumerate() {
            let (head, task) = shapes[shape % shapes.len()].split_once('|').unwrap();
            let (min, priority) = head.split_once(' ').unwrap();
            let queue = if *in_b { "b" } else { "a" };
            let state = if *admitted { "inqueue" } else { "minres.cpu=2" };
            let namespace = namespace(*is_other);
            let order = format!("min={min} priority={priority} created={at}");
            text.push_str(&format!(
                "job {namespace}j{at} queue={queue} {order} {topology} {state}\n {task}\n"
            ));
        }
        text
    })
}

/// Jobs without pods and of closed queues differ in nothing but their queue.
#[test]
fn ans_29_verdicts_of_jobs_without_pods_name_their_own_queue() {
    let text = "node n cpu=1\nqueue a state=Closed\nqueue b\nqueue c state=Closed
        job x queue=a min=0 inqueue\njob y queue=b min=0 inqueue\njob z queue=c min=0 inqueue";
    let config = conf("enqueue, allocate", "priority gang predicates proportion");
    let [plain, fast] = [Evaluator::Plain, Evaluator::Fast]
        .map(|evaluator| Asked::evaluated(evaluator, &config, text).all());
    assert_eq!(fast, plain);
    let texts: Vec<&str> = fast.iter().map(|it| it.verdict.text.as_str()).collect();
    assert!(texts[0].contains("queue a") && texts[2].contains("queue c"), "{texts:?}");
}

/// Of the second job of a shape fewer trials are run, and none of one that was asked about.
#[test]
fn ans_29_trials_are_counted_by_what_told_their_results() {
    let text = "node n1 cpu=4\njob run running\n task a cpu=4 @n1 running
        job x\n task a cpu=2\njob y\n task a cpu=2";
    let it = Asked::evaluated(Evaluator::Fast, &conf("allocate", "gang predicates"), text);
    let mut state = it.state();
    let mut counts = |name: &str| {
        it.why_in(&mut state, name);
        state.take_trial_counts().collect::<BTreeMap<_, _>>()
    };
    let (x, y) = (counts("x"), counts("y"));
    assert!(y.get("none") < x.get("none"), "{x:?} {y:?}");
    assert!(y.contains_key("known_trials") && y.contains_key("changed_copy"), "{y:?}");
    assert!(counts("x").is_empty());
    let listed = explain_waiting(&mut state);
    assert_eq!(listed.len(), 2);
    let of_list: Vec<(&str, u64)> = state.take_trial_counts().collect();
    assert!(of_list.contains(&("known_verdicts", 1)), "{of_list:?}");
}

proptest! {
    #![proptest_config(random_cases(150))]

    #[test]
    fn ans_29_what_is_kept_changes_no_answer(
        text in cluster(),
        (reclaims, in_hyper_nodes) in any::<(bool, bool)>(),
    ) {
        let actions = if reclaims { "enqueue, allocate, reclaim" } else { "enqueue, allocate" };
        let plugin = if in_hyper_nodes { "network-topology-aware" } else { "" };
        let tiers = "priority gang conformance | overcommit predicates capacity nodeorder binpack";
        let config = conf(actions, &format!("{tiers} {plugin}"));
        let plain = Asked::evaluated(Evaluator::Plain, &config, &text);
        let fast = Asked::evaluated(Evaluator::Fast, &config, &text);
        let listed: Vec<Explanation> = fast.all();
        prop_assert_eq!(&listed, &plain.all(), "{}", text);
        let mut state = fast.state();
        // The second time everything is known.
        for _ in 0..2 {
            for it in &listed {
                let name = it.subject.key.to_string();
                let known = fast.why_in(&mut state, &name);
                prop_assert_eq!(&known, &plain.why(&name), "{} in\n{}", name, text);
            }
            prop_assert_eq!(&*explain_waiting(&mut state), &listed, "all in\n{}", text);
            if let Some(first) = listed.first() {
                let name = first.subject.key.to_string();
                let alone = fast.why_with_start_alone_in(&mut state, &name);
                let known = fast.why_with_start_in(&mut state, &name);
                prop_assert_eq!(&known, &plain.why_with_start(&name), "{} in\n{}", name, text);
                prop_assert_eq!(&alone, &without_sets(known), "{} in\n{}", name, text);
            }
        }
    }
}
