//! Why a pod of ours waits, as a closed list. Every message of a waiting pod belongs to one of these
//! causes; a test of the engine has a case for each, and fails for one that reaches no pod.
//! Specification: core.md 3.10 (C-43).

use std::sync::Arc;

use vc_model::JobId;

use crate::session::Session;

/// Declares the causes and the list of all of them.
macro_rules! wait_causes {
    ($($(#[$about:meta])* $name:ident,)*) => {
        /// Why a pod of ours waits.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum WaitCause {
            $($(#[$about])* $name,)*
        }

        impl WaitCause {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}

wait_causes! {
    /// The pod names no PodGroup.
    NoGroupName,
    /// The PodGroup that the pod names does not exist.
    GroupMissing,
    /// The queue of the PodGroup does not exist.
    QueueMissing,
    /// The pod has a scheduling gate. The API server says so on the pod, the PodGroup says which.
    Gated,
    /// The object of the pod could not be read completely (C-20).
    Incomplete,
    /// The bind was refused, and is not repeated yet.
    BindRefused,
    /// Enqueue does not admit the PodGroup: a quota or another plugin refuses it.
    NotAdmitted,
    /// The queue is not open (C-33).
    QueueNotOpen,
    /// A plugin calls the queue overused.
    QueueOverused,
    /// The queue has no room for the pod (A20).
    QueueFull,
    /// A job before it in its queue has to be placed first (D38, `headOfLine`).
    BehindHead,
    /// The PodGroup asks for a network topology, which is not ready (actions.md 4.2).
    Topology,
    /// Pods that were evicted for the job have yet to leave (A45).
    AwaitsVictims,
    /// The bind is decided, and waits for volumes or devices.
    AwaitsVolumes,
    /// Members of the gang do not exist.
    MembersMissing,
    /// The scheduler knows no node.
    NoNodes,
    /// The pod fits on no node.
    FitsNowhere,
    /// The pod has a place, its gang is not complete.
    GangIncomplete,
    /// The pod has a place that others have yet to leave.
    AwaitsRoom,
    /// Another member of the gang found no place, or waits for one.
    OtherMember,
    /// No action has tried the pod.
    NotTried,
}

impl Session<'_> {
    /// Why all pods of the job wait, where that is no matter of single pods or nodes.
    pub fn note_job_fit(&mut self, job: JobId, cause: WaitCause, text: impl Into<Arc<str>>) {
        self.records.job_fit.insert(job, JobFit { cause, text: text.into() });
    }
}

/// Why all pods of a job wait (A45).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFit {
    /// The kind of it.
    pub cause: WaitCause,
    /// What users read.
    pub text: Arc<str>,
}
