//! Laws of evictions over random small clusters and several cycles with kubelets that obey and
//! controllers that replace what is evicted: never useless, never endless, the freed place goes to
//! the job it was freed for (actions.md 2.11, 11.2, A16; invariants 1, 3 and 4 of the issue).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::OnceLock;

use proptest::prelude::*;
use vc_conf::Config;
use vc_engine::Effect;
use vc_model::{Cluster, JobId};

use crate::support::*;

/// Each with one tier, in which gang votes.
fn configs() -> &'static [Config; 8] {
    static CONFIGS: OnceLock<[Config; 8]> = OnceLock::new();
    CONFIGS.get_or_init(make_configs)
}

fn make_configs() -> [Config; 8] {
    let tp = "gang{preemptable jobPipelined jobStarving jobReady jobOrder} \
        priority{taskOrder jobOrder preemptable jobPipelined jobStarving} conformance \
        proportion{overused allocatable queueOrder} predicates nodeorder";
    let elastic = "gang{preemptable reclaimable jobPipelined jobReady jobOrder} \
        priority{taskOrder jobOrder preemptable jobStarving} conformance \
        proportion{reclaimable queueOrder preemptive allocatable} predicates binpack";
    let tr = "gang{reclaimable jobPipelined jobStarving jobReady jobOrder} conformance \
        priority{jobOrder taskOrder} drf{jobOrder} \
        proportion{reclaimable queueOrder preemptive allocatable} predicates binpack";
    let both = "priority gang conformance drf{jobOrder} predicates proportion{*} binpack";
    let capacity = "gang{reclaimable jobPipelined jobStarving jobReady jobOrder} conformance \
        priority{jobOrder taskOrder} predicates binpack \
        capacity{reclaimable queueOrder preemptive allocatable jobEnqueued}";
    let tree = "priority gang conformance predicates capacity{* hierarchy} binpack";
    let all = "enqueue, allocate, preempt, reclaim, backfill";
    let dry = conf("allocate, preempt, backfill", tp);
    let dry = with_arguments(dry, "preempt", "{enableTopologyAwarePreemption: true}");
    [
        conf("allocate, preempt, backfill", tp),
        dry,
        conf("allocate, reclaim, backfill", tr),
        conf(all, both),
        conf(all, elastic),
        conf("allocate, backfill, reclaim, preempt", elastic),
        conf("enqueue, allocate, reclaim, backfill", capacity),
        conf(all, tree),
    ]
}

/// Nodes on which what runs fits, without best-effort pods: backfill gives these what is free,
/// whoever waits; the jobs that wait may have more priority.
fn clusters(slots: Range<u32>) -> impl Strategy<Value = String> {
    let amount = || prop::option::of(2_u32..8);
    let queue = (1_u32..4, amount(), amount()).prop_map(|(weight, cap, deserved)| {
        let word = |name, amount: Option<u32>| {
            amount.map_or(String::new(), |cpu| format!("{name}.cpu={cpu}"))
        };
        format!("weight={weight} {} {}", word("cap", cap), word("deserved", deserved))
    });
    // Job, cpu.
    let slot = prop::option::weighted(0.8, (0_usize..5, 1_u32..4));
    let node = (2_u32..7, slots, prop::collection::vec(slot, 0..5));
    let job = (0_u32..2, 0_u32..4, 0_u32..3, prop::collection::vec((1_u32..5, 0_u32..3), 0..4));
    let parts = (
        prop::collection::vec(node, 1..4),
        prop::collection::vec(queue, 2),
        prop::collection::vec(job, 5),
    );
    parts.prop_map(|(nodes, queues, jobs)| {
        let mut running: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let mut text = String::new();
        for (index, (cpu, pods, slots)) in nodes.iter().enumerate() {
            text.push_str(&format!("node n{index} cpu={cpu} pods={pods}\n"));
            let (mut left, mut left_pods) = (*cpu, *pods);
            for (job, wanted) in slots.iter().flatten().filter(|(_, wanted)| *wanted <= *cpu) {
                if left < *wanted || left_pods == 0 {
                    continue;
                }
                (left, left_pods) = (left - wanted, left_pods - 1);
                let words = format!("cpu={} @n{index} running", *wanted);
                running.entry(*job).or_default().push(words);
            }
        }
        for (index, words) in queues.iter().enumerate() {
            text.push_str(&format!("queue q{index} {words}\n"));
        }
        for (index, (queue, min, priority, waiting)) in jobs.iter().enumerate() {
            text.push_str(&format!("job j{index} queue=q{queue} min={min} priority={priority}\n"));
            for (task, words) in running.remove(&index).unwrap_or_default().iter().enumerate() {
                text.push_str(&format!("  task r{task} {words}\n"));
            }
            for (task, (cpu, priority)) in waiting.iter().enumerate() {
                text.push_str(&format!("  task w{task} cpu={} priority={priority}\n", *cpu));
            }
        }
        text
    })
}

/// What runs counts for its gang: by job, how many ready members.
fn ready(cluster: &Cluster) -> BTreeMap<JobId, i64> {
    let row = |(job, row): (JobId, &vc_model::Job)| (job, i64::from(row.counts.ready()));
    cluster.jobs.iter().map(row).collect()
}

