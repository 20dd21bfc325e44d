//! What happens to a cluster from outside in a story: jobs come and go, nodes and queues change, and
//! faults strike the server and the processes. Made whole from a seed before the story begins.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use super::fault::FaultKind;
use super::rng::Rng;

/// The script of a story.
#[derive(Clone, Debug)]
pub struct Script {
    /// Of the network.
    pub(super) seed: u64,
    pub(super) nodes: Vec<NodeSize>,
    pub(super) steps: Vec<Step>,
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

/// A change from outside the scheduler. A number `nth` picks one of what exists then.
#[derive(Clone, Debug)]
pub(super) enum OutsideEvent {
    Job(JobSpec),
    DeleteJob {
        nth: u64,
    },
    DeletePod {
        nth: u64,
    },
    AddNode(NodeSize),
    LoseNode {
        nth: u64,
    },
    Cordon {
        nth: u64,
        on: bool,
    },
    SetQueue {
        name: &'static str,
        weight: u64,
        cpus: Option<u64>,
    },
    Compact,
    Outage {
        seconds: u64,
    },
    Crash {
        process: usize,
    },
    StealLease,
    /// Pods that are made with a node, whether they have room there or not.
    #[cfg(test)]
    Overfill,
}

/// A job of equal pods.
#[derive(Clone, Debug)]
pub(super) struct JobSpec {
    pub(super) name: String,
    pub(super) queue: &'static str,
    pub(super) pods: u64,
    pub(super) min: u64,
    pub(super) cpu_milli: u64,
    /// Its pods end after so long. `None`: they run until they are deleted.
    pub(super) run_seconds: Option<u64>,
    pub(super) is_urgent: bool,
}

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

    /// The script of a seed: so many minutes, with faults of these kinds.
    pub fn of(seed: u64, minutes: u64, faults: &BTreeSet<FaultKind>) -> Self {
        let mut rng = Rng::new(seed);
        let nodes = (0..rng.between(2, 6)).map(|_| NodeSize::drawn(&mut rng)).collect();
        let (mut steps, mut at) = (Vec::new(), 0);
        let end = minutes * 60_000;
        loop {
            at += rng.between(50, 8_000);
            if end <= at {
                break;
            }
            let event = OutsideEvent::drawn(&mut rng, steps.len());
            if event.fault().is_none_or(|fault| faults.contains(&fault)) {
                steps.push(Step { at: Duration::from_millis(at), event });
            }
        }
        Self { seed: rng.below(u64::MAX), nodes, steps }
    }
}

impl NodeSize {
    fn drawn(rng: &mut Rng) -> Self {
        Self { cpus: rng.between(2, 8), pods: rng.of(&[3, 10, 110]) }
    }
}

impl OutsideEvent {
    fn drawn(rng: &mut Rng, number: usize) -> Self {
        let nth = rng.below(1 << 20);
        match rng.below(100) {
            0..=56 => Self::Job(JobSpec::drawn(rng, number)),
            57..=62 => Self::DeleteJob { nth },
            63..=70 => Self::DeletePod { nth },
            71..=73 => Self::AddNode(NodeSize::drawn(rng)),
            74..=76 => Self::LoseNode { nth },
            77..=80 => Self::Cordon { nth, on: rng.happens(500) },
            81..=84 => Self::SetQueue {
                name: rng.of(&["q1", "q2"]),
                weight: rng.between(1, 4),
                cpus: rng.happens(300).then(|| rng.between(2, 12)),
            },
            85..=88 => Self::Compact,
            89..=90 => Self::Outage { seconds: rng.between(1, 40) },
            91..=97 => Self::Crash { process: usize::from(rng.happens(500)) },
            _ => Self::StealLease,
        }
    }

    /// The kind of fault that this is. `None`: it is the life of a cluster.
    fn fault(&self) -> Option<FaultKind> {
        match self {
            Self::DeleteJob { .. } | Self::DeletePod { .. } => Some(FaultKind::Deletion),
            Self::LoseNode { .. } => Some(FaultKind::NodeLost),
            Self::Compact => Some(FaultKind::Compaction),
            Self::Outage { .. } => Some(FaultKind::Outage),
            Self::Crash { .. } => Some(FaultKind::Crash),
            Self::StealLease => Some(FaultKind::LeaseStolen),
            #[cfg(test)]
            Self::Overfill => None,
            Self::Job(_) | Self::AddNode(_) | Self::Cordon { .. } | Self::SetQueue { .. } => None,
        }
    }
}

impl JobSpec {
    /// A job of one pod without a request.
    #[cfg(test)]
    pub(super) fn lone(name: &str) -> Self {
        let name = name.to_owned();
        let (queue, run_seconds, is_urgent) = ("default", None, false);
        Self { name, queue, pods: 1, min: 1, cpu_milli: 0, run_seconds, is_urgent }
    }

    fn drawn(rng: &mut Rng, number: usize) -> Self {
        let min = rng.of(&[1, 1, 2, 3, 5]);
        Self {
            name: format!("j{number:03}"),
            queue: rng.of(&QUEUES),
            pods: min + rng.of(&[0, 0, 1, 2]),
            min,
            cpu_milli: rng.of(&[0, 500, 1_000, 2_000, 3_500]),
            run_seconds: rng.happens(800).then(|| rng.between(1, 60)),
            is_urgent: rng.happens(150),
        }
    }
}

impl fmt::Display for OutsideEvent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(job) => write!(
                out,
                "job {} in queue {}: {} pods of {}m cpu, {} needed{}{}",
                job.name,
                job.queue,
                job.pods,
                job.cpu_milli,
                job.min,
                job.run_seconds.map(|time| format!(", each for {time} s")).unwrap_or_default(),
                if job.is_urgent { ", urgent" } else { "" },
            ),
            Self::DeleteJob { nth } => write!(out, "a job is deleted ({nth})"),
            Self::DeletePod { nth } => write!(out, "a pod is deleted ({nth})"),
            Self::AddNode(NodeSize { cpus, pods }) => {
                write!(out, "a node comes: {cpus} cpu, {pods} pods")
            }
            Self::LoseNode { nth } => write!(out, "a node goes ({nth})"),
            Self::Cordon { nth, on: true } => write!(out, "a node is cordoned ({nth})"),
            Self::Cordon { nth, on: false } => write!(out, "a node is uncordoned ({nth})"),
            Self::SetQueue { name, weight, cpus: Some(cpus) } => {
                write!(out, "queue {name}: weight {weight}, at most {cpus} cpu")
            }
            Self::SetQueue { name, weight, cpus: None } => {
                write!(out, "queue {name}: weight {weight}")
            }
            Self::Compact => write!(out, "the server forgets old events"),
            Self::Outage { seconds } => write!(out, "the server is away for {seconds} s"),
            Self::Crash { process } => write!(out, "process {process} is killed"),
            Self::StealLease => write!(out, "somebody else takes the Lease"),
            #[cfg(test)]
            Self::Overfill => write!(out, "a node is filled beyond its room"),
        }
    }
}
