//! A simulation of objects that others change. It runs no cycles: each copy of it decides from what the objects are,
//! and only what others have done happens. Specification: answers.md 14 (ANS-93).

use serde_json::Value;
use vc_answers::{Timeline, TimelineStep};
use vc_engine::{Effect, Report};
use vc_model::ObjectKey;
use vc_objects::field::text;
use vc_objects::input::InputObject;
use vc_wire::{Kind, kind_of};

use super::{Id, Simulation, id_of};

/// What others have done since the last look at the objects, and what a copy has decided about them.
pub(crate) struct ObservedStep<'a> {
    /// The binds of others.
    pub(crate) binds: &'a [Effect],
    pub(crate) n_events: usize,
    /// Report of the cycle of the copy.
    pub(crate) report: &'a Report,
    /// Number of the look, from 1.
    pub(crate) number: u64,
    pub(crate) took_micros: u64,
}

impl Simulation {
    /// Returns a second simulation of the same objects. What happened is not in it.
    pub(crate) fn copy(&self) -> Self {
        Self {
            engine: self.engine.copy(),
            objects: self.objects.clone(),
            changes: self.changes.clone(),
            n_applied: self.n_applied,
            now_micros: self.now_micros,
            version: self.version,
            kubelet: self.kubelet,
            verifies: self.verifies,
            timeline: None,
            history: None,
        }
    }

    /// Replaces the objects. The engine is told of the differences by [`Simulation::apply_observed`]. Returns the binds
    /// among them.
    pub(crate) fn replace_objects(&mut self, objects: Vec<InputObject>) -> Vec<Effect> {
        let mut before = std::mem::take(&mut self.objects);
        let mut binds = Vec::new();
        for InputObject { value, .. } in objects {
            let kind = kind_of(text(&value, "/apiVersion"), text(&value, "/kind"));
            let Some(kind) = kind else { continue };
            let known = before.remove(&id_of(kind, &value));
            binds.extend(self.replace_object(kind, known, value));
        }
        for (id, value) in before.into_objects() {
            if is_added_queue(&id, &value) {
                self.objects.insert(id, value);
            } else {
                self.changes.extend(vc_wire::decode_deleted(id.0, &value));
            }
        }
        binds
    }

    /// Replaces an object that was known, or adds it. A version that cannot be decoded changes nothing: the engine and the
    /// objects keep the old one, unless that was an object with another uid. Returns the bind of a pod.
    fn replace_object(&mut self, kind: Kind, known: Option<Value>, value: Value) -> Option<Effect> {
        let id = id_of(kind, &value);
        if known.as_ref() == Some(&value) {
            self.objects.insert(id, value);
            return None;
        }
        let known = known.filter(|known| {
            let is_same = text(known, "/metadata/uid") == text(&value, "/metadata/uid");
            if !is_same {
                self.changes.extend(vc_wire::decode_deleted(kind, known));
            }
            is_same
        });
        let Ok(decoded) = vc_wire::decode(kind, &value) else {
            if let Some(known) = known {
                self.objects.insert(id, known);
            }
            return None;
        };
        self.changes.push(decoded.event);
        let bind = observed_bind(kind, known.as_ref(), &value);
        self.objects.insert(id, value);
        bind
    }

    /// Tells the engine of changes, without a cycle. Returns how many there are.
    pub(crate) fn apply_observed(&mut self) -> usize {
        if let Some(timeline) = &mut self.timeline {
            timeline.learn(self.engine.cluster(), &self.changes, self.now_micros);
        }
        let n_events = self.changes.len();
        self.apply_changes();
        n_events
    }

    /// Takes note of a look at the objects.
    pub(crate) fn record_observed(&mut self, step: &ObservedStep<'_>) {
        let Some(timeline) = &mut self.timeline else { return };
        timeline.record(&TimelineStep {
            cluster: self.engine.cluster(),
            effects: step.binds,
            report: Some(step.report),
            cycle: step.number,
            now_micros: self.now_micros,
            took_micros: step.took_micros,
            n_events: step.n_events,
        });
    }

    /// Returns the number of cycles that were run.
    pub(crate) fn n_cycles(&self) -> u64 {
        self.engine.n_cycles()
    }

    /// Sets what happened to the objects.
    pub(crate) fn set_timeline(&mut self, timeline: Timeline) {
        self.timeline = Some(timeline);
    }
}

/// Returns the bind of a pod that has a node now and had none before.
fn observed_bind(kind: Kind, known: Option<&Value>, object: &Value) -> Option<Effect> {
    let node = text(object, "/spec/nodeName");
    let had_node = known.is_some_and(|known| !text(known, "/spec/nodeName").is_empty());
    if kind != Kind::Pod || node.is_empty() || had_node {
        return None;
    }
    let name = text(object, "/metadata/name");
    Some(Effect::Bind {
        pod: ObjectKey::new(text(object, "/metadata/namespace"), name),
        uid: text(object, "/metadata/uid").into(),
        node: node.into(),
        annotations: Vec::new(),
        node_lock: None,
    })
}

/// True for a queue that the simulation has added itself.
fn is_added_queue(id: &Id, value: &Value) -> bool {
    id.0 == Kind::Queue && text(value, "/metadata/uid") == id.2
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use vc_conf::Config;
    use vc_engine::EngineOptions;
    use vc_objects::input::Source;

    use super::*;
    use crate::simulation::{KubeletMode, Setup};

    fn node(uid: &str, cpu: &str) -> InputObject {
        let value = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": "a", "uid": uid },
            "status": { "allocatable": { "cpu": cpu, "pods": "9" } },
        });
        InputObject { value, source: Source { file: "test".into(), line: 1 } }
    }

    /// Returns the cpu of the node in the objects, and whether the engine has the node.
    fn look(simulation: &mut Simulation, node: InputObject) -> (Option<String>, bool) {
        simulation.replace_objects(vec![node]);
        simulation.apply_observed();
        let object = simulation.object(Kind::Node, "", "a");
        let cpu = object.map(|node| text(&node, "/status/allocatable/cpu").to_owned());
        let cluster = simulation.cluster();
        (cpu, cluster.nodes_by_name().iter().any(|&id| cluster.nodes[id].present))
    }

    #[test]
    fn ans_93_a_version_that_cannot_be_read_is_the_same_for_objects_and_engine() {
        let (mut simulation, findings, _warnings) = Simulation::new(Setup {
            options: EngineOptions::default(),
            config: &Config::default(),
            objects: vec![node("1", "4")],
            now_micros: 0,
            kubelet: KubeletMode::None,
        });
        assert!(findings.is_empty(), "{findings:?}");
        let has = |cpu: &str| (Some(cpu.to_owned()), true);
        assert_eq!(look(&mut simulation, node("1", "8")), has("8"));
        assert_eq!(look(&mut simulation, node("1", "many")), has("8"), "the old one is kept");
        assert_eq!(look(&mut simulation, node("1", "6")), has("6"));
        assert_eq!(look(&mut simulation, node("2", "many")), (None, false), "the old one is gone");
        assert_eq!(look(&mut simulation, node("2", "4")), has("4"));
    }
}