/// Evictions as (victim, preemptor) by name.
fn evictions(cycle: &Cycle) -> Vec<(String, String)> {
    let pair = |effect: &Effect| match effect {
        Effect::Evict { pod, for_pod, .. } => {
            let preemptor = for_pod.as_ref().expect("preempt and reclaim name it");
            Some((pod.name.to_string(), preemptor.name.to_string()))
        }
        _ => None,
    };
    cycle.effects.iter().filter_map(pair).collect()
}

fn bound(cycle: &Cycle) -> BTreeSet<String> {
    let name = |effect: &Effect| match effect {
        Effect::Bind { pod, .. } => Some(pod.name.to_string()),
        _ => None,
    };
    cycle.effects.iter().filter_map(name).collect()
}

fn job_of(cluster: &Cluster, pod: &str) -> JobId {
    cluster.tasks[task(cluster, pod)].job.expect("every pod of the test has one")
}

/// Invariant 1: whoever had pods evicted got a place in the same cycle, and so did its gang.
fn check_useful(cluster: &Cluster, cycle: &Cycle) -> Result<(), String> {
    let waits: BTreeSet<String> =
        cycle.report.pipelined.iter().map(|task| task.pod.name.to_string()).collect();
    let bound = bound(cycle);
    for (victim, preemptor) in evictions(cycle) {
        if !waits.contains(&preemptor) && !bound.contains(&preemptor) {
            return Err(format!("{victim} goes, but {preemptor} has no place"));
        }
        let job = job_of(cluster, &preemptor);
        if job == job_of(cluster, &victim) {
            continue;
        }
        let row = &cluster.jobs[job];
        let n_waiting = waits.iter().filter(|pod| job_of(cluster, pod) == job).count() as i64;
        let n_free = i64::from(row.counts.ready() + row.counts.pending_best_effort);
        if n_free + n_waiting < i64::from(row.min_available) {
            return Err(format!("{victim} goes, but the gang of {preemptor} is not complete"));
        }
    }
    Ok(())
}

/// Invariant 3: no gang loses members that it needs.
fn check_gangs(
    cluster: &Cluster,
    cycle: &Cycle,
    before: &BTreeMap<JobId, i64>,
) -> Result<(), String> {
    let mut left = before.clone();
    for pod in bound(cycle) {
        *left.entry(job_of(cluster, &pod)).or_default() += 1;
    }
    let victims: Vec<JobId> =
        evictions(cycle).iter().map(|(victim, _)| job_of(cluster, victim)).collect();
    victims.iter().for_each(|job| *left.entry(*job).or_default() -= 1);
    for job in victims {
        let row = &cluster.jobs[job];
        if left[&job] < i64::from(row.min_available) {
            return Err(format!("{} is left with {}", row.key, left[&job]));
        }
    }
    Ok(())
}

const N_CYCLES: u32 = 18;

/// Kubelets obey after every `lag`-th cycle.
fn live(config: &Config, text: &str, lag: u32) -> Result<(), String> {
    let mut world = World::new(config, text);
    let mut n_quiet = 0;
    let mut story = String::new();
    // Preemptor pod and the cycle of its evictions, until it is bound.
    let mut owed: BTreeMap<String, u32> = BTreeMap::new();
    let mut served: BTreeSet<String> = BTreeSet::new();
    let fail = |story: &str, why: String| Err(format!("{why}\n{text}{story}"));
    for number in 0..N_CYCLES {
        world.deliver();
        let before = ready(world.engine.cluster());
        let cycle = world.cycle();
        story.push_str(&format!("--- {number}\n{}\n", cycle.decisions()));
        let cluster = world.engine.cluster();
        check_useful(cluster, &cycle).or_else(|why| fail(&story, why))?;
        check_gangs(cluster, &cycle, &before).or_else(|why| fail(&story, why))?;
        for pod in bound(&cycle) {
            owed.remove(&pod);
        }
        let evicted = evictions(&cycle);
        let now: BTreeSet<String> =
            evicted.iter().map(|(_, preemptor)| preemptor.clone()).collect();
        for preemptor in now {
            if !served.insert(preemptor.clone()) {
                return fail(&story, format!("{preemptor} has more evicted than was enough"));
            }
            owed.insert(preemptor, number);
        }
        for (preemptor, since) in &owed {
            if since + lag < number {
                return fail(&story, format!("{preemptor} did not get the place"));
            }
        }
        if N_CYCLES - 4 < number && !evicted.is_empty() {
            return fail(&story, "no end of evictions".to_owned());
        }
        n_quiet = if bound(&cycle).is_empty() && evicted.is_empty() { n_quiet + 1 } else { 0 };
        if lag < n_quiet {
            break;
        }
        if (number + 1) % lag == 0 {
            world.kubelets_and_controllers();
        }
        world.tick(1);
    }
    Ok(())
}

fn check(text: &str, which: usize, lag: u32) -> Result<(), TestCaseError> {
    let lived = live(&configs()[which], text, lag);
    lived.map_err(|why| TestCaseError::fail(format!("configuration {which}, lag {lag}: {why}")))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn evictions_are_useful_and_end(text in clusters(20..26), which in 0_usize..8, lag in 1_u32..4) {
        check(&text, which, lag)?;
    }

    /// Slots are scarce. Victims go at once: while they terminate, the filter for slots refuses the
    /// claim, and others may come first.
    #[test]
    fn evictions_of_slots_are_useful_and_end(text in clusters(2..6), which in 0_usize..8) {
        check(&text, which, 1)?;
    }
}
