//! The plugins of a configuration: call lists per extension point, and the rules that combine their
//! answers. Specification: core.md 5.3-5.5, actions.md 2.3.

mod evict;
mod filter;
mod judge;
mod order;
mod score;
mod topology;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use vc_conf::{Config, Switch, Switches, Warning};
use vc_model::{ChangeLog, JobId, NodeId, QueueId, Reservation, TaskId, TaskStatus};
use vc_resource::Resource;

use crate::depends::{Depends, Inputs, Signature};
use crate::effect::Effect;
use crate::extender::ExtenderClient;
use crate::lens::Lens;
use crate::meter::{Meter, Stopwatch};
use crate::outbox::Outbox;
use crate::plugin::{
    CacheKeys, Clock, EarlierMemory, PastUsage, Plugin, PluginEntry, QueueShare, QuotaPlugin,
    SessionView, VictimFilter,
};
use crate::points::{ALL_POINTS, Points};
use crate::quota::{Notice, QueueHeads};
use crate::recorder::recorded;
use crate::records::Records;
use crate::report::{AccountUse, PluginStage, PluginTime, QuotaUse, Timings};

pub use filter::NodeRules;
pub use judge::{EnqueueRefusal, ShareRefusal};
pub use order::JobDecider;
pub(crate) use order::in_session;

/// The plugins of a configuration. Tiers, switches and declared points are compiled once into flat
/// call lists.
#[derive(Default)]
pub struct PluginSet {
    plugins: Vec<Box<dyn Plugin>>,
    /// Name of each plugin.
    names: Vec<&'static str>,
    /// Declared inputs of each plugin.
    depends: Vec<Depends>,
    /// Plugins that may read more of a preemptor than its pod signature.
    beyond_signature: Vec<(usize, Signature)>,
    /// Plugins to call, in order, per point of [`ALL_POINTS`] and tier.
    calls: Vec<Vec<Vec<usize>>>,
    /// Plugins whose Predicate does not see what a dry run removes.
    static_filters: Vec<usize>,
    /// Plugins with event handlers, in registration order.
    handlers: Vec<usize>,
    /// Protective filters for groups of the preemptor's queue, then for groups of other queues;
    /// each name once.
    filters: [Vec<usize>; 2],
    /// True if a scorer failed in this session and was logged (A13: a scorer that fails counts 0).
    scorer_failed: AtomicBool,
    moved_queues: ChangeLog<QueueId>,
    /// Σ [`crate::CacheKeys::revision`] over the plugins, in this session.
    revision: u64,
    /// Plugins whose JobOrder reads more than the two jobs ([`Inputs::moves_jobs`]).
    job_movers: Vec<usize>,
    /// True if cached filter results and scores of a task depend on its queue.
    pub(crate) scores_by_queue: bool,
    pub(crate) meter: Meter,
    /// The atoms that a trial lifts. `None` outside of trials.
    pub(crate) lens: Option<Lens>,
}

/// An entry of a tier: the plugin object that answers for it, and the points that its switches
/// allow.
struct Position {
    instance: usize,
    allowed: Points,
}

