//! Refusals of enqueue that stand from cycle to cycle: a group of which the same would be said is
//! neither asked for nor told again. Specification: actions.md 12.2 S7, 12.3.
//!
//! Exact:
//! * until a group is admitted enqueue changes nothing: queues are served one after the other, and all
//!   groups are asked for in one and the same state. So one of each kind is asked: groups of a queue
//!   and a namespace that ask for the same, where every plugin that votes says that it reads no more
//!   ([`crate::Plugin::admits_alike`]). What the votes read of the cluster needs not be known.
//! * whoever is refused by the same plugin with the same words as in the last session, has not changed
//!   since (the log of changed jobs) and has been told all of it, which is not due again, needs no turn.
//! * once a group is admitted, those behind it have their turns and are asked for by themselves.
//!
//! The plain evaluator asks for every group in every cycle; the engine's `standing.rs` compares.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vc_model::{ChangeReader, Cluster, Id, JobId, MinResources, QueueId};

use crate::dispatch::Refusal;
use crate::session::Session;

/// So many kinds or words may be known that no group is of any more.
const MOST_UNUSED: usize = 1024;

/// The groups that are not admitted, and why.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals {
    /// Counts sessions.
    session: u64,
    /// In this session it may be asked who stands.
    is_open: bool,
    n_turns: u64,
    /// By the number of the job.
    entries: Vec<Option<Entry>>,
    places: FxHashMap<Want, usize>,
    kinds: Vec<Kind>,
    numbers: FxHashMap<Refusal, usize>,
    /// Of the words by number: the message, and the plugin.
    texts: Vec<Arc<str>>,
    by: Vec<&'static str>,
    changed_jobs: ChangeReader<JobId>,
    queue_version: u64,
}

/// A group that was refused in the last session, or in this one.
#[derive(Clone, Debug)]
struct Entry {
    /// `None`: plugins may read more of it than of others.
    kind: Option<usize>,
    words: usize,
    /// A later turn has a greater number.
    turn: u64,
    /// The session in which it was the same as before.
    held: u64,
    /// It is of its kind until then, in microseconds since 1970.
    until_micros: i64,
    /// All that is told of it was told, until this time. `None`: not yet.
    told_until_micros: Option<i64>,
    /// The group has changed since.
    is_stale: bool,
}

/// What is read of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Want {
    queue: QueueId,
    namespace: Arc<str>,
    min_resources: Option<Arc<MinResources>>,
    marks: Vec<bool>,
}

#[derive(Clone, Debug)]
struct Kind {
    marks: Vec<bool>,
    /// The session in which one of them was asked for.
    asked: u64,
    /// What was said; `None`: something new, or it has to be asked for each.
    words: Option<usize>,
}

impl Refusals {
    /// A session begins.
    pub(crate) fn begin(&mut self, cluster: &Cluster) {
        self.session += 1;
        self.is_open = true;
        // What is told of a queue that is not open (C-33) reads its row.
        if self.queue_version != cluster.queue_version() {
            self.queue_version = cluster.queue_version();
            self.entries.clear();
        }
        self.follow(cluster);
    }

    /// Groups that changed do not stand; what was said of them in this session was said.
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

    fn live(&self, job: JobId) -> Option<&Entry> {
        self.entries.get(job.index())?.as_ref().filter(|entry| !entry.is_stale)
    }

    fn set(&mut self, job: JobId, entry: Option<Entry>) {
        if self.entries.len() <= job.index() {
            self.entries.resize_with(job.index() + 1, || None);
        }
        self.entries[job.index()] = entry;
    }

    /// Forgets that the group was refused.
    pub(crate) fn forget(&mut self, job: JobId) {
        if let Some(entry) = self.entries.get_mut(job.index()) {
            *entry = None;
        }
    }

    /// What is said of a group that stands in this session.
    pub(crate) fn text(&self, job: JobId) -> Option<&Arc<str>> {
        let entry = self.entries.get(job.index())?.as_ref()?;
        (entry.held == self.session).then(|| &self.texts[entry.words])
    }

