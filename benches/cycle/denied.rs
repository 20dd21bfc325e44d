//! Full clusters in which gangs starve for whose room nobody goes: every node has 2 cpus left, and what
//! runs on it is protected, or together too small.

use vc_engine::Engine;
use vc_model::{ClusterEvent, PodGroupPhase, QueueRecord};
use vc_resource::Quantity;

use crate::cases::{Case, START_MICROS};
use crate::load::{apply, base, events, gang};
use crate::objects::{Gang, QUEUE, Shape, queue, urgent};
use crate::tiers::{conf, tier};

/// The chart's tiers with both actions that evict.
pub(crate) const BOTH: &str = conf!("enqueue, allocate, preempt, reclaim, backfill", tier!(chart));

/// The same with quotas.
pub(crate) const BOTH_BY_QUOTA: &str =
    conf!("enqueue, allocate, preempt, reclaim, backfill", tier!(quotas));

const OTHER_QUEUE: &str = "other";
/// Pods of a gang that runs.
const N_MEMBERS: u64 = 4;
/// Four of them leave 2 cpus of a node.
const QUARTER: Shape = Shape { cpu_milli: 15_500, memory_gi: 62 };

/// More than one pod that goes would leave: 17.5 cpus.
fn large(number: u64) -> Shape {
    Shape { cpu_milli: 18_000 + 250 * (number % 16) as i64, memory_gi: 4 }
}

/// What one pod that goes would leave.
fn medium(number: u64) -> Shape {
    Shape { cpu_milli: 10_000 + 250 * (number % 16) as i64, memory_gi: 4 }
}

/// Urgent gangs wait. On every node one pod may go, and leaves too little; the gangs of the others
/// need all their pods.
pub(crate) fn load_too_few(case: &Case, engine: &mut Engine) {
    let running = running(case, case.n_nodes / N_MEMBERS, |_| QUEUE);
    load(engine, base(case).chain(running).chain(waiting(case, true, large)));
}

/// Urgent gangs wait. Six pods may go, each of which leaves room for a member; a gang needs ten.
pub(crate) fn load_partly(case: &Case, engine: &mut Engine) {
    let running = running(case, 2, |_| QUEUE);
    load(engine, base(case).chain(running).chain(waiting(case, true, medium)));
}

/// Gangs wait in a queue that uses nothing. The other queue has more than its share, but on every
/// node only one of its pods may go, and leaves too little.
pub(crate) fn load_reclaim(case: &Case, engine: &mut Engine) {
    let running = running(case, case.n_nodes / N_MEMBERS, |_| OTHER_QUEUE);
    load(engine, base(case).chain(other()).chain(running).chain(waiting(case, false, large)));
}

/// Urgent gangs wait. Half of what runs is of their queue, of which one pod of every node may go and
/// leaves too little; the other half is of a queue that has no more than its share.
pub(crate) fn load_both(case: &Case, engine: &mut Engine) {
    load_halves(case, engine, other());
}

/// The same, where each queue deserves a little more than it has.
pub(crate) fn load_both_by_quota(case: &Case, engine: &mut Engine) {
    let queues = [QUEUE, OTHER_QUEUE].map(|name| {
        let deserved = vec![
            ("cpu".into(), Quantity::from_value(16 * (case.n_running / 2) as i64)),
            ("memory".into(), Quantity::from_value((case.n_running as i64 / 2) << 36)),
        ];
        ClusterEvent::QueueApplied(Box::new(QueueRecord { deserved, ..queue(name) }))
    });
    load_halves(case, engine, queues.into_iter());
}

fn load_halves(case: &Case, engine: &mut Engine, queues: impl Iterator<Item = ClusterEvent>) {
    let half = case.n_running / N_MEMBERS / 2;
    let elastic = case.n_nodes / N_MEMBERS;
    let running =
        running(case, elastic, move |number| if number < half { QUEUE } else { OTHER_QUEUE });
    load(engine, base(case).chain(queues).chain(running).chain(waiting(case, true, large)));
}

fn load(engine: &mut Engine, events: impl Iterator<Item = ClusterEvent>) {
    let class = ClusterEvent::PriorityClassApplied(urgent());
    apply(engine, std::iter::once(class).chain(events));
}

fn other() -> impl Iterator<Item = ClusterEvent> {
    std::iter::once(ClusterEvent::QueueApplied(Box::new(queue(OTHER_QUEUE))))
}

fn waiting(
    case: &Case,
    is_urgent: bool,
    shape: fn(u64) -> Shape,
) -> impl Iterator<Item = ClusterEvent> {
    let n_pods = case.gang_size;
    (0..case.n_pending / n_pods).flat_map(move |number| {
        let created_micros = START_MICROS - 3_600_000_000 + number as i64 * 1_000;
        let phase = PodGroupPhase::Inqueue;
        // Behind the numbers of the gangs that run.
        let whole = gang(1_000_000 + number, n_pods, shape(number), phase, created_micros);
        events(&Gang { is_urgent, ..whole }, |_| None)
    })
}

/// One pod after the other on the next node, so that each node has one of the first gangs. Of these
/// so many need one pod only, the others need all.
fn running(
    case: &Case,
    n_elastic: u64,
    queue_of: impl Fn(u64) -> &'static str,
) -> impl Iterator<Item = ClusterEvent> {
    let n_nodes = case.n_nodes;
    (0..case.n_running / N_MEMBERS).flat_map(move |number| {
        let created_micros = START_MICROS - 86_400_000_000 + number as i64 * 1_000;
        let phase = PodGroupPhase::Running;
        let whole = gang(number, N_MEMBERS, QUARTER, phase, created_micros);
        let min_member = if number < n_elastic { 1 } else { N_MEMBERS };
        let part = Gang { min_member, queue: queue_of(number), ..whole };
        events(&part, |index| Some((number * N_MEMBERS + index) % n_nodes))
    })
}
