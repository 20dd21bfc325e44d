//! What happens to a cluster from outside the scheduler: to its objects, the server, the network and the
//! processes.

use std::fmt;

use super::admission::{RefusedWrite, Refuser};
use super::configs::{BAD, GOOD};
use super::crash::Crash;
use super::fault::FaultKind;
use super::script::{JobSpec, NodeSize};
use crate::rng::Rng;

/// A change from outside the scheduler. A number `nth` picks one of what exists then.
#[derive(Clone, Debug)]
pub(super) enum OutsideEvent {
    Job(JobSpec),
    /// A pod without a PodGroup: that of a job of one.
    LonePod {
        pod: JobSpec,
        is_of_others: bool,
    },
    DeleteJob {
        nth: u64,
    },
    DeleteJobNamed {
        name: String,
    },
    DeletePod {
        nth: u64,
    },
    DeletePodIn {
        state: PodState,
        nth: u64,
        /// It is gone at once, whatever its kubelet does.
        by_force: bool,
    },
    /// A pod goes by force, and another one of its name is there at once, which asks for so much.
    ReplacePod {
        nth: u64,
        cpu_milli: u64,
    },
    AddNode(NodeSize),
    LoseNode {
        nth: u64,
    },
    /// A node goes with its pods, and another one as large is there at once.
    ReplaceNode {
        nth: u64,
        is_renamed: bool,
    },
    FlapNode {
        nth: u64,
        is_ready: bool,
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
    /// The names of the nodes of a rack follow this pattern from now on. `None`: the rack is deleted.
    SetRack {
        number: usize,
        pattern: Option<&'static str>,
    },
    Compact,
    Outage {
        seconds: u64,
    },
    /// The server's objects are kept as they are now.
    Backup,
    /// The server is away for so long, and begins anew from the last backup.
    Restore {
        seconds: u64,
    },
    TokenExpires {
        process: usize,
        seconds: u64,
    },
    RightTaken {
        resource: &'static str,
        seconds: u64,
    },
    Refuse {
        write: RefusedWrite,
        by: Refuser,
        seconds: u64,
    },
    /// A quota for the pods of the jobs' namespace is set. `None`: it is taken away.
    SetPodQuota {
        pods: Option<u64>,
    },
    /// Somebody else writes into the ConfigMap with the usage.
    WriteNote {
        text: String,
    },
    /// Somebody else deletes the ConfigMap with the usage.
    DeleteUsage,
    Crash {
        process: usize,
    },
    Stop {
        process: usize,
    },
    /// The clock of a process is so far ahead of the server's from now on.
    SetClock {
        process: usize,
        seconds: i64,
    },
    /// The ConfigMap is rewritten; each process sees it after so many seconds.
    Configure {
        text: &'static str,
        after: [u64; 2],
    },
    StealLease,
    /// Each process is killed when its work has come to a point, if it gets there.
    CrashAt(Crash),
    /// The server is slow: every request takes up to so many milliseconds more.
    SlowServer {
        most_millis: u64,
        seconds: u64,
    },
    /// Pods that are made with a node, whether they have room there or not.
    #[cfg(test)]
    Overfill,
    /// One process is killed when its work has come to a point, if it gets there.
    #[cfg(test)]
    CrashOf {
        process: usize,
        crash: Crash,
    },
}

/// What a pod is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodState {
    Waiting,
    Placed,
    Ended,
    Leaving,
}

/// Seconds for which the server or a token may be away where nobody else shall lead.
const SHORT: u64 = 4;
/// Resources to which the right can be taken away.
const RESOURCES: [&str; 8] =
    ["nodes", "pods", "podgroups", "queues", "priorityclasses", "binding", "status", "leases"];

impl OutsideEvent {
    pub(super) fn drawn(rng: &mut Rng, number: usize) -> Self {
        let nth = rng.below(1 << 20);
        let drawn = rng.below(145);
        match drawn {
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
            98..=99 => Self::StealLease,
            100..=104 => {
                Self::DeletePodIn { state: rng.of(&PodState::ALL), nth, by_force: rng.happens(500) }
            }
            105..=108 => Self::ReplacePod { nth, cpu_milli: rng.of(&[500, 1_000, 3_500]) },
            109..=112 => Self::FlapNode { nth, is_ready: rng.happens(500) },
            113..=114 => Self::ReplaceNode { nth, is_renamed: rng.happens(300) },
            115..=117 => Self::Backup,
            _ => Self::drawn_disturbance(rng, drawn),
        }
    }

