//! The proof of each committed transaction that evicts: the preemptor, the victims with their
//! rules, the placements, and that every victim is needed. Specification: actions.md 2.4, 2.11,
//! A28, A38, A41.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use vc_model::{Cluster, JobId, ObjectKey, TaskId, TaskStatus};

use crate::effect::EvictReason;
use crate::eviction_hold::EvictionHolds;
use crate::statement::Op;
use crate::victim_selection::{EvictionRule, EvictionRuleId, EvictionRules};

/// The unit of minimality: without any one unit of victims the placements would fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Each pod is needed.
    Pod,
    /// Each bundle of a gang action is needed (actions.md 9.4).
    Bundle,
    /// Each group that is evicted for quota is needed (cohort.md B.4).
    Group,
}

impl Unit {
    /// The text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Bundle => "bundle",
            Self::Group => "group",
        }
    }
}

/// Statements of an action about a transaction that it commits.
#[derive(Clone, Debug, Default)]
pub struct CertificateTerms {
    /// The job for which it evicts. `None`: the job of the first task that gets the room, if any.
    pub job: Option<JobId>,
    /// The unit of minimality. With any one unit kept, the same placements in the same order fail.
    /// `None` if minimality is not stated.
    pub minimal: Option<Unit>,
    /// The victims by bundle. A victim in no bundle is a bundle of its own.
    pub bundles: Vec<Vec<TaskId>>,
}

/// The relation of a victim to the preemptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// A pod of the same job.
    OwnJob,
    /// A pod of another job of the same queue.
    SameQueue,
    /// A pod of another queue.
    OtherQueue,
    /// A pod that a plugin chose; there is no preemptor.
    Chosen,
}

impl Relation {
    /// The text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OwnJob => "own job",
            Self::SameQueue => "same queue",
            Self::OtherQueue => "other queue",
            Self::Chosen => "chosen",
        }
    }
}

/// A victim in a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertifiedVictim {
    /// Namespace and name.
    pub pod: ObjectKey,
    /// Uid of the pod.
    pub uid: Arc<str>,
    /// Its PodGroup.
    pub pod_group: ObjectKey,
    /// Name of its node.
    pub node: Arc<str>,
    /// Its status before.
    pub status: TaskStatus,
    /// Its relation to the preemptor.
    pub relation: Relation,
    /// The rule that allowed it. `None` if no plugin voted, which no action does.
    pub rule: Option<EvictionRule>,
    /// Uid of the pod that gets the room and for which the plugins voted. `None` if the victim goes
    /// for the whole job, or for no job.
    pub for_uid: Option<Arc<str>>,
    /// Number of placements made before its eviction; only later placements can need it.
    pub before: usize,
    /// Number of its bundle, from 0; victims of one bundle are evicted together.
    pub bundle: usize,
}

/// A placement that uses the room: pod and node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Namespace and name.
    pub pod: ObjectKey,
    /// Uid of the pod.
    pub uid: Arc<str>,
    /// Name of the node.
    pub node: Arc<str>,
}

/// The proof of one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The action that evicts.
    pub action: EvictReason,
    /// The PodGroup for which pods are evicted. `None` if a plugin chose them.
    pub pod_group: Option<ObjectKey>,
    /// Victims, in the order of the evictions.
    pub victims: Vec<CertifiedVictim>,
    /// Placements, in the order in which they were made.
    pub placements: Vec<Placement>,
    /// The unit of minimality. `None` if minimality is not stated.
    pub minimal: Option<Unit>,
}

/// The state that a certificate is verified against.
#[derive(Clone, Debug)]
pub struct Witness {
    /// The state after the operations of this transaction and of all earlier ones.
    pub cluster: Cluster,
    /// The eviction holds at that time.
    pub eviction_holds: EvictionHolds,
}

impl Certificate {
    /// True if whole groups are evicted for quota.
    pub fn is_for_quota(&self) -> bool {
        let by_quota =
            |victim: &CertifiedVictim| victim.rule.as_ref().is_some_and(|rule| rule.why.is_some());
        self.victims.iter().any(by_quota)
    }

