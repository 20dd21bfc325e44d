//! The usage of accounts and queues. An account is a namespace in a queue. Usage changes only when
//! a task begins or ends to be charged; in between it is a function of the time.
//! Specification: fair-share.md 2, FS-10 to FS-17.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use vc_framework::SessionView;
use vc_model::{Job, JobId, QueueId, TaskId, TaskStatus};

use super::arguments::FairshareArguments;
use super::decay::{Decay, REBASED};
use super::saves::SaveLog;
use super::shares::{ShareRule, ShareUsages};
use crate::rules::is_in_session;

/// Usage that grows with time: closed + rate · weight of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Usage {
    /// A: usage of ended tasks, less what running tasks did not use before they began.
    pub(super) closed: i128,
    /// R: the charge of all tasks that are charged now.
    pub(super) rate: i128,
}

impl Usage {
    /// Changes the rate from the time with this weight on.
    pub(super) fn change(&mut self, by: i128, weight: i128) {
        self.rate += by;
        self.closed = self.closed.saturating_sub(by.saturating_mul(weight));
    }

    /// Charges a task for the time before now, in which the weight has grown by `growth`.
    fn backdate(&mut self, charge: i128, growth: i128) {
        self.closed = self.closed.saturating_add(charge.saturating_mul(growth));
    }

    /// Returns the usage at the time with this weight, at least 0.
    pub(super) fn at(&self, weight: i128) -> i128 {
        self.closed.saturating_add(self.rate.saturating_mul(weight)).max(0)
    }

    pub(super) fn add(&mut self, other: Usage) {
        self.closed = self.closed.saturating_add(other.closed);
        self.rate += other.rate;
    }
}

/// How the operations of a session have changed the rate of an account. Those of trials are undone
/// later.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct RateRange {
    /// Usage before the first of them.
    pub(super) opened: Usage,
    /// The lowest rate less that of `opened`, at most 0.
    pub(super) least: i128,
    /// The highest rate less that of `opened`, at least 0.
    pub(super) most: i128,
}

/// A namespace in a queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Account {
    pub(super) queue: Arc<str>,
    pub(super) name: Arc<str>,
    /// In thousandths.
    pub(super) weight: i64,
    pub(super) usage: Usage,
    /// `None` if no operation of this session has changed its rate.
    pub(super) in_session: Option<RateRange>,
    /// Usage at the last step of votes ([`super::preempt::STEP_MICROS`]).
    pub(super) step_usage: i128,
    /// The charge of pods that wait for room in this session, which votes count as held.
    pub(super) pipelined: i128,
    /// The usage that was last reported. It is 0 if none was.
    reported: Usage,
    /// The usage that was last saved. It is 0 if none was.
    saved: Usage,
    /// Number of jobs of the account.
    n_jobs: u32,
    is_dirty: bool,
}

impl Account {
    pub(super) fn has_jobs(&self) -> bool {
        0 < self.n_jobs
    }
}

/// The charged tasks of a job.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct JobCharge {
    /// Place of the account.
    account: usize,
    charge: i128,
    n_charged: u32,
    n_pipelined: u32,
}

/// Usage of all accounts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Ledger {
    pub(super) decay: Decay,
    /// A place is `None` if its account was forgotten.
    accounts: Vec<Option<Account>>,
    /// Places without an account.
    free: Vec<usize>,
    /// Places by queue and account. The map is only looked up, never iterated.
    places: FxHashMap<(Arc<str>, Arc<str>), usize>,
    /// The map is only looked up, never iterated.
    jobs: FxHashMap<JobId, JobCharge>,
    /// Places of accounts whose usage may have changed since [`Ledger::take_dirty`].
    dirty: Vec<usize>,
    /// Weight of the session time.
    now_weight: i128,
    /// Number of the half-life since 1970 in which accounts were last forgotten.
    swept: i64,
    /// Time of the last step of votes. `None`: the usage of that time is not known.
    step_micros: Option<i64>,
    /// Jobs with pods that wait for room in this session.
    pipelined: Vec<JobId>,
    /// Places of accounts whose rate operations of this session have changed.
    operated: Vec<usize>,
    /// What was saved for a restart.
    pub(super) saves: SaveLog,
    /// True if it has begun without the usage that was saved, which could not be read yet.
    #[serde(default)]
    pub(super) is_unread: bool,
    /// Usage for deserved shares. It is empty if they do not follow usage.
    pub(super) shares: ShareUsages,
    /// Number of changes of ResourceQuotas that the weights account for.
    n_quota_changes: Option<u64>,
}

