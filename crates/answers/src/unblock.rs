//! Remedies: changes after which the job gets its places, each verified by a trial of the changed
//! job, or of the job in a changed copy of the cluster. Specification: answers.md 5.

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_actions::needed;
use vc_engine::Fork;
use vc_framework::{Atom, JobChange, QueueLimit, Session};
use vc_model::{JobId, ObjectKey, TaskId};
use vc_resource::Dim;

use crate::amounts::quantity_of;
use crate::changed_copy::ChangedCopy;
use crate::ended_jobs::{self, EndingQuestion, end_jobs};
use crate::explanation::{Explanation, LeftOut, Remedy, RemedyKind, Responsible};
use crate::known_failures::first_of_classes;
use crate::known_trials::{ChangesToTry, KnownTrials, ShapeNumber};
use crate::new_nodes::{add_nodes, mark_same_counts, shapes};
use crate::raised_quota::{LackingQuota, raise_quota};
use crate::remedy_change::{RemedyChange, is_cordoned, selector_without};
use crate::state_tables::StateTables;
use crate::stop::StopSignal;
use crate::subject::name_of_job;
use crate::trials::{
    AtomSet, BudgetSpent, CopyBudget, HeldByOrder, JobTrials, TrialAnswer, TrialEnd,
    waiting_members,
};

/// Remedies that are listed.
pub(crate) const MOST_REMEDIES: usize = 8;
/// Names of nodes beside a remedy.
const MOST_NAMES: usize = 5;

/// What is asked of changed copies of the cluster.
pub(crate) struct ClusterQuestion {
    pub(crate) job: JobId,
    pub(crate) held: HeldByOrder,
    /// The shape by which trials are kept. `None` if none is kept.
    pub(crate) shape: Option<ShapeNumber>,
    pub(crate) n_needed: usize,
    /// What its queue lacks. `None` if nothing of a queue would have to be raised, or that would not do.
    pub(crate) lacking: Option<LackingQuota>,
    /// The first member that finds no node. `None` if nobody waits.
    pub(crate) refused: Option<TaskId>,
    /// Members that find no place as it is.
    pub(crate) n_missing: usize,
    /// Nodes to add and jobs to end.
    pub(crate) changes: ChangesToTry,
    /// What is left for the trials of a queue that is raised.
    pub(crate) budget: CopyBudget,
    /// The signal that ends the question, also in the copies.
    pub(crate) stop: StopSignal,
    /// Kinds of remedies for whose trials there was no budget.
    left_out: Vec<RemedyKind>,
}

/// Tries changes of the job itself. Returns the remedies, and what is to be asked of changed
/// copies. `sets` are the blocking sets, `present` all atoms.
pub(crate) fn change_job(
    trials: &mut JobTrials<'_, '_>,
    tables: &StateTables,
    (sets, present): (&[AtomSet], &AtomSet),
) -> (Vec<Remedy>, ClusterQuestion) {
    let mut remedies: Vec<Remedy> =
        sets.iter().filter_map(|set| lift_single(trials, set)).collect();
    let mut left_out = Vec::new();
    match ask_less(trials, present) {
        Ok(remedy) => remedies.extend(remedy),
        Err(BudgetSpent) => left_out.push(RemedyKind::AskLess),
    }
    if sets.contains(&AtomSet::from([Atom::Minimum])) {
        match lower_minimum(trials) {
            Ok(remedy) => remedies.extend(remedy),
            Err(BudgetSpent) => left_out.push(RemedyKind::LowerMinimum),
        }
    }
    let base = trials.run(&AtomSet::new());
    let (job, held) = (trials.job(), trials.held().clone());
    let first_waiting = || waiting_members(trials.session(), job).first().copied();
    let task = base.failed.or_else(first_waiting);
    let (needed, limits) = needed_and_limits(trials, &base);
    let shape = trials.shape_of_copies(&base);
    let n_needed = needed.len().max(1);
    let changes = match task {
        Some(task) => changes_to_try(trials, tables, (task, shape), (n_needed, limits.first())),
        None => ChangesToTry::default(),
    };
    let lacking = lacking_quota(trials, present, &limits).unwrap_or_else(|BudgetSpent| {
        left_out.push(RemedyKind::RaiseQuota);
        None
    });
    let n_missing = needed.len().saturating_sub(base.placed.len());
    let budget = trials.budget_of_copies(n_needed);
    let question = ClusterQuestion {
        job,
        held,
        shape,
        n_needed,
        lacking,
        refused: task,
        n_missing,
        changes,
        budget,
        stop: trials.stop().clone(),
        left_out,
    };
    (remedies, question)
}

