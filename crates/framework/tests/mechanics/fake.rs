//! A plugin that answers what its arguments say. An argument with the name of a point is the answer
//! there: lists of pods are `a,b`, or `-` for none, or `abstain`; votes `permit`, `abstain`,
//! `reject`; values of nodes `n1:5,n2:7`. `counter` counts placements and sums their cpu;
//! `reserve` promises something along with each node.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use vc_conf::{PluginOption, Warning};
use vc_framework::{
    Admission, GangEviction, JobInvalid, Plugin, PluginEntry, Points, QueueShare, QuotaPlugin,
    SessionView, VictimFilter, VictimVote, Vote,
};
use vc_model::{
    Code, Finding, JobId, NodeId, QueueId, Reason, Reservation, ReservedClaim, TaskId, TaskStatus,
};
use vc_resource::{Dim, Fractional};

/// Plugins `a` to `f`.
pub(crate) const ALL: &[PluginEntry] = &[
    PluginEntry::new("a", Fake::build),
    PluginEntry::new("b", Fake::build),
    PluginEntry::new("c", Fake::build),
    PluginEntry::new("d", Fake::build),
    PluginEntry::new("e", Fake::build),
    PluginEntry::new("f", Fake::build),
];

struct Fake {
    answers: BTreeMap<String, String>,
    /// Placements less removals since the session began, and their cpu.
    n_placed: i64,
    cpu_milli: i64,
}

impl Fake {
    fn build(option: &PluginOption, _: &mut Vec<Warning>) -> Box<dyn Plugin> {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let entry = |(key, value): (&str, &serde_json::Value)| (key.to_owned(), text(value));
        let answers = option.arguments.iter().map(entry).collect();
        Box::new(Self { answers, n_placed: 0, cpu_milli: 0 })
    }

    fn answer(&self, point: &str) -> &str {
        self.answers.get(point).map(String::as_str).unwrap_or_default()
    }

    fn list(&self, point: &str) -> impl Iterator<Item = &str> {
        self.answer(point).split(',').filter(|name| *name != "-")
    }

    fn names(&self, point: &str, view: SessionView<'_>, task: TaskId) -> bool {
        self.list(point).any(|name| name == &*view.cluster.tasks[task].key.name)
    }

    /// The tasks named, in the order of the candidates.
    fn victim_vote(&self, point: &str, view: SessionView<'_>, candidates: &[TaskId]) -> VictimVote {
        if self.answer(point) == "abstain" {
            return VictimVote::Abstain;
        }
        let named = |task: &TaskId| self.names(point, view, *task);
        VictimVote::Victims(candidates.iter().copied().filter(named).collect())
    }

    fn vote(&self, point: &str) -> Vote {
        match self.answer(point) {
            "permit" => Vote::Permit,
            "reject" => Vote::Reject,
            _ => Vote::Abstain,
        }
    }

    fn of_node(&self, point: &str, view: SessionView<'_>, node: NodeId) -> Option<&str> {
        let pairs = self.list(point).filter_map(|pair| pair.split_once(':'));
        let mut pairs = pairs.filter(|(name, _)| *name == &*view.cluster.nodes[node].name);
        pairs.next().map(|(_, value)| value)
    }

    fn score(&self, point: &str, view: SessionView<'_>, node: NodeId) -> Result<f64, String> {
        match self.of_node(point, view, node) {
            Some("error") => Err("out of order".to_owned()),
            Some(value) => Ok(value.parse().expect("a score")),
            None => Ok(0.0),
        }
    }
}

const POINTS: &[(&str, Points)] = &[
    ("job_order", Points::JOB_ORDER),
    ("task_order", Points::TASK_ORDER),
    ("queue_order", Points::QUEUE_ORDER),
    ("victim_queue_order", Points::VICTIM_QUEUE_ORDER),
    ("job_valid", Points::JOB_VALID),
    ("job_ready", Points::JOB_READY),
    ("job_pipelined", Points::JOB_PIPELINED),
    ("sub_job_ready", Points::SUB_JOB_READY),
    ("sub_job_pipelined", Points::SUB_JOB_PIPELINED),
    ("job_starving", Points::JOB_STARVING),
    ("job_enqueueable", Points::JOB_ENQUEUEABLE),
    ("overused", Points::OVERUSED),
    ("allocatable", Points::ALLOCATABLE),
    ("preemptive", Points::PREEMPTIVE),
    ("preemptable", Points::PREEMPTABLE),
    ("reclaimable", Points::RECLAIMABLE),
    ("unified_evictable", Points::UNIFIED_EVICTABLE),
    ("victim_tasks", Points::VICTIM_TASKS),
    ("pre_predicate", Points::PRE_PREDICATE),
    ("predicate", Points::PREDICATE),
    ("node_order", Points::NODE_ORDER),
    ("batch_node_order", Points::BATCH_NODE_ORDER),
    ("best_node", Points::BEST_NODE),
    ("node_map", Points::NODE_MAP),
    ("node_reduce", Points::NODE_REDUCE),
    ("cluster_order", Points::CLUSTER_ORDER),
    ("target_job", Points::TARGET_JOB),
    ("reserved_nodes", Points::RESERVED_NODES),
    ("counter", Points::EVENT_HANDLERS),
    ("reserve", Points::EVENT_HANDLERS),
    ("protects", Points::PREEMPTABLE),
];

