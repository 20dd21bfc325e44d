//! The remedy `endJobs`: running jobs whose end makes room for the job. Jobs that would suffice by their
//! amounts are chosen first, and then verified by trial. Specification: answers.md 5 (case 35).

use std::collections::BTreeMap;

use vc_engine::Fork;
use vc_framework::{LimitOwner, QueueLimit, Session, SessionState};
use vc_model::{Cluster, Id, JobId, NodeId, ObjectKey, QueueId, TaskId, TaskStatus};
use vc_resource::{Dim, Resource};

use crate::amounts::n_pods_in;
use crate::changed_copy::ChangedCopy;
use crate::explanation::{Remedy, RemedyKind, Responsible};
use crate::known_trials::{KnownTrials, SupposedChange};
use crate::nodes::{NodeRefusals, NodeRun};
use crate::remedy_change::RemedyChange;
use crate::subject::name_of_job;
use crate::unblock::ClusterQuestion;

/// Upper bound of the jobs that a remedy names. It takes at most one trial for all of them and one for
/// each.
const MOST_JOBS: usize = 8;

/// Returns the remedy, if jobs were chosen and their end suffices. Each of them is needed.
pub(crate) fn end_jobs(
    (fork, copy): (&mut Fork, &mut ChangedCopy),
    question: &ClusterQuestion,
    known: &mut KnownTrials,
) -> Option<Remedy> {
    let mut suffices = |jobs: &[JobId]| {
        let change = SupposedChange::EndedJobs(jobs.to_vec());
        let is_placed = || copy.is_placed_after(fork, jobs, question);
        known.is_placed(question.shape, change, is_placed)
    };
    let mut jobs = question.changes.ending.clone();
    if jobs.is_empty() || !suffices(&jobs) {
        return None;
    }
    // Tries to do without each job, the last chosen first.
    for at in (0..jobs.len()).rev() {
        let mut others = jobs.clone();
        others.remove(at);
        if !others.is_empty() && suffices(&others) {
            jobs = others;
        }
    }
    let cluster = copy.cluster();
    let own = &cluster.jobs[question.job].key.namespace;
    // Without a name for each no what-if can end them.
    let keys = jobs.iter().map(|&job| name_of_job(cluster, job));
    let keys = keys.collect::<Option<Vec<ObjectKey>>>()?;
    let names: Vec<String> = keys.iter().map(ObjectKey::to_string).collect();
    let is_own = keys.iter().all(|key| key.namespace == *own);
    Some(Remedy {
        kind: RemedyKind::EndJobs,
        who: if is_own { Responsible::You } else { Responsible::Admin },
        text: format!("end {}", names.join(" and ")),
        nodes: Vec::new(),
        at_micros: None,
        change: Some(RemedyChange::Finish { jobs: keys }),
    })
}

/// Ends the pods of a job that have nodes, successfully.
pub(crate) fn end_job(cluster: &mut Cluster, job: JobId) {
    for task in pods_to_end(cluster, job) {
        cluster.end_pod(task);
    }
}

/// Returns the pods of a job that have nodes and have not ended.
pub(crate) fn pods_to_end(cluster: &Cluster, job: JobId) -> Vec<TaskId> {
    let is_there = |task: &&TaskId| {
        let row = &cluster.tasks[**task];
        row.node.is_some() && !row.status.is_terminated()
    };
    cluster.jobs[job].tasks.iter().filter(is_there).copied().collect()
}

/// The amounts that ended jobs have to free.
pub(crate) struct EndingQuestion<'a> {
    pub(crate) job: JobId,
    /// The nodes that refuse the first member without a place, and why.
    pub(crate) refusals: &'a NodeRefusals,
    /// The same nodes in runs of those that are alike.
    pub(crate) runs: &'a [NodeRun],
    /// Members that must find places.
    pub(crate) n_needed: usize,
    /// The limit that the needed members exceed. `None` if there is none with amounts.
    pub(crate) limit: Option<&'a QueueLimit>,
    /// The jobs that hold nodes, as [`jobs_on_nodes`] returns them.
    pub(crate) on_nodes: &'a [JobId],
}

/// Returns running jobs whose end would suffice by amounts: those of the own namespace first, then by
/// number of pods; the last ones first if that makes too many. Each is needed. Empty if there are none, or
/// more than [`MOST_JOBS`]. All members count with the request of the first one without a place.
pub(crate) fn choose(session: &Session<'_>, question: &EndingQuestion<'_>) -> Vec<JobId> {
    let Some(room) = FreedRoom::of(session, question) else { return Vec::new() };
    let mut order = candidates(session, question);
    let chosen = choose_in(room.clone(), &order);
    if chosen.len() <= MOST_JOBS {
        return chosen;
    }
    order.reverse();
    let chosen = choose_in(room, &order);
    if chosen.len() <= MOST_JOBS { chosen } else { Vec::new() }
}

/// Takes jobs in this order until they suffice, and then, from the last to the first, leaves out those
/// that are not needed.
fn choose_in(mut room: FreedRoom<'_>, order: &[JobId]) -> Vec<JobId> {
    let mut chosen: Vec<JobId> = Vec::new();
    for &job in order {
        if room.suffices() {
            break;
        }
        if room.is_changed_by(job) {
            room.change(job, true);
            chosen.push(job);
        }
    }
    if !room.suffices() {
        return Vec::new();
    }
    for at in (0..chosen.len()).rev() {
        room.change(chosen[at], false);
        match room.suffices() {
            true => drop(chosen.remove(at)),
            false => room.change(chosen[at], true),
        }
    }
    chosen
}

