//! The tree of HyperNodes over the nodes of a session, with a virtual root above all. A HyperNode
//! with a problem keeps what is sound about it: a member with another parent stays there, and a
//! member that would close a cycle is left out. Specification: core.md 4.9, plugins-nodes.md 15.1.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{HyperNodeMember, HyperNodeRecord, SelectableNode};
use crate::ids::{Id, NodeId};

/// Name of the virtual root.
const ROOT: &str = "<cluster-top-hypernode>";

/// A HyperNode of a tree, by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HyperNodeId(u32);

/// A HyperNode in the tree.
#[derive(Clone, Debug, Default)]
pub struct HyperNode {
    /// Name.
    pub name: Arc<str>,
    /// A smaller tier is a closer network.
    pub tier: i32,
    /// The HyperNode that has it as member, else the root. `None` for the root.
    pub parent: Option<HyperNodeId>,
    /// Members that are HyperNodes, by name.
    pub children: Vec<HyperNodeId>,
    /// Its nodes and those of its members, in name order.
    pub nodes: Arc<[NodeId]>,
    /// The same nodes in the order of their ids.
    by_id: Vec<NodeId>,
    /// Number of HyperNodes above it.
    depth: u32,
}

/// A problem of a HyperNode; the rest of it stays in force.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HyperNodeProblem {
    /// A member has another parent.
    #[error("HyperNode {member} already has the parent {parent}, so it is no member of {name}")]
    SecondParent {
        /// The HyperNode with the problem.
        name: Arc<str>,
        /// Its member.
        member: Arc<str>,
        /// The parent that the member has.
        parent: Arc<str>,
    },
    /// A member is above the HyperNode, or is the HyperNode itself.
    #[error("HyperNode {member} is {name} or above it, so it is no member: a cycle")]
    Cycle {
        /// The HyperNode with the problem.
        name: Arc<str>,
        /// Its member.
        member: Arc<str>,
    },
    /// A member does not exist.
    #[error("HyperNode {member}, a member of {name}, does not exist")]
    UnknownMember {
        /// The HyperNode with the problem.
        name: Arc<str>,
        /// Its member.
        member: Arc<str>,
    },
    /// A member is not of a lower tier.
    #[error("HyperNode {member} of tier {member_tier} is a member of {name} of tier {tier}")]
    Tiers {
        /// The HyperNode with the problem.
        name: Arc<str>,
        /// Its tier.
        tier: i32,
        /// Its member.
        member: Arc<str>,
        /// Tier of the member.
        member_tier: i32,
    },
    /// A field of it is wrong, for instance a pattern that does not compile.
    #[error("HyperNode {name}: {problem}")]
    Field {
        /// The HyperNode with the problem.
        name: Arc<str>,
        /// The path of the field, and what is wrong.
        problem: Arc<str>,
    },
    /// Another tier has the same name.
    #[error(
        "HyperNode {name} of tier {tier} has the tier name {tier_name}, and so has {other} of tier \
         {higher}: jobs that name it may use tier {higher}"
    )]
    TierName {
        /// The HyperNode with the problem: the first one of the lower tier, by name.
        name: Arc<str>,
        /// Its tier.
        tier: i32,
        /// The name of both tiers.
        tier_name: Arc<str>,
        /// The first HyperNode of the highest tier with this name.
        other: Arc<str>,
        /// The highest tier with this name.
        higher: i32,
    },
    /// A node is in two HyperNodes, of which neither contains the other.
    #[error("node {node} is in {name} and in {other}, and neither contains the other")]
    SharedNode {
        /// The HyperNode with the problem.
        name: Arc<str>,
        /// The other one.
        other: Arc<str>,
        /// The first such node.
        node: Arc<str>,
    },
}

