//! One scheduling session: the frozen cluster, the plugins, the journal of what was tried and what
//! is kept. Specification: core.md 5.1, 6.

mod commit;
mod operations;
mod pre_bind;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use vc_conf::{ActionSettings, HeadOfLine};
use vc_model::{
    Cluster, Gates, JobId, NodeId, PodGroupPhase, QUEUE_GATE, QueueId, TaskId, TaskStatus,
};

use crate::cause::Causes;
use crate::claim::Claims;
use crate::dead_ends::DeadEnds;
use crate::dispatch::Dispatch;
use crate::effect::{About, Effect, Nomination};
use crate::fast::Memo;
use crate::journal::Journal;
use crate::outbox::Outbox;
use crate::plugin::{Ask, Facts};
use crate::quota::{Notice, Sides};
use crate::records::Records;
use crate::refusals::Refusals;
use crate::roster::Roster;
use crate::ruling::{Question, Rule, Rules, Ruling};
use crate::standing::Standings;
use crate::statement::{Op, Statement};
use crate::time::rfc3339;

/// The working state of a cycle; reads like the [`Cluster`] that it holds.
pub struct Session<'c> {
    pub(crate) cluster: &'c mut Cluster,
    pub(crate) hooks: &'c mut Dispatch,
    /// Arguments of the actions.
    pub settings: &'c ActionSettings,
    pub(crate) facts: Facts,
    /// What messages are made of.
    pub records: Records,
    /// What was decided so far.
    pub out: Outbox,
    /// Jobs for which room was made.
    pub claims: Claims,
    /// `None`: the plain evaluator finds nodes.
    pub(crate) memo: Option<Memo>,
    /// `None`: every job is tried.
    pub(crate) standings: Option<Box<Standings>>,
    /// `None`: every search for victims is run.
    pub(crate) dead_ends: Option<Box<DeadEnds>>,
    /// Why no room was made for others.
    pub causes: Causes,
    /// Targets were decided in this session: once is enough (cohort.md B.5.4).
    pub targets_decided: bool,
    /// Certificates are handed out with the state that they speak of, for whoever verifies them.
    pub with_witnesses: bool,
    /// That [`crate::Walks`] may take, and searches that led nowhere likewise.
    pub walk_bytes: usize,
    /// How often shortcuts of evictions were taken.
    pub hits: Hits,
    /// Who was allowed to go, and why.
    pub(crate) rules: Rules,
    /// Operations of the open statement.
    pub(crate) journal: Journal,
    /// Operations that hold until the session ends: kept, or pipelined by a committed statement.
    pub(crate) held: Vec<Op>,
    /// What those who go by quota are told; looked up by id only.
    pub(crate) evict_texts: FxHashMap<TaskId, Arc<str>>,
    /// Tasks whose eviction was sent in this session.
    pub(crate) evicted: Vec<TaskId>,
    /// Phases that this session changed, as they were (core.md 5.1 step 3).
    phase_before: BTreeMap<JobId, PodGroupPhase>,
    n_draws: u64,
    /// Something was written that later sessions decide by.
    traced: bool,
}

impl Deref for Session<'_> {
    type Target = Cluster;
    fn deref(&self) -> &Cluster {
        self.cluster
    }
}

/// How often shortcuts were taken, for tests of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// Searches that were not run because it was known how they fail.
    pub n_repeated: u64,
    /// Searches that were resumed with what was known of the nodes, and found one.
    pub n_resumed: u64,
    /// Nodes that were passed over because votes would leave too few there again.
    pub n_passed_over: u64,
    /// Nodes with many candidates, which were in order from the task before.
    pub n_lined_up: u64,
    /// Simulations of gang actions that were not run because too few members could find room.
    pub n_bounded: u64,
    /// What was known of all nodes for tasks of a kind and had to make room for others.
    pub n_forgotten: u64,
    /// Victims of gang actions that were given back together.
    pub n_returned: u64,
    /// Jobs whose failure or refusal of an earlier session stands: allocate did not try them, enqueue
    /// told nothing of them again.
    pub n_stood: u64,
    /// Those among them that have their minimum, and of which no more finds a place.
    pub n_surplus: u64,
    /// Those among them that would give up again what some members find.
    pub n_gave_up: u64,
    /// Searches for victims that were not run because the nodes lack what they lacked before.
    pub n_dead_ends: u64,
    /// Nodes that were looked at to say so.
    pub n_looked_at: u64,
    /// Jobs for which no room was tried to make, because it ends as for one of their shape.
    pub n_alike: u64,
}

