//! Topology keys in use, and the value of each node for them.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::copy_on_write::copy_on_write_members;
use crate::ids::{Id, KeyId, NodeId, Table, ValueId};
use crate::node::Node;
use crate::selector::Labels;

/// The topology keys in use, by name and by id.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct TopologyKeys {
    pub(super) rows: Table<KeyId, TopologyKey>,
    by_name: FxHashMap<Arc<str>, KeyId>,
}

// Pods name few keys.
copy_on_write_members! { TopologyKeys: shared rows; copied by_name; }

/// A node label that is used as topology key.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct TopologyKey {
    name: Arc<str>,
    /// Number of terms, inclusions and spreads that use the key.
    pub(super) n_users: u32,
    by_text: FxHashMap<Arc<str>, ValueId>,
    /// Text of each value, and the number of nodes with this value. A value with 0 nodes is free.
    values: Vec<(Arc<str>, u32)>,
    free: Vec<ValueId>,
    of_node: Vec<Option<ValueId>>,
}

/// The domain of each node by one topology key.
#[derive(Clone, Copy)]
pub struct NodeDomains<'a> {
    of_node: &'a [Option<ValueId>],
    n_values: usize,
}

impl NodeDomains<'_> {
    /// Returns the domain of the node. Returns `None` if the node lacks the key.
    pub fn of(&self, node: NodeId) -> Option<ValueId> {
        self.of_node.get(node.index()).copied().flatten()
    }

    /// Returns one number for each value, indexed by [`ValueId`]. Values that are not listed get
    /// `other`.
    pub fn table<T: Copy>(&self, other: T, listed: impl Iterator<Item = (ValueId, T)>) -> Vec<T> {
        let mut table = vec![other; self.n_values];
        listed.for_each(|(value, number)| table[value.index()] = number);
        table
    }
}

impl TopologyKeys {
    pub(super) fn values(&self, key: KeyId) -> NodeDomains<'_> {
        let TopologyKey { of_node, values, .. } = &self.rows[key];
        NodeDomains { of_node, n_values: values.len() }
    }

    /// Returns the key with this name, and counts one more user.
    pub(super) fn acquire(&mut self, name: &Arc<str>, nodes: &Table<NodeId, Node>) -> KeyId {
        if let Some(&id) = self.by_name.get(name) {
            self.rows[id].n_users += 1;
            return id;
        }
        let mut key = TopologyKey { name: name.clone(), n_users: 1, ..TopologyKey::default() };
        nodes.iter().for_each(|(id, node)| key.set_node(id, &node.labels));
        let id = self.rows.insert(key);
        self.by_name.insert(name.clone(), id);
        id
    }

    /// Counts one user less. A key without users is removed.
    pub(super) fn release(&mut self, id: KeyId) {
        self.rows[id].n_users -= 1;
        if self.rows[id].n_users == 0
            && let Some(key) = self.rows.remove(id)
        {
            self.by_name.remove(&key.name);
        }
    }

    pub(super) fn value(&self, key: KeyId, node: NodeId) -> Option<ValueId> {
        self.rows[key].value(node)
    }

    /// Updates the labels of a node. No pod may be counted on the node at that time.
    pub(super) fn set_node(&mut self, node: NodeId, labels: &Labels) {
        let ids: Vec<KeyId> = self.rows.ids().collect();
        ids.into_iter().for_each(|id| self.rows[id].set_node(node, labels));
    }
}

impl TopologyKey {
    fn value(&self, node: NodeId) -> Option<ValueId> {
        self.of_node.get(node.index()).copied().flatten()
    }

    fn set_node(&mut self, node: NodeId, labels: &Labels) {
        let text = labels.get(&self.name);
        let new = text.map(|text| self.acquire_value(text));
        if self.of_node.len() <= node.index() {
            self.of_node.resize(node.index() + 1, None);
        }
        let old = std::mem::replace(&mut self.of_node[node.index()], new);
        if let Some(old) = old {
            self.release_value(old);
        }
    }

    fn acquire_value(&mut self, text: &Arc<str>) -> ValueId {
        if let Some(&value) = self.by_text.get(text) {
            self.values[value.index()].1 += 1;
            return value;
        }
        let value = self.free.pop().unwrap_or_else(|| {
            self.values.push((Arc::default(), 0));
            ValueId::new(self.values.len() as u32 - 1)
        });
        self.values[value.index()] = (text.clone(), 1);
        self.by_text.insert(text.clone(), value);
        value
    }

    fn release_value(&mut self, value: ValueId) {
        let (text, n_nodes) = &mut self.values[value.index()];
        *n_nodes -= 1;
        if *n_nodes == 0 {
            self.by_text.remove(text);
            self.free.push(value);
        }
    }

    pub(super) fn is_on(&self, node: &Node) -> bool {
        node.labels.contains_key(&self.name)
    }

    /// Returns the number of nodes that have the key, for checks.
    pub(super) fn n_nodes(&self) -> u32 {
        self.values.iter().map(|(_, n_nodes)| n_nodes).sum()
    }

    /// True if the value of the node is the one that [`TopologyKeys::set_node`] should have set.
    pub(super) fn is_right(&self, id: NodeId, node: &Node) -> bool {
        let text = node.labels.get(&self.name);
        self.value(id) == text.and_then(|text| self.by_text.get(text).copied())
    }
}
