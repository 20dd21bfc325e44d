//! Plugin `nodegroup`: the affinity of a queue says which groups of nodes its pods may use and which
//! ones they prefer. An annotation limits what the queue may use of each group.
//! Specification: plugins-nodes.md 11.

mod limits;

use std::sync::Arc;

use vc_conf::{Argument, PluginOption, Switch, Warning};
use vc_framework::{
    CacheKeys, ColumnFill, Depends, EarlierMemory, Inputs, NodeRule, NodeTest, NodeTests, Outbox,
    Plugin, PluginEntry, PluginMemory, Points, Records, SessionView, VectorizedPlugin,
};
use vc_model::{
    Code, Finding, NodeGroupAffinity, NodeGroupLimits, NodeId, QueueId, Reason, TaskId,
};

use limits::{GroupUsage, UnreadableLimits};

pub(crate) const ENTRY: PluginEntry =
    PluginEntry::new("nodegroup", build).arguments(&[&STRICT, &PREFERRED_ORDER]);

const STRICT: Argument<bool> =
    Argument::new("strict", true, "false: queues without affinity may use nodes without a group");
const PREFERRED_ORDER: Argument<bool> =
    Argument::new("enablePreferredOrder", false, "earlier preferred groups score higher");

/// Label of a node with the name of its group.
const GROUP: &str = "volcano.sh/nodegroup-name";

const NO_GROUP: &str = "node group label not found";
const NO_RULES: &str = "node group affinity not specified";
const NOT_ALLOWED: &str = "node does not satisfy the node group affinity";
const EXCEEDED: &str = "node group resource limit exceeded";
const UNREADABLE: &str = "node group resource limit annotation invalid";

const REQUIRED: f64 = 100.0;
const PREFERRED: f64 = 50.0;
const AVOIDED: f64 = -1.0;

struct NodeGroup {
    strict: bool,
    preferred_order: bool,
    /// `enableHierarchy`: a queue without affinity has that of its nearest ancestor with one.
    hierarchy: bool,
    usage: GroupUsage,
    unreadable: UnreadableLimits,
    /// Version of the queue objects in the last session. `None` before the first session.
    queue_version: Option<u64>,
    /// Number of sessions in which a queue object had changed.
    revision: u64,
}

fn build(option: &PluginOption, warnings: &mut Vec<Warning>) -> Box<dyn Plugin> {
    Box::new(NodeGroup {
        strict: STRICT.read(&option.arguments, warnings),
        preferred_order: PREFERRED_ORDER.read(&option.arguments, warnings),
        hierarchy: option.switches.on(Switch::Hierarchy),
        usage: GroupUsage::default(),
        unreadable: UnreadableLimits::default(),
        queue_version: None,
        revision: 0,
    })
}

/// The queue of the pod, the objects of its ancestors, and the label of the node.
const RULES: Inputs = Inputs::OWN_QUEUE.and(Inputs::QUEUE_OBJECT).and(Inputs::NODE_OBJECT);

/// The state that each extension point reads.
const READS: &[(Points, Inputs)] = &[
    (Points::PREDICATE, RULES.and(Inputs::POD_SHAPE).and(Inputs::OWN_QUEUE_USAGE)),
    (Points::NODE_ORDER, RULES),
    (Points::EVENT_HANDLERS, Inputs::NONE),
];

impl Plugin for NodeGroup {
    fn points(&self) -> Points {
        Points::PREDICATE.and(Points::NODE_ORDER).and(Points::EVENT_HANDLERS)
    }

    fn depends(&self) -> Depends {
        Depends::of(READS)
    }

    fn as_cache_keys(&self) -> Option<&dyn CacheKeys> {
        Some(self)
    }

    fn as_vectorized(&self) -> Option<&dyn VectorizedPlugin> {
        Some(self)
    }

    /// Returns what is reported, so that nothing is reported again.
    fn memory(&self) -> Option<Box<dyn PluginMemory>> {
        Some(Box::new(self.unreadable.known.clone()))
    }

    fn take_over(&mut self, memory: EarlierMemory) {
        self.unreadable.known = memory.read().unwrap_or_default();
    }

