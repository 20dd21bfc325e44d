//! Why nothing was evicted for a job that starves: the causes and their counts. Specification:
//! actions.md 10.6.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_model::{Cluster, JobId, NodeId, QueueId, Reason, joined};
use vc_resource::Dim;

/// What kept an action from making room.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The pod's preemptionPolicy.
    PolicyNever,
    /// Pods that were evicted for it have yet to leave this node.
    AwaitsVictims(NodeId),
    /// No pod of a node may be a victim of this action.
    NoCandidate,
    /// The plugin that left none of the candidates of a node; `None`: no plugin grants any.
    Refused(Option<&'static str>),
    /// A node is short of this with all victims gone.
    TooFew(Dim),
    /// The queue has no room for the pod, or no right to more.
    QueueFull(QueueId),
    /// A filter refuses a node, or the pod altogether.
    Filter(Reason),
    /// Some members found places, the job is not complete by them.
    BelowMinimum {
        /// Members that are ready or would be.
        have: u32,
        /// `minAvailable`.
        min: i32,
    },
    /// The job has a network topology.
    Topology,
    /// This plugin keeps the job out of its queue.
    NotAdmitted(&'static str),
    /// The quotas of queues let nobody go for the job (cohort.md B.8).
    Quota(Arc<str>),
}

impl Cause {
    /// The text of the table.
    pub fn text(&self, cluster: &Cluster) -> String {
        match self {
            Self::PolicyNever => "policy Never".to_owned(),
            Self::AwaitsVictims(node) => {
                format!("waiting for terminating victims on {}", cluster.nodes[*node].name)
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
            Self::Topology => "network topology: use gangpreempt".to_owned(),
            Self::NotAdmitted(plugin) => format!("not admitted to the queue: {plugin}"),
            Self::Quota(text) => text.to_string(),
        }
    }

    /// Counted in nodes, not in pods.
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
    /// Jobs that are not admitted as before, each with the plugin that keeps it out. They have no other
    /// cause.
    outside: Vec<(JobId, &'static str)>,
    /// Of the task at hand.
    of_task: Tally,
}

impl Causes {
    /// A cause that concerns the task at hand.
    pub fn add(&mut self, cause: Cause) {
        self.add_times(cause, 1);
    }

    /// The same cause on several nodes.
    pub fn add_times(&mut self, cause: Cause, count: u32) {
        *self.of_task.entry(cause).or_default() += count;
    }

    /// What was noted of the task at hand.
    pub fn of_task(&self) -> &Tally {
        &self.of_task
    }

    /// The task at hand fails as another one did, of which this was noted.
    pub fn repeat(&mut self, noted: &Tally) {
        noted.iter().for_each(|(cause, &count)| self.add_times(cause.clone(), count));
    }

    /// The task at hand found no place. Members of a job mostly fail on the same nodes, so the
    /// most that one of them has met counts; what concerns pods adds up.
    pub fn end_task(&mut self, job: JobId, action: &'static str) {
        for (cause, count) in std::mem::take(&mut self.of_task) {
            let of_node = cause.is_of_node();
            let known = self.tally(job, action).entry(cause).or_default();
            *known = if of_node { count.max(*known) } else { *known + count };
        }
    }

    /// What was noted of the task at hand does not matter.
    pub fn drop_task(&mut self) {
        self.of_task.clear();
    }

    /// What was noted of the job, by action.
    pub fn of(&self, job: JobId) -> &[(&'static str, Tally)] {
        self.by_job.get(&job).map_or(&[], Vec::as_slice)
    }

    /// The action fails for the job as it did for another one, of which this was noted.
    pub fn repeat_job(&mut self, job: JobId, action: &'static str, noted: &Tally) {
        *self.tally(job, action) = noted.clone();
    }

    /// A cause that concerns the job as a whole.
    pub fn note_job(&mut self, job: JobId, action: &'static str, cause: Cause) {
        self.tally(job, action).insert(cause, 1);
    }

    /// The plugin keeps the job out of its queue, as before; nothing was noted of the job.
    pub(crate) fn note_outside(&mut self, job: JobId, plugin: &'static str) {
        self.outside.push((job, plugin));
    }

    /// Jobs that are not admitted as before, each with the plugin that keeps it out.
    pub fn outside(&self) -> &[(JobId, &'static str)] {
        &self.outside
    }

    /// From now on other causes may come.
    pub(crate) fn mix_outside(&mut self) {
        for (job, plugin) in std::mem::take(&mut self.outside) {
            self.note_job(job, "enqueue", Cause::NotAdmitted(plugin));
        }
    }

    /// The job got something in this cycle.
    pub fn served(&mut self, job: JobId) {
        self.by_job.remove(&job);
        self.of_task.clear();
    }

    /// What this action noted is not to be told.
    pub fn forget(&mut self, action: &'static str) {
        for actions in self.by_job.values_mut() {
            actions.retain(|(name, _)| *name != action);
        }
        self.by_job.retain(|_, actions| !actions.is_empty());
    }

    /// Nobody asks.
    pub fn clear(&mut self) {
        self.by_job.clear();
        self.outside.clear();
    }

    /// Jobs with what kept each action from making room for them, but for those outside.
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

/// `<count> <cause>`, sorted as text.
pub fn histogram(cluster: &Cluster, tally: &Tally) -> String {
    let entry = |(cause, count): (&Cause, &u32)| format!("{count} {}", cause.text(cluster));
    joined(tally.iter().map(entry).collect())
}

#[cfg(test)]
mod tests {
    use vc_model::{Id, Settings};

    use super::*;

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
