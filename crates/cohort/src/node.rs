//! What a quota tree is built of: nodes with their quotas and policies. Specification: cohort.md
//! A.2.

use std::sync::Arc;

use crate::amount::{QuotaAmount, UNLIMITED, widen};
use crate::policy::Policy;

/// A queue or a cohort, by its place in the list that the forest was built of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuotaNode(u32);

impl QuotaNode {
    /// The node at this place of the list.
    pub fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer than 2^32 queues"))
    }

    /// Its place.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The part of its quota that only the subtree itself can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalQuota {
    /// All but this (lendingLimit).
    AllBut(i64),
    /// At most this; 0: everything is lent.
    AtMost(QuotaAmount),
}

/// Quota of a node in one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeQuota {
    /// Of the node itself, on top of that of its children.
    pub nominal: QuotaAmount,
    /// How much the subtree may use beyond its quota. Below 0 the subtree is held below it (B.2).
    /// Of a top only a value below 0 counts.
    pub borrowing: QuotaAmount,
    /// What is not lent; of a top nothing.
    pub kept: LocalQuota,
    /// The queue may use the resource at all.
    pub declared: bool,
}

impl Default for NodeQuota {
    fn default() -> Self {
        Self { nominal: 0, borrowing: UNLIMITED, kept: LocalQuota::AtMost(0), declared: true }
    }
}

impl NodeQuota {
    /// In Kueue's words.
    pub fn of_limits(nominal: i64, borrowing: Option<i64>, lending: Option<i64>) -> Self {
        Self {
            nominal: widen(nominal.max(0)),
            borrowing: borrowing.map_or(UNLIMITED, |limit| widen(limit.max(0))),
            kept: lending.map_or(LocalQuota::AtMost(0), |limit| LocalQuota::AllBut(limit.max(0))),
            declared: true,
        }
    }
}

/// A node of the forest to build.
#[derive(Clone, Debug)]
pub struct NodeSpec {
    /// For ties and paths.
    pub name: Arc<str>,
    /// Place of its parent in the list; `None`: the top of a tree.
    pub parent: Option<usize>,
    /// It holds groups; else it is a cohort.
    pub is_queue: bool,
    /// Of its share, at least 0.
    pub weight: f64,
    /// `spec.priority` of the queue.
    pub queue_priority: i32,
    /// Of a queue.
    pub policy: Policy,
    /// One per slot.
    pub quotas: Vec<NodeQuota>,
}

/// Why a forest cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForestError {
    /// A node is its own ancestor.
    #[error("the parents of {0} form a cycle")]
    Cycle(Arc<str>),
    /// The parent is no node, or is a queue.
    #[error("the parent of {0} is not a cohort")]
    Parent(Arc<str>),
}
