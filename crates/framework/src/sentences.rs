//! Sentences that follow Volcano's text in the message of a pod: amounts, members that have room,
//! whose usage goes before, and why nothing was evicted. They are built only when a message is written or shown.
//! Specification: core.md 3.10, actions.md 10.2 (A48).

use rustc_hash::FxHashMap;
use vc_model::{FitErrors, JobId, Node, NodeId, NodeSet, Reason, TaskId, TaskStatus};
use vc_resource::{Dim, Resource};

use crate::accounts_ahead::AccountsAhead;
use crate::cause::histogram;
use crate::limit::quantity;
use crate::session::{Session, SessionState};

/// Cache of the sentences of one state, shared between pods with equal keys.
#[derive(Debug, Default)]
pub struct Sentences {
    /// Sentences about nodes, by request and unresolvable nodes. Looked up by key only.
    of_nodes: FxHashMap<(Resource, NodeSet), Option<String>>,
    /// Maximum amounts on the other nodes, by unresolvable nodes. Looked up by key only.
    most_there: FxHashMap<NodeSet, MostThere>,
    /// Sentences about limits, by job and request, so that a large job is iterated once per
    /// request. Looked up by key only.
    of_limits: FxHashMap<(JobId, Resource), Option<String>>,
    /// Sentences about members, accounts and evictions, by job. Looked up by key only.
    of_jobs: FxHashMap<JobId, String>,
    accounts_ahead: AccountsAhead,
}

impl Sentences {
    /// Appends the sentences of this task to `text`, which is Volcano's.
    pub fn append(&mut self, session: &Session<'_>, job: JobId, task: TaskId, text: &mut String) {
        let mut between = separator(text);
        let mut add = |ours: &str| {
            if !ours.is_empty() {
                text.push_str(between);
                text.push_str(ours);
                between = " ";
            }
        };
        add(self.shortage(session, job, task).unwrap_or_default());
        let ahead = &mut self.accounts_ahead;
        add(self.of_jobs.entry(job).or_insert_with(|| of_job(session, ahead, job)));
    }

    /// Returns the sentence about what is short for a task. Returns `None` if the task has a place
    /// or nothing specific is short.
    fn shortage(&mut self, session: &SessionState<'_>, job: JobId, task: TaskId) -> Option<&str> {
        let (row, records) = (&session.tasks[task], &session.records);
        let is_placed = records.last_transaction.get(task).is_some();
        if row.status != TaskStatus::Pending || row.invalid.is_some() || is_placed {
            return None;
        }
        let request = session.request(task).clone();
        let sentence = match records.fit_errors.get(task) {
            Some(errors) if 0 < errors.n_nodes => {
                errors.reasons.keys().find(|reason| matches!(reason, Reason::Insufficient(_)))?;
                let closed = errors.unresolvable();
                if !self.most_there.contains_key(closed) {
                    self.most_there.insert(closed.clone(), MostThere::of(session, errors));
                }
                let most = &self.most_there[closed];
                let found = || of_nodes(session, task, errors, most);
                self.of_nodes.entry((request, closed.clone())).or_insert_with(found)
            }
            // There are no nodes, so there is nothing to compare.
            Some(errors) if errors.head.is_none() => return None,
            None if records.fit_of(job).is_none() => return None,
            _ => {
                let found = || match session.jobs[job].is_pending() {
                    true => admission(session, job),
                    false => limit(session, job, task),
                };
                self.of_limits.entry((job, request)).or_insert_with(found)
            }
        };
        sentence.as_deref()
    }
}

/// True if a written message holds this text of Volcano, alone or followed by sentences of this
/// scheduler.
pub fn begins_with_text(message: &str, volcano: &str) -> bool {
    let Some(rest) = message.strip_prefix(volcano) else { return false };
    let ours = rest.strip_prefix(separator(volcano));
    rest.is_empty() || ours.is_some_and(|ours| !continues_job_text(ours))
}

/// True if the text begins with a sentence of [`crate::job_text`], which may follow a full stop like
/// sentences of [`Sentences`]: the origin, scheduling gates, or a field that makes no sense.
fn continues_job_text(text: &str) -> bool {
    let first = text.split(". ").next().unwrap_or_default();
    text.starts_with("Origin reason is")
        || text.starts_with("spec.")
        || first.contains(" scheduling gate")
}

fn separator(volcano: &str) -> &'static str {
    if volcano.ends_with('.') { " " } else { ". " }
}

/// Returns why the job is not admitted, with amounts.
pub fn admission(session: &SessionState<'_>, job: JobId) -> Option<String> {
    let limit = session.plugins().admission_limit(session.view(), job)?;
    Some(limit.text(&session.dims, 1))
}

/// Returns the limit that the task exceeds together with the members that were placed before it.
fn limit(session: &SessionState<'_>, job: JobId, task: TaskId) -> Option<String> {
    let row = &session.jobs[job];
    let mut tasks: Vec<TaskId> =
        row.tasks.iter().copied().filter(|&task| was_placed(session, task)).collect();
    tasks.push(task);
    let limit = session.plugins().queue_limit(session.view(), row.queue, &tasks)?;
    Some(limit.text(&session.dims, tasks.len()))
}

fn was_placed(session: &SessionState<'_>, task: TaskId) -> bool {
    let last = session.records.last_transaction.get(task);
    let is_place = |status| matches!(status, TaskStatus::Allocated | TaskStatus::Pipelined);
    session.tasks[task].status == TaskStatus::Pending
        && last.is_some_and(|last| is_place(last.status))
}