/// What the engine knows when a session begins.
pub struct Opening {
    /// Microseconds since 1970.
    pub now_micros: i64,
    /// Transition id of the conditions of this session.
    pub session_id: String,
    /// The action `enqueue` is configured.
    pub enqueue_configured: bool,
    /// Whose groups the configured actions may take where a plugin decides targets.
    pub sides: Sides,
    /// Of earlier cycles.
    pub claims: Claims,
    /// Of earlier cycles with the same configuration; `None`: use the plain evaluator.
    pub memo: Option<Memo>,
    /// Of earlier cycles with the same configuration, or a new one.
    pub roster: Roster,
}

impl<'c> Session<'c> {
    /// Opens every plugin on the state as it is.
    pub fn open(
        cluster: &'c mut Cluster,
        hooks: &'c mut Dispatch,
        settings: &'c ActionSettings,
        mut opening: Opening,
    ) -> Self {
        let facts = facts(cluster, hooks, &mut opening);
        hooks.open(Ask { cluster, facts: &facts });
        let standings = standings(cluster, hooks, settings, opening.memo.as_mut());
        let refusals = refusals(cluster, opening.memo.as_mut());
        let dead_ends = opening.memo.as_mut().map(|memo| {
            let mut dead_ends = std::mem::take(&mut memo.dead_ends);
            dead_ends.begin(facts.now_micros);
            dead_ends
        });
        Self {
            cluster,
            hooks,
            settings,
            facts,
            records: Records { refusals, ..Records::default() },
            out: Outbox::default(),
            claims: opening.claims,
            memo: opening.memo,
            standings,
            dead_ends,
            causes: Causes::default(),
            targets_decided: false,
            with_witnesses: false,
            walk_bytes: crate::walk::MOST_BYTES,
            hits: Hits::default(),
            rules: Rules::default(),
            evict_texts: FxHashMap::default(),
            journal: Journal::default(),
            held: Vec::new(),
            evicted: Vec::new(),
            phase_before: BTreeMap::new(),
            n_draws: 0,
            traced: false,
        }
    }

