//! Causes why nothing was evicted for a starving job, and their counts. Specification: actions.md
//! 10.6.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_model::{Cluster, JobId, NodeId, QueueId, Reason, joined};
use vc_resource::Dim;

/// A reason why an action made no room.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The pod's preemptionPolicy is Never.
    PolicyNever,
    /// Earlier victims have yet to leave this node.
    AwaitsVictims(NodeId),
    /// The room on this node is kept for pods for which others were evicted.
    RoomKept(NodeId),
    /// No pod of a node may be a victim of this action.
    NoCandidate,
    /// This plugin left no candidate of a node. `None`: no plugin grants any victim.
    Refused(Option<&'static str>),
    /// A node lacks this dimension even with all victims gone.
    TooFew(Dim),
    /// The queue has no room for the pod, or no right to more.
    QueueFull(QueueId),
    /// A filter rejects a node, or the pod altogether.
    Filter(Reason),
    /// Some members found places, but the job is below its minimum.
    BelowMinimum {
        /// Members that are ready, or would be.
        have: u32,
        /// `minAvailable`.
        min: i32,
    },
    /// The network topology of the job allows no eviction, for this reason.
    Topology(Arc<str>),
    /// This plugin keeps the job out of its queue.
    NotAdmitted(&'static str),
    /// The quotas of queues allow no eviction for the job (cohort.md B.8).
    Quota(Arc<str>),
}

/// What the count of a cause counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedIn {
    /// Nodes: the most of them over the pods of the job. A pod that is refused before any node is looked at counts as
    /// one node.
    Nodes,
    /// Pods of the job.
    Pods,
    /// Tries: for one pod, or for one pod on one node.
    Tries,
    /// Nothing: the cause is one of the job as a whole, and its count is 1.
    Job,
}

impl CountedIn {
    /// Returns the word in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Pods => "pods",
            Self::Tries => "tries",
            Self::Job => "job",
        }
    }
}

impl Cause {
    /// Returns the text of the table in actions.md 10.6.
    pub fn text(&self, cluster: &Cluster) -> String {
        match self {
            Self::PolicyNever => "policy Never".to_owned(),
            Self::AwaitsVictims(node) => {
                format!("waiting for terminating victims on {}", cluster.nodes[*node].name)
            }
            Self::RoomKept(node) => {
                let name = &cluster.nodes[*node].name;
                format!("room on {name} is kept for pods for which others were evicted")
            }
            Self::NoCandidate => "no pod passed the victim filter".to_owned(),
            Self::Refused(Some(plugin)) => format!("victims refused by {plugin}"),
            Self::Refused(None) => "victims refused by every tier".to_owned(),
            Self::TooFew(dim) => {
                let dim = cluster.dims.name(*dim);
                format!("not enough even with all victims: insufficient {dim}")
            }
            Self::QueueFull(queue) => {
                format!("queue {} has no room", cluster.queues[*queue].name)
            }
            Self::Filter(reason) => format!("filters: {}", reason.text(&cluster.dims)),
            Self::BelowMinimum { have, min } => {
                format!("job would not reach minAvailable ({have}/{min})")
            }
            Self::Topology(why) => format!("network topology: {why}"),
            Self::NotAdmitted(plugin) => format!("not admitted to the queue: {plugin}"),
            Self::Quota(text) => text.to_string(),
        }
    }

    /// Returns what the count of the cause counts, if this action has noted it. Only preempt and reclaim look for room
    /// for one pod after the other.
    pub fn counted_in(&self, action: &str) -> CountedIn {
        if !matches!(action, "preempt" | "reclaim") {
            return CountedIn::Job;
        }
        match self {
            _ if self.is_of_node() => CountedIn::Nodes,
            Self::PolicyNever | Self::AwaitsVictims(_) => CountedIn::Pods,
            Self::QueueFull(_) => CountedIn::Tries,
            _ => CountedIn::Job,
        }
    }

    /// True if the cause is counted in nodes, not in pods.
    fn is_of_node(&self) -> bool {
        matches!(self, Self::NoCandidate | Self::Refused(_) | Self::TooFew(_) | Self::Filter(_))
    }
}

/// Causes by count.
pub type Tally = BTreeMap<Cause, u32>;

/// The causes of a session, by job and action.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    by_job: BTreeMap<JobId, Vec<(&'static str, Tally)>>,
    /// Jobs that are still not admitted, each with the plugin that refuses it. They have no other
    /// cause.
    outside: Vec<(JobId, &'static str)>,
    /// Causes of the current task.
    of_task: Tally,
}

impl Causes {
    /// Adds a cause of the current task.
    pub fn add(&mut self, cause: Cause) {
        self.add_times(cause, 1);
    }

    /// Adds a cause of the current task for several nodes.
    pub fn add_times(&mut self, cause: Cause, count: u32) {
        *self.of_task.entry(cause).or_default() += count;
    }

    /// Returns the causes of the current task.
    pub fn of_task(&self) -> &Tally {
        &self.of_task
    }

    /// Adds the causes of another task, because the current one fails like it.
    pub fn repeat(&mut self, noted: &Tally) {
        noted.iter().for_each(|(cause, &count)| self.add_times(cause.clone(), count));
    }

