//! Who may be evicted: filters first, then the tiered intersection. Specification: core.md 5.5,
//! actions.md 2.3 with A5, plugins-jobs-queues.md D1, D2, D3.

use rustc_hash::FxHashSet;
use vc_model::{JobId, TaskId};

use crate::dispatch::Dispatch;
use crate::plugin::{Ask, GangEviction, Plugin, Verdict};
use crate::points::Points;
use crate::ruling::{Question, Rule, Ruling};

/// A plugin with its name.
type Named<'a> = (&'static str, &'a dyn Plugin);

impl Dispatch {
    /// Which of the candidates may go, and why.
    pub fn ruling(&self, ask: Ask<'_>, question: Question, candidates: &[TaskId]) -> Ruling {
        match question {
            Question::Preempt(task) => {
                self.intersect(ask, Points::PREEMPTABLE, candidates, |plugin, candidates| {
                    plugin.preemptable(ask, task, candidates)
                })
            }
            Question::Reclaim(task) => {
                self.intersect(ask, Points::RECLAIMABLE, candidates, |plugin, candidates| {
                    plugin.reclaimable(ask, task, candidates)
                })
            }
            Question::Gang(job, kind) => {
                self.intersect(ask, Points::UNIFIED_EVICTABLE, candidates, |plugin, candidates| {
                    plugin.unified_evictable(ask, job, kind, candidates)
                })
            }
            Question::Shuffle => self.chosen(ask, candidates),
        }
    }

    /// Candidates that `preemptor` may evict, in the order of the first answer.
    pub fn preemptable(
        &self,
        ask: Ask<'_>,
        preemptor: TaskId,
        candidates: &[TaskId],
    ) -> Vec<TaskId> {
        self.ruling(ask, Question::Preempt(preemptor), candidates).victims
    }

    /// Candidates that `reclaimer` may evict from other queues.
    pub fn reclaimable(
        &self,
        ask: Ask<'_>,
        reclaimer: TaskId,
        candidates: &[TaskId],
    ) -> Vec<TaskId> {
        self.ruling(ask, Question::Reclaim(reclaimer), candidates).victims
    }

    /// Candidates that the gang actions may evict for `initiator`.
    pub fn unified_evictable(
        &self,
        ask: Ask<'_>,
        initiator: JobId,
        kind: GangEviction,
        candidates: &[TaskId],
    ) -> Vec<TaskId> {
        self.ruling(ask, Question::Gang(initiator, kind), candidates).victims
    }

    /// Union of a tier without repetition, less what the filters protect (D2); the first tier with
    /// any.
    pub fn victim_tasks(&self, ask: Ask<'_>, running: &[TaskId]) -> Vec<TaskId> {
        self.ruling(ask, Question::Shuffle, running).victims
    }

    /// Whether some plugin may name a task in [`Dispatch::victim_tasks`].
    pub fn select_victims(&self) -> bool {
        self.all(Points::VICTIM_TASKS).any(|plugin| plugin.selects_victims())
    }

    /// Whether every plugin filters by the class of the task and the row of the node alone.
    pub(crate) fn filters_read_rows(&self, ask: Ask<'_>, task: TaskId) -> bool {
        self.tests(ask, task).is_some_and(|(_, wide)| wide.is_empty())
    }

    /// How many plugins filter nodes.
    pub(crate) fn n_filters(&self) -> usize {
        self.all(Points::PREDICATE).count()
    }

    /// Whether no plugin refuses a queue or a task because further pods went.
    pub(crate) fn ease_by_evictions(&self) -> bool {
        let points =
            [Points::OVERUSED, Points::ALLOCATABLE, Points::PRE_PREDICATE, Points::EVENT_HANDLERS];
        let mut asked = points.into_iter().flat_map(|point| self.all(point));
        asked.all(|plugin| plugin.eases_by_evictions())
    }

