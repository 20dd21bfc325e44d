//! The script of a story: the cluster at the beginning, and the events from outside. All of it is drawn
//! from a seed before the story begins.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::configs::{self, GOOD};
use super::devices;
use super::fault::FaultKind;
use super::outside_event::OutsideEvent;
use super::rest::RestTimes;
use super::topology::{self, TopologyWish};
use crate::rng::Rng;

/// The script of a story.
#[derive(Clone, Debug)]
pub struct Script {
    /// Of the network.
    pub(super) seed: u64,
    /// Nothing takes the Lease from who leads: what it has missed must have time to show.
    pub(super) keeps_leader: bool,
    /// Volcano's controllers make the pods of jobs, and another scheduler places pods of its own.
    pub(super) has_controllers: bool,
    /// Faults strike the start of processes too. They follow all kinds, and their configuration has sources that
    /// the server does not serve.
    pub(super) strikes_starts: bool,
    /// The configuration keeps the usage of `fairshare`.
    pub(super) keeps_usage: bool,
    /// There are HyperNodes, jobs have network topologies, and the configuration places by them.
    pub(super) has_networks: bool,
    /// True if nodes have 1 GiB of memory per cpu, and pods ask for it.
    pub(super) has_little_memory: bool,
    /// True if nodes have GPUs, pods ask for memory of them, and the configuration has `deviceshare`.
    pub(super) has_gpus: bool,
    /// The configuration file at the beginning.
    pub(super) config: &'static str,
    pub(super) nodes: Vec<NodeSize>,
    pub(super) steps: Vec<Step>,
    pub(super) rest_times: RestTimes,
}

/// Size of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeSize {
    pub(super) cpus: u64,
    pub(super) pods: u64,
}

/// An outside event and its time in the story.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) at: Duration,
    pub(super) event: OutsideEvent,
}

/// A job of equal pods.
#[derive(Clone, Debug)]
pub(super) struct JobSpec {
    pub(super) name: String,
    pub(super) queue: &'static str,
    pub(super) pods: u64,
    pub(super) min: u64,
    pub(super) cpu_milli: u64,
    /// Memory of each pod. 0: none is asked for.
    pub(super) memory_gib: u64,
    /// Memory of a GPU for each pod. 0: none is asked for.
    pub(super) gpu_memory_mib: u64,
    /// Its pods end after so long. `None`: they run until they are deleted.
    pub(super) run_seconds: Option<u64>,
    pub(super) is_urgent: bool,
    /// `None`: its pods may be anywhere.
    pub(super) topology: Option<TopologyWish>,
}

/// One story in so many keeps its leader.
const KEEPS_LEADER: u64 = 5;

/// One story in so many has crashes at points of a process's work and a slow server: that whose seed leaves
/// this remainder. Stories of other seeds stay what they were when these events came.
const CRASH_POINTS: (u64, u64) = (13, 11);
/// Longest time from one of these events to the next, in milliseconds.
const CRASH_POINT_MILLIS: u64 = 60_000;

/// One story in so many has Volcano's controllers and another scheduler: that whose seed leaves this remainder.
const CONTROLLERS: (u64, u64) = (13, 10);
/// In one story in so many faults strike the start of processes too: that whose seed leaves this remainder.
const STRUCK_STARTS: (u64, u64) = (6, 5);
/// One story in so many keeps the usage of `fairshare`: that whose seed leaves this remainder.
const USAGE: (u64, u64) = (17, 9);
/// Longest time from one event that concerns the usage to the next, in milliseconds.
const USAGE_MILLIS: u64 = 30_000;
/// In one story in so many webhooks and a quota refuse writes of all kinds: that whose seed leaves this remainder.
const ADMISSION: (u64, u64) = (17, 14);
/// Longest time from one refusal to the next, in milliseconds.
const ADMISSION_MILLIS: u64 = 40_000;
/// One story in so many has HyperNodes: that whose seed leaves this remainder.
const NETWORKS: (u64, u64) = (19, 12);
/// Longest time from one change of HyperNodes to the next, in milliseconds.
const NETWORK_MILLIS: u64 = 120_000;
/// In one story in so many memory is short and pods ask for it: that whose seed leaves this remainder.
const LITTLE_MEMORY: (u64, u64) = (23, 14);
/// In one story in so many pods share GPUs by memory: that whose seed leaves this remainder.
const GPUS: (u64, u64) = (37, 0);
/// Longest time from one pod without a PodGroup to the next, in milliseconds.
const LONE_POD_MILLIS: u64 = 20_000;

