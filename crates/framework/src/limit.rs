//! Limits of queues with their amounts, for the sentences that follow Volcano's texts.
//! Specification: core.md 3.10.

use std::sync::Arc;

use vc_model::ObjectKey;
use vc_resource::{Dim, Dims, quantity_text};

/// A limit that keeps tasks, or a job, out of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueLimit {
    /// The object that sets the limit.
    pub owner: LimitOwner,
    /// The dimensions that exceed the limit, in report order.
    pub amounts: Vec<LimitedAmount>,
}

/// The object that sets a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitOwner {
    /// The queue of the tasks, or an ancestor of it.
    Queue(Arc<str>),
    /// A cohort above the queue: a queue with children, or the parent that several queues name.
    Cohort(Arc<str>),
    /// The cluster.
    Cluster,
}

/// One dimension of a limit, in units of [`Resource`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitedAmount {
    /// The dimension.
    pub dim: Dim,
    /// The upper bound.
    pub limit: i64,
    /// Source of the limit: `spec.capability`, `deserved`.
    pub set_by: &'static str,
    /// The amount that counts already.
    pub used: i64,
    /// The amount that is requested in addition.
    pub asked: i64,
}

/// One amount on which a vote on admission turned, as texts for answers. What a plugin compares need
/// not be a dimension of nodes. Specification: answers.md 3 (ANS-14).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitFact {
    /// What is limited, and by which object.
    pub owner: FactOwner,
    /// Name of the resource, as the plugin compares it.
    pub resource: String,
    /// Name of the limit: `hard`, `share`.
    pub limit: &'static str,
    /// The upper bound.
    pub amount: String,
    /// The amount that counts already.
    pub used: String,
    /// The amount for which the vote asks in addition.
    pub asked: String,
    /// The least by which the limit has to be raised for the vote to turn.
    pub short: String,
}

/// What a [`LimitFact`] is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactOwner {
    /// A ResourceQuota of the namespace of the job.
    ResourceQuota(ObjectKey),
    /// An account that shares a queue with others.
    Account {
        /// Name of the queue.
        queue: Arc<str>,
        /// What an account is: `namespace`, or the key of a label.
        noun: String,
        /// Name of the account.
        name: Arc<str>,
    },
}

impl QueueLimit {
    /// Returns `Limit of queue q: 4 cpu (spec.capability), used 3, asked 2.` For more than one pod
    /// it says `asked 6 for 3 members`.
    pub fn text(&self, dims: &Dims, n_pods: usize) -> String {
        let of = match &self.owner {
            LimitOwner::Queue(name) => format!("queue {name}"),
            LimitOwner::Cohort(name) => format!("cohort {name}"),
            LimitOwner::Cluster => "the cluster".to_owned(),
        };
        let members = if n_pods < 2 { String::new() } else { format!(" for {n_pods} members") };
        let amount = |it: &LimitedAmount| {
            let text = |amount| quantity(amount, it.dim, dims);
            let (limit, used, asked) = (text(it.limit), text(it.used), text(it.asked));
            let (name, set_by) = (dims.name(it.dim), it.set_by);
            format!("{limit} {name} ({set_by}), used {used}, asked {asked}{members}")
        };
        let amounts: Vec<String> = self.amounts.iter().map(amount).collect();
        format!("Limit of {of}: {}.", amounts.join("; "))
    }
}

/// Returns an amount of a dimension as quantity text.
pub fn quantity(amount: i64, dim: Dim, dims: &Dims) -> String {
    quantity_text(amount, dims.name(dim))
}