    fn open(&mut self, view: SessionView<'_>) {
        let version = Some(view.cluster.queue_version());
        if self.queue_version != version {
            self.queue_version = version;
            self.revision += 1;
            self.unreadable.renew(view);
        }
        self.usage.open(view);
    }

    fn close(&mut self, view: SessionView<'_>, _records: &Records, out: &mut Outbox) {
        self.unreadable.report(view, out);
    }

    fn on_allocate(&mut self, view: SessionView<'_>, task: TaskId) {
        self.usage.add(view, task);
    }

    fn on_deallocate(&mut self, view: SessionView<'_>, task: TaskId) {
        self.usage.remove(view, task);
    }

    fn predicate(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        node: NodeId,
        findings: &mut Vec<Finding>,
    ) {
        let Some(queue) = queue_of(view, task) else {
            let job = view.cluster.job_of(task).map(|job| job.key.to_string()).unwrap_or_default();
            let text = format!("job {job} not found in session");
            return findings
                .push(Finding { code: Code::Error, reason: Reason::Owned(text.into()) });
        };
        let rules = self.rules(view, queue);
        let refusal = rules.refusal(group_of(view, node));
        let finding = |(code, text)| Finding { code, reason: Reason::Text(text) };
        let refusal = refusal.map(|text| (Code::Unresolvable, text));
        let refusal = refusal.or_else(|| self.exceeds(view, (queue, task), node));
        findings.extend(refusal.map(finding));
    }

    fn node_order(&self, view: SessionView<'_>, task: TaskId, node: NodeId) -> Result<f64, String> {
        let queue = queue_of(view, task);
        let affinity = queue.and_then(|queue| self.affinity(view, queue));
        let score = affinity.zip(group_of(view, node));
        Ok(score.map_or(0.0, |(affinity, group)| self.score(affinity, group)))
    }
}

impl CacheKeys for NodeGroup {
    /// Returns a number that changes when a queue object changes. No rule reads the time.
    fn revision(&self) -> Option<u64> {
        Some(self.revision)
    }
}

impl VectorizedPlugin for NodeGroup {
    /// The rules about labels are tests. A limit depends on the use of other nodes of the group, so
    /// it is a cluster-scoped rule.
    fn node_tests<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> Option<NodeTests<'a>> {
        let queue = queue_of(view, task)?;
        let rules = self.rules(view, queue);
        let passes = move |node: NodeId| rules.refusal(group_of(view, node)).is_none();
        let is_limited = match &view.cluster.queues[queue].node_group_limits {
            NodeGroupLimits::ByGroup(limits) => !limits.is_empty(),
            NodeGroupLimits::Unreadable(_) => false,
        };
        Some(NodeTests {
            tests: vec![NodeTest::Row(Box::new(passes))],
            cluster_scoped: is_limited.then(|| -> NodeRule<'a> {
                Box::new(move |node, findings| {
                    let refusal = self.exceeds(view, (queue, task), node);
                    let finding = |(code, text)| Finding { code, reason: Reason::Text(text) };
                    findings.extend(refusal.map(finding));
                })
            }),
        })
    }

    /// A queue without affinity scores no node.
    fn node_order_fill<'a>(
        &'a self,
        view: SessionView<'a>,
        task: TaskId,
    ) -> Option<ColumnFill<'a, f64>> {
        let affinity = queue_of(view, task).and_then(|queue| self.affinity(view, queue));
        affinity.is_none().then(|| -> ColumnFill<'a, f64> { Box::new(|_, _, _| {}) })
    }
}

/// The rules of a queue about groups, without its limits.
#[derive(Clone, Copy)]
struct GroupRules<'a> {
    strict: bool,
    /// The affinity of the queue. `None` if no list names a group.
    affinity: Option<&'a NodeGroupAffinity>,
    are_limits_unreadable: bool,
}