impl Ledger {
    pub(super) fn new(half_life: i64, now: i64) -> Self {
        Self {
            decay: Decay { half_life, origin: now },
            accounts: Vec::new(),
            free: Vec::new(),
            places: FxHashMap::default(),
            jobs: FxHashMap::default(),
            dirty: Vec::new(),
            now_weight: 1 << 32,
            swept: now.div_euclid(half_life),
            step_micros: None,
            pipelined: Vec::new(),
            operated: Vec::new(),
            saves: SaveLog::default(),
            is_unread: false,
            shares: ShareUsages::default(),
            n_quota_changes: None,
        }
    }

    /// Takes in the usage of an account of an earlier process.
    pub(super) fn remember(&mut self, queue: &Arc<str>, name: &Arc<str>, usage: i128) {
        let place = self.place(queue, name);
        self.account_mut(place).usage.closed = usage;
        self.mark(place);
    }

    /// Time has gone back by so many microseconds. Weights go on from where they are.
    pub(super) fn set_back(&mut self, by_micros: i64, now: i64) {
        self.decay.origin = self.decay.origin.saturating_sub(by_micros);
        self.swept = now.div_euclid(self.decay.half_life);
        self.saves.set_back(now);
    }

    /// Moves on to the time of a session. Costs a pass over the accounts once per half-life.
    pub(super) fn advance(&mut self, now: i64) {
        let period = now.div_euclid(self.decay.half_life);
        if self.swept < period {
            self.swept = period;
            self.sweep(period * self.decay.half_life);
        }
        let n_rebases = self.decay.n_rebases(now);
        if 0 < n_rebases {
            self.decay.rebase(n_rebases);
            let shift = (REBASED.saturating_mul(n_rebases)).min(127);
            for account in self.accounts.iter_mut().flatten() {
                account.usage.closed >>= shift;
                account.step_usage >>= shift;
                account.reported.closed >>= shift;
                account.saved.closed >>= shift;
            }
            self.shares.usages_mut().for_each(|usage| usage.closed >>= shift);
        }
        self.now_weight = self.decay.weight(now);
    }

    /// FS-16: forgets accounts without jobs that have used less than 0.01 charge·seconds at `time`.
    fn sweep(&mut self, time: i64) {
        let weight = self.decay.weight(time).max(1);
        let half_life = i128::from(self.decay.half_life);
        // u = U / G · h / ln 2, in microseconds.
        let has_faded =
            |usage: &Usage| usage.rate == 0 && usage.at(weight) / weight * half_life < 6_931;
        self.shares.sweep(has_faded);
        for place in 0..self.accounts.len() {
            let account = self.accounts[place].as_ref();
            let is_gone =
                account.is_some_and(|account| account.n_jobs == 0 && has_faded(&account.usage));
            if is_gone && let Some(gone) = &mut self.accounts[place] {
                gone.usage = Usage::default();
                self.mark(place);
            }
        }
    }

    /// Keeps usage as it is now, and fades it with another half-life from now on.
    pub(super) fn change_half_life(&mut self, half_life: i64, now: i64) {
        let before = self.decay.weight(now).max(1);
        let after = Decay { half_life, origin: now };
        let weight = after.weight(now);
        let (old, new) = (i128::from(self.decay.half_life), i128::from(half_life));
        let rescale = |usage: &mut Usage| {
            let used = usage.at(before);
            let rescaled = used / before * weight + used % before * weight / before;
            let rescaled = (rescaled / new).saturating_mul(old) + rescaled % new * old / new;
            usage.closed = rescaled - usage.rate.saturating_mul(weight);
        };
        self.accounts.iter_mut().flatten().for_each(|account| rescale(&mut account.usage));
        self.shares.usages_mut().for_each(rescale);
        self.shares.forget_step();
        (0..self.accounts.len()).for_each(|place| self.mark(place));
        self.step_micros = None;
        self.decay = after;
        self.swept = now.div_euclid(half_life);
        self.now_weight = weight;
    }

