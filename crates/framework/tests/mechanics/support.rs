//! Sessions on clusters from text, with plugins from text.

use serde_json::Value;
use vc_conf::{ActionSettings, Arguments, Config, PluginOption, SWITCHES, Switches, Tier};
use vc_framework::{
    ActiveJobs, Caches, Effect, EvictionHolds, EvictionSides, Opening, Outbox, PluginSet, Session,
    SessionState,
};
use vc_model::{Cluster, JobId, NodeId, QueueId, TaskId, TaskStatus, fixture};
use vc_resource::Dim;

use super::fake;

/// Tiers are divided by `/`, plugins by `;`; behind the name stand the answers as `point=answer`
/// (`_` is a blank) and switches that are off as `-enableX`, on as `+enabledX`.
pub(crate) fn config(tiers: &str) -> Config {
    let plugins = |tier: &str| tier.split(';').filter_map(plugin_option).collect();
    let tiers = tiers.split('/').map(|tier| Tier { plugins: plugins(tier) }).collect();
    Config { tiers, ..Config::default() }
}

fn plugin_option(text: &str) -> Option<PluginOption> {
    let mut words = text.split_whitespace();
    let name = words.next()?.to_owned();
    let mut switches = Switches::default();
    let mut arguments: Vec<(String, Value)> = Vec::new();
    for word in words {
        if let Some((key, value)) = word.split_once('=') {
            arguments.push((key.to_owned(), Value::String(value.replace('_', " "))));
        } else {
            let on = word.starts_with('+');
            let key = word.strip_prefix(['+', '-']).expect("a switch");
            let row = SWITCHES.iter().find(|(name, ..)| *name == key).expect("a switch");
            switches = switches.with(row.1, on);
        }
    }
    Some(PluginOption { name, switches, arguments: arguments.into_iter().collect::<Arguments>() })
}

pub(crate) fn opening(eviction_holds: EvictionHolds) -> Opening {
    Opening {
        now_micros: fixture::START_MICROS,
        previous_micros: None,
        session_id: "session-1".to_owned(),
        sides: EvictionSides::default(),
        enqueue_configured: true,
        eviction_holds,
        caches: Caches::default(),
        active_jobs: ActiveJobs::default(),
    }
}

/// A session on the cluster of this text.
pub(crate) fn in_session<R>(text: &str, tiers: &str, run: impl FnOnce(&mut Session<'_>) -> R) -> R {
    in_session_of(&mut fixture::cluster(text), tiers, run).0
}

/// A session on this cluster; all sums are right before and after its end.
pub(crate) fn in_session_of<R>(
    cluster: &mut Cluster,
    tiers: &str,
    run: impl FnOnce(&mut Session<'_>) -> R,
) -> (R, Outbox, EvictionHolds) {
    let (mut plugins, _) = PluginSet::new(&config(tiers), fake::ALL);
    let settings = ActionSettings::default();
    let mut session =
        Session::open(cluster, &mut plugins, &settings, opening(EvictionHolds::default()));
    let result = run(&mut session);
    assert_eq!(session.check(), Ok(()));
    let (outbox, eviction_holds, ..) = session.finish();
    assert_eq!(cluster.check(), Ok(()));
    (result, outbox, eviction_holds)
}

pub(crate) fn task(cluster: &Cluster, path: &str) -> TaskId {
    fixture::task(cluster, path)
}

pub(crate) fn tasks(cluster: &Cluster, paths: &[&str]) -> Vec<TaskId> {
    paths.iter().map(|path| task(cluster, path)).collect()
}

pub(crate) fn job(cluster: &Cluster, name: &str) -> JobId {
    fixture::job(cluster, name)
}

pub(crate) fn node(cluster: &Cluster, name: &str) -> NodeId {
    fixture::node(cluster, name)
}

pub(crate) fn queue(cluster: &Cluster, name: &str) -> QueueId {
    fixture::queue(cluster, name)
}

pub(crate) fn nodes(cluster: &Cluster, names: &[&str]) -> Vec<NodeId> {
    names.iter().map(|name| node(cluster, name)).collect()
}

pub(crate) fn node_names(cluster: &Cluster, nodes: &[NodeId]) -> Vec<String> {
    nodes.iter().map(|&node| cluster.nodes[node].name.to_string()).collect()
}

/// Names of the pods.
pub(crate) fn pods(cluster: &Cluster, tasks: &[TaskId]) -> Vec<String> {
    tasks.iter().map(|&task| cluster.tasks[task].key.name.to_string()).collect()
}

/// Status and node of a task.
pub(crate) fn place(cluster: &Cluster, path: &str) -> (TaskStatus, Option<String>) {
    let row = &cluster.tasks[task(cluster, path)];
    (row.status, row.node.map(|node| cluster.nodes[node].name.to_string()))
}

pub(crate) fn idle_cpu(cluster: &Cluster, name: &str) -> i64 {
    cluster.nodes[node(cluster, name)].idle.get(Dim::CPU)
}

/// What the plugin with `counter` has counted: placements, millicores.
pub(crate) fn counter(session: &SessionState<'_>) -> (f64, f64) {
    let any = session.info().queues[0];
    let share = session.plugins().queue_share(session.view(), any).expect("a plugin counts");
    (share.share, share.deserved.get(Dim::CPU))
}

/// Binds and evictions, one per line.
pub(crate) fn shown(effects: &[Effect]) -> Vec<String> {
    let line = |effect: &Effect| match effect {
        Effect::Bind { pod, node, .. } => Some(format!("bind {} {node}", pod.name)),
        Effect::Evict { pod, reason, for_pod, .. } => {
            let whom = for_pod.as_ref().map(|pod| format!(" for {}", pod.name));
            let whom = whom.unwrap_or_default();
            Some(format!("evict {} {}{whom}", pod.name, reason.as_str()))
        }
        _ => None,
    };
    effects.iter().filter_map(line).collect()
}
