//! Selection of victims: filters first, then the intersection of the votes in a tier.
//! Specification: core.md 5.5, actions.md 2.3 with A5, plugins-jobs-queues.md D1, D2, D3.

use rustc_hash::FxHashSet;
use vc_model::{JobId, QueueId, TaskId};

use crate::depends::{Inputs, Signature};
use crate::failed_preemption_cache::{PreemptionKind, QueueUsageStamp};
use crate::plugin::{CacheKeys, GangEviction, Plugin, SessionView, VictimFilter, VictimVote};
use crate::plugin_set::{PluginSet, has_revision, protective};
use crate::points::Points;
use crate::victim_selection::{EvictionRule, Question, VictimSelection};

/// A plugin with its name.
type Named<'a> = (&'static str, &'a dyn Plugin);

/// A protective filter with the name of its plugin.
struct NamedFilter<'a> {
    name: &'static str,
    filter: &'a dyn VictimFilter,
    /// True if the filter may limit how many candidates go together.
    has_budgets: bool,
}

impl PluginSet {
    /// Returns which candidates may be evicted, and by which rule.
    pub fn select_victims(
        &self,
        view: SessionView<'_>,
        question: Question,
        candidates: &[TaskId],
    ) -> VictimSelection {
        match question {
            Question::Preempt(task) => {
                self.intersect(view, Points::PREEMPTABLE, candidates, |plugin, candidates| {
                    plugin.preemptable(view, task, candidates)
                })
            }
            Question::Reclaim(task) => {
                self.intersect(view, Points::RECLAIMABLE, candidates, |plugin, candidates| {
                    plugin.reclaimable(view, task, candidates)
                })
            }
            Question::Gang(job, kind) => {
                self.intersect(view, Points::UNIFIED_EVICTABLE, candidates, |plugin, candidates| {
                    plugin.unified_evictable(view, job, kind, candidates)
                })
            }
            Question::Shuffle => self.chosen(view, candidates),
        }
    }

    /// Returns the candidates that `preemptor` may evict, in the order of the first vote.
    pub fn preemptable(
        &self,
        view: SessionView<'_>,
        preemptor: TaskId,
        candidates: &[TaskId],
    ) -> Vec<TaskId> {
        self.select_victims(view, Question::Preempt(preemptor), candidates).victims
    }

    /// Returns the candidates that `reclaimer` may evict from other queues.
    pub fn reclaimable(
        &self,
        view: SessionView<'_>,
        reclaimer: TaskId,
        candidates: &[TaskId],
    ) -> Vec<TaskId> {
        self.select_victims(view, Question::Reclaim(reclaimer), candidates).victims
    }

    /// Returns the candidates that the gang actions may evict for `initiator`.
    pub fn unified_evictable(
        &self,
        view: SessionView<'_>,
        initiator: JobId,
        kind: GangEviction,
        candidates: &[TaskId],
    ) -> Vec<TaskId> {
        self.select_victims(view, Question::Gang(initiator, kind), candidates).victims
    }

    /// Returns the tasks that plugins choose to evict: the union of the first tier that names any,
    /// without those that filters protect (D2: pdb and conformance filter VictimTasks).
    pub fn victim_tasks(&self, view: SessionView<'_>, running: &[TaskId]) -> Vec<TaskId> {
        self.select_victims(view, Question::Shuffle, running).victims
    }

    /// True if a plugin may name a task in [`PluginSet::victim_tasks`].
    pub fn has_victim_tasks(&self) -> bool {
        let selects =
            |plugin: &dyn Plugin| plugin.as_cache_keys().is_none_or(CacheKeys::has_victim_tasks);
        let mut plugins = self.all(Points::VICTIM_TASKS);
        plugins.any(|plugin| protective(plugin).is_none() && selects(plugin))
    }

    /// True if every plugin filters by the class of the task and the row of the node alone.
    pub(crate) fn filters_read_rows(&self, view: SessionView<'_>, task: TaskId) -> bool {
        let mut filters = self.all_with_inputs(Points::PREDICATE);
        filters.all(|(plugin, reads)| {
            let split = plugin.as_vectorized().and_then(|it| it.node_tests(view, task));
            match split {
                Some(split) => split.cluster_scoped.is_none(),
                None => reads.is_by_shape_and_node(has_revision(plugin)),
            }
        })
    }

