//! Configuration files of stories: good ones, one of which each story begins with, and bad ones.

/// Chart, the chart with evictions, no admission, and quota by capacity.
pub(super) const GOOD: [&str; 4] = [vc_conf::CHART, EVICTING, BARE, CAPACITY];

/// Files that must not come into force: no YAML, a wrong type, an unknown action, nothing at all.
pub(super) const BAD: [&str; 4] = [
    "actions: \"allocate\"\ntiers: [",
    "actions: \"enqueue, allocate\"\ntiers: 7\n",
    "actions: \"allocate, magic\"\ntiers:\n- plugins:\n  - name: gang\n",
    "",
];

/// The chart's plugins, with the actions that evict.
pub(crate) const EVICTING: &str = r#"actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"#;

const BARE: &str = r#"actions: "allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
  - name: nodeorder
"#;

const CAPACITY: &str = r#"actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: capacity
  - name: nodeorder
"#;

/// Returns a good file with sources of which the server serves none: loads of nodes, and the device configuration.
pub(super) fn with_sources(text: &str) -> String {
    const PLUGIN: &str = "  - name: predicates\n";
    const WITH_DEVICES: &str = "  - name: predicates\n  - name: deviceshare\n    arguments:\n      \
        deviceshare.VGPUEnable: true\n";
    let metrics = if text.contains(PLUGIN) { "metrics:\n  type: prometheus_adaptor\n" } else { "" };
    text.replace(PLUGIN, WITH_DEVICES) + metrics
}

/// Returns a good file that keeps the usage of `fairshare`.
pub(super) fn with_usage(text: &str) -> String {
    const PLUGIN: &str = "  - name: predicates\n";
    const WITH_USAGE: &str = "  - name: fairshare\n    arguments:\n      \
        fairshare.resourceKey: cpu\n      fairshare.halfLifeMinutes: 60\n      \
        fairshare.persistState: true\n      fairshare.flushIntervalSeconds: 7\n  \
        - name: predicates\n";
    text.replace(PLUGIN, WITH_USAGE)
}

/// Returns a good file that places by HyperNodes.
pub(super) fn with_networks(text: &str) -> String {
    const PLUGIN: &str = "  - name: predicates\n";
    text.replace(PLUGIN, "  - name: predicates\n  - name: network-topology-aware\n")
}

/// Returns a good file that shares GPUs by memory. Those exclude vGPUs: a file with sources gets NPUs in place of
/// these, whose configuration is in the same ConfigMap.
pub(super) fn with_gpus(text: &str) -> String {
    const PLUGIN: &str = "  - name: predicates\n";
    const SHARED: &str = "      deviceshare.GPUSharingEnable: true\n";
    const VGPUS: &str = "      deviceshare.VGPUEnable: true\n";
    if text.contains(VGPUS) {
        let with_npus = format!("{SHARED}      deviceshare.AscendHAMiVNPUEnable: true\n");
        return text.replace(VGPUS, &with_npus);
    }
    text.replace(PLUGIN, &format!("{PLUGIN}  - name: deviceshare\n    arguments:\n{SHARED}"))
}

/// Reads a file as the daemon does.
///
/// # Errors
/// The file must not come into force.
pub(crate) fn read(text: &str) -> Result<vc_conf::LoadedConfig, String> {
    let name = "volcano-scheduler.conf";
    let loaded = vc_conf::parse(name, text, &vc_engine::KNOWN).map_err(|it| it.to_string())?;
    loaded.admit(name, &vc_conf::AllowMissing::default()).map_err(|it| it.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_files_are_good_and_bad_ones_are_bad() {
        for text in GOOD {
            assert_eq!(read(text).unwrap().missing, [], "{text}");
            let config = read(&with_sources(text)).unwrap().config;
            assert!(vc_engine::DeviceConfigMap::of(&config).is_some(), "{text}");
            assert_eq!(config.metrics["type"], "prometheus_adaptor", "{text}");
            let loaded = read(&with_usage(&with_sources(text))).unwrap();
            assert!(vc_engine::UsageConfigMap::of(&loaded.config).is_some(), "{text}");
            let is_of_usage = |it: &vc_conf::Warning| it.field.contains("fairshare.");
            assert!(!loaded.warnings.iter().any(is_of_usage), "{:?}", loaded.warnings);
            let loaded = read(&with_networks(text)).unwrap();
            assert!(format!("{:?}", loaded.config).contains("network-topology-aware"), "{text}");
            for text in [with_gpus(text), with_gpus(&with_networks(&with_sources(text)))] {
                let loaded = read(&text).unwrap();
                assert!(text.contains("deviceshare.GPUSharingEnable: true"), "{text}");
                let is_of_devices = |it: &vc_conf::Warning| it.field.contains("deviceshare");
                assert!(!loaded.warnings.iter().any(is_of_devices), "{:?}", loaded.warnings);
                let has_sources = vc_engine::DeviceConfigMap::of(&loaded.config).is_some();
                assert_eq!(has_sources, text.contains("metrics:"), "{text}");
            }
        }
        for text in BAD {
            let changed = with_gpus(&with_networks(&with_usage(&with_sources(text))));
            assert!(read(text).is_err() && changed == text, "{text}");
        }
    }
}