    /// The plugin that refuses it.
    fn by(&self, job: JobId) -> Option<&'static str> {
        let entry = self.entries.get(job.index())?.as_ref()?;
        Some(self.by[entry.words])
    }

    /// When it had its last turn; `None`: it was not refused.
    pub(crate) fn turn(&self, job: JobId) -> Option<u64> {
        self.live(job).map(|entry| entry.turn)
    }

    /// Whether this session has found what was told before.
    pub(crate) fn is_repeated(&self, job: JobId, now_micros: i64) -> bool {
        let held = self.live(job).filter(|entry| entry.held == self.session);
        held.is_some_and(|entry| entry.is_told_at(now_micros))
    }

    /// All that is to be told of the group was told.
    pub(crate) fn note_told(&mut self, cluster: &Cluster, job: JobId, until_micros: Option<i64>) {
        self.follow(cluster);
        if let Some(entry) = self.entries.get_mut(job.index()).and_then(Option::as_mut) {
            entry.told_until_micros = until_micros;
        }
    }

    /// Those that stand are taken out of the groups that wait.
    fn take_standing(&mut self, session: &Session<'_>, waiting: &mut Vec<JobId>) -> Vec<JobId> {
        self.follow(session);
        waiting.extract_if(.., |job| self.stands(session, *job)).collect()
    }

    fn stands(&mut self, session: &Session<'_>, job: JobId) -> bool {
        let now_micros = session.facts.now_micros;
        let Some(entry) = self.live(job) else { return false };
        let is_due = !entry.is_told_at(now_micros) || entry.until_micros <= now_micros;
        let Some(place) = entry.kind.filter(|_| !is_due && !session.has_claim(job)) else {
            return false;
        };
        let words = entry.words;
        if self.kinds[place].asked != self.session {
            self.ask(session, place, job);
        }
        let stands = self.kinds[place].words == Some(words);
        if let Some(entry) = self.entries[job.index()].as_mut().filter(|_| stands) {
            entry.held = self.session;
        }
        stands
    }

    /// Asks for a group for all of its kind.
    fn ask(&mut self, session: &Session<'_>, place: usize, job: JobId) {
        let kind = &mut self.kinds[place];
        kind.asked = self.session;
        let alike = session.hooks.admits_alike(session.ask(), job);
        let is_of_kind = alike.is_some_and(|(marks, _)| marks == kind.marks);
        let refused = is_of_kind.then(|| session.hooks.job_enqueueable(session.ask(), job).err());
        kind.words = refused.flatten().and_then(|refusal| self.numbers.get(&refusal).copied());
    }

    /// The group was asked for by itself. Whether this is news.
    fn note(&mut self, session: &Session<'_>, job: JobId, refusal: &Refusal) -> bool {
        self.n_turns += 1;
        let now_micros = session.facts.now_micros;
        let words = self.number(refusal);
        let (number, turn) = (self.session, self.n_turns);
        let live = self.live(job).filter(|entry| now_micros < entry.until_micros).cloned();
        if let Some(entry) =
            live.clone().filter(|entry| entry.words == words && entry.is_told_at(now_micros))
        {
            self.set(job, Some(Entry { held: number, turn, ..entry }));
            return false;
        }
        let (kind, until_micros) = match live {
            Some(entry) => (entry.kind, entry.until_micros),
            None => self.kind_of(session, job),
        };
        let told_until_micros = None;
        let (held, is_stale) = (0, false);
        let entry = Entry { kind, words, turn, held, until_micros, told_until_micros, is_stale };
        self.set(job, Some(entry));
        true
    }

    fn number(&mut self, refusal: &Refusal) -> usize {
        if let Some(&number) = self.numbers.get(refusal) {
            return number;
        }
        let number = self.texts.len();
        self.numbers.insert(refusal.clone(), number);
        self.by.push(refusal.by);
        self.texts.push(refusal.text());
        number
    }

    /// The kind of a group, and until when it is of it.
    fn kind_of(&mut self, session: &Session<'_>, job: JobId) -> (Option<usize>, i64) {
        let row = &session.jobs[job];
        let alike = session.hooks.admits_alike(session.ask(), job);
        let Some(((marks, until_micros), group)) = alike.zip(row.pod_group.as_ref()) else {
            return (None, i64::MAX);
        };
        let want = Want {
            queue: row.queue,
            namespace: row.key.namespace.clone(),
            min_resources: group.min_resources.clone(),
            marks,
        };
        let next = self.kinds.len();
        let marks = want.marks.clone();
        let place = *self.places.entry(want).or_insert(next);
        if place == next {
            self.kinds.push(Kind { marks, asked: 0, words: None });
        }
        (Some(place), until_micros)
    }

    /// The session ends.
    pub(crate) fn end(&mut self) {
        let n_known = self.kinds.len().max(self.texts.len());
        let n_entries = || self.entries.iter().flatten().count();
        if MOST_UNUSED < n_known && 2 * n_entries() + MOST_UNUSED < n_known {
            let Self { session, n_turns, queue_version, .. } = *self;
            *self = Self { session, n_turns, queue_version, ..Self::default() };
        }
    }
}