impl HyperNodeProblem {
    /// The HyperNode with the problem.
    pub fn name(&self) -> &Arc<str> {
        match self {
            Self::SecondParent { name, .. }
            | Self::Cycle { name, .. }
            | Self::UnknownMember { name, .. }
            | Self::Tiers { name, .. }
            | Self::Field { name, .. }
            | Self::TierName { name, .. }
            | Self::SharedNode { name, .. } => name,
        }
    }

    /// The path of the field with the problem.
    pub fn field(&self) -> &str {
        match self {
            Self::SecondParent { .. }
            | Self::Cycle { .. }
            | Self::UnknownMember { .. }
            | Self::Tiers { .. }
            | Self::SharedNode { .. } => "spec.members",
            Self::TierName { .. } => "spec.tierName",
            Self::Field { problem, .. } => {
                problem.split_once(": ").map_or(&**problem, |(path, _)| path)
            }
        }
    }
}

/// The tree. The root is at place 0, and the others follow by name.
#[derive(Clone, Debug)]
pub struct HyperNodeTree {
    rows: Vec<HyperNode>,
    /// All HyperNodes and the root, by tier, then by place.
    by_tier: Vec<HyperNodeId>,
    /// Tiers by name. Of two tiers with one name, the higher one counts.
    tiers: BTreeMap<Arc<str>, i32>,
    /// By node: the HyperNode of the lowest tier that has it; of several the first by name. The
    /// root for nodes in no HyperNode.
    smallest: Vec<HyperNodeId>,
    problems: Vec<HyperNodeProblem>,
    lowest_tier: i32,
    /// True if the HyperNodes that contain a node are the smallest one and all above it. False if a node is in
    /// HyperNodes of which neither contains the other, or if a member is not of a lower tier than its parent.
    is_nested: bool,
}

impl Default for HyperNodeTree {
    /// Returns the tree without nodes and HyperNodes.
    fn default() -> Self {
        Self::of(std::iter::empty(), &[])
    }
}

impl HyperNodeTree {
    /// The root, which contains every node.
    pub const ROOT: HyperNodeId = HyperNodeId(0);

    /// Builds the tree over these nodes, given in name order.
    pub(crate) fn of<'a>(
        records: impl Iterator<Item = &'a HyperNodeRecord>,
        nodes: &[SelectableNode<'_>],
    ) -> Self {
        let records: Vec<&HyperNodeRecord> = records.collect();
        let mut tree = Self::rows_of(&records);
        tree.rows[0].nodes = nodes.iter().map(|node| node.id).collect();
        tree.link(&records);
        tree.note_fields(&records);
        tree.fill(&records, nodes);
        tree.find_smallest();
        tree.find_shared(nodes);
        tree
    }

    fn rows_of(records: &[&HyperNodeRecord]) -> Self {
        let highest = records.iter().map(|record| record.tier).max();
        let tier = highest.map_or(1, |highest| highest.saturating_add(1).max(1));
        let mut rows = vec![HyperNode { name: ROOT.into(), tier, ..HyperNode::default() }];
        let mut tiers: BTreeMap<Arc<str>, i32> = BTreeMap::new();
        for record in records {
            let (name, tier) = (record.name.clone(), record.tier);
            rows.push(HyperNode { name, tier, ..HyperNode::default() });
            if !record.tier_name.is_empty() {
                let known = tiers.entry(record.tier_name.clone()).or_insert(tier);
                *known = tier.max(*known);
            }
        }
        let lowest_tier = rows.iter().map(|row| row.tier).min().unwrap_or(1);
        let mut by_tier: Vec<HyperNodeId> = (0..rows.len()).map(HyperNodeId::new).collect();
        by_tier.sort_by_key(|&id| (rows[id.index()].tier, id));
        let (smallest, problems) = (Vec::new(), Vec::new());
        Self { rows, by_tier, tiers, smallest, problems, lowest_tier, is_nested: true }
    }

