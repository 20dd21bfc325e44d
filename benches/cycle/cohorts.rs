//! Quota between queues: one gang that takes its quota back from ten thousand groups, the heads of a
//! thousand queues, and many groups of many queues that are admitted.

use vc_engine::Engine;
use vc_model::{ClusterEvent, PodGroupPhase, QueueRecord};
use vc_resource::Quantity;

use crate::cases::{Case, START_MICROS};
use crate::load::{apply, base, events, gang};
use crate::objects::{Shape, queue};
use crate::queues::{in_queue, name};
use crate::tiers::{conf, tier};

/// Reclaim of any priority.
pub(crate) const SEARCH: &str = conf!("enqueue, allocate, preempt, reclaim", tier!(reclaiming));

/// The same with fair sharing.
pub(crate) const FAIR: &str = conf!("enqueue, allocate, preempt, reclaim", tier!(sharing));

/// Nobody is evicted.
pub(crate) const ADMIT: &str = conf!("enqueue, allocate", tier!(lending));

/// Queues of a cohort.
const N_SIBLINGS: u64 = 10;
/// Groups of a queue, on average.
const N_GROUPS: u64 = 10;
const SHAPE: Shape = Shape { cpu_milli: 2_000, memory_gi: 4 };

/// All queues but the first borrow: the quota that two groups of each use belongs to the first one,
/// whose gang wants a part of it back.
pub(crate) fn load_search(case: &Case, engine: &mut Engine) {
    let n_queues = case.n_running / N_GROUPS;
    let queue_of = |number: u64| 1 + number % (n_queues - 1);
    let n_groups = |queue: u64| {
        (0..case.n_running).skip(queue as usize - 1).step_by(n_queues as usize - 1).count()
    };
    let deserved = |queue: u64| match queue {
        // What the others borrow.
        0 => 2 * 2 * (n_queues as i64 - 1),
        // Two groups less than run.
        _ => 2 * (n_groups(queue) as i64 - 2),
    };
    let waiting = gang(1_000_000, case.gang_size, SHAPE, PodGroupPhase::Inqueue, START_MICROS);
    let waiting = events(&waiting, |_| None).into_iter().map(|event| in_queue(event, 0));
    let tree = tree(n_queues, Depth::Five, deserved);
    apply(engine, base(case).chain(tree).chain(running(case, queue_of)).chain(waiting));
}

/// Every queue uses just what belongs to it, and one more group waits in each.
pub(crate) fn load_heads(case: &Case, engine: &mut Engine) {
    let n_queues = case.n_running / N_GROUPS;
    let tree = tree(n_queues, Depth::Five, |_| 2 * N_GROUPS as i64);
    let waiting = (0..case.n_pending).flat_map(|number| {
        let created_micros = START_MICROS - 3_600_000_000 + number as i64 * 1_000;
        let group = gang(1_000_000 + number, 1, SHAPE, PodGroupPhase::Inqueue, created_micros);
        let events = events(&group, |_| None).into_iter();
        events.map(move |event| in_queue(event, number % n_queues))
    });
    let running = running(case, |number| number % n_queues);
    apply(engine, base(case).chain(tree).chain(running).chain(waiting));
}

/// Every queue has quota for one more group.
pub(crate) fn load_idle(case: &Case, engine: &mut Engine) {
    let n_queues = case.n_running / N_GROUPS;
    let tree = tree(n_queues, Depth::Five, |_| 2 * N_GROUPS as i64 + 2);
    let running = running(case, |number| number % n_queues);
    apply(engine, base(case).chain(tree).chain(running));
}

/// Groups of one pod.
fn running(
    case: &Case,
    queue_of: impl Fn(u64) -> u64 + Copy,
) -> impl Iterator<Item = ClusterEvent> {
    let n_nodes = case.n_nodes;
    (0..case.n_running).flat_map(move |number| {
        let created_micros = START_MICROS - 86_400_000_000 + number as i64 * 1_000;
        let group = gang(number, 1, SHAPE, PodGroupPhase::Running, created_micros);
        let events = events(&group, |_| Some(number % n_nodes)).into_iter();
        events.map(move |event| in_queue(event, queue_of(number)))
    })
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
    apply(engine, base(case).chain(tree(N_QUEUES, Depth::Three, deserved)).chain(waiting));
}

/// Levels of the tree, root and queues among them.
#[derive(Clone, Copy, PartialEq)]
enum Depth {
    Three,
    /// Ten cohorts form a division, five divisions a region.
    Five,
}

fn cohort(number: u64) -> String {
    format!("cohort-{:03}", number / N_SIBLINGS)
}

fn division(number: u64) -> String {
    format!("division-{:02}", number / N_SIBLINGS / 10)
}

fn region(number: u64) -> String {
    format!("region-{}", number / N_SIBLINGS / 50)
}

/// Queues in cohorts of ten.
fn tree(
    n_queues: u64,
    depth: Depth,
    deserved: impl Fn(u64) -> i64,
) -> impl Iterator<Item = ClusterEvent> {
    let applied = |record: QueueRecord| ClusterEvent::QueueApplied(Box::new(record));
    let below = |parent: String, record| QueueRecord { parent: parent.into(), ..record };
    let every = |n_each: u64| (0..n_queues).step_by((N_SIBLINGS * n_each) as usize);
    let cohorts = every(1).map(move |number| {
        let cohort = queue(&cohort(number));
        applied(if depth == Depth::Five { below(division(number), cohort) } else { cohort })
    });
    let upper = (depth == Depth::Five).then(|| {
        let regions = every(50).map(move |number| applied(queue(&region(number))));
        regions.chain(
            every(10).map(move |number| applied(below(region(number), queue(&division(number))))),
        )
    });
    let queues = (0..n_queues).map(move |number| {
        let cpus = Quantity::from_value(deserved(number));
        let deserved = vec![("cpu".into(), cpus)];
        applied(below(cohort(number), QueueRecord { deserved, ..queue(&name(number)) }))
    });
    let root = std::iter::once(applied(queue("root")));
    root.chain(upper.into_iter().flatten()).chain(cohorts).chain(queues)
}
