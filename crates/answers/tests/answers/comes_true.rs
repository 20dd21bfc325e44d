//! Predicted starts, compared with what the engine decides once pods end as is stated of them.
//! Specification: answers.md 20, case 43.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use vc_conf::Config;
use vc_engine::Effect;
use vc_model::fixture::{START_MICROS, events_of};
use vc_model::{ClusterEvent, PodPhase, PodRecord};

use crate::support::{Asked, conf, random_cases};
use crate::when::busy_cluster;

/// Cycles after an end, after which nothing more is expected to be bound.
const CYCLES: usize = 4;

/// Ends are minutes apart, but that pods begin a second or two later after cycles that decide.
const SAME_END_MICROS: i64 = 20_000_000;

/// A cluster whose pods run as soon as they are bound, and end as is stated of them.
struct RunningCluster {
    it: Asked,
    pods: BTreeMap<Arc<str>, PodRecord>,
    /// Names of pods by the end of their runs, in microseconds since 1970.
    ends: BTreeMap<i64, BTreeSet<Arc<str>>>,
    now_micros: i64,
}

impl RunningCluster {
    /// Runs the first cycle over the objects of the text.
    fn new(config: &Config, text: &str) -> Self {
        let pods = events_of(text).into_iter().filter_map(|event| match event {
            ClusterEvent::PodApplied(pod) => Some((pod.key.name.clone(), *pod)),
            _ => None,
        });
        let mut cluster = Self {
            it: Asked::new(config, text),
            pods: pods.collect(),
            ends: BTreeMap::new(),
            now_micros: START_MICROS + 5_400_000_000,
        };
        let running = cluster.pods.values().filter(|pod| pod.node_name.is_some());
        let names: Vec<Arc<str>> = running.map(|pod| pod.key.name.clone()).collect();
        names.into_iter().for_each(|name| cluster.expect_end(&name));
        cluster
    }

    fn expect_end(&mut self, name: &Arc<str>) {
        let pod = &self.pods[name];
        let minutes = pod.annotations["reservation.volcano.sh/runtime"].strip_suffix('m');
        let minutes: i64 = minutes.unwrap().parse().unwrap();
        let end_micros = pod.started_micros.unwrap() + minutes * 60_000_000;
        self.ends.entry(end_micros).or_default().insert(name.clone());
    }

    /// Lets the pods run that the last cycle has bound, and runs a cycle a second later. Returns the
    /// names of those pods.
    fn cycle(&mut self) -> Vec<Arc<str>> {
        let binds = self.it.effects.iter().filter_map(|effect| match effect {
            Effect::Bind { pod, node, .. } => Some((pod.name.clone(), node.clone())),
            _ => None,
        });
        let binds: Vec<(Arc<str>, Arc<str>)> = binds.collect();
        // The binds of the first cycle are on their way when the prediction is asked for.
        let started_micros = self.now_micros.max(START_MICROS + 5_401_000_000);
        let mut events = Vec::new();
        for (name, node) in &binds {
            let pod = self.pods.get_mut(name).unwrap();
            pod.node_name = Some(node.clone());
            (pod.phase, pod.started_micros) = (PodPhase::Running, Some(started_micros));
            events.push(ClusterEvent::PodApplied(Box::new(pod.clone())));
            self.expect_end(name);
        }
        self.now_micros += 1_000_000;
        self.it.cycle_at(events, self.now_micros);
        binds.into_iter().map(|(name, _)| name).collect()
    }

    /// Lets pods end until one of these is bound. Returns the time of the last end in microseconds
    /// since 1970, or `None` if none of them is bound.
    fn start_of(&mut self, waiting: &BTreeSet<Arc<str>>) -> Option<i64> {
        let mut ended_micros = self.now_micros;
        loop {
            for _ in 0..CYCLES {
                let bound = self.cycle();
                if bound.iter().any(|name| waiting.contains(name)) {
                    return Some(ended_micros);
                }
            }
            let (at_micros, ended) = self.ends.pop_first()?;
            ended_micros = at_micros;
            self.now_micros = self.now_micros.max(at_micros);
            let succeeded = ended.iter().map(|name| {
                let pod = self.pods.get_mut(name).unwrap();
                pod.phase = PodPhase::Succeeded;
                ClusterEvent::PodApplied(Box::new(pod.clone()))
            });
            let events = succeeded.collect();
            self.it.engine.apply(events);
        }
    }
}

proptest! {
    #![proptest_config(random_cases(120))]

    /// Case 43: with exact ends and no arrivals each gang starts when it was predicted, beside others that
    /// wait and run.
    #[test]
    fn ans_43_starts_come_true(text in busy_cluster(), packs in any::<bool>()) {
        let scorer = if packs { "binpack" } else { "nodeorder" };
        let tiers = format!("priority gang | predicates proportion {scorer}");
        let config = conf("enqueue, allocate, backfill", &tiers);
        for at in 0..text.matches("job j").count() {
            let mut cluster = RunningCluster::new(&config, &text);
            let Some(start) = cluster.it.why_with_start(&format!("j{at}")).start else { continue };
            let Some(expected) = start.expected_micros else { continue };
            let is_between = start.earliest_micros.is_none_or(|it| it <= expected)
                && start.latest_micros.is_none_or(|it| expected <= it);
            prop_assert!(is_between, "{text}\n{start:?}");
            let pods = format!("j{at}-");
            let waits =
                |pod: &&PodRecord| pod.key.name.starts_with(&pods) && pod.node_name.is_none();
            let waiting = cluster.pods.values().filter(waits).map(|pod| pod.key.name.clone()).collect();
            let came_true = cluster.start_of(&waiting);
            let is_near = came_true.is_some_and(|it| (it - expected).abs() < SAME_END_MICROS);
            prop_assert!(is_near, "j{at} in\n{text}\n{came_true:?} {start:?}");
        }
    }
}