    /// What does not concern the objects.
    fn drawn_disturbance(rng: &mut Rng, drawn: u64) -> Self {
        let process = usize::from(rng.happens(500));
        match drawn {
            118 => Self::Restore { seconds: rng.between(1, 20) },
            119..=121 => Self::TokenExpires { process, seconds: rng.between(1, 60) },
            122..=124 => {
                Self::RightTaken { resource: rng.of(&RESOURCES), seconds: rng.between(1, 90) }
            }
            125..=129 => {
                let write = rng.of(&[RefusedWrite::Binds, RefusedWrite::Evictions]);
                let seconds = rng.between(1, 60);
                Self::Refuse { write, by: Refuser::webhook(seconds), seconds }
            }
            130..=133 => {
                let seconds = i64::try_from(rng.below(1_801)).unwrap_or(0) - 900;
                Self::SetClock { process, seconds }
            }
            134..=140 => {
                let after = [rng.between(0, 60), rng.between(0, 60)];
                let text = if rng.happens(600) { rng.of(&GOOD) } else { rng.of(&BAD) };
                Self::Configure { text, after }
            }
            _ => Self::Stop { process },
        }
    }

    /// Returns a random event: mostly a crash at a point of the work, else minutes with a slow server.
    pub(super) fn drawn_crash_or_slowness(rng: &mut Rng) -> Self {
        match rng.happens(800) {
            true => Self::CrashAt(Crash::drawn(rng)),
            false => Self::SlowServer {
                most_millis: rng.of(&[200, 1_000, 4_000, 8_000]),
                seconds: rng.between(30, 240),
            },
        }
    }

    /// Returns a random event that concerns the usage that is saved: somebody else writes or deletes it, it cannot
    /// be read or written for a while, or a process ends.
    pub(super) fn drawn_of_usage(rng: &mut Rng, number: usize) -> Self {
        let (process, seconds) = (usize::from(rng.happens(500)), rng.between(1, 90));
        let write = RefusedWrite::ConfigMaps;
        match rng.below(10) {
            0..=2 => Self::Crash { process },
            3..=4 => Self::Stop { process },
            5..=6 => Self::RightTaken { resource: "configmaps", seconds },
            7 => Self::Refuse { write, by: rng.of(&Refuser::ALL), seconds },
            8 => Self::WriteNote { text: format!("note {number}") },
            _ => Self::DeleteUsage,
        }
    }

    /// Returns a random refusal of writes, or a quota for pods.
    pub(super) fn drawn_of_admission(rng: &mut Rng) -> Self {
        let (write, by) = (rng.of(&RefusedWrite::ALL), rng.of(&Refuser::ALL));
        match rng.happens(700) {
            true => Self::Refuse { write, by, seconds: rng.between(1, 60) },
            false => Self::SetPodQuota { pods: rng.happens(700).then(|| rng.between(2, 20)) },
        }
    }

    /// Returns a pod without a PodGroup, of our scheduler or another one.
    pub(super) fn drawn_alone(rng: &mut Rng, number: usize) -> Self {
        let pod = JobSpec {
            name: format!("p{number:03}"),
            pods: 1,
            min: 1,
            is_urgent: false,
            ..JobSpec::drawn(rng, number)
        };
        Self::LonePod { pod, is_of_others: rng.happens(600) }
    }

    /// True if the event changes what there is or what is asked for, so that evictions may follow:
    /// nodes, pods, jobs, queues, the configuration, or how far saved usage has faded.
    pub(super) fn may_evict(&self) -> bool {
        matches!(
            self,
            Self::Job(_)
                | Self::LonePod { .. }
                | Self::DeleteJob { .. }
                | Self::DeleteJobNamed { .. }
                | Self::DeletePod { .. }
                | Self::DeletePodIn { .. }
                | Self::ReplacePod { .. }
                | Self::AddNode(_)
                | Self::LoseNode { .. }
                | Self::ReplaceNode { .. }
                | Self::FlapNode { .. }
                | Self::Cordon { .. }
                | Self::SetRack { .. }
                | Self::SetQueue { .. }
                | Self::SetPodQuota { .. }
                | Self::Configure { .. }
                | Self::Restore { .. }
                | Self::SetClock { .. }
                | Self::DeleteUsage
        )
    }