    /// Whether the plugins up to this tier, `None`: all, vote about these candidates by what they and
    /// their jobs are alone.
    pub(crate) fn vote_by_job(
        &self,
        ask: Ask<'_>,
        question: Question,
        tier: Option<usize>,
        candidates: &[TaskId],
    ) -> bool {
        self.all_asked(question, tier, |plugin| {
            plugin.votes_by_job(ask) || concerns_none(plugin, ask, candidates)
        })
    }

    /// Whether the same plugins vote by that and by the stakes of queues.
    pub(crate) fn vote_by_queue(
        &self,
        ask: Ask<'_>,
        question: Question,
        tier: Option<usize>,
        candidates: &[TaskId],
    ) -> bool {
        self.all_asked(question, tier, |plugin| {
            plugin.votes_by_queue(ask) || concerns_none(plugin, ask, candidates)
        })
    }

    /// Whether all that vote read of the task nothing of its class.
    pub(crate) fn vote_for_any_class(&self, ask: Ask<'_>, question: Question) -> bool {
        let Some(point) = point_of(question) else { return false };
        self.all(point).all(|plugin| plugin.votes_for_any_class(ask))
    }

    /// Those that vote about victims for one task by the stakes of queues.
    pub(crate) fn stakeholders<'a>(&'a self, ask: Ask<'a>) -> impl Iterator<Item = &'a dyn Plugin> {
        let asked = [Points::PREEMPTABLE, Points::RECLAIMABLE].map(|point| self.all(point));
        let reads =
            move |plugin: &&dyn Plugin| plugin.votes_by_queue(ask) && !plugin.votes_by_job(ask);
        asked.into_iter().flatten().filter(reads)
    }

    /// Whether all filters, and all plugins up to this tier, `None`: all, are of this kind.
    fn all_asked(
        &self,
        question: Question,
        tier: Option<usize>,
        is_so: impl Fn(&dyn Plugin) -> bool,
    ) -> bool {
        let Some(point) = point_of(question) else { return false };
        let mut tiers = self.tiers(point).enumerate();
        tiers.all(|(number, mut plugins)| {
            let in_time = tier.is_none_or(|tier| number < tier);
            plugins.all(|plugin| is_so(plugin) || !(in_time || plugin.is_victim_filter()))
        })
    }

    /// Whether every plugin reads no more of the task than its [`crate::Asker`].
    pub(crate) fn know_asker(&self, ask: Ask<'_>, task: TaskId) -> bool {
        self.plugins.iter().all(|plugin| plugin.knows_askers(ask, task))
    }

    /// Whether some plugin reads more of a job that holds nothing.
    pub(crate) fn read_jobs(&self, ask: Ask<'_>) -> bool {
        self.plugins.iter().any(|plugin| plugin.reads_jobs(ask))
    }

    /// Whether no protective filter objects to a whole group going after, and together with, those
    /// that are `taken`; `own`: it is of the preemptor's queue (cohort.md B.4, Q6).
    pub fn lets_go(
        &self,
        ask: Ask<'_>,
        own: bool,
        taken: &dyn Fn() -> Vec<TaskId>,
        group: &[TaskId],
    ) -> bool {
        let protects = |filter: &dyn Plugin| group.iter().any(|&task| filter.protects(ask, task));
        if self.filters(own).any(|(_, filter)| protects(filter)) {
            return false;
        }
        self.filters(own).filter(|(_, filter)| filter.has_budgets()).all(|(_, filter)| {
            let within = filter.within_budget(ask, &[&taken(), group].concat());
            group.iter().all(|task| within.contains(task))
        })
    }

