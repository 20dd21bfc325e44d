//! The invariants that are checked in production: what a cycle has bound is looked at once more, at
//! the cost of what it has bound. Specification: invariants.md (I1, I2).

use std::collections::BTreeSet;

use vc_conf::{Config, Switch};
use vc_framework::{BrokenInvariant, Effect};
use vc_model::{Cluster, Job, NodeId, Task, TaskId, TaskStatus};
use vc_resource::Dim;

/// The resources that are compared, with their names. Who serves an extended resource may count it
/// otherwise than its node says.
const COMPARED: [(Dim, &str); 2] = [(Dim::CPU, "cpu"), (Dim::MEMORY, "memory")];

/// Returns the invariants that the binds among the effects of a session violate. `cluster`: the state
/// after its actions.
pub(crate) fn broken_invariants(
    cluster: &Cluster,
    config: &Config,
    effects: &[Effect],
) -> Vec<BrokenInvariant> {
    let row_of = |uid: &str| cluster.task(uid).map(|task| &cluster.tasks[task]);
    let job_of = |uid: &str| row_of(uid)?.job;
    let counts_gangs = counts_gangs(config);
    // A job that lost a pod to an eviction of this session need not have its minimum any more.
    let mut jobs: BTreeSet<_> = effects.iter().filter_map(evicted).filter_map(job_of).collect();
    let (mut nodes, mut last_job) = (BTreeSet::new(), None);
    let mut broken = Vec::new();
    for row in effects.iter().filter_map(bound).filter_map(row_of) {
        if let Some(node) = row.node
            && let Some(found) = overcommitted(cluster, row, node)
            && nodes.insert(node)
        {
            broken.push(found);
        }
        // The pods of a job come one after the other.
        if let Some(job) = row.job.filter(|_| counts_gangs && last_job != row.job)
            && jobs.insert(job)
        {
            broken.extend(half_bound(cluster, &cluster.jobs[job], row));
        }
        last_job = row.job;
    }
    broken
}

/// Returns the uid of the pod that the effect binds. Returns `None` if it does something else.
fn bound(effect: &Effect) -> Option<&str> {
    match effect {
        Effect::Bind { uid, .. } => Some(uid),
        _ => None,
    }
}

/// Returns the uid of the pod that the effect evicts. Returns `None` if it does something else.
fn evicted(effect: &Effect) -> Option<&str> {
    match effect {
        Effect::Evict { uid, .. } => Some(uid),
        _ => None,
    }
}

/// I1: a node that got a pod holds no more than it has of what the pod requests.
fn overcommitted(cluster: &Cluster, row: &Task, id: NodeId) -> Option<BrokenInvariant> {
    let (node, request) = (&cluster.nodes[id], &cluster.classes[row.class].request);
    let lacks = |(dim, _): &&(Dim, &str)| 0 < request.get(*dim) && node.idle.get(*dim) < 0;
    let (_, resource) = COMPARED.iter().find(lacks)?;
    let text =
        format!("node {} holds more {resource} than it has, with pod {}", node.name, row.key);
    Some(BrokenInvariant { name: "I1", text })
}

/// I2: a job of which a pod was bound has its minimum. Pods without a request are placed one by one.
fn half_bound(cluster: &Cluster, job: &Job, row: &Task) -> Option<BrokenInvariant> {
    if row.best_effort || job.counts.is_ready(job.min_available) {
        return None;
    }
    // A best-effort pod counts while it waits. A later action may have pipelined it.
    let waits = |task: &&TaskId| {
        let row = &cluster.tasks[**task];
        row.best_effort && matches!(row.status, TaskStatus::Pending | TaskStatus::Pipelined)
    };
    let (n_placed, min) = (job.counts.ready(), job.min_available);
    let n_waiting = job.tasks.iter().filter(waits).count();
    let n_counted = usize::try_from(n_placed).unwrap_or(usize::MAX).saturating_add(n_waiting);
    if usize::try_from(min).is_ok_and(|min| min <= n_counted) {
        return None;
    }
    let text = format!("job {} has {n_placed} of {min} needed pods, with pod {}", job.key, row.key);
    Some(BrokenInvariant { name: "I2", text })
}

/// True if the configuration binds gangs as a whole.
fn counts_gangs(config: &Config) -> bool {
    let mut plugins = config.tiers.iter().flat_map(|tier| &tier.plugins);
    plugins.any(|plugin| plugin.name == "gang" && plugin.switches.on(Switch::JobReady))
}

#[cfg(test)]
mod tests {
    use vc_model::Settings;
    use vc_model::fixture::events_of;

    use super::*;

    /// The texts of a cycle that binds these pods of a gang of three to a node with one cpu. The third requests
    /// nothing.
    fn texts(config: &str, pods: &[&str]) -> Vec<String> {
        let mut cluster = Cluster::new(Settings::default());
        let text = "node n cpu=1\njob j min=3\n task a cpu=1\n task b cpu=1\n task c";
        events_of(text).into_iter().for_each(|event| cluster.apply(event));
        let mut effects = Vec::new();
        for name in pods {
            let row = cluster.tasks.iter().find(|(_, row)| &*row.key.name == *name);
            let (id, row) = row.expect("the pod is known");
            let (pod, uid) = (row.key.clone(), row.uid.clone());
            let node = cluster.node("n");
            cluster.set_task(id, TaskStatus::Binding, node);
            let (node, annotations, node_lock) = ("n".into(), Vec::new(), None);
            effects.push(Effect::Bind { pod, uid, node, annotations, node_lock });
        }
        let config = vc_conf::parse("file", config, &crate::KNOWN).expect("it is good").config;
        let broken = broken_invariants(&cluster, &config, &effects);
        broken.into_iter().map(|it| format!("{}: {}", it.name, it.text)).collect()
    }

    #[test]
    fn a_node_that_holds_too_much_and_half_a_gang_are_found() {
        let gang = "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n";
        let half = "I2: job default/j has 1 of 3 needed pods, with pod default/j-a";
        let over = "I1: node n holds more cpu than it has, with pod default/j-a";
        let without = "actions: allocate\ntiers:\n- plugins:\n  - name: priority\n";
        let cases: [(&str, &[&str], &[&str]); 6] = [
            (gang, &[], &[]),
            (gang, &["j-a"], &[half]),
            (
                gang,
                &["j-b", "j-c"],
                &["I2: job default/j has 2 of 3 needed pods, with pod default/j-b"],
            ),
            (gang, &["j-c"], &[]),
            (gang, &["j-a", "j-b"], &[over]),
            (without, &["j-a"], &[]),
        ];
        for (config, pods, wanted) in cases {
            assert_eq!(texts(config, pods), wanted, "{config} {pods:?}");
        }
    }
}