/// A story of more minutes has calm times too, and its jobs are deleted after a while.
const BUSY_MINUTES: u64 = 10;
/// Of so many minutes so many are busy, the first ones.
const BUSY_OF: (u64, u64) = (15, 5);
/// In calm times the pauses between outside events are so many times as long.
const CALM_FACTOR: u64 = 8;
/// Time from the arrival of a job to its deletion in a story with calm times, in milliseconds.
const JOB_MILLIS: RangeInclusive<u64> = 30_000..=480_000;

/// Queues of every story.
pub(super) const QUEUES: [&str; 3] = ["default", "q1", "q2"];

impl Script {
    /// Returns the number of steps.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// True if nothing happens.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The same script with so many nodes at the begin. Those of the seed come first.
    pub fn with_nodes(mut self, seed: u64, n_nodes: usize) -> Self {
        let mut rng = Rng::new(seed);
        self.nodes.resize_with(n_nodes, || NodeSize::drawn(&mut rng));
        self
    }

    /// The script of a seed: so many minutes, with faults of these kinds.
    pub fn of(seed: u64, minutes: u64, faults: &BTreeSet<FaultKind>) -> Self {
        let mut rng = Rng::new(seed);
        let keeps_leader = seed.is_multiple_of(KEEPS_LEADER);
        let config = rng.of(&GOOD);
        let nodes = (0..rng.between(2, 6)).map(|_| NodeSize::drawn(&mut rng)).collect();
        let (mut steps, mut at) = (Vec::new(), 0);
        let end = minutes * 60_000;
        for number in 0.. {
            at += rng.between(50, 8_000) * pause_factor(minutes, at);
            if end <= at {
                break;
            }
            steps.push((at, OutsideEvent::drawn(&mut rng, number)));
        }
        let is_chosen = |(n_stories, remainder)| seed % n_stories == remainder;
        let (keeps_usage, has_admission) = (is_chosen(USAGE), is_chosen(ADMISSION));
        let has_controllers = is_chosen(CONTROLLERS) || has_admission;
        let strikes_starts = is_chosen(STRUCK_STARTS);
        if is_chosen(CRASH_POINTS) {
            steps.extend(crash_points(seed, end));
        } else if has_controllers {
            steps.extend(lone_pods(seed, end));
        }
        if keeps_usage {
            // Half of these stories have true clocks, by which what was used can be told.
            let is_clock = |event: &OutsideEvent| matches!(event, OutsideEvent::SetClock { .. });
            steps.retain(|(_, event)| seed.is_multiple_of(2) || !is_clock(event));
            let draw = OutsideEvent::drawn_of_usage;
            steps.extend(separate_events(seed, end, 1_000..=USAGE_MILLIS, draw));
        }
        if has_admission {
            let draw = |rng: &mut Rng, _| OutsideEvent::drawn_of_admission(rng);
            steps.extend(separate_events(seed, end, 1_000..=ADMISSION_MILLIS, draw));
        }
        let has_networks = is_chosen(NETWORKS);
        if has_networks {
            topology::give_topologies(seed, &mut steps);
            steps.extend(rack_changes(seed, end));
        }
        let has_little_memory = is_chosen(LITTLE_MEMORY);
        if has_little_memory {
            give_memory(seed, &mut steps);
        }
        let has_gpus = is_chosen(GPUS);
        if has_gpus {
            devices::give_gpu_memory(seed, &mut steps);
        }
        if BUSY_MINUTES < minutes {
            steps.extend(deletions_of_jobs(seed, &steps));
        }
        let steps = allowed_steps(steps, end, keeps_leader, faults);
        let seed = rng.below(u64::MAX);
        Self {
            seed,
            keeps_leader,
            has_controllers,
            strikes_starts,
            keeps_usage,
            has_networks,
            has_little_memory,
            has_gpus,
            config,
            nodes,
            steps,
            rest_times: RestTimes::USUAL,
        }
    }

    /// Returns the configuration file at the beginning, without sources that the server does not serve.
    pub(super) fn config_text(&self) -> String {
        let text = match self.keeps_usage {
            true => configs::with_usage(self.config),
            false => self.config.to_owned(),
        };
        let text = if self.has_networks { configs::with_networks(&text) } else { text };
        if self.has_gpus { configs::with_gpus(&text) } else { text }
    }
}

