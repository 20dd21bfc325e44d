//! The strategy `lowNodeUtilization`: pods leave nodes above the targets as long as nodes below the
//! thresholds have room up to the targets.
//! Specification: plugins-jobs-queues.md 14, D29-D31, example 18.6.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use vc_framework::SessionView;
use vc_model::{Class, Cluster, Node, NodeId, TaskId};
use vc_resource::{Dim, Resource};

use crate::conformance::is_critical;

/// Age up to which a reading of a node's load counts in any case, in microseconds.
const FRESH_MICROS: i64 = 300_000_000;

/// Percentages of what a node has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Percent {
    pub(super) cpu: f64,
    pub(super) memory: f64,
    pub(super) pods: f64,
}

impl Default for Percent {
    fn default() -> Self {
        Self { cpu: 100.0, memory: 100.0, pods: 100.0 }
    }
}

const DIMS: [Dim; 3] = [Dim::CPU, Dim::MEMORY, Dim::PODS];

impl Percent {
    fn values(self) -> [f64; 3] {
        [self.cpu, self.memory, self.pods]
    }

    fn each(self, other: Self) -> impl Iterator<Item = (f64, f64)> {
        self.values().into_iter().zip(other.values())
    }
}

/// The parameters of the strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LowNodeUtilization {
    /// A node below all of these takes pods.
    pub(super) thresholds: Percent,
    /// A node above one of these gives pods away.
    pub(super) targets: Percent,
}

impl LowNodeUtilization {
    /// Returns the pods to evict, node by node. `running` are the pods that may be chosen,
    /// `last_micros` is the time of the last run.
    pub(super) fn victims(
        &self,
        view: SessionView<'_>,
        running: &[TaskId],
        last_micros: i64,
    ) -> Vec<TaskId> {
        let oldest_micros = last_micros.min(view.now_micros().saturating_sub(FRESH_MICROS));
        let cluster = view.cluster;
        let (mut low, mut high) = (Vec::new(), Vec::new());
        let mut n_nodes = 0;
        for &id in view.info.nodes.iter() {
            let node = &cluster.nodes[id];
            let Some(use_of_node) = utilization(node, oldest_micros) else { continue };
            n_nodes += 1;
            if self.is_low(node, use_of_node) {
                low.push((id, use_of_node));
            } else if use_of_node.each(self.targets).any(|(used, target)| target < used) {
                high.push((id, use_of_node));
            }
        }
        if low.is_empty() || high.is_empty() || low.len() == n_nodes {
            return Vec::new();
        }
        let mut room = self.room(cluster, &low);
        // The most loaded node first; nodes of the session are sorted by name.
        high.sort_by(|(_, l), (_, r)| (r.cpu + r.memory).total_cmp(&(l.cpu + l.memory)));
        let offered: BTreeSet<TaskId> = running.iter().copied().collect();
        let mut victims = Vec::new();
        for (id, use_of_node) in high {
            self.choose(cluster, (id, use_of_node), &offered, &mut room, &mut victims);
        }
        victims
    }

    fn is_low(&self, node: &Node, use_of_node: Percent) -> bool {
        let is_below = |(used, threshold): (f64, f64)| used < threshold;
        !node.unschedulable && use_of_node.each(self.thresholds).all(is_below)
    }

    /// Returns what the nodes can take until they reach the targets. `None` stands for pods where
    /// no node says how many it can hold.
    fn room(&self, cluster: &Cluster, low: &[(NodeId, Percent)]) -> [Option<i128>; 3] {
        let mut room = [Some(0), Some(0), None];
        for (id, use_of_node) in low {
            let amounts = amounts(&cluster.nodes[*id]);
            let percent = use_of_node.each(self.targets);
            for ((room, dim), (used, target)) in room.iter_mut().zip(DIMS).zip(percent) {
                let amount = amounts.get(dim);
                if dim != Dim::PODS || amount != 0 {
                    let more = part_of(amount, target) - part_of(amount, used);
                    *room = Some(room.unwrap_or(0) + more);
                }
            }
        }
        room
    }

