//! Remedies as changes of a what-if, which can be asked about as they are. Specification: answers.md 5
//! (ANS-28).

use std::sync::Arc;

use vc_framework::{UNSCHEDULABLE_TAINT, effect_text};
use vc_model::{
    Cluster, ClusterEvent, JobId, Labels, Node, NodeSelectorTerm, ObjectKey, QueueRecord,
    ResourceList, Taint, TaintEffect, TaskId, Toleration, TolerationOperator,
};
use vc_resource::Quantity;

use crate::what_if::{Change, NewNodes, NodeSelection, PodChange, PodGroupChange, QueueChange};
use crate::when::waiting_tasks;

/// Fields of a queue that are raised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RaisedQuota {
    /// `capability`: resource names and amounts. Empty: it stays.
    pub capability: Vec<(String, String)>,
    /// `weight`. `None`: it stays.
    pub weight: Option<i32>,
    /// `deserved`: resource names and amounts. Empty: it stays.
    pub deserved: Vec<(String, String)>,
    /// `guarantee.resource`: resource names and amounts. Empty: it stays.
    pub guarantee: Vec<(String, String)>,
}

impl RaisedQuota {
    /// Returns the change of the queue.
    pub(crate) fn as_change(&self) -> QueueChange {
        let given = |amounts: &[(String, String)]| (!amounts.is_empty()).then(|| list(amounts));
        QueueChange {
            capability: given(&self.capability),
            weight: self.weight,
            deserved: given(&self.deserved),
            guarantee: given(&self.guarantee),
            ..QueueChange::default()
        }
    }
}

/// A remedy as a change of a what-if.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemedyChange {
    /// The pods of a PodGroup tolerate taints.
    Tolerate {
        /// The PodGroup.
        job: ObjectKey,
        /// Key, value and effect of each taint.
        taints: Vec<(Arc<str>, Arc<str>, TaintEffect)>,
    },
    /// The pods of a PodGroup have this node selector.
    NodeSelector {
        /// The PodGroup.
        job: ObjectKey,
        /// All labels that it asks for.
        labels: Labels,
    },
    /// Each pod of a PodGroup asks for this amount.
    Request {
        /// The PodGroup.
        job: ObjectKey,
        /// Name of the resource.
        resource: String,
        /// The amount.
        amount: String,
    },
    /// A PodGroup has this minimum.
    Minimum {
        /// The PodGroup.
        job: ObjectKey,
        /// `minMember`.
        minimum: i32,
    },
    /// A PodGroup has this PriorityClass.
    Priority {
        /// The PodGroup.
        job: ObjectKey,
        /// Name of the PriorityClass.
        class: Arc<str>,
    },
    /// A queue is created, with the defaults of the API.
    CreateQueue {
        /// Its name.
        queue: Arc<str>,
    },
    /// A queue may hold more.
    Quota {
        /// The queue.
        queue: Arc<str>,
        /// The fields with their new values.
        raised: RaisedQuota,
    },
    /// There are more nodes like one.
    AddNodes {
        /// Name of the node.
        like: Arc<str>,
        /// Their number.
        count: usize,
    },
    /// Nodes are uncordoned.
    Uncordon {
        /// Names.
        nodes: Vec<Arc<str>>,
    },
    /// The pods of PodGroups end.
    Finish {
        /// The PodGroups.
        jobs: Vec<ObjectKey>,
    },
    /// All of these, in order.
    Several(Vec<RemedyChange>),
}

