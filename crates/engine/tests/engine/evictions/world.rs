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
    words: &'static str,
    waiting: Vec<Task>,
}

#[derive(Clone, Debug)]
struct Node {
    cpu: u32,
    pods: u32,
    words: &'static str,
    /// Job and pod, where there is room.
    slots: Vec<Option<(usize, Task)>>,
}

/// How scarce what is.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// How many nodes.
    pub(crate) nodes: Range<usize>,
    /// Pods that wait and are alike.
    pub(crate) copies: Range<u32>,
    /// Pod slots of a node.
    pub(crate) slots: Range<u32>,
    /// Pods may ask for nothing.
    pub(crate) best_effort: bool,
    /// Pods may ask for a host port.
    pub(crate) ports: bool,
    pub(crate) with: With,
}

/// What holds evictions back, or lets jobs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum With {
    Nothing,
    /// A disruption budget covers the pods of two jobs.
    Budget,
    /// Pods may have been scheduled a moment ago.
    Cooldown,
    /// Nodes that are revocable: `open` always usable, `shut` never; jobs with budgets of their own.
    Zones,
    /// A quota of the namespace; jobs may have yet to be admitted.
    Quota,
    /// Queues are guaranteed something and have parents.
    Guarantees,
    /// HyperNodes; jobs may have to stay in one of them.
    HyperNodes,
}