    /// True if another process may lead afterwards.
    pub(super) fn changes_the_leader(&self) -> bool {
        match self {
            Self::Crash { .. } | Self::Stop { .. } | Self::StealLease => true,
            Self::CrashAt(_) | Self::SlowServer { .. } => true,
            Self::Outage { .. } | Self::Restore { .. } | Self::TokenExpires { .. } => true,
            Self::RightTaken { resource, .. } => *resource == "leases",
            Self::Refuse { write, .. } => *write == RefusedWrite::All,
            _ => false,
        }
    }

    /// The event as it may happen where nobody else shall lead: shorter, or not at all.
    pub(super) fn that_keeps_the_leader(self) -> Option<Self> {
        let short = |seconds: u64| seconds.min(SHORT);
        match self {
            Self::Outage { seconds } => Some(Self::Outage { seconds: short(seconds) }),
            Self::Restore { seconds } => Some(Self::Restore { seconds: short(seconds) }),
            Self::TokenExpires { process, seconds } => {
                Some(Self::TokenExpires { process, seconds: short(seconds) })
            }
            Self::SetClock { .. } => None,
            event => Some(event).filter(|event| !event.changes_the_leader()),
        }
    }

    /// The kind of fault that this is. `None`: it is the life of a cluster.
    pub(super) fn fault(&self) -> Option<FaultKind> {
        match self {
            Self::DeleteJob { .. } | Self::DeletePod { .. } => Some(FaultKind::Deletion),
            Self::DeletePodIn { .. } | Self::DeleteUsage => Some(FaultKind::Deletion),
            Self::ReplacePod { .. } | Self::ReplaceNode { .. } => Some(FaultKind::Replacement),
            Self::LoseNode { .. } => Some(FaultKind::NodeLost),
            Self::FlapNode { .. } => Some(FaultKind::NodeFlap),
            Self::Compact => Some(FaultKind::Compaction),
            Self::Outage { .. } => Some(FaultKind::Outage),
            Self::Backup | Self::Restore { .. } => Some(FaultKind::Restore),
            Self::TokenExpires { .. } => Some(FaultKind::TokenExpired),
            Self::RightTaken { .. } => Some(FaultKind::RightTaken),
            Self::Refuse { .. } | Self::SetPodQuota { .. } => Some(FaultKind::Refusal),
            Self::Crash { .. } | Self::CrashAt(_) => Some(FaultKind::Crash),
            Self::SlowServer { .. } => Some(FaultKind::Slow),
            Self::Stop { .. } => Some(FaultKind::Restart),
            Self::SetClock { .. } => Some(FaultKind::Clock),
            Self::Configure { .. } => Some(FaultKind::Reload),
            Self::StealLease => Some(FaultKind::LeaseStolen),
            #[cfg(test)]
            Self::Overfill => None,
            #[cfg(test)]
            Self::CrashOf { .. } => Some(FaultKind::Crash),
            Self::LonePod { .. } | Self::DeleteJobNamed { .. } | Self::WriteNote { .. } => None,
            Self::Job(_) | Self::AddNode(_) | Self::Cordon { .. } | Self::SetQueue { .. } => None,
            Self::SetRack { .. } => None,
        }
    }
}

impl PodState {
    const ALL: [Self; 4] = [Self::Waiting, Self::Placed, Self::Ended, Self::Leaving];

    fn word(self) -> &'static str {
        match self {
            Self::Waiting => "that waits",
            Self::Placed => "that has a node",
            Self::Ended => "that has ended",
            Self::Leaving => "that is being deleted",
        }
    }
}