    /// Links parents and members. The HyperNode that was created first gets a member that two name,
    /// and an older link is kept where a younger one would close a cycle.
    fn link(&mut self, records: &[&HyperNodeRecord]) {
        let by_name: BTreeMap<&str, usize> =
            records.iter().enumerate().map(|(place, record)| (&*record.name, place + 1)).collect();
        let mut order: Vec<usize> = (0..records.len()).collect();
        order.sort_by_key(|&place| (records[place].created_micros, &records[place].name));
        for place in order {
            let record = records[place];
            let parent = HyperNodeId::new(place + 1);
            let named: BTreeSet<&Arc<str>> = record
                .members
                .iter()
                .filter_map(|member| match member {
                    HyperNodeMember::HyperNode(name) => Some(name),
                    _ => None,
                })
                .collect();
            for member in named {
                let child = by_name.get(&**member).map(|&row| HyperNodeId::new(row));
                if let Some(problem) = self.add_member(parent, child, member) {
                    self.problems.push(problem);
                }
            }
        }
        for place in 1..self.rows.len() {
            if self.rows[place].parent.is_none() {
                self.rows[place].parent = Some(Self::ROOT);
                self.rows[0].children.push(HyperNodeId::new(place));
            }
        }
        for row in &mut self.rows {
            row.children.sort_unstable();
        }
        for id in self.below(Self::ROOT) {
            if let Some(parent) = self.rows[id.index()].parent {
                self.rows[id.index()].depth = self.rows[parent.index()].depth + 1;
            }
        }
    }

    /// Notes what is wrong with fields, and tiers whose name a higher tier has, too.
    fn note_fields(&mut self, records: &[&HyperNodeRecord]) {
        let mut first_of_tiers: BTreeMap<(&Arc<str>, i32), &Arc<str>> = BTreeMap::new();
        for record in records {
            let name = &record.name;
            let problems = record.field_problems.iter().cloned();
            let field = |problem| HyperNodeProblem::Field { name: name.clone(), problem };
            self.problems.extend(problems.map(field));
            if !record.tier_name.is_empty() {
                first_of_tiers.entry((&record.tier_name, record.tier)).or_insert(name);
            }
        }
        for (&(tier_name, tier), &name) in &first_of_tiers {
            let higher = self.tiers.get(tier_name).copied().unwrap_or(tier);
            if tier < higher {
                let other = first_of_tiers[&(tier_name, higher)].clone();
                let (name, tier_name) = (name.clone(), tier_name.clone());
                self.problems.push(HyperNodeProblem::TierName {
                    name,
                    tier,
                    tier_name,
                    other,
                    higher,
                });
            }
        }
    }

    /// Adds a member. Returns what is wrong with it, if something is.
    fn add_member(
        &mut self,
        parent: HyperNodeId,
        child: Option<HyperNodeId>,
        member: &Arc<str>,
    ) -> Option<HyperNodeProblem> {
        let (name, member) = (self[parent].name.clone(), member.clone());
        let Some(child) = child else {
            return Some(HyperNodeProblem::UnknownMember { name, member });
        };
        if self.ancestors(parent).any(|above| above == child) {
            return Some(HyperNodeProblem::Cycle { name, member });
        }
        if let Some(other) = self[child].parent {
            let parent = self[other].name.clone();
            return Some(HyperNodeProblem::SecondParent { name, member, parent });
        }
        self.rows[child.index()].parent = Some(parent);
        self.rows[parent.index()].children.push(child);
        let (tier, member_tier) = (self[parent].tier, self[child].tier);
        self.is_nested &= member_tier < tier;
        (tier <= member_tier).then_some(HyperNodeProblem::Tiers { name, tier, member, member_tier })
    }

