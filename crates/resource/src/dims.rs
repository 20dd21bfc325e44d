//! The mapping of resource names to dense positions in a vector (core.md 3.1). Reports list cpu,
//! memory, then every other name (`pods` included) by name.

use serde::{Deserialize, Serialize};

/// Maximum number of different names. The length of a vector is the position of its last dimension
/// plus one.
pub(crate) const MAX_DIMS: usize = 1024;

/// Position of a resource name in every vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Dim(u16);

impl Dim {
    /// Millicores.
    pub const CPU: Dim = Dim(0);
    /// Bytes.
    pub const MEMORY: Dim = Dim(1);
    /// Whole pod slots.
    pub const PODS: Dim = Dim(2);

    /// Returns the position as an index.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Returns the dimension at a valid position.
    #[inline]
    pub(crate) fn at(position: usize) -> Self {
        debug_assert!(position < MAX_DIMS);
        Dim(position as u16)
    }
}

/// The interner of resource names. Names are never removed, because all vectors are by position,
/// including those that plugins keep across sessions. After 1,024 names a process ignores new ones
/// until it is restarted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Dims {
    names: Vec<String>,
    /// Every dimension in report order, updated by `intern`.
    order: Vec<Dim>,
}

impl Default for Dims {
    fn default() -> Self {
        Self::new()
    }
}

impl Dims {
    /// Returns an interner that knows `cpu`, `memory` and `pods`.
    pub fn new() -> Self {
        Dims {
            names: ["cpu", "memory", "pods"].map(String::from).to_vec(),
            order: vec![Dim::CPU, Dim::MEMORY, Dim::PODS],
        }
    }

    /// Returns the dimension of `name`, which is created if it is new. Returns `None` if 1,024
    /// other names exist.
    pub fn intern(&mut self, name: &str) -> Option<Dim> {
        let at = match self.position(name) {
            Ok(dim) => return Some(dim),
            Err(at) => at,
        };
        if self.names.len() == MAX_DIMS {
            return None;
        }
        let dim = Dim::at(self.names.len());
        self.names.push(name.to_owned());
        self.order.insert(at, dim);
        Some(dim)
    }

    /// Returns the dimension of `name`. Returns `None` if the name was not interned.
    pub fn get(&self, name: &str) -> Option<Dim> {
        self.position(name).ok()
    }

    /// Returns the name of a dimension of this interner.
    pub fn name(&self, dim: Dim) -> &str {
        &self.names[dim.index()]
    }

    /// Returns the number of names, at least three.
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns every dimension: cpu, memory, then the others by name.
    pub fn in_report_order(&self) -> &[Dim] {
        &self.order
    }

    /// Returns the dimension of `name`, or its position in the report order as `Err`.
    fn position(&self, name: &str) -> Result<Dim, usize> {
        match name {
            "cpu" => return Ok(Dim::CPU),
            "memory" => return Ok(Dim::MEMORY),
            _ => {}
        }
        let others = &self.order[2..];
        match others.binary_search_by(|&dim| self.name(dim).cmp(name)) {
            Ok(at) => Ok(others[at]),
            Err(at) => Err(at + 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_three_are_fixed_and_report_order_is_by_name() {
        let mut dims = Dims::new();
        let gpu = dims.intern("nvidia.com/gpu").unwrap();
        let disk = dims.intern("ephemeral-storage").unwrap();
        assert_eq!(dims.intern("nvidia.com/gpu"), Some(gpu));
        assert_eq!(dims.get("cpu"), Some(Dim::CPU));
        assert_eq!(dims.get("memory"), Some(Dim::MEMORY));
        assert_eq!(dims.get("pods"), Some(Dim::PODS));
        assert_eq!(dims.get("a"), None);
        assert_eq!((dims.name(gpu), dims.len()), ("nvidia.com/gpu", 5));
        assert_eq!(dims.in_report_order(), [Dim::CPU, Dim::MEMORY, disk, gpu, Dim::PODS]);
    }

    #[test]
    fn one_name_too_many_is_refused() {
        let mut dims = Dims::new();
        for n in 3..MAX_DIMS {
            assert_eq!(dims.intern(&format!("x/{n}")).map(Dim::index), Some(n));
        }
        assert_eq!(dims.intern("x/1024"), None);
        assert_eq!(dims.intern("x/1023").map(Dim::index), Some(1023));
    }
}
