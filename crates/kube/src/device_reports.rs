//! What device plugins report in ConfigMaps about the Ascend chips of nodes. Specification:
//! plugins-nodes.md 16.10 ("Reports").

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};
use vc_model::{ClusterEvent, Labels};

use crate::call::{CallError, call};
use crate::client::Clients;
use crate::failure_log::FailureLog;
use crate::inbox::EngineMessage;

/// How often the ConfigMaps are read.
const PERIOD: Duration = Duration::from_secs(10);
const MIND_X: &str = "mindx-dl";
const KUBE_SYSTEM: &str = "kube-system";
const DEVICE_INFO: &str = "mindx-dl-deviceinfo-";
const NODE_INFO: &str = "mindx-dl-nodeinfo-";
/// Key of the health of a node in its report.
const NODE_HEALTH: &str = "nodedNodeHealtyStatus";

/// Who writes the ConfigMaps that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceReportSource {
    /// ClusterD, for all nodes.
    Cluster,
    /// The device plugin and NodeD of each node.
    Nodes,
}

impl DeviceReportSource {
    /// Returns namespaces and the label of their ConfigMaps.
    fn places(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Cluster => &[(MIND_X, "mx-consumer-volcano=true")],
            Self::Nodes => {
                &[(KUBE_SYSTEM, "mx-consumer-cim=true"), (MIND_X, "mx-consumer-cim=true")]
            }
        }
    }
}

/// What is reported about nodes, by name.
type NodeReports = BTreeMap<Arc<str>, Labels>;

/// Reads the reports of the source that `sources` holds, until nobody listens any more. `None`:
/// nothing is read, and earlier reports end.
pub async fn follow_device_reports(
    mut sources: watch::Receiver<Option<DeviceReportSource>>,
    clients: Clients,
    inbox: mpsc::Sender<EngineMessage>,
) {
    let mut known = NodeReports::new();
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first one is due at once, as is the first round.
    ticks.tick().await;
    loop {
        let source = *sources.borrow_and_update();
        let read = match source {
            Some(source) => read(&clients, source).await,
            None => Ok(NodeReports::new()),
        };
        match read {
            Ok(reports) if reports != known => {
                known.clone_from(&reports);
                let event = ClusterEvent::DeviceReportsRead(reports.into_iter().collect());
                if inbox.send(EngineMessage::Event(event)).await.is_err() {
                    return;
                }
            }
            Ok(_) => {}
            Err(error) => {
                clients.failures.warn("reports of Ascend chips not read", MIND_X, &error);
            }
        }
        tokio::select! {
            biased;
            _ = ticks.tick(), if source.is_some() => {}
            changed = sources.changed() => {
                if changed.is_err() {
                    return;
                }
            }
        }
    }
}

/// Reads the ConfigMaps of a source.
async fn read(clients: &Clients, source: DeviceReportSource) -> Result<NodeReports, CallError> {
    let mut reports = NodeReports::new();
    for &(namespace, label) in source.places() {
        let api: Api<ConfigMap> = Api::namespaced(clients.core.clone(), namespace);
        for map in call(api.list(&ListParams::default().labels(label))).await? {
            for (node, texts) in reports_of(&map, &clients.failures) {
                reports.entry(node).or_default().extend(texts);
            }
        }
    }
    Ok(reports)
}

/// The list of a device plugin, by kind of chips: names with commas.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DeviceList {
    #[serde(default)]
    device_list: BTreeMap<String, String>,
}

/// The report of one device plugin.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DeviceInfoConfig {
    device_info: DeviceList,
}

/// The health of a node by NodeD.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NodeHealth {
    #[serde(default)]
    node_status: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NodeHealthConfig {
    node_info: NodeHealth,
}

/// Returns the reports in a ConfigMap, by node. One that is none of them, or cannot be read, has none.
fn reports_of(map: &ConfigMap, failures: &FailureLog) -> Vec<(Arc<str>, Labels)> {
    let name = map.metadata.name.as_deref().unwrap_or_default();
    if let Some(node) = name.strip_prefix(DEVICE_INFO) {
        let info: Option<DeviceInfoConfig> = value(map, failures, "DeviceInfoCfg");
        return info.map(|it| (node.into(), it.device_info.texts())).into_iter().collect();
    }
    if let Some(node) = name.strip_prefix(NODE_INFO) {
        let info: Option<NodeHealthConfig> = value(map, failures, "NodeInfo");
        return info.map(|it| (node.into(), it.node_info.texts())).into_iter().collect();
    }
    if name.starts_with("cluster-info-device-") {
        let nodes: BTreeMap<String, DeviceList> = value(map, failures, name).unwrap_or_default();
        return nodes.into_iter().map(|(key, it)| (node(&key, DEVICE_INFO), it.texts())).collect();
    }
    if name == "cluster-info-node-cm" {
        let nodes: BTreeMap<String, NodeHealth> = value(map, failures, name).unwrap_or_default();
        return nodes.into_iter().map(|(key, it)| (node(&key, NODE_INFO), it.texts())).collect();
    }
    Vec::new()
}