impl PluginSet {
    /// Builds the plugins of a configuration. An unknown name is left out; `vc_conf` has warned
    /// about it.
    pub fn new(config: &Config, entries: &[PluginEntry]) -> (Self, Vec<Warning>) {
        let mut warnings = Vec::new();
        let mut plugins: Vec<Box<dyn Plugin>> = Vec::new();
        let mut names: Vec<&'static str> = Vec::new();
        let mut tiers: Vec<Vec<Position>> = Vec::new();
        for tier in &config.tiers {
            let mut positions = Vec::new();
            for option in &tier.plugins {
                let Some(entry) = entries.iter().find(|entry| entry.name() == option.name) else {
                    tracing::error!("Failed to get plugin {}.", option.name);
                    continue;
                };
                let allowed = allowed_points(option.switches);
                positions.push(Position { instance: plugins.len(), allowed });
                plugins.push(recorded(entry.name(), (entry.build)(option, &mut warnings)));
                names.push(entry.name());
            }
            tiers.push(positions);
        }
        // The last instance of a name answers at every position of that name (core.md 2.3).
        let answering = |instance: usize| {
            names.iter().rposition(|name| *name == names[instance]).unwrap_or(instance)
        };
        for position in tiers.iter_mut().flatten() {
            position.instance = answering(position.instance);
        }
        let of_point = |point: Points| call_list(&plugins, &tiers, point);
        let calls = ALL_POINTS.iter().map(|&(point, ..)| of_point(point)).collect();
        let filters = [Points::PREEMPTABLE, Points::RECLAIMABLE].map(|point| {
            let mut found: Vec<usize> = of_point(point).into_iter().flatten().collect();
            found.retain(|&plugin| protective(&*plugins[plugin]).is_some());
            let mut seen = BTreeSet::new();
            found.retain(|&plugin| seen.insert(names[plugin]));
            found
        });
        let is_static = |position: &&Position| {
            let stated = plugins[position.instance].points();
            position.allowed.has(Points::PREDICATE)
                && stated.has(Points::PREDICATE.and(Points::SIMULATION))
                && !position.allowed.has(Points::SIMULATION)
        };
        let static_filters = tiers.iter().flatten().filter(is_static);
        let static_filters = static_filters.map(|position| position.instance).collect();
        let handles = |&index: &usize| plugins[index].points().has(Points::EVENT_HANDLERS);
        let handlers = (0..plugins.len()).filter(handles).collect();
        let stated = plugins.iter().map(|plugin| plugin.depends().stated_by(plugin.points()));
        let depends: Vec<Depends> = stated.collect();
        let signatures = depends.iter().map(Depends::signature).enumerate();
        let beyond_signature = signatures.filter(|it| it.1 != Signature::Complete).collect();
        let rest = Self { depends, beyond_signature, ..Self::default() };
        let mut set = Self { plugins, names, calls, static_filters, handlers, filters, ..rest };
        set.scores_by_queue = set.read_queues_for_scores();
        let orders = set.calls[Points::JOB_ORDER.index()].iter().flatten();
        let moves = |&&plugin: &&usize| set.depends[plugin].at(Points::JOB_ORDER).moves_jobs();
        let job_movers: Vec<usize> = orders.filter(moves).copied().collect();
        set.job_movers = job_movers;
        (set, warnings)
    }

    /// Gives the plugins copies of the state that plugins of the same name in another set have.
    pub fn copy_memory(&mut self, of: &PluginSet) {
        self.copy_memory_if(of, |_| true);
    }

    /// Gives the plugins copies of the past usage and of the spent budgets that plugins of the same
    /// name in another set remember. Left out are the last rounds of tdm and rescheduling and the
    /// backoff of cohort: with them, evictions that are already decided would be refused.
    pub fn copy_victim_memory(&mut self, of: &PluginSet) {
        self.copy_memory_if(of, |plugin| {
            plugin.as_past_usage().is_some() || plugin.as_victim_filter().is_some()
        });
    }

    fn copy_memory_if(&mut self, of: &PluginSet, is_wanted: fn(&dyn Plugin) -> bool) {
        for (plugin, name) in self.plugins.iter_mut().zip(&self.names) {
            let same = of.names.iter().rposition(|other| other == name);
            let same = same.map(|same| &*of.plugins[same]).filter(|same| is_wanted(*same));
            if let Some(memory) = same.and_then(|same| same.memory()) {
                plugin.take_over(memory.into_earlier());
            }
        }
    }

    /// Returns the state of all plugins as bytes, by name.
    ///
    /// # Errors
    /// State cannot be stored: name of the plugin and why.
    pub fn store_memory(&self) -> Result<BTreeMap<String, Vec<u8>>, String> {
        let memories = self.plugins.iter().zip(&self.names);
        let stored = memories.filter_map(|(plugin, name)| {
            let stored = plugin.memory()?.store();
            Some(
                stored
                    .map(|bytes| (name.to_string(), bytes))
                    .map_err(|why| format!("{name}: {why}")),
            )
        });
        stored.collect()
    }

    /// Gives the plugins what [`PluginSet::store_memory`] has stored.
    pub fn restore_memory(&mut self, stored: &BTreeMap<String, Vec<u8>>) {
        for (plugin, name) in self.plugins.iter_mut().zip(&self.names) {
            if let Some(bytes) = stored.get(&**name) {
                plugin.take_over(EarlierMemory::stored(bytes.clone()));
            }
        }
    }

