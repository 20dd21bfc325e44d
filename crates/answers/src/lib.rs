//! Answers about jobs that wait: why, by how much, and who is before them. Everything is a function
//! of the engine's state and the question; nothing is changed.
//! Specification: answers.md.

#![deny(missing_docs)]

mod amounts;
mod blocking;
mod code;
mod explain;
mod explanation;
mod line;
mod nodes;
mod obstacles;
mod quota;
mod shortage;
mod subject;
mod trials;
mod unblock;
mod verdict;

pub use code::WaitCode;
pub use explain::{AnswerState, Depth, explain, explain_not_ours, explain_waiting, try_lifted};
pub use explanation::{
    AnswerTime, AskedSubject, BlockingAtom, BlockingSet, BlockingSets, Explanation, GangNumbers,
    JobsAhead, LastCondition, LineNeighbour, LinePlace, NearestNode, NodeNumbers, PodClassNumbers,
    QuotaRow, RefusedNodes, Remedy, RemedyKind, Responsible, RoleNumbers, ShortResource, Verdict,
    time_text,
};
pub use subject::{Subject, SubjectError, SubjectKind, SubjectQuery, find_subject};