fn node(key: &str, prefix: &str) -> Arc<str> {
    key.strip_prefix(prefix).unwrap_or(key).into()
}

/// Reads a value as JSON, and logs one that cannot be read. An empty one stands for none.
fn value<T: DeserializeOwned>(map: &ConfigMap, failures: &FailureLog, key: &str) -> Option<T> {
    let text = map.data.as_ref()?.get(key).filter(|text| !text.is_empty())?;
    let value = serde_json::from_str(text);
    let name = map.metadata.name.as_deref().unwrap_or_default();
    value
        .inspect_err(|error| {
            let what = "report of Ascend chips left out";
            failures.warn(what, format!("ConfigMap {name}, {key}"), error);
        })
        .ok()
}

impl DeviceList {
    fn texts(self) -> Labels {
        let is_310p = |(key, _): &(String, String)| key.starts_with("huawei.com/Ascend310P");
        let texts = self.device_list.into_iter().filter(is_310p);
        texts.map(|(key, text)| (key.into(), text.into())).collect()
    }
}

impl NodeHealth {
    fn texts(self) -> Labels {
        [(NODE_HEALTH.into(), self.node_status.into())].into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The reports as `node key=text ...`, for a ConfigMap with one key.
    fn shown(name: &str, key: &str, text: &str) -> Vec<String> {
        let map = json!({"metadata": {"name": name}, "data": {key: text}});
        let map: ConfigMap = serde_json::from_value(map).unwrap();
        let pair = |(key, text): (&Arc<str>, &Arc<str>)| format!(" {key}={text}");
        let line = |(node, texts): (Arc<str>, Labels)| {
            format!("{node}{}", texts.iter().map(pair).collect::<String>())
        };
        reports_of(&map, &FailureLog::default()).into_iter().map(line).collect()
    }

    #[test]
    fn nodes_157_config_maps_of_mind_cluster() {
        let list = r#"{"DeviceList": {"huawei.com/Ascend310P": "Ascend310P-0",
            "huawei.com/Ascend910": "Ascend910-0"}, "UpdateTime": 7}"#;
        let device = "huawei.com/Ascend310P=Ascend310P-0";
        let health = "nodedNodeHealtyStatus=PreSeparate";
        for (name, key, text, expected) in [
            (
                "cluster-info-device-0",
                "cluster-info-device-0",
                &*format!(
                    r#"{{"mindx-dl-deviceinfo-n1": {list}, "mindx-dl-deviceinfo-n2": {list}}}"#
                ),
                vec![format!("n1 {device}"), format!("n2 {device}")],
            ),
            (
                "mindx-dl-deviceinfo-n1",
                "DeviceInfoCfg",
                &*format!(r#"{{"DeviceInfo": {list}, "CheckCode": "x"}}"#),
                vec![format!("n1 {device}")],
            ),
            (
                "cluster-info-node-cm",
                "cluster-info-node-cm",
                r#"{"mindx-dl-nodeinfo-n1": {"FaultDevList": [], "NodeStatus": "PreSeparate"}}"#,
                vec![format!("n1 {health}")],
            ),
            (
                "mindx-dl-nodeinfo-n1",
                "NodeInfo",
                r#"{"NodeInfo": {"NodeStatus": "PreSeparate"}, "CheckCode": "x"}"#,
                vec![format!("n1 {health}")],
            ),
            ("mindx-dl-nodeinfo-n1", "NodeInfo", "", vec![]),
            ("cluster-info-device-0", "cluster-info-device-0", "nonsense", vec![]),
            ("cluster-info-switch-0", "cluster-info-switch-0", "{}", vec![]),
        ] {
            assert_eq!(shown(name, key, text), expected, "{name} {text}");
        }
    }
}