/// Returns what would have to be raised of a queue. Returns `None` if the job would not even get its places once no
/// plugin refuses it for its queue: then no copy needs to be asked.
fn lacking_quota(
    trials: &mut JobTrials<'_, '_>,
    present: &AtomSet,
    limits: &[QueueLimit],
) -> Result<Option<LackingQuota>, BudgetSpent> {
    let (cluster, own) = (trials.session().view().cluster, trials.row().queue);
    let Some(lacking) = LackingQuota::of(cluster, own, limits) else { return Ok(None) };
    let is_limit = |atom: &&Atom| matches!(atom, Atom::Admission(_) | Atom::Share(_));
    let atoms: AtomSet = present.iter().filter(is_limit).cloned().collect();
    let is_placed = trials.try_succeeds(&atoms).ok_or(BudgetSpent)?;
    Ok(is_placed.then_some(lacking))
}

/// Returns the changes of the cluster that are worth a trial, because `task` finds no node without them. They are
/// kept for jobs of one shape and namespace that hold no node.
fn changes_to_try(
    trials: &mut JobTrials<'_, '_>,
    tables: &StateTables,
    (task, shape): (TaskId, Option<ShapeNumber>),
    (n_needed, limit): (usize, Option<&QueueLimit>),
) -> ChangesToTry {
    let (job, session) = (trials.job(), trials.session());
    let holds_none = trials.row().tasks.iter().all(|&task| session.tasks[task].node.is_none());
    let shape = shape.filter(|_| holds_none);
    let namespace = trials.row().key.namespace.clone();
    let of_shape = trials.of_shape().zip(shape);
    if let Some(known) = of_shape.and_then(|(it, shape)| it.changes_to_try(shape, &namespace)) {
        return known;
    }
    let refusals = trials.refusals(task, &AtomSet::new(), &[]);
    let mut changes = trials.with_lifted(&AtomSet::new(), |session| {
        let (refusals, runs) = (&*refusals, &*refusals.runs(session));
        let on_nodes = tables.jobs_on_nodes(session);
        let question = EndingQuestion { job, refusals, runs, n_needed, limit, on_nodes };
        ChangesToTry {
            shapes: shapes(session, (refusals, runs), tables.node_contents(session)),
            ending: ended_jobs::choose(session, &question),
        }
    });
    let is_fast = trials.session().is_trial_cached();
    if is_fast && 1 < changes.shapes.len() && trials.is_refused_everywhere(&AtomSet::new()) {
        let tasks = first_of_classes(trials);
        mark_same_counts(trials.session(), &tasks, &mut changes.shapes);
    }
    if let Some((of_shape, shape)) = trials.of_shape().zip(shape) {
        of_shape.keep_changes_to_try((shape, &namespace), &changes);
    }
    changes
}

