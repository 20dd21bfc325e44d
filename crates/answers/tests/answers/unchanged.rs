//! Engines that are asked decide as engines that are not, and what a cycle recorded is what the next one records.
//! Specification: answers.md 8 (ANS-43), 20, cases 30, 46 and 54.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use proptest::prelude::*;
use vc_answers::{
    Change, CycleLimit, Explanation, NewNodes, NodeSelection, QueueChange, WhatIf, explain_waiting,
    what_if,
};
use vc_conf::Config;
use vc_engine::{Effect, EffectDigest, Evaluator};
use vc_model::fixture::events_of;
use vc_model::{ClusterEvent, ObjectKey, PodPhase, PodRecord};

use crate::examples::two_ways_out;
use crate::known::cluster;
use crate::support::{Asked, conf, random_cases};

/// Jobs of a random cluster that are asked about one by one.
const MOST_ASKED: usize = 2;

/// Cycles after which a random cluster has settled, or is left out.
const MOST_CYCLES: usize = 8;

/// Cycles of one story, and what-ifs before each of them.
const STEPS: usize = 25;
const WHAT_IFS_PER_STEP: usize = 4;

fn config(reclaims: bool) -> Config {
    let actions = if reclaims { "enqueue, allocate, reclaim" } else { "enqueue, allocate" };
    conf(actions, "priority gang conformance | overcommit predicates capacity nodeorder binpack")
}

fn named(name: &str) -> NodeSelection {
    NodeSelection { names: vec![name.into()], match_labels: None }
}

fn tables(it: &Asked) -> String {
    format!("{:?}", it.engine.cluster())
}

/// Returns what a cycle has left: its report, how often each cache gave the answer, and the tables.
fn left_by_cycle(it: &Asked) -> [String; 3] {
    [format!("{:?}", it.report), format!("{:?}", it.engine.cache_stats()), tables(it)]
}

/// Asks questions of all kinds. Fails if one of them changes a table of the engine.
fn ask_all(it: &Asked) -> Result<(), TestCaseError> {
    let before = tables(it);
    let mut state = it.state();
    let listed = explain_waiting(&mut state).to_vec();
    prop_assert!(tables(it) == before, "a list changes the tables");
    for row in listed.iter().take(MOST_ASKED) {
        let name = row.subject.key.to_string();
        it.why_with_start_in(&mut state, &name);
        prop_assert!(tables(it) == before, "the question about {name} changes the tables");
    }
    prop_assert_eq!(state.cluster().check(), Ok(()));
    let weight = QueueChange { weight: Some(7), ..QueueChange::default() };
    for change in [
        Change::AddNodes { nodes: NewNodes::Like("n0".into()), count: 2 },
        Change::Cordon(named("n0")),
        Change::SetQueue("a".into(), Box::new(weight)),
    ] {
        let changes = vec![change];
        let question = WhatIf { changes, cycles: CycleLimit::Number(2), ..WhatIf::default() };
        let result = what_if(&it.engine, &it.ends, &question);
        prop_assert!(result.is_ok(), "{result:?}");
        prop_assert!(tables(it) == before, "{question:?} changes the tables");
    }
    Ok(())
}

/// Returns the explanations of all jobs that wait, and full ones with their starts of the first jobs. The number of the
/// cycle is left out.
fn answers(it: &Asked) -> Vec<Explanation> {
    let mut state = it.state();
    let mut all = explain_waiting(&mut state).to_vec();
    let first = all.iter().take(MOST_ASKED);
    let names: Vec<String> = first.map(|row| row.subject.key.to_string()).collect();
    all.extend(names.iter().map(|name| it.why_with_start_in(&mut state, name)));
    all.iter_mut().for_each(|row| row.as_of.cycle = 0);
    all
}

/// Runs cycles until one decides nothing. Returns false if none does.
fn settle(it: &mut Asked) -> bool {
    for _ in 0..MOST_CYCLES {
        if it.effects.is_empty() {
            return true;
        }
        it.cycle(Vec::new());
    }
    it.effects.is_empty()
}