    /// Gives the plugins the way to services outside.
    pub fn connect(&mut self, client: &Arc<dyn ExtenderClient>) {
        self.plugins.iter_mut().for_each(|plugin| plugin.connect(client));
    }

    /// Returns the writes that keep the state of plugins over a restart, when the process stops.
    pub fn last_writes(&mut self, now_micros: i64) -> Vec<Effect> {
        self.plugins.iter_mut().flat_map(|plugin| plugin.last_writes(now_micros)).collect()
    }

    fn tiers(&self, point: Points) -> impl Iterator<Item = impl Iterator<Item = &dyn Plugin>> {
        let tiers = self.calls.get(point.index()).map_or(&[][..], Vec::as_slice);
        tiers.iter().map(|tier| tier.iter().map(|&plugin| &*self.plugins[plugin]))
    }

    pub(crate) fn all(&self, point: Points) -> impl Iterator<Item = &dyn Plugin> {
        self.tiers(point).flatten()
    }

    /// Returns the numbers of the plugins of a point, in the order in which they are asked.
    pub(crate) fn calls_of(&self, point: Points) -> impl Iterator<Item = &usize> {
        let tiers = self.calls.get(point.index()).map_or(&[][..], Vec::as_slice);
        tiers.iter().flatten()
    }

    pub(crate) fn plugin(&self, plugin: usize) -> &dyn Plugin {
        &*self.plugins[plugin]
    }

