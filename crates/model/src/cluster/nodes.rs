//! Events of nodes. A node that only pods name is a placeholder: its row has the sums of its pods,
//! but it is not in the snapshot. Specification: core.md 3.8, 4.3 with C-18 and C-19.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_resource::{Dim, Resource};

use crate::cluster::Cluster;
use crate::copy_on_write::CopyOnWrite;
use crate::device_share::devices_of_node;
use crate::domains::Domains;
use crate::ids::{ClassId, NodeId};
use crate::node::Node;
use crate::node_load::NodeLoad;
use crate::numa::NumaTopology;
use crate::record::NodeRecord;
use crate::request::to_resource;
use crate::selector::Labels;

impl Cluster {
    /// Returns the row of a node. A placeholder is created if the name is new.
    pub(super) fn node_row(&mut self, name: &Arc<str>) -> NodeId {
        if let Some(&node) = self.node_by_name.get(name) {
            return node;
        }
        let node = self.nodes.insert(Node { name: name.clone(), ..Node::default() });
        Arc::make_mut(&mut self.node_by_name).insert(name.clone(), node);
        node
    }

    /// Applies a node. Returns true if something changed.
    pub(super) fn node_applied(&mut self, record: NodeRecord) -> bool {
        let division = self.settings.division.as_ref();
        let ours = division.is_none_or(|division| division.owns(&record.name));
        if !ours || !self.selects_node(&record.labels) {
            // C-18: the node is no longer schedulable, but its tasks are still accounted.
            self.node_deleted(&record.name);
            return true;
        }
        let id = self.node_row(&record.name);
        let mut allocatable = to_resource(&record.allocatable, &mut self.dims);
        let mut capacity = to_resource(&record.capacity, &mut self.dims);
        let extra = oversubscription(&record.annotations);
        for amounts in [&mut allocatable, &mut capacity] {
            amounts.add(&extra);
            amounts.raise_to_zero();
        }
        for (dim, limit) in self.volume_limits(&record.name) {
            allocatable.set(dim, limit);
            capacity.set(dim, limit);
        }
        let devices = devices_of_node(&record.annotations);
        if *self.last_taints != *record.taints {
            self.last_taints = record.taints.into();
        }
        let taints = self.last_taints.clone();
        let node = &self.nodes[id];
        let known = (&node.labels, &node.taints, node.unschedulable, &node.capacity, &node.devices);
        let told = (&record.labels, &taints, record.unschedulable, &capacity, &devices);
        let in_shard = self.shards.ours.get().contains(&node.name);
        let is_same = node.present && known == told && node.in_shard == in_shard;
        if is_same && node.allocatable == allocatable && self.has_images(id, &record.images) {
            return false;
        }
        let moves = !node.present || node.labels != record.labels || node.taints != taints;
        self.enter(id);
        self.node_changes.push(id);
        self.object_changes.push(id);
        if moves {
            self.each_in_view(id, Domains::leave);
        }
        self.set_images(id, &record.images);
        let numa = self.numa_topologies.get().get(&record.name).cloned();
        let device_report = self.device_reports.get().get(&record.name).cloned();
        let node = &mut self.nodes[id];
        (node.numa, node.device_report) = (numa, device_report);
        node.in_shard = self.shards.ours.get().contains(&node.name);
        node.revocable_zone =
            record.labels.get("volcano.sh/revocable-zone").cloned().unwrap_or_default();
        node.labels = record.labels;
        node.unschedulable = record.unschedulable;
        node.taints = taints;
        node.capacity = capacity;
        if node.devices != devices {
            node.devices = devices;
        }
        if moves {
            self.domains.set_node(id, &self.nodes[id]);
            self.each_in_view(id, Domains::enter);
        }
        self.change_allocatable(id, allocatable);
        true
    }

    /// Applies the loads that a source has sent. Names of nodes that do not exist are skipped.
    /// Returns true if something changed.
    pub(super) fn node_loads_read(&mut self, loads: Vec<(Arc<str>, NodeLoad)>) -> bool {
        let mut is_news = false;
        for (name, load) in loads {
            let Some(id) = self.node(&name).filter(|&id| self.nodes[id].present) else { continue };
            if self.nodes[id].load != Some(load) {
                self.nodes[id].load = Some(load);
                self.node_changes.push(id);
                is_news = true;
            }
        }
        is_news
    }

    pub(super) fn node_deleted(&mut self, name: &str) {
        let Some(id) = self.node(name).filter(|&id| self.nodes[id].present) else { return };
        self.leave(id);
        self.each_in_view(id, Domains::leave);
        let node = &mut self.nodes[id];
        self.images.release(&node.images);
        let placeholder = Node {
            name: std::mem::take(&mut node.name),
            used: std::mem::take(&mut node.used),
            releasing: std::mem::take(&mut node.releasing),
            pipelined: std::mem::take(&mut node.pipelined),
            tasks: std::mem::take(&mut node.tasks),
            n_terminated: node.n_terminated,
            view: std::mem::take(&mut node.view),
            volumes: std::mem::take(&mut node.volumes),
            ..Node::default()
        };
        *node = placeholder;
        node.set_allocatable(Resource::default());
        self.domains.set_node(id, &self.nodes[id]);
        self.each_in_view(id, Domains::enter);
        self.drop_unnamed_node(id);
    }

    /// Applies a Numatopology. Returns true if something changed.
    pub(super) fn numa_topology_applied(&mut self, topology: NumaTopology) -> bool {
        let known = self.numa_topologies.get().get(&topology.name);
        if known.is_some_and(|known| **known == topology) {
            return false;
        }
        let name = topology.name.clone();
        self.numa_topologies.get_mut().insert(name.clone(), Arc::new(topology));
        self.change_numa(&name);
        true
    }