impl fmt::Display for OutsideEvent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(job) => write!(out, "{job}"),
            Self::LonePod { pod, is_of_others } => {
                let whose = if *is_of_others { " of another scheduler" } else { "" };
                write!(out, "a pod without a PodGroup{whose}: {pod}")
            }
            Self::DeleteJob { nth } => write!(out, "a job is deleted ({nth})"),
            Self::DeleteJobNamed { name } => write!(out, "job {name} is deleted"),
            Self::DeletePod { nth } => write!(out, "a pod is deleted ({nth})"),
            Self::DeletePodIn { state, nth, by_force } => {
                let how = if *by_force { " by force" } else { "" };
                write!(out, "a pod {} is deleted{how} ({nth})", state.word())
            }
            Self::ReplacePod { nth, cpu_milli } => {
                write!(out, "a pod is replaced by one of its name with {cpu_milli}m cpu ({nth})")
            }
            Self::AddNode(size) => write!(out, "a node comes: {size}"),
            Self::LoseNode { nth } => write!(out, "a node goes ({nth})"),
            Self::ReplaceNode { nth, is_renamed: true } => write!(out, "a node is renamed ({nth})"),
            Self::ReplaceNode { nth, .. } => write!(out, "a node is made anew ({nth})"),
            Self::FlapNode { nth, is_ready: true } => write!(out, "a node is ready ({nth})"),
            Self::FlapNode { nth, .. } => write!(out, "a node is not ready ({nth})"),
            Self::Cordon { nth, on: true } => write!(out, "a node is cordoned ({nth})"),
            Self::Cordon { nth, on: false } => write!(out, "a node is uncordoned ({nth})"),
            Self::SetQueue { name, weight, cpus: Some(cpus) } => {
                write!(out, "queue {name}: weight {weight}, at most {cpus} cpu")
            }
            Self::SetQueue { name, weight, cpus: None } => {
                write!(out, "queue {name}: weight {weight}")
            }
            Self::SetRack { number, pattern: Some(pattern) } => {
                write!(out, "rack {number} has the nodes {pattern}")
            }
            Self::SetRack { number, pattern: None } => write!(out, "rack {number} is deleted"),
            _ => self.fmt_disturbance(out),
        }
    }
}

impl OutsideEvent {
    fn fmt_disturbance(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compact => write!(out, "the server forgets old events"),
            Self::Outage { seconds } => write!(out, "the server is away for {seconds} s"),
            Self::Backup => write!(out, "a backup is made"),
            Self::Restore { seconds } => {
                write!(out, "the server is away for {seconds} s, and begins from the backup")
            }
            Self::TokenExpires { process, seconds } => {
                write!(out, "process {process} has no token for {seconds} s")
            }
            Self::RightTaken { resource, seconds } => {
                write!(out, "nobody has the right to {resource} for {seconds} s")
            }
            Self::Refuse { write: what, by, seconds } => {
                write!(out, "{what} are refused for {seconds} s, by {by}")
            }
            Self::SetPodQuota { pods: Some(pods) } => write!(out, "a quota of {pods} pods is set"),
            Self::SetPodQuota { pods: None } => write!(out, "no quota of pods is set any more"),
            Self::WriteNote { text } => write!(out, "somebody writes {text:?} beside the usage"),
            Self::DeleteUsage => write!(out, "somebody deletes the usage that is saved"),
            Self::Crash { process } => write!(out, "process {process} is killed"),
            Self::CrashAt(crash) => write!(out, "each process will be killed {crash}"),
            Self::SlowServer { most_millis, seconds } => {
                write!(out, "every request takes up to {most_millis} ms for {seconds} s")
            }
            Self::Stop { process } => write!(out, "process {process} is told to end"),
            Self::SetClock { process, seconds } => {
                write!(out, "the clock of process {process} is {seconds} s ahead")
            }
            Self::Configure { text, after: [a, b] } => {
                write!(out, "the configuration is {text:?}, seen after {a} s and {b} s")
            }
            Self::StealLease => write!(out, "somebody else takes the Lease"),
            #[cfg(test)]
            Self::Overfill => write!(out, "a node is filled beyond its room"),
            #[cfg(test)]
            Self::CrashOf { process, crash } => {
                write!(out, "process {process} will be killed {crash}")
            }
            // The others are of `Display`.
            _ => Ok(()),
        }
    }
}
