//! Command-line flags in scenarios. All of the daemon's are known; those that change decisions of
//! the engine have an effect. Specification: core.md 1.1, 1.3.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use vc_conf::AllowMissing;
use vc_engine::EngineOptions;
use vc_model::ShardingMode;

/// The value of a flag: the text after `=`, or a list when it is repeated.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum FlagValues {
    Bool(bool),
    Int(i64),
    Number(f64),
    Text(String),
    List(Vec<String>),
}

impl FlagValues {
    fn texts(&self) -> Vec<String> {
        match self {
            Self::Bool(value) => vec![value.to_string()],
            Self::Int(value) => vec![value.to_string()],
            Self::Number(value) => vec![value.to_string()],
            Self::Text(text) => vec![text.clone()],
            Self::List(texts) => texts.clone(),
        }
    }
}

/// Flags of the daemon that do not change what its engine decides from given objects, or not yet.
const WITHOUT_EFFECT: &[&str] = &[
    "master",
    "kubeconfig",
    "ca-cert-file",
    "tls-cert-file",
    "tls-private-key-file",
    "lock-object-namespace",
    "scheduler-conf",
    "schedule-period",
    "schedule-trigger",
    "schedule-gather",
    "resync-period",
    "version",
    "listen-address",
    "healthz-address",
    "kube-api-qps",
    "kube-api-burst",
    "minimum-feasible-nodes",
    "minimum-percentage-nodes-to-find",
    "percentage-nodes-to-find",
    "plugins-dir",
    "enable-healthz",
    "enable-metrics",
    "enable-pprof",
    "cache-dumper",
    "cache-dump-dir",
    "node-worker-threads",
    "gate-removal-worker-num",
    "resource-sync-timeout",
    "disable-default-scheduler-config",
    "leader-elect",
    "leader-elect-lease-duration",
    "leader-elect-renew-deadline",
    "leader-elect-retry-period",
    "leader-elect-resource-lock",
    "leader-elect-resource-name",
    "leader-elect-resource-namespace",
    "log-flush-frequency",
    "v",
];

/// What flags change.
pub(super) struct ScenarioFlags {
    pub(super) options: EngineOptions,
    /// What the configuration may name though this version lacks it.
    pub(super) allow_missing: AllowMissing,
    /// Whether PriorityClasses are watched.
    pub(super) priority_classes: bool,
    /// Whether CSIDrivers and CSIStorageCapacities are watched.
    pub(super) csi_storage: bool,
    /// Whether PodDisruptionBudgets are watched.
    pub(super) budgets: bool,
    /// Whether Numatopologies are watched.
    pub(super) numa_topologies: bool,
}

impl Default for ScenarioFlags {
    fn default() -> Self {
        let options = EngineOptions::default();
        let allow_missing = AllowMissing::Nothing;
        Self {
            options,
            allow_missing,
            priority_classes: true,
            csi_storage: true,
            budgets: true,
            numa_topologies: true,
        }
    }
}

/// Reads flags.
pub(super) fn read(flags: &BTreeMap<String, FlagValues>) -> Result<ScenarioFlags, String> {
    let mut read = ScenarioFlags::default();
    for (name, values) in flags {
        let name = name.replace('_', "-");
        apply(&mut read, &name, &values.texts())
            .map_err(|problem| format!("flags.{name}: {problem}"))?;
    }
    Ok(read)
}

fn apply(flags: &mut ScenarioFlags, name: &str, values: &[String]) -> Result<(), String> {
    let settings = &mut flags.options.settings;
    let last = values.last().map_or("", String::as_str);
    match name {
        "scheduler-name" => {
            settings.scheduler_names = values.iter().map(|name| Arc::from(name.as_str())).collect();
        }
        "allow-missing-plugins" => {
            flags.allow_missing = AllowMissing::of(values.iter().map(String::as_str));
        }
        "default-queue" => settings.default_queue = last.into(),
        "node-selector" => {
            let pairs = values.iter().flat_map(|value| value.split(','));
            settings.node_selector = pairs.filter_map(label_and_value).collect();
        }
        "feature-gates" => {
            for gate in values.iter().flat_map(|value| value.split(',')) {
                set_gate(flags, gate)?;
            }
        }
        "ignored-provisioners" => {
            let names = values.iter().flat_map(|value| value.split(','));
            settings.ignored_provisioners = names.map(Arc::from).collect();
        }
        "csi-storage" => flags.csi_storage = flag(last)?,
        "scheduler-sharding-mode" => settings.sharding.mode = sharding_mode(last),
        "scheduler-sharding-name" => settings.sharding.name = last.into(),
        "bare-pods" => settings.bare_pods = bare_pods(last)?,
        "priority-class" => flags.priority_classes &= flag(last)?,
        _ if WITHOUT_EFFECT.contains(&name) => {}
        _ => return Err("unknown flag".to_owned()),
    }
    Ok(())
}

/// Anything else acts as `none` (core.md 1.1).
fn sharding_mode(text: &str) -> ShardingMode {
    match text {
        "hard" => ShardingMode::Hard,
        "soft" => ShardingMode::Soft,
        _ => ShardingMode::None,
    }
}

fn bare_pods(text: &str) -> Result<bool, String> {
    match text {
        "schedule" => Ok(true),
        "ignore" => Ok(false),
        _ => Err(format!("must be ignore or schedule: {text:?}")),
    }
}

/// `label:value`, trimmed; entries without a value are ignored (core.md 4.3).
fn label_and_value(pair: &str) -> Option<(Arc<str>, Arc<str>)> {
    let (label, value) = pair.split_once(':')?;
    let (label, value) = (label.trim(), value.trim());
    (!value.is_empty()).then(|| (label.into(), value.into()))
}

fn set_gate(flags: &mut ScenarioFlags, gate: &str) -> Result<(), String> {
    let (name, value) = gate.split_once('=').unwrap_or((gate, ""));
    let on = flag(value)?;
    match name.trim() {
        "InPlacePodVerticalScaling" => flags.options.settings.gates.in_place_resize = on,
        "PodLevelResources" => flags.options.settings.gates.pod_level_resources = on,
        "PodDisruptionBudgetsSupport" => flags.budgets = on,
        "ResourceTopology" => flags.numa_topologies = on,
        "PriorityClass" => flags.priority_classes &= on,
        "SchedulingGatesQueueAdmission" => flags.options.settings.queue_gate_admission = on,
        "DynamicResourceAllocation" => flags.options.settings.dynamic_resources = on,
        "DRAConsumableCapacity" => flags.options.settings.consumable_capacity = on,
        "StorageCapacityScoring" => flags.options.settings.storage_capacity_scoring = on,
        _ => {}
    }
    Ok(())
}

fn flag(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("must be true or false: {text:?}")),
    }
}