impl Plugin for Fake {
    fn points(&self) -> Points {
        let stated = POINTS.iter().filter(|(name, _)| self.answers.contains_key(*name));
        stated.fold(Points::NONE, |points, (_, point)| points.and(*point))
    }

    fn as_victim_filter(&self) -> Option<&dyn VictimFilter> {
        let is_filter =
            ["protects", "share_filter"].iter().any(|it| self.answers.contains_key(*it));
        is_filter.then_some(self)
    }

    fn as_quota(&self) -> Option<&dyn QuotaPlugin> {
        Some(self)
    }

    fn as_quota_mut(&mut self) -> Option<&mut dyn QuotaPlugin> {
        Some(self)
    }

    /// `reserve=fail`: no; else a claim of the name of the task is promised.
    fn reserve(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        _: NodeId,
        _: TaskStatus,
    ) -> Result<Option<Reservation>, String> {
        match self.answer("reserve") {
            "" => Ok(None),
            "fail" => Err("not here".to_owned()),
            _ => {
                let row = &view.cluster.tasks[task];
                let claim = ReservedClaim { key: row.key.clone(), uid: row.uid.clone() };
                Ok(Some(Reservation { provisions: vec![claim], ..Reservation::default() }))
            }
        }
    }

    fn open(&mut self, _: SessionView<'_>) {
        (self.n_placed, self.cpu_milli) = (0, 0);
    }

    fn on_allocate(&mut self, view: SessionView<'_>, task: TaskId) {
        self.n_placed += 1;
        self.cpu_milli += view.cluster.request(task).get(Dim::CPU);
    }

    fn on_deallocate(&mut self, view: SessionView<'_>, task: TaskId) {
        self.n_placed -= 1;
        self.cpu_milli -= view.cluster.request(task).get(Dim::CPU);
    }

    /// Higher priority first.
    fn job_order(&self, view: SessionView<'_>, l: JobId, r: JobId) -> Ordering {
        view.cluster.jobs[r].priority.cmp(&view.cluster.jobs[l].priority)
    }

    fn task_order(&self, view: SessionView<'_>, l: TaskId, r: TaskId) -> Ordering {
        view.cluster.tasks[r].priority.cmp(&view.cluster.tasks[l].priority)
    }

    fn queue_order(&self, view: SessionView<'_>, l: QueueId, r: QueueId) -> Ordering {
        view.cluster.queues[r].priority.cmp(&view.cluster.queues[l].priority)
    }

    fn victim_queue_order(
        &self,
        view: SessionView<'_>,
        l: QueueId,
        r: QueueId,
        _: QueueId,
    ) -> Ordering {
        view.cluster.queues[l].weight.cmp(&view.cluster.queues[r].weight)
    }

    fn job_valid(&self, _: SessionView<'_>, _: JobId) -> Result<(), JobInvalid> {
        let message = self.answer("job_valid").to_owned();
        Err(JobInvalid { reason: "Fake", message })
    }

    /// `min`: as a gang does.
    fn job_ready(&self, view: SessionView<'_>, job: JobId) -> bool {
        match self.answer("job_ready") {
            "min" => view.cluster.jobs[job].is_ready(),
            answer => answer == "true",
        }
    }

    fn job_pipelined(&self, _: SessionView<'_>, _: JobId) -> Vote {
        self.vote("job_pipelined")
    }

    fn sub_job_ready(&self, _: SessionView<'_>, _: JobId, _: usize) -> bool {
        self.answer("sub_job_ready") == "true"
    }

    fn sub_job_pipelined(&self, _: SessionView<'_>, _: JobId, _: usize) -> Vote {
        self.vote("sub_job_pipelined")
    }

    fn job_starving(&self, _: SessionView<'_>, _: JobId) -> bool {
        self.answer("job_starving") == "true"
    }

    fn job_enqueueable(&self, _: SessionView<'_>, _: JobId) -> Admission {
        match self.vote("job_enqueueable") {
            Vote::Permit => Admission::Permit,
            Vote::Abstain => Admission::Abstain,
            Vote::Reject => Admission::Reject(Some("no room".to_owned())),
        }
    }

    fn overused(&self, _: SessionView<'_>, _: QueueId) -> bool {
        self.answer("overused") == "true"
    }