    /// Notes the usage of all accounts at a step of votes, once. Called before the changes of a session
    /// are entered: none of them was before the step.
    pub(super) fn note_step(&mut self, step_micros: i64) {
        if self.step_micros.replace(step_micros) != Some(step_micros) {
            let weight = self.decay.weight(step_micros);
            for account in self.accounts.iter_mut().flatten() {
                account.step_usage = account.usage.at(weight);
            }
        }
    }

    /// Forgets the operations of the session before.
    pub(super) fn forget_session(&mut self) {
        for place in std::mem::take(&mut self.operated) {
            if let Some(account) = &mut self.accounts[place] {
                account.in_session = None;
            }
        }
        for job in std::mem::take(&mut self.pipelined) {
            let Some(known) = self.jobs.get_mut(&job) else { continue };
            known.n_pipelined = 0;
            let account = known.account;
            self.account_mut(account).pipelined = 0;
        }
    }

    /// Charges the tasks of a job that no session has seen before: from their start, or from `since`
    /// if they started before it.
    pub(super) fn begin_job(
        &mut self,
        view: SessionView<'_>,
        arguments: &FairshareArguments,
        id: JobId,
        since: i64,
    ) {
        let now = view.now_micros();
        self.enter(view, arguments, id);
        let Some(&JobCharge { account, .. }) = self.jobs.get(&id) else { return };
        let job = &view.cluster.jobs[id];
        let rule = arguments.charge(&view.cluster.queues[job.queue].name);
        for &task in &job.tasks {
            let row = &view.cluster.tasks[task];
            if row.status.is_allocated() {
                let started = row.started_micros.or(row.scheduled_micros).unwrap_or(now);
                let charge = rule.of(view.cluster, view.cluster.request(task));
                let growth = self.now_weight - self.decay.weight(started.max(since).min(now));
                self.account_mut(account).usage.backdate(charge, growth);
            }
        }
    }

    /// Brings the charge of a job up to date with its row.
    pub(super) fn enter(
        &mut self,
        view: SessionView<'_>,
        arguments: &FairshareArguments,
        id: JobId,
    ) {
        let job = view.cluster.jobs.get(id).filter(|job| is_in_session(view.cluster, job));
        let Some(job) = job else {
            return self.leave(id);
        };
        let queue = &view.cluster.queues[job.queue].name;
        if self
            .jobs
            .get(&id)
            .is_some_and(|known| !self.is_of(*known, queue, arguments.account.of(job)))
        {
            self.leave(id);
        }
        let (charge, n_charged) = (charge(view, arguments, job, queue), job.counts.allocated());
        let (account, before) = match self.jobs.get(&id) {
            Some(known) => (known.account, known.charge),
            None => {
                let account = self.place(queue, arguments.account.of(job));
                self.account_mut(account).n_jobs += 1;
                (account, 0)
            }
        };
        self.jobs.insert(id, JobCharge { account, charge, n_charged, n_pipelined: 0 });
        self.change(account, charge - before);
    }

    /// Ends the charge of jobs that are in no session any more. Costs a pass over all jobs.
    pub(super) fn leave_missing(&mut self, view: SessionView<'_>) {
        let is_in = |id: JobId| {
            let job = view.cluster.jobs.get(id);
            job.is_some_and(|job| is_in_session(view.cluster, job))
        };
        let missing: Vec<JobId> = self.jobs.keys().copied().filter(|&id| !is_in(id)).collect();
        missing.into_iter().for_each(|id| self.leave(id));
    }

