//! Checks evictions for quotas, computed from the objects alone.
//!
//! The rules are
//! - groups are evicted as a whole, and no protected pod is,
//! - the policies of the preemptor's queue permit the eviction,
//! - no queue or cohort is taken below its own quota,
//! - the preemptor gets no more than its queue may have.
//!
//! Specification: cohort.md A.2, A.4, B.2-B.4.

mod tree;

use std::collections::{BTreeMap, BTreeSet};

use vc_conf::{Config, PluginOption};
use vc_framework::{Relation, SessionState};
use vc_model::{JobId, Queue, QueueId, TaskId, TaskStatus};
use vc_resource::{Dim, Resource};

use super::ResolvedCertificate;
use tree::{QuotaTreeUse, VerifiedQuotaTrees};

/// Checks the rules of quotas. The session must be in the state before the transaction.
pub(super) fn check(
    session: &SessionState<'_>,
    config: &Config,
    case: &ResolvedCertificate<'_>,
    faults: &mut Vec<String>,
) {
    let mut plugins = config.tiers.iter().flat_map(|tier| &tier.plugins);
    let Some(option) = plugins.find(|plugin| plugin.name == "cohort") else {
        return faults.push("no plugin has quotas".to_owned());
    };
    let Some(job) = case.job else { return };
    let own = &session.queues[session.jobs[job].queue];
    let policies = QueuePolicies::of(option, own);
    let trees = VerifiedQuotaTrees::of(session, option);
    let mut state = QuotaReplay::of(session, case);
    for group in groups(session, case) {
        let key = &session.jobs[group.job].key;
        let mut fault = |text: &str| faults.push(format!("group {key}: {text}"));
        if !group.is_whole(session) {
            fault("it does not go as a whole");
        }
        if !policies.allow(session, job, &group) {
            fault("the policies of the queue do not let it go");
        }
        let same_queue = group.relation == Relation::SameQueue;
        let view = session.view();
        if !session.plugins().lets_go(view, same_queue, &|| state.gone.clone(), &group.tasks) {
            fault("it is protected");
        }
        let queue = session.jobs[group.job].queue;
        if !same_queue && !state.exceeds_quota(session, &trees, (&own.name, queue)) {
            fault("its queue, or a cohort above it, is within its quota");
        }
        state.take(session, queue, &group.tasks);
    }
    for dim in state.too_little(session, &trees, case, &own.name) {
        let name = session.dims.name(dim);
        faults.push(format!("queue {} may not have so much {name}", own.name));
    }
}

/// A group that is evicted, in the order of the certificate.
struct EvictedGroup {
    job: JobId,
    relation: Relation,
    tasks: Vec<TaskId>,
}

fn groups(session: &SessionState<'_>, case: &ResolvedCertificate<'_>) -> Vec<EvictedGroup> {
    let mut groups: Vec<EvictedGroup> = Vec::new();
    for (&task, victim) in case.victims.iter().zip(&case.certificate.victims) {
        let Some(job) = session.tasks[task].job else { continue };
        match groups.iter_mut().find(|group| group.job == job) {
            Some(group) => group.tasks.push(task),
            None => groups.push(EvictedGroup { job, relation: victim.relation, tasks: vec![task] }),
        }
    }
    groups
}

impl EvictedGroup {
    /// True if every task of the group that holds quota is evicted.
    fn is_whole(&self, session: &SessionState<'_>) -> bool {
        let holds = |task: &&TaskId| {
            let status = session.tasks[**task].status;
            status.is_allocated() || status == TaskStatus::Pipelined
        };
        let tasks = &session.jobs[self.job].tasks;
        tasks.iter().filter(holds).all(|task| self.tasks.contains(task))
    }
}

/// The policies of the preemptor's queue, as texts.
struct QueuePolicies {
    within: String,
    reclaim: String,
}

impl QueuePolicies {
    fn of(option: &PluginOption, queue: &Queue) -> Self {
        let named = |key: &str| {
            let annotation = format!("cohort.volcano.sh/{key}");
            let written = queue.annotations.get(annotation.as_str()).map(ToString::to_string);
            let argument = || option.arguments.get(key)?.as_str().map(str::to_owned);
            written.or_else(argument).unwrap_or_else(|| "Never".to_owned())
        };
        Self { within: named("withinClusterQueue"), reclaim: named("reclaimWithinCohort") }
    }

