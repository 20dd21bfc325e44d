//! The verdict about a job: the first stage at which it does not go on, and those behind it, found
//! by trials with the earlier obstacles lifted. Specification: answers.md 2 (ANS-6, ANS-8).

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_actions::{first_tasks, needed};
use vc_framework::{Atom, Session, SessionState, ShareRefusal};
use vc_model::{JobId, NodeId, TaskId, TaskStatus};

use crate::amounts::count;
use crate::code::WaitCode;
use crate::explanation::{FailingClass, NodeNumbers, QuotaRow, ShortResource, Verdict};
use crate::nodes::NodeRefusals;
use crate::pod_classes::asked_amounts;
use crate::quota;
use crate::shortage::Shortages;
use crate::stage_rows::{StageRow, bind_failed, gated, invalid, not_valid, verdict_of};
use crate::trials::{AtomSet, JobTrials, TrialAnswer, TrialEnd, waiting_members};

/// Plugins that are asked in turn; there are fewer.
const MOST_PLUGINS: usize = 64;
/// Nodes that a text names.
const NODES_IN_TEXT: usize = 3;
/// Classes of members that are listed beside the first one.
const MOST_CLASSES: usize = 8;

/// What was found out about a job.
#[derive(Clone)]
pub(crate) struct Judgement {
    pub(crate) verdict: Verdict,
    pub(crate) quota: Arc<[QuotaRow]>,
    pub(crate) nodes: Option<Arc<NodeNumbers>>,
    pub(crate) short: Arc<[ShortResource]>,
    /// The atoms that are lifted in the trial that the code is about. `None` if it is about no trial of members.
    pub(crate) lifted: Option<AtomSet>,
    /// Members that find places in the base state.
    pub(crate) placed: Vec<TaskId>,
}

/// Obstacles in the order of the stages, each lifted before the next is looked for.
struct Obstacles {
    rows: Vec<StageRow>,
    lifted: AtomSet,
    quota: Vec<QuotaRow>,
    nodes: Option<Arc<NodeNumbers>>,
    short: Arc<[ShortResource]>,
}

/// Finds the stage of a job, which is that of an earlier one of which all that decides is the same.
pub(crate) fn judge_or_repeat(trials: &mut JobTrials<'_, '_>) -> Judgement {
    if let Some(known) = trials.known_judgement() {
        return known;
    }
    let judged = judge(trials);
    trials.keep_judgement(&judged);
    judged
}

/// Finds the stage of a job that waits in the session.
pub(crate) fn judge(trials: &mut JobTrials<'_, '_>) -> Judgement {
    let mut found = Obstacles {
        rows: Vec::new(),
        lifted: AtomSet::new(),
        quota: Vec::new(),
        nodes: None,
        short: Arc::default(),
    };
    let base = trials.run(&AtomSet::new());
    find_object_obstacles(trials, &base, &mut found);
    // No trial takes a pod whose bind was refused or that cannot be read, so that nothing is known of its nodes.
    let is_tried = found.rows.is_empty();
    find_gates(trials, &base, &mut found);
    find_queue_obstacles(trials, &mut found);
    find_admission_obstacles(trials, &mut found);
    if is_tried {
        find_share_obstacles(trials, &mut found);
        find_order(trials, &mut found);
        find_nodes(trials, &mut found);
    }
    let verdict = verdict_of(found.rows).expect("the stage nodes always has a row");
    let lifted = match verdict.code {
        WaitCode::QueueFull => Some(AtomSet::new()),
        WaitCode::NodesRefuse
        | WaitCode::NeverFits
        | WaitCode::NoRoom
        | WaitCode::Fragmented
        | WaitCode::GangShort => Some(found.lifted),
        _ => None,
    };
    Judgement {
        verdict,
        quota: found.quota.into(),
        nodes: found.nodes,
        short: found.short,
        lifted,
        placed: base.placed.iter().map(|(task, _)| *task).collect(),
    }
}

/// Adds pods whose bind was refused, and those that cannot be read if the others do not suffice.
fn find_object_obstacles(trials: &JobTrials<'_, '_>, base: &TrialAnswer, found: &mut Obstacles) {
    let (session, members) = (trials.session(), &trials.row().tasks);
    found.rows.extend(bind_failed(session, members));
    found.rows.extend(invalid(session, members).filter(|_| !base.succeeds()));
}

