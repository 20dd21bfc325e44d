//! A short story that is played once for each write of each process, those of the Lease included,
//! with a crash exactly before the write is sent, and once more exactly after the server has done
//! it.

use std::time::Duration;

use rayon::prelude::*;

use super::configs::GOOD;
use super::crash::{Crash, CrashPoint};
use super::fault::FaultKind;
use super::outside_event::OutsideEvent;
use super::rest::RestTimes;
use super::script::{JobSpec, NodeSize, Script, Step};
use super::story::{StoryEnd, StoryOptions, play};

/// A process that writes more often in this story does not come to rest.
const MOST_WRITES: u64 = 100;

/// A gang fills two nodes for three seconds and another one waits for its room, while a third one
/// stays. The crash happens in the first seven seconds. Then it takes up to 19 s until somebody
/// leads.
fn script(process: usize, crash: Crash) -> Script {
    let gang = |name: &str, cpu_milli, run_seconds| {
        let lone = JobSpec::lone(name);
        OutsideEvent::Job(JobSpec { pods: 2, min: 2, cpu_milli, run_seconds, ..lone })
    };
    let events = [
        (0, OutsideEvent::CrashOf { process, crash }),
        (1, gang("first", 2_000, Some(3))),
        (2, gang("second", 2_000, Some(3))),
        (3, gang("third", 500, None)),
        (7, OutsideEvent::Cordon { nth: 0, on: false }),
    ];
    let step = |(seconds, event)| Step { at: Duration::from_secs(seconds), event };
    Script {
        seed: 27,
        keeps_leader: false,
        has_controllers: false,
        strikes_starts: false,
        keeps_usage: false,
        has_networks: false,
        has_little_memory: false,
        has_gpus: false,
        config: GOOD[0],
        nodes: vec![NodeSize { cpus: 3, pods: 10 }; 2],
        steps: events.into_iter().map(step).collect(),
        // At rest nothing waits, so that no amounts in messages are renewed later.
        rest_times: RestTimes {
            still: Duration::from_secs(26),
            silent: Duration::from_secs(5),
            emptied: Duration::from_secs(6),
        },
    }
}

/// Plays the story with a crash at the first write of the process, at the second, and so on.
/// Returns the number of crashes.
fn sweep(process: usize, point: CrashPoint) -> u64 {
    let options = StoryOptions { faults: [FaultKind::Crash].into_iter().collect() };
    for nth in 1..=MOST_WRITES {
        let crash = Crash { point, nth, counts_leases: true };
        let end = play(&script(process, crash), &options).expect("there is a runtime");
        let StoryEnd { violations, timeline, strikes, .. } = end;
        assert!(violations.is_empty(), "process {process}, {crash}: {violations:?}\n{timeline}");
        if strikes.count(FaultKind::Crash) == 0 {
            return nth - 1;
        }
    }
    panic!("process {process} writes more than {MOST_WRITES} times");
}

#[test]
fn a_crash_before_and_after_each_write_violates_nothing() {
    let points = [CrashPoint::Unsent, CrashPoint::Done];
    let of_process = |process| points.map(|point| (process, point));
    let sweeps: Vec<(usize, CrashPoint)> = [0, 1].into_iter().flat_map(of_process).collect();
    let n_crashes = |&(process, point): &(usize, CrashPoint)| sweep(process, point);
    let counts: Vec<u64> = sweeps.par_iter().map(n_crashes).collect();
    let n_crashes: u64 = counts.iter().sum();
    eprintln!("{n_crashes} crashes at writes were played: {counts:?}");
    assert!(20 <= n_crashes, "{counts:?}");
}
