//! What `vcsim run` prints, as data. Its JSON is described by `docs/vcsim-run.schema.json`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;
use vc_engine::{Effect, Report};
use vc_wire::Kind;

use super::certificate::CertificateOutput;
use super::quota::QuotaUseOutput;
use super::reasons;
use super::topology::{TopologyOutput, topologies};
use super::usage::AccountUseOutput;
use crate::simulation::{Cycle, Simulation};
use vc_objects::field::{name_of, text};
use vc_objects::workload::GROUP_NAME;

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    /// How many were run.
    pub cycles: u32,
    /// In the order of the decisions.
    pub binds: Vec<BindOutput>,
    pub evictions: Vec<EvictionOutput>,
    /// The proof of each transaction that evicts, in order.
    pub certificates: Vec<CertificateOutput>,
    /// Pods that wait for room that is being freed, after the last cycle.
    pub pipelined: Vec<PipelinedOutput>,
    /// Pods of ours that have no node after the last cycle.
    pub waiting: Vec<WaitingOutput>,
    /// Starving PodGroups for which nothing was evicted in the last cycle.
    pub skipped: Vec<SkippedOutput>,
    pub pod_groups: Vec<PodGroupOutput>,
    /// Of the jobs with a network topology.
    pub topologies: Vec<TopologyOutput>,
    pub queues: Vec<QueueUseOutput>,
    /// By path; empty: no plugin has quota trees.
    pub quotas: Vec<QuotaUseOutput>,
    /// By queue and account; empty: no plugin remembers usage.
    pub usages: Vec<AccountUseOutput>,
    /// What users should know.
    pub warnings: Vec<String>,
}

/// A pod and its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BindOutput {
    pub pod: String,
    pub pod_group: String,
    pub node: String,
}

/// A pod that has to go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EvictionOutput {
    pub pod: String,
    /// The pod that gets the room, if it is a certain one.
    #[serde(rename = "for")]
    pub for_pod: Option<String>,
    pub reason: String,
}

/// A pod and the node on which it waits for room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PipelinedOutput {
    pub pod: String,
    pub node: String,
}

/// A pod that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingOutput {
    pub pod: String,
    /// Empty: it is in none.
    pub pod_group: String,
    /// One line.
    pub reason: String,
}

/// A PodGroup for which nothing was evicted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SkippedOutput {
    pub pod_group: String,
    /// Action by action.
    pub cause: String,
    /// What would unblock it.
    pub remedy: String,
}

/// A PodGroup after the last cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodGroupOutput {
    pub pod_group: String,
    pub queue: String,
    pub phase: String,
    pub min_member: i64,
    /// Members.
    pub pods: usize,
    /// Members with a node.
    pub placed: usize,
}

/// Use of a queue against its share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueUseOutput {
    pub queue: String,
    pub state: String,
    /// What its jobs and those of all queues below it hold.
    pub allocated: BTreeMap<String, String>,
    /// `None`: no plugin divides the cluster between queues.
    pub deserved: Option<BTreeMap<String, String>>,
    /// The largest of allocated / deserved over the resources. With `proportion`, which divides between queues
    /// without a tree, both are of the jobs of the queue itself.
    pub share: Option<f64>,
}

impl RunResult {
    /// Takes in what a cycle decided.
    pub(super) fn note(&mut self, cycle: &Cycle, simulation: &Simulation) {
        self.cycles += 1;
        for effect in &cycle.effects {
            match effect {
                Effect::Bind { pod, node, .. } => {
                    let object = simulation.object(Kind::Pod, &pod.namespace, &pod.name);
                    self.binds.push(BindOutput {
                        pod: pod.to_string(),
                        pod_group: object.as_deref().map(group_of).unwrap_or_default(),
                        node: node.to_string(),
                    });
                }
                Effect::Evict { pod, reason, for_pod, .. } => self.evictions.push(EvictionOutput {
                    pod: pod.to_string(),
                    for_pod: for_pod.as_ref().map(ToString::to_string),
                    reason: reason.as_str().to_owned(),
                }),
                _ => {}
            }
        }
        self.certificates.extend(cycle.report.certificates.iter().map(CertificateOutput::from));
        self.warnings.extend(cycle.report.warnings.iter().cloned());
    }