    /// Follows an operation of the session on a task. Returns the queue and the change of its
    /// usage, or `None` if the charge is the same.
    pub(super) fn follow(
        &mut self,
        view: SessionView<'_>,
        arguments: &FairshareArguments,
        task: TaskId,
    ) -> Option<(QueueId, Usage)> {
        let id = view.cluster.tasks[task].job?;
        let known = self.jobs.get_mut(&id)?;
        let job = &view.cluster.jobs[id];
        let n_charged = job.counts.allocated();
        let n_pipelined = job.counts.of(TaskStatus::Pipelined);
        let n_added = i128::from(n_charged) - i128::from(known.n_charged);
        let n_waiting = i128::from(n_pipelined) - i128::from(known.n_pipelined);
        if n_added == 0 && n_waiting == 0 {
            return None;
        }
        let rule = arguments.charge(&view.cluster.queues[job.queue].name);
        let charge = rule.of(view.cluster, view.cluster.request(task));
        if n_waiting != 0 {
            known.n_pipelined = n_pipelined;
            let account = known.account;
            self.account_mut(account).pipelined += n_waiting * charge;
            self.pipelined.push(id);
        }
        let known = self.jobs.get_mut(&id).filter(|_| n_added != 0)?;
        let by = n_added * charge;
        known.n_charged = n_charged;
        known.charge += by;
        let account = known.account;
        self.note_operation(account, by);
        self.change(account, by);
        let (queue, request) = (&view.cluster.queues[job.queue].name, view.cluster.request(task));
        self.shares.follow(queue, request, n_added, self.now_weight);
        let mut usage = Usage::default();
        usage.change(by, self.now_weight);
        Some((job.queue, usage))
    }

    fn note_operation(&mut self, place: usize, by: i128) {
        let account = self.account_mut(place);
        let is_first = account.in_session.is_none();
        let unchanged = RateRange { opened: account.usage, least: 0, most: 0 };
        let range = account.in_session.get_or_insert(unchanged);
        let changed = account.usage.rate + by - range.opened.rate;
        range.least = range.least.min(changed);
        range.most = range.most.max(changed);
        if is_first {
            self.operated.push(place);
        }
    }

    /// Brings the usage of queues up to date with the begin of a session, if deserved shares follow it.
    pub(super) fn follow_shares(&mut self, view: SessionView<'_>, rule: Option<ShareRule>) {
        match rule {
            Some(rule) => self.shares.follow_session(view, self.decay, rule),
            None => self.shares = ShareUsages::default(),
        }
    }

    /// Notes that usage has to be saved, if it is another than was saved last. A trial of the session
    /// that was undone leaves it as it was.
    pub(super) fn note_unsaved(&mut self) {
        let is_other = |&place: &usize| {
            let account = self.accounts[place].as_ref();
            account.is_some_and(|account| account.usage != account.saved)
        };
        if self.dirty.iter().any(is_other) || self.shares.is_unsaved() {
            self.saves.is_saved = false;
        }
    }

    /// Notes that the usage is saved as it is.
    pub(super) fn note_saved(&mut self) {
        self.accounts.iter_mut().flatten().for_each(|account| account.saved = account.usage);
        self.shares.note_saved();
    }

    /// Returns the weight of the session time.
    pub(super) fn now_weight(&self) -> i128 {
        self.now_weight
    }

    /// Calls `tell` for each account, which all end.
    pub(super) fn end(self, tell: impl FnMut(&Account)) {
        // Places depend on the evaluator.
        let mut accounts: Vec<&Account> = self.accounts.iter().flatten().collect();
        accounts.sort_by(|l, r| (&l.queue, &l.name).cmp(&(&r.queue, &r.name)));
        accounts.into_iter().for_each(tell);
    }

    /// True if an account without jobs may be forgotten later.
    pub(super) fn has_leavers(&self) -> bool {
        self.accounts().any(|account| account.n_jobs == 0)
    }

    /// Returns the place and the account of a job of a session.
    pub(super) fn of_job(&self, job: JobId) -> Option<(usize, &Account)> {
        let place = self.jobs.get(&job)?.account;
        Some((place, self.accounts.get(place)?.as_ref()?))
    }

