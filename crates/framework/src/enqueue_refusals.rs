//! Refusals of enqueue that still hold in later cycles. A group with the same refusal is neither
//! voted on nor reported again.
//! Specification: actions.md 12.2 S7, 12.3.
//!
//! Exact because:
//! - Until a group is admitted, enqueue changes nothing, so all groups are voted on in the same
//!   state. One vote then serves all groups of a kind: same queue, namespace and minResources.
//!   Every voting plugin must declare that it reads no more ([`crate::CacheKeys::admission_mark`]).
//! - A group needs no turn if the same plugin refuses it with the same message. The log of changed
//!   jobs must not name it, and none of its reports may be due.
//! - Once a group is admitted, the groups behind it have their turns and votes of their own.
//!
//! The plain evaluator votes on every group in every cycle; the engine's `unschedulable_cache.rs`
//! compares.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vc_model::{ChangeReader, Cluster, Id, JobId, MinResources, QueueId, Revision};

use crate::plugin_set::EnqueueRefusal;
use crate::session::{Session, SessionState};
use crate::wait_cause::WaitCause;

/// Upper bound of the kinds or messages that no group uses any more.
const MOST_UNUSED: usize = 1024;

/// The groups that are not admitted, with their refusals.
#[derive(Clone, Debug, Default)]
pub(crate) struct EnqueueRefusals {
    /// Number of sessions so far.
    session: u64,
    /// True until this session has taken its repeated refusals.
    is_open: bool,
    n_turns: u64,
    /// Entries by index of the job.
    entries: Vec<Option<RefusedJob>>,
    places: FxHashMap<RefusalKey, usize>,
    kinds: Vec<AdmissionClass>,
    numbers: FxHashMap<EnqueueRefusal, usize>,
    /// Messages by number. `by` has the plugin of each.
    texts: Vec<Arc<str>>,
    by: Vec<&'static str>,
    changed_jobs: ChangeReader<JobId>,
    /// Version of the queues and revision of the HyperNodes.
    stamp: (u64, Revision),
}

/// A group that was refused in the last session, or in this one.
#[derive(Clone, Debug)]
struct RefusedJob {
    /// Index into `kinds`. `None` if plugins may read more of this group.
    kind: Option<usize>,
    words: usize,
    /// Number of the last turn. A later turn has a greater number.
    turn: u64,
    /// The last session in which the refusal was the same as before.
    held: u64,
    /// The group belongs to its kind until this time, in microseconds since 1970.
    until_micros: i64,
    /// All reports about the group are written until this time. `None` if some are still to be
    /// written.
    reported_until_micros: Option<i64>,
    /// True if the group changed since.
    is_stale: bool,
}

/// What votes read of a group; the key of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RefusalKey {
    queue: QueueId,
    namespace: Arc<str>,
    min_resources: Option<Arc<MinResources>>,
    marks: Vec<bool>,
}

#[derive(Clone, Debug)]
struct AdmissionClass {
    marks: Vec<bool>,
    /// The session of the last vote for this kind.
    asked: u64,
    /// The refusal of that vote. `None` if it is new, or if each group needs a vote of its own.
    words: Option<usize>,
}

impl EnqueueRefusals {
    /// Returns the sizes of the parts: entries, with empty places, and what they refer to.
    pub(crate) fn sizes(&self) -> [(&'static str, usize); 2] {
        let parts = [self.places.len(), self.kinds.len(), self.numbers.len(), self.texts.len()];
        [("enqueue_refusals", self.entries.len()), ("enqueue_refusal_parts", parts.iter().sum())]
    }

    /// Begins a session. Drops all entries if a queue or a HyperNode changed.
    pub(crate) fn begin(&mut self, cluster: &Cluster) {
        self.session += 1;
        self.is_open = true;
        // C-33: the message about a queue that is not open reads the queue's row. The text of a job
        // names fields of its topology that make no sense with the HyperNodes that there are.
        let stamp = (cluster.queue_version(), cluster.hyper_nodes.revision());
        if self.stamp != stamp {
            self.stamp = stamp;
            self.entries.clear();
        }
        self.follow(cluster);
    }

    /// Marks the entries of changed groups as stale. Their messages of this session remain.
    pub(crate) fn follow(&mut self, cluster: &Cluster) {
        let Some(changed) = self.changed_jobs.read(cluster.job_changes()) else {
            self.entries.iter_mut().flatten().for_each(|entry| entry.is_stale = true);
            return;
        };
        for job in changed {
            if let Some(entry) = self.entries.get_mut(job.index()).and_then(Option::as_mut) {
                entry.is_stale = true;
            }
        }
    }

    fn live(&self, job: JobId) -> Option<&RefusedJob> {
        self.entries.get(job.index())?.as_ref().filter(|entry| !entry.is_stale)
    }

    fn set(&mut self, job: JobId, entry: Option<RefusedJob>) {
        if self.entries.len() <= job.index() {
            self.entries.resize_with(job.index() + 1, || None);
        }
        self.entries[job.index()] = entry;
    }

    /// Forgets the refusal of a group.
    pub(crate) fn forget(&mut self, job: JobId) {
        if let Some(entry) = self.entries.get_mut(job.index()) {
            *entry = None;
        }
    }

    /// Returns the message of a group whose refusal holds in this session.
    pub(crate) fn text(&self, job: JobId) -> Option<&Arc<str>> {
        let entry = self.entries.get(job.index())?.as_ref()?;
        (entry.held == self.session).then(|| &self.texts[entry.words])
    }

    /// Returns the plugin that refuses the group.
    fn by(&self, job: JobId) -> Option<&'static str> {
        let entry = self.entries.get(job.index())?.as_ref()?;
        Some(self.by[entry.words])
    }

