//! The argument keys that each registered plugin reads (plugins-jobs-queues.md, plugins-nodes.md,
//! cohort.md). Volcano ignores other keys silently; here they give a warning (C-07).

use crate::arguments::Arguments;
use crate::error::Warning;
use crate::older::moved_argument;
use crate::spelling::did_you_mean;

/// Plugin and its keys. A `*` stands for any text. A registered plugin that is not listed reads
/// no arguments.
const KEYS: &[(&str, &[&str])] = &[
    (
        "binpack",
        &[
            "binpack.weight",
            "binpack.cpu",
            "binpack.memory",
            "binpack.resources",
            "binpack.resources.*",
        ],
    ),
    (
        "capacity",
        &[
            "ancestorReclaimLevel",
            "capacity.DynamicResourceAllocationEnable",
            "capacity.DRAConsumableCapacityEnable",
        ],
    ),
    (
        "cohort",
        &[
            "withinClusterQueue",
            "reclaimWithinCohort",
            "borrowWithinCohort.policy",
            "borrowWithinCohort.maxPriorityThreshold",
            "fairSharing.enable",
            "fairSharing.preemptionStrategies",
            "rootCohort",
            "rootQuota",
            "preemptionBackoff",
            "weightedSharePeriod",
        ],
    ),
    (
        "deviceshare",
        &[
            "deviceshare.GPUSharingEnable",
            "deviceshare.GPUNumberEnable",
            "deviceshare.VGPUEnable",
            "deviceshare.AscendHAMiVNPUEnable",
            "deviceshare.AscendMindClusterVNPUEnable",
            "deviceshare.NodeLockEnable",
            "deviceshare.SchedulePolicy",
            "deviceshare.ScheduleWeight",
            "deviceshare.KnownGeometriesCMName",
            "deviceshare.KnownGeometriesCMNamespace",
            "deviceshare.GPUExclusiveRules",
        ],
    ),
    (
        "extender",
        &[
            "extender.urlPrefix",
            "extender.httpTimeout",
            "extender.ignorable",
            "extender.managedResources",
            "extender.onSessionOpenVerb",
            "extender.onSessionCloseVerb",
            "extender.predicateVerb",
            "extender.prioritizeVerb",
            "extender.preemptableVerb",
            "extender.reclaimableVerb",
            "extender.queueOverusedVerb",
            "extender.jobEnqueueableVerb",
            "extender.jobEnqueuedVerb",
            "extender.jobReadyVerb",
            "extender.allocateFuncVerb",
            "extender.deallocateFuncVerb",
        ],
    ),
    (
        "network-topology-aware",
        &[
            "weight",
            "hypernode.binpack.cpu",
            "hypernode.binpack.memory",
            "hypernode.binpack.resources",
            "hypernode.binpack.resources.*",
            "hypernode.binpack.normal-pod.enable",
            "hypernode.binpack.normal-pod.fading",
            "hypernode.gradient.evict.max-hypernodes",
        ],
    ),
    ("nodegroup", &["strict", "enablePreferredOrder"]),
    (
        "nodeorder",
        &[
            "leastrequested.weight",
            "mostrequested.weight",
            "balancedresource.weight",
            "balancedresource.mode",
            "nodeaffinity.weight",
            "podaffinity.weight",
            "tainttoleration.weight",
            "podtopologyspread.weight",
            "imagelocality.weight",
        ],
    ),
    ("numa-aware", &["weight"]),
    ("overcommit", &["overcommit-factor"]),
    (
        "predicates",
        &[
            "predicate.NodeAffinityEnable",
            "predicate.NodePortsEnable",
            "predicate.TaintTolerationEnable",
            "predicate.PodAffinityEnable",
            "predicate.NodeVolumeLimitsEnable",
            "predicate.VolumeRestrictionsEnable",
            "predicate.VolumeZoneEnable",
            "predicate.PodTopologySpreadEnable",
            "predicate.VolumeBindingEnable",
            "predicate.DynamicResourceAllocationEnable",
            "predicate.CacheEnable",
            "volumebinding.bindTimeoutSeconds",
            "volumebinding.weight",
            "volumebinding.shape",
            "dynamicresources.filterTimeoutSeconds",
        ],
    ),
    ("rescheduling", &["interval", "metricsPeriod", "strategies"]),
    ("resource-strategy-fit", &["resourceStrategyFitWeight", "resources", "sra", "proportional"]),
    ("sla", &["sla-waiting-time"]),
    ("task-topology", &["task-topology.weight"]),
    ("tdm", &["tdm.evict.period", "*tdm.revocable-zone.*"]),
    ("usage", &["usage.weight", "cpu.weight", "memory.weight", "thresholds", "estimator"]),
];

