//! Nodes, gangs and pods of the clusters that the cases are measured on.

use vc_engine::Engine;
use vc_model::{ClusterEvent, PodGroupPhase};

use crate::cases::{Case, START_MICROS};
use crate::objects::{Gang, QUEUE, Shape, node, queue};

/// Events per call of the engine while a cluster is loaded.
const BATCH: usize = 1000;

/// The small gang that comes before a cycle.
pub(crate) fn arrival(case: &Case, cycle: u32) -> Vec<ClusterEvent> {
    let number = 2_000_000 + u64::from(cycle);
    let shape = Shape { cpu_milli: 1000, memory_gi: 1 };
    let gang = gang(number, case.n_arriving, shape, PodGroupPhase::Inqueue, START_MICROS);
    events(&gang, |_| None)
}

/// Nothing runs; gangs of 16 shapes wait.
pub(crate) fn load_empty(case: &Case, engine: &mut Engine) {
    let shape = |number: u64| Shape {
        cpu_milli: [500, 1000, 2000, 4000][(number % 4) as usize],
        memory_gi: [1, 2, 4, 8][(number / 4 % 4) as usize],
    };
    let gangs = pending_gangs(case, PodGroupPhase::Pending, shape);
    apply(engine, base(case).chain(gangs));
}

/// Twenty pods run on every node, in gangs of four.
pub(crate) fn load_idle(case: &Case, engine: &mut Engine) {
    let shape = Shape { cpu_milli: 2000, memory_gi: 8 };
    apply(engine, base(case).chain(running_gangs(case, 4, shape)));
}

/// Every node has 2 cpus left, and gangs wait whose pods need more. There are cpus enough in sum,
/// so that no queue refuses the gangs before a node does.
pub(crate) fn load_full(case: &Case, engine: &mut Engine) {
    let running = running_gangs(case, 4, Shape { cpu_milli: 15_500, memory_gi: 62 });
    let shape = |number: u64| Shape { cpu_milli: 3000 + 250 * (number % 16) as i64, memory_gi: 4 };
    let waiting = pending_gangs(case, PodGroupPhase::Inqueue, shape);
    apply(engine, base(case).chain(running).chain(waiting));
}

/// Every node is full, and groups wait that are not admitted: together they want too much.
pub(crate) fn load_refused(case: &Case, engine: &mut Engine) {
    let running = running_gangs(case, 4, Shape { cpu_milli: 15_500, memory_gi: 62 });
    let waiting = pending_gangs(case, PodGroupPhase::Pending, |number| Shape {
        cpu_milli: 1_000_000 + 250 * (number % 16) as i64,
        memory_gi: 4,
    });
    apply(engine, base(case).chain(running).chain(waiting));
}

/// Queue and nodes.
pub(crate) fn base(case: &Case) -> impl Iterator<Item = ClusterEvent> {
    let queue = ClusterEvent::QueueApplied(Box::new(queue(QUEUE)));
    let nodes = (0..case.n_nodes).map(|number| ClusterEvent::NodeApplied(Box::new(node(number))));
    std::iter::once(queue).chain(nodes)
}

/// The gangs that wait.
pub(crate) fn pending_gangs(
    case: &Case,
    phase: PodGroupPhase,
    shape: impl Fn(u64) -> Shape,
) -> impl Iterator<Item = ClusterEvent> {
    let n_pods = case.gang_size;
    (0..case.n_pending / n_pods).flat_map(move |number| {
        let created_micros = START_MICROS - 3_600_000_000 + number as i64 * 1_000;
        // Behind the numbers of the gangs that run.
        let number = 1_000_000 + number;
        events(&gang(number, n_pods, shape(number), phase, created_micros), |_| None)
    })
}

/// The gangs that run, one pod after the other on the next node.
pub(crate) fn running_gangs(
    case: &Case,
    n_pods: u64,
    shape: Shape,
) -> impl Iterator<Item = ClusterEvent> + use<> {
    let n_nodes = case.n_nodes;
    (0..case.n_running / n_pods).flat_map(move |number| {
        let created_micros = START_MICROS - 86_400_000_000 + number as i64 * 1_000;
        let phase = PodGroupPhase::Running;
        events(&gang(number, n_pods, shape, phase, created_micros), |index| {
            Some((number * n_pods + index) % n_nodes)
        })
    })
}

/// A gang that needs all its pods, in the only queue.
pub(crate) fn gang(
    number: u64,
    n_pods: u64,
    shape: Shape,
    phase: PodGroupPhase,
    created_micros: i64,
) -> Gang {
    let (min_member, queue, is_urgent) = (n_pods, QUEUE, false);
    Gang { number, n_pods, shape, phase, created_micros, min_member, queue, is_urgent }
}

/// The PodGroup, then its pods, each on the node that `node_of` gives its index.
pub(crate) fn events(gang: &Gang, node_of: impl Fn(u64) -> Option<u64>) -> Vec<ClusterEvent> {
    let group = ClusterEvent::PodGroupApplied(Box::new(gang.pod_group()));
    let pod = |index| ClusterEvent::PodApplied(Box::new(gang.pod(index, node_of(index))));
    std::iter::once(group).chain((0..gang.n_pods).map(pod)).collect()
}

/// In batches, so that the peak of memory is not that of a list of all objects.
pub(crate) fn apply(engine: &mut Engine, mut events: impl Iterator<Item = ClusterEvent>) {
    loop {
        let batch: Vec<ClusterEvent> = events.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            return;
        }
        engine.apply(batch);
    }
}
