//! The quota tree: what each queue and cohort owns, keeps, lends and may borrow, and what is in
//! use. Specification: cohort.md A.2, B.2 for limits of tops.

use std::sync::Arc;

use crate::amount::{QuotaAmount, QuotaDemand, Slot, Slots, is_unlimited, widen};
use crate::changes::ChangedQuotaNodes;
use crate::node::{ForestError, LocalQuota, NodeQuota, NodeSpec, QuotaNode};
use crate::policy::{Policy, ReclaimWithin, WithinQueue};

#[derive(Clone, Debug)]
pub(crate) struct ForestNode {
    pub(crate) name: Arc<str>,
    pub(crate) parent: Option<QuotaNode>,
    /// Of its tree.
    pub(crate) top: QuotaNode,
    pub(crate) children: Vec<QuotaNode>,
    pub(crate) is_queue: bool,
    /// 0 for a queue, for a cohort 1 more than its highest child cohort.
    pub(crate) height: u32,
    pub(crate) depth: u32,
    pub(crate) weight: f64,
    pub(crate) queue_priority: i32,
    pub(crate) policy: Policy,
}

/// One node in one slot.
#[derive(Clone, Copy, Debug, Default)]
struct NodeSlot {
    nominal: QuotaAmount,
    borrowing: QuotaAmount,
    declared: bool,
    /// `S`: own quota and what the children lend.
    subtree: QuotaAmount,
    /// The part nobody else can use.
    local: QuotaAmount,
    potential: QuotaAmount,
    usage: QuotaAmount,
}

/// All quota trees of a cluster with what is in use.
#[derive(Clone, Debug)]
pub struct Forest {
    pub(crate) slots: Slots,
    nodes: Vec<ForestNode>,
    /// By node, then slot.
    cells: Vec<NodeSlot>,
    /// By node: place of its name among all names.
    name_ranks: Vec<u32>,
    changes: ChangedQuotaNodes,
}

impl Forest {
    /// The trees of these nodes, nothing in use.
    ///
    /// # Errors
    /// Parents that are no cohorts, or form a cycle.
    pub fn new(slots: Slots, specs: &[NodeSpec]) -> Result<Self, ForestError> {
        let mut nodes: Vec<ForestNode> = specs.iter().enumerate().map(node).collect();
        for (index, spec) in specs.iter().enumerate() {
            let Some(parent) = spec.parent else { continue };
            let cohort = nodes.get_mut(parent).filter(|node| !node.is_queue);
            let cohort = cohort.ok_or_else(|| ForestError::Parent(spec.name.clone()))?;
            cohort.children.push(QuotaNode::new(index));
        }
        let down = from_the_tops(&mut nodes)?;
        let n_slots = slots.len();
        let cell = |quota: &NodeQuota| NodeSlot {
            nominal: quota.nominal,
            borrowing: quota.borrowing,
            declared: quota.declared,
            ..NodeSlot::default()
        };
        let quota_of = |spec: &NodeSpec, slot: usize| spec.quotas.get(slot).copied();
        let cells = specs.iter().flat_map(|spec| {
            (0..n_slots).map(move |slot| cell(&quota_of(spec, slot).unwrap_or_default()))
        });
        let cells = cells.collect();
        let name_ranks = name_ranks(&nodes);
        let changes = ChangedQuotaNodes::none(specs.len());
        let mut forest = Self { slots, nodes, cells, name_ranks, changes };
        for &node in down.iter().rev() {
            forest.set_subtree(node, &specs[node.index()]);
        }
        down.into_iter().for_each(|node| forest.set_potential(node));
        Ok(forest)
    }