fn find_gates(trials: &JobTrials<'_, '_>, base: &TrialAnswer, found: &mut Obstacles) {
    if base.succeeds() {
        return;
    }
    if let Some(row) = gated(trials.session(), &trials.row().tasks) {
        found.rows.push(row);
        found.lifted.insert(Atom::Gates);
    }
}

fn find_queue_obstacles(trials: &mut JobTrials<'_, '_>, found: &mut Obstacles) {
    let queue = &trials.session().queues[trials.row().queue];
    let closed =
        (!queue.is_open()).then(|| format!("queue {} is {}", queue.name, queue.state.as_str()));
    if let Some(text) = closed.filter(|_| !trials.run(&found.lifted).succeeds()) {
        found.rows.push((WaitCode::QueueNotOpen, text));
        found.lifted.insert(Atom::Queue);
    }
    if let TrialEnd::NotValid(message) = &trials.run(&found.lifted).end {
        found.rows.push(not_valid(trials.row(), message));
        found.lifted.insert(Atom::Members);
    }
}

fn find_admission_obstacles(trials: &mut JobTrials<'_, '_>, found: &mut Obstacles) {
    for _ in 0..MOST_PLUGINS {
        let answer = trials.run(&found.lifted);
        let TrialEnd::NotAdmitted(by, message) = &answer.end else { return };
        let (by, job) = (*by, trials.job());
        let (rows, text) = trials.with_lifted(&found.lifted, |session| {
            let limit = session.plugins().admission_limit_of(session.view(), job, by);
            let facts = session.plugins().admission_facts_of(session.view(), job, by);
            let (dims, numbers) = (&session.dims, (limit.as_ref(), &*facts));
            let text = quota::admission_text(by, message.as_deref(), numbers, dims);
            let mut rows = quota::rows(by, limit.as_ref(), dims);
            rows.extend(quota::rows_of_facts(by, facts));
            (rows, text)
        });
        found.rows.push((WaitCode::NotAdmitted, text));
        found.quota.extend(rows);
        found.lifted.insert(Atom::Admission(by));
    }
}

fn find_share_obstacles(trials: &mut JobTrials<'_, '_>, found: &mut Obstacles) {
    for _ in 0..MOST_PLUGINS {
        let answer = trials.run(&found.lifted);
        let is_open = matches!(answer.end, TrialEnd::NoTurn | TrialEnd::Unplaced);
        let Some(task) = answer.failed.filter(|_| is_open && answer.placed.is_empty()) else {
            return;
        };
        let refused = trials.with_lifted(&found.lifted, |session| refusal(session, task));
        let Some((refusal, text, rows)) = refused else { return };
        found.rows.push((WaitCode::QueueFull, text));
        found.quota.extend(rows);
        found.lifted.insert(Atom::Share(refusal.by));
    }
}

/// Returns why the queue of the task has no room for it. Best-effort pods do not ask for any, and
/// without nodes no queue is asked.
fn refusal(
    session: &SessionState<'_>,
    task: TaskId,
) -> Option<(ShareRefusal, String, Vec<QuotaRow>)> {
    let queue = session.job_of(task)?.queue;
    if session.tasks[task].best_effort || session.info().nodes.is_empty() {
        return None;
    }
    let refusal = session.plugins().share_refusal(session.view(), queue, task)?;
    let text = quota::share_text(&refusal, &session.queues[queue].name, &session.dims);
    let rows = quota::rows(refusal.by, refusal.limit.as_ref(), &session.dims);
    Some((refusal, text, rows))
}

fn find_order(trials: &mut JobTrials<'_, '_>, found: &mut Obstacles) {
    if trials.run(&found.lifted).succeeds() || !trials.is_held() {
        return;
    }
    let mut without = found.lifted.clone();
    without.insert(Atom::Order);
    if !trials.run(&without).succeeds() {
        // A queue that stands still would hide what the nodes lack.
        if trials.run(&found.lifted).end == TrialEnd::BehindHead {
            found.lifted = without;
        }
        return;
    }
    let text = match &trials.held().head {
        Some(head) => format!("{head} is first: head of line"),
        None => format!("{} is first: it waits for room on these nodes", first_holder(trials)),
    };
    found.rows.push((WaitCode::HeldBack, text));
    found.lifted = without;
}