    /// Returns the number of plugins that filter nodes.
    pub(crate) fn n_filters(&self) -> usize {
        self.all(Points::PREDICATE).count()
    }

    /// True if one more eviction never makes a plugin refuse a queue or a task (monotonicity).
    pub(crate) fn ease_by_evictions(&self) -> bool {
        let points =
            [Points::OVERUSED, Points::ALLOCATABLE, Points::PRE_PREDICATE, Points::EVENT_HANDLERS];
        let calls =
            points.into_iter().filter_map(|point| Some((point, self.calls.get(point.index())?)));
        let mut asked = calls.flat_map(|(point, tiers)| {
            tiers.iter().flatten().map(move |&plugin| (point, &self.depends[plugin]))
        });
        asked.all(|(point, depends)| depends.is_eased_by_evictions(point))
    }

    /// True if the plugins of the first `tier` tiers (`None`: all tiers) vote by the candidates and
    /// their jobs alone. Protective filters count in any tier.
    pub(crate) fn vote_by_job(
        &self,
        view: SessionView<'_>,
        question: Question,
        tier: Option<usize>,
        candidates: &[TaskId],
    ) -> bool {
        self.all_asked(question, tier, |plugin, reads| {
            reads.votes_by_job() || concerns_none(plugin, view, candidates)
        })
    }

    /// True if the plugins that [`PluginSet::vote_by_job`] checks vote by candidates, their jobs,
    /// the preemptor's request and queue usage alone. False if the order of the candidates of a
    /// queue, on which such votes depend, may change.
    pub(crate) fn vote_by_queue(
        &self,
        view: SessionView<'_>,
        question: Question,
        tier: Option<usize>,
        candidates: &[TaskId],
    ) -> bool {
        let is_order_fixed = !self.job_order_moves();
        is_order_fixed
            && self.all_asked(question, tier, |plugin, reads| {
                reads.votes_by_queue(plugin.as_cache_keys().is_some())
                    || concerns_none(plugin, view, candidates)
            })
    }

    /// True if no vote on victims of reclaim reads more of the reclaimer than its request and its
    /// [`CacheKeys::own_queue_usage`].
    pub(crate) fn reclaim_votes_by_request(&self) -> bool {
        self.all_with_inputs(Points::RECLAIMABLE)
            .all(|(plugin, reads)| reads.votes_by_request(plugin.as_cache_keys().is_some()))
    }

    /// True if no vote on victims reads the class of the preemptor.
    pub(crate) fn vote_for_any_class(&self, question: Question) -> bool {
        let Some(point) = point_of(question) else { return false };
        self.all_with_inputs(point).all(|(_, reads)| reads.votes_for_any_class())
    }