    /// Returns the certificate of operations that are about to be performed. Returns `None` if they
    /// evict no pod.
    pub(crate) fn of(
        cluster: &Cluster,
        rules: &EvictionRules,
        ops: &[Op],
        claimed: &CertificateTerms,
    ) -> Option<Self> {
        let first = ops.iter().find_map(|op| match *op {
            Op::Evict { reason, for_task, .. } => Some((reason, for_task)),
            _ => None,
        });
        let (action, for_task) = first?;
        let job = claimed.job.or_else(|| cluster.tasks[for_task?].job);
        let mut bundles: FxHashMap<TaskId, usize> = FxHashMap::default();
        for (bundle, tasks) in claimed.bundles.iter().enumerate() {
            tasks.iter().for_each(|&task| _ = bundles.entry(task).or_insert(bundle));
        }
        let bundle_of = |task: TaskId, index: usize| {
            bundles.get(&task).copied().unwrap_or(claimed.bundles.len() + index)
        };
        let mut n_placed = 0;
        let evictions = ops.iter().filter_map(|op| match *op {
            Op::Evict { task, from, for_task, rule, .. } => {
                Some((task, from, (rule, for_task), n_placed))
            }
            _ => {
                n_placed += 1;
                None
            }
        });
        let victim =
            |(index, (task, status, asked, before)): (usize, (TaskId, _, SelectionQuery, _))| {
                let (rule, for_task) = asked;
                let row = &cluster.tasks[task];
                let own = row.job?;
                Some(CertifiedVictim {
                    pod: row.key.clone(),
                    uid: row.uid.clone(),
                    pod_group: cluster.jobs[own].key.clone(),
                    node: cluster.nodes[row.node?].name.clone(),
                    status,
                    relation: relation(cluster, job, own),
                    rule: rule.and_then(|rule| rules.rule(rule)).cloned(),
                    for_uid: for_task.map(|task| cluster.tasks[task].uid.clone()),
                    before,
                    bundle: bundle_of(task, index),
                })
            };
        let placement = |op: &Op| match *op {
            Op::Pipeline { task, node, .. } | Op::Allocate { task, node } => {
                let (row, node) = (&cluster.tasks[task], cluster.nodes[node].name.clone());
                Some(Placement { pod: row.key.clone(), uid: row.uid.clone(), node })
            }
            Op::Evict { .. } => None,
        };
        Some(Self {
            action,
            pod_group: job.map(|job| cluster.jobs[job].key.clone()),
            victims: evictions.enumerate().filter_map(victim).collect(),
            placements: ops.iter().filter_map(placement).collect(),
            minimal: claimed.minimal,
        })
    }

    /// Writes it as one structured line.
    pub(crate) fn log(&self) {
        tracing::info!(
            action = self.action.as_str(),
            pod_group = %OptionalKey(self.pod_group.as_ref()),
            victims = %DisplayList(&self.victims),
            placements = %DisplayList(&self.placements),
            minimal = self.minimal.map_or("not claimed", Unit::as_str),
            "pods are evicted"
        );
    }
}

/// The rule of an eviction, and the task that gets the room.
type SelectionQuery = (Option<EvictionRuleId>, Option<TaskId>);

fn relation(cluster: &Cluster, preemptor: Option<JobId>, victim: JobId) -> Relation {
    match preemptor {
        None => Relation::Chosen,
        Some(own) if own == victim => Relation::OwnJob,
        Some(own) if cluster.jobs[own].queue == cluster.jobs[victim].queue => Relation::SameQueue,
        Some(_) => Relation::OtherQueue,
    }
}

struct OptionalKey<'a>(Option<&'a ObjectKey>);

impl fmt::Display for OptionalKey<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(key) => key.fmt(out),
            None => out.write_str("-"),
        }
    }
}

struct DisplayList<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for DisplayList<'_, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, entry) in self.0.iter().enumerate() {
            out.write_str(if index == 0 { "" } else { ", " })?;
            entry.fmt(out)?;
        }
        Ok(())
    }
}

impl fmt::Display for CertifiedVictim {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pod, node, relation, .. } = self;
        write!(out, "{pod} on {node} ({}", relation.as_str())?;
        match &self.rule {
            Some(rule) => write!(out, "; {rule})"),
            None => out.write_str(")"),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} on {}", self.pod, self.node)
    }
}
