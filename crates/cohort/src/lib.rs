//! Quota of queues in trees: borrowing and lending, who may take back from whom, and the smallest
//! sets of groups to evict for it. Pure algorithms on whole amounts. Specification: cohort.md.

mod amount;
mod backoff;
mod candidates;
mod changes;
mod classic;
mod fair;
mod forest;
mod group;
mod limit;
mod mode;
mod node;
mod order;
mod policy;
mod ranking;
mod ranks;
mod returns;
mod search;
mod share;
mod spec;

pub use amount::{Amount, Demand, Flavor, Slot, Slots, UNLIMITED, is_unlimited, widen};
pub use backoff::Backoff;
pub use fair::Strategies;
pub use forest::Forest;
pub use group::{Group, GroupId, Groups, Preemptor};
pub use limit::{ExceededLimit, LimitSource};
pub use mode::{Class, Mode};
pub use node::{ForestError, Kept, NodeSpec, Quota, QuotaNode};
pub use order::Head;
pub use policy::{BorrowWithin, Policy, ReclaimWithin, WithinQueue};
pub use ranking::Ranking;
pub use search::{Anything, Reason, Refusal, Search, Short, Surroundings, Target};
pub use share::Share;
pub use spec::{Built, QueueSpec, TreeRules, build};
