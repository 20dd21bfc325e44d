//! A scenario file: strict about its own keys, exact about what it may leave out.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_yaml::Spanned;
use vc_engine::EngineOptions;

use super::flags::{self, FlagValues, ScenarioFlags};
use crate::node_metrics::is_node_metrics;
use crate::serve::{KINDS, ServedKind};
use crate::simulation::KubeletMode;
use vc_objects::duration::parse_micros;
use vc_objects::field::{set_default, text};
use vc_objects::input::{Input, InputObject, YamlProblem, text_of, yaml_options};
use vc_objects::workload::SCHEDULER;

/// A scenario that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct ScenarioError {
    pub file: Arc<str>,
    /// From 1.
    pub line: usize,
    pub message: String,
}

/// A scenario, ready to be run.
pub struct Scenario {
    pub name: String,
    pub(super) options: EngineOptions,
    pub(super) config: vc_conf::Config,
    pub(super) now_micros: i64,
    pub(super) cycles: u32,
    pub(super) tick_micros: i64,
    pub(super) kubelet: KubeletMode,
    pub(super) objects: Vec<InputObject>,
    /// `None`: nothing is expected yet.
    pub(super) expect: Option<Expectations>,
}

/// What must come out; a key that is absent is not checked.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Expectations {
    pub(super) binds: Option<BTreeMap<String, Vec<String>>>,
    pub(super) bind_count: Option<usize>,
    pub(super) evictions: Option<Vec<String>>,
    pub(super) eviction_count: Option<usize>,
    pub(super) pipelined: Option<BTreeMap<String, Vec<String>>>,
    pub(super) pod_groups: Option<BTreeMap<String, ExpectedGroup>>,
    pub(super) messages: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedGroup {
    pub(super) phase: Option<String>,
    #[serde(default)]
    pub(super) conditions: BTreeMap<String, ExpectedCondition>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedCondition {
    pub(super) status: Option<String>,
    pub(super) reason: Option<String>,
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScenarioFile {
    name: String,
    #[serde(default, rename = "about")]
    _about: Option<String>,
    #[serde(default, rename = "source")]
    _source: Option<String>,
    scheduler_conf: Spanned<String>,
    #[serde(default)]
    flags: Option<Spanned<BTreeMap<String, FlagValues>>>,
    now: Option<Spanned<String>>,
    cycles: Option<u32>,
    tick: Option<Spanned<String>>,
    kubelet: Option<KubeletMode>,
    #[serde(default)]
    objects: Vec<Spanned<Value>>,
    expect: Option<Expectations>,
}

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    /// A file that cannot be read or parsed, an unknown key, flag or kind, an invalid configuration.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let file: Arc<str> = path.to_string_lossy().into();
        let text = text_of(path).map_err(|error| ScenarioError {
            file: file.clone(),
            line: 1,
            message: error.to_string(),
        })?;
        Self::parse(&file, &text)
    }

    /// Reads the text of a scenario.
    ///
    /// # Errors
    /// As [`Scenario::read`].
    pub fn parse(file: &Arc<str>, text: &str) -> Result<Self, ScenarioError> {
        let at = |line: usize, message: String| ScenarioError { file: file.clone(), line, message };
        let options = yaml_options();
        let parsed =
            serde_yaml::from_str_with_options::<ScenarioFile>(text, options).map_err(|error| {
                let YamlProblem { line, message, .. } = YamlProblem::of(&error);
                at(line, message)
            })?;
        let conf = &parsed.scheduler_conf;
        let flags = match &parsed.flags {
            None => ScenarioFlags::default(),
            Some(flags) => {
                flags::read(&flags.value).map_err(|problem| at(line_of(flags), problem))?
            }
        };
        let config =
            configuration(&conf.value, &flags).map_err(|problem| at(line_of(conf), problem))?;
        let mut objects = objects(file, parsed.objects)?;
        objects.retain(|object| match object.value["kind"].as_str() {
            Some("PriorityClass") => flags.priority_classes,
            Some("CSIDriver" | "CSIStorageCapacity") => flags.csi_storage,
            Some("PodDisruptionBudget") => flags.budgets,
            Some("Numatopology") => flags.numa_topologies,
            _ => true,
        });
        let now_micros = match &parsed.now {
            None => vc_objects::admission::NOON_MICROS,
            Some(now) => vc_wire::parse_time(&now.value)
                .ok_or_else(|| at(line_of(now), format!("now: is no time: {:?}", now.value)))?,
        };
        let tick_micros = match &parsed.tick {
            None => 0,
            Some(tick) => parse_micros(&tick.value).ok_or_else(|| {
                at(line_of(tick), format!("tick: is no duration: {:?}", tick.value))
            })?,
        };
        Ok(Self {
            name: parsed.name,
            options: flags.options,
            config,
            now_micros,
            cycles: parsed.cycles.unwrap_or(1),
            tick_micros,
            kubelet: parsed.kubelet.unwrap_or_default(),
            objects,
            expect: parsed.expect,
        })
    }
}

