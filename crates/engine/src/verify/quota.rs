//! What the quotas of queues allow, worked out from the objects alone: whole groups, the policies of
//! the preemptor's queue, nobody protected, and no queue within its own quota robbed. Specification:
//! cohort.md A.4, B.2-B.4.

use std::collections::BTreeMap;

use vc_conf::{Config, PluginOption};
use vc_framework::{Relation, Session};
use vc_model::{JobId, Queue, QueueId, TaskId, TaskStatus};
use vc_resource::{Dim, Resource};

use super::Case;

/// The session is in the state before the transaction.
pub(super) fn check(
    session: &Session<'_>,
    config: &Config,
    case: &Case<'_>,
    faults: &mut Vec<String>,
) {
    let mut plugins = config.tiers.iter().flat_map(|tier| &tier.plugins);
    let Some(option) = plugins.find(|plugin| plugin.name == "cohort") else {
        return faults.push("no plugin has quotas".to_owned());
    };
    let Some(job) = case.job else { return };
    let own = &session.queues[session.jobs[job].queue];
    let policies = Policies::of(option, own);
    let mut state = State::of(session, case);
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
        let ask = session.ask();
        if !session.hooks().lets_go(ask, same_queue, &state.gone, &group.tasks) {
            fault("it is protected");
        }
        let queue = session.jobs[group.job].queue;
        if !same_queue && !state.exceeds_quota(session, queue) {
            fault("its queue is within its quota");
        }
        state.take(session, queue, &group.tasks);
    }
}

/// A group that goes, in the order of the certificate.
struct Going {
    job: JobId,
    relation: Relation,
    tasks: Vec<TaskId>,
}

fn groups(session: &Session<'_>, case: &Case<'_>) -> Vec<Going> {
    let mut groups: Vec<Going> = Vec::new();
    for (&task, victim) in case.victims.iter().zip(&case.certificate.victims) {
        let Some(job) = session.tasks[task].job else { continue };
        match groups.iter_mut().find(|group| group.job == job) {
            Some(group) => group.tasks.push(task),
            None => groups.push(Going { job, relation: victim.relation, tasks: vec![task] }),
        }
    }
    groups
}

impl Going {
    /// Every task of it that holds quota goes.
    fn is_whole(&self, session: &Session<'_>) -> bool {
        let holds = |task: &&TaskId| {
            let status = session.tasks[**task].status;
            status.is_allocated() || status == TaskStatus::Pipelined
        };
        let tasks = &session.jobs[self.job].tasks;
        tasks.iter().filter(holds).all(|task| self.tasks.contains(task))
    }
}

/// Of the preemptor's queue, as texts.
struct Policies {
    within: String,
    reclaim: String,
}

impl Policies {
    fn of(option: &PluginOption, queue: &Queue) -> Self {
        let named = |key: &str| {
            let annotation = format!("cohort.volcano.sh/{key}");
            let written = queue.annotations.get(annotation.as_str()).map(ToString::to_string);
            let argument = || option.arguments.get(key)?.as_str().map(str::to_owned);
            written.or_else(argument).unwrap_or_else(|| "Never".to_owned())
        };
        Self { within: named("withinClusterQueue"), reclaim: named("reclaimWithinCohort") }
    }

    fn allow(&self, session: &Session<'_>, preemptor: JobId, group: &Going) -> bool {
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

/// What queues use while the groups go one after the other.
struct State {
    used: BTreeMap<QueueId, Resource>,
    /// What is asked for and some queue has quota of.
    contested: Vec<Dim>,
    gone: Vec<TaskId>,
}

impl State {
    fn of(session: &Session<'_>, case: &Case<'_>) -> Self {
        let mut used: BTreeMap<QueueId, Resource> = BTreeMap::new();
        for (_, row) in session.tasks.iter() {
            let holds = row.status.is_allocated() || row.status == TaskStatus::Pipelined;
            let Some(job) = row.job.filter(|_| holds) else { continue };
            let Some(task) = session.task(&row.uid) else { continue };
            used.entry(session.jobs[job].queue).or_default().add(session.request(task));
        }
        let managed = |dim: &Dim| {
            let queues = session.facts().queues.iter().map(|&queue| &session.queues[queue]);
            let mut listed = queues.flat_map(|queue| [&queue.deserved, &queue.guarantee]);
            listed.any(|amounts| 0 < amounts.get(*dim))
        };
        let asked = |dim: &Dim| {
            case.placements.iter().any(|&(task, _)| 0 < session.request(task).get(*dim))
        };
        let all = session.dims.in_report_order().iter().copied();
        let contested = all.filter(asked).filter(managed).collect();
        Self { used, contested, gone: Vec::new() }
    }

    /// The queue uses more than its own quota of something contested.
    fn exceeds_quota(&self, session: &Session<'_>, queue: QueueId) -> bool {
        let row = &session.queues[queue];
        let used = self.used.get(&queue).cloned().unwrap_or_default();
        self.contested.iter().any(|&dim| {
            let owned = row.deserved.get(dim).max(row.guarantee.get(dim));
            let limit = Some(row.capability.get(dim)).filter(|limit| 0 < *limit);
            limit.map_or(owned, |limit| owned.min(limit)) < used.get(dim)
        })
    }

    fn take(&mut self, session: &Session<'_>, queue: QueueId, tasks: &[TaskId]) {
        let used = self.used.entry(queue).or_default();
        tasks.iter().for_each(|&task| used.sub(session.request(task)));
        self.gone.extend(tasks);
    }
}
