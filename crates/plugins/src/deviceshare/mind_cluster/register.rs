//! The Ascend 310P chips of a node: labels of the node, and what its device plugin writes or reports.
//! Specification: plugins-nodes.md 16.10 ("Node").

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};
use vc_model::Node;

use super::super::family::NodeProblem;

const ACCELERATOR: &str = "accelerator";
const KIND: &str = "Ascend310P";
const SERVER: &str = "servertype";
const BASE: &str = "baseDeviceInfos";
const HEALTHY: &str = "huawei.com/Ascend310P";
const UNHEALTHY: &str = "huawei.com/Ascend310P-Unhealthy";
const RECOVERING: &str = "huawei.com/Ascend310P-Recovering";
/// Key of the node's health, as NodeD reports it.
pub(super) const NODE_HEALTH: &str = "nodedNodeHealtyStatus";
/// AI cores of a chip, by product.
const CORES_PER_CHIP: [i64; 2] = [8, 10];

/// The chips of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RegisteredChips {
    pub(super) cores_per_chip: i64,
    /// Physical ids of the chips that pods can have.
    pub(super) usable: BTreeSet<i64>,
    /// Physical ids of the chips that take no pods.
    pub(super) broken: BTreeSet<i64>,
}

/// Returns the chips of the node. Returns `None` if it is no node with Ascend 310P chips, or its
/// device plugin has registered none yet.
///
/// # Errors
/// A label or a text of the device plugin cannot be read: the node then has no chips.
pub(super) fn parse(node: &Node) -> Result<Option<RegisteredChips>, NodeProblem> {
    let kind = node.labels.get(ACCELERATOR).and_then(|text| text.split('-').nth(1));
    if kind != Some(KIND) {
        return Ok(None);
    }
    let base = text_of(node, BASE).map(base_ids).transpose()?;
    let healthy = text_of(node, HEALTHY).map(|text| ids_of(HEALTHY, text)).transpose()?;
    let Some(mut usable) = base.or(healthy) else { return Ok(None) };
    let cores_per_chip = cores_per_chip(node)?;
    let mut broken = BTreeSet::new();
    for key in [UNHEALTHY, RECOVERING] {
        broken.extend(ids_of(key, text_of(node, key).unwrap_or_default())?);
    }
    usable.retain(|id| !broken.contains(id));
    Ok(Some(RegisteredChips { cores_per_chip, usable, broken }))
}

/// Returns what the device plugin reports under this key, else the annotation of the node.
pub(super) fn text_of<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    let reported = node.device_report.as_ref().and_then(|report| report.get(key));
    let text = reported.or_else(|| node.devices.as_ref()?.get(key))?;
    Some(text)
}

/// Returns the ids of the chips that are keys of this object. Names of parts are left out.
fn base_ids(text: &str) -> Result<BTreeSet<i64>, NodeProblem> {
    let problem = |problem: String| broken(BASE, problem);
    let chips: Map<String, Value> = serde_json::from_str(text)
        .map_err(|error| problem(format!("no object with chips in JSON: {error}")))?;
    let whole = chips.keys().filter(|name| name.split('-').count() <= 2);
    whole.map(|name| id_of(name).map_err(problem)).collect()
}

fn ids_of(key: &'static str, text: &str) -> Result<BTreeSet<i64>, NodeProblem> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| id_of(name).map_err(|problem| broken(key, problem))).collect()
}

/// Reads the id of a chip from its name, such as `Ascend310P-0`.
fn id_of(name: &str) -> Result<i64, String> {
    let id = name.strip_prefix(KIND).and_then(|rest| rest.strip_prefix('-'));
    let id = id.and_then(|id| id.parse().ok()).filter(|&id: &i64| 0 <= id);
    id.ok_or_else(|| format!("not the name of a chip: {name:?}"))
}

/// Reads the AI cores of a chip from the label `servertype`, such as `Ascend310P-8`.
fn cores_per_chip(node: &Node) -> Result<i64, NodeProblem> {
    let text = node.labels.get(SERVER).map_or("", |text| &**text);
    let cores = text.split('-').nth(1).and_then(|cores| cores.parse().ok());
    cores.filter(|cores| CORES_PER_CHIP.contains(cores)).ok_or_else(|| NodeProblem {
        annotation: SERVER.into(),
        problem: format!("no server with 8 or 10 AI cores a chip: {text:?}, {UNUSED}"),
        remedy: "label the node as MindCluster documents it, such as servertype=Ascend310P-8",
    })
}

const UNUSED: &str = "its devices are not used";

fn broken(key: &'static str, problem: String) -> NodeProblem {
    NodeProblem {
        annotation: Cow::Borrowed(key),
        problem: format!("{problem}, {UNUSED}"),
        remedy: "restart the Ascend device plugin of the node, which writes it",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use vc_model::Labels;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|&(key, value)| (key.into(), value.into())).collect()
    }

    fn node(server: &str, annotations: &[(&str, &str)], report: &[(&str, &str)]) -> Node {
        Node {
            labels: labels(&[(ACCELERATOR, "huawei-Ascend310P"), (SERVER, server)]),
            devices: Some(Arc::new(labels(annotations))),
            device_report: Some(Arc::new(labels(report))),
            ..Node::default()
        }
    }

    #[test]
    fn nodes_157_chips_of_a_node() {
        let base = (
            BASE,
            r#"{"Ascend310P-0": {"IP": ""}, "Ascend310P-1": {}, "Ascend310P-2c-100-1": {}}"#,
        );
        let chips = |cores_per_chip, usable: &[i64], broken: &[i64]| {
            let [usable, broken] = [usable, broken].map(|ids| ids.iter().copied().collect());
            Ok(Some(RegisteredChips { cores_per_chip, usable, broken }))
        };
        let list = (HEALTHY, "Ascend310P-1, Ascend310P-3,");
        assert_eq!(parse(&node("Ascend310P-8", &[base], &[])), chips(8, &[0, 1], &[]));
        assert_eq!(parse(&node("Ascend310P-10-dual", &[list], &[])), chips(10, &[1, 3], &[]));
        let report = [list, (UNHEALTHY, "Ascend310P-1"), (RECOVERING, "Ascend310P-7")];
        let expected = chips(8, &[3], &[1, 7]);
        assert_eq!(parse(&node("Ascend310P-8", &[(HEALTHY, "Ascend310P-0")], &report)), expected);
        assert_eq!(parse(&node("Ascend310P-8", &[base], &report)), chips(8, &[0], &[1, 7]));
        assert_eq!(parse(&node("Ascend310P-8", &[], &[])), Ok(None));
        assert_eq!(parse(&Node { labels: Labels::new(), ..node("x", &[base], &[]) }), Ok(None));
    }

    #[test]
    fn a_broken_text_takes_all_chips_away() {
        let problem = |server: &str, annotation| {
            let problem = parse(&node(server, &[annotation], &[])).unwrap_err();
            format!("{}: {}", problem.annotation, problem.problem)
        };
        let unused = "its devices are not used";
        assert_eq!(
            problem("Ascend310P-8", (HEALTHY, "Ascend910-0")),
            format!("{HEALTHY}: not the name of a chip: \"Ascend910-0\", {unused}")
        );
        assert!(
            problem("Ascend310P-8", (BASE, "[]")).starts_with("baseDeviceInfos: no object with")
        );
        assert_eq!(
            problem("Ascend310P", (HEALTHY, "Ascend310P-0")),
            format!("servertype: no server with 8 or 10 AI cores a chip: \"Ascend310P\", {unused}")
        );
    }
}