    /// The protective filters that are asked about groups of the own queue, or of others.
    pub fn filter_names(&self, own: bool) -> Vec<&'static str> {
        self.filters(own).map(|(name, _)| name).collect()
    }

    /// The plugin that decides which groups go.
    pub fn targets_name(&self) -> Option<&'static str> {
        self.named(Points::PREEMPT_TARGETS).into_iter().flatten().map(|(name, _)| name).next()
    }

    fn filters(&self, own: bool) -> impl Iterator<Item = Named<'_>> {
        let filters = self.filters[usize::from(!own)].iter();
        filters.map(|&plugin| (self.names[plugin], &*self.plugins[plugin]))
    }

    fn chosen(&self, ask: Ask<'_>, running: &[TaskId]) -> Ruling {
        for (tier, plugins) in self.named(Points::VICTIM_TASKS).into_iter().enumerate() {
            let mut union: Vec<TaskId> = Vec::new();
            let mut known = FxHashSet::default();
            let mut granted = Vec::new();
            for (name, plugin) in plugins {
                let chosen = plugin.victim_tasks(ask, running);
                granted.extend((!chosen.is_empty()).then_some(name));
                for task in chosen {
                    if known.insert(task) {
                        union.push(task);
                    }
                }
            }
            if !union.is_empty() {
                let mut filters = self.named(Points::PREEMPTABLE);
                filters.extend(self.named(Points::VICTIM_TASKS));
                let (victims, filters, refused_by) = unprotected(ask, filters, &union);
                let rule = Rule { tier: Some(tier + 1), plugins: granted, filters, why: None };
                return Ruling { victims, rule: Some(rule), refused_by };
            }
        }
        Ruling::default()
    }

    /// The plugins of a point by tier, with their names.
    pub(super) fn named(&self, point: Points) -> Vec<Vec<Named<'_>>> {
        let tiers = self.calls.get(point.index()).map_or(&[][..], Vec::as_slice);
        let named = |&plugin: &usize| (self.names[plugin], &*self.plugins[plugin]);
        tiers.iter().map(|tier| tier.iter().map(named).collect()).collect()
    }

    fn intersect(
        &self,
        ask: Ask<'_>,
        point: Points,
        candidates: &[TaskId],
        answer: impl Fn(&dyn Plugin, &[TaskId]) -> Verdict,
    ) -> Ruling {
        let (mut left, mut filters, mut protector) =
            unprotected(ask, self.named(point), candidates);
        let is_share_filter =
            |plugin: &dyn Plugin| point == Points::UNIFIED_EVICTABLE && plugin.is_share_filter();
        let named = self.named(point).into_iter().flatten();
        for (name, plugin) in named.filter(|(_, plugin)| is_share_filter(*plugin)) {
            filters.push(name);
            if let Verdict::Victims(within_share) = answer(plugin, &left) {
                narrow(&mut protector, name, &mut left, within_share);
            }
        }
        let mut refused_by = protector.filter(|_| left.is_empty());
        let mut anyone_voted = false;
        for (tier, plugins) in self.named(point).into_iter().enumerate() {
            let is_voter =
                |plugin: &dyn Plugin| !plugin.is_victim_filter() && !is_share_filter(plugin);
            let voters = plugins.into_iter().filter(|(_, plugin)| is_voter(*plugin));
            let answers = voters.map(|(name, plugin)| (name, answer(plugin, &left)));
            match tier_outcome(left.len(), answers) {
                Outcome::Victims { victims, plugins, holder } => {
                    let rule = Rule { tier: Some(tier + 1), plugins, filters, why: None };
                    return Ruling { victims, rule: Some(rule), refused_by: protector.or(holder) };
                }
                Outcome::Nothing(plugin) => {
                    anyone_voted = true;
                    refused_by = refused_by.or(Some(plugin));
                }
                Outcome::NoVote => {}
            }
        }
        // Only filters have spoken: what they leave is the result (D1).
        match !filters.is_empty() && !anyone_voted && !left.is_empty() {
            true => {
                let rule = Rule { filters, ..Rule::default() };
                Ruling { victims: left, rule: Some(rule), refused_by: protector }
            }
            false => Ruling { refused_by, ..Ruling::default() },
        }
    }
}

