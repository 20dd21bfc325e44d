//! The options of an engine by which it decides, beside its configuration. A bundle states them for people.
//! Specification: answers.md 15 (ANS-103).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vc_framework::Evaluator;
use vc_model::{Settings, ShardingMode};

/// The options of an engine by which it decides. A field that a flag or a variable of the environment sets has its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DecidingOptions {
    /// Seed from which session ids are derived.
    pub seed: u64,
    /// `plain` or `fast`. Both decide the same.
    pub evaluator: String,
    /// Names in the pods that are scheduled.
    pub scheduler_names: Vec<String>,
    /// Queue of PodGroups that name none.
    pub default_queue: String,
    /// Labels of the nodes that are used, as `label:value`. Empty: all nodes.
    pub node_selector: Vec<String>,
    /// `schedule` or `ignore`.
    pub bare_pods: String,
    /// Feature gates that are flags, or follow from the version of the API server.
    pub feature_gates: BTreeMap<String, bool>,
    /// `none`, `hard` or `soft`.
    pub scheduler_sharding_mode: String,
    /// Name of the NodeShard.
    pub scheduler_sharding_name: String,
    /// CSI drivers whose volumes are not counted.
    pub ignored_provisioners: Vec<String>,
    /// Name among the schedulers that share the work. `None`: there is one scheduler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler_pod_name: Option<String>,
    /// Number of the schedulers that share the work. `None`: there is one scheduler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler_num: Option<usize>,
    /// Offset of local time from UTC, in seconds.
    pub utc_offset_seconds: i64,
}

impl DecidingOptions {
    /// Returns the options of an engine with these settings, at a time in microseconds since 1970.
    pub(crate) fn new(
        settings: &Settings,
        (seed, evaluator): (u64, Evaluator),
        now_micros: i64,
    ) -> Self {
        // Each field is named, so that a new one is not forgotten here.
        let Settings {
            scheduler_names,
            default_queue,
            node_selector,
            gates,
            bare_pods,
            division,
            sharding,
            queue_gate_admission,
            dynamic_resources,
            consumable_capacity,
            ignored_provisioners,
            storage_capacity_scoring,
            utc_offset,
        } = settings;
        let feature_gates = [
            ("InPlacePodVerticalScaling", gates.in_place_resize),
            ("PodLevelResources", gates.pod_level_resources),
            ("SchedulingGatesQueueAdmission", *queue_gate_admission),
            ("DynamicResourceAllocation", *dynamic_resources),
            ("DRAConsumableCapacity", *consumable_capacity),
            ("StorageCapacityScoring", *storage_capacity_scoring),
        ];
        let selector = node_selector.iter().map(|(label, value)| format!("{label}:{value}"));
        Self {
            seed,
            evaluator: evaluator_name(evaluator).to_owned(),
            scheduler_names: scheduler_names.iter().map(|name| name.to_string()).collect(),
            default_queue: default_queue.to_string(),
            node_selector: selector.collect(),
            bare_pods: if *bare_pods { "schedule" } else { "ignore" }.to_owned(),
            feature_gates: feature_gates.map(|(name, is_on)| (name.to_owned(), is_on)).into(),
            scheduler_sharding_mode: sharding_mode_name(sharding.mode).to_owned(),
            scheduler_sharding_name: sharding.name.to_string(),
            ignored_provisioners: ignored_provisioners.iter().map(|it| it.to_string()).collect(),
            scheduler_pod_name: division.as_ref().map(|it| it.own_name().to_owned()),
            scheduler_num: division.as_ref().map(|it| it.n_schedulers()),
            utc_offset_seconds: utc_offset.seconds(now_micros),
        }
    }
}

fn evaluator_name(evaluator: Evaluator) -> &'static str {
    match evaluator {
        Evaluator::Plain => "plain",
        Evaluator::Fast => "fast",
    }
}

fn sharding_mode_name(mode: ShardingMode) -> &'static str {
    match mode {
        ShardingMode::None => "none",
        ShardingMode::Hard => "hard",
        ShardingMode::Soft => "soft",
    }
}