    fn allow(&self, session: &SessionState<'_>, preemptor: JobId, group: &EvictedGroup) -> bool {
        let (mine, theirs) = (&session.jobs[preemptor], &session.jobs[group.job]);
        let lower = theirs.priority < mine.priority;
        let created = |job: &vc_model::Job| {
            job.pod_group.as_ref().map_or(0, |pod_group| pod_group.created_micros)
        };
        let newer = theirs.priority == mine.priority && created(mine) < created(theirs);
        match (group.relation, self.within.as_str(), self.reclaim.as_str()) {
            (Relation::SameQueue, "LowerPriority", _) => lower,
            (Relation::SameQueue, "LowerOrNewerEqualPriority", _) => lower || newer,
            (Relation::OtherQueue, _, "LowerPriority") => lower,
            (Relation::OtherQueue, _, "Any") => true,
            _ => false,
        }
    }
}

/// The quota use of queues while the groups are evicted one after the other.
struct QuotaReplay {
    used: BTreeMap<QueueId, Resource>,
    /// The dimensions that the preemptor requests.
    asked: Vec<Dim>,
    gone: Vec<TaskId>,
}

impl QuotaReplay {
    fn of(session: &SessionState<'_>, case: &ResolvedCertificate<'_>) -> Self {
        let mut used: BTreeMap<QueueId, Resource> = BTreeMap::new();
        for (_, row) in session.tasks.iter() {
            let holds = row.status.is_allocated() || row.status == TaskStatus::Pipelined;
            // Pods whose PodGroup is gone hold no quota.
            let is_ours = |&job: &JobId| holds && session.view().has_job(job);
            let Some(job) = row.job.filter(is_ours) else { continue };
            let Some(task) = session.task(&row.uid) else { continue };
            used.entry(session.jobs[job].queue).or_default().add(session.request(task));
        }
        // Eviction holds of other jobs count as their use (cohort.md B.7).
        let others = session.info().claimed.iter().filter(|(job, _)| Some(*job) != case.job);
        for &(job, ref tasks) in others {
            let waits = |task: &&TaskId| session.tasks[**task].status == TaskStatus::Pending;
            let used = used.entry(session.jobs[job].queue).or_default();
            tasks.iter().filter(waits).for_each(|&task| used.add(session.request(task)));
        }
        let asked = |dim: &Dim| {
            case.placements.iter().any(|&(task, _)| 0 < session.request(task).get(*dim))
        };
        let all = session.dims.in_report_order().iter().copied();
        let asked = all.filter(asked).collect();
        Self { used, asked, gone: Vec::new() }
    }

    fn amounts<'t, 'a>(
        &self,
        session: &'a SessionState<'_>,
        trees: &'t VerifiedQuotaTrees<'a>,
        dim: Dim,
    ) -> QuotaTreeUse<'t, 'a> {
        let of_queue =
            |(queue, used): (&QueueId, &Resource)| (&*session.queues[*queue].name, used.exact(dim));
        let used = self.used.iter().map(of_queue).collect();
        let cluster = session.info().total.get(dim) as i128;
        QuotaTreeUse { trees, dim, cluster, used }
    }

    /// True if the queue, and each cohort below its first common ancestor with the preemptor's
    /// queue, exceeds its quota. For the queue only requested dimensions count; for cohorts any
    /// dimension counts.
    fn exceeds_quota<'a>(
        &self,
        session: &'a SessionState<'_>,
        trees: &VerifiedQuotaTrees<'a>,
        (own, queue): (&'a str, QueueId),
    ) -> bool {
        let name = &*session.queues[queue].name;
        let shared: BTreeSet<&str> = trees.path(own).into_iter().collect();
        let path = trees.path(name);
        if !path.iter().any(|node| shared.contains(node)) {
            return false;
        }
        let is_over = |node: &str, dims: &[Dim]| {
            let mut amounts = dims.iter().map(|&dim| self.amounts(session, trees, dim));
            amounts.any(|amounts| amounts.is_managed(name) && amounts.is_over(node))
        };
        let all = session.dims.in_report_order();
        is_over(name, &self.asked)
            && path.into_iter().take_while(|node| !shared.contains(node)).all(|at| is_over(at, all))
    }

    /// Returns the dimensions in which the queue has less room than is placed, with all groups
    /// evicted.
    fn too_little<'a>(
        &self,
        session: &'a SessionState<'_>,
        trees: &VerifiedQuotaTrees<'a>,
        case: &ResolvedCertificate<'_>,
        own: &'a str,
    ) -> Vec<Dim> {
        let asked = |dim: Dim| -> i128 {
            let tasks = case.placements.iter();
            tasks.map(|&(task, _)| session.request(task).exact(dim)).sum()
        };
        let is_short = |&dim: &Dim| {
            let amounts = self.amounts(session, trees, dim);
            amounts.is_managed(own) && amounts.room(own) < asked(dim)
        };
        self.asked.iter().copied().filter(is_short).collect()
    }

    fn take(&mut self, session: &SessionState<'_>, queue: QueueId, tasks: &[TaskId]) {
        let used = self.used.entry(queue).or_default();
        tasks.iter().for_each(|&task| used.sub(session.request(task)));
        self.gone.extend(tasks);
    }
}
