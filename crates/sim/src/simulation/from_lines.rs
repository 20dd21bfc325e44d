//! A simulation of a cluster that was listed into a file. Each object is decoded when it is read and stays in the file:
//! memory has what the engine knows, and few objects. Specification: answers.md 13 (ANS-92).

use std::sync::Arc;

use vc_objects::admission::{Admission, is_pod};
use vc_objects::field::{text, title_of};
use vc_objects::input::{
    Input, InputError, InputObject, LinePlace, ObjectLines, Source, Unreadable,
};
use vc_objects::workload::WorkloadContext;
use vc_wire::kind_of;

use super::object_table::{ListedFile, ListedObject};
use super::{Finding, Setup, Simulation, id_of};

/// Events that are kept until the engine is given them.
const BATCH: usize = 1_000;

/// A simulation of a listed cluster.
pub(crate) struct ListedSimulation {
    pub(crate) simulation: Simulation,
    /// Lines that are no objects with a name, and objects that are given twice.
    pub(crate) unreadable: Vec<Unreadable>,
    pub(crate) findings: Vec<Finding>,
    /// Of the configuration.
    pub(crate) warnings: Vec<vc_conf::Warning>,
}

/// Objects on their way from a file into a simulation.
struct ObjectIntake {
    listed: ListedSimulation,
    file: Arc<ListedFile>,
    /// The PodGroups that there are.
    context: WorkloadContext,
    /// PodGroups that were made for pods.
    made: Vec<InputObject>,
}

impl Simulation {
    /// Takes in the objects of a file with one in each line, as [`Simulation::new`] takes in objects that were
    /// admitted. No object is a workload. The time is that of the objects, and not that of the setup.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn from_lines(
        setup: Setup<'_>,
        lines: ObjectLines,
    ) -> Result<ListedSimulation, InputError> {
        let (mut admission, mut context) = (Admission::default(), WorkloadContext::default());
        lines.read(|_, object| {
            admission.note(&object);
            if !is_pod(&object) {
                context.add(&object);
            }
        })?;
        let now_micros = admission.now_micros();
        let default_queue = setup.options.settings.default_queue.to_string();
        let (simulation, warnings) = Self::empty(Setup { now_micros, ..setup });
        let source = Source { file: Arc::from(&*lines.path().to_string_lossy()), line: 1 };
        let file = Arc::new(ListedFile { lines, admission, source });
        let listed =
            ListedSimulation { simulation, unreadable: Vec::new(), findings: Vec::new(), warnings };
        let mut intake = ObjectIntake { listed, file: file.clone(), context, made: Vec::new() };
        let mut input = Input::default();
        file.lines.read(|place, value| {
            input.add_object(&file.source.file, file.source.line, value);
            if let Some(object) = input.objects.pop() {
                intake.take(place, object);
            }
        })?;
        let ObjectIntake { mut listed, made, .. } = intake;
        listed.unreadable.splice(0..0, input.unreadable);
        for group in made {
            listed.simulation.add(group, &mut listed.findings);
        }
        listed.simulation.end_objects(&default_queue);
        Ok(listed)
    }

    /// Gives the gathered events to the engine before its first cycle. They count among the events of that cycle.
    fn apply_early(&mut self) {
        self.n_applied += self.changes.len();
        self.apply_changes();
    }
}