    /// Collects the nodes of each HyperNode, those of members before those of their parents.
    fn fill(&mut self, records: &[&HyperNodeRecord], nodes: &[SelectableNode<'_>]) {
        if records.is_empty() {
            return;
        }
        let by_name: FxHashMap<&str, usize> =
            nodes.iter().enumerate().map(|(place, node)| (&**node.name, place)).collect();
        let mut places: Vec<Vec<usize>> = vec![Vec::new(); self.rows.len()];
        for id in self.below(Self::ROOT).into_iter().rev().filter(|&id| id != Self::ROOT) {
            let mut own: Vec<usize> = Vec::new();
            for member in &records[id.index() - 1].members {
                match member {
                    HyperNodeMember::HyperNode(_) => {}
                    HyperNodeMember::Node(name) => own.extend(by_name.get(&**name)),
                    HyperNodeMember::Pattern(pattern) => own.extend(
                        (0..nodes.len()).filter(|&place| pattern.matches(nodes[place].name)),
                    ),
                    HyperNodeMember::Labels(labels) => own.extend(
                        (0..nodes.len()).filter(|&place| labels.matches(nodes[place].labels)),
                    ),
                }
            }
            let children = self[id].children.clone();
            children.iter().for_each(|child| own.extend(&places[child.index()]));
            own.sort();
            own.dedup();
            let row = &mut self.rows[id.index()];
            row.nodes = own.iter().map(|&place| nodes[place].id).collect();
            row.by_id = row.nodes.to_vec();
            row.by_id.sort_unstable();
            places[id.index()] = own;
        }
    }

    fn find_smallest(&mut self) {
        let n_nodes = self.rows[0].nodes.iter().map(|node| node.index() + 1).max();
        self.smallest = vec![Self::ROOT; n_nodes.unwrap_or(0)];
        for &id in self.by_tier.iter().filter(|&&id| id != Self::ROOT) {
            for &node in self.rows[id.index()].nodes.iter() {
                let smallest = &mut self.smallest[node.index()];
                if *smallest == Self::ROOT {
                    *smallest = id;
                }
            }
        }
    }

    /// Notes HyperNodes that share a node although neither contains the other, once for each pair.
    fn find_shared(&mut self, nodes: &[SelectableNode<'_>]) {
        let mut known = BTreeSet::new();
        for id in (1..self.rows.len()).map(HyperNodeId::new) {
            for &node in self.rows[id.index()].nodes.iter() {
                let other = self.smallest(node);
                let contains = self.ancestors(other).any(|above| above == id)
                    || self.ancestors(id).any(|above| above == other);
                if contains || !known.insert((id, other)) {
                    continue;
                }
                self.is_nested = false;
                let named = nodes.iter().find(|it| it.id == node).map(|it| it.name.clone());
                self.problems.push(HyperNodeProblem::SharedNode {
                    name: self[id].name.clone(),
                    other: self[other].name.clone(),
                    node: named.unwrap_or_default(),
                });
            }
        }
    }

    /// Returns the problems of the HyperNodes.
    pub fn problems(&self) -> &[HyperNodeProblem] {
        &self.problems
    }

    /// Returns the number of the tier with this name.
    pub fn tier(&self, name: &str) -> Option<i32> {
        self.tiers.get(name).copied()
    }

    /// The lowest tier and the highest one, which is that of the root.
    pub fn tiers(&self) -> (i32, i32) {
        (self.lowest_tier, self[Self::ROOT].tier)
    }

    /// True if it has no HyperNode but the root.
    pub fn is_empty(&self) -> bool {
        self.rows.len() <= 1
    }

    /// Number of HyperNodes, the root among them. Indices of HyperNodes are smaller.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The tiers that HyperNodes or the root have, the lowest one first.
    pub fn existing_tiers(&self) -> Vec<i32> {
        let mut tiers: Vec<i32> = self.by_tier.iter().map(|&id| self[id].tier).collect();
        tiers.dedup();
        tiers
    }

    /// All HyperNodes but the root, by name.
    pub fn real(&self) -> impl Iterator<Item = HyperNodeId> + use<> {
        (1..self.rows.len()).map(HyperNodeId::new)
    }

    /// The HyperNode, its parent and so on up to the root.
    pub fn ancestors(&self, id: HyperNodeId) -> impl Iterator<Item = HyperNodeId> + '_ {
        std::iter::successors(Some(id), |&id| self[id].parent)
    }

    /// The HyperNode and all below it, parents before their members.
    pub fn below(&self, id: HyperNodeId) -> Vec<HyperNodeId> {
        let mut found = Vec::new();
        self.add_below(id, &mut found);
        found
    }

    /// Appends the HyperNode and all below it, parents before their members.
    pub fn add_below(&self, id: HyperNodeId, found: &mut Vec<HyperNodeId>) {
        let mut at = found.len();
        found.push(id);
        while let Some(&next) = found.get(at) {
            found.extend_from_slice(&self[next].children);
            at += 1;
        }
    }

    /// Returns the HyperNode and all below it whose tier is at most `limit`, the lowest tier first,
    /// then by name.
    pub fn below_by_tier(&self, id: HyperNodeId, limit: i32) -> Cow<'_, [HyperNodeId]> {
        if id == Self::ROOT {
            let n_allowed = self.by_tier.partition_point(|&id| self[id].tier <= limit);
            return Cow::Borrowed(&self.by_tier[..n_allowed]);
        }
        let mut found = self.below(id);
        found.retain(|&id| self[id].tier <= limit);
        found.sort_unstable_by_key(|&id| (self[id].tier, id));
        Cow::Owned(found)
    }