    /// Returns cache keys and inputs of the plugins whose votes on victims for one task read queue
    /// usage at these points.
    fn queue_usage_readers<'a>(
        &'a self,
        points: &'a [Points],
    ) -> impl Iterator<Item = (Option<&'a dyn CacheKeys>, Inputs)> {
        let asked = points.iter().flat_map(|&point| self.all_with_inputs(point));
        let with_keys = asked.map(|(plugin, reads)| (plugin.as_cache_keys(), reads));
        with_keys
            .filter(|(keys, reads)| reads.votes_by_queue(keys.is_some()) && !reads.votes_by_job())
    }

    /// Returns the usage of a candidate's queue that votes on victims read, by plugin. An entry is
    /// `None` if pods of other queues change it too.
    pub(crate) fn queue_usages<'a>(
        &'a self,
        view: SessionView<'a>,
        queue: QueueId,
    ) -> impl Iterator<Item = Option<QueueUsageStamp>> + 'a {
        self.queue_usage_readers(VICTIM_POINTS).map(move |(keys, reads)| {
            match reads.has(Inputs::CANDIDATE_QUEUE_USAGE) {
                true => keys?.queue_usage(view, queue),
                false => Some(QueueUsageStamp::Within),
            }
        })
    }

    /// Returns the queues whose usage changes when a pod of this queue is placed or removed. It may
    /// name the queue itself.
    pub(crate) fn queues_that_move_with(
        &self,
        queue: QueueId,
    ) -> impl Iterator<Item = QueueId> + '_ {
        let keys = self.queue_usage_readers(VICTIM_POINTS).filter_map(|(keys, _)| keys);
        keys.flat_map(move |keys| keys.queues_that_move(queue))
    }

    /// Returns the usage of the queues above the preemptor that votes on victims of this kind read,
    /// by plugin. An entry is `None` if it is not known.
    pub(crate) fn own_queue_usages<'a>(
        &'a self,
        view: SessionView<'a>,
        (task, kind): (TaskId, PreemptionKind),
    ) -> impl Iterator<Item = Option<QueueUsageStamp>> + 'a {
        let points = match kind {
            PreemptionKind::Reclaim => &[Points::RECLAIMABLE],
            PreemptionKind::BetweenJobs | PreemptionKind::InsideJob => &[Points::PREEMPTABLE],
        };
        self.queue_usage_readers(points).map(move |(keys, reads)| {
            match reads.has(Inputs::OWN_QUEUE_USAGE) {
                true => keys?.own_queue_usage(view, task),
                false => Some(QueueUsageStamp::Within),
            }
        })
    }

    /// True if `is_so` holds for all filters and for the plugins of the first `tier` tiers (`None`:
    /// all tiers).
    fn all_asked(
        &self,
        question: Question,
        tier: Option<usize>,
        is_so: impl Fn(&dyn Plugin, Inputs) -> bool,
    ) -> bool {
        let Some(point) = point_of(question) else { return false };
        let mut tiers = self.tiers_with_inputs(point).enumerate();
        tiers.all(|(number, mut plugins)| {
            let in_time = tier.is_none_or(|tier| number < tier);
            plugins.all(|(plugin, reads)| {
                is_so(plugin, reads) || !(in_time || protective(plugin).is_some())
            })
        })
    }

    /// True if every plugin reads no more of the task than its [`crate::PodSignature`].
    pub(crate) fn is_signature_complete(&self, view: SessionView<'_>, task: TaskId) -> bool {
        self.beyond_signature.iter().all(|&(plugin, signature)| match signature {
            Signature::Complete => true,
            Signature::CompleteWithoutOwnState => self.plugins[plugin]
                .as_cache_keys()
                .is_some_and(|keys| !keys.has_own_state(view, task)),
            Signature::Incomplete => false,
        })
    }

    /// True if the pod signature must name the job, even if no task of the job holds resources.
    pub(crate) fn read_jobs(&self) -> bool {
        self.depends.iter().any(crate::Depends::names_job)
    }

    /// True if no protective filter objects to the eviction of a whole group after those in
    /// `taken`. `own` says that the group is of the preemptor's queue (cohort.md B.4, Q6: filters
    /// protect groups too).
    pub fn lets_go(
        &self,
        view: SessionView<'_>,
        own: bool,
        taken: &dyn Fn() -> Vec<TaskId>,
        group: &[TaskId],
    ) -> bool {
        let protects =
            |filter: &dyn VictimFilter| group.iter().any(|&task| filter.protects(view, task));
        if self.filters(own).any(|filter| protects(filter.filter)) {
            return false;
        }
        self.filters(own).filter(|filter| filter.has_budgets).all(
            |NamedFilter { filter, .. }| {
                let within = filter.within_budget(view, &[&taken(), group].concat());
                group.iter().all(|task| within.contains(task))
            },
        )
    }

    /// Returns the candidates that the protective filter of this name removes, for answers. The
    /// filters are asked about all candidates together. `own` says that they are of the preemptor's
    /// queue. The list is empty if no filter has the name.
    pub fn removed_by_filter(
        &self,
        view: SessionView<'_>,
        (own, name): (bool, &str),
        candidates: &[TaskId],
    ) -> Vec<TaskId> {
        let Some(named) = self.filters(own).find(|filter| filter.name == name) else {
            return Vec::new();
        };
        let candidates = || candidates.iter().copied();
        let mut removed: Vec<TaskId> =
            candidates().filter(|&task| named.filter.protects(view, task)).collect();
        if named.has_budgets {
            // Pods that a filter protects spend no budget.
            let is_free =
                |&task: &TaskId| self.filters(own).all(|it| !it.filter.protects(view, task));
            let free: Vec<TaskId> = candidates().filter(is_free).collect();
            let within = named.filter.within_budget(view, &free);
            let within: FxHashSet<TaskId> = within.into_iter().collect();
            removed.extend(free.into_iter().filter(|task| !within.contains(task)));
        }
        removed
    }

    /// Returns the names of the protective filters for groups of the preemptor's queue (`own`), or
    /// of other queues.
    pub fn filter_names(&self, own: bool) -> Vec<&'static str> {
        self.filters(own).map(|filter| filter.name).collect()
    }

    /// Returns the name of the plugin that decides which groups are evicted.
    pub fn targets_name(&self) -> Option<&'static str> {
        self.named(Points::PREEMPT_TARGETS).into_iter().flatten().map(|(name, _)| name).next()
    }

    fn filters(&self, own: bool) -> impl Iterator<Item = NamedFilter<'_>> {
        let point = if own { Points::PREEMPTABLE } else { Points::RECLAIMABLE };
        self.filters[usize::from(!own)].iter().filter_map(move |&plugin| {
            let has_budgets = self.depends[plugin].at(point).has(Inputs::BUDGETS);
            let filter = protective(&*self.plugins[plugin])?;
            Some(NamedFilter { name: self.names[plugin], filter, has_budgets })
        })
    }

    fn chosen(&self, view: SessionView<'_>, running: &[TaskId]) -> VictimSelection {
        for (tier, plugins) in self.named(Points::VICTIM_TASKS).into_iter().enumerate() {
            let mut union: Vec<TaskId> = Vec::new();
            let mut known = FxHashSet::default();
            let mut granted = Vec::new();
            for (name, plugin) in plugins {
                let chosen = plugin.victim_tasks(view, running);
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
                let (victims, filters, refused_by) = unprotected(view, &filters, &union);
                let rule =
                    EvictionRule { tier: Some(tier + 1), plugins: granted, filters, why: None };
                return VictimSelection { victims, rule: Some(rule), refused_by };
            }
        }
        VictimSelection::default()
    }

    /// Returns the plugins of a point by tier, with their names.
    pub(super) fn named(&self, point: Points) -> Vec<Vec<Named<'_>>> {
        let tiers = self.calls.get(point.index()).map_or(&[][..], Vec::as_slice);
        let named = |&plugin: &usize| (self.names[plugin], &*self.plugins[plugin]);
        tiers.iter().map(|tier| tier.iter().map(named).collect()).collect()
    }

    fn intersect(
        &self,
        view: SessionView<'_>,
        point: Points,
        candidates: &[TaskId],
        answer: impl Fn(&dyn Plugin, &[TaskId]) -> VictimVote,
    ) -> VictimSelection {
        let tiers = self.named(point);
        let (mut left, mut filters, mut protector) = unprotected(view, &tiers, candidates);
        let is_share_filter = |plugin: &dyn Plugin| {
            let filter = plugin.as_victim_filter();
            point == Points::UNIFIED_EVICTABLE && filter.is_some_and(VictimFilter::is_share_filter)
        };
        let named = tiers.iter().flatten();
        for &(name, plugin) in named.filter(|(_, plugin)| is_share_filter(*plugin)) {
            filters.push(name);
            if let VictimVote::Victims(within_share) = answer(plugin, &left) {
                narrow(&mut protector, name, &mut left, within_share);
            }
        }
        let mut refused_by = protector.filter(|_| left.is_empty());
        let mut anyone_voted = false;
        for (tier, plugins) in tiers.iter().enumerate() {
            let is_voter =
                |plugin: &dyn Plugin| protective(plugin).is_none() && !is_share_filter(plugin);
            let voters = plugins.iter().filter(|(_, plugin)| is_voter(*plugin));
            let answers = voters.map(|&(name, plugin)| (name, answer(plugin, &left)));
            match tier_outcome(left.len(), answers) {
                VoteOutcome::Victims { victims, plugins, holder } => {
                    let rule = EvictionRule { tier: Some(tier + 1), plugins, filters, why: None };
                    return VictimSelection {
                        victims,
                        rule: Some(rule),
                        refused_by: protector.or(holder),
                    };
                }
                VoteOutcome::Nothing(plugin) => {
                    anyone_voted = true;
                    refused_by = refused_by.or(Some(plugin));
                }
                VoteOutcome::NoVote => {}
            }
        }
        // Only filters have an opinion, so the result is what they leave (D1: protective filters
        // need no vote of a tier).
        match !filters.is_empty() && !anyone_voted && !left.is_empty() {
            true => {
                let rule = EvictionRule { filters, ..EvictionRule::default() };
                VictimSelection { victims: left, rule: Some(rule), refused_by: protector }
            }
            false => VictimSelection { refused_by, ..VictimSelection::default() },
        }
    }
}

