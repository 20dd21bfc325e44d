//! What the cycles of a scenario decided.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use vc_engine::{Effect, EngineOptions, Evaluator};
use vc_wire::Kind;

use super::compare::differences;
use super::file::{Scenario, ScenarioError};
use crate::simulation::{KubeletMode, Setup, Simulation};
use vc_objects::field::text;

/// The decisions of all cycles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScenarioOutcome {
    /// Pod and node, in the order of the decisions.
    pub binds: Vec<(String, String)>,
    /// Pods, in the order of the decisions.
    pub evictions: Vec<String>,
    /// Pod and node after the last action of the last cycle.
    pub pipelined: BTreeMap<String, String>,
    /// By name.
    pub pod_groups: BTreeMap<String, GroupState>,
    /// Texts of events and of conditions, as they were written.
    pub messages: BTreeSet<String>,
    /// Why pods wait, by pod.
    pub waiting: BTreeMap<String, String>,
    /// What is wrong with the scheduler itself: its sums, or the proof of an eviction.
    pub faults: Vec<String>,
}

/// The state of a PodGroup as written last, or as given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupState {
    pub phase: String,
    /// Status and reason by type.
    pub conditions: BTreeMap<String, (String, String)>,
}

impl ScenarioOutcome {
    /// The nodes that a pod was bound to.
    pub(super) fn binds_by_pod(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut by_pod: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (pod, node) in &self.binds {
            by_pod.entry(pod).or_default().insert(node);
        }
        by_pod
    }
}

impl Scenario {
    /// The cluster, complete: with uids, creation times and schedulers.
    pub fn objects(&self) -> impl Iterator<Item = &Value> {
        self.objects.iter().map(|object| &object.value)
    }

    /// The clock of the first cycle, in microseconds since 1970.
    pub fn now_micros(&self) -> i64 {
        self.now_micros
    }

    /// How many cycles decide.
    pub fn cycles(&self) -> u32 {
        self.cycles
    }

    /// Whether time passes between them.
    pub fn has_ticks(&self) -> bool {
        self.tick_micros != 0
    }

    /// What happens to pods between them.
    pub fn kubelet(&self) -> KubeletMode {
        self.kubelet
    }

    /// One line for each difference between what is expected and what somebody else has decided
    /// from the same objects.
    pub fn judge(&self, outcome: &ScenarioOutcome) -> Vec<String> {
        self.expect.as_ref().map_or(Vec::new(), |expect| differences(expect, outcome))
    }

    /// Runs the cycles.
    ///
    /// # Errors
    /// An object is malformed.
    pub fn run(&self, evaluator: Evaluator) -> Result<ScenarioOutcome, ScenarioError> {
        let setup = Setup {
            options: EngineOptions { evaluator, ..self.options.clone() },
            config: &self.config,
            objects: self.objects.clone(),
            now_micros: self.now_micros,
            kubelet: self.kubelet,
        };
        let (mut simulation, findings, _warnings) = Simulation::new(setup);
        if let Some(finding) = findings.into_iter().find(|finding| !finding.usable) {
            let (file, line) = (finding.source.file, finding.source.line);
            return Err(ScenarioError { file, line, message: finding.message });
        }
        simulation.verify();
        let mut outcome = ScenarioOutcome::default();
        for number in 0..self.cycles {
            if 0 < number {
                simulation.tick(self.tick_micros);
            }
            let cycle = simulation.cycle();
            cycle.effects.iter().for_each(|effect| outcome.note(effect));
            let fault = |fault: String| format!("cycle {}: {fault}", number + 1);
            outcome.faults.extend(cycle.faults.into_iter().map(fault));
            let pipelined = cycle.report.pipelined.into_iter();
            outcome.pipelined =
                pipelined.map(|task| (task.pod.to_string(), task.node.to_string())).collect();
            let waiting = cycle.report.waiting.into_iter();
            outcome.waiting = waiting.map(|task| (task.pod.to_string(), task.message)).collect();
        }
        outcome.note_groups(&simulation);
        Ok(outcome)
    }
}

impl ScenarioOutcome {
    /// Returns the binds and evictions with other names of pods and nodes.
    pub(super) fn renamed(&self, name: impl Fn(&str) -> String) -> Self {
        let binds = self.binds.iter().map(|(pod, node)| (name(pod), name(node)));
        let evictions = self.evictions.iter().map(|pod| name(pod));
        Self { binds: binds.collect(), evictions: evictions.collect(), ..Self::default() }
    }

    pub(super) fn note(&mut self, effect: &Effect) {
        match effect {
            Effect::Bind { pod, node, .. } => self.binds.push((pod.to_string(), node.to_string())),
            Effect::Evict { pod, .. } => self.evictions.push(pod.to_string()),
            Effect::Event { message, .. } => {
                self.messages.insert(message.to_string());
            }
            Effect::PodCondition { condition, .. } => {
                self.messages.insert(condition.message.to_string());
            }
            Effect::PodGroupStatus { status, .. } => {
                let texts = status.conditions.iter().map(|one| one.message.to_string());
                self.messages.extend(texts);
            }
            _ => {}
        }
    }

    fn note_groups(&mut self, simulation: &Simulation) {
        for group in simulation.objects(Kind::PodGroup) {
            let phase = match text(&group, "/status/phase") {
                "" => "Pending",
                phase => phase,
            };
            let conditions = group.pointer("/status/conditions").and_then(|list| list.as_array());
            let by_type = conditions.into_iter().flatten().map(|condition| {
                let field = |name| text(condition, name).to_owned();
                (field("/type"), (field("/status"), field("/reason")))
            });
            let state = GroupState { phase: phase.to_owned(), conditions: by_type.collect() };
            self.pod_groups.insert(vc_objects::field::name_of(&group), state);
        }
    }
}