    fn allocatable(&self, _: SessionView<'_>, _: QueueId, _: TaskId) -> bool {
        self.answer("allocatable") == "true"
    }

    fn allocatable_lacks(&self, _: SessionView<'_>, _: QueueId, _: TaskId) -> Vec<Dim> {
        vec![Dim::MEMORY]
    }

    fn preemptive(&self, _: SessionView<'_>, _: QueueId, _: &[TaskId]) -> bool {
        self.answer("preemptive") == "true"
    }

    fn preemptable(&self, view: SessionView<'_>, _: TaskId, candidates: &[TaskId]) -> VictimVote {
        self.victim_vote("preemptable", view, candidates)
    }

    fn reclaimable(&self, view: SessionView<'_>, _: TaskId, candidates: &[TaskId]) -> VictimVote {
        self.victim_vote("reclaimable", view, candidates)
    }

    fn unified_evictable(
        &self,
        view: SessionView<'_>,
        _: JobId,
        _: GangEviction,
        candidates: &[TaskId],
    ) -> VictimVote {
        self.victim_vote("unified_evictable", view, candidates)
    }

    fn victim_tasks(&self, view: SessionView<'_>, running: &[TaskId]) -> Vec<TaskId> {
        let named = |task: &TaskId| self.names("victim_tasks", view, *task);
        running.iter().copied().filter(named).collect()
    }

    fn pre_predicate(&self, _: SessionView<'_>, _: TaskId) -> Result<(), String> {
        Err(self.answer("pre_predicate").to_owned())
    }

    /// `n1:busy` can be cured by eviction, `n1:!taint` cannot, `n1:?broken` is an error.
    fn predicate(
        &self,
        view: SessionView<'_>,
        _: TaskId,
        node: NodeId,
        findings: &mut Vec<Finding>,
    ) {
        let Some(text) = self.of_node("predicate", view, node) else { return };
        let (code, text) = match text.split_at(1) {
            ("!", text) => (Code::Unresolvable, text),
            ("?", text) => (Code::Error, text),
            _ => (Code::Unschedulable, text),
        };
        findings.push(Finding { code, reason: Reason::Owned(text.into()) });
    }

    fn node_order(&self, view: SessionView<'_>, _: TaskId, node: NodeId) -> Result<f64, String> {
        self.score("node_order", view, node)
    }

    fn batch_node_order(
        &self,
        view: SessionView<'_>,
        _: TaskId,
        nodes: &[NodeId],
        out: &mut [f64],
    ) -> Result<(), String> {
        for (sum, &node) in out.iter_mut().zip(nodes) {
            *sum += self.score("batch_node_order", view, node)?;
        }
        Ok(())
    }

    fn node_map(&self, view: SessionView<'_>, _: TaskId, node: NodeId) -> Result<f64, String> {
        self.score("node_map", view, node)
    }

    /// Reverses the scores: the largest less each.
    fn node_reduce(&self, _: SessionView<'_>, _: TaskId, scores: &mut [i64]) -> Result<(), String> {
        if self.answer("node_reduce") == "error" {
            return Err("out of order".to_owned());
        }
        let most = scores.iter().copied().max().unwrap_or(0);
        scores.iter_mut().for_each(|score| *score = most - *score);
        Ok(())
    }

    /// The reverse of the names.
    fn cluster_order(&self, _: SessionView<'_>, l: &str, r: &str) -> Ordering {
        r.cmp(l)
    }

    fn target_job(&self, view: SessionView<'_>, jobs: &[JobId]) -> Option<JobId> {
        let named = |job: &&JobId| &*view.cluster.jobs[**job].key.name == self.answer("target_job");
        jobs.iter().find(named).copied()
    }

    fn reserved_nodes(&mut self, view: SessionView<'_>) {
        self.n_placed += view.info.nodes.len() as i64;
    }

    fn best_node(
        &self,
        view: SessionView<'_>,
        _: TaskId,
        scored: &[(NodeId, f64)],
    ) -> Option<NodeId> {
        let named = |node: NodeId| &*view.cluster.nodes[node].name == self.answer("best_node");
        scored.iter().map(|(node, _)| *node).find(|&node| named(node))
    }
}

impl VictimFilter for Fake {
    fn protects(&self, view: SessionView<'_>, candidate: TaskId) -> bool {
        self.names("protects", view, candidate)
    }

    fn is_share_filter(&self) -> bool {
        self.answers.contains_key("share_filter")
    }
}

impl QuotaPlugin for Fake {
    /// The counter, for tests to read.
    fn queue_share(&self, _: SessionView<'_>, _: QueueId) -> Option<QueueShare> {
        self.answers.contains_key("counter").then(|| {
            let mut deserved = Fractional::new();
            deserved.set(Dim::CPU, self.cpu_milli as f64);
            QueueShare { deserved, share: self.n_placed as f64 }
        })
    }
}