    /// Returns the number of the group's last turn. Returns `None` if it was not refused.
    pub(crate) fn turn(&self, job: JobId) -> Option<u64> {
        self.live(job).map(|entry| entry.turn)
    }

    /// True if this session found the same refusal as before, with all reports written and none
    /// due.
    pub(crate) fn is_repeated(&self, job: JobId, now_micros: i64) -> bool {
        let held = self.live(job).filter(|entry| entry.held == self.session);
        held.is_some_and(|entry| entry.is_reported_at(now_micros))
    }

    /// Notes that all reports about the group are written, until a time in microseconds since 1970.
    pub(crate) fn note_reported(
        &mut self,
        cluster: &Cluster,
        job: JobId,
        until_micros: Option<i64>,
    ) {
        self.follow(cluster);
        if let Some(entry) = self.entries.get_mut(job.index()).and_then(Option::as_mut) {
            entry.reported_until_micros = until_micros;
        }
    }

    /// Removes the groups whose refusal still holds from `waiting` and returns them.
    fn take_repeated(
        &mut self,
        session: &SessionState<'_>,
        waiting: &mut Vec<JobId>,
    ) -> Vec<JobId> {
        self.follow(session);
        waiting.extract_if(.., |job| self.is_repeated_now(session, *job)).collect()
    }

    fn is_repeated_now(&mut self, session: &SessionState<'_>, job: JobId) -> bool {
        let now_micros = session.info.now_micros;
        let Some(entry) = self.live(job) else { return false };
        let is_due = !entry.is_reported_at(now_micros) || entry.until_micros <= now_micros;
        let Some(place) = entry.kind.filter(|_| !is_due && !session.has_eviction_hold(job)) else {
            return false;
        };
        let words = entry.words;
        if self.kinds[place].asked != self.session {
            self.query(session, place, job);
        }
        let stands = self.kinds[place].words == Some(words);
        if let Some(entry) = self.entries[job.index()].as_mut().filter(|_| stands) {
            entry.held = self.session;
        }
        stands
    }

    /// Votes on one group for its whole kind.
    fn query(&mut self, session: &SessionState<'_>, place: usize, job: JobId) {
        let kind = &mut self.kinds[place];
        kind.asked = self.session;
        let mark = session.plugins.admission_mark(session.view(), job);
        let is_of_kind = mark.is_some_and(|(marks, _)| marks == kind.marks);
        let refused =
            is_of_kind.then(|| session.plugins.job_enqueueable(session.view(), job).err());
        kind.words = refused.flatten().and_then(|refusal| self.numbers.get(&refusal).copied());
    }

    /// Records the refusal of a vote on this group alone. Returns true if the refusal has to be
    /// reported.
    fn note(&mut self, session: &SessionState<'_>, job: JobId, refusal: &EnqueueRefusal) -> bool {
        self.n_turns += 1;
        let now_micros = session.info.now_micros;
        let words = self.number(refusal);
        let (number, turn) = (self.session, self.n_turns);
        let live = self.live(job).filter(|entry| now_micros < entry.until_micros).cloned();
        if let Some(entry) =
            live.clone().filter(|entry| entry.words == words && entry.is_reported_at(now_micros))
        {
            self.set(job, Some(RefusedJob { held: number, turn, ..entry }));
            return false;
        }
        let (kind, until_micros) = match live {
            Some(entry) => (entry.kind, entry.until_micros),
            None => self.kind_of(session, job),
        };
        let reported_until_micros = None;
        let (held, is_stale) = (0, false);
        let entry =
            RefusedJob { kind, words, turn, held, until_micros, reported_until_micros, is_stale };
        self.set(job, Some(entry));
        true
    }

    fn number(&mut self, refusal: &EnqueueRefusal) -> usize {
        if let Some(&number) = self.numbers.get(refusal) {
            return number;
        }
        let number = self.texts.len();
        self.numbers.insert(refusal.clone(), number);
        self.by.push(refusal.by);
        self.texts.push(refusal.text());
        number
    }

