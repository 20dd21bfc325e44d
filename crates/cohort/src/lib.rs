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

pub use amount::{Flavor, QuotaAmount, QuotaDemand, Slot, Slots, UNLIMITED, is_unlimited, widen};
pub use backoff::Backoff;
pub use fair::PreemptionStrategies;
pub use forest::Forest;
pub use group::{Group, GroupId, Groups, QuotaPreemptor};
pub use limit::{ExceededLimit, LimitSource};
pub use mode::{AssignmentMode, GroupAssessment};
pub use node::{ForestError, LocalQuota, NodeQuota, NodeSpec, QuotaNode};
pub use order::QueueHead;
pub use policy::{BorrowWithin, Policy, ReclaimWithin, WithinQueue};
pub use ranking::HeadRanking;
pub use search::{
    AllowAll, EvictionTarget, MissingQuota, PreemptionReason, SearchEnvironment, SearchOptions,
    SearchRefusal,
};
pub use share::Share;
pub use spec::{QueueSpec, QuotaForest, TreeRules, build};
