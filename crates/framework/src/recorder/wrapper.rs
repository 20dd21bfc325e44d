//! [`RecordedPlugin`] as a plugin: rules are recorded, all other methods are forwarded.

use std::cmp::Ordering;
use std::sync::Arc;

use vc_model::{Finding, JobId, NodeId, QueueId, Reservation, TaskId, TaskStatus};
use vc_resource::{Dim, Fractional, Resource};

use super::{Asked, RecordedPlugin};
use crate::atom::Atom;
use crate::depends::Depends;
use crate::effect::Effect;
use crate::extender::ExtenderClient;
use crate::lens::RefusalRule;
use crate::limit::{LimitFact, QueueLimit};
use crate::node_score_cache::{ColumnFill, NodeTests, ScoreColumn};
use crate::outbox::Outbox;
use crate::plugin::*;
use crate::plugin_set::PluginSet;
use crate::points::Points;
use crate::quota::{Notice, PreemptionRequest, QueueHeads, QuotaRefusal, Surroundings, Targets};
use crate::records::Records;
use crate::report::{AccountUse, QuotaUse};

impl Plugin for RecordedPlugin {
    fn points(&self) -> Points {
        self.plugin.points()
    }
    fn depends(&self) -> Depends {
        self.plugin.depends()
    }
    fn as_cache_keys(&self) -> Option<&dyn CacheKeys> {
        self.plugin.as_cache_keys()
    }
    fn as_vectorized(&self) -> Option<&dyn VectorizedPlugin> {
        self.plugin.as_vectorized().is_some().then_some(self)
    }
    fn as_victim_filter(&self) -> Option<&dyn VictimFilter> {
        self.plugin.as_victim_filter().is_some().then_some(self)
    }
    fn as_topology(&self) -> Option<&dyn TopologyPlugin> {
        self.plugin.as_topology()
    }
    fn as_past_usage(&self) -> Option<&dyn PastUsage> {
        self.plugin.as_past_usage().is_some().then_some(self)
    }
    fn as_quota(&self) -> Option<&dyn QuotaPlugin> {
        self.plugin.as_quota().is_some().then_some(self)
    }
    fn as_quota_mut(&mut self) -> Option<&mut dyn QuotaPlugin> {
        self.plugin.as_quota().is_some().then_some(self)
    }
    fn memory(&self) -> Option<Box<dyn PluginMemory>> {
        self.plugin.memory()
    }
    fn take_over(&mut self, memory: EarlierMemory) {
        self.plugin.take_over(memory);
    }
    fn last_writes(&mut self, now_micros: i64) -> Vec<Effect> {
        self.plugin.last_writes(now_micros)
    }
    fn connect(&mut self, client: &Arc<dyn ExtenderClient>) {
        self.plugin.connect(client);
    }
    fn open(&mut self, view: SessionView<'_>) {
        self.plugin.open(view);
    }
    fn close(&mut self, view: SessionView<'_>, records: &Records, out: &mut Outbox) {
        self.plugin.close(view, records, out);
    }
    // Used for the status of queues only; not recorded.
    fn device_corrections(&self) -> Vec<(JobId, Resource)> {
        self.plugin.device_corrections()
    }
    fn on_allocate(&mut self, view: SessionView<'_>, task: TaskId) {
        self.plugin.on_allocate(view, task);
    }
    fn on_deallocate(&mut self, view: SessionView<'_>, task: TaskId) {
        self.plugin.on_deallocate(view, task);
    }
    fn on_gate_lifted(&mut self, view: SessionView<'_>, task: TaskId) {
        self.plugin.on_gate_lifted(view, task);
    }
    fn job_enqueued(&mut self, view: SessionView<'_>, job: JobId) {
        self.plugin.job_enqueued(view, job);
    }
    fn reserved_nodes(&mut self, view: SessionView<'_>) {
        self.plugin.reserved_nodes(view);
    }
    // Used for messages only, which are not cached; not recorded.
    fn queue_limit(
        &self,
        view: SessionView<'_>,
        queue: QueueId,
        tasks: &[TaskId],
    ) -> Option<QueueLimit> {
        self.plugin.queue_limit(view, queue, tasks)
    }
    fn admission_limit(&self, view: SessionView<'_>, job: JobId) -> Option<QueueLimit> {
        self.plugin.admission_limit(view, job)
    }
    // Used for answers only, which are not cached; not recorded.
    fn admission_facts(&self, view: SessionView<'_>, job: JobId) -> Vec<LimitFact> {
        self.plugin.admission_facts(view, job)
    }
    fn refusals<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> Option<RefusalRule<'a>> {
        self.plugin.refusals(view, task)
    }
    fn unmet_needs(&self, view: SessionView<'_>, task: TaskId) -> Option<Vec<Atom>> {
        self.plugin.unmet_needs(view, task)
    }
    fn order_value(&self, view: SessionView<'_>, job: JobId) -> Option<String> {
        self.plugin.order_value(view, job)
    }
    // No caller in any action; not recorded.
    fn cluster_order(&self, view: SessionView<'_>, l: &str, r: &str) -> Ordering {
        self.plugin.cluster_order(view, l, r)
    }
    fn target_job(&self, view: SessionView<'_>, jobs: &[JobId]) -> Option<JobId> {
        self.plugin.target_job(view, jobs)
    }
    // A plugin with BestNode switches the node score cache off; not recorded.
    fn best_node(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        scored: &[(NodeId, f64)],
    ) -> Option<NodeId> {
        self.plugin.best_node(view, task, scored)
    }

    fn reserve(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        node: NodeId,
        status: TaskStatus,
    ) -> Result<Option<Reservation>, String> {
        let asked = Asked { tasks: &[task], nodes: &[node], ..Asked::default() };
        self.query(&[Points::EVENT_HANDLERS], view, asked, |plugin| {
            plugin.reserve(view, task, node, status)
        })
    }
    fn queue_order(&self, view: SessionView<'_>, l: QueueId, r: QueueId) -> Ordering {
        let asked = Asked { queues: &[l, r], ..Asked::default() };
        self.query(&[Points::QUEUE_ORDER], view, asked, |plugin| plugin.queue_order(view, l, r))
    }
    fn job_order(&self, view: SessionView<'_>, l: JobId, r: JobId) -> Ordering {
        let asked = Asked { jobs: &[l, r], ..Asked::default() };
        self.query(&[Points::JOB_ORDER], view, asked, |plugin| plugin.job_order(view, l, r))
    }
    fn task_order(&self, view: SessionView<'_>, l: TaskId, r: TaskId) -> Ordering {
        let asked = Asked { tasks: &[l, r], ..Asked::default() };
        self.query(&[Points::TASK_ORDER], view, asked, |plugin| plugin.task_order(view, l, r))
    }
    fn sub_job_order(&self, view: SessionView<'_>, job: JobId, l: usize, r: usize) -> Ordering {
        let asked = Asked { jobs: &[job], ..Asked::default() };
        self.query(&[Points::SUB_JOB_ORDER], view, asked, |plugin| {
            plugin.sub_job_order(view, job, l, r)
        })
    }
    fn victim_queue_order(
        &self,
        view: SessionView<'_>,
        l: QueueId,
        r: QueueId,
        own: QueueId,
    ) -> Ordering {
        let asked = Asked { queues: &[l, r, own], ..Asked::default() };
        self.query(&[Points::VICTIM_QUEUE_ORDER], view, asked, |plugin| {
            plugin.victim_queue_order(view, l, r, own)
        })
    }
    fn job_valid(&self, view: SessionView<'_>, job: JobId) -> Result<(), JobInvalid> {
        let asked = Asked { jobs: &[job], ..Asked::default() };
        self.query(&[Points::JOB_VALID], view, asked, |plugin| plugin.job_valid(view, job))
    }
    fn job_ready(&self, view: SessionView<'_>, job: JobId) -> bool {
        let asked = Asked { jobs: &[job], ..Asked::default() };
        self.query(&[Points::JOB_READY], view, asked, |plugin| plugin.job_ready(view, job))
    }
    fn job_pipelined(&self, view: SessionView<'_>, job: JobId) -> Vote {
        let asked = Asked { jobs: &[job], ..Asked::default() };
        self.query(&[Points::JOB_PIPELINED], view, asked, |plugin| plugin.job_pipelined(view, job))
    }
    fn sub_job_ready(&self, view: SessionView<'_>, job: JobId, sub_job: usize) -> bool {
        let asked = Asked { jobs: &[job], ..Asked::default() };
        self.query(&[Points::SUB_JOB_READY], view, asked, |plugin| {
            plugin.sub_job_ready(view, job, sub_job)
        })
    }
    fn sub_job_pipelined(&self, view: SessionView<'_>, job: JobId, sub_job: usize) -> Vote {
        let asked = Asked { jobs: &[job], ..Asked::default() };
        self.query(&[Points::SUB_JOB_PIPELINED], view, asked, |plugin| {
            plugin.sub_job_pipelined(view, job, sub_job)
        })
    }
    fn job_starving(&self, view: SessionView<'_>, job: JobId) -> bool {
        let asked = Asked { jobs: &[job], ..Asked::default() };
        self.query(&[Points::JOB_STARVING], view, asked, |plugin| plugin.job_starving(view, job))
    }
    fn job_enqueueable(&self, view: SessionView<'_>, job: JobId) -> Admission {
        let asked = Asked { jobs: &[job], ..Asked::default() };
        self.query(&[Points::JOB_ENQUEUEABLE], view, asked, |plugin| {
            plugin.job_enqueueable(view, job)
        })
    }
    fn overused(&self, view: SessionView<'_>, queue: QueueId) -> bool {
        let asked = Asked { queues: &[queue], ..Asked::default() };
        self.query(&[Points::OVERUSED], view, asked, |plugin| plugin.overused(view, queue))
    }
    fn allocatable(&self, view: SessionView<'_>, queue: QueueId, task: TaskId) -> bool {
        let asked = Asked { tasks: &[task], queues: &[queue], ..Asked::default() };
        self.query(&[Points::ALLOCATABLE], view, asked, |plugin| {
            plugin.allocatable(view, queue, task)
        })
    }
    fn allocatable_lacks(&self, view: SessionView<'_>, queue: QueueId, task: TaskId) -> Vec<Dim> {
        let asked = Asked { tasks: &[task], queues: &[queue], ..Asked::default() };
        self.query(&[Points::ALLOCATABLE], view, asked, |plugin| {
            plugin.allocatable_lacks(view, queue, task)
        })
    }
    fn preemptive(&self, view: SessionView<'_>, queue: QueueId, tasks: &[TaskId]) -> bool {
        let asked = Asked { tasks, queues: &[queue], ..Asked::default() };
        self.query(&[Points::PREEMPTIVE], view, asked, |plugin| {
            plugin.preemptive(view, queue, tasks)
        })
    }
    fn preemptable(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        candidates: &[TaskId],
    ) -> VictimVote {
        let asked = Asked { tasks: &[task], candidates, ..Asked::default() };
        self.query(&[Points::PREEMPTABLE], view, asked, |plugin| {
            plugin.preemptable(view, task, candidates)
        })
    }
    fn reclaimable(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        candidates: &[TaskId],
    ) -> VictimVote {
        let asked = Asked { tasks: &[task], candidates, ..Asked::default() };
        self.query(&[Points::RECLAIMABLE], view, asked, |plugin| {
            plugin.reclaimable(view, task, candidates)
        })
    }
    fn unified_evictable(
        &self,
        view: SessionView<'_>,
        job: JobId,
        kind: GangEviction,
        candidates: &[TaskId],
    ) -> VictimVote {
        let asked = Asked { jobs: &[job], candidates, ..Asked::default() };
        self.query(&[Points::UNIFIED_EVICTABLE], view, asked, |plugin| {
            plugin.unified_evictable(view, job, kind, candidates)
        })
    }
    fn victim_tasks(&self, view: SessionView<'_>, running: &[TaskId]) -> Vec<TaskId> {
        let asked = Asked { candidates: running, ..Asked::default() };
        self.query(&[Points::VICTIM_TASKS], view, asked, |plugin| {
            plugin.victim_tasks(view, running)
        })
    }
    fn pre_predicate(&self, view: SessionView<'_>, task: TaskId) -> Result<(), String> {
        let asked = Asked { tasks: &[task], ..Asked::default() };
        self.query(&[Points::PRE_PREDICATE], view, asked, |plugin| plugin.pre_predicate(view, task))
    }
    fn predicate(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        node: NodeId,
        findings: &mut Vec<Finding>,
    ) {
        let asked = Asked { tasks: &[task], nodes: &[node], ..Asked::default() };
        self.query(&[Points::PREDICATE], view, asked, |plugin| {
            plugin.predicate(view, task, node, findings)
        })
    }
    fn predicate_all(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        nodes: &[NodeId],
    ) -> Option<Vec<Vec<Finding>>> {
        let asked = Asked { tasks: &[task], nodes, ..Asked::default() };
        self.query(&[Points::PREDICATE], view, asked, |plugin| {
            plugin.predicate_all(view, task, nodes)
        })
    }
    fn node_order(&self, view: SessionView<'_>, task: TaskId, node: NodeId) -> Result<f64, String> {
        let asked = Asked { tasks: &[task], nodes: &[node], ..Asked::default() };
        self.query(&[Points::NODE_ORDER], view, asked, |plugin| plugin.node_order(view, task, node))
    }
    fn batch_node_order(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        nodes: &[NodeId],
        out: &mut [f64],
    ) -> Result<(), String> {
        let asked = Asked { tasks: &[task], nodes, ..Asked::default() };
        self.query(&[Points::BATCH_NODE_ORDER], view, asked, |plugin| {
            plugin.batch_node_order(view, task, nodes, out)
        })
    }
    fn node_map(&self, view: SessionView<'_>, task: TaskId, node: NodeId) -> Result<f64, String> {
        let asked = Asked { tasks: &[task], nodes: &[node], ..Asked::default() };
        self.query(&[Points::NODE_MAP], view, asked, |plugin| plugin.node_map(view, task, node))
    }
    fn node_reduce(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        scores: &mut [i64],
    ) -> Result<(), String> {
        let asked = Asked { tasks: &[task], ..Asked::default() };
        self.query(&[Points::NODE_REDUCE], view, asked, |plugin| {
            plugin.node_reduce(view, task, scores)
        })
    }
}

