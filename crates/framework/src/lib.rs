//! Extension points, dispatch, session and statement: everything that plugins and actions share,
//! without knowing any of them. Specification: core.md 5, 6, 8, actions.md 2.

#![deny(missing_docs)]

mod action;
mod asker;
mod cause;
mod certificate;
mod claim;
mod dead_ends;
mod dispatch;
mod effect;
mod fast;
mod gang_shape;
mod gang_text;
mod journal;
mod limit;
mod log;
mod message;
mod meter;
mod outbox;
mod plugin;
mod points;
mod quota;
mod records;
mod refusals;
mod report;
mod roster;
mod ruling;
mod sample;
mod scan;
mod sentences;
mod session;
mod sort;
mod standing;
mod statement;
mod sums;
mod time;
mod told;
mod wait_cause;
mod walk;

pub use action::Action;
pub use asker::{Asker, AskerClass};
pub use cause::{Cause, Causes, Tally, histogram};
pub use certificate::{Certificate, CertifiedVictim, Claimed, Placement, Relation, Unit, Witness};
pub use claim::{Claim, Claims};
pub use dead_ends::{Ballot, Failed, Hunt, Keep, Lasts, Look, Shortfall, Stake};
pub use dispatch::{Dispatch, NodeRules, Refusal};
pub use effect::{About, Effect, EvictReason, Nomination, PreBindWrites, evict_message};
pub use fast::{
    BatchFill, Column, DimColumns, Evaluator, Fill, Found, Memo, NodeColumns, NodeTests, Normal,
    ObjectRule, Part, Paths, Raw, Reads, Test,
};
pub use gang_shape::GangShape;
pub use gang_text::{gang_text, gated_members, n_lacking};
pub use limit::{LimitOwner, LimitedAmount, QueueLimit};
pub use message::{TaskMessage, job_text, task_message};
pub use meter::Stopwatch;
pub use outbox::Outbox;
pub use plugin::{
    Admission, Ask, Clock, Facts, GangEviction, Invalid, Marked, NodeRule, Plugin, PluginEntry,
    QueueShare, Verdict, Vote,
};
pub use points::{ALL_POINTS, Points};
pub use quota::{
    Heads, News, Notice, QuotaRefusal, Sides, Surroundings, TargetGroup, Targets, Wanted,
    preempt_targets,
};
pub use records::{FailedRoles, LastTransaction, Records};
pub use report::{
    PipelinedTask, PluginStage, PluginTime, QueueUse, QuotaAmounts, QuotaUse, Report, Skipped,
    Timings, WaitingTask,
};
pub use roster::Roster;
pub use ruling::{Question, Rule, RuleId, Ruling};
pub use sample::{
    Amounts, GangState, PendingPods, PendingReason, QueueAmount, QueueGauges, Sample,
};
pub use scan::{Filter, Scan, outside_shard};
pub use sentences::{Sentences, admission, begins_with_text};
pub use session::{Hits, Opening, Session};
pub use sort::sort_stably;
pub use standing::{Again, Before};
pub use statement::{Mark, Op, Plan, Refused, Room, Statement};
pub use sums::JobSums;
pub use time::rfc3339;
pub use told::Latest;
/// For [`klog!`].
#[doc(hidden)]
pub use tracing;
pub use wait_cause::{JobFit, WaitCause};
pub use walk::{Prospect, Walk, Walks};