/// Extension points at which plugins vote on victims for one task.
const VICTIM_POINTS: &[Points] = &[Points::PREEMPTABLE, Points::RECLAIMABLE];

/// Returns the point at which plugins vote on victims for one task. Returns `None` if the question
/// is not for a single task.
fn point_of(question: Question) -> Option<Points> {
    match question {
        Question::Preempt(_) => Some(Points::PREEMPTABLE),
        Question::Reclaim(_) => Some(Points::RECLAIMABLE),
        Question::Gang(..) | Question::Shuffle => None,
    }
}

/// Returns the candidates that no protective filter removes, the names of the filters, and the
/// protector. The protector is the filter that removed the last candidate, or else the first one
/// that removed any. Budgets are applied after all other protection (D1: protective filters across
/// tiers).
fn unprotected(
    view: SessionView<'_>,
    plugins: &[Vec<Named<'_>>],
    candidates: &[TaskId],
) -> (Vec<TaskId>, Vec<&'static str>, Option<&'static str>) {
    let named = plugins.iter().flatten();
    let named = named.filter_map(|&(name, plugin)| Some((name, protective(plugin)?)));
    let mut filters: Vec<(&'static str, &dyn VictimFilter)> = Vec::new();
    for (name, filter) in named {
        if filters.iter().all(|(earlier, _)| *earlier != name) {
            filters.push((name, filter));
        }
    }
    let mut left = candidates.to_vec();
    let mut protector = None;
    for (name, filter) in &filters {
        let free = left.iter().copied().filter(|&task| !filter.protects(view, task)).collect();
        narrow(&mut protector, name, &mut left, free);
    }
    for (name, filter) in &filters {
        let within = filter.within_budget(view, &left);
        narrow(&mut protector, name, &mut left, within);
    }
    (left, filters.iter().map(|(name, _)| *name).collect(), protector)
}

/// Replaces the candidates by those that a filter leaves. The filter becomes the protector if it is
/// the first that removed any, or if it removed the last one.
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

/// Outcome of the vote in a tier.
enum VoteOutcome {
    /// All plugins abstain.
    NoVote,
    /// This plugin granted no victim, or none that the earlier plugins of the tier had granted.
    Nothing(&'static str),
    /// The victims, the plugins that granted them, and the first plugin that held candidates back.
    Victims { victims: Vec<TaskId>, plugins: Vec<&'static str>, holder: Option<&'static str> },
}

/// Returns the tasks that are in both lists.
fn in_both(first: Vec<TaskId>, second: &[TaskId]) -> Vec<TaskId> {
    // In most cases the second list is a subsequence of the first one.
    let mut rest = first.iter();
    if second.iter().all(|task| rest.any(|other| other == task)) {
        return second.to_vec();
    }
    let second: FxHashSet<TaskId> = second.iter().copied().collect();
    first.into_iter().filter(|task| second.contains(task)).collect()
}

/// Returns the intersection of the votes of a tier over `n_candidates` candidates. A5: an
/// intersection that becomes empty stays empty; later plugins are not called.
fn tier_outcome(
    n_candidates: usize,
    answers: impl Iterator<Item = (&'static str, VictimVote)>,
) -> VoteOutcome {
    let mut outcome = VoteOutcome::NoVote;
    for (name, vote) in answers {
        let VictimVote::Victims(list) = vote else { continue };
        let (victims, mut plugins, holder) = match outcome {
            VoteOutcome::Victims { victims: earlier, plugins, holder } => {
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
            return VoteOutcome::Nothing(name);
        }
        plugins.push(name);
        outcome = VoteOutcome::Victims { victims, plugins, holder };
    }
    outcome
}

fn concerns_none(plugin: &dyn Plugin, view: SessionView<'_>, candidates: &[TaskId]) -> bool {
    let keys = plugin.as_cache_keys();
    let is_free = |candidate| keys.is_some_and(|keys| !keys.concerns(view, candidate));
    candidates.iter().all(|&candidate| is_free(candidate))
}