    /// The state as plugins see it.
    pub fn ask(&self) -> Ask<'_> {
        Ask { cluster: self.cluster, facts: &self.facts }
    }

    /// The rules.
    pub fn hooks(&self) -> &Dispatch {
        self.hooks
    }

    /// The rules, for whoever lends one out.
    pub fn dispatch(&mut self) -> &mut Dispatch {
        self.hooks
    }

    /// Which of the candidates may go, and why; whoever of them is evicted goes by this rule.
    pub fn ruling(&mut self, question: Question, candidates: &[TaskId]) -> Ruling {
        let ruling = self.hooks.ruling(self.ask(), question, candidates);
        self.rules.note(&ruling);
        ruling
    }

    /// A number for the state: another one whenever it is another, the same again when it is rolled
    /// back to.
    pub fn version(&self) -> u64 {
        self.journal.version()
    }

    /// Remembered results may be used; not so if the plain evaluator is selected.
    pub fn is_fast(&self) -> bool {
        self.memo.is_some()
    }

    /// Tasks whose eviction was sent in this session, in order.
    pub fn evicted(&self) -> &[TaskId] {
        &self.evicted
    }

    /// The tasks go by this rule if they are evicted, and this is what they are told.
    pub fn allow(&mut self, victims: &[TaskId], rule: Rule, message: &Arc<str>) {
        let ruling = Ruling { victims: victims.to_vec(), rule: Some(rule), refused_by: None };
        self.rules.note(&ruling);
        let texts = victims.iter().map(|&victim| (victim, message.clone()));
        self.evict_texts.extend(texts);
    }

    /// What is fixed for the session.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// A number below `limit` (0 for 0), drawn from the session's own sequence: the same session draws the
    /// same numbers (actions.md 6.7.1).
    pub fn draw(&mut self, limit: usize) -> usize {
        self.n_draws += 1;
        let text = format!("{} {}", self.facts.session_id, self.n_draws);
        let fold =
            |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, fold);
        usize::try_from((hash >> 16) % limit.max(1) as u64).unwrap_or(0)
    }

    /// How many numbers were drawn.
    pub fn n_draws(&self) -> u64 {
        self.n_draws
    }

    /// Opens a statement. While it is open, by the borrow, operations can only go through it.
    pub fn statement(&mut self) -> Statement<'_, 'c> {
        Statement::open(self, true)
    }

    /// Opens a statement of an action that evicts. What it undoes changes no reason: pods are told
    /// what allocate and backfill found (core.md 3.10).
    pub fn evicting_statement(&mut self) -> Statement<'_, 'c> {
        Statement::open(self, false)
    }

    /// Tells all plugins that the job was admitted and makes it Inqueue (actions.md 3.1).
    pub fn enqueue(&mut self, job: JobId) {
        self.journal.touch();
        let ask = Ask { cluster: self.cluster, facts: &self.facts };
        self.hooks.job_enqueued(ask, job);
        self.admit(job);
    }

    /// Makes a job Inqueue without asking: `enqueue` is not configured (actions.md 4.2).
    pub fn admit(&mut self, job: JobId) {
        self.journal.touch();
        self.phase_before.entry(job).or_insert(self.cluster.jobs[job].phase());
        self.cluster.set_phase(job, PodGroupPhase::Inqueue);
    }

    /// A place was found for the task; its job's time in the queue is measured by it (actions.md
    /// 4.10).
    pub fn note_placed(&mut self, task: TaskId) {
        if let Some(job) = self.cluster.tasks[task].job {
            *self.out.placed.entry(job).or_default() += 1;
        }
    }

    /// Phase of a job when the session began.
    pub fn phase_before(&self, job: JobId) -> PodGroupPhase {
        self.phase_before.get(&job).copied().unwrap_or_else(|| self.cluster.jobs[job].phase())
    }

    /// A Normal event `Unschedulable` on a PodGroup (core.md 7.9).
    pub fn pod_group_event(&mut self, job: JobId, message: String) {
        let row = &self.cluster.jobs[job];
        let Some(group) = row.pod_group.as_ref().filter(|_| !row.bare) else { return };
        let about = About::PodGroup { key: row.key.clone(), uid: group.uid.clone() };
        let reason = "Unschedulable";
        self.out.has_refusals = true;
        self.out.effects.push(Effect::Event {
            about,
            warning: false,
            reason,
            message: message.into(),
        });
    }

    /// Asks for the removal of the queue allocation gate of a task for which its queue has room, at
    /// most once until the pod has changed (core.md 7.8, A22). Without the annotation that hands the
    /// gate to us it stays; that is said.
    pub fn remove_gate(&mut self, task: TaskId) {
        let row = &self.cluster.tasks[task];
        if !self.cluster.settings.queue_gate_admission || row.gates != Gates::QueueAllocationOnly {
            return;
        }
        if !row.manages_queue_gate {
            let hint = format!("hint: annotate it with {QUEUE_GATE}: \"true\"");
            let warning = format!("pod {}: gate is not ours to lift: {QUEUE_GATE}", row.key);
            return self.out.warnings.push(format!("{warning}\n{hint}"));
        }
        if !row.ungating {
            let (pod, uid) = (row.key.clone(), row.uid.clone());
            self.out.effects.push(Effect::RemoveGate { pod, uid });
            self.cluster.tasks[task].ungating = true;
        }
        self.journal.touch();
        let ask = Ask { cluster: self.cluster, facts: &self.facts };
        self.hooks.on_gate_lifted(ask, task);
    }

    /// Tells the plugins what the action does.
    pub fn tell(&mut self, notice: &Notice<'_>) {
        let ask = Ask { cluster: self.cluster, facts: &self.facts };
        self.hooks.on_notice(ask, notice);
    }

    /// Ends the claim of a job that found no place, unless pods have yet to go for it.
    pub fn end_claim(&mut self, job: JobId) {
        if self.claims.end_unless_victims_remain(self.cluster, job) {
            self.tell(&Notice::ClaimEnds(job));
        }
    }

    /// Gives a pipelined task back: Pending, off its node (actions.md 5, step 1). The node it had,
    /// and what [`Session::repipeline`] needs. `None`: no operation of this session pipelined it.
    pub fn unpipeline(&mut self, task: TaskId) -> Option<(NodeId, Op)> {
        let held = |op: &Op| match *op {
            Op::Pipeline { task: other, node, .. } if other == task => Some(node),
            _ => None,
        };
        let mut places = self.held.iter().enumerate();
        let (place, node) = places.find_map(|(place, op)| Some((place, held(op)?)))?;
        let op = self.held.remove(place);
        self.journal.touch();
        self.undo(op);
        Some((node, op))
    }

    /// Takes [`Session::unpipeline`] back (A26).
    pub fn repipeline(&mut self, op: Op) {
        if let Op::Pipeline { task, node, .. } = op
            && self.place(task, TaskStatus::Pipelined, node).is_ok()
        {
            self.journal.touch();
            self.held.push(op);
        }
    }

    /// Asks something while filters do not see these terminating tasks, as if they were gone.
    pub fn without<T>(&mut self, leaving: &[TaskId], ask: impl FnOnce(&Session<'_>) -> T) -> T {
        let is_seen = |task: &&TaskId| {
            let row = &self.cluster.tasks[**task];
            row.status == TaskStatus::Releasing && !row.hidden
        };
        let leaving: Vec<TaskId> = leaving.iter().filter(is_seen).copied().collect();
        leaving.iter().for_each(|&task| self.cluster.hide_task(task));
        let answer = ask(self);
        leaving.iter().for_each(|&task| self.cluster.reveal_task(task));
        answer
    }

    /// Asks plugins to write their conditions; everything tried and kept is still in place.
    pub fn close_plugins(&mut self) {
        self.list_to_close();
        self.close_listed();
    }

    /// The same for the jobs that are listed.
    pub fn close_listed(&mut self) {
        if self.facts.roster.changed().is_none() {
            // Of each its gang, its share and that it was seen: such a list is not moved as it grows.
            self.out.samples.reserve(3 * self.facts.to_close.len() + 1_000);
        }
        let ask = Ask { cluster: self.cluster, facts: &self.facts };
        self.hooks.close(ask, &self.records, &mut self.out);
    }

    /// Sets `to_close` and `repeated` of the facts.
    pub fn list_to_close(&mut self) {
        let mut jobs = self.facts.roster.to_close(self.cluster);
        self.facts.repeated = self.take_repeated(&mut jobs);
        self.facts.to_close = jobs;
    }

    /// The tables, for the recording at session close.
    pub fn cluster_mut(&mut self) -> &mut Cluster {
        self.journal.touch();
        self.cluster
    }

    /// Gives a job the phase back that it had when the session began.
    pub fn restore_phase(&mut self, job: JobId) {
        if let Some(&before) = self.phase_before.get(&job) {
            self.cluster.set_phase(job, before);
        }
    }

    /// What is recorded now is read by later sessions when they decide.
    pub fn leaves_trace(&mut self) {
        self.traced = true;
    }

    /// Whether nothing was decided or drawn, so that once what was tried is undone a session on the
    /// same state decides the same: all that was written is what recording compares with.
    pub fn left_no_trace(&self) -> bool {
        let recorded = |effect: &Effect| match effect {
            Effect::Event { .. } | Effect::QueueStatus { .. } => true,
            Effect::PodGroupStatus { phase_changed, .. } => !phase_changed,
            Effect::PodCondition { nomination, .. } => *nomination == Nomination::Keep,
            _ => false,
        };
        !self.traced && self.n_draws == 0 && self.out.effects.iter().all(recorded)
    }

    /// Undoes what was not committed and hands out what was decided, the claims that remain and what
    /// was remembered.
    pub fn finish(mut self) -> (Outbox, Claims, Option<Memo>, Roster) {
        for op in std::mem::take(&mut self.held).into_iter().rev() {
            self.undo(op);
        }
        for task in std::mem::take(&mut self.evicted) {
            self.cluster.reveal_task(task);
        }
        if let Some(mut dead_ends) = self.dead_ends.take() {
            dead_ends.end(|| self.votes_until_micros());
            self.memo.iter_mut().for_each(|memo| memo.dead_ends = std::mem::take(&mut dead_ends));
        }
        if let Some((memo, mut standings)) = self.memo.as_mut().zip(self.standings.take()) {
            standings.end();
            memo.standings = standings;
            memo.refusals = std::mem::take(&mut self.records.refusals);
            memo.refusals.end();
        }
        let (out, claims) = (std::mem::take(&mut self.out), std::mem::take(&mut self.claims));
        (out, claims, self.memo.take(), std::mem::take(&mut self.facts.roster))
    }

    /// The job of a task, if it has a PodGroup.
    pub(crate) fn job_of_group(&self, task: TaskId) -> Option<JobId> {
        self.tasks[task].job.filter(|&job| self.jobs[job].pod_group.is_some())
    }
}