/// Returns the other jobs that hold nodes, in the order in which they are chosen.
fn candidates(session: &Session<'_>, question: &EndingQuestion<'_>) -> Vec<JobId> {
    let own = &session.jobs[question.job].key.namespace;
    let others = question.on_nodes.iter().copied().filter(|&job| job != question.job);
    let is_own = |job: &JobId| session.jobs[*job].key.namespace == *own;
    let (mut order, others): (Vec<JobId>, Vec<JobId>) = others.partition(is_own);
    order.extend(others);
    order
}

/// Returns the jobs that hold nodes, by the number of their pods there, then by name.
pub(crate) fn jobs_on_nodes(session: &Session<'_>) -> Vec<JobId> {
    let count_pods_on_nodes = |job: JobId| {
        let row = &session.jobs[job];
        let n_pods = row.tasks.iter().filter(|&&task| holds_node(session, task)).count();
        (0 < n_pods).then_some((n_pods, job))
    };
    let jobs = session.view().cluster.jobs_by_key();
    let mut found: Vec<(usize, JobId)> = jobs.filter_map(count_pods_on_nodes).collect();
    // The jobs are in the order of their names and the sort is stable.
    found.sort_by_key(|&(n_pods, _)| n_pods);
    found.into_iter().map(|(_, job)| job).collect()
}

/// True if the end of the pod would free room. The room of a terminating pod counts as free already.
fn holds_node(session: &SessionState<'_>, task: TaskId) -> bool {
    let row = &session.tasks[task];
    let is_over = row.status.is_terminated() || row.status == TaskStatus::Releasing;
    row.node.is_some() && !is_over && !matches!(row.status, TaskStatus::Pipelined)
}

/// The room on eligible nodes and below the limit, with what chosen jobs would leave.
#[derive(Clone)]
struct FreedRoom<'a> {
    session: &'a SessionState<'a>,
    request: &'a Resource,
    /// True for eligible nodes that are large enough, by the index of their ids.
    counts: Vec<bool>,
    /// What is free on nodes on which a chosen job would leave something.
    free: BTreeMap<NodeId, Resource>,
    /// Number of pods with this request that fit on these nodes together.
    n_fit: i128,
    /// Pods that must fit.
    n_needed: i128,
    /// The queue whose jobs count against the limit, and what is too much of each resource.
    over_limit: Option<(QueueId, Vec<(Dim, i128)>)>,
}

impl<'a> FreedRoom<'a> {
    /// Returns `None` if the limit is not that of the own queue.
    fn of(session: &'a SessionState<'a>, question: &EndingQuestion<'_>) -> Option<Self> {
        let refusals = question.refusals;
        let request = session.request(refusals.task);
        let n_ids = session.info().nodes.iter().map(|node| node.index() + 1).max().unwrap_or(0);
        let (mut counts, mut n_fit) = (vec![false; n_ids], 0);
        for run in refusals.eligible(question.runs) {
            let row = &session.nodes[refusals.first_of(run)];
            if request.fits(&row.allocatable) {
                let nodes = refusals.nodes_of(run);
                nodes.iter().for_each(|node| counts[node.index()] = true);
                n_fit += nodes.len() as i128 * n_pods_in(&row.future_idle(), request);
            }
        }
        let queue = session.jobs[question.job].queue;
        let over_limit = match question.limit {
            None => None,
            Some(QueueLimit { owner: LimitOwner::Queue(name), amounts })
                if *name == session.queues[queue].name =>
            {
                let over = amounts.iter().map(|it| {
                    (it.dim, i128::from(it.used) + i128::from(it.asked) - i128::from(it.limit))
                });
                Some((queue, over.collect()))
            }
            Some(_) => return None,
        };
        let n_needed = question.n_needed as i128;
        let free = BTreeMap::new();
        Some(Self { session, request, counts, free, n_fit, n_needed, over_limit })
    }

    fn suffices(&self) -> bool {
        let over = self.over_limit.iter().flat_map(|(_, over)| over);
        self.n_needed <= self.n_fit && over.into_iter().all(|(_, over)| *over <= 0)
    }

    /// True if the end of the job leaves something that counts.
    fn is_changed_by(&self, job: JobId) -> bool {
        let row = &self.session.jobs[job];
        let is_of_queue = self.over_limit.as_ref().is_some_and(|(queue, _)| *queue == row.queue);
        is_of_queue || self.tasks_of(job).any(|(node, _)| self.is_counted(node))
    }

    fn is_counted(&self, node: NodeId) -> bool {
        self.counts.get(node.index()) == Some(&true)
    }

    fn tasks_of(&self, job: JobId) -> impl Iterator<Item = (NodeId, TaskId)> + use<'a> {
        let session = self.session;
        let tasks = session.jobs[job].tasks.iter().copied();
        tasks
            .filter(|&task| holds_node(session, task))
            .filter_map(|task| Some((session.tasks[task].node?, task)))
    }

    /// Adds what the job holds to what is free, or takes it away again.
    fn change(&mut self, job: JobId, is_ended: bool) {
        let queue = self.session.jobs[job].queue;
        for (node, task) in self.tasks_of(job) {
            let held = self.session.request(task);
            if self.is_counted(node) {
                let present = || self.session.nodes[node].future_idle();
                let free = self.free.entry(node).or_insert_with(present);
                self.n_fit -= n_pods_in(free, self.request);
                match is_ended {
                    true => free.add(held),
                    false => free.sub(held),
                }
                self.n_fit += n_pods_in(free, self.request);
            }
            if let Some((limited, over)) = &mut self.over_limit
                && *limited == queue
            {
                for (dim, over) in over {
                    *over += if is_ended { -held.exact(*dim) } else { held.exact(*dim) };
                }
            }
        }
    }
}
