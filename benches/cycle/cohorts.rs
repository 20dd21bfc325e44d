//! Quota between queues: one gang that takes its quota back from a thousand groups, and many groups
//! of many queues that are admitted.

use vc_engine::Engine;
use vc_model::{ClusterEvent, PodGroupPhase, QueueRecord};
use vc_resource::Quantity;

use crate::cases::{Case, START_MICROS, apply, base, events, gang};
use crate::objects::{Shape, queue};
use crate::queues::{in_queue, name};
use crate::tiers::{conf, tier};

/// Reclaim of any priority.
pub(crate) const SEARCH: &str = conf!("enqueue, allocate, preempt, reclaim", tier!(reclaiming));

/// Nobody is evicted.
pub(crate) const ADMIT: &str = conf!("enqueue, allocate", tier!(lending));

/// Queues of a cohort.
const N_SIBLINGS: u64 = 10;

/// Queues in cohorts of ten below root, ninety for a thousand groups. All but the first borrow: the quota that two groups of
/// each use belongs to the first one, whose gang wants a part of it back.
pub(crate) fn load_search(case: &Case, engine: &mut Engine) {
    let n_queues = case.n_running * 9 / 100;
    let shape = Shape { cpu_milli: 2_000, memory_gi: 4 };
    let n_groups = |queue: u64| {
        (0..case.n_running).skip(queue as usize - 1).step_by(n_queues as usize - 1).count()
    };
    let deserved = |queue: u64| match queue {
        // What the others borrow.
        0 => 2 * 2 * (n_queues as i64 - 1),
        // Two groups less than run.
        _ => 2 * (n_groups(queue) as i64 - 2),
    };
    let running = (0..case.n_running).flat_map(|number| {
        let created_micros = START_MICROS - 86_400_000_000 + number as i64 * 1_000;
        let group = gang(number, 1, shape, PodGroupPhase::Running, created_micros);
        let node = number % case.n_nodes;
        let queue = 1 + number % (n_queues - 1);
        events(&group, |_| Some(node)).into_iter().map(move |event| in_queue(event, queue))
    });
    let waiting = gang(1_000_000, case.gang_size, shape, PodGroupPhase::Inqueue, START_MICROS);
    let waiting = events(&waiting, |_| None).into_iter().map(|event| in_queue(event, 0));
    apply(engine, base(case).chain(tree(n_queues, deserved)).chain(running).chain(waiting));
}

/// Of 500 groups 350 are small, 100 medium and 50 large, as in Kueue's own test of scale. All of
/// them have quota in the end; every other queue borrows.
pub(crate) fn load_admit(case: &Case, engine: &mut Engine) {
    const N_QUEUES: u64 = 1_000;
    let cpus = |number: u64| match number / N_QUEUES % 10 {
        0..7 => 1,
        7..9 => 5,
        _ => 20,
    };
    let asked =
        |queue: u64| -> i64 { (queue..case.n_pending).step_by(N_QUEUES as usize).map(cpus).sum() };
    let deserved = |queue: u64| match queue % 2 {
        0 => asked(queue) + 10,
        _ => (asked(queue) - 10).max(0),
    };
    let waiting = (0..case.n_pending).flat_map(|number| {
        let shape = Shape { cpu_milli: 1_000 * cpus(number), memory_gi: 1 };
        let created_micros = START_MICROS - 3_600_000_000 + number as i64 * 1_000;
        let group = gang(1_000_000 + number, 1, shape, PodGroupPhase::Pending, created_micros);
        let events = events(&group, |_| None).into_iter();
        events.map(move |event| in_queue(event, number % N_QUEUES))
    });
    apply(engine, base(case).chain(tree(N_QUEUES, deserved)).chain(waiting));
}

fn cohort(number: u64) -> String {
    format!("cohort-{:03}", number / N_SIBLINGS)
}

/// Queues in cohorts of ten below root.
fn tree(n_queues: u64, deserved: impl Fn(u64) -> i64) -> impl Iterator<Item = ClusterEvent> {
    let applied = |record: QueueRecord| ClusterEvent::QueueApplied(Box::new(record));
    let cohorts = (0..n_queues).step_by(N_SIBLINGS as usize);
    let cohorts = cohorts.map(move |number| applied(queue(&cohort(number))));
    let queues = (0..n_queues).map(move |number| {
        let cpus = Quantity::from_value(deserved(number));
        applied(QueueRecord {
            parent: cohort(number).into(),
            deserved: vec![("cpu".into(), cpus)],
            ..queue(&name(number))
        })
    });
    std::iter::once(applied(queue("root"))).chain(cohorts).chain(queues)
}
