//! Laws of gangpreempt and gangreclaim over random small clusters and several cycles with kubelets
//! that obey and controllers that replace what is evicted. `World` verifies every certificate.
//! Invariants 1 to 5 of the issue; actions.md 9, 11.2.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::OnceLock;

use proptest::prelude::*;
use vc_conf::Config;
use vc_framework::{Certificate, Relation};
use vc_model::{Cluster, ClusterEvent, JobId, fixture};

use crate::evictions::RACKS;
use crate::support::*;

const N_CYCLES: u32 = 30;

/// Whether whole gangs may go.
fn configs() -> &'static [(Config, bool); 5] {
    static CONFIGS: OnceLock<[(Config, bool); 5]> = OnceLock::new();
    CONFIGS.get_or_init(|| {
        let base = "gang{jobPipelined jobStarving jobReady jobOrder subJobReady subJobPipelined \
            subJobOrder} priority{jobOrder taskOrder jobStarving} conformance predicates";
        let one = format!("{base} proportion{{allocatable queueOrder}} binpack");
        let other = format!("{base} proportion{{allocatable queueOrder preemptive overused}} drf");
        let all = "enqueue, allocate, gangpreempt, gangreclaim, backfill";
        let arguments = |config, action, text| with_arguments(config, action, text);
        let preempt = conf("allocate, gangpreempt, backfill", &one);
        let safe = arguments(preempt.clone(), "gangpreempt", "{allowWholeBundle: false}");
        let reclaim = conf("allocate, gangreclaim, backfill", &other);
        let first = "{victimOrderPolicy: priority-first}";
        [
            (arguments(preempt.clone(), "gangpreempt", first), true),
            (preempt, true),
            (safe, false),
            (reclaim, true),
            (conf(all, "priority gang conformance | drf predicates proportion binpack"), true),
        ]
    })
}

/// Configurations that place by HyperNodes. Whole gangs may go, but for the last one.
fn configs_with_hyper_nodes() -> &'static [(Config, bool); 3] {
    static CONFIGS: OnceLock<[(Config, bool); 3]> = OnceLock::new();
    CONFIGS.get_or_init(|| {
        let plugins = "priority gang conformance | drf predicates proportion binpack \
            network-topology-aware";
        let all = conf("enqueue, allocate, gangpreempt, gangreclaim, backfill", plugins);
        let preempt = conf("allocate, gangpreempt, backfill", plugins);
        let safe = with_arguments(preempt, "gangpreempt", "{allowWholeBundle: false}");
        let reclaim = conf("allocate, gangreclaim, backfill", plugins);
        [(all, true), (reclaim, true), (safe, false)]
    })
}

/// Words about network topologies of jobs and their sub-groups.
fn topology() -> impl Strategy<Value = String> {
    let topology =
        prop::sample::select(vec!["", "topology=hard", "topology=hard:2", "topology=soft"]);
    let own = prop::sample::select(vec!["", "", ":hard", ":hard:2", ":soft"]);
    let policy = prop::option::of((1_u32..3, 0_u32..3, own));
    (topology, policy).prop_map(|(topology, policy)| {
        let policy = policy.map(|(size, min, own)| format!("policy.g={size}x{min}{own}"));
        format!("{topology} {}", policy.unwrap_or_default())
    })
}

/// Roles and sub-groups of jobs.
fn policy() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => Just(String::new()),
        1 => (1_u32..3, 0_u32..3).prop_map(|(size, min)| format!("policy.g={size}x{min}")),
        1 => (1_u32..3).prop_map(|min| format!("role.r0={min}")),
    ]
}

