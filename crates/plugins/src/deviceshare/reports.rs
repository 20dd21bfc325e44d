//! What users are told about the devices of nodes: warnings and gauges, each when it changes. Only
//! nodes that changed are looked at. Specification: plugins-nodes.md 16.5 ("Metrics"), core.md 9.3.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_framework::{DeviceUse, NodeDevices, Outbox, Sample, SessionView};
use vc_model::{ChangeReader, JobId, NodeId};
use vc_resource::Resource;

use super::family::{DeviceFamily, DeviceNode};

/// What is reported about each node.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct DeviceReports {
    /// The nodes that were looked at. By default every node is looked at next.
    #[serde(skip)]
    read: ChangeReader<NodeId>,
    nodes: BTreeMap<NodeId, NodeReport>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct NodeReport {
    node: Arc<str>,
    /// The annotations that take devices away.
    warnings: BTreeSet<String>,
    devices: Vec<DeviceUse>,
    /// By how much the devices of jobs differ from requests.
    corrections: Vec<(JobId, Resource)>,
}

impl DeviceReports {
    /// Makes the next update look at every node, because other kinds of devices are switched on.
    pub(super) fn look_at_all(&mut self) {
        self.read = ChangeReader::default();
    }

    /// Returns by how much the devices of jobs differ from requests, on all nodes.
    pub(super) fn corrections(&self) -> Vec<(JobId, Resource)> {
        self.nodes.values().flat_map(|node| node.corrections.iter().cloned()).collect()
    }

    /// Reports what is new about the nodes.
    pub(super) fn update(
        &mut self,
        view: SessionView<'_>,
        kinds: &[Box<dyn DeviceFamily>],
        out: &mut Outbox,
    ) {
        let all = || view.info.nodes.iter().copied().chain(self.nodes.keys().copied()).collect();
        let changed = self.read.read(view.cluster.node_changes());
        let mut ids: BTreeSet<NodeId> = changed.map_or_else(all, Iterator::collect);
        // A node that was deleted is not in the log of changes.
        let is_there = |id: &NodeId| view.cluster.nodes.get(*id).is_some_and(|node| node.present);
        ids.extend(self.nodes.keys().filter(|id| !is_there(id)));
        let mut new = Vec::new();
        for id in ids {
            let report = report(view, kinds, id);
            let before = match &report {
                Some(report) => self.nodes.insert(id, report.clone()),
                None => self.nodes.remove(&id),
            };
            new.push((before.unwrap_or_default(), report.unwrap_or_default()));
        }
        new.sort_by(|l, r| (&l.1.node, &l.0.node).cmp(&(&r.1.node, &r.0.node)));
        for (before, now) in new {
            tell(before, now, out);
        }
    }
}

/// Reports the differences between two reports of a row. The row may be another node now.
fn tell(before: NodeReport, now: NodeReport, out: &mut Outbox) {
    let is_same_node = before.node == now.node;
    if !is_same_node && !before.devices.is_empty() {
        let gone = NodeDevices { node: before.node, devices: Vec::new() };
        out.samples.push(Sample::NodeDevices(Box::new(gone)));
    }
    let is_known = |warning: &&String| is_same_node && before.warnings.contains(*warning);
    out.warnings.extend(now.warnings.iter().filter(|warning| !is_known(warning)).cloned());
    let known = if is_same_node { &before.devices[..] } else { &[] };
    if known != now.devices {
        let devices = NodeDevices { node: now.node, devices: now.devices };
        out.samples.push(Sample::NodeDevices(Box::new(devices)));
    }
}

/// Returns the report of a node. Returns `None` if it has nothing to do with shared devices.
fn report(
    view: SessionView<'_>,
    kinds: &[Box<dyn DeviceFamily>],
    id: NodeId,
) -> Option<NodeReport> {
    let node = view.cluster.nodes.get(id).filter(|node| node.present)?;
    node.devices.as_ref().or(node.device_report.as_ref())?;
    let warning = |kind: &dyn DeviceFamily| {
        let it = kind.problem(node)?;
        let place = format!("node {}: annotation {}", node.name, it.annotation);
        Some(format!("{place}: {}\nhint: {}", it.problem, it.remedy))
    };
    let at = DeviceNode { cluster: view.cluster, node: id, after_releases: false };
    Some(NodeReport {
        node: node.name.clone(),
        warnings: kinds.iter().filter_map(|kind| warning(&**kind)).collect(),
        devices: kinds.iter().flat_map(|kind| kind.uses(at)).collect(),
        corrections: kinds.iter().flat_map(|kind| kind.corrections(at)).collect(),
    })
}