    /// Chooses pods of one node, the least important first, until no use is at its target any
    /// more, or the room is used up.
    fn choose(
        &self,
        cluster: &Cluster,
        (id, mut use_of_node): (NodeId, Percent),
        offered: &BTreeSet<TaskId>,
        room: &mut [Option<i128>; 3],
        victims: &mut Vec<TaskId>,
    ) {
        let node = &cluster.nodes[id];
        let may_go = |&task: &TaskId| offered.contains(&task) && is_evictable(cluster, task);
        let mut tasks: Vec<TaskId> = node.tasks.iter().copied().filter(may_go).collect();
        tasks.sort_by_key(|&task| {
            let row = &cluster.tasks[task];
            let quality = quality_of_service(cluster.class(task));
            (row.pod_priority, quality, Reverse(row.created_micros), row.key.clone())
        });
        for task in tasks {
            let is_hot = use_of_node.each(self.targets).any(|(used, target)| target <= used);
            let has_room = room.iter().flatten().all(|&room| 0 < room);
            if !(is_hot && has_room) {
                return;
            }
            let request = cluster.request(task);
            for (room, dim) in room.iter_mut().zip(DIMS) {
                *room = room.map(|room| room - request.exact(dim));
            }
            use_of_node = without(use_of_node, request, node);
            victims.push(task);
        }
    }
}

/// Returns the use of a node. Averages of the load count for cpu and memory, whatever their period
/// (D28); without a load they are 0. Returns `None` if the load is too old to show what the last run
/// has changed.
fn utilization(node: &Node, oldest_micros: i64) -> Option<Percent> {
    let (cpu, memory) = match &node.load {
        None => (0.0, 0.0),
        Some(load) if oldest_micros <= load.read_micros => {
            (load.cpu_percent(), load.memory_percent())
        }
        Some(_) => return None,
    };
    let pods = percent_of(node.used.exact(Dim::PODS), amounts(node).get(Dim::PODS));
    Some(Percent { cpu, memory, pods })
}

/// Returns the use of a node once a pod with this request has left it.
fn without(percent: Percent, request: &Resource, node: &Node) -> Percent {
    let part = |dim| {
        let capacity = match node.capacity.get(dim) {
            0 => node.allocatable.get(dim),
            capacity => capacity,
        };
        percent_of(request.exact(dim), capacity)
    };
    Percent {
        cpu: percent.cpu - part(Dim::CPU),
        memory: percent.memory - part(Dim::MEMORY),
        pods: percent.pods - percent_of(request.exact(Dim::PODS), amounts(node).get(Dim::PODS)),
    }
}

/// Returns the allocatable amounts, or the capacity of a node without any.
fn amounts(node: &Node) -> &Resource {
    if node.allocatable.is_empty() { &node.capacity } else { &node.allocatable }
}

fn percent_of(part: i128, whole: i64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Returns so many percent of an amount, with the fraction cut off.
fn part_of(amount: i64, percent: f64) -> i128 {
    (percent * amount as f64 / 100.0).trunc() as i128
}

/// D30: critical pods, and pods that are not preemptable, stay.
fn is_evictable(cluster: &Cluster, task: TaskId) -> bool {
    let row = &cluster.tasks[task];
    row.preemptable && !is_critical(row)
}

/// Quality of service of a pod, the least first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum QualityOfService {
    BestEffort,
    Burstable,
    Guaranteed,
}

/// Returns the quality of service of a pod, judged by the sums over its containers.
fn quality_of_service(class: &Class) -> QualityOfService {
    let (request, limits) = (&class.request, class.limits);
    let [cpu, memory] = [Dim::CPU, Dim::MEMORY].map(|dim| request.get(dim));
    let limits = [limits.cpu_milli, limits.memory_bytes];
    if [cpu, memory] == [0, 0] && limits == [0, 0] {
        QualityOfService::BestEffort
    } else if [cpu, memory] == limits && cpu != 0 && memory != 0 {
        QualityOfService::Guaranteed
    } else {
        QualityOfService::Burstable
    }
}
