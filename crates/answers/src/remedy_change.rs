//! Remedies as changes of a what-if, which can be asked about as they are. Specification: answers.md 5
//! (ANS-28).

use std::sync::Arc;

use vc_framework::effect_text;
use vc_model::{ObjectKey, ResourceList, TaintEffect, Toleration, TolerationOperator};
use vc_resource::Quantity;

use crate::what_if::{Change, NewNodes, NodeSelection, PodChange, PodGroupChange, QueueChange};

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
    /// A queue may hold these amounts.
    Capability {
        /// The queue.
        queue: Arc<str>,
        /// Resource names and amounts.
        amounts: Vec<(String, String)>,
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
}

impl RemedyChange {
    /// Returns the change of a what-if.
    pub fn as_change(&self) -> Change {
        match self {
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
            Self::Capability { queue, amounts } => {
                let capability = Some(list(amounts));
                let change = QueueChange { capability, ..QueueChange::default() };
                Change::SetQueue(queue.clone(), Box::new(change))
            }
            Self::AddNodes { like, count } => {
                Change::AddNodes { nodes: NewNodes::Like(like.clone()), count: *count as u64 }
            }
            Self::Uncordon { nodes } => {
                let names = nodes.clone();
                Change::Uncordon(NodeSelection { names, match_labels: None })
            }
            Self::Finish { jobs } => Change::Finish(jobs.clone()),
        }
    }

    /// Returns the effect of a taint as the API writes it.
    pub fn effect_text(effect: TaintEffect) -> &'static str {
        effect_text(effect)
    }
}

/// Returns amounts as a resource list. The texts are quantities.
fn list(amounts: &[(String, String)]) -> ResourceList {
    let entries = amounts.iter().filter_map(|(name, amount)| {
        Some((name.as_str().into(), amount.parse::<Quantity>().ok()?))
    });
    entries.collect()
}
