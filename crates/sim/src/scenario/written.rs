//! A cycle that was decided as a scenario: its state as objects, its decisions as what is expected.
//! Specification: answers.md 15 (ANS-107).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use vc_answers::time_text;
use vc_engine::{Effect, Engine, Evaluator};
use vc_model::Settings;
use vc_objects::written::{WrittenObjects, written_objects};

use super::anonymous::{NameMap, words_of};
use super::compare::differences;
use super::file::Scenario;
use super::outcome::ScenarioOutcome;
use super::rewrite::render;

/// A scenario as text.
pub struct ScenarioText {
    /// The contents of the file.
    pub text: String,
    /// What is known of the cluster and is not in it, in words.
    pub left_out: Vec<String>,
    /// Differences between the decisions of the scenario and those of the cycle, one line each.
    pub differences: Vec<String>,
}

/// The file as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenScenario<'a> {
    name: String,
    about: String,
    scheduler_conf: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    flags: BTreeMap<&'static str, Value>,
    now: String,
    objects: &'a [Value],
}

/// How a cycle is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScenarioNames {
    /// The scenario has the names of the cluster.
    Real,
    /// The scenario has numbers in place of names.
    Anonymous,
}

/// Name of a scenario, and what it is about.
#[derive(Clone, Debug)]
pub struct ScenarioTitle {
    /// `area/case`.
    pub name: String,
    /// A sentence or two.
    pub about: String,
}

/// Writes a cycle. The engine is in the state before it, with all events applied; the effects are what
/// the cycle decided at that time, in microseconds since 1970.
///
/// # Errors
/// The configuration or an object cannot be written.
pub fn scenario_text(
    title: ScenarioTitle,
    engine: &Engine,
    effects: &[Effect],
    now_micros: i64,
    names: ScenarioNames,
) -> Result<ScenarioText, String> {
    let WrittenObjects { mut objects, left_out } = written_objects(engine.cluster());
    let (mut flags, is_complete) = flags(&engine.cluster().settings);
    let mut outcome = ScenarioOutcome::default();
    effects.iter().for_each(|effect| outcome.note(effect));
    let scheduler_conf = engine.config().without_secrets().file_text()?;
    if names == ScenarioNames::Anonymous {
        let map = NameMap::of(&objects, &words_of(&scheduler_conf));
        objects = map.objects(&objects);
        outcome = outcome.renamed(|name| map.text(name));
        // Names of schedulers stay, as they do in pods.
        let named = flags.iter_mut().filter(|(flag, _)| **flag != "scheduler-name");
        named.for_each(|(_, value)| rename(value, &map));
    }
    let mut left_out: Vec<String> = left_out.into_iter().map(str::to_owned).collect();
    if !is_complete {
        left_out.push("flags about feature gates, shards, divisions and volumes".to_owned());
    }
    let file = WrittenScenario {
        name: title.name,
        about: title.about,
        scheduler_conf,
        flags,
        now: time_text(now_micros),
        objects: &objects,
    };
    let written = serde_yaml::to_string(&file).map_err(|error| error.to_string())?;
    let text = format!("{written}{}", render(None, &outcome));
    let differences = verified(&text)?;
    Ok(ScenarioText { text, left_out, differences })
}

/// Replaces the names in the value of a flag.
fn rename(value: &mut Value, names: &NameMap) {
    match value {
        Value::String(text) => *text = names.text(text),
        Value::Array(list) => list.iter_mut().for_each(|value| rename(value, names)),
        _ => {}
    }
}

/// Runs a scenario. Returns where it decides otherwise than it expects.
fn verified(text: &str) -> Result<Vec<String>, String> {
    let name: Arc<str> = "scenario".into();
    let scenario = Scenario::parse(&name, text).map_err(|error| error.to_string())?;
    let outcome = scenario.run(Evaluator::Fast).map_err(|error| error.to_string())?;
    Ok(scenario.expect.as_ref().map_or(Vec::new(), |expect| differences(expect, &outcome)))
}