/// Where plugins are asked about victims for one task.
fn point_of(question: Question) -> Option<Points> {
    match question {
        Question::Preempt(_) => Some(Points::PREEMPTABLE),
        Question::Reclaim(_) => Some(Points::RECLAIMABLE),
        Question::Gang(..) | Question::Shuffle => None,
    }
}

/// What the protective filters among the plugins leave, the filters that were asked, and the one
/// that took out the last candidate or, if some are left, the first one that took any. Budgets are
/// spent on what none protects (D1).
fn unprotected(
    ask: Ask<'_>,
    plugins: Vec<Vec<Named<'_>>>,
    candidates: &[TaskId],
) -> (Vec<TaskId>, Vec<&'static str>, Option<&'static str>) {
    let mut filters: Vec<Named<'_>> =
        plugins.into_iter().flatten().filter(|(_, plugin)| plugin.is_victim_filter()).collect();
    let mut seen = Vec::new();
    filters.retain(|(name, _)| {
        let first = !seen.contains(name);
        seen.push(name);
        first
    });
    let mut left = candidates.to_vec();
    let mut protector = None;
    for (name, filter) in &filters {
        let free = left.iter().copied().filter(|&task| !filter.protects(ask, task)).collect();
        narrow(&mut protector, name, &mut left, free);
    }
    for (name, filter) in &filters {
        let within = filter.within_budget(ask, &left);
        narrow(&mut protector, name, &mut left, within);
    }
    (left, filters.iter().map(|(name, _)| *name).collect(), protector)
}

/// Leaves fewer candidates. The filter is the protector if it is the first that took any out, or if
/// it took out the last one.
fn narrow(
    protector: &mut Option<&'static str>,
    name: &'static str,
    left: &mut Vec<TaskId>,
    fewer: Vec<TaskId>,
) {
    if fewer.len() < left.len() && (protector.is_none() || fewer.is_empty()) {
        *protector = Some(name);
    }
    *left = fewer;
}

/// What a tier says.
enum Outcome {
    /// All abstain.
    NoVote,
    /// This plugin answered with nothing, or with nothing that the earlier ones had granted.
    Nothing(&'static str),
    /// Who may go, who granted them, and who was the first to hold others back.
    Victims { victims: Vec<TaskId>, plugins: Vec<&'static str>, holder: Option<&'static str> },
}

/// The tasks of the first list that are in the second one, too.
fn in_both(first: Vec<TaskId>, second: &[TaskId]) -> Vec<TaskId> {
    // Mostly the second one leaves some out and keeps the order.
    let mut rest = first.iter();
    if second.iter().all(|task| rest.any(|other| other == task)) {
        return second.to_vec();
    }
    let second: FxHashSet<TaskId> = second.iter().copied().collect();
    first.into_iter().filter(|task| second.contains(task)).collect()
}

/// The intersection of a tier that is asked about so many candidates. One that becomes empty stays
/// so (A5); later plugins are not asked.
fn tier_outcome(
    n_candidates: usize,
    answers: impl Iterator<Item = (&'static str, Verdict)>,
) -> Outcome {
    let mut outcome = Outcome::NoVote;
    for (name, verdict) in answers {
        let Verdict::Victims(list) = verdict else { continue };
        let (victims, mut plugins, holder) = match outcome {
            Outcome::Victims { victims: earlier, plugins, holder } => {
                let n_earlier = earlier.len();
                let both = in_both(earlier, &list);
                let holds = both.len() < n_earlier;
                (both, plugins, holder.or(holds.then_some(name)))
            }
            _ => {
                let holds = list.len() < n_candidates;
                (list, Vec::new(), holds.then_some(name))
            }
        };
        if victims.is_empty() {
            return Outcome::Nothing(name);
        }
        plugins.push(name);
        outcome = Outcome::Victims { victims, plugins, holder };
    }
    outcome
}

fn concerns_none(plugin: &dyn Plugin, ask: Ask<'_>, candidates: &[TaskId]) -> bool {
    !candidates.iter().any(|&candidate| plugin.concerns(ask, candidate))
}