/// Per dimension, the maximum over the nodes that are not unresolvable.
#[derive(Debug)]
struct MostThere {
    /// Maximum of the allocatable amounts.
    allocatable: Resource,
    /// Maximum of the amounts that are free or being released.
    free: Resource,
}

impl MostThere {
    fn of(session: &SessionState<'_>, errors: &FitErrors) -> Self {
        let (mut allocatable, mut free) = (Resource::new(), Resource::new());
        let mut last: Option<&Node> = None;
        for row in open_nodes(session, errors).map(|node| &session.nodes[node]) {
            // Neighbours in name order mostly have equal amounts.
            let is_like = |other: &Node| {
                other.allocatable == row.allocatable
                    && other.idle == row.idle
                    && other.releasing == row.releasing
                    && other.pipelined == row.pipelined
            };
            if !last.is_some_and(is_like) {
                allocatable.set_max(&row.allocatable);
                free.set_max(&row.future_idle());
            }
            last = Some(row);
        }
        Self { allocatable, free }
    }
}

/// Returns the nodes on which eviction can help.
fn open_nodes(session: &SessionState<'_>, errors: &FitErrors) -> impl Iterator<Item = NodeId> {
    session.info().nodes.iter().copied().filter(|&node| !errors.is_unresolvable(node))
}

/// Returns the sentence that compares the request with the nodes: with empty nodes if no node could
/// ever hold it. Returns `None` if some node has room now, or eviction helps on no node. A node has
/// room if members were placed there and given up.
fn of_nodes(
    session: &SessionState<'_>,
    task: TaskId,
    errors: &FitErrors,
    most: &MostThere,
) -> Option<String> {
    let request = session.request(task);
    let nodes = || open_nodes(session, errors);
    nodes().next()?;
    // A request beyond the maximum over the nodes fits none of them.
    let fits_empty = request.fits(&most.allocatable)
        && nodes().any(|node| request.fits(&session.nodes[node].allocatable));
    if !fits_empty {
        return Some(never(session, request, &most.allocatable));
    }
    let fits_now = request.fits(&most.free)
        && nodes().any(|node| request.fits(&session.nodes[node].future_idle()));
    (!fits_now).then(|| not_now(session, request, &most.free))
}

fn never(session: &SessionState<'_>, request: &Resource, most: &Resource) -> String {
    let short = short(session, request, most, "largest node");
    let short =
        short.unwrap_or_else(|| format!("{}, no node has all of it", asked(session, request)));
    format!("It fits on no node even when empty: requests {short}.")
}

fn not_now(session: &SessionState<'_>, request: &Resource, most: &Resource) -> String {
    match short(session, request, most, "most free on a node") {
        Some(short) => format!("Requests {short}."),
        None => format!("Requests {}, no node has all of it free.", asked(session, request)),
    }
}

/// Returns the dimensions in which no node has enough. Returns `None` if every dimension is
/// available on some node.
fn short(
    session: &SessionState<'_>,
    request: &Resource,
    most: &Resource,
    there: &str,
) -> Option<String> {
    let dims = &session.dims;
    let lacking = |&&dim: &&Dim| most.get(dim) < request.get(dim);
    let text = |&dim: &Dim| {
        let (asked, has) = (request.get(dim), most.get(dim).max(0));
        let (asked, has) = (quantity(asked, dim, dims), quantity(has, dim, dims));
        format!("{asked} {}, {there} {has}", dims.name(dim))
    };
    let texts: Vec<String> = dims.in_report_order().iter().filter(lacking).map(text).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

fn asked(session: &SessionState<'_>, request: &Resource) -> String {
    let dims = &session.dims;
    let is_asked = |&&dim: &&Dim| dim != Dim::PODS && 0 < request.get(dim);
    let text = |&dim: &Dim| format!("{} {}", quantity(request.get(dim), dim, dims), dims.name(dim));
    let texts: Vec<String> = dims.in_report_order().iter().filter(is_asked).map(text).collect();
    texts.join(" and ")
}

fn of_job(session: &Session<'_>, accounts_ahead: &mut AccountsAhead, job: JobId) -> String {
    let ahead = accounts_ahead.sentence(session, job);
    let sentences = [members(session, job), ahead, evictions(session, job)];
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Returns `4 of 6 members have room.` Returns `None` if the job needs only one member, has enough,
/// or was not tried.
fn members(session: &SessionState<'_>, job: JobId) -> Option<String> {
    let row = &session.jobs[job];
    if row.min_available < 2 || row.is_pending() {
        return None;
    }
    let records = &session.records;
    let is_known = |task: &&TaskId| records.has(**task);
    row.tasks.iter().find(is_known)?;
    let n_tried = row.tasks.iter().filter(|&&task| was_placed(session, task)).count();
    let counts = &row.counts;
    let held = counts.ready() + counts.waiting() + counts.pending_best_effort;
    let n_room = i64::from(held) + i64::try_from(n_tried).unwrap_or(i64::MAX);
    let min = i64::from(row.min_available);
    (n_room < min).then(|| format!("{n_room} of {min} members have room."))
}

/// Returns why the evicting actions made no room, in the words of the event `PreemptionSkipped`
/// (actions.md 10.6).
fn evictions(session: &Session<'_>, job: JobId) -> Option<String> {
    let causes = session.outcome.causes.of(job).iter().filter(|(action, _)| *action != "enqueue");
    let texts: Vec<String> =
        causes.map(|(action, tally)| format!("{action}: {}", histogram(session, tally))).collect();
    let starves = !texts.is_empty() && session.plugins().job_starving(session.view(), job);
    starves.then(|| format!("Nothing evicted: {}.", texts.join("; ")))
}
