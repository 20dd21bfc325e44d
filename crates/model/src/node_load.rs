//! What monitoring says a node uses. Specification: plugins-nodes.md 12.2.

use serde::{Deserialize, Serialize};

/// Average use of cpu and memory on a node over ten minutes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeLoad {
    cpu_percent: f64,
    memory_percent: f64,
    /// When the source measured it, in microseconds since 1970.
    pub read_micros: i64,
    /// Time between two readings. What a pod uses that started within this time before a session
    /// may not be part of the averages (plugins-nodes.md 12.4: blind window).
    pub interval_micros: i64,
}

/// Time between two readings where the configuration does not set it.
pub const LOAD_INTERVAL_MICROS: i64 = 30_000_000;

impl NodeLoad {
    /// Returns a load of a node. Returns `None` if a percentage is negative or no finite number.
    pub fn new(
        cpu_percent: f64,
        memory_percent: f64,
        read_micros: i64,
        interval_micros: i64,
    ) -> Option<Self> {
        let is_percentage = |value: f64| value.is_finite() && 0.0 <= value;
        let are_percentages = is_percentage(cpu_percent) && is_percentage(memory_percent);
        let load = Self { cpu_percent, memory_percent, read_micros, interval_micros };
        are_percentages.then_some(load)
    }

    /// Returns the use of cpu in percent of the capacity of the node. It is finite and not negative.
    pub fn cpu_percent(&self) -> f64 {
        self.cpu_percent
    }

    /// Returns the use of memory in percent of the capacity of the node. It is finite and not
    /// negative.
    pub fn memory_percent(&self) -> f64 {
        self.memory_percent
    }
}