/// Tries changes of the cluster, and adds them to the remedies of an explanation, in order: those of the user first.
/// What was left out is named in it. `changed` is the copy in which earlier questions about the same state have made
/// changes, if there is one; `known` are their trials.
pub(crate) fn change_cluster(
    fork: &mut Fork,
    (changed, known): (&mut Option<ChangedCopy>, &mut KnownTrials),
    question: &ClusterQuestion,
    explanation: &mut Explanation,
) {
    let remedies = &mut explanation.unblock;
    let mut left_out = question.left_out.clone();
    if !question.changes.is_empty() || question.lacking.is_some() {
        let copy = changed.get_or_insert_with(|| ChangedCopy::new(fork));
        match raise_quota(copy, question, known) {
            Ok(remedy) => remedies.extend(remedy),
            Err(BudgetSpent) => left_out.push(RemedyKind::RaiseQuota),
        }
        remedies.extend(add_nodes(copy, question, known));
        remedies.extend(end_jobs((fork, copy), question, known));
    }
    remedies.sort_by_key(|remedy| (remedy.who, remedy.kind));
    remedies.truncate(MOST_REMEDIES);
    if let Some(blocking) = &mut explanation.blocking {
        blocking.left_out.extend(left_out.into_iter().map(LeftOut::Remedy));
    }
}

/// A single atom of the pod's spec, or a cordon.
fn lift_single(trials: &mut JobTrials<'_, '_>, set: &AtomSet) -> Option<Remedy> {
    let mut atoms = set.iter();
    let (atom, None) = (atoms.next()?, atoms.next()) else { return None };
    let (kind, who) = match atom {
        Atom::Taint(..) => (RemedyKind::Tolerate, Responsible::You),
        Atom::Label(_) => (RemedyKind::Selector, Responsible::You),
        Atom::Cordon => (RemedyKind::Filter, Responsible::Admin),
        Atom::Filter("AntiAffinityOfOthers") => return None,
        Atom::Filter(_) | Atom::Need(_) => (RemedyKind::Filter, Responsible::You),
        _ => return None,
    };
    let text = match atom {
        Atom::Label(key) => format!("do not ask for label {key}"),
        Atom::Cordon => "uncordon nodes".to_owned(),
        Atom::Filter(rule) => format!("change what filter {rule} refuses"),
        Atom::Need("Volumes") => "create the claims and volumes that the pods name".to_owned(),
        Atom::Need(rule) => format!("create what {rule} lacks"),
        taint => format!("tolerate {}", taint.taint_text()),
    };
    let change = lift_change(trials, atom);
    let answer = trials.run(set);
    Some(Remedy { kind, who, text, nodes: nodes_of(trials, &answer), at_micros: None, change })
}

/// Returns the change that lifts an atom. Returns `None` if it is no change of a what-if.
fn lift_change(trials: &JobTrials<'_, '_>, atom: &Atom) -> Option<RemedyChange> {
    match atom {
        Atom::Taint(key, value, effect) => {
            let taints = vec![(key.clone(), value.clone(), *effect)];
            Some(RemedyChange::Tolerate { job: job_name(trials)?, taints })
        }
        Atom::Label(key) => {
            let cluster = trials.session().view().cluster;
            let labels = selector_without(cluster, trials.job(), &[&**key])?;
            Some(RemedyChange::NodeSelector { job: job_name(trials)?, labels })
        }
        Atom::Cordon => {
            let session = trials.session();
            let nodes = session.info().nodes.iter().map(|&node| &session.nodes[node]);
            let cordoned = nodes.filter(|node| is_cordoned(node));
            let nodes = cordoned.map(|node| node.name.clone()).collect();
            Some(RemedyChange::Uncordon { nodes })
        }
        _ => None,
    }
}

/// Returns the PodGroup of the job. Returns `None` if it has none of its own.
fn group_key(trials: &JobTrials<'_, '_>) -> Option<ObjectKey> {
    let row = trials.row();
    (!row.bare).then(|| row.key.clone())
}

/// Returns the name by which a what-if finds the job. Returns `None` if it means another job.
fn job_name(trials: &JobTrials<'_, '_>) -> Option<ObjectKey> {
    name_of_job(trials.session().view().cluster, trials.job())
}

/// Returns the names of the nodes that the members get.
pub(crate) fn nodes_of(trials: &JobTrials<'_, '_>, answer: &TrialAnswer) -> Vec<Arc<str>> {
    let session = trials.session();
    let names = answer.placed.iter().map(|(_, node)| session.nodes[*node].name.clone());
    let names: BTreeSet<Arc<str>> = names.collect();
    names.into_iter().take(MOST_NAMES).collect()
}