/// Runs a further cycle at the time of the last one. It is run in full, as nothing is known of an idle cycle.
fn run_again(it: &mut Asked) {
    it.engine.explain(true);
    let now_micros = it.engine.last_micros();
    it.cycle_at(Vec::new(), now_micros);
}

#[test]
fn ans_46_what_was_recorded_of_an_example_is_the_same_anew() {
    let mut it = two_ways_out();
    assert!(settle(&mut it), "{:?}", it.effects);
    let recorded = answers(&it);
    assert_eq!(recorded.len(), 4);
    run_again(&mut it);
    assert_eq!(answers(&it), recorded);
}

proptest! {
    #![proptest_config(random_cases(25))]

    /// Case 30: tables stay as they are, and later cycles have the effects, reports and cached results of an engine
    /// that was never asked.
    #[test]
    fn ans_30_an_engine_that_was_asked_decides_as_one_that_was_not(
        text in cluster(),
        reclaims in any::<bool>(),
        cpu in 1..12_i64,
        (pods, asked_cpu) in (1..4_i64, 1..5_i64),
    ) {
        let config = config(reclaims);
        let (mut it, mut silent) = (Asked::new(&config, &text), Asked::new(&config, &text));
        let late = format!(
            "node late cpu={cpu}\njob late queue=b min={pods}\n task a cpu={asked_cpu} x{pods}"
        );
        for events in [events_of(&late), Vec::new()] {
            ask_all(&it)?;
            it.cycle(events.clone());
            silent.cycle(events);
            prop_assert_eq!(&it.effects, &silent.effects, "{}", text);
            prop_assert!(left_by_cycle(&it) == left_by_cycle(&silent), "{text}");
        }
    }

    /// Case 46: what a question uses of the records of a cycle is the same after a further cycle in which nothing has
    /// changed.
    #[test]
    fn ans_46_what_was_recorded_is_the_same_anew(
        text in cluster(),
        (reclaims, is_plain) in any::<(bool, bool)>(),
    ) {
        let evaluator = if is_plain { Evaluator::Plain } else { Evaluator::Fast };
        let mut it = Asked::evaluated(evaluator, &config(reclaims), &text);
        if !settle(&mut it) {
            return Ok(());
        }
        let recorded = answers(&it);
        run_again(&mut it);
        prop_assert!(it.effects.is_empty(), "{text}\n{:?}", it.effects);
        prop_assert_eq!(answers(&it), recorded, "{}", text);
    }
}

/// A cluster whose pods run as soon as they are bound, and end in the order of their starts.
struct Story {
    it: Asked,
    pods: BTreeMap<ObjectKey, PodRecord>,
    /// Pods that run, the first one first.
    running: VecDeque<ObjectKey>,
    /// That of the effects of all cycles.
    digest: EffectDigest,
}

impl Story {
    fn begin() -> Self {
        let tiers = "priority gang | predicates proportion nodeorder";
        let nodes: String = (0..4).map(|at| format!("node n{at} cpu=8\n")).collect();
        let text = format!(
            "{nodes}queue a weight=2\nqueue b\njob fixed queue=a running\n task a cpu=2 @n0 running"
        );
        Self {
            it: Asked::new(&conf("enqueue, allocate, backfill", tiers), &text),
            pods: BTreeMap::new(),
            running: VecDeque::new(),
            digest: EffectDigest::default(),
        }
    }

    /// Returns the event of a pod that changes.
    fn changed(&mut self, key: &ObjectKey, change: impl FnOnce(&mut PodRecord)) -> ClusterEvent {
        let pod = self.pods.get_mut(key).unwrap();
        change(pod);
        ClusterEvent::PodApplied(Box::new(pod.clone()))
    }

