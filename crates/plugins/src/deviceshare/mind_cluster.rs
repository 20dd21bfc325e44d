//! vNPUs of Ascend 310P by MindCluster: a pod gets whole chips, or a part of a chip that a template
//! describes. Specification: plugins-nodes.md 16.10.

mod chips;
mod register;
mod template;

use vc_framework::SessionView;
use vc_model::{Code, DeviceDemand, Node, NodeId, TaskId};

use super::family::{
    Annotation, Choice, DeviceFamily, DeviceNode, DevicePart, NodeProblem, Query, Refusal,
};
use chips::{NodeChips, PodChips};
use template::{ChipRequest, ChipTemplate};

/// Resource that counts AI cores, and the annotation that names the chips of a pod.
pub(super) const CORES: &str = "huawei.com/npu-core";
const NANOS_PER_MICRO: i128 = 1_000;
/// Score of the node with the fewest free cores.
const BATCH_SCORE: f64 = 8.0;
/// Begins our reasons.
const REASON: &str = "no Ascend310P chip available";

/// The kind of devices that `deviceshare.AscendMindClusterVNPUEnable` switches on.
pub(super) struct MindCluster;

fn refusal(code: Code, detail: &str) -> Refusal {
    Refusal { code, reason: format!("{REASON}: {detail}") }
}

impl DeviceFamily for MindCluster {
    fn is_requested(&self, demand: &DeviceDemand) -> bool {
        template::n_cores(demand).is_some()
    }

    fn choose(&self, query: Query<'_>) -> Result<Choice, Refusal> {
        let Some(demand) = query.demand() else { return Ok(Choice::default()) };
        let chips = NodeChips::of(query.at)?;
        let request = ChipRequest::of(demand, chips.cores_per_chip)?;
        let choice = match request {
            ChipRequest::Whole(number) => whole_chips(&chips, number),
            ChipRequest::Part(template) => part_of_chip(&chips, template),
        }?;
        match chips.has_other_unfinished(&PodChips::from(&choice)) {
            true => Err(refusal(
                Code::Unschedulable,
                "the device plugin has not reported the chips of another pod yet, whose template \
                 differs",
            )),
            false => Ok(choice),
        }
    }

    fn annotations(&self, choice: &Choice, _node: &Node, now_micros: i64) -> Vec<Annotation> {
        let nanos = i128::from(now_micros) * NANOS_PER_MICRO;
        vec![
            (CORES.into(), PodChips::from(choice).to_string().into()),
            ("predicate-time".into(), nanos.to_string().into()),
        ]
    }

    fn problem(&self, node: &Node) -> Option<NodeProblem> {
        register::parse(node).err()
    }

    /// The device plugin reports the chips of each pod, which takes the place of a lock.
    fn lock(&self) -> Option<&'static str> {
        None
    }

    fn has_batch_scores(&self) -> bool {
        true
    }

    /// Prefers the node with the fewest free cores. Nodes where the pod gets a smaller template come
    /// behind the first one where it does not.
    fn batch_scores(&self, view: SessionView<'_>, task: TaskId, nodes: &[NodeId]) -> Vec<f64> {
        let cores = view.cluster.dims.get(CORES);
        let free = |node: NodeId| cores.map_or(0, |dim| view.cluster.nodes[node].idle.get(dim));
        let mut order: Vec<usize> = (0..nodes.len()).collect();
        order.sort_by_key(|&at| (free(nodes[at]), &view.cluster.nodes[nodes[at]].name));
        let is_lowered = |at: usize| {
            let at = DeviceNode { cluster: view.cluster, node: nodes[at], after_releases: true };
            self.choose(Query { task, at }).is_ok_and(|choice| choice.is_lowered)
        };
        let lowered: Vec<bool> = (0..nodes.len()).map(is_lowered).collect();
        let mut scores = vec![0.0; nodes.len()];
        let n_before = order.iter().take_while(|&&at| lowered[at]).count();
        for &at in &order[..n_before] {
            scores[at] = BATCH_SCORE;
        }
        if let Some(&first) = order.get(n_before) {
            let has_lowered = lowered.contains(&true);
            scores[first] = if has_lowered { 2.0 * BATCH_SCORE } else { BATCH_SCORE };
        }
        scores
    }
}

/// Chooses whole chips, by number.
fn whole_chips(chips: &NodeChips<'_>, number: usize) -> Result<Choice, Refusal> {
    let ids: Vec<i64> = chips.idle().map(|chip| chip.id).take(number).collect();
    if ids.len() < number {
        let detail = format!("the request needs {number} whole chips, {} are free", ids.len());
        return Err(refusal(Code::Unschedulable, &detail));
    }
    Ok(choice_of(ids, chips.cores_per_chip, None))
}

/// Chooses the chip with the least room that has enough. Where none has, it takes a template with
/// fewer AI CPUs.
fn part_of_chip(chips: &NodeChips<'_>, template: &'static ChipTemplate) -> Result<Choice, Refusal> {
    let of = |template: &'static ChipTemplate| {
        let chip = chips.with_room(template)?;
        Some(choice_of(vec![chip.id], template.cores, Some(template)))
    };
    let lowered = || Some(Choice { is_lowered: true, ..of(template.lowered()?)? });
    of(template).or_else(lowered).ok_or_else(|| {
        let ChipTemplate { name, cores, cpus, .. } = template;
        let detail = format!(
            "the request needs {cores} AI cores and {cpus} AI CPUs of one chip ({name}), no chip \
             has them free"
        );
        refusal(Code::Unschedulable, &detail)
    })
}

fn choice_of(ids: Vec<i64>, cores: i64, template: Option<&'static ChipTemplate>) -> Choice {
    let part = |id: i64| DevicePart { device: id.to_string(), memory: 0, cores };
    let containers = vec![ids.into_iter().map(part).collect()];
    Choice { containers, template: template.map(|it| it.name), ..Choice::default() }
}