/// Returns the first job that holds room.
fn first_holder(trials: &JobTrials<'_, '_>) -> String {
    let session = trials.session();
    let holder = trials.held().pipelined.first().and_then(|(task, _)| session.job_of(*task));
    holder.map_or_else(|| "another job".to_owned(), |job| job.key.to_string())
}

fn find_nodes(trials: &mut JobTrials<'_, '_>, found: &mut Obstacles) {
    if let Some(text) = victims_text(trials) {
        return found.rows.push((WaitCode::AwaitsVictims, text));
    }
    let answer = trials.run(&found.lifted);
    match answer.end {
        TrialEnd::Placed => {
            let what = if trials.row().tasks.is_empty() { "admitted" } else { "placed" };
            let text = format!("it is {what} in the next cycle");
            found.rows.push((WaitCode::NextCycle, text));
        }
        TrialEnd::Pipelined => {
            let text = released_text(trials.session(), &answer);
            found.rows.push((WaitCode::WaitsForRelease, text));
        }
        _ => find_refusing_nodes(trials, &answer, found),
    }
}

/// Returns how many pods that were evicted for the job have yet to leave. Returns `None` if there
/// are none.
fn victims_text(trials: &JobTrials<'_, '_>) -> Option<String> {
    let session = trials.session();
    let cluster = session.view().cluster;
    let hold = session.eviction_holds.of(cluster, trials.job())?;
    let leaving = hold.victims.iter().filter_map(|uid| cluster.task(uid));
    let is_leaving = |&task: &TaskId| cluster.tasks[task].status == TaskStatus::Releasing;
    let leaving: Vec<TaskId> = leaving.filter(is_leaving).collect();
    if leaving.is_empty() {
        return None;
    }
    let nodes = leaving.iter().filter_map(|&task| cluster.tasks[task].node);
    let nodes: BTreeSet<&str> = nodes.map(|node| &*cluster.nodes[node].name).collect();
    let nodes: Vec<&str> = nodes.into_iter().take(NODES_IN_TEXT).collect();
    let terminate = if leaving.len() == 1 { "terminates" } else { "terminate" };
    let victims = count(hold.victims.len(), "victim");
    Some(format!("{} of {victims} still {terminate} on {}", leaving.len(), nodes.join(", ")))
}

fn released_text(session: &SessionState<'_>, answer: &TrialAnswer) -> String {
    let full = answer.placed.iter().filter(|(task, node)| !session.fits_idle(*task, *node));
    let nodes: BTreeSet<&str> = full.map(|(_, node)| &*session.nodes[*node].name).collect();
    let nodes: Vec<&str> = nodes.into_iter().take(NODES_IN_TEXT).collect();
    format!("room on {} is being freed", nodes.join(", "))
}

/// Adds the row of a trial in which too few members find a node, and the numbers of the nodes.
fn find_refusing_nodes(
    trials: &mut JobTrials<'_, '_>,
    answer: &TrialAnswer,
    found: &mut Obstacles,
) {
    let Some(task) = answer.failed else {
        // Behind an earlier obstacle nothing more can be said.
        if !found.rows.is_empty() {
            return;
        }
        let n_placed = answer.placed.len();
        let row = trials.row();
        let needed = i64::from(row.min_available) - i64::from(row.counts.ready());
        let text = format!("{n_placed} of {needed} needed pods find a node; no other can be tried");
        return found.rows.push((WaitCode::GangShort, text));
    };
    let lifted = found.lifted.clone();
    let refused = refused_row(trials, &lifted, (task, answer));
    let RefusedTask { row, quota, nodes, short, rules } = refused;
    let is_by_rules = row.0 == WaitCode::NodesRefuse;
    found.rows.push(row);
    found.quota.extend(quota);
    (found.nodes, found.short) = (Some(nodes), short);
    if !is_by_rules {
        return;
    }
    let lifted: AtomSet = lifted.union(&rules).cloned().collect();
    let answer = trials.run(&lifted);
    if let Some(task) = answer.failed.filter(|_| !answer.succeeds()) {
        found.rows.push(refused_row(trials, &lifted, (task, &answer)).row);
    }
}

