//! The proof that goes with every committed transaction that evicts: for whom, who and by which
//! rule, where the room is used, and that nobody could be left out. Specification: actions.md 2.4,
//! 2.11, A28, A38, A41.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use vc_model::{Cluster, JobId, ObjectKey, TaskId, TaskStatus};

use crate::claim::Claims;
use crate::effect::EvictReason;
use crate::ruling::{Rule, RuleId, Rules};
use crate::statement::Op;

/// What a transaction without one of its victims would lack: each unit is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Each pod.
    Pod,
    /// Each bundle of a gang action (actions.md 9.4).
    Bundle,
    /// Each group that goes for quota (cohort.md B.4).
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

/// What an action claims of a statement that it commits.
#[derive(Clone, Debug, Default)]
pub struct Claimed {
    /// The job for which it evicts; `None`: that of the first task for which it does, if any.
    pub job: Option<JobId>,
    /// With any one unit kept, the same placements, made in the same order between the same
    /// evictions, no longer pass; `None`: not claimed.
    pub minimal: Option<Unit>,
    /// The victims by bundle; empty: each is one of its own.
    pub bundles: Vec<Vec<TaskId>>,
}

/// Whose pod a victim is, seen from the preemptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Of the same job.
    OwnJob,
    /// Of another job of the same queue.
    SameQueue,
    /// Of another queue.
    OtherQueue,
    /// There is no preemptor.
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

/// A pod that goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertifiedVictim {
    /// Namespace and name.
    pub pod: ObjectKey,
    /// Of the pod.
    pub uid: Arc<str>,
    /// Its PodGroup.
    pub pod_group: ObjectKey,
    /// Where it runs.
    pub node: Arc<str>,
    /// Its status before.
    pub status: TaskStatus,
    /// Seen from the preemptor.
    pub relation: Relation,
    /// Who allowed it; `None`: nobody was asked, which no action does.
    pub rule: Option<Rule>,
    /// Uid of the pod that gets the room, for which the rule was asked; `None`: it goes for the whole
    /// job, or for nobody.
    pub for_uid: Option<Arc<str>>,
    /// How many of the placements were made before it was evicted; those after it needed it.
    pub before: usize,
    /// Number of its bundle, from 0; victims of one bundle go together.
    pub bundle: usize,
}

/// A pod that gets the room, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Namespace and name.
    pub pod: ObjectKey,
    /// Of the pod.
    pub uid: Arc<str>,
    /// Name.
    pub node: Arc<str>,
}

/// The proof of one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Which action.
    pub action: EvictReason,
    /// The PodGroup for which pods go; `None`: no one's, a plugin chose them.
    pub pod_group: Option<ObjectKey>,
    /// In the order of the evictions.
    pub victims: Vec<CertifiedVictim>,
    /// In the order in which they were made.
    pub placements: Vec<Placement>,
    /// What it is minimal in; `None`: not claimed.
    pub minimal: Option<Unit>,
}

/// What the claims of a certificate are checked against.
#[derive(Clone, Debug)]
pub struct Witness {
    /// The state with the operations of the transaction and of all before it applied.
    pub cluster: Cluster,
    /// The claims that held then.
    pub claims: Claims,
}

impl Certificate {
    /// Whole groups go for quota.
    pub fn is_for_quota(&self) -> bool {
        let by_quota =
            |victim: &CertifiedVictim| victim.rule.as_ref().is_some_and(|rule| rule.why.is_some());
        self.victims.iter().any(by_quota)
    }

    /// Of operations that are about to be performed; `None`: they evict nobody.
    pub(crate) fn of(
        cluster: &Cluster,
        rules: &Rules,
        ops: &[Op],
        claimed: &Claimed,
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
        let victim = |(index, (task, status, asked, before)): (usize, (TaskId, _, Asked, _))| {
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
            pod_group = %Maybe(self.pod_group.as_ref()),
            victims = %List(&self.victims),
            placements = %List(&self.placements),
            minimal = self.minimal.map_or("not claimed", Unit::as_str),
            "pods are evicted"
        );
    }
}

/// By which rule, and for which task.
type Asked = (Option<RuleId>, Option<TaskId>);

fn relation(cluster: &Cluster, preemptor: Option<JobId>, victim: JobId) -> Relation {
    match preemptor {
        None => Relation::Chosen,
        Some(own) if own == victim => Relation::OwnJob,
        Some(own) if cluster.jobs[own].queue == cluster.jobs[victim].queue => Relation::SameQueue,
        Some(_) => Relation::OtherQueue,
    }
}

struct Maybe<'a>(Option<&'a ObjectKey>);

impl fmt::Display for Maybe<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(key) => key.fmt(out),
            None => out.write_str("-"),
        }
    }
}

struct List<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for List<'_, T> {
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