    /// Children stand before their parents.
    fn set_subtree(&mut self, node: QuotaNode, spec: &NodeSpec) {
        for slot in self.slots.iter() {
            let lent = |&child: &QuotaNode| {
                let cell = self.cell(child, slot);
                cell.subtree - cell.local
            };
            let lent: QuotaAmount = self.node(node).children.iter().map(lent).sum();
            let is_top = spec.parent.is_none();
            let kept = spec.quotas.get(slot.index()).copied().unwrap_or_default().kept;
            let cell = self.cell_mut(node, slot);
            cell.subtree = cell.nominal + lent;
            cell.local = match kept {
                _ if is_top => 0,
                LocalQuota::AllBut(lending) => (cell.subtree - widen(lending)).max(0),
                LocalQuota::AtMost(amount) => amount.min(cell.subtree).max(0),
            };
        }
    }

    /// Parents stand before their children.
    fn set_potential(&mut self, node: QuotaNode) {
        for slot in self.slots.iter() {
            let cell = *self.cell(node, slot);
            let potential = match self.node(node).parent {
                None => cell.subtree + cell.borrowing.min(0),
                Some(parent) => (cell.local + self.cell(parent, slot).potential)
                    .min(cell.subtree + cell.borrowing),
            };
            self.cell_mut(node, slot).potential = potential;
        }
    }

    fn cell(&self, node: QuotaNode, slot: Slot) -> &NodeSlot {
        &self.cells[node.index() * self.slots.len() + slot.index()]
    }

    fn cell_mut(&mut self, node: QuotaNode, slot: Slot) -> &mut NodeSlot {
        &mut self.cells[node.index() * self.slots.len() + slot.index()]
    }

    pub(crate) fn node(&self, node: QuotaNode) -> &ForestNode {
        &self.nodes[node.index()]
    }

    /// Number of queues and cohorts.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Queues and cohorts, in the order of the list.
    pub fn nodes(&self) -> impl Iterator<Item = QuotaNode> + use<> {
        (0..self.nodes.len()).map(QuotaNode::new)
    }

    /// The resources that quotas are given for.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Whether groups are in it; else it is a cohort.
    pub fn is_queue(&self, node: QuotaNode) -> bool {
        self.node(node).is_queue
    }

    /// Whether its policies let a group of the queue have others evicted.
    pub fn may_evict(&self, node: QuotaNode) -> bool {
        let ForestNode { is_queue, policy, .. } = self.node(node);
        let own = policy.within_queue != WithinQueue::Never;
        *is_queue && (own || policy.reclaim_within != ReclaimWithin::Never)
    }

    /// Its name.
    pub fn name(&self, node: QuotaNode) -> &Arc<str> {
        &self.node(node).name
    }

    /// Its cohort; `None`: it is the top of its tree.
    pub fn parent(&self, node: QuotaNode) -> Option<QuotaNode> {
        self.node(node).parent
    }

    /// The queues and cohorts directly below it.
    pub fn children(&self, node: QuotaNode) -> &[QuotaNode] {
        &self.node(node).children
    }