/// One of these words; those of weight 0 are never drawn.
fn weighted(words: &[(usize, &'static str)]) -> impl Strategy<Value = &'static str> + use<> {
    let times = |&(weight, word): &(usize, &'static str)| std::iter::repeat_n(word, weight);
    prop::sample::select(words.iter().flat_map(times).collect::<Vec<_>>())
}

fn task(shape: &Shape) -> impl Strategy<Value = Task> + use<> {
    let least = if shape.best_effort { 0 } else { 1 };
    let ports = if shape.ports { 3 } else { 0 };
    let cools = if shape.with == With::Cooldown { 2 } else { 0 };
    let marked = if shape.with == With::Zones { 6 } else { 0 };
    let words = weighted(&[
        (8, ""),
        (1, "pre=false"),
        (1, "never"),
        (1, "class=system-node-critical"),
        (ports, "port=80"),
        (cools, "scheduled=3590 annotation.volcano.sh/cooldown-time=12s"),
        (cools, "scheduled=3590 annotation.volcano.sh/cooldown-time=1h"),
        (marked, "pre=true"),
    ]);
    let copies = match shape.copies.len() {
        1 => Just(shape.copies.start).boxed(),
        _ => shape.copies.clone().boxed(),
    };
    let parts = (least..5_u32, 0..3_u32, words, copies);
    parts.prop_map(|(cpu, priority, words, copies)| Task { cpu, priority, words, copies })
}

fn queue(shape: &Shape) -> impl Strategy<Value = String> + use<> {
    let may_give = prop::bool::weighted(0.9);
    let amount = || prop::option::of(2_u32..8);
    let guarantee = match shape.with {
        With::Guarantees => prop::option::weighted(0.7, 1_u32..5).boxed(),
        _ => Just(None).boxed(),
    };
    let parts = (1_u32..4, amount(), amount(), guarantee, may_give);
    parts.prop_map(|(weight, cap, deserved, guarantee, gives)| {
        let word = |name, amount: Option<u32>| {
            amount.map_or(String::new(), |cpu| format!("{name}.cpu={cpu}"))
        };
        let amounts = [("cap", cap), ("deserved", deserved), ("guarantee", guarantee)];
        let amounts = amounts.map(|(name, amount)| word(name, amount)).join(" ");
        format!("weight={weight} reclaimable={gives} {amounts}")
    })
}

fn node(shape: &Shape) -> impl Strategy<Value = Node> + use<> {
    let slot = prop::option::weighted(0.8, (0_usize..5, task(shape)));
    let slots = prop::collection::vec(slot, 0..5);
    let zoned = if shape.with == With::Zones { 1 } else { 0 };
    let words = weighted(&[
        (2, ""),
        (zoned, "volcano.sh/revocable-zone=open"),
        (zoned, "volcano.sh/revocable-zone=shut"),
    ]);
    (2_u32..7, shape.slots.clone(), words, slots).prop_map(|(cpu, pods, words, slots)| Node {
        cpu,
        pods,
        words,
        slots,
    })
}

fn job(shape: &Shape) -> impl Strategy<Value = Job> + use<> {
    let budgets = if shape.with == With::Zones { 1 } else { 0 };
    let outside = if shape.with == With::Quota { 3 } else { 0 };
    let networks = if shape.with == With::HyperNodes { 1 } else { 0 };
    let words = weighted(&[
        (2, ""),
        (budgets, "annotation.volcano.sh/jdb-max-unavailable=1"),
        (budgets, "annotation.volcano.sh/jdb-min-available=50%"),
        (outside, "pending minres.cpu=2"),
        (outside, "pending minres.cpu=4"),
        (2 * networks, "topology=hard"),
        (networks, "topology=hard:2"),
        (networks, "topology=soft"),
        (networks, "policy.g=2x1:hard"),
        (networks, "topology=hard:2 policy.g=1x2:hard"),
    ]);
    let waiting = prop::collection::vec(task(shape), 0..4);
    (0_u32..2, 0_u32..4, 0_u32..3, words, waiting).prop_map(
        |(queue, min, priority, words, waiting)| Job { queue, min, priority, words, waiting },
    )
}

/// Some nodes, 5 jobs in 2 queues.
pub(crate) fn clusters(shape: &Shape) -> impl Strategy<Value = String> + use<> {
    let with = shape.with;
    let parts = (
        prop::collection::vec(node(shape), shape.nodes.clone()),
        prop::collection::vec(queue(shape), 3),
        prop::collection::vec(job(shape), 5),
        (0_u32..3, 3_u32..9),
    );
    parts.prop_map(move |(nodes, mut queues, jobs, (allowed, hard))| {
        let text = match with {
            With::Budget => format!("budget b label.app={COVERED} allowed={allowed}\n"),
            With::Quota => format!("quota b hard.cpu={hard}\n"),
            With::Guarantees => format!("queue parent {}\n", queues[2]),
            With::Nothing | With::Cooldown | With::Zones | With::HyperNodes => String::new(),
        };
        queues.truncate(2);
        if with == With::Guarantees {
            queues[0].push_str(" parent=parent");
        }
        let text = format!("{text}{}", cluster_text(&nodes, &queues, &jobs));
        match with {
            With::HyperNodes => in_sub_groups(&text),
            _ => text,
        }
    })
}

/// Two racks in a zone, of which nodes may be missing.
pub(crate) const RACKS: &str = "hypernode rack-0 node=n0 node=n1
    hypernode rack-1 node=n2 node=n3
    hypernode zone tier=2 member=rack-0 member=rack-1";

/// Label `app` of the pods that the budget covers: those of the first two jobs.
pub(super) const COVERED: &str = "covered";

/// Gives the pods of each job one of two labels in turn.
fn in_sub_groups(text: &str) -> String {
    let lines = text.lines().enumerate().map(|(number, line)| {
        let label = if line.contains("  task ") {
            format!(" label.g={}", number % 2)
        } else {
            String::new()
        };
        format!("{line}{label}\n")
    });
    lines.collect()
}

fn label(job: usize) -> &'static str {
    if job < 2 { "label.app=covered" } else { "" }
}

fn cluster_text(nodes: &[Node], queues: &[String], jobs: &[Job]) -> String {
    let mut text = String::new();
    let mut running: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        text.push_str(&format!(
            "node n{index} cpu={} pods={} {}\n",
            node.cpu, node.pods, node.words
        ));
        for (job, words) in fill(index, node) {
            running.entry(job).or_default().push(words);
        }
    }
    for (index, words) in queues.iter().enumerate() {
        text.push_str(&format!("queue q{index} {words}\n"));
    }
    for (index, Job { queue, min, priority, words, waiting }) in jobs.iter().enumerate() {
        let running = running.remove(&index).unwrap_or_default();
        // A job whose pods run was admitted.
        let words = if running.is_empty() || !words.starts_with("pending") { words } else { "" };
        // Without a minimum its phase is Running at once (actions.md 10.1), admitted or not.
        let min = if words.starts_with("pending") { (*min).max(1) } else { *min };
        text.push_str(&format!(
            "job j{index} queue=q{queue} min={min} priority={priority} {words}\n"
        ));
        for (task, words) in running.iter().enumerate() {
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
