//! Quota of Volcano's queues: what deserved, capability and guarantee mean in the quota tree.
//! Specification: cohort.md B.2, B.9 (Q2, Q3).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_resource::Dim;

use crate::amount::{QuotaAmount, Slot, Slots, UNLIMITED, is_unlimited, widen};
use crate::forest::Forest;
use crate::node::{ForestError, LocalQuota, NodeQuota, NodeSpec, QuotaNode};
use crate::policy::Policy;

const ROOT: &str = "root";

/// A queue as its object says.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueSpec {
    /// `metadata.name`.
    pub name: Arc<str>,
    /// `spec.parent`; empty: `root`.
    pub parent: Arc<str>,
    /// Per slot; `None`: not listed.
    pub deserved: Vec<Option<i64>>,
    /// Likewise.
    pub capability: Vec<Option<i64>>,
    /// Likewise.
    pub guarantee: Vec<Option<i64>>,
    /// At least 0.
    pub weight: f64,
    /// `spec.priority`.
    pub priority: i32,
    /// Of a queue without children.
    pub policy: Policy,
}

/// Arguments that shape the trees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeRules {
    /// `rootCohort: false`: every child of root is the top of a tree of its own.
    pub without_root: bool,
    /// `rootQuota: Cluster`: what the nodes have, per slot; root owns at least that.
    pub cluster: Option<Vec<i64>>,
}

/// The trees of all queues.
#[derive(Clone, Debug)]
pub struct QuotaForest {
    /// Queues in the order given, then the cohorts that no queue is.
    pub forest: Forest,
    /// By name; what is missing here takes no part (B.9).
    pub by_name: BTreeMap<Arc<str>, QuotaNode>,
    /// Queues on a cycle of parents or below one, by name.
    pub inactive: Vec<Arc<str>>,
    /// Parents that are no queues, by name.
    pub missing: Vec<Arc<str>>,
}

/// Builds the trees. A parent that does not exist is an empty cohort at the top of its own tree;
/// queues on a cycle of parents, or below one, are left out.
///
/// # Errors
/// None that queues can cause; a fault of this crate.
pub fn build(
    slots: Slots,
    queues: &[QueueSpec],
    rules: &TreeRules,
) -> Result<QuotaForest, ForestError> {
    let plan = ForestPlan::new(queues, rules);
    let mut rows: Vec<TreeRow> = plan.members.iter().map(|&at| TreeRow::new(at, queues)).collect();
    rows.extend(plan.assumed.iter().map(|name| TreeRow::assumed(name.clone())));
    let places: BTreeMap<Arc<str>, usize> =
        rows.iter().enumerate().map(|(place, row)| (row.name.clone(), place)).collect();
    for row in &mut rows {
        row.parent = plan.parent_of(&row.name).and_then(|parent| places.get(&parent).copied());
    }
    for place in 0..rows.len() {
        if let Some(parent) = rows[place].parent {
            rows[parent].children.push(place);
        }
    }
    let order = bottom_up(&rows);
    let specs: Vec<NodeSpec> = rows.iter().map(|row| row.node(queues)).collect();
    let mut quotas = vec![Vec::new(); rows.len()];
    for slot in slots.iter() {
        let cluster = rules.cluster.as_ref().and_then(|cluster| cluster.get(slot.index())).copied();
        let of_slot = SlotColumn { rows: &rows, queues, slot, dim: slots.dim(slot), cluster };
        for (place, quota) in of_slot.quotas(&order).into_iter().enumerate() {
            quotas[place].push(quota);
        }
    }
    let with_quotas = specs.into_iter().zip(quotas);
    let specs: Vec<NodeSpec> =
        with_quotas.map(|(spec, quotas)| NodeSpec { quotas, ..spec }).collect();
    let by_name = places.into_iter().map(|(name, place)| (name, QuotaNode::new(place))).collect();
    let forest = Forest::new(slots, &specs)?;
    Ok(QuotaForest { forest, by_name, inactive: plan.inactive, missing: plan.missing })
}