/// Returns the flags that differ from their defaults, and whether these are all.
fn flags(settings: &Settings) -> (BTreeMap<&'static str, Value>, bool) {
    let defaults = Settings::default();
    let mut flags = BTreeMap::new();
    if settings.scheduler_names != defaults.scheduler_names {
        let names = settings.scheduler_names.iter().map(|name| Value::from(&**name));
        flags.insert("scheduler-name", names.collect());
    }
    if settings.default_queue != defaults.default_queue {
        flags.insert("default-queue", (&*settings.default_queue).into());
    }
    if !settings.node_selector.is_empty() {
        let pairs = settings.node_selector.iter();
        let pairs: Vec<String> = pairs.map(|(label, value)| format!("{label}:{value}")).collect();
        flags.insert("node-selector", pairs.into());
    }
    if settings.bare_pods {
        flags.insert("bare-pods", "schedule".into());
    }
    let written = Settings {
        scheduler_names: settings.scheduler_names.clone(),
        default_queue: settings.default_queue.clone(),
        node_selector: settings.node_selector.clone(),
        bare_pods: settings.bare_pods,
        // Neither is decided by flags.
        dynamic_resources: settings.dynamic_resources,
        utc_offset: settings.utc_offset,
        ..defaults
    };
    // `Settings` cannot be compared; its debug text has all fields.
    (flags, format!("{written:?}") == format!("{settings:?}"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use vc_engine::EngineOptions;
    use vc_objects::input::scenario_files;

    use super::*;
    use crate::simulation::{Setup, Simulation};

    /// Writes the first cycle of a scenario.
    fn rewritten(scenario: &Scenario, names: ScenarioNames) -> ScenarioText {
        let setup = Setup {
            options: EngineOptions { evaluator: Evaluator::Fast, ..scenario.options.clone() },
            config: &scenario.config,
            objects: scenario.objects.clone(),
            now_micros: scenario.now_micros,
            kubelet: scenario.kubelet,
        };
        let (mut simulation, ..) = Simulation::new(setup);
        let before = simulation.engine_after_cycle().copy();
        let cycle = simulation.cycle();
        let title = ScenarioTitle { name: "area/case".to_owned(), about: "A cycle.".to_owned() };
        scenario_text(title, &before, &cycle.effects, scenario.now_micros, names).unwrap()
    }

    /// Writes the first cycle of every scenario of the project, each of which must decide the same.
    fn check_all(names: ScenarioNames) {
        let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scenarios"));
        let files = scenario_files(&[folder]).unwrap();
        let (mut n_same, mut failed) = (0, Vec::new());
        for file in files {
            let Ok(scenario) = Scenario::read(&file) else { continue };
            let written = rewritten(&scenario, names);
            match written.differences.is_empty() {
                true => n_same += 1,
                // What is left out may be what decides.
                false if !written.left_out.is_empty() => {}
                false => failed.push(format!("{}: {:#?}", file.display(), written.differences)),
            }
        }
        assert!(failed.is_empty(), "{} same, {} differ: {failed:#?}", n_same, failed.len());
        assert!(300 < n_same, "{n_same}");
    }

    #[test]
    fn ans_107_the_scenarios_of_the_project_are_written_and_decide_the_same() {
        check_all(ScenarioNames::Real);
    }

    #[test]
    fn ans_102_without_their_names_they_decide_the_same() {
        check_all(ScenarioNames::Anonymous);
    }

    #[test]
    fn ans_102_labels_in_flags_are_renamed_like_those_of_nodes() {
        let text = r#"
name: own/pool
schedulerConf: |
  actions: "allocate"
  tiers:
  - plugins:
    - name: gang
flags: {node-selector: "pool:secret"}
objects:
- {apiVersion: v1, kind: Node, metadata: {name: n1, labels: {pool: secret}},
   status: {allocatable: {cpu: "4", pods: "9"}, capacity: {cpu: "4", pods: "9"}}}
- {apiVersion: v1, kind: Node, metadata: {name: n2},
   status: {allocatable: {cpu: "4", pods: "9"}, capacity: {cpu: "4", pods: "9"}}}
- {apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup,
   metadata: {name: g, namespace: c1}, spec: {minMember: 1}, status: {phase: Inqueue}}
- {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: c1,
   annotations: {scheduling.k8s.io/group-name: g}}, status: {phase: Pending},
   spec: {containers: [{name: main, resources: {requests: {cpu: "1"}}}]}}
"#;
        let scenario = Scenario::parse(&"pool.yaml".into(), text).unwrap();
        let written = rewritten(&scenario, ScenarioNames::Anonymous);
        assert_eq!(written.differences, [""; 0], "{}", written.text);
        assert!(!written.text.contains("secret"), "{}", written.text);
        assert!(written.text.contains("node-selector"), "{}", written.text);
    }
}
