//! Call lists per extension point and the rules by which answers combine. Specification: core.md
//! 5.3-5.5, actions.md 2.3.

mod evict;
mod filter;
mod judge;
mod order;
mod score;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use vc_conf::{Config, Switch, Switches, Warning};
use vc_model::{ChangeLog, JobId, NodeId, QueueId, Reservation, TaskId};

use crate::meter::{Meter, Stopwatch};
use crate::outbox::Outbox;
use crate::plugin::{Ask, Clock, Plugin, PluginEntry, QueueShare};
use crate::points::{ALL_POINTS, Points};
use crate::quota::{Heads, Notice};
use crate::records::Records;
use crate::report::{PluginStage, PluginTime, QuotaUse, Timings};

pub use filter::NodeRules;
pub use judge::Refusal;
pub(crate) use order::in_session;

/// Built once per configuration: tiers, switches and declared points become flat call lists.
#[derive(Default)]
pub struct Dispatch {
    plugins: Vec<Box<dyn Plugin>>,
    /// Of the plugins.
    names: Vec<&'static str>,
    /// Per point of [`ALL_POINTS`], per tier: the plugins to ask, in order.
    calls: Vec<Vec<Vec<usize>>>,
    /// Plugins whose Predicate does not see what a dry run removes.
    static_filters: Vec<usize>,
    /// Plugins to tell about placements, in registration order.
    handlers: Vec<usize>,
    /// Protective filters of groups of the preemptor's queue, then of others; each name once.
    filters: [Vec<usize>; 2],
    /// A scorer has failed in this session and was logged (A13).
    scorer_failed: AtomicBool,
    moved_queues: ChangeLog<QueueId>,
    /// Σ [`Plugin::edition`] in this session.
    edition: u64,
    pub(crate) meter: Meter,
}

/// One entry of a tier: the instance that answers for it, and what its switches allow.
struct Position {
    instance: usize,
    allowed: Points,
}

