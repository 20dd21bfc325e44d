//! What is measured at one moment of a soak.

use std::collections::BTreeMap;

/// Median and 99th percentile of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Number of durations.
    pub count: usize,
    /// Median in microseconds.
    pub median_micros: u64,
    /// 99th percentile in microseconds.
    pub p99_micros: u64,
}

impl Latency {
    /// Returns those of these durations; 0 if there are none.
    pub fn of(mut micros: Vec<u64>) -> Self {
        micros.sort_unstable();
        let at = |part: usize| {
            let last = micros.len().saturating_sub(1);
            micros.get(last * part / 100).copied().unwrap_or_default()
        };
        Self { count: micros.len(), median_micros: at(50), p99_micros: at(99) }
    }
}

/// What is measured at one moment. Durations are those since the sample before.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoakSample {
    /// Simulated hours since the begin.
    pub hour: f64,
    /// Pods that have lived since the begin.
    pub n_lived: u64,
    /// Pods that were evicted since the begin.
    pub n_evicted: u64,
    /// Pods without a node.
    pub n_waiting: usize,
    /// Resident memory of the process in KiB.
    pub resident_kib: u64,
    /// Of that, what is allocated, in KiB.
    pub allocated_kib: u64,
    /// Cycles, by the clock of the machine.
    pub cycles: Latency,
    /// From creation to bind of pods, in simulated time.
    pub waits: Latency,
    /// Sizes of tables by name.
    pub tables: BTreeMap<String, usize>,
}

impl SoakSample {
    /// Returns the number of values in all tables, without those that are counted in bytes.
    pub fn n_values(&self) -> usize {
        let tables = self.tables.iter().filter(|(name, _)| !name.ends_with("_bytes"));
        tables.map(|(_, size)| size).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_is_that_of_the_middle_and_near_the_end() {
        let latency = Latency::of((0..=1_000).rev().collect());
        assert_eq!(latency, Latency { count: 1_001, median_micros: 500, p99_micros: 990 });
        assert_eq!(Latency::of(Vec::new()), Latency::default());
    }
}