/// Nodes on which what runs fits, and jobs with these words.
fn clusters(
    n_nodes: Range<usize>,
    policy: impl Strategy<Value = String>,
) -> impl Strategy<Value = String> {
    let queue = (1_u32..4, prop::option::of(2_u32..8), prop::bool::weighted(0.9));
    let queue = queue.prop_map(|(weight, cap, gives)| {
        let cap = cap.map_or(String::new(), |cpu| format!("cap.cpu={cpu}"));
        format!("weight={weight} reclaimable={gives} {cap}")
    });
    // Job, cpu, priority, group, role.
    let task = || (1_u32..4, 0_u32..3, 0_u32..3, 0_u32..2);
    let slot = prop::option::weighted(0.85, (0_usize..5, task()));
    let node = (2_u32..7, prop::collection::vec(slot, 0..6));
    let job = (0_u32..2, 0_u32..4, 0_u32..3, policy, prop::collection::vec(task(), 0..4));
    let parts = (
        prop::collection::vec(node, n_nodes),
        prop::collection::vec(queue, 2),
        prop::collection::vec(job, 5),
    );
    parts.prop_map(|(nodes, queues, jobs)| {
        let words = |(cpu, priority, group, role): (u32, u32, u32, u32)| {
            format!("cpu={cpu} priority={priority} label.g={group} role=r{role}")
        };
        let mut running: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let mut text = String::new();
        for (index, (cpu, slots)) in nodes.iter().enumerate() {
            text.push_str(&format!("node n{index} cpu={cpu}\n"));
            let mut left = *cpu;
            for &(job, task) in slots.iter().flatten() {
                if task.0 <= left {
                    left -= task.0;
                    let words = format!("{} @n{index} running", words(task));
                    running.entry(job).or_default().push(words);
                }
            }
        }
        for (index, words) in queues.iter().enumerate() {
            text.push_str(&format!("queue q{index} {words}\n"));
        }
        for (index, (queue, min, priority, policy, waiting)) in jobs.iter().enumerate() {
            text.push_str(&format!(
                "job j{index} queue=q{queue} min={min} priority={priority} {policy}\n"
            ));
            for (task, words) in running.remove(&index).unwrap_or_default().iter().enumerate() {
                text.push_str(&format!("  task r{task} {words}\n"));
            }
            for (task, &wanted) in waiting.iter().enumerate() {
                text.push_str(&format!("  task w{task} {}\n", words(wanted)));
            }
        }
        text
    })
}

fn job_of(cluster: &Cluster, key: &vc_model::ObjectKey) -> JobId {
    cluster.job(key).expect("certificates name known groups")
}

/// Every task of the plan waits where it was placed, and the gang is complete with them.
fn check_useful(cluster: &Cluster, cycle: &Cycle, proof: &Certificate) -> Result<(), String> {
    let key = proof.pod_group.as_ref().ok_or("a gang action evicts for somebody")?;
    let row = &cluster.jobs[job_of(cluster, key)];
    let waits = |pod: &vc_model::ObjectKey| cycle.report.pipelined.iter().any(|it| it.pod == *pod);
    let n_waiting = row.tasks.iter().filter(|&&task| waits(&cluster.tasks[task].key)).count();
    if !proof.placements.iter().all(|placed| waits(&placed.pod)) {
        return Err(format!("pods go for {key}, which does not wait for their room"));
    }
    let n_there = i64::from(row.counts.ready() + row.counts.pending_best_effort);
    match n_there + (n_waiting as i64) < i64::from(row.min_available) {
        true => Err(format!("pods go for {key}, which is not complete")),
        false => Ok(()),
    }
}

/// Only pods of other jobs, inside the queue only of lower ones; where whole gangs must not go, no
/// gang falls below its minimum.
fn check_victims(
    cluster: &Cluster,
    proof: &Certificate,
    whole: bool,
    ready: &mut BTreeMap<JobId, i64>,
) -> Result<(), String> {
    let own = proof.pod_group.as_ref().map(|key| &cluster.jobs[job_of(cluster, key)]);
    let mut lost: BTreeMap<JobId, i64> = BTreeMap::new();
    for victim in &proof.victims {
        let job = job_of(cluster, &victim.pod_group);
        *lost.entry(job).or_default() += 1;
        let outranked = own.is_some_and(|own| cluster.jobs[job].priority < own.priority);
        let may = match victim.relation {
            Relation::SameQueue => outranked,
            Relation::OtherQueue => true,
            _ => false,
        };
        if !may {
            return Err(format!("{} must not go", victim.pod));
        }
    }
    for (job, n_lost) in lost {
        let (min, had) = (i64::from(cluster.jobs[job].min_available), ready[&job]);
        *ready.entry(job).or_default() -= n_lost;
        if !whole && min <= had && had - n_lost < min {
            return Err(format!("{} is left with {}", cluster.jobs[job].key, had - n_lost));
        }
    }
    Ok(())
}

