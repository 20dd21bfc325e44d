//! The recorder finds a plugin that declares less than its rules read: random stories run as if an input
//! was not declared, for each plugin and for inputs of each kind that it reads. Specification: core.md 5.3.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use proptest::strategy::ValueTree;
use vc_framework::{Inputs, with_undeclared};

use super::configs::Choice;
use super::*;

/// Plugin, the place of a configuration with it, and inputs each of which is missed when it is not
/// declared.
const LIES: &[(&str, usize, &[Inputs])] = &[
    ("priority", 1, &[Inputs::CANDIDATE_ROW, Inputs::QUEUE_OBJECT]),
    ("gang", 1, &[Inputs::CANDIDATE_ROW, Inputs::QUEUE_OBJECT]),
    ("conformance", 1, &[Inputs::CANDIDATE_ROW]),
    ("overcommit", 1, &[Inputs::JOB_REQUEST]),
    ("drf", 1, &[Inputs::JOB_COUNTS, Inputs::CANDIDATE_ROW, Inputs::QUEUE_OBJECT]),
    (
        "fairshare",
        35,
        &[Inputs::OWN_QUEUE_USAGE, Inputs::OTHER_OBJECTS, Inputs::CLOCK, Inputs::QUEUE_OBJECT],
    ),
    ("predicates", 1, &[Inputs::OTHER_PODS, Inputs::OTHER_OBJECTS]),
    (
        "proportion",
        1,
        &[Inputs::OWN_QUEUE_USAGE, Inputs::CANDIDATE_QUEUE_USAGE, Inputs::CANDIDATE_ROW],
    ),
    ("nodeorder", 1, &[Inputs::OTHER_PODS]),
    ("binpack", 1, &[Inputs::NODE_ROW, Inputs::POD_SHAPE]),
    ("pdb", 3, &[Inputs::BUDGETS, Inputs::CANDIDATE_ROW]),
    ("sla", 3, &[Inputs::CLOCK, Inputs::JOB_ROW]),
    (
        "capacity",
        3,
        &[
            Inputs::OWN_QUEUE_USAGE,
            Inputs::CANDIDATE_QUEUE_USAGE,
            Inputs::IDENTITY,
            Inputs::OTHER_OBJECTS,
        ],
    ),
    ("cdp", 4, &[Inputs::CLOCK, Inputs::CANDIDATE_ROW]),
    ("resourcequota", 6, &[Inputs::JOB_REQUEST, Inputs::OTHER_OBJECTS]),
    ("tdm", 7, &[Inputs::NODE_OBJECT, Inputs::POD_SHAPE, Inputs::CLOCK]),
    ("deviceshare", 19, &[Inputs::NODE_ROW, Inputs::POD_SHAPE]),
    ("usage", 26, &[Inputs::NODE_ROW, Inputs::CLOCK]),
    ("network-topology-aware", 13, &[Inputs::QUEUE_OBJECT]),
    (
        "nodegroup",
        15,
        &[Inputs::NODE_OBJECT, Inputs::OWN_QUEUE, Inputs::QUEUE_OBJECT, Inputs::OWN_QUEUE_USAGE],
    ),
    ("extender", 30, &[Inputs::CLOCK]),
    ("numa-aware", 33, &[Inputs::NODE_ROW, Inputs::POD_SHAPE]),
    (
        "task-topology",
        31,
        &[Inputs::IDENTITY, Inputs::NODE_ROW, Inputs::POD_SHAPE, Inputs::JOB_COUNTS],
    ),
    ("resource-strategy-fit", 18, &[Inputs::NODE_ROW, Inputs::POD_SHAPE]),
    ("rescheduling", 29, &[Inputs::CLOCK, Inputs::OTHER_PODS]),
    ("cohort", 9, &[Inputs::IDENTITY, Inputs::OTHER_QUEUE_USAGE, Inputs::QUEUE_OBJECT]),
];

/// Stories until a lie must be found.
const MOST_STORIES: usize = 2_000;

fn is_found(plugin: &'static str, which: usize, inputs: Inputs) -> bool {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    let stories = stories(0);
    (0..MOST_STORIES).any(|_| {
        let story = stories.new_tree(&mut runner).expect("no story is rejected").current();
        let turns = story.turns.into_iter().map(without_configure).collect();
        let story = Story { choice: Choice::Usual(which), turns, ..story };
        let lived = AssertUnwindSafe(|| with_undeclared(plugin, inputs, || live(&story)));
        let Err(why) = catch_unwind(lived) else { return false };
        let why = why.downcast_ref::<String>().map_or("", String::as_str);
        // The two evaluators may differ by the lie before the recorder sees it.
        why.starts_with(&format!("plugin {plugin}: ")) && why.ends_with("which it does not declare")
    })
}

fn without_configure(steps: Vec<Step>) -> Vec<Step> {
    steps.into_iter().filter(|step| !matches!(step, Step::Configure(_))).collect()
}

#[test]
fn fast__a_lie_in_each_plugin_is_found() {
    let named = vc_plugins::ALL.iter().map(|entry| entry.name());
    let without: Vec<&str> =
        named.filter(|name| LIES.iter().all(|(plugin, ..)| plugin != name)).collect();
    assert_eq!(without, [""; 0], "plugins without a lie");
    let lies = LIES.iter().flat_map(|&(plugin, which, inputs)| {
        inputs.iter().map(move |&inputs| (plugin, which, inputs))
    });
    let lies: Vec<_> = lies.collect();
    let missed = Mutex::new(Vec::new());
    let checked = check_at_once(&lies, |&(plugin, which, inputs)| {
        if !is_found(plugin, which, inputs) {
            missed.lock().expect("no holder panics").push((plugin, inputs.names()));
        }
        Ok(())
    });
    let missed = missed.into_inner().expect("no holder panics");
    assert_eq!((checked, missed), (Ok(()), Vec::new()), "lies that were not found");
}

/// Plugins read the time and the total where the recorder sees it.
#[test]
fn fast__plugins_read_facts_through_accessors() {
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/src");
    let mut folders = vec![sources];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("it is there") {
            let path = entry.expect("it is there").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("it is text");
            for direct in ["facts.now_micros", "facts.total"] {
                assert!(!text.contains(direct), "{}: {direct}", path.display());
            }
        }
    }
}