    /// Ends the two pods that run longest.
    fn end_pods(&mut self) -> Vec<ClusterEvent> {
        let n_ended = self.running.len().min(2);
        let ended: Vec<ObjectKey> = self.running.drain(..n_ended).collect();
        ended.iter().map(|key| self.changed(key, |pod| pod.phase = PodPhase::Succeeded)).collect()
    }

    /// Lets the pods run that the last cycle has bound.
    fn start_pods(&mut self) -> Vec<ClusterEvent> {
        let started_micros = Some(self.it.engine.last_micros());
        let binds = self.it.effects.iter().filter_map(|effect| match effect {
            Effect::Bind { pod, node, .. } => Some((pod.clone(), node.clone())),
            _ => None,
        });
        let binds: Vec<(ObjectKey, Arc<str>)> = binds.collect();
        let mut events = Vec::new();
        for (key, node) in binds {
            events.push(self.changed(&key, |pod| {
                pod.node_name = Some(node);
                (pod.phase, pod.started_micros) = (PodPhase::Running, started_micros);
            }));
            self.running.push_back(key);
        }
        events
    }

    /// Pods end and start, a gang comes, and a cycle is run.
    fn step(&mut self, number: usize) {
        let (pods, cpu) = (1 + number % 3, 1 + number % 5);
        let queue = ["a", "b"][number % 2];
        let gang = events_of(&format!(
            "job s{number} queue={queue} min={pods}\n task a cpu={cpu} x{pods}"
        ));
        for event in &gang {
            if let ClusterEvent::PodApplied(pod) = event {
                self.pods.insert(pod.key.clone(), PodRecord::clone(pod));
            }
        }
        let events = [self.end_pods(), self.start_pods(), gang].concat();
        self.it.cycle(events);
        self.digest.add(&self.it.effects);
    }

    fn suppose(&self, number: usize) {
        let weight = QueueChange { weight: Some(5), ..QueueChange::default() };
        let change = match number % 7 {
            0 => Change::AddNodes { nodes: NewNodes::Like("n0".into()), count: 2 },
            1 => Change::RemoveNodes(named("n1")),
            2 => Change::Cordon(named("n2")),
            3 => Change::SetQueue("b".into(), Box::new(weight)),
            4 => Change::Apply(events_of("job supposed queue=b min=2\n task a cpu=3 x2")),
            5 => Change::Finish(vec![ObjectKey::new("default", "fixed")]),
            _ => Change::Advance(60_000_000),
        };
        let cycles = CycleLimit::Number(1 + u32::from(number.is_multiple_of(2)));
        let question = WhatIf { changes: vec![change], cycles, ..WhatIf::default() };
        let result = what_if(&self.it.engine, &self.it.ends, &question);
        assert!(result.is_ok(), "{question:?}: {result:?}");
    }
}

/// Case 54: 100 what-ifs, or as many as `FUZZ_ANSWERS` says, beside stories of an engine.
#[test]
fn ans_54_a_story_beside_what_ifs_is_the_same_without_them() {
    let n_what_ifs = random_cases(100).cases as usize;
    for story in 0..n_what_ifs.div_ceil(STEPS * WHAT_IFS_PER_STEP) {
        let (mut asked, mut silent) = (Story::begin(), Story::begin());
        // Stories differ, as the remainders of their numbers do.
        for step in story * (STEPS + 1)..story * (STEPS + 1) + STEPS {
            let first = step * WHAT_IFS_PER_STEP;
            (first..first + WHAT_IFS_PER_STEP).for_each(|number| asked.suppose(number));
            asked.step(step);
            silent.step(step);
            assert_eq!(asked.it.effects, silent.it.effects, "step {step}");
            assert!(left_by_cycle(&asked.it) == left_by_cycle(&silent.it), "step {step}");
        }
        assert_eq!(asked.digest.value(), silent.digest.value());
        let has_ended = |pod: &&PodRecord| matches!(pod.phase, PodPhase::Succeeded);
        assert_ne!(silent.pods.values().filter(has_ended).count(), 0, "nothing has run");
    }
}