/// Gives the pods of jobs random requests for memory. They are drawn from numbers of their own, so that the rest
/// of the story stays the same.
fn give_memory(seed: u64, steps: &mut [(u64, OutsideEvent)]) {
    let mut rng = Rng::new(seed.rotate_left(48));
    for (_, event) in steps {
        if let OutsideEvent::Job(job) | OutsideEvent::LonePod { pod: job, .. } = event {
            job.memory_gib = rng.of(&[0, 1, 1, 2, 4]);
        }
    }
}

/// Returns the steps that may happen in a story of `end` milliseconds, in their order.
fn allowed_steps(
    mut steps: Vec<(u64, OutsideEvent)>,
    end: u64,
    keeps_leader: bool,
    faults: &BTreeSet<FaultKind>,
) -> Vec<Step> {
    steps.sort_by_key(|(at, _)| *at);
    let steps = steps.into_iter().filter_map(|(at, event)| {
        let event = match keeps_leader {
            true => event.that_keeps_the_leader(),
            // A new leader reads everything anew: what the last one has forgotten must have time to
            // show.
            false => Some(event).filter(|it| at <= end - end / 3 || !it.changes_the_leader()),
        };
        let may = |event: &OutsideEvent| event.fault().is_none_or(|it| faults.contains(&it));
        Some(Step { at: Duration::from_millis(at), event: event.filter(may)? })
    });
    steps.collect()
}

/// Returns how many times as long as in a busy time the pause between two outside events is.
fn pause_factor(minutes: u64, at_millis: u64) -> u64 {
    let (cycle, busy) = BUSY_OF;
    let is_calm = BUSY_MINUTES < minutes && busy <= at_millis / 60_000 % cycle;
    if is_calm { CALM_FACTOR } else { 1 }
}

/// Returns the deletion of each job and lone pod of these steps, with its time in milliseconds. What is deleted
/// may still wait then, run, or be gone.
fn deletions_of_jobs(seed: u64, steps: &[(u64, OutsideEvent)]) -> Vec<(u64, OutsideEvent)> {
    let mut rng = Rng::new(seed.rotate_left(32));
    let mut deletion = |(at, event): &(u64, OutsideEvent)| {
        let (OutsideEvent::Job(job) | OutsideEvent::LonePod { pod: job, .. }) = event else {
            return None;
        };
        let name = job.name.clone();
        let after = rng.between(*JOB_MILLIS.start(), *JOB_MILLIS.end());
        Some((at + after, OutsideEvent::DeleteJobNamed { name }))
    };
    steps.iter().filter_map(&mut deletion).collect()
}

/// Returns crashes at points and times in which the server is slow, each with its time in milliseconds.
fn crash_points(seed: u64, end: u64) -> Vec<(u64, OutsideEvent)> {
    let draw = |rng: &mut Rng, _| OutsideEvent::drawn_crash_or_slowness(rng);
    separate_events(seed, end, 1_000..=CRASH_POINT_MILLIS, draw)
}

/// Returns changes of racks, each with its time in milliseconds. In half of the stories HyperNodes stay what they
/// are, so that no bind is excused by a change.
fn rack_changes(seed: u64, end: u64) -> Vec<(u64, OutsideEvent)> {
    if !seed.is_multiple_of(2) {
        return Vec::new();
    }
    let draw = |rng: &mut Rng, _| topology::drawn_change(rng);
    separate_events(seed, end, 1_000..=NETWORK_MILLIS, draw)
}

/// Returns pods without a PodGroup, each with its time in milliseconds.
fn lone_pods(seed: u64, end: u64) -> Vec<(u64, OutsideEvent)> {
    separate_events(seed, end, 100..=LONE_POD_MILLIS, OutsideEvent::drawn_alone)
}

/// Returns events that come one after the other after times between these, in milliseconds. They are drawn from
/// numbers of their own, so that the other events of the story stay the same.
fn separate_events(
    seed: u64,
    end: u64,
    pauses: RangeInclusive<u64>,
    draw: impl Fn(&mut Rng, usize) -> OutsideEvent,
) -> Vec<(u64, OutsideEvent)> {
    let mut rng = Rng::new(!seed);
    let (mut events, mut at) = (Vec::new(), 0);
    loop {
        at += rng.between(*pauses.start(), *pauses.end());
        if end <= at {
            return events;
        }
        events.push((at, draw(&mut rng, events.len())));
    }
}

impl NodeSize {
    pub(super) fn drawn(rng: &mut Rng) -> Self {
        Self { cpus: rng.between(2, 8), pods: rng.of(&[3, 10, 110]) }
    }
}

