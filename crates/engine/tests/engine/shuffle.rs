//! actions.md "shuffle".

use vc_conf::Config;
use vc_framework::{EvictReason, Plugin, PluginEntry, Points, Report, Sample, SessionView};
use vc_model::TaskId;

use crate::support::*;

/// Selects the pods of one priority, and whatever else is asked to go.
struct Selector {
    priority: i32,
    also: &'static str,
}

impl Plugin for Selector {
    fn points(&self) -> Points {
        Points::VICTIM_TASKS
    }
    fn victim_tasks(&self, view: SessionView<'_>, running: &[TaskId]) -> Vec<TaskId> {
        let also = view.cluster.task_named(&key(self.also));
        let chosen = |task: &TaskId| view.cluster.tasks[*task].priority == self.priority;
        also.into_iter().chain(running.iter().copied().filter(chosen)).collect()
    }
}

fn config(tiers: &str) -> Config {
    conf("shuffle", tiers)
}

const SELECTOR: PluginEntry =
    PluginEntry::new("scorer", |_, _| Box::new(Selector { priority: 10, also: "bare" }));

const TEXT: &str = "node n1 cpu=8
    pod bare cpu=1 @n1 running
    job j1 priority=1 min=1
      task a cpu=1 priority=10 @n1 running
      task b cpu=1 priority=5 @n1 running
    job j2 min=1
      task a cpu=1 priority=10 @n1 running
    job j3 min=1
      task a cpu=1 priority=10 @n1 running class=system-node-critical
    job j4 min=1
      task a cpu=1 priority=10 @n1 bound
      task b cpu=1 priority=10";

fn shuffled(config: &Config, extra: Vec<PluginEntry>) -> (Vec<String>, Vec<Sample>) {
    let mut stage = Stage::new(config, extra, TEXT);
    let outbox = stage.session(|session| run(session, "shuffle"));
    (lines(&outbox.effects, &Report::default()), outbox.samples)
}

#[test]
fn shuffle__plugin_choice() {
    let (done, samples) = shuffled(&config("scorer gang"), vec![SELECTOR]);
    assert_eq!(done, ["evict j1-a shuffle", "evict j2-a shuffle", "evict j3-a shuffle"]);
    let counted = Sample::EvictionTransaction(EvictReason::Shuffle);
    assert!(!samples.contains(&counted), "{samples:?}");
}

#[test]
fn shuffle__nobody_selects() {
    let (done, _) = shuffled(&config("priority gang conformance drf proportion"), Vec::new());
    assert_eq!(done, Vec::<String>::new());
}

/// D2: a filter restricts the victims of other plugins, in any tier.
#[test]
fn shuffle__filters_restrict() {
    let expected = ["evict j1-a shuffle", "evict j2-a shuffle"];
    for tiers in ["scorer conformance gang", "conformance gang | scorer", "scorer | conformance"] {
        let (done, _) = shuffled(&config(tiers), vec![SELECTOR]);
        assert_eq!(done, expected, "{tiers}");
    }
}

/// A40: a budget restricts what others select, and selects nobody itself.
#[test]
fn shuffle__pdb() {
    let text = "node n1 cpu=8
        budget b label.app=a allowed=1
        job j min=1
          task x cpu=1 priority=10 label.app=a @n1 running
          task y cpu=1 priority=10 label.app=a @n1 running
          task z cpu=1 priority=1 label.app=a @n1 running";
    let done = |tiers: &str| {
        let mut stage = Stage::new(&config(tiers), vec![SELECTOR], text);
        let outbox = stage.session(|session| run(session, "shuffle"));
        lines(&outbox.effects, &Report::default())
    };
    assert_eq!(done("scorer gang").len(), 2);
    assert_eq!(done("pdb scorer gang"), ["evict j-x shuffle"], "the budget allows one");
    assert_eq!(done("pdb gang"), Vec::<String>::new());
}

/// The pod without a group cannot be evicted.
#[test]
fn shuffle__error() {
    let mut stage = Stage::new(&config("scorer gang"), vec![SELECTOR], TEXT);
    let mut outbox = None;
    let log = log_of(|| outbox = Some(stage.session(|session| run(session, "shuffle"))));
    assert_eq!(outbox.map(|outbox| outbox.effects.len()), Some(3));
    let expected = [
        "5 Enter Shuffle ...",
        "error Failed to evict Task <default/bare>: the task belongs to no job",
        "3 Committing operations ...",
        "5 Leaving Shuffle ...",
    ];
    let of_shuffle = |line: &&String| expected.contains(&line.as_str());
    assert_eq!(log.iter().filter(of_shuffle).collect::<Vec<_>>(), expected, "{log:#?}");
}
