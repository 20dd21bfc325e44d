//! Extension points, dispatch, session and statement: everything that plugins and actions share,
//! without knowing any of them. Specification: core.md 5, 6, 8, actions.md 2.

#![deny(missing_docs)]

mod action;
mod claim;
mod dispatch;
mod effect;
mod fast;
mod log;
mod message;
mod meter;
mod outbox;
mod plugin;
mod points;
mod records;
mod report;
mod sample;
mod scan;
mod session;
mod statement;
mod time;
mod told;

pub use action::Action;
pub use claim::{Claim, Claims};
pub use dispatch::{Dispatch, NodeRules};
pub use effect::{About, Effect, EvictReason, Nomination};
pub use fast::{Column, Evaluator, Found, Memo, Normal, Reads};
pub use message::{TaskMessage, job_text, task_message};
pub use meter::Stopwatch;
pub use outbox::Outbox;
pub use plugin::{
    Admission, Ask, Facts, GangEviction, Invalid, NodeRule, Plugin, PluginEntry, QueueShare,
    Verdict, Vote,
};
pub use points::{ALL_POINTS, Points};
pub use records::{LastTransaction, Records};
pub use report::{PipelinedTask, PluginStage, PluginTime, QueueUse, Report, Timings, WaitingTask};
pub use sample::{
    Amounts, GangState, PendingPods, PendingReason, QueueAmount, QueueGauges, Sample,
};
pub use scan::{Filter, Scan};
pub use session::{Opening, Session};
pub use statement::{Mark, Op, Plan, Refused, Room, Statement};
pub use time::rfc3339;
pub use told::Told;
/// For [`klog!`].
#[doc(hidden)]
pub use tracing;