/// A task that finds no node while the members before it have theirs.
#[derive(Clone)]
pub(crate) struct RefusedTask {
    row: (WaitCode, String),
    quota: Vec<QuotaRow>,
    /// Shared by the jobs of one shape, as `short` is.
    nodes: Arc<NodeNumbers>,
    short: Arc<[ShortResource]>,
    /// The atoms other than amounts that refuse nodes.
    rules: AtomSet,
}

/// Returns the row of a trial in which this task finds no node, with the number of the members that
/// find one.
fn refused_row(
    trials: &mut JobTrials<'_, '_>,
    lifted: &AtomSet,
    (task, answer): (TaskId, &TrialAnswer),
) -> RefusedTask {
    if let Some(known) = trials.of_shape().and_then(|known| known.refused(lifted, task)) {
        return known;
    }
    let job = trials.job();
    let needed = trials.with_lifted(lifted, |session| still_needed(session, job, task));
    let placed = answer.placed_tasks();
    let left: Vec<TaskId> = needed.iter().copied().filter(|task| !placed.contains(task)).collect();
    let refusals = trials.refusals(task, lifted, &answer.placed).without(lifted);
    let mut refused = trials
        .with_placed(lifted, &answer.placed, |session| refused_task(session, &refusals, &left));
    if let Some(sub_group) = sub_group(trials.session(), task) {
        refused.row.1 = format!("sub-group {sub_group}: {}", refused.row.1);
    }
    let n_placed = answer.placed.len();
    if 0 < n_placed {
        let finds = if n_placed == 1 { "finds" } else { "find" };
        let head = format!("{n_placed} of {} needed pods {finds} a node", needed.len());
        let text = format!("{head}; the others: {}", refused.row.1);
        refused.row = (WaitCode::GangShort, text);
    }
    if let Some(of_shape) = trials.of_shape() {
        of_shape.keep_refused(lifted, task, &refused);
    }
    refused
}

/// Returns the members that must still find nodes. A best-effort pod needs itself alone.
fn still_needed(session: &SessionState<'_>, job: JobId, task: TaskId) -> Vec<TaskId> {
    match session.tasks[task].best_effort {
        true => vec![task],
        false => needed(session, job),
    }
}

/// Returns why one task finds no node. `left` are all members that must still find one.
fn refused_task(
    session: &SessionState<'_>,
    refusals: &NodeRefusals,
    left: &[TaskId],
) -> RefusedTask {
    let runs = refusals.runs(session);
    let shortages = Shortages::find(session, (refusals, &runs), left);
    let nodes = Arc::new(refusals.numbers(session, &runs));
    let (row, quota) = match refusal(session, refusals.task) {
        Some((_, text, quota)) => ((WaitCode::QueueFull, text), quota),
        None if refusals.sets().any(|(atoms, _)| atoms.is_empty()) => {
            let pods = count(left.len(), "pod");
            let text = format!("no HyperNode of an allowed tier has room for {pods} together");
            ((WaitCode::Fragmented, text), Vec::new())
        }
        None => (shortages.code(&nodes.groups, &session.dims), Vec::new()),
    };
    let short = shortages.rows(&session.dims).into();
    RefusedTask { row, quota, nodes, short, rules: refusals.rules() }
}

/// Returns the classes of members that find no place beside that of the first one, in the trial that the verdict is
/// about. A class that some node would take is left out. It takes a look at all nodes for each class.
pub(crate) fn failing_classes(
    trials: &mut JobTrials<'_, '_>,
    judged: &Judgement,
) -> Vec<FailingClass> {
    let Some(lifted) = &judged.lifted else { return Vec::new() };
    let (answer, job) = (trials.run(lifted), trials.job());
    let Some(failed) = answer.failed.filter(|_| !has_one_class(trials)) else {
        return Vec::new();
    };
    let (open, needed) = trials.with_lifted(lifted, |session| {
        let needed: BTreeSet<TaskId> = needed(session, job).into_iter().collect();
        (open_classes(session, job, (&answer, failed)), needed)
    });
    let mut rows: Vec<FailingClass> = Vec::new();
    for members in open {
        let found = failing_class(trials, (lifted, &answer.placed), (&members, &needed));
        let Some(row) = found else { continue };
        let is_same = |other: &FailingClass| {
            (&other.request, other.code, &other.text) == (&row.request, row.code, &row.text)
        };
        match rows.iter().position(is_same) {
            Some(at) => rows[at].count += row.count,
            None => rows.push(row),
        }
    }
    rows
}