    pub(super) fn numa_topology_deleted(&mut self, name: &str) {
        if self.numa_topologies.remove(name).is_some() {
            self.change_numa(name);
        }
    }

    /// Shows the CPUs of a node in its row.
    fn change_numa(&mut self, name: &str) {
        let Some(id) = self.node(name).filter(|&id| self.nodes[id].present) else { return };
        self.node_changes.push(id);
        self.object_changes.push(id);
        self.nodes[id].numa = self.numa_topologies.get().get(name).cloned();
    }

    /// Takes the reports of all device plugins in place of the earlier ones. Returns true if
    /// something changed.
    pub(super) fn device_reports_read(&mut self, reports: Vec<(Arc<str>, Labels)>) -> bool {
        let reports: BTreeMap<Arc<str>, Arc<Labels>> =
            reports.into_iter().map(|(name, texts)| (name, Arc::new(texts))).collect();
        let earlier = std::mem::replace(&mut self.device_reports, CopyOnWrite::Own(reports));
        let (earlier, reports) = (earlier.get(), self.device_reports.get());
        let names: BTreeSet<&Arc<str>> = earlier.keys().chain(reports.keys()).collect();
        let is_new = |name: &&Arc<str>| earlier.get(*name) != reports.get(*name);
        let changed: Vec<Arc<str>> = names.into_iter().filter(is_new).cloned().collect();
        for name in &changed {
            let Some(id) = self.node(name).filter(|&id| self.nodes[id].present) else { continue };
            self.node_changes.push(id);
            self.object_changes.push(id);
            self.nodes[id].device_report = self.device_reports.get().get(name).cloned();
        }
        !changed.is_empty()
    }

    /// True if the node has exactly the listed images. Heartbeats mostly repeat the same list.
    fn has_images(&self, id: NodeId, listed: &[(Arc<str>, i64)]) -> bool {
        let held = &self.nodes[id].images;
        let is_held = |(name, _): &(Arc<str>, i64)| {
            self.images.get(name).is_some_and(|image| held.binary_search(&image).is_ok())
        };
        listed.len() == held.len() && listed.iter().all(is_held)
    }

    fn set_images(&mut self, id: NodeId, listed: &[(Arc<str>, i64)]) {
        if self.has_images(id, listed) {
            return;
        }
        let images = self.images.acquire(listed);
        self.images.release(&std::mem::replace(&mut self.nodes[id].images, images));
    }

    /// Adds or removes the pods of a node in the counts by domain, by `count`.
    fn each_in_view(&mut self, node: NodeId, count: fn(&mut Domains, ClassId, NodeId, bool)) {
        for &task in &self.nodes[node].tasks {
            let row = &self.tasks[task];
            if row.is_in_view() {
                count(&mut self.domains, row.class, node, row.is_live());
            }
        }
    }

    /// Removes a placeholder that no task names any more.
    pub(super) fn drop_unnamed_node(&mut self, id: NodeId) {
        let node = &self.nodes[id];
        if !node.present && node.tasks.is_empty() && node.n_terminated == 0 {
            let name = node.name.clone();
            Arc::make_mut(&mut self.node_by_name).remove(&name);
            self.nodes.remove(id);
        }
    }

    fn selects_node(&self, labels: &Labels) -> bool {
        let wanted = &self.settings.node_selector;
        wanted.is_empty() || wanted.iter().any(|(key, value)| labels.get(key) == Some(value))
    }

    /// Adds the node to the snapshot.
    fn enter(&mut self, id: NodeId) {
        let Err(place) = self.place_of_node(id) else { return };
        self.node_order.insert(place, id);
        self.node_set_revision.advance();
        self.nodes[id].present = true;
        self.count_total(id, 1);
    }

    /// Removes a present node from the snapshot.
    fn leave(&mut self, id: NodeId) {
        let Ok(place) = self.place_of_node(id) else { return };
        self.node_order.remove(place);
        self.node_set_revision.advance();
        self.count_total(id, -1);
        self.nodes[id].present = false;
    }

    fn place_of_node(&self, id: NodeId) -> Result<usize, usize> {
        let name = |id: NodeId| &self.nodes[id].name;
        self.node_order.binary_search_by(|&other| name(other).cmp(name(id)))
    }

    pub(super) fn change_allocatable(&mut self, id: NodeId, allocatable: Resource) {
        self.count_total(id, -1);
        self.nodes[id].set_allocatable(allocatable);
        self.count_total(id, 1);
    }

    /// Adds the allocatable amounts of a node to the total, or subtracts them, by `sign`.
    fn count_total(&mut self, id: NodeId, sign: i32) {
        let allocatable = &self.nodes[id].allocatable;
        for dim in allocatable.dims() {
            let total = self.total.entry(dim).or_default();
            total.amount += i128::from(sign) * i128::from(allocatable.get(dim));
            total.n_nodes = total.n_nodes.saturating_add_signed(sign);
            if total.n_nodes == 0 {
                self.total.remove(&dim);
            }
        }
    }
}

/// Returns the amounts that an oversubscription agent adds by annotation. Unparsable values count 0
/// (core.md 3.3).
fn oversubscription(annotations: &Labels) -> Resource {
    let number = |key: &str| {
        let parsed = annotations.get(key).and_then(|text| text.parse::<f64>().ok());
        parsed.filter(|value| value.is_finite()).unwrap_or(0.0) as i64
    };
    let mut extra = Resource::default();
    extra.set(Dim::CPU, number("volcano.sh/oversubscription-cpu"));
    extra.set(Dim::MEMORY, number("volcano.sh/oversubscription-memory"));
    extra
}
