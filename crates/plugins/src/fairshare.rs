//! Plugin `fairshare`: remembers what each namespace of a queue has used, lets it fade with a
//! half-life, and serves first the namespace that had least.
//! Specification: fair-share.md.

mod arguments;
mod beside;
mod charge;
mod decay;
mod division;
mod due;
mod gate;
mod ledger;
mod overview;
mod preempt;
mod queues;
mod saves;
mod shares;
mod wide;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_conf::Switch;
use vc_framework::{
    AccountUse, Admission, CacheKeys, Clock, Depends, EarlierMemory, Effect, FairshareUsage,
    GangEviction, Inputs, LimitFact, Outbox, PastUsage, Plugin, PluginEntry, PluginMemory, Points,
    Records, Sample, SessionView, VictimVote,
};
use vc_model::reads::{self, Read};
use vc_model::{JobId, QueueId, SavedUsage, TaskId};
use vc_resource::Fractional;

use arguments::{DECLARED, FairshareArguments};
use division::AccountParts;
use ledger::{Account, Ledger, Usage};
use preempt::VoteTerms;
use queues::QueueUsages;
use saves::SaveRule;

pub use saves::UsageConfigMap;

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("fairshare", |option, warnings| {
    let arguments = Arc::new(FairshareArguments::read(&option.arguments, warnings));
    Box::new(Fairshare::new(arguments, option.switches.on(Switch::Hierarchy)))
})
.arguments(DECLARED)
.check_entry(beside::check);

/// The line of jobs whose order this plugin leaves to others.
const NO_LINE: u64 = u64::MAX;

struct Fairshare {
    arguments: Arc<FairshareArguments>,
    /// True if queues are compared along their tree (`enableHierarchy`).
    is_tree: bool,
    /// `None` before the first session.
    ledger: Option<Ledger>,
    /// The usage and the arguments of the last configuration, until the first session.
    inherited: Option<Inheritance>,
    /// Weight of the session time and the entry horizon (FS-20).
    ahead_weight: i128,
    queue_usages: QueueUsages,
    votes: VoteTerms,
    /// Parts of accounts. `None` without the enqueue gate, or if no job asks for admission.
    division: Option<AccountParts>,
    /// The parts that were last reported, by queue and account.
    reported_parts: BTreeMap<(Arc<str>, Arc<str>), i128>,
    /// Version of the Queue objects that were last reported.
    reported_queues: Option<u64>,
    /// Samples of this session.
    samples: Vec<Sample>,
    /// Target queues of which a warning says that they do not exist.
    missing: Vec<String>,
    warnings: Vec<String>,
}

/// What a configuration hands over to the next one.
#[derive(Clone, Serialize, Deserialize)]
struct Inheritance {
    /// The arguments under which usage was charged. `None`: those of the plugin that takes over.
    #[serde(skip)]
    arguments: Option<Arc<FairshareArguments>>,
    ledger: Ledger,
    reported_parts: BTreeMap<(Arc<str>, Arc<str>), i128>,
}

/// The state that each extension point reads.
const READS: &[(Points, Inputs)] = &[
    (Points::JOB_ORDER, USAGE),
    (Points::QUEUE_ORDER, USAGE.and(Inputs::QUEUE_OBJECT).and(Inputs::OTHER_QUEUE_USAGE)),
    (Points::JOB_ENQUEUEABLE, ADMISSION),
    (Points::PREEMPTABLE, VOTE.and(Inputs::POD_SIGNATURE)),
    (Points::RECLAIMABLE, Inputs::CANDIDATE_ROW.and(Inputs::CLOCK)),
    (Points::UNIFIED_EVICTABLE, VOTE.and(Inputs::JOB_REQUEST).and(Inputs::JOB_COUNTS)),
    (Points::EVENT_HANDLERS, Inputs::NONE),
    (Points::QUEUE_WEIGHT, Inputs::NONE),
];
/// Usage and age of victims of the same queue, in terms of what the cluster offers.
const VOTE: Inputs = USAGE
    .and(Inputs::CANDIDATE_ROW)
    .and(Inputs::CANDIDATE_QUEUE_USAGE)
    .and(Inputs::QUEUE_OBJECT)
    .and(Inputs::CLUSTER_TOTAL)
    .and(Inputs::OTHER_PODS);
/// The same where the account of a job is a label of its PodGroup.
const LABEL_READS: &[(Points, Inputs)] =
    &[(Points::JOB_ENQUEUEABLE, Inputs::JOB_ROW.and(ADMISSION))];
