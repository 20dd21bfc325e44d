//! Call lists per extension point and the rules by which answers combine. Specification: core.md
//! 5.3-5.5, actions.md 2.3.

mod evict;
mod order;
mod score;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use vc_conf::{Config, Switch, Switches, Warning};
use vc_model::{Finding, JobId, NodeId, QueueId, Reservation, TaskId};
use vc_resource::Dim;

use crate::fast::{Reads, Test};
use crate::meter::{Meter, Stopwatch};
use crate::outbox::Outbox;
use crate::plugin::{
    Admission, Ask, Clock, Invalid, NodeRule, Plugin, PluginEntry, QueueShare, Vote,
};
use crate::points::{ALL_POINTS, Points};
use crate::quota::{Heads, Notice};
use crate::records::Records;
use crate::report::{PluginStage, PluginTime, QuotaUse, Timings};

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

    fn all(&self, point: Points) -> impl Iterator<Item = &dyn Plugin> {
        self.tiers(point).flatten()
    }

    /// Opens every plugin in tier order.
    pub fn open(&mut self, ask: Ask<'_>) {
        *self.scorer_failed.get_mut() = false;
        self.each_timed(PluginStage::Open, |plugin| plugin.open(ask));
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
        for &index in &self.handlers {
            self.plugins[index].on_deallocate(ask, task);
        }
    }

    /// Tells the handlers that a gate is lifted.
    pub fn on_gate_lifted(&mut self, ask: Ask<'_>, task: TaskId) {
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

    /// First failure wins; has no switch.
    ///
    /// # Errors
    /// Reason and message of the plugin that refuses the job.
    pub fn job_valid(&self, ask: Ask<'_>, job: JobId) -> Result<(), Invalid> {
        self.all(Points::JOB_VALID).try_for_each(|plugin| plugin.job_valid(ask, job))
    }

    /// All must agree, over all tiers.
    pub fn job_ready(&self, ask: Ask<'_>, job: JobId) -> bool {
        self.all(Points::JOB_READY).all(|plugin| plugin.job_ready(ask, job))
    }

    /// All must agree; a job without policies is asked as a job.
    pub fn sub_job_ready(&self, ask: Ask<'_>, job: JobId, sub_job: usize) -> bool {
        if ask.cluster.jobs[job].policies().is_empty() {
            return self.job_ready(ask, job);
        }
        self.all(Points::SUB_JOB_READY).all(|plugin| plugin.sub_job_ready(ask, job, sub_job))
    }

    /// Votes by tier.
    pub fn job_pipelined(&self, ask: Ask<'_>, job: JobId) -> bool {
        let tiers = self.tiers(Points::JOB_PIPELINED);
        vote(tiers.map(|tier| tier.map(|plugin| plugin.job_pipelined(ask, job))))
    }

    /// Votes by tier; a job without policies is asked as a job.
    pub fn sub_job_pipelined(&self, ask: Ask<'_>, job: JobId, sub_job: usize) -> bool {
        if ask.cluster.jobs[job].policies().is_empty() {
            return self.job_pipelined(ask, job);
        }
        let tiers = self.tiers(Points::SUB_JOB_PIPELINED);
        vote(tiers.map(|tier| tier.map(|plugin| plugin.sub_job_pipelined(ask, job, sub_job))))
    }

    /// The first tier with a plugin decides, all of its plugins must agree; nobody: not starving.
    pub fn job_starving(&self, ask: Ask<'_>, job: JobId) -> bool {
        let mut tiers = self.tiers(Points::JOB_STARVING).map(Iterator::peekable);
        let first = tiers.find_map(|mut tier| tier.peek().is_some().then_some(tier));
        first.is_some_and(|mut tier| tier.all(|plugin| plugin.job_starving(ask, job)))
    }

    /// Votes by tier; the rejecting plugin's message comes back.
    ///
    /// # Errors
    /// The message for the event on the PodGroup, if the plugin has one.
    pub fn job_enqueueable(&self, ask: Ask<'_>, job: JobId) -> Result<(), Option<String>> {
        for tier in self.tiers(Points::JOB_ENQUEUEABLE) {
            let mut permitted = false;
            for plugin in tier {
                match plugin.job_enqueueable_among(ask, job, self) {
                    Admission::Reject(message) => return Err(message),
                    Admission::Permit => permitted = true,
                    Admission::Abstain => {}
                }
            }
            if permitted {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The plugin that rejects the job, if one does (actions.md 10.6).
    pub fn not_admitted_by(&self, ask: Ask<'_>, job: JobId) -> Option<&'static str> {
        for tier in self.named(Points::JOB_ENQUEUEABLE) {
            let mut permitted = false;
            for (name, plugin) in tier {
                match plugin.job_enqueueable_among(ask, job, self) {
                    Admission::Reject(_) => return Some(name),
                    answer => permitted |= answer == Admission::Permit,
                }
            }
            if permitted {
                return None;
            }
        }
        None
    }

    /// Everyone is told.
    pub fn job_enqueued(&mut self, ask: Ask<'_>, job: JobId) {
        let tiers = self.calls.get(Points::JOB_ENQUEUED.index());
        for &plugin in tiers.into_iter().flatten().flatten() {
            self.plugins[plugin].job_enqueued(ask, job);
        }
    }

    /// Everyone is told to choose the nodes to hold. No action tells (core.md 5.3).
    pub fn reserved_nodes(&mut self, ask: Ask<'_>) {
        let tiers = self.calls.get(Points::RESERVED_NODES.index());
        for &plugin in tiers.into_iter().flatten().flatten() {
            self.plugins[plugin].reserved_nodes(ask);
        }
    }

    /// The first registered plugin decides. No action asks (core.md 5.3).
    pub fn target_job(&self, ask: Ask<'_>, jobs: &[JobId]) -> Option<JobId> {
        self.all(Points::TARGET_JOB).next()?.target_job(ask, jobs)
    }

    /// One is enough.
    pub fn overused(&self, ask: Ask<'_>, queue: QueueId) -> bool {
        self.all(Points::OVERUSED).any(|plugin| plugin.overused(ask, queue))
    }

    /// All must agree.
    ///
    /// # Errors
    /// The dimensions that the refusing plugin names (A20).
    pub fn allocatable(&self, ask: Ask<'_>, queue: QueueId, task: TaskId) -> Result<(), Vec<Dim>> {
        let refusing = |plugin: &&dyn Plugin| !plugin.allocatable(ask, queue, task);
        match self.all(Points::ALLOCATABLE).find(refusing) {
            Some(plugin) => Err(plugin.allocatable_lacks(ask, queue, task)),
            None => Ok(()),
        }
    }

    /// All must agree.
    pub fn preemptive(&self, ask: Ask<'_>, queue: QueueId, tasks: &[TaskId]) -> bool {
        self.all(Points::PREEMPTIVE).all(|plugin| plugin.preemptive(ask, queue, tasks))
    }

    /// First error wins.
    ///
    /// # Errors
    /// Why the task fits on no node.
    pub fn pre_predicate(&self, ask: Ask<'_>, task: TaskId) -> Result<(), String> {
        self.all(Points::PRE_PREDICATE).try_for_each(|plugin| plugin.pre_predicate(ask, task))
    }

    /// Findings of the first plugin that has any.
    pub fn predicate(&self, ask: Ask<'_>, task: TaskId, node: NodeId, findings: &mut Vec<Finding>) {
        self.node_rules(ask, task).find(node, findings);
    }

    /// Whether a plugin has findings that stand whatever a dry run removes, because its switches
    /// let it neither simulate removals nor additions (core.md 2.3).
    pub fn has_standing_findings(&self, ask: Ask<'_>, task: TaskId, node: NodeId) -> bool {
        let mut findings = Vec::new();
        for &plugin in &self.static_filters {
            self.plugins[plugin].predicate(ask, task, node, &mut findings);
        }
        !findings.is_empty()
    }

    /// Predicate for many nodes: what holds for all of them is worked out here, once.
    pub fn node_rules<'a>(&'a self, ask: Ask<'a>, task: TaskId) -> NodeRules<'a> {
        let plugins = self.all(Points::PREDICATE);
        NodeRules(plugins.map(|plugin| whole_rule(plugin, ask, task)).collect())
    }

    /// Predicate of all plugins as tests, each with the number of its plugin, and what cannot be
    /// remembered. `None`: of one it cannot be said what it reads.
    pub(crate) fn tests<'a>(
        &'a self,
        ask: Ask<'a>,
        task: TaskId,
    ) -> Option<(Vec<(usize, Test<'a>)>, NodeRules<'a>)> {
        let (mut tests, mut wide) = (Vec::new(), Vec::new());
        for (number, plugin) in self.all(Points::PREDICATE).enumerate() {
            match plugin.node_tests(ask, task) {
                Some(split) => {
                    tests.extend(split.tests.into_iter().map(|test| (number, test)));
                    wide.extend(split.wide);
                }
                None if plugin.reads(ask, task, Points::PREDICATE) == Reads::ClassAndNode => {
                    let rules = NodeRules(vec![whole_rule(plugin, ask, task)]);
                    tests.push((number, Test::Row(Box::new(move |node| rules.pass(node)))));
                }
                None => return None,
            }
        }
        Some((tests, NodeRules(wide)))
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

/// Predicate of all plugins for one task.
pub struct NodeRules<'a>(Vec<NodeRule<'a>>);

fn whole_rule<'a>(plugin: &'a dyn Plugin, ask: Ask<'a>, task: TaskId) -> NodeRule<'a> {
    plugin.node_rule(ask, task).unwrap_or_else(|| {
        Box::new(move |node, findings| plugin.predicate(ask, task, node, findings))
    })
}

impl NodeRules<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether nothing is found against the node.
    pub(crate) fn pass(&self, node: NodeId) -> bool {
        let mut findings = Vec::new();
        self.find(node, &mut findings);
        findings.is_empty()
    }

    /// Findings of the first plugin that has any.
    pub fn find(&self, node: NodeId, findings: &mut Vec<Finding>) {
        for rule in &self.0 {
            rule(node, findings);
            if !findings.is_empty() {
                return;
            }
        }
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

/// Any reject before a decision: no; a tier with a permit decides: yes; nobody: yes (core.md 5.3).
fn vote(tiers: impl Iterator<Item = impl Iterator<Item = Vote>>) -> bool {
    for tier in tiers {
        let mut permitted = false;
        for vote in tier {
            match vote {
                Vote::Reject => return false,
                Vote::Permit => permitted = true,
                Vote::Abstain => {}
            }
        }
        if permitted {
            return true;
        }
    }
    true
}
