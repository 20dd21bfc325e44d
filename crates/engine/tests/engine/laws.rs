//! Laws over random small clusters and several cycles.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use vc_conf::Config;
use vc_engine::Effect;
use vc_model::{Cluster, JobId};
use vc_resource::Dim;

use crate::support::*;

fn configs() -> [Config; 3] {
    let actions = "enqueue, allocate, backfill";
    [
        conf(actions, "priority gang conformance | overcommit drf predicates proportion nodeorder"),
        conf(actions, TA),
        conf("allocate, backfill", "priority gang | predicates nodeorder binpack"),
    ]
}

/// One line per object; some pods run already, some are leaving, some wait with a nomination.
fn clusters() -> impl Strategy<Value = String> {
    let node = (0_u32..5, 1_u32..5, 0_u32..3)
        .prop_map(|(cpu, pods, zone)| format!("cpu={cpu} pods={pods} zone=z{zone}"));
    let queue = (1_u32..4, prop::option::of(1_u32..6)).prop_map(|(weight, cap)| {
        format!("weight={weight} {}", cap.map_or(String::new(), |cpu| format!("cap.cpu={cpu}")))
    });
    let place = prop_oneof![
        6 => Just(String::new()),
        2 => (0_u32..3).prop_map(|node| format!("@n{node} running")),
        1 => (0_u32..3).prop_map(|node| format!("@n{node} running deleting")),
        1 => (0_u32..3).prop_map(|node| format!("nominated=n{node}")),
        1 => Just("gate=example.com/later".to_owned()),
    ];
    // What a pod wants of other pods; most want nothing.
    let wants = prop_oneof![
        8 => Just(""),
        1 => Just("near=zone:a"),
        1 => Just("away=zone:a"),
        1 => Just("away=zone:b like=zone:a"),
        1 => Just("spread=zone:1:a"),
        1 => Just("even=zone:1:b"),
    ];
    let task = (0_u32..4, 0_u32..4, place, wants, any::<bool>()).prop_map(
        |(cpu, group, place, wants, a)| {
            let app = if a { "a" } else { "b" };
            let cpu = if cpu == 0 { String::new() } else { format!("cpu={cpu}") };
            format!("{cpu} label.g={group} label.app={app} {wants} {place}")
        },
    );
    let phase = prop_oneof![Just(""), Just("pending"), Just("pending minres.cpu=2")];
    let policy = prop_oneof![2 => Just(None), 1 => (1_u32..3, 0_u32..3).prop_map(Some)];
    let job = (
        0_u32..3,
        0_u32..4,
        (phase, policy).prop_map(|(phase, policy)| match policy {
            Some((size, minimum)) => format!("{phase} policy.g={size}x{minimum}"),
            None => phase.to_owned(),
        }),
        prop::collection::vec(task, 0..5),
    );
    let parts = (
        prop::collection::vec(node, 0..4),
        prop::collection::vec(queue, 1..3),
        prop::collection::vec(job, 0..6),
    );
    parts.prop_map(|(nodes, queues, jobs)| {
        let mut text = String::new();
        for (index, words) in nodes.iter().enumerate() {
            text.push_str(&format!("node n{index} {words}\n"));
        }
        for (index, words) in queues.iter().enumerate() {
            text.push_str(&format!("queue q{index} {words}\n"));
        }
        for (index, (queue, min, phase, tasks)) in jobs.iter().enumerate() {
            text.push_str(&format!("job j{index} queue=q{queue} min={min} {phase}\n"));
            for (task, words) in tasks.iter().enumerate() {
                text.push_str(&format!("  task t{task} {words}\n"));
            }
        }
        text
    })
}

/// By node name: the dimensions in which more is used than there is.
fn overfull(cluster: &Cluster) -> BTreeSet<(String, Dim)> {
    let nodes = cluster.nodes_by_name().iter().map(|&node| &cluster.nodes[node]);
    let over = |node: &vc_model::Node| {
        let name = node.name.to_string();
        let idle = node.idle.clone();
        let dims = idle.dims().filter(move |&dim| idle.get(dim) < 0);
        dims.map(move |dim| (name.clone(), dim)).collect::<Vec<_>>()
    };
    nodes.flat_map(over).collect()
}

/// Jobs of the pods that a cycle bound.
fn bound_jobs(cluster: &Cluster, effects: &[Effect]) -> BTreeSet<JobId> {
    let of_bind = |effect: &Effect| match effect {
        Effect::Bind { uid, .. } => cluster.tasks[cluster.task(uid)?].job,
        _ => None,
    };
    effects.iter().filter_map(of_bind).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// No node is filled beyond what it has, no gang is started below its minimum, the sums hold
    /// (`World` checks them), and a cluster in which nothing happens is written nothing.
    #[test]
    fn cycles_keep_their_promises(text in clusters(), which in 0_usize..3) {
        let mut world = World::new(&configs()[which], &text);
        world.deliver();
        let mut n_binds: BTreeMap<String, u32> = BTreeMap::new();
        for _ in 0..6 {
            world.deliver();
            let full_before = overfull(world.engine.cluster());
            let cycle = world.cycle();
            let cluster = world.engine.cluster();
            let full_after = overfull(cluster);
            // Pods of no request only need a slot, which the pod count of the filters gives.
            prop_assert!(full_after.is_subset(&full_before), "{full_after:?}\n{}", cycle.all());
            for job in bound_jobs(cluster, &cycle.effects) {
                let row = &cluster.jobs[job];
                let ready = row.is_ready() && row.sub_jobs_ready();
                prop_assert!(ready, "{}\n{}", row.key, cycle.all());
            }
            for effect in &cycle.effects {
                if let Effect::Bind { pod, .. } = effect {
                    *n_binds.entry(pod.to_string()).or_default() += 1;
                }
            }
            world.kubelets();
            world.tick(1);
        }
        prop_assert!(n_binds.values().all(|&count| count == 1), "bound twice: {n_binds:?}");
        prop_assert_eq!(world.cycle().all(), "", "nothing has changed");
    }
}