impl fmt::Display for NodeSize {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} cpu, {} pods", self.cpus, self.pods)
    }
}

impl JobSpec {
    /// A job of one pod without a request.
    #[cfg(test)]
    pub(super) fn lone(name: &str) -> Self {
        let name = name.to_owned();
        let (queue, run_seconds, is_urgent, topology) = ("default", None, false, None);
        let (cpu_milli, memory_gib, gpu_memory_mib) = (0, 0, 0);
        Self {
            name,
            queue,
            pods: 1,
            min: 1,
            cpu_milli,
            memory_gib,
            gpu_memory_mib,
            run_seconds,
            is_urgent,
            topology,
        }
    }

    pub(super) fn drawn(rng: &mut Rng, number: usize) -> Self {
        let min = rng.of(&[1, 1, 2, 3, 5]);
        Self {
            name: format!("j{number:03}"),
            queue: rng.of(&QUEUES),
            pods: min + rng.of(&[0, 0, 1, 2]),
            min,
            cpu_milli: rng.of(&[0, 500, 1_000, 2_000, 3_500]),
            memory_gib: 0,
            gpu_memory_mib: 0,
            run_seconds: rng.happens(800).then(|| rng.between(1, 60)),
            is_urgent: rng.happens(150),
            topology: None,
        }
    }
}

impl fmt::Display for JobSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "job {} in queue {}: {} pods of {}m cpu{}{}, {} needed{}{}{}",
            self.name,
            self.queue,
            self.pods,
            self.cpu_milli,
            match self.memory_gib {
                0 => String::new(),
                gib => format!(" and {gib} GiB"),
            },
            match self.gpu_memory_mib {
                0 => String::new(),
                mib => format!(" and {mib} MiB of a GPU"),
            },
            self.min,
            self.run_seconds.map(|time| format!(", each for {time} s")).unwrap_or_default(),
            if self.is_urgent { ", urgent" } else { "" },
            match self.topology {
                Some(TopologyWish { highest_tier: Some(1) }) => ", in one rack",
                Some(TopologyWish { highest_tier: Some(_) }) => ", in one zone",
                Some(TopologyWish { highest_tier: None }) => ", close together if it can be",
                None => "",
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(seed: u64, minutes: u64) -> Script {
        Script::of(seed, minutes, &FaultKind::ALL.into_iter().collect())
    }

    /// True if the event is of a busy time.
    fn is_busy(step: &&Step) -> bool {
        step.at.as_secs() / 60 % 15 < 5
    }

    #[test]
    fn a_long_story_has_busy_and_calm_times() {
        let script = script(7, 60);
        let n_busy = script.steps.iter().filter(is_busy).count();
        let n_calm = script.len() - n_busy;
        // Twice as many minutes are calm.
        assert!(
            0 < n_calm && n_calm < n_busy,
            "{n_calm} events in calm times, {n_busy} in busy ones"
        );
    }

    /// Lone pods are deleted, too. Seed 10 has some, because its story has controllers.
    #[test]
    fn each_job_of_a_long_story_is_deleted_after_it_came() {
        let script = script(10, 60);
        let at = |wanted: &dyn Fn(&OutsideEvent) -> bool| {
            script.steps.iter().find(|step| wanted(&step.event)).map(|step| step.at)
        };
        let (mut n_jobs, mut n_lone_pods) = (0, 0);
        for step in &script.steps {
            let (OutsideEvent::Job(job) | OutsideEvent::LonePod { pod: job, .. }) = &step.event
            else {
                continue;
            };
            let is_deletion = |event: &OutsideEvent| matches!(event, OutsideEvent::DeleteJobNamed { name } if *name == job.name);
            assert!(step.at + Duration::from_secs(30) <= at(&is_deletion).unwrap(), "{job}");
            n_jobs += 1;
            n_lone_pods += usize::from(matches!(step.event, OutsideEvent::LonePod { .. }));
        }
        assert!(50 < n_lone_pods && 50 < n_jobs - n_lone_pods, "{n_lone_pods} of {n_jobs}");
    }

    #[test]
    fn a_short_story_is_busy_and_its_jobs_stay() {
        let script = script(7, 10);
        let deletes = |step: &Step| matches!(step.event, OutsideEvent::DeleteJobNamed { .. });
        assert!(!script.steps.iter().any(deletes));
        let n_late = script.steps.iter().filter(|step| !is_busy(step)).count();
        assert!(
            script.len() < 3 * n_late,
            "{n_late} of {} events after five minutes",
            script.len()
        );
    }
}