    /// Ends a task that found no place, and merges its causes into the job. Members of a job mostly
    /// fail on the same nodes, so node causes take the maximum over tasks. Causes of pods are added
    /// up.
    pub fn end_task(&mut self, job: JobId, action: &'static str) {
        for (cause, count) in std::mem::take(&mut self.of_task) {
            let of_node = cause.is_of_node();
            let known = self.tally(job, action).entry(cause).or_default();
            *known = if of_node { count.max(*known) } else { *known + count };
        }
    }

    /// Drops the causes of the current task.
    pub fn drop_task(&mut self) {
        self.of_task.clear();
    }

    /// Returns the causes of a job, by action.
    pub fn of(&self, job: JobId) -> &[(&'static str, Tally)] {
        self.by_job.get(&job).map_or(&[], Vec::as_slice)
    }

    /// Copies the causes of another job, because the action fails for this job like for that one.
    pub fn repeat_job(&mut self, job: JobId, action: &'static str, noted: &Tally) {
        *self.tally(job, action) = noted.clone();
    }

    /// Sets a cause that concerns the job as a whole.
    pub fn note_job(&mut self, job: JobId, action: &'static str, cause: Cause) {
        self.tally(job, action).insert(cause, 1);
    }

    /// Records that the plugin still refuses the job. The job must have no other cause.
    pub(crate) fn note_outside(&mut self, job: JobId, plugin: &'static str) {
        self.outside.push((job, plugin));
    }

    /// Returns the jobs that are still not admitted, each with the plugin that refuses it.
    pub fn outside(&self) -> &[(JobId, &'static str)] {
        &self.outside
    }

    /// Moves the refused jobs into the general table, before other causes may be added.
    pub(crate) fn mix_outside(&mut self) {
        for (job, plugin) in std::mem::take(&mut self.outside) {
            self.note_job(job, "enqueue", Cause::NotAdmitted(plugin));
        }
    }

    /// Drops the causes of a job that got room in this cycle.
    pub fn served(&mut self, job: JobId) {
        self.by_job.remove(&job);
        self.of_task.clear();
    }

    /// Drops the causes of one action.
    pub fn forget(&mut self, action: &'static str) {
        for actions in self.by_job.values_mut() {
            actions.retain(|(name, _)| *name != action);
        }
        self.by_job.retain(|_, actions| !actions.is_empty());
    }

    /// Drops all causes.
    pub fn clear(&mut self) {
        self.by_job.clear();
        self.outside.clear();
    }

    /// Iterates over jobs and their causes by action. Jobs of [`Causes::outside`] are not included.
    pub fn iter(&self) -> impl Iterator<Item = (JobId, &[(&'static str, Tally)])> {
        self.by_job.iter().map(|(&job, actions)| (job, &actions[..]))
    }

    fn tally(&mut self, job: JobId, action: &'static str) -> &mut Tally {
        let actions = self.by_job.entry(job).or_default();
        let place = actions.iter().position(|(name, _)| *name == action);
        let place = place.unwrap_or_else(|| {
            actions.push((action, Tally::new()));
            actions.len() - 1
        });
        &mut actions[place].1
    }
}

/// Returns the causes as `<count> <cause>`, sorted as text.
pub fn histogram(cluster: &Cluster, tally: &Tally) -> String {
    let entry = |(cause, count): (&Cause, &u32)| format!("{count} {}", cause.text(cluster));
    joined(tally.iter().map(entry).collect())
}

#[cfg(test)]
mod tests {
    use vc_model::{Id, Settings};

    use super::*;

    #[test]
    fn ans_43_a_cause_says_what_its_count_counts() {
        let causes = [
            (Cause::Refused(None), "nodes"),
            (Cause::NoCandidate, "nodes"),
            (Cause::PolicyNever, "pods"),
            (Cause::QueueFull(QueueId::new(0)), "tries"),
            (Cause::BelowMinimum { have: 1, min: 2 }, "job"),
        ];
        for (cause, counted_in) in causes {
            for action in ["preempt", "reclaim"] {
                assert_eq!(cause.counted_in(action).as_str(), counted_in, "{action}: {cause:?}");
            }
            for action in ["gangpreempt", "gangreclaim", "enqueue"] {
                assert_eq!(cause.counted_in(action), CountedIn::Job, "{action}: {cause:?}");
            }
        }
    }

    #[test]
    fn causes_of_nodes_count_once_per_node_those_of_pods_per_pod() {
        let (job, cluster) = (JobId::new(0), Cluster::new(Settings::default()));
        let mut causes = Causes::default();
        for n_nodes in [2, 3, 1] {
            causes.add_times(Cause::Refused(Some("gang")), n_nodes);
            causes.add(Cause::PolicyNever);
            causes.end_task(job, "preempt");
        }
        causes.add(Cause::NoCandidate);
        causes.drop_task();
        causes.note_job(job, "preempt", Cause::BelowMinimum { have: 1, min: 2 });
        let texts: Vec<String> = causes
            .iter()
            .flat_map(|(_, actions)| actions)
            .map(|(action, tally)| format!("{action}: {}", histogram(&cluster, tally)))
            .collect();
        let expected = "preempt: 1 job would not reach minAvailable (1/2), 3 policy Never, \
            3 victims refused by gang";
        assert_eq!(texts, [expected]);
        causes.served(job);
        assert_eq!(causes.iter().count(), 0);
    }
}
