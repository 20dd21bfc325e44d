//! Full clusters in which jobs wait that have some of what they want: jobs with a surplus that fits
//! nowhere, and gangs of which some members would find places.

use vc_engine::Engine;
use vc_model::{ClusterEvent, PodGroupPhase};

use crate::cases::{Case, START_MICROS};
use crate::load::{apply, base, events, gang, pending_gangs, running_gangs};
use crate::objects::{Gang, Shape};

/// Four of them leave 2 cpus of a node.
const QUARTER: Shape = Shape { cpu_milli: 15_500, memory_gi: 62 };

/// More than four of them leave.
fn wanted(number: u64) -> Shape {
    Shape { cpu_milli: 3000 + 250 * (number % 16) as i64, memory_gi: 4 }
}

/// Of every job one pod runs, which is enough for it; the others wait.
pub(crate) fn load_elastic(case: &Case, engine: &mut Engine) {
    let n_jobs = case.n_pending / case.gang_size;
    let n_others = case.n_running - n_jobs;
    let others = Case { n_running: n_others, ..*case };
    let jobs = (0..n_jobs).flat_map(|number| {
        let node = (n_others + number) % case.n_nodes;
        elastic(number, case.gang_size, node)
    });
    apply(engine, base(case).chain(running_gangs(&others, 4, QUARTER)).chain(jobs));
}

fn elastic(number: u64, n_waiting: u64, node: u64) -> Vec<ClusterEvent> {
    let created_micros = START_MICROS - 3_600_000_000 + number as i64 * 1_000;
    let phase = PodGroupPhase::Running;
    let place = 1_000_000 + number;
    let job = gang(place, 1 + n_waiting, wanted(number), phase, created_micros);
    let job = Gang { min_member: 1, ..job };
    let first = gang(place, 1, QUARTER, phase, created_micros);
    let mut all = events(&job, |_| None);
    // The PodGroup comes first.
    all[1] = ClusterEvent::PodApplied(Box::new(first.pod(0, Some(node))));
    all
}

/// One node has room for some members of a gang, none for all.
pub(crate) fn load_partly(case: &Case, engine: &mut Engine) {
    let others = Case { n_running: case.n_running - 4, ..*case };
    let created_micros = START_MICROS - 86_400_000_000;
    let three = gang(500_000, 3, QUARTER, PodGroupPhase::Running, created_micros);
    let last = events(&three, |index| Some((others.n_running + index) % case.n_nodes));
    let waiting = pending_gangs(case, PodGroupPhase::Inqueue, wanted);
    let running = running_gangs(&others, 4, QUARTER).chain(last);
    apply(engine, base(case).chain(running).chain(waiting));
}

/// Every node has room for one member of a gang, whichever it is, and one member is left over.
pub(crate) fn load_one_too_many(case: &Case, engine: &mut Engine) {
    let shape = |number| Shape { cpu_milli: 33_000 + 250 * (number % 64) as i64, memory_gi: 4 };
    apply(engine, base(case).chain(pending_gangs(case, PodGroupPhase::Inqueue, shape)));
}
