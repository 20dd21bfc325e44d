//! Random small clusters whose nodes hold what runs on them, as the text of `support::text`.

use std::collections::BTreeMap;
use std::ops::Range;

use proptest::prelude::*;

/// What a pod asks for besides cpu.
#[derive(Clone, Debug)]
struct Task {
    cpu: u32,
    priority: u32,
    words: &'static str,
    /// Pods like this one.
    copies: u32,
}

#[derive(Clone, Debug)]
struct Job {
    queue: u32,
    min: u32,
    priority: u32,
    waiting: Vec<Task>,
}

#[derive(Clone, Debug)]
struct Node {
    cpu: u32,
    pods: u32,
    /// Job and pod, where there is room.
    slots: Vec<Option<(usize, Task)>>,
}

/// How scarce what is.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// How many nodes.
    pub(super) nodes: Range<usize>,
    /// Pods that wait and are alike.
    pub(super) copies: Range<u32>,
    /// Pod slots of a node.
    pub(super) slots: Range<u32>,
    /// Pods may ask for nothing.
    pub(super) best_effort: bool,
    /// Pods may ask for a host port.
    pub(super) ports: bool,
    /// A disruption budget covers the pods of two jobs.
    pub(super) budget: bool,
}

fn task(shape: &Shape) -> impl Strategy<Value = Task> + use<> {
    let least = if shape.best_effort { 0 } else { 1 };
    let ports = if shape.ports { 3 } else { 0 };
    let words = prop_oneof![
        8 => Just(""),
        1 => Just("pre=false"),
        1 => Just("never"),
        1 => Just("class=system-node-critical"),
        ports => Just("port=80"),
    ];
    let copies = match shape.copies.len() {
        1 => Just(shape.copies.start).boxed(),
        _ => shape.copies.clone().boxed(),
    };
    let parts = (least..5_u32, 0..3_u32, words, copies);
    parts.prop_map(|(cpu, priority, words, copies)| Task { cpu, priority, words, copies })
}

/// Some nodes, 5 jobs in 2 queues.
pub(super) fn clusters(shape: &Shape) -> impl Strategy<Value = String> + use<> {
    let may_give = prop::bool::weighted(0.9);
    let amount = || prop::option::of(2_u32..8);
    let queue = (1_u32..4, amount(), amount(), may_give);
    let queue = queue.prop_map(|(weight, cap, deserved, gives)| {
        let word = |name, amount: Option<u32>| {
            amount.map_or(String::new(), |cpu| format!("{name}.cpu={cpu}"))
        };
        let (cap, deserved) = (word("cap", cap), word("deserved", deserved));
        format!("weight={weight} reclaimable={gives} {cap} {deserved}")
    });
    let slot = prop::option::weighted(0.8, (0_usize..5, task(shape)));
    let slots = prop::collection::vec(slot, 0..5);
    let node = (2_u32..7, shape.slots.clone(), slots).prop_map(|(cpu, pods, slots)| Node {
        cpu,
        pods,
        slots,
    });
    let waiting = prop::collection::vec(task(shape), 0..4);
    let job = (0_u32..2, 0_u32..4, 0_u32..3, waiting)
        .prop_map(|(queue, min, priority, waiting)| Job { queue, min, priority, waiting });
    let parts = (
        prop::collection::vec(node, shape.nodes.clone()),
        prop::collection::vec(queue, 2),
        prop::collection::vec(job, 5),
        if shape.budget { (0_u32..3).prop_map(Some).boxed() } else { Just(None).boxed() },
    );
    parts.prop_map(|(nodes, queues, jobs, budget)| {
        let budget =
            budget.map_or(String::new(), |n| format!("budget b label.app={COVERED} allowed={n}\n"));
        budget + &text(&nodes, &queues, &jobs)
    })
}

/// Label `app` of the pods that the budget covers: those of the first two jobs.
pub(super) const COVERED: &str = "covered";

fn label(job: usize) -> &'static str {
    if job < 2 { "label.app=covered" } else { "" }
}

fn text(nodes: &[Node], queues: &[String], jobs: &[Job]) -> String {
    let mut text = String::new();
    let mut running: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        text.push_str(&format!("node n{index} cpu={} pods={}\n", node.cpu, node.pods));
        for (job, words) in fill(index, node) {
            running.entry(job).or_default().push(words);
        }
    }
    for (index, words) in queues.iter().enumerate() {
        text.push_str(&format!("queue q{index} {words}\n"));
    }
    for (index, Job { queue, min, priority, waiting }) in jobs.iter().enumerate() {
        text.push_str(&format!("job j{index} queue=q{queue} min={min} priority={priority}\n"));
        for (task, words) in running.remove(&index).unwrap_or_default().iter().enumerate() {
            text.push_str(&format!("  task r{task} {words} {}\n", label(index)));
        }
        for (place, task) in waiting.iter().enumerate() {
            let copies = if task.copies == 1 { String::new() } else { format!("x{}", task.copies) };
            text.push_str(&format!("  task w{place} {} {} {copies}\n", line(task), label(index)));
        }
    }
    text
}

/// What fits of the slots: cpu, pods and the one host port there is.
fn fill(index: usize, node: &Node) -> Vec<(usize, String)> {
    let (mut cpu, mut pods, mut port_is_free) = (node.cpu, node.pods, true);
    let mut filled = Vec::new();
    for (job, task) in node.slots.iter().flatten() {
        let wants_port = task.words.starts_with("port");
        if cpu < task.cpu || pods == 0 || (wants_port && !port_is_free) {
            continue;
        }
        (cpu, pods, port_is_free) = (cpu - task.cpu, pods - 1, port_is_free && !wants_port);
        filled.push((*job, format!("@n{index} running {}", line(task))));
    }
    filled
}

fn line(Task { cpu, priority, words, .. }: &Task) -> String {
    match cpu {
        0 => format!("priority={priority} {words}"),
        cpu => format!("cpu={cpu} priority={priority} {words}"),
    }
}