/// Kubelets obey after every `lag`-th cycle.
fn live(
    (config, whole): &(Config, bool),
    (text, hyper_nodes): (&str, &str),
    lag: u32,
) -> Result<(), String> {
    let mut world = World::new(config, text);
    fixture::events_of(hyper_nodes).into_iter().for_each(|event| world.send(event));
    world.send(ClusterEvent::HyperNodesListed { is_complete: true });
    let mut story = String::new();
    // Pods that wait for the room that was made for them, and since when.
    let mut owed: BTreeMap<String, u32> = BTreeMap::new();
    let mut n_quiet = 0;
    for number in 0..N_CYCLES {
        world.deliver();
        let ready = |(job, row): (JobId, &vc_model::Job)| (job, i64::from(row.counts.ready()));
        let mut ready: BTreeMap<JobId, i64> =
            world.engine.cluster().jobs.iter().map(ready).collect();
        let cycle = world.cycle();
        story.push_str(&format!("--- {number}\n{}\n", cycle.decisions()));
        let fail = |why: String| Err(format!("{why}\n{text}{story}"));
        let cluster = world.engine.cluster();
        for pod in cycle.only(&["bind"]).lines().filter_map(|line| line.split(' ').nth(1)) {
            let job = cluster.tasks[task(cluster, pod)].job.expect("every pod has one");
            *ready.entry(job).or_default() += 1;
        }
        for proof in &cycle.report.certificates {
            check_useful(cluster, &cycle, proof).or_else(fail)?;
            check_victims(cluster, proof, *whole, &mut ready).or_else(fail)?;
            for placed in &proof.placements {
                owed.insert(placed.pod.name.to_string(), number);
            }
        }
        let bound = cycle.only(&["bind", "evict"]);
        let done: BTreeSet<&str> =
            bound.lines().filter_map(|line| line.split(' ').nth(1)).collect();
        // Nothing is owed once the limit of the queue is lower than it was (11.2): who replaces a
        // victim asks for the share of its queue again.
        owed.retain(|pod, _| !done.contains(pod.as_str()) && !is_refused_by_queue(cluster, pod));
        if let Some((pod, _)) = owed.iter().find(|(_, since)| *since + lag < number) {
            return fail(format!("{pod} did not get the place"));
        }
        n_quiet = if done.is_empty() { n_quiet + 1 } else { 0 };
        if lag < n_quiet {
            return Ok(());
        }
        if (number + 1) % lag == 0 {
            world.kubelets_and_controllers();
        }
        world.tick(1);
    }
    Err(format!("no end of evictions\n{text}{story}"))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn gang_evictions_are_useful_and_end(
        text in clusters(1..4, policy()),
        which in 0_usize..5,
        lag in 1_u32..4,
    ) {
        let lived = live(&configs()[which], (&text, ""), lag);
        lived.map_err(|why| TestCaseError::fail(format!("configuration {which}, lag {lag}: {why}")))?;
    }

    #[test]
    fn gang_evictions_in_hyper_nodes_are_useful_and_end(
        text in clusters(2..6, topology()),
        which in 0_usize..3,
        lag in 1_u32..4,
    ) {
        let lived = live(&configs_with_hyper_nodes()[which], (&text, RACKS), lag);
        lived.map_err(|why| TestCaseError::fail(format!("configuration {which}, lag {lag}: {why}")))?;
    }
}