const ADMISSION: Inputs = Inputs::JOB_REQUEST
    .and(Inputs::OWN_QUEUE_USAGE)
    .and(Inputs::QUEUE_OBJECT)
    .and(Inputs::OTHER_PODS)
    .and(Inputs::OTHER_OBJECTS)
    .and(Inputs::CLUSTER_TOTAL);
/// Usage at the time of the session, by weights that may stand in ResourceQuotas.
const USAGE: Inputs =
    Inputs::JOB_ROW.and(Inputs::OWN_QUEUE_USAGE).and(Inputs::OTHER_OBJECTS).and(Inputs::CLOCK);

impl Plugin for Fairshare {
    fn points(&self) -> Points {
        let mut points = Points::JOB_ORDER.and(Points::EVENT_HANDLERS);
        if self.arguments.has_queue_order {
            points = points.and(Points::QUEUE_ORDER);
        }
        if self.arguments.has_enqueue_gate {
            points = points.and(Points::JOB_ENQUEUEABLE);
        }
        if self.arguments.preempt.is_some() {
            points = points.and(Points::PREEMPTABLE);
        }
        if self.arguments.shares.is_some() {
            points = points.and(Points::QUEUE_WEIGHT);
        }
        if self.arguments.keeps_young_pods() {
            points = points.and(Points::RECLAIMABLE).and(Points::UNIFIED_EVICTABLE);
        }
        points
    }

    fn depends(&self) -> Depends {
        match self.arguments.account.is_text() {
            true => Depends::of(&[READS, LABEL_READS].concat()),
            false => Depends::of(READS),
        }
    }

    fn as_cache_keys(&self) -> Option<&dyn CacheKeys> {
        Some(self)
    }

    fn as_past_usage(&self) -> Option<&dyn PastUsage> {
        Some(self)
    }

    fn memory(&self) -> Option<Box<dyn PluginMemory>> {
        let own = self.ledger.clone().map(|ledger| Inheritance {
            arguments: Some(self.arguments.clone()),
            ledger,
            reported_parts: self.reported_parts.clone(),
        });
        Some(Box::new(own.or_else(|| self.inherited.clone())?))
    }

    fn take_over(&mut self, memory: EarlierMemory) {
        self.inherited = memory.read();
    }

    /// Brings usage up to date. Only jobs that changed are looked at.
    fn open(&mut self, view: SessionView<'_>) {
        let now = view.now_micros();
        self.begin(view, now);
        let Some(ledger) = &mut self.ledger else { return };
        // FS-15: a step back of the clock counts as no time.
        if let Some(previous) = view.info.previous_micros.filter(|&previous| now < previous) {
            ledger.set_back(previous - now, now);
        }
        ledger.advance(now);
        ledger.saves.follow(&view.cluster.saved_usages);
        ledger.is_unread &= view.cluster.saved_usages.is_unread();
        ledger.forget_session();
        if self.arguments.preempt.is_some() {
            ledger.note_step(preempt::step_of(now));
        }
        match view.info.active_jobs.changed() {
            Some(changed) => {
                changed.iter().for_each(|&job| ledger.enter(view, &self.arguments, job));
            }
            None => {
                ledger.leave_missing(view);
                view.all_jobs().for_each(|job| ledger.enter(view, &self.arguments, job));
            }
        }
        ledger.weigh(view, &self.arguments);
        ledger.follow_shares(view, self.arguments.shares);
        self.votes = match self.arguments.preempt {
            Some(rule) => VoteTerms::of_session(view, &self.arguments, ledger, rule),
            None => VoteTerms::at_step(now),
        };
        let horizon = now.saturating_add(self.arguments.entry_horizon_micros);
        self.ahead_weight = ledger.decay.weight(horizon);
        if self.arguments.has_queue_order {
            self.queue_usages = QueueUsages::of_session(view, ledger);
        }
        ledger.note_unsaved();
        self.report_queues(view);
        self.report_usage(now);
        self.divide(view);
        self.warn_of_missing_queues(view);
    }

    fn close(&mut self, view: SessionView<'_>, _records: &Records, out: &mut Outbox) {
        let now = view.now_micros();
        let save = self.ledger.as_mut().and_then(|it| saves::save(it, &self.arguments, now, false));
        self.samples.extend(preempt::counted(view, &out.certificates));
        out.effects.extend(save);
        out.samples.append(&mut self.samples);
        out.warnings.append(&mut self.warnings);
    }

    fn last_writes(&mut self, now_micros: i64) -> Vec<Effect> {
        let Some(ledger) = &mut self.ledger else { return Vec::new() };
        ledger.advance(now_micros);
        saves::save(ledger, &self.arguments, now_micros, true).into_iter().collect()
    }