impl GroupRules<'_> {
    /// Returns why the pods of the queue may not use nodes of the group. `None` as the group means
    /// a node without a group.
    fn refusal(self, group: Option<&str>) -> Option<&'static str> {
        if self.are_limits_unreadable {
            return Some(UNREADABLE);
        }
        match (group, self.affinity) {
            (None, None) if !self.strict => None,
            (None, _) => Some(NO_GROUP),
            (Some(_), None) => Some(NO_RULES),
            (Some(group), Some(affinity)) if is_allowed(affinity, group) => None,
            (Some(_), Some(_)) => Some(NOT_ALLOWED),
        }
    }
}

impl NodeGroup {
    fn rules<'a>(&self, view: SessionView<'a>, queue: QueueId) -> GroupRules<'a> {
        let limits = &view.cluster.queues[queue].node_group_limits;
        GroupRules {
            strict: self.strict,
            affinity: self.affinity(view, queue).filter(|affinity| affinity.has_rules()),
            are_limits_unreadable: matches!(limits, NodeGroupLimits::Unreadable(_)),
        }
    }

    /// Returns the affinity of the queue, or with `enableHierarchy` that of its nearest ancestor
    /// with one. An empty affinity counts. Ancestors that form a cycle are visited once.
    fn affinity<'a>(&self, view: SessionView<'a>, queue: QueueId) -> Option<&'a NodeGroupAffinity> {
        let mut queue = &view.cluster.queues[queue];
        for _ in 0..=view.info.queues.len() {
            if queue.node_group_affinity.is_some() || !self.hierarchy || &*queue.name == ROOT {
                break;
            }
            let parent = if queue.parent.is_empty() { ROOT } else { &queue.parent };
            queue = &view.cluster.queues[view.cluster.queue(parent)?];
            if !queue.present {
                return None;
            }
        }
        queue.node_group_affinity.as_ref()
    }

    /// Returns a finding if the queue would use more of the group of the node than its limit.
    fn exceeds(
        &self,
        view: SessionView<'_>,
        (queue, task): (QueueId, TaskId),
        node: NodeId,
    ) -> Option<(Code, &'static str)> {
        let group = group_of(view, node)?;
        let request = view.cluster.request(task);
        // Evicting pods of the queue helps, unlike with the rules about labels.
        let is_exceeded = self.usage.exceeds(view, queue, group, request);
        is_exceeded.then_some((Code::Unschedulable, EXCEEDED))
    }

    /// The score of a node of the group (section 11.3).
    fn score(&self, affinity: &NodeGroupAffinity, group: &str) -> f64 {
        if has(&affinity.anti_preferred, group) {
            return AVOIDED;
        }
        let required = if has(&affinity.required, group) { REQUIRED } else { 0.0 };
        let groups = &affinity.preferred;
        let preferred = match groups.iter().position(|preferred| **preferred == *group) {
            None => 0.0,
            Some(at) if self.preferred_order => {
                PREFERRED * (groups.len() - at) as f64 / groups.len() as f64
            }
            Some(_) => PREFERRED,
        };
        required + preferred
    }
}

/// Name of the queue at the top of all others.
const ROOT: &str = "root";

/// True if the pods of a queue with this affinity may use nodes of the group. A preferred list
/// counts after the required one: a group in both lists of the anti-affinity is allowed.
fn is_allowed(affinity: &NodeGroupAffinity, group: &str) -> bool {
    let is_wanted = has(&affinity.required, group) || has(&affinity.preferred, group);
    has(&affinity.anti_preferred, group) || is_wanted && !has(&affinity.anti_required, group)
}

fn has(groups: &[Arc<str>], group: &str) -> bool {
    groups.iter().any(|other| **other == *group)
}

/// Returns the queue of a task. Returns `None` if its job is not in the session.
fn queue_of(view: SessionView<'_>, task: TaskId) -> Option<QueueId> {
    let job = view.cluster.tasks[task].job.filter(|&job| view.has_job(job))?;
    Some(view.cluster.jobs[job].queue)
}

/// Returns the group of a node. Returns `None` if it has none.
fn group_of(view: SessionView<'_>, node: NodeId) -> Option<&str> {
    view.cluster.nodes[node].labels.get(GROUP).map(|group| &**group)
}