/// A file that the scheduler would refuse is no configuration; a plugin that nobody knows is skipped.
fn configuration(text: &str, flags: &ScenarioFlags) -> Result<vc_conf::Config, String> {
    let name = "schedulerConf";
    let loaded = vc_conf::parse(name, text, &vc_engine::KNOWN).map_err(|e| e.to_string())?;
    let admitted = loaded.admit(name, &flags.allow_missing).map_err(|e| e.to_string())?;
    Ok(admitted.config)
}

/// The name that a file gives itself, also where the rest of it cannot be read.
pub(super) fn name_in(path: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct ScenarioName {
        name: String,
    }
    let text = text_of(path).ok()?;
    let named = serde_yaml::from_str_with_options::<ScenarioName>(&text, yaml_options());
    named.ok().map(|named| named.name)
}

fn line_of<T>(spanned: &Spanned<T>) -> usize {
    usize::try_from(spanned.referenced.line()).unwrap_or(1)
}

fn objects(
    file: &Arc<str>,
    values: Vec<Spanned<Value>>,
) -> Result<Vec<InputObject>, ScenarioError> {
    let mut input = Input::default();
    for value in values {
        input.add_object(file, line_of(&value), value.value);
    }
    if let Some(unreadable) = input.unreadable.into_iter().next() {
        let line = unreadable.source.line;
        return Err(ScenarioError { file: file.clone(), line, message: unreadable.message });
    }
    for object in &mut input.objects {
        if let Some(message) = unknown_kind(&object.value) {
            return Err(ScenarioError { file: file.clone(), line: object.source.line, message });
        }
        complete(&mut object.value);
    }
    Ok(input.objects)
}

/// Whether this version has never heard of the kind.
fn unknown_kind(value: &Value) -> Option<String> {
    let (api_version, kind) = (text(value, "/apiVersion"), text(value, "/kind"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let same = |known: &&ServedKind| (known.group, known.kind) == (group, kind);
    let known = KINDS.iter().find(same);
    // Versions of what is not read do not matter; of what is read only one is understood.
    let is_read = |known: &ServedKind| vc_wire::kind_of(&known.api_version(), kind).is_some();
    match known {
        Some(known) if known.version == version || !is_read(known) => None,
        None if (group, kind) == ("resource.k8s.io", "DeviceTaintRule") => None,
        None if is_node_metrics(value) => None,
        _ => Some(format!("unknown kind: {api_version} {kind}")),
    }
}

/// What a file leaves out.
fn complete(value: &mut Value) {
    let kind = ServedKind::of(text(value, "/apiVersion"), text(value, "/kind"));
    if kind.is_some_and(ServedKind::is_namespaced) {
        set_default(value, &["metadata"], "namespace", "default");
    }
    let uid = match (text(value, "/metadata/namespace"), text(value, "/metadata/name")) {
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}-{name}"),
    };
    set_default(value, &["metadata"], "uid", uid);
    set_default(value, &["metadata"], "creationTimestamp", "2026-01-01T00:00:00Z");
    if vc_objects::admission::is_pod(value) {
        set_default(value, &["spec"], "schedulerName", SCHEDULER);
    }
}
