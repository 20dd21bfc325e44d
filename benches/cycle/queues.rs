//! Queues by number and groups in them; clusters with many queues.

use vc_engine::Engine;
use vc_model::{ClusterEvent, PodGroupPhase};

use crate::cases::Case;
use crate::load::{apply, base, pending_gangs, running_gangs};
use crate::objects::{Shape, queue};
use crate::tiers::{conf, tier};

/// Queues that share by their place in a tree, without proportion.
pub(crate) const HIERARCHY: &str = conf!("enqueue, allocate, backfill", tier!(hierarchy));

/// The same with reclaim.
pub(crate) const HIERARCHY_RECLAIM: &str =
    conf!("enqueue, allocate, reclaim, backfill", tier!(hierarchy));

/// Queues with quotas.
pub(crate) const QUOTAS: &str = conf!("enqueue, allocate, backfill", tier!(quotas));

const N_QUEUES: u64 = 4_000;
/// Inner nodes of a tree, each with as many queues.
const N_DEPARTMENTS: u64 = 32;
const SMALL: Shape = Shape { cpu_milli: 2_000, memory_gi: 8 };
/// A quarter of a node.
const QUARTER: Shape = Shape { cpu_milli: 15_500, memory_gi: 62 };

/// Name of the queue of this number.
pub(crate) fn name(number: u64) -> String {
    format!("queue-{number:04}")
}

/// The same event with the group in the queue of this number.
pub(crate) fn in_queue(mut event: ClusterEvent, number: u64) -> ClusterEvent {
    if let ClusterEvent::PodGroupApplied(group) = &mut event {
        group.queue = name(number).into();
    }
    event
}

/// The groups one after the other in so many queues.
pub(crate) fn in_turn(
    events: impl Iterator<Item = ClusterEvent>,
    n_queues: u64,
) -> impl Iterator<Item = ClusterEvent> {
    let mut n_groups = 0;
    events.map(move |event| {
        let of_group = n_groups % n_queues;
        n_groups += u64::from(matches!(event, ClusterEvent::PodGroupApplied(_)));
        in_queue(event, of_group)
    })
}

/// Gangs run in all of many queues, and there is room for more.
pub(crate) fn load_many(case: &Case, engine: &mut Engine) {
    let queues =
        (0..N_QUEUES).map(|number| ClusterEvent::QueueApplied(Box::new(queue(&name(number)))));
    let running = in_turn(running_gangs(case, 4, SMALL), N_QUEUES);
    apply(engine, base(case).chain(queues).chain(running));
}

/// As many queues as gangs wait, in departments.
pub(crate) fn load_tree(case: &Case, engine: &mut Engine) {
    let n_queues = case.n_pending / case.gang_size;
    let gangs = in_turn(pending_gangs(case, PodGroupPhase::Pending, |_| SMALL), n_queues);
    let department = |number: u64| format!("root/department-{}", number % N_DEPARTMENTS);
    apply(engine, base(case).chain(tree(n_queues, department)).chain(gangs));
}

/// All nodes are full with pods of one half of the queues; pods of the other half wait. All queues are
/// right under the root, and nobody goes: with all that it asks for a queue stands behind those that
/// would lose something.
pub(crate) fn load_full_tree(case: &Case, engine: &mut Engine) {
    let n_queues = case.n_pending / case.gang_size;
    let waiting = in_turn(pending_gangs(case, PodGroupPhase::Inqueue, |_| QUARTER), n_queues);
    let mut n_groups = 0;
    let running = running_gangs(case, 1, QUARTER).map(move |event| {
        let of_group = n_queues + n_groups % n_queues;
        n_groups += u64::from(matches!(event, ClusterEvent::PodGroupApplied(_)));
        in_queue(event, of_group)
    });
    let flat = tree(2 * n_queues, |_| "root".to_owned());
    apply(engine, base(case).chain(flat).chain(running).chain(waiting));
}

fn tree(n_queues: u64, above: impl Fn(u64) -> String) -> impl Iterator<Item = ClusterEvent> {
    (0..n_queues).map(move |number| {
        let mut queue = queue(&name(number));
        let path = format!("{}/{}", above(number), queue.name);
        queue.annotations.insert("volcano.sh/hierarchy".into(), path.into());
        queue.annotations.insert("volcano.sh/hierarchy-weights".into(), "1/1/1".into());
        ClusterEvent::QueueApplied(Box::new(queue))
    })
}
