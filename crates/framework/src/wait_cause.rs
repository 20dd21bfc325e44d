//! Wait causes: why a pod of this scheduler waits, as a closed list. Every message of a waiting pod
//! belongs to one cause. An engine test has a case for each cause, and fails for a cause that
//! reaches no pod. Specification: core.md 3.10 (C-43).

use std::sync::Arc;

use vc_model::JobId;

use crate::plugin::GradientProblem;
use crate::session::SessionState;

/// Declares the causes and the list of all of them.
macro_rules! wait_causes {
    ($($(#[$about:meta])* $name:ident,)*) => {
        /// Cause why a pod of this scheduler waits.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum WaitCause {
            $($(#[$about])* $name,)*
        }

        impl WaitCause {
            /// All causes, in declaration order.
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
    /// The pod has a scheduling gate. The API server says so on the pod; the PodGroup's message
    /// names the gate.
    Gated,
    /// The pod object could not be read completely (C-20: such a task is not scheduled).
    Incomplete,
    /// The bind was refused and has not been repeated yet.
    BindRefused,
    /// Enqueue does not admit the PodGroup: a quota or another plugin refuses it.
    NotAdmitted,
    /// The queue is not open (C-33: its state is written by Volcano's queue controller).
    QueueNotOpen,
    /// A plugin calls the queue overused.
    QueueOverused,
    /// The queue has no room for the pod (A20: this is a fit message of the task).
    QueueFull,
    /// An earlier job of its queue has to be placed first (D38: strict FIFO, `headOfLine`).
    BehindHead,
    /// The network topology of the PodGroup or of one of its sub-groups leaves no HyperNode: none is
    /// known or suffices, or no plugin places by HyperNodes (actions.md 4.2, A18).
    Topology,
    /// Victims that were evicted for the job have yet to leave (A45: the job fit message says so).
    AwaitsVictims,
    /// The bind is decided, but waits for volumes or devices.
    AwaitsVolumes,
    /// Members of the gang do not exist.
    MembersMissing,
    /// The scheduler knows no node.
    NoNodes,
    /// The pod fits on no node.
    FitsNowhere,
    /// The pod has a place, but its gang is not complete.
    GangIncomplete,
    /// The pod has a place that terminating pods have yet to leave.
    AwaitsRoom,
    /// Another member of the gang found no place, or still waits for one.
    OtherMember,
    /// No action has tried the pod.
    NotTried,
}

impl SessionState<'_> {
    /// Records why all pods of the job wait, where the cause is not one of single pods or nodes.
    pub(crate) fn note_job_fit(&mut self, job: JobId, cause: WaitCause, text: impl Into<Arc<str>>) {
        self.records.job_fit.insert(job, JobFit { cause, text: text.into(), field: None });
    }

    /// Records that the network topology leaves no HyperNode for the job.
    pub(crate) fn note_topology_problem(&mut self, job: JobId, problem: GradientProblem) {
        let GradientProblem { text, field } = problem;
        let (text, field) = (text.into(), field.map(Into::into));
        self.records.job_fit.insert(job, JobFit { cause: WaitCause::Topology, text, field });
    }

    /// Returns the fields of PodGroups that leave no HyperNode which could hold the pods even when
    /// empty, as far as actions have tried the jobs in this session.
    pub fn unmet_topology_fields(&self) -> impl Iterator<Item = (JobId, &Arc<str>)> {
        self.records.job_fit.iter().filter_map(|(job, fit)| Some((*job, fit.field.as_ref()?)))
    }
}

/// Job fit message: why all pods of a job wait (A45: Volcano has this message but never sets it).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFit {
    /// The cause.
    pub cause: WaitCause,
    /// The message.
    pub text: Arc<str>,
    /// The field of the PodGroup that has to change before the job can be placed. `None` if the job
    /// may wait for something else.
    pub field: Option<Arc<str>>,
}
