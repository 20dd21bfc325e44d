//! Sessions with the real plugins on a cluster from text (`vc_model::fixture`).

use serde_json::Value;
use vc_conf::{ActionSettings, Arguments, Config, PluginOption, SWITCHES, Switches, Tier};
use vc_framework::{
    ActiveJobs, Caches, EvictReason, EvictionHolds, EvictionSides, Opening, Plugin, PluginSet,
    QueueAmount, QueueGauges, Room, Sample, Session, SessionState,
};
use vc_model::{Cluster, JobId, QueueId, TaskId, TaskStatus, fixture};
use vc_resource::Dim;

/// The plugins of a configuration in short: tiers are divided by `/`, plugins by `,`; behind a name
/// stand switches as `+enableHierarchy`, `-enablePreemptable` and arguments as `key=value`, the
/// value in JSON or a text.
pub(crate) fn config(tiers: &str) -> Config {
    let plugins = |tier: &str| tier.split(',').map(plugin_option).collect();
    let tier = |tier: &str| Tier { plugins: plugins(tier) };
    Config { tiers: tiers.split('/').map(tier).collect(), ..Config::default() }
}

pub(crate) fn plugin_option(text: &str) -> PluginOption {
    let mut words = text.split_whitespace();
    let name = words.next().expect("a plugin has a name").to_owned();
    let mut switches = Switches::default();
    let mut arguments: Vec<(String, Value)> = Vec::new();
    for word in words {
        match (word.split_at(1), word.split_once('=')) {
            (("+", key), _) => switches = switches.with(switch(key), true),
            (("-", key), _) => switches = switches.with(switch(key), false),
            (_, Some((key, value))) => {
                let text = || Value::String(value.to_owned());
                let value = serde_json::from_str(value).unwrap_or_else(|_| text());
                arguments.push((key.to_owned(), value));
            }
            _ => panic!("neither switch nor argument: {word}"),
        }
    }
    PluginOption { name, switches, arguments: arguments.into_iter().collect::<Arguments>() }
}

fn switch(key: &str) -> vc_conf::Switch {
    let row = SWITCHES.iter().find(|(name, ..)| *name == key);
    row.unwrap_or_else(|| panic!("no switch: {key}")).1
}

/// One plugin alone, not opened.
pub(crate) fn plugin(text: &str) -> Box<dyn Plugin> {
    let option = plugin_option(text);
    let entry = vc_plugins::ALL.iter().find(|entry| entry.name() == option.name);
    let entry = entry.unwrap_or_else(|| panic!("no plugin: {}", option.name));
    (entry.build)(&option, &mut Vec::new())
}

/// What building the plugins warns of.
pub(crate) fn warnings(tiers: &str) -> Vec<String> {
    let (_, warnings) = PluginSet::new(&config(tiers), vc_plugins::ALL);
    warnings.iter().map(ToString::to_string).collect()
}

