//! The notation of cohort.md, "Test cases", as objects, and what a cycle decided in the same words.

use vc_conf::Config;

use crate::support::*;

/// The rules that decide with the plugin in its cases.
pub(super) const TIERS: &str = "priority gang conformance | cohort predicates nodeorder";

/// All actions of the cases.
pub(super) fn quota() -> Config {
    conf("enqueue, allocate, preempt, reclaim", TIERS)
}

/// Queues, then running groups, then the incoming one, on one node with room for everything.
pub(super) fn case(queues: &str, running: &str, incoming: &str) -> String {
    format!("node n1 cpu=1000 pods=500\n{}", objects_of(queues, running, incoming))
}

/// The same without a node. A group's words may end with a node, `xN` pods, `minN`, and words of a
/// pod.
pub(super) fn objects_of(queues: &str, running: &str, incoming: &str) -> String {
    let mut text = String::from("queue root reclaimable=false\n");
    queues.split(';').for_each(|words| text.push_str(&queue(words)));
    for (names, words) in running.split(')').filter_map(|group| group.split_once('(')) {
        for name in names.split_whitespace() {
            text.push_str(&group(name, words, true));
        }
    }
    for (names, words) in incoming.split(')').filter_map(|group| group.split_once('(')) {
        let name = if names.trim().is_empty() { "in" } else { names.trim() };
        text.push_str(&group(name, words, false));
    }
    text
}

fn policy(word: &str) -> &str {
    match word {
        "L" => "LowerPriority",
        "LN" => "LowerOrNewerEqualPriority",
        "A" => "Any",
        other => other,
    }
}

fn queue(words: &str) -> String {
    let mut words = words.split_whitespace();
    let mut text = format!("queue {}", words.next().expect("a queue has a name"));
    for word in words {
        let annotation = |key: &str, value: &str| format!(" annotation.{key}={value}");
        text.push_str(&match (word.split_once(':'), word.strip_prefix('@')) {
            (Some(("in", value)), _) => annotation("withinClusterQueue", policy(value)),
            (Some(("re", value)), _) => annotation("reclaimWithinCohort", policy(value)),
            (Some((key, value)), _) => annotation(key, value),
            (_, Some(parent)) => format!(" parent={parent}"),
            _ if word.contains('=') => format!(" {word}"),
            _ => match word.split_once('/') {
                Some((deserved, cap)) => format!(" deserved.cpu={deserved} cap.cpu={cap}"),
                None => format!(" deserved.cpu={word}"),
            },
        });
    }
    text + "\n"
}

/// `queue priority size` and further words.
fn group(name: &str, words: &str, is_running: bool) -> String {
    let words: Vec<&str> = words.split_whitespace().collect();
    let [queue, priority, size, rest @ ..] = &words[..] else { panic!("too short: {words:?}") };
    let priority = priority.trim_start_matches('+');
    let mut job = format!("job {name} queue={queue} priority={priority}");
    let mut task = format!("  task p cpu={size}");
    let mut node = if is_running { " @n1" } else { "" }.to_owned();
    for word in rest {
        match word {
            word if word.starts_with('@') => node = format!(" {word}"),
            word if word.starts_with("min") => job.push_str(&format!(" {word}")),
            &"pending" => job.push_str(" pending"),
            word if word.starts_with("made=") => {
                job.push_str(&word.replace("made", " created"));
            }
            word => task.push_str(&format!(" {word}")),
        }
    }
    if is_running {
        job.push_str(" running");
        task.push_str(&format!("{node} running"));
    }
    format!("{job}\n{task}\n")
}

/// The groups that go, by name, with the reasons in short.
pub(super) fn targets(world: &World, cycle: &Cycle) -> String {
    let evicted = cycle.only(&["evict"]);
    let mut names: Vec<&str> = evicted
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1)?.rsplit_once("-p"))
        .map(|(name, _)| name)
        .collect();
    names.sort_unstable();
    names.dedup();
    let entry = |name: &&str| {
        let conditions = &world.group(name).status.conditions;
        let preempted = conditions.iter().find(|condition| &*condition.kind == "Preempted");
        let reason = match preempted.map(|condition| &*condition.reason) {
            Some("InClusterQueue") => "OWN",
            Some("InCohortReclamation") => "REC",
            Some("InCohortFairSharing") => "FAIR",
            Some("InCohortReclaimWhileBorrowing") => "BORR",
            other => panic!("no reason: {other:?}"),
        };
        format!("{name} {reason}")
    };
    names.iter().map(entry).collect::<Vec<_>>().join(", ")
}

/// What goes in the first cycle.
pub(super) fn decided(config: &Config, text: &str) -> String {
    let mut world = World::new(config, text);
    let cycle = world.cycle();
    targets(&world, &cycle)
}

/// The same with all actions on one large node.
pub(super) fn go(queues: &str, running: &str, incoming: &str) -> String {
    decided(&quota(), &case(queues, running, incoming))
}
