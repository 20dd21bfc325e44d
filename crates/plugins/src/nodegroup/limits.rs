//! What queues use of groups of nodes for which they have a limit, and queues whose limits cannot be
//! read.
//! Specification: plugins-nodes.md 11.1, 11.2.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_framework::{About, Effect, Outbox, SessionView};
use vc_model::{Column, NodeGroupLimits, QueueId, TaskId, TaskStatus};
use vc_resource::{Dim, Resource};

use super::GROUP;
use crate::rules::session_job;

/// Reason of the event for an annotation that cannot be read.
const REASON: &str = "InvalidNodeGroupLimits";

type GroupLimits = BTreeMap<Arc<str>, Vec<(Dim, i64)>>;

/// What queues use of the groups for which they have a limit. It follows every operation of the
/// session.
#[derive(Default)]
pub(super) struct GroupUsage {
    /// Σ requests by queue with limits, and by group with a limit.
    used: Column<QueueId, BTreeMap<Arc<str>, Resource>>,
    /// The queues in `used`.
    limited: Vec<QueueId>,
    /// The queue and the group in which a task is counted.
    counted: Column<TaskId, (QueueId, Arc<str>)>,
    /// The tasks that were counted in this session.
    tasks: Vec<TaskId>,
}

impl GroupUsage {
    /// Counts anew at the start of a session. It costs one step per queue, and per task on a node
    /// of a group for which some queue has a limit.
    pub(super) fn open(&mut self, view: SessionView<'_>) {
        for queue in self.limited.drain(..) {
            self.used.take(queue);
        }
        for task in self.tasks.drain(..) {
            self.counted.take(task);
        }
        let mut groups: BTreeSet<&Arc<str>> = BTreeSet::new();
        for &queue in &view.info.queues {
            let Some(limits) = limits(view, queue) else { continue };
            let nothing = |group: &Arc<str>| (group.clone(), Resource::default());
            *self.used.place(queue) = Some(limits.keys().map(nothing).collect());
            self.limited.push(queue);
            groups.extend(limits.keys());
        }
        if self.limited.is_empty() {
            return;
        }
        for &node in view.info.nodes.iter() {
            let node = &view.cluster.nodes[node];
            if node.labels.get(GROUP).is_some_and(|group| groups.contains(group)) {
                node.tasks.iter().for_each(|&task| self.add(view, task));
            }
        }
    }

    /// Counts a task that holds a node, or waits for one.
    pub(super) fn add(&mut self, view: SessionView<'_>, task: TaskId) {
        let row = &view.cluster.tasks[task];
        if !row.status.is_allocated() && row.status != TaskStatus::Pipelined {
            return;
        }
        let group = row.node.and_then(|node| view.cluster.nodes[node].labels.get(GROUP));
        let Some((group, (_, job))) = group.zip(session_job(view.cluster, task)) else { return };
        let used = self.used.get_mut(job.queue).and_then(|groups| groups.get_mut(group));
        if let Some(used) = used {
            used.add(view.cluster.request(task));
            *self.counted.place(task) = Some((job.queue, group.clone()));
            self.tasks.push(task);
        }
    }

    /// Ends the count of a task. A task that is not counted changes nothing.
    pub(super) fn remove(&mut self, view: SessionView<'_>, task: TaskId) {
        let Some((queue, group)) = self.counted.take(task) else { return };
        // Operations are undone newest first, so the list stays short.
        self.tasks.pop_if(|last| *last == task);
        let used = self.used.get_mut(queue).and_then(|groups| groups.get_mut(&group));
        if let Some(used) = used {
            used.sub(view.cluster.request(task));
        }
    }

    /// True if the queue has a limit for the group, and would use more with this request.
    pub(super) fn exceeds(
        &self,
        view: SessionView<'_>,
        queue: QueueId,
        group: &str,
        request: &Resource,
    ) -> bool {
        let Some(limit) = limits(view, queue).and_then(|limits| limits.get(group)) else {
            return false;
        };
        let used = self.used.get(queue).and_then(|groups| groups.get(group));
        let used = |dim| used.map_or(0, |used| used.get(dim));
        limit.iter().any(|&(dim, limit)| limit < used(dim).saturating_add(request.get(dim)))
    }
}

/// Returns the limits of a queue. Returns `None` if it has none, or if they cannot be read.
fn limits<'a>(view: SessionView<'a>, queue: QueueId) -> Option<&'a GroupLimits> {
    match &view.cluster.queues[queue].node_group_limits {
        NodeGroupLimits::ByGroup(limits) => Some(limits).filter(|limits| !limits.is_empty()),
        NodeGroupLimits::Unreadable(_) => None,
    }
}

/// Reports queues whose limits cannot be read, each once until its problem changes.
#[derive(Default)]
pub(super) struct UnreadableLimits {
    /// Name of the queue, and its problem.
    pub(super) known: BTreeSet<(Arc<str>, Arc<str>)>,
    due: Vec<(QueueId, Arc<str>)>,
}

impl UnreadableLimits {
    /// Finds the queues. The caller must call it when queues have changed.
    pub(super) fn renew(&mut self, view: SessionView<'_>) {
        let mut found = BTreeSet::new();
        for &id in &view.info.queues {
            let queue = &view.cluster.queues[id];
            let NodeGroupLimits::Unreadable(problem) = &queue.node_group_limits else { continue };
            let one = (queue.name.clone(), problem.clone());
            if !self.known.contains(&one) {
                self.due.push((id, problem.clone()));
            }
            found.insert(one);
        }
        self.known = found;
    }

    /// Reports new problems, in the log and as an event of the queue.
    pub(super) fn report(&mut self, view: SessionView<'_>, out: &mut Outbox) {
        for (queue, problem) in self.due.drain(..) {
            let queue = &view.cluster.queues[queue];
            let message = format!(
                "annotation {problem}. No pod of the queue is placed until it is corrected. Write \
                 amounts for each group, such as {{\"group1\": {{\"cpu\": \"8\"}}}}, or remove it"
            );
            out.warnings.push(format!("queue {}: {message}", queue.name));
            let about = About::Queue { name: queue.name.clone(), uid: queue.uid.clone() };
            let (reason, message) = (REASON, message.into());
            out.effects.push(Effect::Event { about, warning: true, reason, message });
        }
    }
}
