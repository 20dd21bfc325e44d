//! Pools of devices as a node sees them: the slices of the highest generation, and whether all of
//! them are there. Specification: plugins-nodes.md 6.5 (Pools).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_model::{Devices, Node, ResourceSlice, SliceNodes};

use vc_model::node_selector::term_matches;

/// All pools of the cluster, made once per change of the slices.
#[derive(Debug, Default)]
pub(super) struct Pools {
    /// By driver and name.
    pools: Vec<Pool>,
    /// Slices of single nodes: pool and slice.
    of_node: BTreeMap<Arc<str>, Vec<(usize, usize)>>,
    /// Slices that any node may have to look at.
    shared: Vec<(usize, usize)>,
    /// In some pool two devices have one name, whether or not a node sees both.
    any_doubled: bool,
}

#[derive(Debug)]
struct Pool {
    driver: Arc<str>,
    name: Arc<str>,
    n_expected: i64,
    /// Of the highest generation, by name.
    slices: Vec<Arc<ResourceSlice>>,
}

/// A pool as one node sees it.
#[derive(Debug)]
pub(super) struct NodePool<'a> {
    pub(super) driver: &'a Arc<str>,
    pub(super) name: &'a Arc<str>,
    pub(super) state: PoolState,
    /// Those that the node can use, by name.
    pub(super) slices: Vec<&'a Arc<ResourceSlice>>,
}

/// Whether the devices of a pool may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PoolState {
    Usable,
    /// A slice is missing: the pool is being updated.
    Incomplete,
    /// Two devices have one name.
    Invalid,
}

impl Pools {
    pub(super) fn new(devices: &Devices) -> Self {
        let mut by_name: BTreeMap<_, Vec<&Arc<ResourceSlice>>> = BTreeMap::new();
        for slice in devices.slices() {
            by_name.entry((&slice.driver, &slice.pool)).or_default().push(slice);
        }
        let mut all = Self::default();
        for ((driver, name), slices) in by_name {
            let newest = slices.iter().map(|slice| slice.generation).max();
            let slices = slices.into_iter().filter(|slice| Some(slice.generation) == newest);
            let slices: Vec<Arc<ResourceSlice>> = slices.cloned().collect();
            let n_expected = slices.first().map_or(0, |slice| slice.n_slices);
            all.index(&slices);
            all.any_doubled |= any_doubled(slices.iter());
            let (driver, name) = (driver.clone(), name.clone());
            all.pools.push(Pool { driver, name, n_expected, slices });
        }
        all
    }

    fn index(&mut self, slices: &[Arc<ResourceSlice>]) {
        let pool = self.pools.len();
        for (index, slice) in slices.iter().enumerate() {
            match &slice.nodes {
                SliceNodes::Named(node) => {
                    self.of_node.entry(node.clone()).or_default().push((pool, index));
                }
                SliceNodes::All | SliceNodes::Matching(_) => self.shared.push((pool, index)),
                SliceNodes::Unjudged => {}
            }
        }
    }

    /// Whether some pool may be invalid as a node sees it.
    pub(super) fn any_doubled(&self) -> bool {
        self.any_doubled
    }

    /// The pools that a node can use, by driver and name.
    pub(super) fn of(&self, node: &Node) -> Vec<NodePool<'_>> {
        let own = self.of_node.get(&node.name).into_iter().flatten();
        let usable = |&&(pool, slice): &&(usize, usize)| match &self.pools[pool].slices[slice].nodes
        {
            SliceNodes::Matching(terms) => terms.iter().any(|term| term_matches(term, node)),
            SliceNodes::All | SliceNodes::Named(_) => true,
            SliceNodes::Unjudged => false,
        };
        let slices = own.chain(self.shared.iter().filter(usable)).copied();
        let mut by_pool: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (pool, slice) in slices {
            by_pool.entry(pool).or_default().insert(slice);
        }
        by_pool.into_iter().map(|(pool, slices)| self.pools[pool].seen_with(&slices)).collect()
    }
}

impl Pool {
    fn seen_with(&self, slices: &BTreeSet<usize>) -> NodePool<'_> {
        let slices: Vec<_> = slices.iter().map(|&index| &self.slices[index]).collect();
        let is_all = |n_slices: usize| i64::try_from(n_slices) == Ok(self.n_expected);
        let state = if !is_all(slices.len()) && !is_all(self.slices.len()) {
            PoolState::Incomplete
        } else if any_doubled(slices.iter().copied()) {
            PoolState::Invalid
        } else {
            PoolState::Usable
        };
        NodePool { driver: &self.driver, name: &self.name, state, slices }
    }
}

/// Whether two devices of the slices have one name.
fn any_doubled<'a>(slices: impl Iterator<Item = &'a Arc<ResourceSlice>>) -> bool {
    let mut names = BTreeSet::new();
    let mut devices = slices.flat_map(|slice| &slice.devices);
    devices.any(|device| !names.insert(&device.name))
}
