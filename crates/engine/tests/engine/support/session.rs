//! A session of its own, for states that no built action leaves behind.

use std::sync::Arc;

use vc_conf::{ActionSettings, Config};
use vc_framework::{
    ActiveJobs, Caches, EvictionHolds, EvictionSides, Opening, Outbox, PluginEntry, PluginSet,
    Session,
};
use vc_model::{Cluster, Counts, Labels, Node, NodeId, SubJob, TaskId, TaskStatus};
use vc_resource::Resource;

use super::{START_MICROS, World, key};

/// What a session works on.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) eviction_holds: EvictionHolds,
    plugin_set: PluginSet,
    settings: ActionSettings,
}

impl Stage {
    /// The objects of the text, before any cycle. `extra` plugins can be named beside those that
    /// are built.
    pub(crate) fn new(config: &Config, extra: Vec<PluginEntry>, text: &str) -> Self {
        Self::of(World::new(config, text), config, extra)
    }

    /// The objects of a world before any cycle.
    pub(crate) fn of(mut world: World, config: &Config, extra: Vec<PluginEntry>) -> Self {
        world.deliver();
        Self::with(world.engine.cluster().clone(), config, extra)
    }

    /// A cluster between two cycles.
    pub(crate) fn at(cluster: Cluster, config: &Config) -> Self {
        Self::with(cluster, config, Vec::new())
    }

    fn with(cluster: Cluster, config: &Config, extra: Vec<PluginEntry>) -> Self {
        vc_framework::check_reads();
        let built = vc_plugins::ALL.iter().copied();
        let entries: Vec<PluginEntry> = built.chain(extra).collect();
        let (plugin_set, warnings) = PluginSet::new(config, &entries);
        assert_eq!(warnings, []);
        let settings = ActionSettings::from(config, &mut Vec::new());
        Self { cluster, eviction_holds: EvictionHolds::default(), plugin_set, settings }
    }

    /// Runs one session and gives what it sends.
    pub(crate) fn session(&mut self, work: impl FnOnce(&mut Session<'_>)) -> Outbox {
        let opening = Opening {
            now_micros: START_MICROS,
            previous_micros: None,
            session_id: "session".to_owned(),
            sides: EvictionSides::default(),
            enqueue_configured: true,
            eviction_holds: self.eviction_holds.clone(),
            caches: Caches::default(),
            active_jobs: ActiveJobs::default(),
        };
        let mut session =
            Session::open(&mut self.cluster, &mut self.plugin_set, &self.settings, opening);
        work(&mut session);
        let (outbox, eviction_holds, ..) = session.finish();
        assert_eq!(self.cluster.check(), Ok(()));
        self.eviction_holds = eviction_holds;
        outbox
    }
}

/// Runs the action of this name.
pub(crate) fn run(session: &mut Session<'_>, action: &str) {
    let mut all = vc_actions::ALL.iter();
    all.find(|built| built.name() == action).expect("the action is built").run(session);
}

pub(crate) fn task(cluster: &Cluster, pod: &str) -> TaskId {
    cluster.task_named(&key(pod)).unwrap_or_else(|| panic!("no pod {pod}"))
}

/// Whether its queue has no room for the pod, as it was told.
pub(crate) fn is_refused_by_queue(cluster: &Cluster, pod: &str) -> bool {
    let reported = cluster.tasks[task(cluster, pod)].condition.as_ref();
    reported.is_some_and(|reported| {
        [" has no room: ", " is overused"].iter().any(|text| reported.message.contains(text))
    })
}

pub(crate) fn node(cluster: &Cluster, name: &str) -> NodeId {
    cluster.node(name).unwrap_or_else(|| panic!("no node {name}"))
}

/// What operations change, to compare a session before and after.
#[derive(Debug, PartialEq)]
pub(crate) struct State {
    nodes: Vec<Node>,
    tasks: Vec<(TaskStatus, Option<NodeId>, Option<Arc<Labels>>)>,
    jobs: Vec<(Counts, Vec<SubJob>, Resource, Resource)>,
}

impl State {
    pub(crate) fn of(cluster: &Cluster) -> Self {
        let jobs = cluster.jobs.iter().map(|(_, job)| {
            let amounts = (job.allocated.clone(), Resource::clone(&job.pending_request));
            (job.counts.clone(), job.sub_jobs.clone(), amounts.0, amounts.1)
        });
        Self {
            nodes: cluster.nodes.iter().map(|(_, node)| node.clone()).collect(),
            tasks: cluster
                .tasks
                .iter()
                .map(|(_, task)| (task.status, task.node, task.devices.clone()))
                .collect(),
            jobs: jobs.collect(),
        }
    }
}