    fn on_allocate(&mut self, view: SessionView<'_>, task: TaskId) {
        self.follow(view, task);
    }

    fn on_deallocate(&mut self, view: SessionView<'_>, task: TaskId) {
        self.follow(view, task);
    }

    /// FS-30: jobs of two namespaces in a target queue are ordered by projected usage.
    fn job_order(&self, view: SessionView<'_>, l: JobId, r: JobId) -> Ordering {
        let (Some((place_l, of_l)), Some((place_r, of_r))) =
            (self.target(view, l), self.target(view, r))
        else {
            return Ordering::Equal;
        };
        if place_l == place_r || of_l.queue != of_r.queue {
            return Ordering::Equal;
        }
        compare_usage((of_l.usage, of_l.weight), (of_r.usage, of_r.weight), self.ahead_weight)
    }

    fn order_value(&self, view: SessionView<'_>, job: JobId) -> Option<String> {
        overview::order_value(self, view, job)
    }

    fn queue_order(&self, view: SessionView<'_>, l: QueueId, r: QueueId) -> Ordering {
        reads::note(Read::QueueUsages);
        view.now_micros();
        self.queue_usages.compare(view.cluster, (l, r), self.is_tree, self.ahead_weight)
    }

    fn preemptable(
        &self,
        view: SessionView<'_>,
        preemptor: TaskId,
        candidates: &[TaskId],
    ) -> VictimVote {
        let Some(job) = view.cluster.tasks[preemptor].job else { return VictimVote::Abstain };
        let queue = &view.cluster.queues[view.cluster.jobs[job].queue].name;
        let rule = self.arguments.charge(queue);
        let asked = rule.of(view.cluster, view.cluster.request(preemptor));
        let vote = self.vote_by_usage(view, job, asked, candidates);
        vote.map_or(VictimVote::Abstain, VictimVote::Victims)
    }

    /// FS-54: a pod that has just started stays, whatever its queue has used.
    fn reclaimable(
        &self,
        view: SessionView<'_>,
        _reclaimer: TaskId,
        candidates: &[TaskId],
    ) -> VictimVote {
        let has_run = |task: &TaskId| self.has_run(view, *task);
        VictimVote::Victims(candidates.iter().copied().filter(has_run).collect())
    }

    /// FS-63: the same for all pods that the gang waits for.
    fn unified_evictable(
        &self,
        view: SessionView<'_>,
        initiator: JobId,
        kind: GangEviction,
        candidates: &[TaskId],
    ) -> VictimVote {
        let vote = match kind {
            GangEviction::Preempt => {
                let asked = self.pending_charge(view, initiator);
                self.vote_by_usage(view, initiator, asked, candidates)
            }
            GangEviction::Reclaim => {
                let has_run = |task: &TaskId| self.has_run(view, *task);
                Some(candidates.iter().copied().filter(has_run).collect())
            }
        };
        vote.map_or(VictimVote::Abstain, VictimVote::Victims)
    }

    /// FS-60: a namespace that holds its part of the queue gets nothing more.
    fn job_enqueueable(&self, view: SessionView<'_>, job: JobId) -> Admission {
        match gate::full_account(self, view, job) {
            Some(full) => Admission::Reject(Some(full.message())),
            None => Admission::Abstain,
        }
    }

    fn admission_facts(&self, view: SessionView<'_>, job: JobId) -> Vec<LimitFact> {
        gate::full_account(self, view, job).iter().map(gate::FullAccount::fact).collect()
    }
}

impl PastUsage for Fairshare {
    fn account<'a>(&'a self, view: SessionView<'a>, job: JobId) -> Option<&'a Arc<str>> {
        let row = &view.cluster.jobs[job];
        let is_target = self.arguments.is_target(&view.cluster.queues[row.queue].name);
        is_target.then(|| self.arguments.account.of(row))
    }

    fn usage_order(&self, view: SessionView<'_>, l: JobId, r: JobId) -> Ordering {
        self.job_order(view, r, l)
    }

    fn account_use(&self, view: SessionView<'_>) -> Vec<AccountUse> {
        overview::account_use(self, view)
    }

    fn queue_weights(&self, view: SessionView<'_>, takers: &[QueueId]) -> Option<Vec<Fractional>> {
        self.ledger.as_ref()?.shares.weights(view, self.arguments.shares?, takers)
    }
}

impl CacheKeys for Fairshare {
    fn clock(&self, view: SessionView<'_>) -> Clock {
        due::clock(self, view)
    }

    fn has_job_lines(&self) -> bool {
        true
    }

    fn job_line(&self, view: SessionView<'_>, job: JobId) -> u64 {
        self.target(view, job).map_or(NO_LINE, |(place, _)| place as u64)
    }
}

