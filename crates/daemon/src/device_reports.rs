//! Who reports the Ascend chips of nodes, by the configuration. Specification: plugins-nodes.md 16.10
//! ("Reports").

use vc_conf::Config;
use vc_kube::DeviceReportSource;

/// Entry of `configurations` with the parameters of MindCluster.
const PARAMETERS: &str = "init-params";
const USE_CLUSTER_D: &str = "useClusterInfoManager";

/// Returns the source of the configuration. Returns `None` if it does not need the reports.
pub(crate) fn source(config: &Config) -> Option<DeviceReportSource> {
    if !vc_engine::needs_device_reports(config) {
        return None;
    }
    let parameters = config.action_arguments(PARAMETERS);
    let given = parameters.structured(USE_CLUSTER_D);
    let is_by_node = given.is_given() && given.text() != "true" && !given.is_true();
    Some(if is_by_node { DeviceReportSource::Nodes } else { DeviceReportSource::Cluster })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_157_the_source_by_configuration() {
        let source = |is_on: bool, parameters: &str| {
            let arguments = format!("deviceshare.AscendMindClusterVNPUEnable: {is_on}");
            let text = format!(
                "actions: allocate\ntiers:\n- plugins: [{{name: deviceshare, arguments: \
                 {{{arguments}}}}}]\n{parameters}"
            );
            let loaded = vc_conf::parse("test.conf", &text, &vc_engine::KNOWN).unwrap();
            assert_eq!(loaded.warnings, []);
            super::source(&loaded.config)
        };
        let parameters = |value: &str| {
            format!("configurations:\n- {{name: init-params, arguments: {{{value}}}}}\n")
        };
        let preset = parameters("grace-over-time: \"900\", presetVirtualDevice: \"false\"");
        assert_eq!(source(false, ""), None);
        assert_eq!(source(true, ""), Some(DeviceReportSource::Cluster));
        assert_eq!(source(true, &preset), Some(DeviceReportSource::Cluster));
        for (value, expected) in [
            ("\"true\"", DeviceReportSource::Cluster),
            ("true", DeviceReportSource::Cluster),
            ("\"false\"", DeviceReportSource::Nodes),
            ("false", DeviceReportSource::Nodes),
        ] {
            let parameters = parameters(&format!("useClusterInfoManager: {value}"));
            assert_eq!(source(true, &parameters), Some(expected), "{value}");
        }
    }
}