/// Which queues take part, and below what.
struct ForestPlan {
    parents: BTreeMap<Arc<str>, Arc<str>>,
    members: Vec<usize>,
    /// Cohorts that no queue is.
    assumed: BTreeSet<Arc<str>>,
    inactive: Vec<Arc<str>>,
    missing: Vec<Arc<str>>,
    without_root: bool,
}

impl ForestPlan {
    fn new(queues: &[QueueSpec], rules: &TreeRules) -> Self {
        let root: Arc<str> = ROOT.into();
        let parent = |queue: &QueueSpec| match queue.parent.is_empty() {
            true => root.clone(),
            false => queue.parent.clone(),
        };
        let below_root = queues.iter().filter(|queue| *queue.name != *ROOT);
        let parents: BTreeMap<Arc<str>, Arc<str>> =
            below_root.map(|queue| (queue.name.clone(), parent(queue))).collect();
        let mut plan = Self {
            parents,
            members: Vec::new(),
            assumed: BTreeSet::new(),
            inactive: Vec::new(),
            missing: Vec::new(),
            without_root: rules.without_root,
        };
        let names: BTreeSet<&Arc<str>> = queues.iter().map(|queue| &queue.name).collect();
        for (at, queue) in queues.iter().enumerate() {
            let is_root = *queue.name == *ROOT;
            if is_root && rules.without_root {
                continue;
            }
            if plan.is_on_a_cycle(&queue.name) {
                plan.inactive.push(queue.name.clone());
                continue;
            }
            plan.members.push(at);
            if let Some(parent) = plan.parent_of(&queue.name).filter(|name| !names.contains(name)) {
                plan.assumed.insert(parent);
            }
        }
        plan.missing = plan.assumed.iter().filter(|name| ***name != *ROOT).cloned().collect();
        plan.inactive.sort();
        plan
    }

    /// `None`: it is the top of its tree.
    fn parent_of(&self, name: &Arc<str>) -> Option<Arc<str>> {
        let parent = self.parents.get(name)?;
        (**parent != *ROOT || !self.without_root).then(|| parent.clone())
    }

    /// On a cycle or below one: there is no end on the way up.
    fn is_on_a_cycle(&self, name: &Arc<str>) -> bool {
        let mut at = name;
        for _ in 0..=self.parents.len() {
            match self.parents.get(at) {
                Some(parent) => at = parent,
                None => return false,
            }
        }
        true
    }
}

/// A queue, or an assumed cohort, in the trees.
struct TreeRow {
    name: Arc<str>,
    /// Place among the queues; `None`: assumed.
    queue: Option<usize>,
    parent: Option<usize>,
    children: Vec<usize>,
}

impl TreeRow {
    fn new(at: usize, queues: &[QueueSpec]) -> Self {
        let name = queues[at].name.clone();
        Self { name, queue: Some(at), parent: None, children: Vec::new() }
    }

    fn assumed(name: Arc<str>) -> Self {
        Self { name, queue: None, parent: None, children: Vec::new() }
    }

    fn node(&self, queues: &[QueueSpec]) -> NodeSpec {
        let queue = self.queue.map(|at| &queues[at]);
        NodeSpec {
            name: self.name.clone(),
            parent: self.parent,
            is_queue: self.children.is_empty(),
            weight: queue.map_or(1.0, |queue| queue.weight),
            queue_priority: queue.map_or(0, |queue| queue.priority),
            policy: queue.map_or_else(Policy::default, |queue| queue.policy),
            quotas: Vec::new(),
        }
    }
}

/// Places, children before their parents.
fn bottom_up(rows: &[TreeRow]) -> Vec<usize> {
    let mut order: Vec<usize> =
        (0..rows.len()).filter(|&place| rows[place].parent.is_none()).collect();
    let mut at = 0;
    while let Some(&place) = order.get(at) {
        order.extend(&rows[place].children);
        at += 1;
    }
    order.reverse();
    order
}

/// Everything about one slot.
struct SlotColumn<'a> {
    rows: &'a [TreeRow],
    queues: &'a [QueueSpec],
    slot: Slot,
    dim: Dim,
    /// `rootQuota: Cluster`.
    cluster: Option<i64>,
}