    /// Returns the accounts in no particular order.
    pub(super) fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.accounts.iter().flatten()
    }

    /// FS-21: sets the weights of all accounts, if a ResourceQuota has changed.
    pub(super) fn weigh(&mut self, view: SessionView<'_>, arguments: &FairshareArguments) {
        let n_changes = Some(view.cluster.quotas.n_changes());
        let is_same = self.n_quota_changes == n_changes;
        self.n_quota_changes = n_changes;
        for account in self.accounts.iter_mut().flatten().filter(|it| !is_same || it.weight == 0) {
            account.weight = weight(view, arguments, &account.name);
        }
    }

    /// Forgets the weights, so that the next session reads them anew.
    pub(super) fn forget_weights(&mut self) {
        self.n_quota_changes = None;
    }

    /// Calls `tell` for each account whose usage has changed since the last call, with `None` if the
    /// account is forgotten.
    pub(super) fn report(&mut self, mut tell: impl FnMut(&Account, Option<Usage>)) {
        let mut dirty = std::mem::take(&mut self.dirty);
        // Places depend on the evaluator.
        let name = |place: usize| {
            let account = self.accounts[place].as_ref()?;
            Some((account.queue.clone(), account.name.clone()))
        };
        dirty.sort_by_cached_key(|&place| name(place));
        for place in dirty {
            let Some(account) = &mut self.accounts[place] else { continue };
            account.is_dirty = false;
            let usage = account.usage;
            if account.n_jobs == 0 && usage == Usage::default() {
                tell(account, None);
                self.places.remove(&(account.queue.clone(), account.name.clone()));
                self.accounts[place] = None;
                self.free.push(place);
            } else if account.reported != usage {
                account.reported = usage;
                tell(account, Some(usage));
            }
        }
    }

    fn leave(&mut self, id: JobId) {
        if let Some(JobCharge { account, charge, .. }) = self.jobs.remove(&id) {
            self.change(account, -charge);
            self.account_mut(account).n_jobs -= 1;
            self.mark(account);
        }
    }

    fn is_of(&self, known: JobCharge, queue: &str, name: &str) -> bool {
        let account = self.accounts.get(known.account).and_then(Option::as_ref);
        account.is_some_and(|it| &*it.queue == queue && &*it.name == name)
    }

    fn change(&mut self, place: usize, by: i128) {
        if by != 0 {
            let weight = self.now_weight;
            self.account_mut(place).usage.change(by, weight);
            self.mark(place);
        }
    }

    fn mark(&mut self, place: usize) {
        if let Some(account) = &mut self.accounts[place]
            && !std::mem::replace(&mut account.is_dirty, true)
        {
            self.dirty.push(place);
        }
    }

    fn account_mut(&mut self, place: usize) -> &mut Account {
        self.accounts[place].as_mut().expect("a job's account is not forgotten")
    }

    fn place(&mut self, queue: &Arc<str>, name: &Arc<str>) -> usize {
        let Self { accounts, free, .. } = self;
        let key = (queue.clone(), name.clone());
        *self.places.entry(key).or_insert_with(|| {
            let (queue, name) = (queue.clone(), name.clone());
            let (usage, reported, saved) = Default::default();
            // Weight 0: not read yet.
            let new = Account {
                queue,
                name,
                weight: 0,
                usage,
                in_session: None,
                step_usage: 0,
                pipelined: 0,
                reported,
                saved,
                n_jobs: 0,
                is_dirty: false,
            };
            match free.pop() {
                Some(place) => {
                    accounts[place] = Some(new);
                    place
                }
                None => {
                    accounts.push(Some(new));
                    accounts.len() - 1
                }
            }
        })
    }
}

fn charge(view: SessionView<'_>, arguments: &FairshareArguments, job: &Job, queue: &str) -> i128 {
    let rule = arguments.charge(queue);
    if rule.is_additive() {
        return rule.of(view.cluster, &job.allocated);
    }
    let charged = job.tasks.iter().filter(|&&task| view.cluster.tasks[task].status.is_allocated());
    charged.map(|&task| rule.of(view.cluster, view.cluster.request(task))).sum()
}

/// The entry of a ResourceQuota with the weight of its namespace.
const NAMESPACE_WEIGHT: &str = "volcano.sh/namespace.weight";

/// Returns the weight of an account in thousandths: the argument, else the largest weight of the
/// namespace's ResourceQuotas, else 1.
pub(super) fn weight(view: SessionView<'_>, arguments: &FairshareArguments, account: &str) -> i64 {
    let of_quotas = || {
        if arguments.account.is_text() {
            return None;
        }
        let quotas = view.cluster.quotas.of(account);
        let weights = quotas.filter_map(|(_, quota)| quota.hard.get(NAMESPACE_WEIGHT));
        weights.map(|weight| weight.milli()).max().filter(|weight| 0 < *weight)
    };
    arguments.weight(account).or_else(of_quotas).unwrap_or(1_000)
}

#[cfg(test)]
mod tests;