impl Entry {
    /// Whether all that is told of it was told, and is not due at this time.
    fn is_told_at(&self, now_micros: i64) -> bool {
        self.told_until_micros.is_some_and(|until_micros| now_micros < until_micros)
    }
}

impl Session<'_> {
    /// Takes the groups out of those that wait that would be refused as they were, if nobody is
    /// admitted before. Of them nothing more is to be recorded.
    pub fn take_refused_again(&mut self, waiting: &mut Vec<JobId>) -> Vec<JobId> {
        let records = &self.records;
        let is_first = records.job_fit.is_empty()
            && records.fit_errors.is_empty()
            && records.last_transaction.is_empty();
        let is_open = std::mem::take(&mut self.records.refusals.is_open);
        self.causes.mix_outside();
        if self.standings.is_none() || !is_first || !is_open {
            return Vec::new();
        }
        let mut refusals = std::mem::take(&mut self.records.refusals);
        let standing = refusals.take_standing(self, waiting);
        self.records.refusals = refusals;
        self.hits.n_stood += standing.len() as u64;
        standing
    }

    /// Groups that were to stand have their turns all the same.
    pub fn ask_again(&mut self, groups: &[JobId]) {
        self.hits.n_stood -= groups.len() as u64;
        for job in groups {
            if let Some(entry) = &mut self.records.refusals.entries[job.index()] {
                entry.held = 0;
            }
        }
    }

    /// These groups were refused as before.
    pub fn note_refused_again(&mut self, groups: &[JobId]) {
        for &job in groups {
            if let Some(plugin) = self.records.refusals.by(job) {
                self.causes.note_outside(job, plugin);
            }
        }
    }

    /// Whether all that is told of the group was told in earlier sessions, and is not due.
    pub fn is_refused_again(&self, job: JobId) -> bool {
        self.records.refusals.is_repeated(job, self.facts.now_micros)
    }

    /// The job is not admitted; that is not recorded yet. Whether it has to be told: not if the same
    /// plugin refuses it with the same words as in the last session, and they are not due.
    pub fn note_refusal(&mut self, job: JobId, refusal: &Refusal) -> bool {
        let is_clean = self.may_fail_for_long(job);
        let mut refusals = std::mem::take(&mut self.records.refusals);
        refusals.follow(self.cluster);
        let is_news = match is_clean {
            true => refusals.note(self, job, refusal),
            false => {
                refusals.set(job, None);
                true
            }
        };
        self.records.refusals = refusals;
        self.hits.n_stood += u64::from(!is_news);
        is_news
    }
}