/// The largest request per pod below the present one with which the job is placed. Only for pods
/// that ask for the same, where one resource is short on nodes and no limit of a queue counts.
fn ask_less(
    trials: &mut JobTrials<'_, '_>,
    present: &AtomSet,
) -> Result<Option<Remedy>, BudgetSpent> {
    if present.iter().any(|atom| matches!(atom, Atom::Admission(_) | Atom::Share(_))) {
        return Ok(None);
    }
    let mut rooms = present.iter().filter(|atom| atom.is_room());
    let (Some(Atom::Room(dim)), None) = (rooms.next(), rooms.next()) else { return Ok(None) };
    let dim = *dim;
    let Some(requests) = smaller_requests(trials, dim) else { return Ok(None) };
    let Some((amount, answer)) = largest_request(trials, dim, &requests)? else { return Ok(None) };
    let job = job_name(trials);
    let dims = &trials.session().dims;
    let (amount, name) = (quantity_of(amount.into(), dim, dims), dims.name(dim).to_owned());
    Ok(Some(Remedy {
        kind: RemedyKind::AskLess,
        who: Responsible::You,
        text: format!("ask for at most {amount} {name} a pod"),
        nodes: nodes_of(trials, &answer),
        at_micros: None,
        change: job.map(|job| RemedyChange::Request { job, resource: name, amount }),
    }))
}

/// Returns the largest of these requests with which the job is placed, and its places. Returns `None` if it is placed
/// with none.
fn largest_request(
    trials: &mut JobTrials<'_, '_>,
    dim: Dim,
    requests: &SmallerRequests,
) -> Result<Option<(i64, TrialAnswer)>, BudgetSpent> {
    let SmallerRequests { candidates, asked, unit } = requests;
    let (asked, unit) = (*asked, *unit);
    let mut placed = |amount: i64| -> Result<Option<TrialAnswer>, BudgetSpent> {
        let change = JobChange { request: Some((dim, amount)), ..JobChange::default() };
        let answer = trials.run_changed(change).ok_or(BudgetSpent)?;
        Ok(Some(answer).filter(TrialAnswer::succeeds))
    };
    // Mostly none of the candidates will do if the smallest does not.
    let Some(&smallest) = candidates.first() else { return Ok(None) };
    let Some(answer) = placed(smallest)? else { return Ok(None) };
    let mut best = (smallest, answer);
    let (mut low, mut high) = (1, candidates.len());
    while low < high {
        let middle = low + (high - low) / 2;
        match placed(candidates[middle])? {
            Some(answer) => (best, low) = ((candidates[middle], answer), middle + 1),
            None => high = middle,
        }
    }
    // A limit of the queue may be reached before a node is full.
    let mut above = candidates.get(low).copied().unwrap_or(asked) / unit;
    if best.0 / unit + 1 < above
        && let Some(answer) = placed(best.0 + unit)?
    {
        best = (best.0 + unit, answer);
        while best.0 / unit + 1 < above {
            let middle = best.0 / unit + (above - best.0 / unit) / 2;
            match placed(middle * unit)? {
                Some(answer) => best = (middle * unit, answer),
                None => above = middle,
            }
        }
    }
    Ok(Some(best))
}

/// Requests to try in place of the present one.
struct SmallerRequests {
    /// Ascending.
    candidates: Vec<i64>,
    /// The present request.
    asked: i64,
    /// Requests are multiples of this.
    unit: i64,
}