/// True if all waiting members have one shape, so that no further class can fail.
fn has_one_class(trials: &JobTrials<'_, '_>) -> bool {
    let session = trials.session();
    let waiting = waiting_members(session, trials.job());
    let mut shapes = waiting.into_iter().map(|task| shape_of(session, task));
    let first = shapes.next();
    shapes.all(|shape| Some(shape) == first)
}

fn shape_of(session: &SessionState<'_>, task: TaskId) -> u64 {
    session.classes.shape_id(session.tasks[task].class)
}

/// Returns the members that have no place in this trial, by shape, without those of the shape of `failed`.
fn open_classes(
    session: &Session<'_>,
    job: JobId,
    (answer, failed): (&TrialAnswer, TaskId),
) -> Vec<Vec<TaskId>> {
    let placed = answer.placed_tasks();
    let mut shapes = vec![shape_of(session, failed)];
    let mut classes: Vec<Vec<TaskId>> = vec![Vec::new()];
    for task in first_tasks(session, job).into_iter().filter(|task| !placed.contains(task)) {
        let shape = shape_of(session, task);
        match shapes.iter().position(|known| *known == shape) {
            Some(at) => classes[at].push(task),
            None if shapes.len() <= MOST_CLASSES => {
                shapes.push(shape);
                classes.push(vec![task]);
            }
            None => {}
        }
    }
    classes.split_off(1)
}

/// Returns why these members of one class find no place while others have theirs. Returns `None` if a node would
/// take them.
fn failing_class(
    trials: &mut JobTrials<'_, '_>,
    (lifted, placed): (&AtomSet, &[(TaskId, NodeId)]),
    (members, needed): (&[TaskId], &BTreeSet<TaskId>),
) -> Option<FailingClass> {
    let first = *members.first()?;
    let mut left: Vec<TaskId> =
        members.iter().copied().filter(|task| needed.contains(task)).collect();
    if left.is_empty() {
        left.push(first);
    }
    let refusals = trials.refusals(first, lifted, placed).without(lifted);
    let refused =
        trials.with_placed(lifted, placed, |session| refused_class(session, &refusals, &left));
    let (code, mut text) = refused?;
    let session = trials.session();
    if let Some(sub_group) = sub_group(session, first) {
        text = format!("sub-group {sub_group}: {text}");
    }
    let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
    Some(FailingClass { request: asked_amounts(session, first), count, code, text })
}

/// Returns code and text of a task that finds no node, with the amounts that `left` lack. Returns `None` if a node
/// would take it.
fn refused_class(
    session: &SessionState<'_>,
    refusals: &NodeRefusals,
    left: &[TaskId],
) -> Option<(WaitCode, String)> {
    if let Some((refused, text, _)) = refusal(session, refusals.task) {
        let short = quota::short_text(&refused, &session.dims);
        return Some((WaitCode::QueueFull, short.unwrap_or(text)));
    }
    if refusals.sets().any(|(atoms, n_nodes)| atoms.is_empty() && 0 < n_nodes) {
        return None;
    }
    let runs = refusals.runs(session);
    let groups = refusals.numbers(session, &runs).groups;
    Some(Shortages::find(session, (refusals, &runs), left).code(&groups, &session.dims))
}

/// Returns the sub-group of a task. Returns `None` for jobs without sub-groups.
fn sub_group(session: &SessionState<'_>, task: TaskId) -> Option<String> {
    let row = &session.tasks[task];
    let sub_job = session.job_of(task)?.sub_jobs.get(row.sub_job)?;
    sub_job.policy?;
    Some(sub_job.id.to_string())
}