impl VectorizedPlugin for RecordedPlugin {
    fn node_rule<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> Option<NodeRule<'a>> {
        let asked = Asked { tasks: &[task], ..Asked::default() };
        let prepare = |_: &dyn Plugin| self.plugin.as_vectorized()?.node_rule(view, task);
        let rule = self.query(&[Points::PREDICATE], view, asked, prepare)?;
        Some(Box::new(move |node, findings| {
            let asked = Asked { tasks: &[task], nodes: &[node], ..Asked::default() };
            self.query(&[Points::PREDICATE], view, asked, |_| rule(node, findings));
        }))
    }
    fn node_tests<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> Option<NodeTests<'a>> {
        self.plugin.as_vectorized()?.node_tests(view, task)
    }
    fn node_order_fill<'a>(
        &'a self,
        view: SessionView<'a>,
        task: TaskId,
    ) -> Option<ColumnFill<'a, f64>> {
        self.plugin.as_vectorized()?.node_order_fill(view, task)
    }
    fn columns<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> Option<Vec<ScoreColumn<'a>>> {
        self.plugin.as_vectorized()?.columns(view, task)
    }
}

/// Points at which a victim filter is called with candidates.
const FILTERS: &[Points] =
    &[Points::PREEMPTABLE, Points::RECLAIMABLE, Points::UNIFIED_EVICTABLE, Points::VICTIM_TASKS];