/// Opens a session at [`fixture::START_MICROS`].
pub(crate) fn in_session<R>(
    text: &str,
    tiers: &str,
    check: impl FnOnce(&mut Session<'_>) -> R,
) -> R {
    in_session_of(fixture::cluster(text), tiers, 0, check)
}

/// A cluster with its plugins, for several sessions.
pub(crate) struct Cycles {
    pub(crate) cluster: Cluster,
    plugins: PluginSet,
}

impl Cycles {
    pub(crate) fn new(text: &str, tiers: &str) -> Self {
        let (plugins, _) = PluginSet::new(&config(tiers), vc_plugins::ALL);
        Self { cluster: fixture::cluster(text), plugins }
    }

    /// Opens a session so many seconds after [`fixture::START_MICROS`].
    pub(crate) fn session<R>(
        &mut self,
        seconds: i64,
        check: impl FnOnce(&mut Session<'_>) -> R,
    ) -> R {
        let settings = ActionSettings::default();
        let opening = opening(seconds);
        let mut session = Session::open(&mut self.cluster, &mut self.plugins, &settings, opening);
        let result = check(&mut session);
        session.close_plugins();
        session.finish();
        assert_eq!(self.cluster.check(), Ok(()));
        result
    }

    /// The configuration is read again: the plugins are new.
    pub(crate) fn reload(&mut self, tiers: &str) {
        let (plugins, _) = PluginSet::new(&config(tiers), vc_plugins::ALL);
        let earlier = std::mem::replace(&mut self.plugins, plugins);
        self.plugins.copy_memory(&earlier);
    }
}

/// Of a session so many seconds after [`fixture::START_MICROS`].
pub(crate) fn opening(seconds: i64) -> Opening {
    Opening {
        now_micros: fixture::START_MICROS + seconds * 1_000_000,
        previous_micros: None,
        session_id: "session-1".to_owned(),
        sides: EvictionSides::default(),
        enqueue_configured: true,
        eviction_holds: EvictionHolds::default(),
        caches: Caches::default(),
        active_jobs: ActiveJobs::default(),
    }
}

/// Evicts tasks for good.
pub(crate) fn send(session: &mut Session<'_>, tasks: &[TaskId]) {
    let mut statement = session.statement();
    for &task in tasks {
        statement.evict(task, EvictReason::Preempt, None).expect("the task runs");
    }
    assert!(statement.commit());
}

/// Opens a session so many seconds after [`fixture::START_MICROS`].
pub(crate) fn in_session_of<R>(
    mut cluster: Cluster,
    tiers: &str,
    seconds: i64,
    check: impl FnOnce(&mut Session<'_>) -> R,
) -> R {
    let (mut plugins, _) = PluginSet::new(&config(tiers), vc_plugins::ALL);
    let settings = ActionSettings::default();
    let mut session = Session::open(&mut cluster, &mut plugins, &settings, opening(seconds));
    let result = check(&mut session);
    session.finish();
    assert_eq!(cluster.check(), Ok(()));
    result
}

pub(crate) fn task(session: &SessionState<'_>, path: &str) -> TaskId {
    fixture::task(session, path)
}

pub(crate) fn tasks(session: &SessionState<'_>, paths: &[&str]) -> Vec<TaskId> {
    paths.iter().map(|path| task(session, path)).collect()
}

/// `j1/b-0` to `j1/b-(n-1)`.
pub(crate) fn series(session: &SessionState<'_>, path: &str, n: usize) -> Vec<TaskId> {
    (0..n).map(|index| task(session, &format!("{path}-{index}"))).collect()
}

pub(crate) fn job(session: &SessionState<'_>, name: &str) -> JobId {
    fixture::job(session, name)
}

pub(crate) fn queue(session: &SessionState<'_>, name: &str) -> QueueId {
    fixture::queue(session, name)
}

/// Places a task until the session ends.
pub(crate) fn allocate(session: &mut Session<'_>, task: TaskId, node: &str) {
    let node = fixture::node(session, node);
    let mut statement = session.statement();
    statement.allocate(task, node).expect("the task is pending");
    statement.keep();
}

/// Pipelines a task until the session ends.
pub(crate) fn pipeline(session: &mut Session<'_>, task: TaskId, node: &str) {
    let node = fixture::node(session, node);
    let mut statement = session.statement();
    statement.pipeline(task, node, Room::Releasing).expect("the task is pending");
    statement.keep();
}

/// Evicts tasks until the session ends.
pub(crate) fn evict(session: &mut Session<'_>, tasks: &[TaskId]) {
    let mut statement = session.statement();
    for &task in tasks {
        statement.evict(task, EvictReason::Preempt, None).expect("the task runs");
    }
    statement.keep();
}

/// Makes a pending task Binding before the session.
pub(crate) fn bind(cluster: &mut Cluster, path: &str, node: &str) {
    let (task, node) = (fixture::task(cluster, path), fixture::node(cluster, node));
    cluster.set_task(task, TaskStatus::Binding, Some(node));
}

/// Pod names.
pub(crate) fn names(session: &SessionState<'_>, tasks: &[TaskId]) -> Vec<String> {
    tasks.iter().map(|&task| session.tasks[task].key.name.to_string()).collect()
}

/// Deserved cpu in cores, memory in Gi and pods of a queue, and its share.
pub(crate) fn deserved(session: &SessionState<'_>, name: &str) -> ([f64; 3], f64) {
    let found = session.plugins().queue_share(session.view(), queue(session, name));
    let share = found.expect("a plugin divides the cluster");
    let gi = f64::from(1 << 30);
    let amounts = [
        share.deserved.get(Dim::CPU) / 1000.0,
        share.deserved.get(Dim::MEMORY) / gi,
        share.deserved.get(Dim::PODS),
    ];
    (amounts, share.share)
}

/// Whether the queue of the task has room for it.
pub(crate) fn allocatable(session: &SessionState<'_>, path: &str) -> Result<(), Vec<Dim>> {
    let task = task(session, path);
    let queue = session.job_of(task).expect("it has a job").queue;
    session.plugins().allocatable(session.view(), queue, task)
}

pub(crate) fn enqueueable(session: &SessionState<'_>, name: &str) -> Result<(), Option<String>> {
    let answer = session.plugins().job_enqueueable(session.view(), job(session, name));
    answer.map_err(|refusal| refusal.message)
}

pub(crate) fn preemptive(session: &SessionState<'_>, name: &str, paths: &[&str]) -> bool {
    let (queue, tasks) = (queue(session, name), tasks(session, paths));
    session.plugins().preemptive(session.view(), queue, &tasks)
}

/// The pods that may go for the reclaimer, the one evicted first first.
pub(crate) fn reclaimed(
    session: &SessionState<'_>,
    reclaimer: &str,
    paths: &[&str],
) -> Vec<String> {
    let reclaimer = task(session, reclaimer);
    let (view, plugins) = (session.view(), session.plugins());
    let mut candidates = tasks(session, paths);
    let job = session.tasks[reclaimer].job;
    candidates.sort_by(|&l, &r| plugins.victim_order(view, job, l, r));
    names(session, &plugins.reclaimable(view, reclaimer, &candidates))
}

/// What plugins hand out about queues when the session closes.
pub(crate) fn shown(session: &mut Session<'_>) -> Vec<QueueGauges> {
    session.close_plugins();
    let of_queue = |sample| match sample {
        Sample::Queue(gauges) => Some(*gauges),
        _ => None,
    };
    std::mem::take(&mut session.outcome.out.samples).into_iter().filter_map(of_queue).collect()
}

/// Cores and bytes.
pub(crate) fn real_capability(queues: &[QueueGauges], name: &str) -> (f64, f64) {
    let found = queues.iter().find(|gauges| &*gauges.queue == name).expect("the queue is shown");
    let mut amounts = found.amounts.iter();
    let (_, amounts) =
        amounts.find(|(kind, _)| *kind == QueueAmount::RealCapability).expect("it is shown");
    (amounts.cpu_milli / 1000.0, amounts.memory_bytes)
}