impl Dispatch {
    /// Builds the plugins of a configuration. A name that is not built is left out; `vc_conf` has
    /// warned.
    pub fn new(config: &Config, entries: &[PluginEntry]) -> (Self, Vec<Warning>) {
        let mut warnings = Vec::new();
        let mut plugins: Vec<Box<dyn Plugin>> = Vec::new();
        let mut names: Vec<&'static str> = Vec::new();
        let mut tiers: Vec<Vec<Position>> = Vec::new();
        for tier in &config.tiers {
            let mut positions = Vec::new();
            for option in &tier.plugins {
                let Some(entry) = entries.iter().find(|entry| entry.name == option.name) else {
                    tracing::error!("Failed to get plugin {}.", option.name);
                    continue;
                };
                let allowed = allowed_points(option.switches);
                positions.push(Position { instance: plugins.len(), allowed });
                plugins.push((entry.build)(option, &mut warnings));
                names.push(entry.name);
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
            found.retain(|&plugin| plugins[plugin].is_victim_filter());
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
        let rest = Self::default();
        (Self { plugins, names, calls, static_filters, handlers, filters, ..rest }, warnings)
    }

    /// Takes what the plugins of the configuration before must not forget.
    pub fn succeed(&mut self, mut earlier: Dispatch) {
        for (plugin, name) in self.plugins.iter_mut().zip(&self.names) {
            let same = earlier.names.iter().rposition(|other| other == name);
            if let Some(memory) = same.and_then(|same| earlier.plugins[same].hand_over()) {
                plugin.take_over(memory);
            }
        }
    }

    fn tiers(&self, point: Points) -> impl Iterator<Item = impl Iterator<Item = &dyn Plugin>> {
        let tiers = self.calls.get(point.index()).map_or(&[][..], Vec::as_slice);
        tiers.iter().map(|tier| tier.iter().map(|&plugin| &*self.plugins[plugin]))
    }

    pub(crate) fn all(&self, point: Points) -> impl Iterator<Item = &dyn Plugin> {
        self.tiers(point).flatten()
    }

    /// Opens every plugin in tier order.
    pub fn open(&mut self, ask: Ask<'_>) {
        *self.scorer_failed.get_mut() = false;
        self.moved_queues.forget();
        self.each_timed(PluginStage::Open, |plugin| plugin.open(ask));
        self.edition = self.plugins.iter().map(|plugin| plugin.edition()).sum();
    }

    /// Another number than in earlier sessions if a plugin answers otherwise about the same rows.
    pub(crate) fn edition(&self) -> u64 {
        self.edition
    }

    /// Closes every plugin in tier order (core.md 5.1).
    pub fn close(&mut self, ask: Ask<'_>, records: &Records, out: &mut Outbox) {
        self.each_timed(PluginStage::Close, |plugin| plugin.close(ask, records, out));
    }

    /// Whether all plugins that judge jobs read their rows alone.
    pub(crate) fn judges_rows(&self) -> bool {
        let points = [Points::JOB_VALID, Points::JOB_READY, Points::JOB_STARVING];
        points.iter().all(|&point| self.all(point).all(|plugin| plugin.judges_rows()))
    }

    /// Whether all plugins that let jobs wait for room read their rows alone.
    pub fn pipelines_rows(&self) -> bool {
        self.all(Points::JOB_PIPELINED).all(|plugin| plugin.judges_rows())
    }

    /// What JobPipelined reads besides the row of the job, a bit for each plugin; its answer about equal
    /// rows is the same in one session where this is. `None`: it reads more.
    pub(crate) fn pipeline_marks(&self, ask: Ask<'_>, job: JobId) -> Option<u64> {
        self.all(Points::JOB_PIPELINED).try_fold(0_u64, |marks, plugin| {
            let mark = plugin.pipeline_mark(ask, job)?;
            Some(marks.checked_mul(2)? | u64::from(mark))
        })
    }

    /// The first time at which a plugin may answer otherwise although no object has changed.
    pub fn clock(&self, ask: Ask<'_>) -> Clock {
        let clocks = self.plugins.iter().map(|plugin| plugin.clock(ask));
        clocks.min().unwrap_or(Clock::Ignores)
    }

    /// From now on times are taken by this clock, or none are.
    pub fn set_stopwatch(&mut self, stopwatch: Option<Stopwatch>) {
        self.meter.stopwatch = stopwatch;
    }

    /// The times of plugins, filters and scores since they were last taken.
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

    /// Tells the handlers of a placement.
    pub fn on_allocate(&mut self, ask: Ask<'_>, task: TaskId) {
        self.note_moved(ask, task);
        for &index in &self.handlers {
            self.plugins[index].on_allocate(ask, task);
        }
    }

    /// What the task is promised along with a node; the first handler that promises something
    /// decides.
    ///
    /// # Errors
    /// It cannot have the node.
    pub fn reserve(
        &self,
        ask: Ask<'_>,
        task: TaskId,
        node: NodeId,
    ) -> Result<Option<Reservation>, String> {
        let mut promises =
            self.handlers.iter().map(|&index| self.plugins[index].reserve(ask, task, node));
        promises.find(|promise| !matches!(promise, Ok(None))).unwrap_or(Ok(None))
    }

    /// Tells the handlers of a removal.
    pub fn on_deallocate(&mut self, ask: Ask<'_>, task: TaskId) {
        self.note_moved(ask, task);
        for &index in &self.handlers {
            self.plugins[index].on_deallocate(ask, task);
        }
    }

    fn note_moved(&mut self, ask: Ask<'_>, task: TaskId) {
        if let Some(job) = ask.cluster.tasks[task].job {
            self.moved_queues.push(ask.cluster.jobs[job].queue);
        }
    }

    /// Queues whose tasks were placed or removed. When a session begins, any may have changed.
    pub fn moved_queues(&self) -> &ChangeLog<QueueId> {
        &self.moved_queues
    }

    /// Tells the handlers that a gate is lifted.
    pub fn on_gate_lifted(&mut self, ask: Ask<'_>, task: TaskId) {
        self.note_moved(ask, task);
        for &index in &self.handlers {
            self.plugins[index].on_gate_lifted(ask, task);
        }
    }

    /// Tells the handlers what an action does.
    pub fn on_notice(&mut self, ask: Ask<'_>, notice: &Notice<'_>) {
        for &index in &self.handlers {
            self.plugins[index].on_notice(ask, notice);
        }
    }

    /// The first plugin that states the point decides; `None`: QueueOrder does.
    pub fn next_queue(
        &self,
        ask: Ask<'_>,
        heads: &Heads<'_>,
        wanted: &dyn Fn(JobId) -> Vec<TaskId>,
    ) -> Option<QueueId> {
        self.all(Points::NEXT_QUEUE).next()?.next_queue(ask, heads, wanted)
    }

    /// Whether a plugin says which queue is next.
    pub fn has_next_queue(&self) -> bool {
        self.all(Points::NEXT_QUEUE).next().is_some()
    }

    /// Whether a plugin decides which groups go for a job.
    pub fn has_targets(&self) -> bool {
        self.all(Points::PREEMPT_TARGETS).next().is_some()
    }

    /// Takes the first plugin that decides targets out and leaves another one in its place.
    pub(crate) fn lend(&mut self, instead: Box<dyn Plugin>) -> Option<(usize, Box<dyn Plugin>)> {
        let tiers = self.calls.get(Points::PREEMPT_TARGETS.index())?;
        let &place = tiers.iter().flatten().next()?;
        Some((place, std::mem::replace(&mut self.plugins[place], instead)))
    }

    /// Puts it back.
    pub(crate) fn take_back(&mut self, place: usize, plugin: Box<dyn Plugin>) {
        self.plugins[place] = plugin;
    }

    /// The clock by which times are taken, and where those of quota searches go.
    pub(crate) fn search_meter(&mut self) -> (Option<Stopwatch>, &mut u64) {
        (self.meter.stopwatch, &mut self.meter.quota_search)
    }

    /// The first plugin that names a node.
    pub fn best_node(
        &self,
        ask: Ask<'_>,
        task: TaskId,
        scored: &[(NodeId, f64)],
    ) -> Option<NodeId> {
        self.all(Points::BEST_NODE).find_map(|plugin| plugin.best_node(ask, task, scored))
    }

    /// Share of a queue by the first plugin that divides the cluster.
    pub fn queue_share(&self, ask: Ask<'_>, queue: QueueId) -> Option<QueueShare> {
        self.plugins.iter().find_map(|plugin| plugin.queue_share(ask, queue))
    }

    /// The quota trees of all plugins that have some.
    pub fn quota_use(&self, ask: Ask<'_>) -> Vec<QuotaUse> {
        self.plugins.iter().flat_map(|plugin| plugin.quota_use(ask)).collect()
    }
}

/// What the switches of an entry allow.
fn allowed_points(switches: Switches) -> Points {
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