/// The keys that a registered plugin reads.
pub(crate) fn keys_of(plugin: &str) -> &'static [&'static str] {
    KEYS.iter().find(|(name, _)| *name == plugin).map_or(&[], |(_, keys)| keys)
}

/// One warning for every argument that nobody of this name reads.
pub(crate) fn warn_unknown(
    owner: &str,
    keys: &[&str],
    arguments: &Arguments,
    warnings: &mut Vec<Warning>,
) {
    for (key, _) in arguments.iter() {
        if keys.iter().any(|pattern| matches(pattern, key)) {
            continue;
        }
        let message = format!("unknown argument {key} of {owner}, it is ignored");
        let moved = moved_argument(owner, key).map(str::to_owned);
        let remedy = moved.unwrap_or_else(|| did_you_mean(key, keys));
        warnings.push(arguments.warning(key, &message, &remedy));
    }
}

fn matches(pattern: &str, key: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(_), Some(_)) => key.contains(pattern.trim_matches('*')),
        (None, Some(prefix)) => key.starts_with(prefix),
        _ => key == pattern,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::registry::{ACTIONS, PLUGINS};
    use crate::settings::keys_of as action_keys_of;

    #[test]
    fn every_listed_plugin_is_registered_and_listed_once() {
        for (position, (plugin, _)) in KEYS.iter().enumerate() {
            assert!(PLUGINS.contains(plugin), "{plugin}");
            assert!(KEYS[..position].iter().all(|(other, _)| other != plugin), "{plugin}");
        }
    }

    #[test]
    fn patterns() {
        for (plugin, key, known) in [
            ("binpack", "binpack.resources.nvidia.com/gpu", true),
            ("binpack", "binpack.resource", false),
            ("tdm", "tdm.revocable-zone.rz1", true),
            ("tdm", "my.tdm.revocable-zone.rz1", true),
            ("gang", "weight", false),
        ] {
            let arguments: Arguments = [(key, json!(1))].into_iter().collect();
            let mut warnings = Vec::new();
            warn_unknown(plugin, keys_of(plugin), &arguments, &mut warnings);
            assert_eq!(warnings.is_empty(), known, "{plugin} {key}");
        }
    }

    #[test]
    fn the_remedy_is_the_nearest_key() {
        let arguments: Arguments = [("leastrequest.weight", json!(1))].into_iter().collect();
        let mut warnings = Vec::new();
        warn_unknown("nodeorder", keys_of("nodeorder"), &arguments, &mut warnings);
        assert_eq!(warnings[0].remedy, "did you mean leastrequested.weight?");
    }

    fn file(path: &str) -> String {
        let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Number of keys and of patterns that the schema allows.
    fn in_schema(arguments: &Value) -> (usize, usize) {
        let size = |key: &str| arguments[key].as_object().map_or(0, |map| map.len());
        (size("properties"), size("patternProperties"))
    }

    #[test]
    fn schema_and_document_have_every_argument() {
        let schema: Value =
            serde_json::from_str(&file("config/volcano-scheduler.schema.json")).unwrap();
        let document = file("docs/configuration.md");
        let plugins = PLUGINS.iter().map(|name| ("pluginArguments", *name, keys_of(name)));
        let actions = ACTIONS.iter().map(|name| ("actionArguments", *name, action_keys_of(name)));
        for (group, owner, keys) in plugins.chain(actions) {
            let arguments = &schema["$defs"][group][owner];
            let (patterns, plain): (Vec<&str>, Vec<&str>) =
                keys.iter().copied().partition(|key| key.contains('*'));
            assert_eq!(in_schema(arguments), (plain.len(), patterns.len()), "{owner}");
            for key in plain {
                assert!(!arguments["properties"][key].is_null(), "{owner}: {key}");
                assert!(document.contains(&format!("`{key}`")), "{owner}: {key}");
            }
        }
    }
}