impl RemedyChange {
    /// Returns the changes of a what-if, in order.
    pub fn as_changes(&self) -> Vec<Change> {
        let change = match self {
            Self::Several(changes) => return changes.iter().flat_map(Self::as_changes).collect(),
            Self::Tolerate { job, taints } => {
                let tolerations = taints.iter().map(|(key, value, effect)| Toleration {
                    key: key.clone(),
                    operator: TolerationOperator::Equal,
                    value: value.clone(),
                    effect: Some(*effect),
                });
                let tolerations = Some(tolerations.collect());
                let change = PodChange { tolerations, ..PodChange::default() };
                Change::SetPods(job.clone(), Box::new(change))
            }
            Self::NodeSelector { job, labels } => {
                let node_selector = Some(labels.clone());
                let change = PodChange { node_selector, ..PodChange::default() };
                Change::SetPods(job.clone(), Box::new(change))
            }
            Self::Request { job, resource, amount } => {
                let requests = Some(list(&[(resource.clone(), amount.clone())]));
                let change = PodChange { requests, ..PodChange::default() };
                Change::SetPods(job.clone(), Box::new(change))
            }
            Self::Minimum { job, minimum } => {
                let min_member = Some(*minimum);
                let change = PodGroupChange { min_member, ..PodGroupChange::default() };
                Change::SetJob(job.clone(), change)
            }
            Self::Priority { job, class } => {
                let priority_class_name = Some(class.clone());
                let change = PodGroupChange { priority_class_name, ..PodGroupChange::default() };
                Change::SetJob(job.clone(), change)
            }
            Self::CreateQueue { queue } => {
                Change::Apply(vec![ClusterEvent::QueueApplied(Box::new(new_queue(queue)))])
            }
            Self::Quota { queue, raised } => {
                Change::SetQueue(queue.clone(), Box::new(raised.as_change()))
            }
            Self::AddNodes { like, count } => {
                Change::AddNodes { nodes: NewNodes::Like(like.clone()), count: *count as u64 }
            }
            Self::Uncordon { nodes } => {
                let names = nodes.clone();
                Change::Uncordon(NodeSelection { names, match_labels: None })
            }
            Self::Finish { jobs } => Change::Finish(jobs.clone()),
        };
        vec![change]
    }

    /// Returns the effect of a taint as the API writes it.
    pub fn effect_text(effect: TaintEffect) -> &'static str {
        effect_text(effect)
    }
}

/// Returns the node selector of all waiting pods without these labels. Returns `None` if their selectors differ in other
/// labels, as a what-if sets one for all. It also is `None` if a required node affinity names a label, which no what-if
/// changes.
pub(crate) fn selector_without(cluster: &Cluster, job: JobId, keys: &[&str]) -> Option<Labels> {
    let names_label = |term: &NodeSelectorTerm| {
        let mut rules = term.match_expressions.iter().chain(&term.match_fields);
        rules.any(|rule| keys.contains(&&*rule.key))
    };
    let without = |task: TaskId| {
        let class = cluster.class(task);
        let required = class.node_affinity.required.as_deref();
        let is_required = required.unwrap_or_default().iter().any(names_label);
        let mut labels = class.node_selector.clone().unwrap_or_default();
        keys.iter().for_each(|&key| drop(labels.remove(key)));
        (!is_required).then_some(labels)
    };
    let mut selectors = waiting_tasks(cluster, job).map(without);
    let first = selectors.next()??;
    selectors.all(|other| other.as_ref() == Some(&first)).then_some(first)
}

/// Returns a queue with the defaults of the API.
pub(crate) fn new_queue(name: &Arc<str>) -> QueueRecord {
    QueueRecord { name: name.clone(), weight: 1, reclaimable: true, ..QueueRecord::default() }
}

/// True if the node takes no new pods, by its field or by the taint that Kubernetes adds for it.
pub(crate) fn is_cordoned(node: &Node) -> bool {
    node.unschedulable || node.taints.iter().any(is_of_cordon)
}

/// True for the taint that Kubernetes keeps on cordoned nodes.
pub(crate) fn is_of_cordon(taint: &Taint) -> bool {
    *taint.key == *UNSCHEDULABLE_TAINT && taint.effect == TaintEffect::NoSchedule
}

/// Returns amounts as a resource list. The texts are quantities.
fn list(amounts: &[(String, String)]) -> ResourceList {
    let entries = amounts.iter().filter_map(|(name, amount)| {
        Some((name.as_str().into(), amount.parse::<Quantity>().ok()?))
    });
    entries.collect()
}
