//! The nodes that count for a spread constraint. They have all topology keys of the pod. As far as
//! the policies demand it, the pod could also run there. Specification: plugins-nodes.md 4.8.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::copy_on_write::{CopyOnWrite, copy_on_write_members};
use crate::domains::keys::TopologyKeys;
use crate::ids::{Id, InclusionId, KeyId, NodeId, Table, ValueId};
use crate::node::Node;
use crate::node_selector::required_matches;
use crate::pod_affinity::{InclusionPolicy, SpreadConstraint};
use crate::selector::{Labels, NodeSelectorTerm, Taint, TaintEffect, Toleration};
use crate::toleration::any_tolerates;

/// The conditions under which a node counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct InclusionRule {
    /// Topology keys, sorted and without duplicates; the node must have all of them.
    keys: Vec<Arc<str>>,
    /// Node selector and required node affinity. `None` if they are ignored.
    nodes: Option<NodeMatch>,
    /// Tolerations of the pod. `None` if taints are ignored.
    tolerations: Option<Vec<Toleration>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct NodeMatch {
    selector: Option<Labels>,
    terms: Option<Vec<NodeSelectorTerm>>,
}

impl InclusionRule {
    /// Returns the rule of a constraint. `keys` are the topology keys of the pod's constraints.
    pub(super) fn new(class: &Class, constraint: &SpreadConstraint, keys: &[Arc<str>]) -> Self {
        let nodes = NodeMatch {
            selector: class.node_selector.clone(),
            terms: class.node_affinity.required.clone(),
        };
        let honors = |policy| policy == InclusionPolicy::Honor;
        let matters = honors(constraint.node_affinity) && nodes != NodeMatch::default();
        Self {
            keys: keys.to_vec(),
            nodes: matters.then_some(nodes),
            tolerations: honors(constraint.node_taints).then(|| class.tolerations.clone()),
        }
    }

    /// True if the node counts.
    fn admits(&self, node: &Node) -> bool {
        let tolerates = |tolerations: &Vec<Toleration>| {
            let hard = node.taints.iter().filter(|taint| is_hard(taint));
            let mut hard = hard.map(|taint| (&*taint.key, &*taint.value, taint.effect));
            hard.all(|taint| any_tolerates(tolerations, taint))
        };
        let matches = |nodes: &NodeMatch| {
            required_matches(nodes.selector.as_ref(), nodes.terms.as_deref(), node)
        };
        node.present
            && self.keys.iter().all(|key| node.labels.contains_key(key))
            && self.nodes.as_ref().is_none_or(matches)
            && self.tolerations.as_ref().is_none_or(tolerates)
    }
}

fn is_hard(taint: &Taint) -> bool {
    matches!(taint.effect, TaintEffect::NoSchedule | TaintEffect::NoExecute)
}

/// The inclusions in use, by rule.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Inclusions {
    pub(super) rows: Table<InclusionId, Inclusion>,
    by_rule: CopyOnWrite<FxHashMap<InclusionRule, InclusionId>>,
}

copy_on_write_members! { Inclusions: shared by_rule, rows; }

/// The nodes that a rule admits, and their domains.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Inclusion {
    pub(super) rule: InclusionRule,
    pub(super) n_users: u32,
    pub(super) nodes: Vec<bool>,
    /// For each key of the rule, the number of included nodes per value.
    pub(super) domains: Vec<(KeyId, FxHashMap<ValueId, u32>)>,
}

impl Inclusions {
    /// Returns the inclusion of this rule, and counts one more user.
    pub(super) fn acquire(
        &mut self,
        rule: InclusionRule,
        keys: &mut TopologyKeys,
        nodes: &Table<NodeId, Node>,
    ) -> InclusionId {
        if let Some(&id) = self.by_rule.get().get(&rule) {
            self.rows[id].n_users += 1;
            return id;
        }
        let of_key = |name| (keys.acquire(name, nodes), FxHashMap::default());
        let domains = rule.keys.iter().map(of_key).collect();
        let mut row = Inclusion { rule: rule.clone(), n_users: 1, nodes: Vec::new(), domains };
        nodes.iter().for_each(|(id, node)| row.enter(id, node, keys));
        let id = self.rows.insert(row);
        self.by_rule.get_mut().insert(rule, id);
        id
    }

    /// Counts one user less. An inclusion without users is removed.
    pub(super) fn release(&mut self, id: InclusionId, keys: &mut TopologyKeys) {
        self.rows[id].n_users -= 1;
        if self.rows[id].n_users == 0
            && let Some(row) = self.rows.remove(id)
        {
            self.by_rule.get_mut().remove(&row.rule);
            row.domains.iter().for_each(|(key, _)| keys.release(*key));
        }
    }

    /// Removes the node from all inclusions, before its labels change.
    pub(super) fn leave(&mut self, node: NodeId, keys: &TopologyKeys) {
        let ids: Vec<InclusionId> = self.rows.ids().collect();
        ids.into_iter().for_each(|id| self.rows[id].leave(node, keys));
    }

    /// Applies all rules to the node again, after its labels have changed.
    pub(super) fn enter(&mut self, id: NodeId, node: &Node, keys: &TopologyKeys) {
        let ids: Vec<InclusionId> = self.rows.ids().collect();
        ids.into_iter().for_each(|inclusion| self.rows[inclusion].enter(id, node, keys));
    }
}

impl Inclusion {
    pub(super) fn includes(&self, node: NodeId) -> bool {
        self.nodes.get(node.index()).copied().unwrap_or(false)
    }

    /// Returns the number of domains of a key of the rule, or 0 for other keys.
    pub(super) fn n_domains(&self, key: KeyId) -> usize {
        let of_key = self.domains.iter().find(|(own, _)| *own == key);
        of_key.map_or(0, |(_, domains)| domains.len())
    }

    fn enter(&mut self, id: NodeId, node: &Node, keys: &TopologyKeys) {
        if !self.rule.admits(node) {
            return;
        }
        if self.nodes.len() <= id.index() {
            self.nodes.resize(id.index() + 1, false);
        }
        self.nodes[id.index()] = true;
        for (key, domains) in &mut self.domains {
            if let Some(value) = keys.value(*key, id) {
                *domains.entry(value).or_default() += 1;
            }
        }
    }

    fn leave(&mut self, id: NodeId, keys: &TopologyKeys) {
        if !self.includes(id) {
            return;
        }
        self.nodes[id.index()] = false;
        for (key, domains) in &mut self.domains {
            let Some(value) = keys.value(*key, id) else { continue };
            if let Some(n_nodes) = domains.get_mut(&value) {
                *n_nodes -= 1;
                if *n_nodes == 0 {
                    domains.remove(&value);
                }
            }
        }
    }

    /// Returns the inclusion of the same rule, computed from all nodes, for checks.
    pub(super) fn afresh(&self, keys: &TopologyKeys, nodes: &Table<NodeId, Node>) -> Self {
        let domains = self.domains.iter().map(|(key, _)| (*key, FxHashMap::default())).collect();
        let mut row = Self { nodes: Vec::new(), domains, ..self.clone() };
        nodes.iter().for_each(|(id, node)| row.enter(id, node, keys));
        row
    }
}