/// The sums of a node in one slot.
#[derive(Clone, Copy, Debug, Default)]
struct SlotSums {
    /// `g`.
    guarantee: QuotaAmount,
    total: QuotaAmount,
    /// Of the children.
    below_guarantee: QuotaAmount,
    below_total: QuotaAmount,
}

impl SlotColumn<'_> {
    fn listed(&self, place: usize, of: fn(&QueueSpec) -> &Vec<Option<i64>>) -> Option<QuotaAmount> {
        let queue = &self.queues[self.rows[place].queue?];
        let amount = of(queue).get(self.slot.index()).copied().flatten()?;
        Some(widen(amount.max(0)))
    }

    /// Listed as 0, cpu and memory are unlimited, too.
    fn cap(&self, place: usize) -> QuotaAmount {
        let is_native = self.dim == Dim::CPU || self.dim == Dim::MEMORY;
        let listed = self.listed(place, |queue| &queue.capability);
        listed.filter(|&cap| 0 < cap || !is_native).unwrap_or(UNLIMITED)
    }

    fn quotas(&self, order: &[usize]) -> Vec<NodeQuota> {
        let tops = self.tops(order);
        let tree = |place: usize| tops[place];
        let managed = self.trees_with(&tops, |place| {
            self.listed(place, |queue| &queue.deserved).is_some()
                || self.listed(place, |queue| &queue.guarantee).is_some()
        });
        let capped =
            self.trees_with(&tops, |place| self.listed(place, |queue| &queue.capability).is_some());
        let mut sums = vec![SlotSums::default(); self.rows.len()];
        for &place in order {
            sums[place] = self.sums(place, &sums, managed.contains(&tree(place)));
        }
        let quota = |place: usize| {
            if managed.contains(&tree(place)) || capped.contains(&tree(place)) {
                self.quota(place, &sums[place])
            } else {
                // Nobody mentions it: it is not accounted and never blocks.
                NodeQuota { nominal: UNLIMITED, ..NodeQuota::default() }
            }
        };
        (0..self.rows.len()).map(quota).collect()
    }

    /// The top of each place's tree.
    fn tops(&self, order: &[usize]) -> Vec<usize> {
        let mut tops: Vec<usize> = (0..self.rows.len()).collect();
        for &place in order.iter().rev() {
            if let Some(parent) = self.rows[place].parent {
                tops[place] = tops[parent];
            }
        }
        tops
    }

    fn trees_with(&self, tops: &[usize], has: impl Fn(usize) -> bool) -> BTreeSet<usize> {
        (0..self.rows.len()).filter(|&place| has(place)).map(|place| tops[place]).collect()
    }

    /// The sums of the children stand already.
    fn sums(&self, place: usize, sums: &[SlotSums], is_managed: bool) -> SlotSums {
        let row = &self.rows[place];
        let below_guarantee = row.children.iter().map(|&child| sums[child].guarantee).sum();
        let below_total = row.children.iter().map(|&child| sums[child].total).sum();
        let listed = |of| self.listed(place, of).unwrap_or(0);
        let guarantee: QuotaAmount = listed(|queue| &queue.guarantee).max(below_guarantee);
        let deserved = listed(|queue| &queue.deserved);
        let total = match (row.parent, row.children.is_empty()) {
            // What only capabilities mention, the top owns without limit.
            (None, false) if !is_managed => UNLIMITED,
            (None, true) if !is_managed => self.cap(place),
            (_, true) => deserved.max(guarantee).min(self.cap(place)),
            (_, false) => deserved.max(below_total).max(guarantee).max(self.cluster_of(place)),
        };
        SlotSums { guarantee, total, below_guarantee, below_total }
    }

    fn cluster_of(&self, place: usize) -> QuotaAmount {
        let is_root = *self.rows[place].name == *ROOT;
        self.cluster.filter(|_| is_root).map_or(0, widen)
    }

    fn quota(&self, place: usize, sums: &SlotSums) -> NodeQuota {
        let cap = self.cap(place);
        let borrowing = if is_unlimited(cap) { UNLIMITED } else { cap - sums.total };
        NodeQuota {
            nominal: sums.total - sums.below_total,
            borrowing,
            kept: LocalQuota::AtMost(sums.guarantee - sums.below_guarantee),
            declared: true,
        }
    }
}