impl ObjectIntake {
    /// Takes in an object. The first of two with the same identity counts.
    fn take(&mut self, place: LinePlace, mut object: InputObject) {
        let ListedSimulation { simulation, unreadable, findings, .. } = &mut self.listed;
        let value = &object.value;
        let kind = kind_of(text(value, "/apiVersion"), text(value, "/kind"));
        if kind.is_some_and(|kind| simulation.objects.contains(&id_of(kind, value))) {
            let (title, source) = (title_of(value), object.source);
            let message = format!("{title}: is given twice, first in {source}");
            unreadable.push(Unreadable::of_object(source, message));
            return;
        }
        self.made.extend(self.file.admission.complete(&mut object, &mut self.context));
        if let Some(id) = simulation.learn(&object, findings) {
            let file = self.file.clone();
            simulation.objects.insert_listed(id, ListedObject { file, place });
        }
        if BATCH <= simulation.changes.len() {
            simulation.apply_early();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::{Value, json};
    use vc_engine::EngineOptions;
    use vc_objects::admission::{AdmittedObjects, admit};

    use super::*;
    use crate::simulation::KubeletMode;

    fn pod(name: &str, group: Option<&str>) -> Value {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "a", "uid": name,
                "creationTimestamp": "2026-02-01T00:00:00Z"},
            "spec": {"schedulerName": "volcano", "priorityClassName": "high", "containers": [
                {"name": "c", "resources": {"limits": {"cpu": "1"}}}]},
        });
        if let Some(group) = group {
            pod["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": group});
        }
        pod
    }

    /// Three pods that get nodes, of which one has no PodGroup, and one that cannot be read. More events than one batch
    /// has come before them.
    fn objects() -> Vec<Value> {
        let volcano = "scheduling.volcano.sh/v1beta1";
        let of_group = |value: Value| {
            let mut group = json!({"apiVersion": volcano, "kind": "PodGroup",
                "metadata": {"name": "g", "namespace": "a", "uid": "g",
                    "creationTimestamp": "2026-01-01T00:00:00Z"}});
            group["spec"] = value;
            group
        };
        let node = |number: usize| {
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{number}")},
                "status": {"allocatable": {"cpu": "2", "pods": "9"}}})
        };
        let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": "high"}, "value": 7});
        let mut unreadable = pod("bad", Some("g"));
        unreadable["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "many".into();
        let others = [
            class,
            of_group(json!({"minMember": 1})),
            pod("p", Some("g")),
            pod("q", Some("g")),
            pod("alone", None),
            unreadable,
            of_group(json!({"minMember": 9})),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}}),
        ];
        (0..BATCH).map(node).chain(others).collect()
    }

    /// Returns what two cycles decide, what happened in them, and the objects after them.
    fn outcome(mut simulation: Simulation) -> (Vec<String>, String, Vec<Value>) {
        simulation.keep_timeline();
        let mut decided = Vec::new();
        for _ in 0..2 {
            let cycle = simulation.cycle();
            decided.extend(cycle.effects.iter().map(|effect| format!("{effect:?}")));
            simulation.tick(1_000_000);
        }
        let objects = simulation.all_objects().map(Cow::into_owned).collect();
        (decided, format!("{:?}", simulation.timeline()), objects)
    }

    #[test]
    fn ans_92_a_listed_cluster_is_decided_as_one_that_is_in_memory() {
        let path = std::env::temp_dir().join(format!("vc-sim-lines-{}", std::process::id()));
        let lines: Vec<String> = objects().iter().map(|object| format!("{object}\n")).collect();
        std::fs::write(&path, lines.concat()).unwrap();
        let conf = vc_conf::parse("chart", vc_conf::CHART, &vc_engine::KNOWN).unwrap();
        let setup = |objects, now_micros| Setup {
            options: EngineOptions::default(),
            config: &conf.config,
            objects,
            now_micros,
            kubelet: KubeletMode::None,
        };
        let lines = ObjectLines::open(&path).unwrap();
        // Its name is gone before the objects are needed again.
        let listed = Simulation::from_lines(setup(Vec::new(), 0), lines).unwrap();
        std::fs::remove_file(&path).unwrap();
        let (mut input, file) = (Input::default(), Arc::from(&*path.to_string_lossy()));
        for object in objects() {
            input.add_object(&file, 1, object);
        }
        let AdmittedObjects { objects, unreadable, now_micros } = admit(input);
        let (simulation, findings, _warnings) = Simulation::new(setup(objects, now_micros));
        assert_eq!(listed.simulation.now_micros(), now_micros);
        assert_eq!((unreadable.len(), findings.is_empty()), (2, false), "{unreadable:?}");
        assert_eq!((listed.unreadable, listed.findings), (unreadable, findings));
        assert!(BATCH <= listed.simulation.n_applied);
        let (listed, expected) = (outcome(listed.simulation), outcome(simulation));
        let binds = expected.0.iter().filter(|effect| effect.starts_with("Bind "));
        assert_eq!(binds.count(), 3, "{:?}", expected.0);
        assert_eq!(listed, expected);
    }
}