    pub(crate) fn name_of(&self, plugin: usize) -> &'static str {
        self.names[plugin]
    }

    /// Returns the plugins of a point by tier, each with the inputs that it declares at this point.
    fn tiers_with_inputs(
        &self,
        point: Points,
    ) -> impl Iterator<Item = impl Iterator<Item = (&dyn Plugin, Inputs)>> {
        let tiers = self.calls.get(point.index()).map_or(&[][..], Vec::as_slice);
        let declared =
            move |&plugin: &usize| (&*self.plugins[plugin], self.depends[plugin].at(point));
        tiers.iter().map(move |tier| tier.iter().map(declared))
    }

    /// Returns the plugins of a point over all tiers, each with the inputs that it declares at this
    /// point.
    pub(crate) fn all_with_inputs(
        &self,
        point: Points,
    ) -> impl Iterator<Item = (&dyn Plugin, Inputs)> {
        self.tiers_with_inputs(point).flatten()
    }

    /// Opens every plugin in tier order.
    pub fn open(&mut self, view: SessionView<'_>) {
        *self.scorer_failed.get_mut() = false;
        self.moved_queues.forget();
        self.each_timed(PluginStage::Open, |plugin| plugin.open(view));
        self.weigh_queues(view);
        let keys = self.plugins.iter().filter_map(|plugin| plugin.as_cache_keys());
        self.revision = keys.filter_map(CacheKeys::revision).sum();
    }

    /// Passes the weights of the first plugin that states QueueWeight to the plugins that divide the
    /// cluster by weight.
    fn weigh_queues(&mut self, view: SessionView<'_>) {
        if self.all(Points::QUEUE_WEIGHT).next().is_none() {
            return;
        }
        for place in 0..self.plugins.len() {
            let quota = self.plugins[place].as_quota();
            let takers = quota.map_or_else(Vec::new, QuotaPlugin::weight_takers);
            let weights = self
                .all(Points::QUEUE_WEIGHT)
                .filter_map(|plugin| plugin.as_past_usage())
                .find_map(|plugin| plugin.queue_weights(view, &takers));
            if let Some(weights) = weights.filter(|_| !takers.is_empty())
                && let Some(quota) = self.plugins[place].as_quota_mut()
            {
                quota.divide_by(view, weights);
            }
        }
    }

    /// Returns a number that differs from earlier sessions if a plugin may answer differently about
    /// the same rows.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Closes every plugin in tier order (core.md 5.1).
    pub fn close(&mut self, view: SessionView<'_>, records: &Records, out: &mut Outbox) {
        self.each_timed(PluginStage::Close, |plugin| plugin.close(view, records, out));
    }

    /// Returns by how much the shared devices of jobs differ from requests, of all plugins.
    pub fn device_corrections(&self) -> Vec<(JobId, Resource)> {
        self.plugins.iter().flat_map(|plugin| plugin.device_corrections()).collect()
    }

    /// True if JobValid, JobReady and JobStarving read the job's row alone, for all plugins.
    pub(crate) fn reads_job_rows_only(&self) -> bool {
        let points = [Points::JOB_VALID, Points::JOB_READY, Points::JOB_STARVING];
        points.iter().all(|&point| self.all_with_inputs(point).all(|(_, reads)| reads.is_by_job()))
    }

    /// True if SubJobReady and SubJobPipelined read the row of the job alone, for all plugins.
    pub(crate) fn reads_sub_job_rows_only(&self) -> bool {
        let points = [Points::SUB_JOB_READY, Points::SUB_JOB_PIPELINED];
        points.iter().all(|&point| self.all_with_inputs(point).all(|(_, reads)| reads.is_by_job()))
    }

    /// True if JobPipelined reads the job's row alone, for all plugins.
    pub fn pipelines_rows(&self) -> bool {
        self.all_with_inputs(Points::JOB_PIPELINED).all(|(_, reads)| reads.is_by_job())
    }

    /// True if no job, and no sub-job, counts as ready or pipelined below its minimum.
    pub fn require_minimum(&self) -> bool {
        let points = [
            Points::JOB_READY,
            Points::JOB_PIPELINED,
            Points::SUB_JOB_READY,
            Points::SUB_JOB_PIPELINED,
        ];
        points.into_iter().all(|point| {
            let tiers = self.calls.get(point.index());
            let mut plugins = tiers.into_iter().flatten().flatten().peekable();
            plugins.peek().is_some()
                && plugins.all(|&plugin| self.depends[plugin].is_no_below_minimum(point))
        })
    }

    /// True if answers about the HyperNodes of jobs that hold nothing are the same for jobs of one
    /// shape.
    pub(crate) fn order_hyper_nodes_by_shape(&self) -> bool {
        [Points::HYPER_NODE_GRADIENT, Points::HYPER_NODE_ORDER]
            .into_iter()
            .all(|point| self.all_with_inputs(point).all(|(_, reads)| reads.is_by_gang_shape()))
    }

    /// Returns what JobPipelined reads besides the job's row, one bit per plugin. Within a session,
    /// equal rows and bits give equal answers. Returns `None` if a plugin reads more.
    pub(crate) fn pipeline_marks(&self, view: SessionView<'_>, job: JobId) -> Option<u64> {
        self.all_with_inputs(Points::JOB_PIPELINED).try_fold(0_u64, |marks, (plugin, reads)| {
            let mark = match (reads.is_by_job(), reads.is_by_job_and_clock()) {
                (true, _) => false,
                (false, true) => plugin.as_cache_keys()?.pipeline_mark(view, job)?,
                (false, false) => return None,
            };
            Some(marks.checked_mul(2)? | u64::from(mark))
        })
    }

    /// Returns the first time at which a plugin may answer differently although no object changed.
    pub fn clock(&self, view: SessionView<'_>) -> Clock {
        let declared = self.plugins.iter().zip(&self.depends);
        let readers = declared.filter(|(_, depends)| depends.reads_clock());
        let clocks = readers.map(|(plugin, _)| clock(&**plugin, view));
        clocks.min().unwrap_or(Clock::Ignores)
    }

    /// Returns the first time at which an answer of this point may change although no object
    /// changed.
    pub(crate) fn clock_at(&self, view: SessionView<'_>, point: Points) -> Clock {
        let readers = self.all_with_inputs(point).filter(|(_, reads)| reads.has(Inputs::CLOCK));
        readers.map(|(plugin, _)| clock(plugin, view)).min().unwrap_or(Clock::Ignores)
    }

    /// Sets the clock for time measurements. With `None` nothing is measured.
    pub fn set_stopwatch(&mut self, stopwatch: Option<Stopwatch>) {
        self.meter.stopwatch = stopwatch;
    }

    /// Returns the times of plugins, filters and scores since the last call.
    pub fn take_times(&mut self) -> Timings {
        self.meter.take()
    }

    fn each_timed(&mut self, stage: PluginStage, mut call: impl FnMut(&mut dyn Plugin)) {
        let mut last = self.meter.now();
        for (plugin, name) in self.plugins.iter_mut().zip(&self.names) {
            call(&mut **plugin);
            let Some((start, end)) = last.zip(self.meter.now()) else { continue };
            let nanos = end.saturating_sub(start);
            self.meter.plugins.push(PluginTime { plugin: name, stage, nanos });
            last = Some(end);
        }
    }

    /// Calls the event handlers after a placement.
    pub fn on_allocate(&mut self, view: SessionView<'_>, task: TaskId) {
        self.note_moved(view, task);
        for &index in &self.handlers {
            self.plugins[index].on_allocate(view, task);
        }
    }

    /// Returns what to reserve for the task with a node: what all handlers reserve together, unless
    /// one refuses.
    ///
    /// # Errors
    /// Why the task cannot have the node.
    pub fn reserve(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        node: NodeId,
        status: TaskStatus,
    ) -> Result<Option<Reservation>, String> {
        let mut promise: Option<Reservation> = None;
        for &index in &self.handlers {
            let reserved = self.plugins[index].reserve(view, task, node, status);
            if let Some(next) = self.unless_lifted(reserved)? {
                promise = Some(match promise {
                    Some(earlier) => earlier.merge(next),
                    None => next,
                });
            }
        }
        Ok(promise)
    }

    /// Turns a refusal into a reservation of nothing, if a trial lifts a filter or a need.
    fn unless_lifted(
        &self,
        reserved: Result<Option<Reservation>, String>,
    ) -> Result<Option<Reservation>, String> {
        match &self.lens {
            Some(lens) if lens.lifts_filters() => Ok(reserved.unwrap_or_default()),
            _ => reserved,
        }
    }

    /// Calls the event handlers after a removal.
    pub fn on_deallocate(&mut self, view: SessionView<'_>, task: TaskId) {
        self.note_moved(view, task);
        for &index in &self.handlers {
            self.plugins[index].on_deallocate(view, task);
        }
    }

    fn note_moved(&mut self, view: SessionView<'_>, task: TaskId) {
        if let Some(job) = view.cluster.tasks[task].job {
            self.moved_queues.push(view.cluster.jobs[job].queue);
        }
    }

    /// Returns the log of queues whose tasks were placed or removed. At the start of a session
    /// every queue counts as changed.
    pub fn moved_queues(&self) -> &ChangeLog<QueueId> {
        &self.moved_queues
    }

    /// Calls the event handlers before a gate is removed.
    pub fn on_gate_lifted(&mut self, view: SessionView<'_>, task: TaskId) {
        self.note_moved(view, task);
        for &index in &self.handlers {
            self.plugins[index].on_gate_lifted(view, task);
        }
    }

    /// Passes a notice of an action to the event handlers.
    pub fn on_notice(&mut self, view: SessionView<'_>, notice: &Notice<'_>) {
        for &index in &self.handlers {
            if let Some(quota) = self.plugins[index].as_quota_mut() {
                quota.on_notice(view, notice);
            }
        }
    }

    /// Returns the next queue by the first plugin that states NextQueue. Returns `None` if
    /// QueueOrder decides.
    pub fn next_queue(
        &self,
        view: SessionView<'_>,
        heads: &QueueHeads<'_>,
        wanted: &dyn Fn(JobId) -> Vec<TaskId>,
    ) -> Option<QueueId> {
        self.all(Points::NEXT_QUEUE).next()?.as_quota()?.next_queue(view, heads, wanted)
    }

    /// True if a plugin states NextQueue.
    pub fn has_next_queue(&self) -> bool {
        self.all(Points::NEXT_QUEUE).next().is_some()
    }

    /// True if a plugin states PreemptTargets.
    pub fn has_targets(&self) -> bool {
        self.all(Points::PREEMPT_TARGETS).next().is_some()
    }

    /// Takes the first plugin that decides targets out and puts another one in its place. Returns
    /// it with its position.
    pub(crate) fn lend(&mut self, instead: Box<dyn Plugin>) -> Option<(usize, Box<dyn Plugin>)> {
        let tiers = self.calls.get(Points::PREEMPT_TARGETS.index())?;
        let &place = tiers.iter().flatten().next()?;
        Some((place, std::mem::replace(&mut self.plugins[place], instead)))
    }

    /// Puts a plugin back that [`PluginSet::lend`] has taken out.
    pub(crate) fn take_back(&mut self, place: usize, plugin: Box<dyn Plugin>) {
        self.plugins[place] = plugin;
    }

    /// Returns the clock, and the counter for the time of quota searches.
    pub(crate) fn search_meter(&mut self) -> (Option<Stopwatch>, &mut u64) {
        (self.meter.stopwatch, &mut self.meter.quota_search)
    }

    /// Returns the node of the first plugin that insists on one.
    pub fn best_node(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        scored: &[(NodeId, f64)],
    ) -> Option<NodeId> {
        self.all(Points::BEST_NODE).find_map(|plugin| plugin.best_node(view, task, scored))
    }

    /// Returns how jobs are compared by past usage. Returns `None` if no plugin remembers usage.
    pub fn usage_order<'s>(
        &'s self,
        view: SessionView<'s>,
    ) -> Option<impl Fn(JobId, JobId) -> Ordering + 's> {
        let plugin = self.past_usage()?;
        Some(move |l, r| plugin.usage_order(view, l, r))
    }

    /// Returns the share of a queue by the first plugin that divides the cluster.
    pub fn queue_share(&self, view: SessionView<'_>, queue: QueueId) -> Option<QueueShare> {
        self.quota_plugins().find_map(|plugin| plugin.queue_share(view, queue))
    }

    /// Returns the quota trees of all plugins that have some.
    pub fn quota_use(&self, view: SessionView<'_>) -> Vec<QuotaUse> {
        self.quota_plugins().flat_map(|plugin| plugin.quota_use(view)).collect()
    }

    /// Returns the usage of accounts of all plugins that remember some.
    pub fn account_use(&self, view: SessionView<'_>) -> Vec<AccountUse> {
        self.past_usages().flat_map(|plugin| plugin.account_use(view)).collect()
    }

    /// True if a plugin remembers usage.
    pub fn remembers_usage(&self) -> bool {
        self.past_usage().is_some()
    }

    /// Returns the first plugin that remembers usage.
    pub(crate) fn past_usage(&self) -> Option<&dyn PastUsage> {
        self.past_usages().next()
    }

    fn past_usages(&self) -> impl Iterator<Item = &dyn PastUsage> {
        self.plugins.iter().filter_map(|plugin| plugin.as_past_usage())
    }

    fn quota_plugins(&self) -> impl Iterator<Item = &dyn QuotaPlugin> {
        self.plugins.iter().filter_map(|plugin| plugin.as_quota())
    }
}