    /// Returns the kind of a group, and the time until which it belongs to it.
    fn kind_of(&mut self, session: &SessionState<'_>, job: JobId) -> (Option<usize>, i64) {
        let Some((want, until_micros)) = session.refusal_key(job) else {
            return (None, i64::MAX);
        };
        let next = self.kinds.len();
        let marks = want.marks.clone();
        let place = *self.places.entry(want).or_insert(next);
        if place == next {
            self.kinds.push(AdmissionClass { marks, asked: 0, words: None });
        }
        (Some(place), until_micros)
    }

    /// Ends the session. Drops everything if most kinds or messages are unused.
    pub(crate) fn end(&mut self) {
        let n_known = self.kinds.len().max(self.texts.len());
        let n_entries = || self.entries.iter().flatten().count();
        if MOST_UNUSED < n_known && 2 * n_entries() + MOST_UNUSED < n_known {
            let Self { session, n_turns, stamp, .. } = *self;
            *self = Self { session, n_turns, stamp, ..Self::default() };
        }
    }
}

impl SessionState<'_> {
    /// Returns what the votes of enqueue read of a job, and the time until which that holds, in
    /// microseconds since 1970. Returns `None` if a plugin reads more.
    pub fn refusal_key(&self, job: JobId) -> Option<(RefusalKey, i64)> {
        let row = &self.jobs[job];
        let (marks, until_micros) = self.plugins.admission_mark(self.view(), job)?;
        let key = RefusalKey {
            queue: row.queue,
            namespace: row.key.namespace.clone(),
            min_resources: row.pod_group.as_ref()?.min_resources.clone(),
            marks,
        };
        Some((key, until_micros))
    }
}

impl RefusedJob {
    /// True if all reports are written and none is due at this time.
    fn is_reported_at(&self, now_micros: i64) -> bool {
        self.reported_until_micros.is_some_and(|until_micros| now_micros < until_micros)
    }
}

impl Session<'_> {
    /// Removes from `waiting` the groups whose refusal holds as long as no group is admitted before
    /// them. Returns those groups. Their messages are recorded, and nothing more.
    pub fn take_refused_again(&mut self, waiting: &mut Vec<JobId>) -> Vec<JobId> {
        let Self { state, caches, outcome } = self;
        let records = &state.records;
        let is_first = records.job_fit.is_empty()
            && records.fit_errors.is_empty()
            && records.last_transaction.is_empty();
        let is_open = std::mem::take(&mut caches.refusals.is_open);
        outcome.causes.mix_outside();
        if !state.may_cache_failures || !is_first || !is_open {
            return Vec::new();
        }
        let repeated = caches.refusals.take_repeated(state, waiting);
        state.records.job_fit.reserve(repeated.len());
        for &job in &repeated {
            if let Some(text) = caches.refusals.text(job) {
                state.note_job_fit(job, WaitCause::NotAdmitted, text.clone());
            }
        }
        caches.stats.n_revalidated += repeated.len() as u64;
        repeated
    }

    /// Gives these groups their turns after all, because another group was admitted.
    pub fn restore_refused(&mut self, groups: &[JobId]) {
        self.caches.stats.n_revalidated -= groups.len() as u64;
        for job in groups {
            self.state.records.job_fit.remove(job);
            if let Some(entry) = &mut self.caches.refusals.entries[job.index()] {
                entry.held = 0;
            }
        }
    }

    /// Notes the causes of groups that were refused as before.
    pub fn note_refused_again(&mut self, groups: &[JobId]) {
        for &job in groups {
            if let Some(plugin) = self.caches.refusals.by(job) {
                self.outcome.causes.note_outside(job, plugin);
            }
        }
    }

    /// True if all reports about the group were written in earlier sessions and none is due.
    pub fn is_refused_again(&self, job: JobId) -> bool {
        self.caches.refusals.is_repeated(job, self.info.now_micros)
    }

    /// Records the refusal of a job before it is reported. Returns true if it has to be reported.
    /// Returns false if the same plugin refuses with the same message as in the last session, and
    /// no report is due.
    pub fn note_refusal(&mut self, job: JobId, refusal: &EnqueueRefusal) -> bool {
        let Self { state, caches, .. } = self;
        let is_clean = state.may_fail_for_long(job);
        caches.refusals.follow(state);
        let record_if_new = match is_clean {
            true => caches.refusals.note(state, job, refusal),
            false => {
                caches.refusals.set(job, None);
                true
            }
        };
        state.note_job_fit(job, WaitCause::NotAdmitted, refusal.text());
        caches.stats.n_revalidated += u64::from(!record_if_new);
        record_if_new
    }
}