impl VictimFilter for RecordedPlugin {
    fn is_share_filter(&self) -> bool {
        self.plugin.as_victim_filter().is_some_and(VictimFilter::is_share_filter)
    }
    fn protects(&self, view: SessionView<'_>, candidate: TaskId) -> bool {
        let asked = Asked { candidates: &[candidate], ..Asked::default() };
        self.query(FILTERS, view, asked, |plugin| {
            plugin.as_victim_filter().is_some_and(|filter| filter.protects(view, candidate))
        })
    }
    fn within_budget(&self, view: SessionView<'_>, candidates: &[TaskId]) -> Vec<TaskId> {
        let asked = Asked { candidates, ..Asked::default() };
        self.query(FILTERS, view, asked, |plugin| match plugin.as_victim_filter() {
            Some(filter) => filter.within_budget(view, candidates),
            None => candidates.to_vec(),
        })
    }
}

impl QuotaPlugin for RecordedPlugin {
    fn on_notice(&mut self, view: SessionView<'_>, notice: &Notice<'_>) {
        if let Some(quota) = self.plugin.as_quota_mut() {
            quota.on_notice(view, notice);
        }
    }
    fn next_queue(
        &self,
        view: SessionView<'_>,
        heads: &QueueHeads<'_>,
        wanted: &dyn Fn(JobId) -> Vec<TaskId>,
    ) -> Option<QueueId> {
        let jobs: Vec<JobId> = heads.jobs.values().copied().collect();
        let queues: Vec<QueueId> = heads.jobs.keys().copied().collect();
        let asked = Asked { jobs: &jobs, queues: &queues, ..Asked::default() };
        self.query(&[Points::NEXT_QUEUE], view, asked, |plugin| {
            plugin.as_quota()?.next_queue(view, heads, wanted)
        })
    }
    fn job_enqueueable_among(
        &self,
        view: SessionView<'_>,
        job: JobId,
        plugins: &PluginSet,
    ) -> Admission {
        let asked = Asked { jobs: &[job], ..Asked::default() };
        self.query(&[Points::JOB_ENQUEUEABLE], view, asked, |plugin| match plugin.as_quota() {
            Some(quota) => quota.job_enqueueable_among(view, job, plugins),
            None => plugin.job_enqueueable(view, job),
        })
    }
    fn preempt_targets(
        &mut self,
        wanted: &PreemptionRequest<'_>,
        around: &mut dyn Surroundings,
    ) -> Result<Targets, QuotaRefusal> {
        match self.plugin.as_quota_mut() {
            Some(quota) => quota.preempt_targets(wanted, around),
            None => Ok(Targets::default()),
        }
    }
    fn weight_takers(&self) -> Vec<QueueId> {
        self.plugin.as_quota().map_or_else(Vec::new, QuotaPlugin::weight_takers)
    }
    fn divide_by(&mut self, view: SessionView<'_>, weights: Vec<Fractional>) {
        if let Some(quota) = self.plugin.as_quota_mut() {
            quota.divide_by(view, weights);
        }
    }
    fn queue_share(&self, view: SessionView<'_>, queue: QueueId) -> Option<QueueShare> {
        self.plugin.as_quota()?.queue_share(view, queue)
    }
    fn quota_use(&self, view: SessionView<'_>) -> Vec<QuotaUse> {
        self.plugin.as_quota().map_or_else(Vec::new, |quota| quota.quota_use(view))
    }
}

impl PastUsage for RecordedPlugin {
    fn account<'a>(&'a self, view: SessionView<'a>, job: JobId) -> Option<&'a Arc<str>> {
        self.plugin.as_past_usage()?.account(view, job)
    }
    fn usage_order(&self, view: SessionView<'_>, l: JobId, r: JobId) -> Ordering {
        let usage = self.plugin.as_past_usage();
        usage.map_or(Ordering::Equal, |usage| usage.usage_order(view, l, r))
    }
    fn queue_weights(&self, view: SessionView<'_>, takers: &[QueueId]) -> Option<Vec<Fractional>> {
        self.plugin.as_past_usage()?.queue_weights(view, takers)
    }
    fn account_use(&self, view: SessionView<'_>) -> Vec<AccountUse> {
        self.plugin.as_past_usage().map_or_else(Vec::new, |usage| usage.account_use(view))
    }
}