/// Returns the plugin as a protective filter, if it is one.
fn protective(plugin: &dyn Plugin) -> Option<&dyn VictimFilter> {
    plugin.as_victim_filter().filter(|filter| !filter.is_share_filter())
}

/// True if the plugin has a revision for answers about nodes that the time changes.
fn has_revision(plugin: &dyn Plugin) -> bool {
    plugin.as_cache_keys().is_some_and(|keys| keys.revision().is_some())
}

/// Returns when the time may change an answer of a plugin that reads it.
fn clock(plugin: &dyn Plugin, view: SessionView<'_>) -> Clock {
    plugin.as_cache_keys().map_or(Clock::Reads, |keys| keys.clock(view))
}

/// Returns the points that the switches of an entry allow.
pub(crate) fn allowed_points(switches: Switches) -> Points {
    let on = |guard: Option<Switch>| guard.is_none_or(|switch| switches.on(switch));
    let simulates = switches.on(Switch::Preemptable) || switches.on(Switch::Allocatable);
    let allowed = ALL_POINTS.iter().filter(|&&(point, _, guard)| match point {
        Points::SIMULATION => simulates,
        _ => on(guard),
    });
    allowed.fold(Points::NONE, |points, &(point, ..)| points.and(point))
}

fn call_list(
    plugins: &[Box<dyn Plugin>],
    tiers: &[Vec<Position>],
    point: Points,
) -> Vec<Vec<usize>> {
    let asked = |position: &&Position| {
        position.allowed.has(point) && plugins[position.instance].points().has(point)
    };
    let of_tier = |tier: &Vec<Position>| -> Vec<usize> {
        tier.iter().filter(asked).map(|position| position.instance).collect()
    };
    tiers.iter().map(of_tier).collect()
}