/// The failures of earlier sessions, where nothing but what such a failure reads decides whether a
/// job is tried, and how its row is judged.
fn standings(
    cluster: &Cluster,
    hooks: &Dispatch,
    settings: &ActionSettings,
    memo: Option<&mut Memo>,
) -> Option<Box<Standings>> {
    let settings = &settings.allocate;
    let in_turn = settings.head_of_line == HeadOfLine::Off && !settings.gang_repair_first;
    let of_quota = hooks.has_next_queue() || hooks.has_targets();
    let memo = memo.filter(|_| in_turn && !of_quota && hooks.judges_rows())?;
    let mut standings = std::mem::take(&mut memo.standings);
    standings.begin(cluster);
    Some(standings)
}

/// The refusals of the last session.
fn refusals(cluster: &Cluster, memo: Option<&mut Memo>) -> Refusals {
    let mut refusals = memo.map(|memo| std::mem::take(&mut memo.refusals)).unwrap_or_default();
    refusals.begin(cluster);
    refusals
}

fn facts(cluster: &Cluster, hooks: &Dispatch, opening: &mut Opening) -> Facts {
    let queue_known = |queue: QueueId| cluster.queues[queue].present;
    let mut facts = Facts {
        now_micros: opening.now_micros,
        nodes: cluster.nodes_by_name().into(),
        queues: cluster.queues_by_name().filter(|&queue| queue_known(queue)).collect(),
        total: cluster.total_allocatable(),
        enqueue_configured: opening.enqueue_configured,
        now_text: rfc3339(opening.now_micros).into(),
        session_id: opening.session_id.as_str().into(),
        sides: opening.sides,
        claimed: opening.claims.waiting(cluster),
        ..Facts::default()
    };
    let mut roster = std::mem::take(&mut opening.roster);
    facts.jobs = roster.follow(cluster, hooks, &facts);
    facts.roster = roster;
    facts
}