    /// Takes in the state after the last cycle.
    pub(super) fn finish(&mut self, report: &Report, simulation: &Simulation) {
        let pipelined = report.pipelined.iter();
        self.pipelined = pipelined
            .map(|task| PipelinedOutput { pod: task.pod.to_string(), node: task.node.to_string() })
            .collect();
        self.waiting = waiting(report, simulation, &self.pipelined);
        let skipped = |it: &vc_engine::SkippedCycle| SkippedOutput {
            pod_group: it.pod_group.to_string(),
            cause: it.message.clone(),
            remedy: it.remedy.to_owned(),
        };
        self.skipped = report.skipped.iter().map(skipped).collect();
        self.pod_groups = pod_groups(simulation);
        self.topologies = topologies(simulation.cluster());
        self.queues = queues(report, simulation);
        self.quotas = report.quotas.iter().map(QuotaUseOutput::from).collect();
        self.usages = report.usages.iter().map(AccountUseOutput::from).collect();
    }
}

/// `namespace/name` of the PodGroup of a pod, empty when it is in none.
pub(super) fn group_of(pod: &Value) -> String {
    match pod["metadata"]["annotations"][GROUP_NAME].as_str() {
        None | Some("") => String::new(),
        Some(group) => format!("{}/{group}", text(pod, "/metadata/namespace")),
    }
}

fn waiting(
    report: &Report,
    simulation: &Simulation,
    pipelined: &[PipelinedOutput],
) -> Vec<WaitingOutput> {
    let known: BTreeMap<String, &str> =
        report.waiting.iter().map(|task| (task.pod.to_string(), &*task.message)).collect();
    let pipelined: BTreeSet<&str> = pipelined.iter().map(|task| &*task.pod).collect();
    let mut found = Vec::new();
    for pod in simulation.objects(Kind::Pod).filter(|pod| reasons::waits(pod)) {
        let name = name_of(&pod);
        if !pipelined.contains(&*name) {
            let given = known.get(&name).filter(|message| !message.is_empty());
            let reason = given.map_or_else(|| reasons::of(&pod, simulation), |&it| it.to_owned());
            let reason = reason.replace('\n', "; ");
            found.push(WaitingOutput { pod: name, pod_group: group_of(&pod), reason });
        }
    }
    found
}

fn pod_groups(simulation: &Simulation) -> Vec<PodGroupOutput> {
    let mut members: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for pod in simulation.objects(Kind::Pod) {
        let counts = members.entry(group_of(&pod)).or_default();
        counts.0 += 1;
        counts.1 += usize::from(!text(&pod, "/spec/nodeName").is_empty());
    }
    let describe = |group: &Value| {
        let name = name_of(group);
        let (pods, placed) = members.get(&name).copied().unwrap_or_default();
        PodGroupOutput {
            pod_group: name,
            queue: or(text(group, "/spec/queue"), "default"),
            phase: or(text(group, "/status/phase"), "Pending"),
            min_member: group["spec"]["minMember"].as_i64().unwrap_or(0),
            pods,
            placed,
        }
    };
    simulation.objects(Kind::PodGroup).map(|group| describe(&group)).collect()
}

fn queues(report: &Report, simulation: &Simulation) -> Vec<QueueUseOutput> {
    let list = |list: &[(String, String)]| list.iter().cloned().collect();
    let state = |name: &str| {
        let object = simulation.object(Kind::Queue, "", name);
        or(object.as_deref().map_or("", |queue| text(queue, "/status/state")), "Open")
    };
    report
        .queues
        .iter()
        .map(|queue| QueueUseOutput {
            queue: queue.queue.to_string(),
            state: state(&queue.queue),
            allocated: list(&queue.allocated),
            deserved: queue.deserved.as_deref().map(list),
            share: queue.share.filter(|share| share.is_finite()),
        })
        .collect()
}

fn or(text: &str, default: &str) -> String {
    if text.is_empty() { default } else { text }.to_owned()
}
