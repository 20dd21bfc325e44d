//! The codes of a verdict and their stages. Codes are stable names: their meaning never changes.
//! Specification: answers.md 2 (ANS-6, ANS-7).

/// Declares the codes with their stages and the list of all of them.
macro_rules! wait_codes {
    ($($(#[$about:meta])* $name:ident in $stage:literal,)*) => {
        /// Why a job waits, or that it does not, as one word.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum WaitCode {
            $($(#[$about])* $name,)*
        }

        impl WaitCode {
            /// All codes, in the order of the stages.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Returns the name.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Returns the stage of scheduling in which the job is.
            pub fn stage(self) -> &'static str {
                match self {
                    $(Self::$name => $stage,)*
                }
            }
        }
    };
}

wait_codes! {
    /// Another scheduler decides about the pod.
    NotOurs in "ours",
    /// Nothing of it waits.
    Placed in "ours",
    /// The bind is decided; the writes before it, or the bind itself, are on their way.
    Binding in "ours",
    /// The last bind was refused and has not been repeated yet.
    BindFailed in "ours",
    /// The object cannot be read.
    Invalid in "object",
    /// The pod names no PodGroup, or one that does not exist.
    NoGroup in "object",
    /// Pods have scheduling gates.
    Gated in "gate",
    /// The queue does not exist.
    QueueMissing in "queue",
    /// The queue is not open.
    QueueNotOpen in "queue",
    /// Members that the gang needs do not exist.
    NotValid in "members",
    /// A plugin does not admit the job to its queue.
    NotAdmitted in "admission",
    /// The queue has no room.
    QueueFull in "share",
    /// Jobs that come first hold what it needs.
    HeldBack in "order",
    /// Pods that were evicted for it have yet to leave.
    AwaitsVictims in "nodes",
    /// It has places that terminating pods have yet to leave.
    WaitsForRelease in "nodes",
    /// It is placed in the next cycle.
    NextCycle in "nodes",
    /// No node passes the rules other than room.
    NodesRefuse in "nodes",
    /// No eligible node is large enough, even if it were empty.
    NeverFits in "nodes",
    /// The eligible nodes together have too little.
    NoRoom in "nodes",
    /// The eligible nodes together have enough, but none alone.
    Fragmented in "nodes",
    /// Some of the needed members find places.
    GangShort in "nodes",
}