/// Returns the requests below the present one that fill eligible nodes with whole pods, ascending.
/// Returns `None` if the pods ask for different amounts.
fn smaller_requests(trials: &mut JobTrials<'_, '_>, dim: Dim) -> Option<SmallerRequests> {
    let members = waiting_members(trials.session(), trials.job());
    let first = *members.first()?;
    let request = trials.session().request(first);
    if members.iter().any(|&task| trials.session().request(task) != request) {
        return None;
    }
    let refusals = trials.refusals(first, &AtomSet::new(), &[]);
    trials.with_lifted(&AtomSet::new(), |session| {
        let asked = session.request(first).get(dim);
        let runs = refusals.runs(session);
        let free = refusals.eligible(&runs).map(|run| refusals.first_of(run));
        let free: BTreeSet<i64> =
            free.map(|node| session.nodes[node].future_idle_of(dim)).collect();
        let unit = unit(asked, dim);
        let parts = free.iter().flat_map(|&free| (1..=members.len() as i64).map(move |n| free / n));
        let whole = parts.map(|amount| amount / unit * unit);
        let smaller: BTreeSet<i64> = whole.filter(|&amount| 0 < amount && amount < asked).collect();
        Some(SmallerRequests { candidates: smaller.into_iter().collect(), asked, unit })
    })
}

/// Devices and the like are asked for in whole numbers, whose unit is a thousand.
fn unit(asked: i64, dim: Dim) -> i64 {
    let is_whole = !matches!(dim, Dim::CPU | Dim::MEMORY | Dim::PODS) && asked % 1_000 == 0;
    if is_whole { 1_000 } else { 1 }
}

/// The largest minimum below the present one with which the job is placed. It covers the minimums
/// of the roles.
fn lower_minimum(trials: &mut JobTrials<'_, '_>) -> Result<Option<Remedy>, BudgetSpent> {
    let row = trials.row();
    let present = row.min_available;
    let least = i32::try_from(row.task_min_available_total).unwrap_or(i32::MAX);
    let (mut low, mut high) = (least.max(1), present - 1);
    let mut best = None;
    while low <= high {
        let middle = low + (high - low) / 2;
        let change = JobChange { min_available: Some(middle), ..JobChange::default() };
        let answer = trials.run_changed(change).ok_or(BudgetSpent)?;
        match answer.succeeds() {
            true => {
                best = Some((middle, answer));
                low = middle + 1;
            }
            false => high = middle - 1,
        }
    }
    let Some((minimum, answer)) = best else { return Ok(None) };
    Ok(Some(Remedy {
        kind: RemedyKind::LowerMinimum,
        who: Responsible::You,
        text: format!("lower the minimum from {present} to {minimum}"),
        nodes: nodes_of(trials, &answer),
        at_micros: None,
        change: group_key(trials).map(|job| RemedyChange::Minimum { job, minimum }),
    }))
}

/// Returns the members that must find places, and the limits that keep the job from its places. `base` is the trial
/// without lifted atoms.
pub(crate) fn needed_and_limits(
    trials: &mut JobTrials<'_, '_>,
    base: &TrialAnswer,
) -> (Vec<TaskId>, Vec<QueueLimit>) {
    let job = trials.job();
    trials.with_lifted(&AtomSet::new(), |session| {
        let needed = needed(session, job);
        let limits = limits_of(session, job, (base, &needed));
        (needed, limits)
    })
}

/// Returns the limits that keep the job from its places, with amounts, in the order in which it meets them: that of
/// admission, then that of the needed members together.
fn limits_of(
    session: &Session<'_>,
    job: JobId,
    (base, needed): (&TrialAnswer, &[TaskId]),
) -> Vec<QueueLimit> {
    let (plugins, view) = (session.plugins(), session.view());
    let of_members = || plugins.queue_limit(view, session.jobs[job].queue, needed);
    match &base.end {
        TrialEnd::NotAdmitted(by, _) => match plugins.admission_limit_of(view, job, by) {
            Some(first) => std::iter::once(first).chain(of_members()).collect(),
            None => Vec::new(),
        },
        TrialEnd::NoTurn | TrialEnd::Unplaced => of_members().into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Returns a copy that shares the tables with this one until either side writes to them.
pub(crate) fn shared_copy(fork: &mut Fork) -> Fork {
    fork.share();
    fork.copy()
}