impl Fairshare {
    fn new(arguments: Arc<FairshareArguments>, is_tree: bool) -> Self {
        Self {
            arguments,
            is_tree,
            ledger: None,
            inherited: None,
            ahead_weight: 1,
            queue_usages: QueueUsages::default(),
            votes: VoteTerms::default(),
            division: None,
            reported_parts: BTreeMap::new(),
            reported_queues: None,
            samples: Vec::new(),
            missing: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Takes over the usage of the last configuration, or begins a new one.
    fn begin(&mut self, view: SessionView<'_>, now: i64) {
        let half_life = self.arguments.half_life_micros;
        if let Some(Inheritance { arguments, mut ledger, reported_parts }) = self.inherited.take() {
            self.reported_parts = reported_parts;
            let arguments = arguments.unwrap_or_else(|| self.arguments.clone());
            if arguments.charges_as(&self.arguments) {
                ledger.forget_weights();
                ledger.saves.is_saved &= arguments.save == self.arguments.save;
                if ledger.decay.half_life != half_life {
                    ledger.advance(now);
                    ledger.change_half_life(half_life, now);
                }
                if self.is_read_late(view, &ledger, arguments.save.as_ref()) {
                    ledger.end(|account| self.samples.push(gone(account)));
                    ledger = self.first_ledger(view, now);
                }
                self.ledger = Some(ledger);
                return;
            }
            let text = "plugin fairshare: what is charged has changed, so usage starts anew";
            self.warnings.push(text.to_owned());
            ledger.end(|account| self.samples.push(gone(account)));
            let mut ledger = Ledger::new(half_life, now);
            view.all_jobs().for_each(|job| ledger.begin_job(view, &self.arguments, job, i64::MIN));
            self.ledger = Some(ledger);
        }
        if self.ledger.is_none() {
            self.ledger = Some(self.first_ledger(view, now));
        }
    }

    /// FS-82: true if the usage was read now with which the ledger of this configuration should have begun. What pods
    /// that have ended since have used is lost.
    fn is_read_late(
        &self,
        view: SessionView<'_>,
        ledger: &Ledger,
        save: Option<&SaveRule>,
    ) -> bool {
        let is_usable = |saved: &Arc<SavedUsage>| saves::is_charged_by(saved, &self.arguments);
        let saved = view.cluster.saved_usages.read();
        ledger.is_unread && save == self.arguments.save.as_ref() && saved.is_some_and(is_usable)
    }

    /// Returns the ledger of a first session: with the usage that an earlier process has saved, and
    /// that of running tasks.
    fn first_ledger(&mut self, view: SessionView<'_>, now: i64) -> Ledger {
        let saved = view.cluster.saved_usages.read().filter(|_| self.arguments.save.is_some());
        let restored = saved.map(|saved| saves::restored(view, saved, &self.arguments));
        let (mut ledger, since) = match restored {
            Some(Ok(restored)) => restored,
            Some(Err(warning)) => {
                self.warnings.push(warning);
                (Ledger::new(self.arguments.half_life_micros, now), i64::MIN)
            }
            None => (Ledger::new(self.arguments.half_life_micros, now), i64::MIN),
        };
        ledger.is_unread = view.cluster.saved_usages.is_unread();
        ledger.advance(now);
        view.all_jobs().for_each(|job| ledger.begin_job(view, &self.arguments, job, since));
        ledger
    }

    /// Returns the account of a job, if its queue is a target.
    fn target(&self, view: SessionView<'_>, job: JobId) -> Option<(usize, &Account)> {
        let queue = view.cluster.jobs[job].queue;
        reads::note(Read::QueueUsage(queue));
        reads::note(Read::OtherObjects);
        // The usage is that at the time of the session.
        view.now_micros();
        let found = self.ledger.as_ref()?.of_job(job);
        found.filter(|(_, account)| self.arguments.is_target(&account.queue))
    }

    fn follow(&mut self, view: SessionView<'_>, task: TaskId) {
        let Some(ledger) = &mut self.ledger else { return };
        if let Some((queue, change)) = ledger.follow(view, &self.arguments, task)
            && self.arguments.has_queue_order
        {
            self.queue_usages.change(queue, change);
        }
    }

    /// Reports parents and weights of all queues, if a Queue has changed.
    fn report_queues(&mut self, view: SessionView<'_>) {
        let version = Some(view.cluster.queue_version());
        if std::mem::replace(&mut self.reported_queues, version) == version {
            return;
        }
        for &id in &view.info.queues {
            let row = &view.cluster.queues[id];
            let parent = if row.parent.is_empty() { "root".into() } else { row.parent.clone() };
            let weight = row.weight.max(0);
            self.samples.push(Sample::FairshareQueue { queue: row.name.clone(), parent, weight });
        }
    }

    fn report_usage(&mut self, now: i64) {
        let Some(ledger) = &mut self.ledger else { return };
        let (decay, weight) = (ledger.decay, ledger.now_weight());
        ledger.report(|account, usage| {
            let Some(usage) = usage else {
                return self.samples.push(gone(account));
            };
            self.samples.push(Sample::FairshareUsage(Box::new(FairshareUsage {
                queue: account.queue.clone(),
                account: account.name.clone(),
                // The charge whose use for ever would give this usage.
                level: usage.at(weight) as f64 / weight as f64,
                rate: usage.rate as f64,
                since_micros: now,
                half_life_micros: decay.half_life,
            })));
        });
    }

    /// Divides the queues for the enqueue gate, if a job may ask for admission.
    fn divide(&mut self, view: SessionView<'_>) {
        self.division = None;
        let is_asked = || view.info.jobs.iter().any(|&job| view.cluster.jobs[job].is_pending());
        if !self.arguments.has_enqueue_gate || !is_asked() {
            return;
        }
        let weight = |account: &str| ledger::weight(view, &self.arguments, account);
        let division = division::divide(view, &self.arguments, weight);
        let mut parts = BTreeMap::new();
        for (&queue, of_queue) in &division {
            for (account, part) in of_queue {
                let queue = view.cluster.queues[queue].name.clone();
                parts.insert((queue, account.clone()), part.part);
            }
        }
        for (key, &part) in &parts {
            if self.reported_parts.get(key) != Some(&part) {
                let (queue, account) = key.clone();
                self.samples.push(Sample::FairshareShare { queue, account, share: part as f64 });
            }
        }
        self.reported_parts = parts;
        self.division = Some(division);
    }

    fn warn_of_missing_queues(&mut self, view: SessionView<'_>) {
        for name in self.arguments.missing_targets(view.cluster) {
            if !self.missing.iter().any(|known| known == name) {
                self.missing.push(name.to_owned());
                self.warnings.push(format!(
                    "plugin fairshare: fairshare.targetQueues: queue {name} does not exist. Create \
                     the queue, or remove its name"
                ));
            }
        }
    }
}

fn gone(account: &Account) -> Sample {
    Sample::FairshareGone { queue: account.queue.clone(), account: account.name.clone() }
}

/// FS-21, FS-23: compares usage at the time with this weight, relative to the weights of the
/// owners; then the smaller charge goes first.
fn compare_usage(l: (Usage, i64), r: (Usage, i64), weight: i128) -> Ordering {
    let product = |(usage, _): (Usage, i64), by: i64| wide(usage.at(weight), by);
    let by_usage = product(l, r.1).cmp(&product(r, l.1));
    by_usage.then_with(|| wide(l.0.rate.max(0), r.1).cmp(&wide(r.0.rate.max(0), l.1)))
}

/// Multiplies amounts of at least 0 without overflow; returns the high and the low part.
fn wide(amount: i128, by: i64) -> (u128, u128) {
    let (amount, by) = (amount.unsigned_abs(), u128::from(by.unsigned_abs()));
    let low = (amount & u128::from(u64::MAX)) * by;
    ((amount >> 64) * by + (low >> 64), low & u128::from(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(closed: i128) -> Usage {
        Usage { closed, rate: 0 }
    }

    /// FS-D2: usages are compared exactly, so that the order is one.
    #[test]
    fn fs_epsilon_is_gone() {
        let usages = [0, 9, 18].map(closed);
        for pair in usages.windows(2) {
            assert_eq!(compare_usage((pair[0], 1_000), (pair[1], 1_000), 1), Ordering::Less);
        }
    }

    /// Example C, and FS-23.
    #[test]
    fn fs_21_usage_is_relative_to_the_weight() {
        let order = |l: i128, r: i128| compare_usage((closed(l), 2_000), (closed(r), 1_000), 1);
        assert_eq!(order(600, 350), Ordering::Less);
        assert_eq!(order(700, 350), Ordering::Equal);
        assert_eq!(order(701, 350), Ordering::Greater);
        let (idle, busy) = (closed(10), Usage { closed: 0, rate: 10 });
        assert_eq!(compare_usage((idle, 1), (busy, 1), 1), Ordering::Less);
    }

    #[test]
    fn products_do_not_overflow() {
        let most = closed(i128::MAX);
        let order = compare_usage((most, i64::MAX), (most, i64::MAX - 1), 1 << 60);
        assert_eq!(order, Ordering::Less);
    }
}