    /// The nearest common ancestor. A HyperNode is its own ancestor.
    pub fn lca(&self, mut l: HyperNodeId, mut r: HyperNodeId) -> HyperNodeId {
        while l != r {
            let up = |id: HyperNodeId| self[id].parent.unwrap_or(Self::ROOT);
            match self[l].depth < self[r].depth {
                true => r = up(r),
                false => l = up(l),
            }
        }
        l
    }

    /// True if the node is in the HyperNode.
    pub fn contains(&self, id: HyperNodeId, node: NodeId) -> bool {
        id == Self::ROOT || self[id].by_id.binary_search(&node).is_ok()
    }

    /// The smallest HyperNode that contains the node, else the root.
    pub fn smallest(&self, node: NodeId) -> HyperNodeId {
        self.smallest.get(node.index()).copied().unwrap_or(Self::ROOT)
    }

    /// True if the HyperNodes that contain a node are the smallest one and all above it.
    pub fn is_nested(&self) -> bool {
        self.is_nested
    }

    /// All HyperNodes that contain the node, the root among them.
    pub fn containing(&self, node: NodeId) -> Vec<HyperNodeId> {
        if self.is_nested {
            return self.ancestors(self.smallest(node)).collect();
        }
        let mut all: Vec<HyperNodeId> = self.real().filter(|&id| self.contains(id, node)).collect();
        all.push(Self::ROOT);
        all
    }

    /// The smallest HyperNode that contains all these nodes. `None` if there are none.
    pub fn around(&self, nodes: impl Iterator<Item = NodeId> + Clone) -> Option<HyperNodeId> {
        let smallest = nodes.clone().map(|node| self.smallest(node));
        let around = smallest.reduce(|l, r| self.lca(l, r))?;
        if self.is_nested {
            return Some(around);
        }
        // A node may be in HyperNodes of different branches, so all are looked at.
        let has_all = |&id: &HyperNodeId| nodes.clone().all(|node| self.contains(id, node));
        let smallest = self.real().filter(has_all).min_by_key(|&id| (self[id].tier, id));
        Some(smallest.unwrap_or(around))
    }
}

impl HyperNodeId {
    fn new(place: usize) -> Self {
        Self(u32::try_from(place).expect("fewer than 2^32 HyperNodes"))
    }

    /// The place among the HyperNodes of the tree. The root has the first one.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::ops::Index<HyperNodeId> for HyperNodeTree {
    type Output = HyperNode;
    fn index(&self, id: HyperNodeId) -> &HyperNode {
        &self.rows[id.index()]
    }
}