    /// The node, its cohort and so on up to the top.
    pub fn path(&self, node: QuotaNode) -> impl Iterator<Item = QuotaNode> + '_ {
        std::iter::successors(Some(node), |&node| self.parent(node))
    }

    /// Number of nodes above it.
    pub(crate) fn depth(&self, node: QuotaNode) -> u32 {
        self.node(node).depth
    }

    /// Top of the tree.
    pub fn top(&self, node: QuotaNode) -> QuotaNode {
        self.node(node).top
    }

    /// `/top/.../node`.
    pub fn path_text(&self, node: QuotaNode) -> String {
        let mut names: Vec<&str> = self.path(node).map(|node| &**self.name(node)).collect();
        names.push("");
        names.reverse();
        names.join("/")
    }

    /// The two ancestors, or nodes themselves, just below the lowest cohort that both have. `None`:
    /// there is none, or one is above the other.
    pub(crate) fn below_common(
        &self,
        mut l: QuotaNode,
        mut r: QuotaNode,
    ) -> Option<(QuotaNode, QuotaNode)> {
        let depth = |node| self.node(node).depth;
        while depth(r) < depth(l) {
            l = self.parent(l)?;
        }
        while depth(l) < depth(r) {
            r = self.parent(r)?;
        }
        if l == r {
            return None;
        }
        loop {
            let (above_l, above_r) = (self.parent(l)?, self.parent(r)?);
            if above_l == above_r {
                return Some((l, r));
            }
            (l, r) = (above_l, above_r);
        }
    }

    /// Quota of the node itself.
    pub fn nominal(&self, node: QuotaNode, slot: Slot) -> QuotaAmount {
        self.cell(node, slot).nominal
    }

    /// Quota of the node itself and of all below it, whatever of it is lent.
    pub fn total(&self, node: QuotaNode, slot: Slot) -> QuotaAmount {
        let children = self.node(node).children.iter();
        self.nominal(node, slot)
            + children.map(|&child| self.total(child, slot)).sum::<QuotaAmount>()
    }

    /// How much the subtree may use beyond its quota.
    pub fn borrowing(&self, node: QuotaNode, slot: Slot) -> QuotaAmount {
        self.cell(node, slot).borrowing
    }

    /// `S`: quota of the subtree.
    pub fn subtree(&self, node: QuotaNode, slot: Slot) -> QuotaAmount {
        self.cell(node, slot).subtree
    }

    /// The part of the subtree's quota that nobody else can use.
    pub fn local(&self, node: QuotaNode, slot: Slot) -> QuotaAmount {
        self.cell(node, slot).local
    }

    /// Of a queue what its groups hold; of a cohort what its children use beyond what they keep.
    pub fn usage(&self, node: QuotaNode, slot: Slot) -> QuotaAmount {
        self.cell(node, slot).usage
    }

    /// What is in use at the node itself and below it, whoever's quota it is.
    pub fn used(&self, node: QuotaNode, slot: Slot) -> QuotaAmount {
        let children = self.node(node).children.iter();
        let kept = children.map(|&child| {
            let cell = self.cell(child, slot);
            self.used(child, slot) - (cell.usage - cell.local).max(0)
        });
        self.usage(node, slot) + kept.sum::<QuotaAmount>()
    }

    /// What could be admitted if nothing was in use.
    pub fn potential(&self, node: QuotaNode, slot: Slot) -> QuotaAmount {
        self.cell(node, slot).potential
    }

    /// Whether the queue may use the resource at all.
    pub fn declares(&self, node: QuotaNode, slot: Slot) -> bool {
        self.cell(node, slot).declared
    }

    pub(crate) fn local_available(&self, node: QuotaNode, slot: Slot) -> QuotaAmount {
        let cell = self.cell(node, slot);
        (cell.local - cell.usage).max(0)
    }

    /// What may be admitted now, at least 0.
    pub fn available(&self, node: QuotaNode, slot: Slot) -> QuotaAmount {
        self.room(node, slot).max(0)
    }

    /// Below 0 if more is in use than may be.
    fn room(&self, node: QuotaNode, slot: Slot) -> QuotaAmount {
        let cell = self.cell(node, slot);
        let Some(parent) = self.parent(node) else {
            return cell.subtree + cell.borrowing.min(0) - cell.usage;
        };
        let lent_use = (cell.usage - cell.local).max(0);
        let own = cell.subtree - cell.local - lent_use + cell.borrowing;
        (cell.local - cell.usage).max(0) + self.room(parent, slot).min(own)
    }

    /// Place of its name among the names of all nodes.
    pub(crate) fn name_rank(&self, node: QuotaNode) -> u32 {
        self.name_ranks[node.index()]
    }

    /// The nodes whose use may have changed since this was called last.
    pub(crate) fn take_changes(&mut self) -> Vec<QuotaNode> {
        self.changes.keep_first(0)
    }

    /// What a node is like if a group of the queue held this, too.
    pub(crate) fn with<T>(
        &mut self,
        queue: QuotaNode,
        demand: &QuotaDemand,
        look: impl FnOnce(&Self) -> T,
    ) -> T {
        let n_changes = self.changes.len();
        self.add(queue, demand);
        let answer = look(self);
        self.remove(queue, demand);
        self.changes.keep_first(n_changes);
        answer
    }

    /// Whether the node uses no more than its quota in all of these.
    pub fn is_within_nominal(&self, node: QuotaNode, slots: &[Slot]) -> bool {
        slots.iter().all(|&slot| self.over(node, slot) == 0)
    }

    /// Whether the top of the tree owns an unlimited amount of it.
    pub(crate) fn is_free(&self, node: QuotaNode, slot: Slot) -> bool {
        is_unlimited(self.cell(self.top(node), slot).subtree)
    }

    /// A group of the queue holds this from now on.
    pub fn add(&mut self, queue: QuotaNode, demand: &QuotaDemand) {
        for (slot, amount) in demand.iter() {
            let (mut at, mut amount) = (Some(queue), amount);
            while let Some(node) = at.filter(|_| 0 < amount) {
                let own = self.local_available(node, slot);
                self.cell_mut(node, slot).usage += amount;
                self.changes.note(node);
                amount = (amount - own).max(0);
                at = self.parent(node);
            }
        }
    }

    /// The group no longer holds it. Takes [`Forest::add`] back exactly.
    pub fn remove(&mut self, queue: QuotaNode, demand: &QuotaDemand) {
        for (slot, amount) in demand.iter() {
            let (mut at, mut amount) = (Some(queue), amount);
            while let Some(node) = at.filter(|_| 0 < amount) {
                let cell = self.cell_mut(node, slot);
                let lent_use = (cell.usage - cell.local).max(0);
                cell.usage -= amount;
                amount = amount.min(lent_use);
                self.changes.note(node);
                at = self.parent(node);
            }
        }
    }
}

