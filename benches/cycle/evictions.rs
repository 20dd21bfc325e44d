//! Full clusters in which a gang gets room only if others go: ten pods on every node, in gangs of
//! ten of which one is enough.

use vc_engine::Engine;
use vc_model::{ClusterEvent, PodGroupPhase};
use vc_resource::Quantity;

use crate::cases::{Case, START_MICROS};
use crate::load::{apply, base, events, gang};
use crate::objects::{Gang, Shape, queue, urgent};
use crate::queues::{in_queue, name};
use crate::tiers::{conf, tier};

/// The chart's tiers with preempt.
pub(crate) const PREEMPT: &str = conf!("enqueue, allocate, preempt, backfill", tier!(chart));

/// The same with reclaim.
pub(crate) const RECLAIM: &str = conf!("enqueue, allocate, reclaim, backfill", tier!(chart));

/// The same with gangpreempt.
pub(crate) const GANG_PREEMPT: &str =
    conf!("enqueue, allocate, gangpreempt, backfill", tier!(chart));

/// The same with gangreclaim.
pub(crate) const GANG_RECLAIM: &str =
    conf!("enqueue, allocate, gangreclaim, backfill", tier!(chart));

const OTHER_QUEUE: &str = "other";
const N_QUEUES: u64 = 1_000;
/// Three tenths of a node.
const THREE_TENTHS: Shape = Shape { cpu_milli: 19_200, memory_gi: 75 };
/// A tenth of a node.
const TENTH: Shape = Shape { cpu_milli: 6_400, memory_gi: 25 };

/// One gang goes before all others.
pub(crate) fn load_urgent(case: &Case, engine: &mut Engine) {
    let class = std::iter::once(ClusterEvent::PriorityClassApplied(urgent()));
    let waiting = Gang { is_urgent: true, ..waiting(case, 0) };
    apply(engine, class.chain(base(case)).chain(running(case)).chain(events(&waiting, |_| None)));
}

/// One gang waits in a queue that uses nothing.
pub(crate) fn load_other_queue(case: &Case, engine: &mut Engine) {
    let other = ClusterEvent::QueueApplied(Box::new(queue(OTHER_QUEUE)));
    let waiting = Gang { queue: OTHER_QUEUE, ..waiting(case, 0) };
    let waiting = events(&waiting, |_| None);
    apply(engine, base(case).chain(std::iter::once(other)).chain(running(case)).chain(waiting));
}

/// Gangs wait that are no more important than those that run.
pub(crate) fn load_equals(case: &Case, engine: &mut Engine) {
    let numbers = 0..case.n_pending / case.gang_size;
    let waiting = numbers.flat_map(|number| events(&waiting(case, number), |_| None));
    apply(engine, base(case).chain(running(case)).chain(waiting));
}

/// All pods are on one node.
pub(crate) fn load_one_node(case: &Case, engine: &mut Engine) {
    let n_running = i64::try_from(case.n_running).expect("few pods");
    let filled = move |mut event: ClusterEvent| {
        if let ClusterEvent::NodeApplied(node) = &mut event {
            for (name, amount) in &mut node.allocatable {
                *amount = match &**name {
                    "cpu" => Quantity::from_value(TENTH.cpu_milli * n_running / 1000),
                    "memory" => Quantity::from_value((TENTH.memory_gi * n_running) << 30),
                    _ => Quantity::from_value(1 << 40),
                };
            }
        }
        event
    };
    let class = std::iter::once(ClusterEvent::PriorityClassApplied(urgent()));
    let waiting = Gang { is_urgent: true, ..waiting(case, 0) };
    let base = class.chain(base(case)).map(filled);
    apply(engine, base.chain(running(case)).chain(events(&waiting, |_| None)));
}

/// One gang goes before all others, whose pods leave a piece on many nodes before any node has room
/// for one of its pods.
pub(crate) fn load_fragments(case: &Case, engine: &mut Engine) {
    let class = std::iter::once(ClusterEvent::PriorityClassApplied(urgent()));
    let waiting = waiting_for_pieces(case);
    apply(engine, class.chain(base(case)).chain(running(case)).chain(waiting));
}

/// The same where all that runs is of one gang.
pub(crate) fn load_one_victim(case: &Case, engine: &mut Engine) {
    let class = std::iter::once(ClusterEvent::PriorityClassApplied(urgent()));
    let created_micros = START_MICROS - 86_400_000_000;
    let whole = gang(0, case.n_running, TENTH, PodGroupPhase::Running, created_micros);
    let elastic = Gang { min_member: 1, ..whole };
    let running = events(&elastic, |index| Some(index % case.n_nodes));
    apply(engine, class.chain(base(case)).chain(running).chain(waiting_for_pieces(case)));
}

fn waiting_for_pieces(case: &Case) -> Vec<ClusterEvent> {
    let (n_pods, shape, is_urgent) = (case.n_pending, THREE_TENTHS, true);
    let waiting = Gang { n_pods, min_member: n_pods, shape, is_urgent, ..waiting(case, 0) };
    events(&waiting, |_| None)
}

/// What runs is of one half of many queues, what waits of the other half.
pub(crate) fn load_queues(case: &Case, engine: &mut Engine) {
    let queues = (0..N_QUEUES).map(|number| {
        let queue = queue(&name(number));
        ClusterEvent::QueueApplied(Box::new(queue))
    });
    let mut number = 0;
    let mut moved = move |event: ClusterEvent, half: u64| {
        number += 2 * u64::from(matches!(event, ClusterEvent::PodGroupApplied(_)));
        in_queue(event, (number + half) % N_QUEUES)
    };
    let numbers = 0..case.n_pending / case.gang_size;
    let waiting = numbers.flat_map(|number| events(&waiting(case, number), |_| None));
    let gangs: Vec<ClusterEvent> = running(case).map(|event| moved(event, 0)).collect();
    let waiting: Vec<ClusterEvent> = waiting.map(|event| moved(event, 1)).collect();
    apply(engine, base(case).chain(queues).chain(gangs).chain(waiting));
}

fn waiting(case: &Case, number: u64) -> Gang {
    let created_micros = START_MICROS - 3_600_000_000 + number as i64 * 1_000;
    // Behind the numbers of the gangs that run.
    gang(1_000_000 + number, case.gang_size, TENTH, PodGroupPhase::Inqueue, created_micros)
}

/// Ten pods run on every node, in gangs of ten of which one is enough.
pub(crate) fn running(case: &Case) -> impl Iterator<Item = ClusterEvent> {
    let n_nodes = case.n_nodes;
    (0..case.n_running / 10).flat_map(move |number| {
        let created_micros = START_MICROS - 86_400_000_000 + number as i64 * 1_000;
        let whole = gang(number, 10, TENTH, PodGroupPhase::Running, created_micros);
        let elastic = Gang { min_member: 1, ..whole };
        events(&elastic, |index| Some((number * 10 + index) % n_nodes))
    })
}