fn node((index, spec): (usize, &NodeSpec)) -> ForestNode {
    ForestNode {
        name: spec.name.clone(),
        parent: spec.parent.map(QuotaNode::new),
        top: QuotaNode::new(index),
        children: Vec::new(),
        is_queue: spec.is_queue,
        height: 0,
        depth: 0,
        weight: if 0.0 < spec.weight { spec.weight } else { 0.0 },
        queue_priority: spec.queue_priority,
        policy: spec.policy,
    }
}

fn name_ranks(nodes: &[ForestNode]) -> Vec<u32> {
    let mut by_name: Vec<usize> = (0..nodes.len()).collect();
    by_name.sort_by(|&l, &r| nodes[l].name.cmp(&nodes[r].name));
    let mut ranks = vec![0; nodes.len()];
    for (rank, index) in (0..).zip(by_name) {
        ranks[index] = rank;
    }
    ranks
}

/// Sets depths, heights and tops; the nodes, parents before their children.
fn from_the_tops(nodes: &mut [ForestNode]) -> Result<Vec<QuotaNode>, ForestError> {
    let ids = (0..nodes.len()).map(QuotaNode::new);
    let mut down: Vec<QuotaNode> =
        ids.filter(|node| nodes[node.index()].parent.is_none()).collect();
    let mut at = 0;
    while let Some(&node) = down.get(at) {
        let ForestNode { depth, top, .. } = nodes[node.index()];
        for child in nodes[node.index()].children.clone() {
            (nodes[child.index()].depth, nodes[child.index()].top) = (depth + 1, top);
            down.push(child);
        }
        at += 1;
    }
    if down.len() < nodes.len() {
        let reached: std::collections::BTreeSet<QuotaNode> = down.into_iter().collect();
        let lost = (0..nodes.len()).find(|&index| !reached.contains(&QuotaNode::new(index)));
        return Err(ForestError::Cycle(nodes[lost.unwrap_or(0)].name.clone()));
    }
    for &node in down.iter().rev() {
        let row = &nodes[node.index()];
        let heights = row.children.iter().map(|child| nodes[child.index()].height);
        let highest = heights.max();
        nodes[node.index()].height = highest.map_or(0, |height| height + 1);
    }
    Ok(down)
}
