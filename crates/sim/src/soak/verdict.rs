//! Whether anything has grown: the median of the second tenth of the samples against that of the last.

use std::collections::BTreeSet;

use super::sample::SoakSample;

/// What may grow by how much: a part of what was there before, and an amount beside it for what is small.
struct GrowthLimit {
    part: f64,
    amount: f64,
}

/// Of tables, in values. The load varies, so that a table varies with the pods that wait.
const TABLES: GrowthLimit = GrowthLimit { part: 0.10, amount: 1_000.0 };
/// Of caches in entries. What nobody uses any more stays until there is much of it; such a bound is reached
/// after some ten thousand pods.
const CACHES: GrowthLimit = GrowthLimit { part: 0.10, amount: 20_000.0 };
/// Of caches in bytes, for the same reason.
const CACHE_BYTES: GrowthLimit = GrowthLimit { part: 0.10, amount: 2_097_152.0 };
/// Of durations of cycles, in microseconds. The machine has other things to do.
const CYCLES: GrowthLimit = GrowthLimit { part: 0.5, amount: 500.0 };
/// Of waiting times, in microseconds of the simulation.
const WAITS: GrowthLimit = GrowthLimit { part: 0.25, amount: 500_000.0 };

/// Something that has grown beyond its limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    /// What has grown.
    pub name: String,
    /// Median of the second tenth.
    pub before: f64,
    /// Median of the last tenth.
    pub after: f64,
}

/// What the samples of a soak show.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Growth of the resident memory after the first tenth in percent. Negative: it has shrunk.
    pub memory_percent: f64,
    /// The same for what is allocated of it. It follows the number of pods.
    pub allocated_percent: f64,
    /// Growth of the resident memory from which on it is too much, in percent.
    pub memory_limit: f64,
    /// Number of tables that were compared.
    pub n_tables: usize,
    /// What has grown too much, memory first.
    pub growths: Vec<Growth>,
}

impl Verdict {
    /// Compares the second tenth of the samples with the last. There must be ten samples at least.
    /// `memory_limit`: growth of the resident memory from which on it is too much, in percent.
    pub fn of(samples: &[SoakSample], memory_limit: f64) -> Self {
        let tenth = (samples.len() / 10).max(1);
        let second = samples.get(tenth..2 * tenth).unwrap_or_default();
        let last = samples.get(samples.len().saturating_sub(tenth)..).unwrap_or_default();
        let compared = |name: &str, of: &dyn Fn(&SoakSample) -> f64| {
            let [before, after] = [second, last].map(|samples| median(samples.iter().map(of)));
            Growth { name: name.to_owned(), before, after }
        };
        let memory = compared("resident memory", &|it| it.resident_kib as f64);
        let allocated = compared("allocated memory", &|it| it.allocated_kib as f64);
        let [memory_percent, allocated_percent] = [&memory, &allocated].map(Growth::percent);
        let mut growths = Vec::new();
        growths.extend((memory_limit <= memory_percent).then_some(memory));
        let names: BTreeSet<&String> = last.iter().flat_map(|it| it.tables.keys()).collect();
        let n_tables = names.len();
        let size = |name: &String, it: &SoakSample| it.tables.get(name).map_or(0.0, |&n| n as f64);
        let tables = names.into_iter().map(|name| compared(name, &|it| size(name, it)));
        growths.extend(tables.filter(|growth| limit_of(&growth.name).is_exceeded(growth)));
        let cycles = compared("median cycle", &|it| it.cycles.median_micros as f64);
        growths.extend(Some(cycles).filter(|growth| CYCLES.is_exceeded(growth)));
        let waits = compared("median wait of pods", &|it| it.waits.median_micros as f64);
        growths.extend(Some(waits).filter(|growth| WAITS.is_exceeded(growth)));
        Self { memory_percent, allocated_percent, memory_limit, n_tables, growths }
    }

    /// True if nothing has grown too much.
    pub fn is_clean(&self) -> bool {
        self.growths.is_empty()
    }
}

impl Growth {
    /// Returns the growth in percent. 0 if there was nothing.
    fn percent(&self) -> f64 {
        if self.before == 0.0 { 0.0 } else { (self.after / self.before - 1.0) * 100.0 }
    }
}

impl GrowthLimit {
    fn is_exceeded(&self, growth: &Growth) -> bool {
        growth.before * (1.0 + self.part) + self.amount < growth.after
    }
}

fn limit_of(table: &str) -> GrowthLimit {
    match table {
        _ if !table.starts_with("cache.") => TABLES,
        _ if table.ends_with("_bytes") => CACHE_BYTES,
        _ => CACHES,
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::sample::Latency;
    use super::*;

    /// A hundred samples; `change` is told the number of each.
    fn samples(change: impl Fn(usize, &mut SoakSample)) -> Vec<SoakSample> {
        let sample = |number: usize| {
            let mut sample = SoakSample {
                // Some noise, and less in the first tenth.
                resident_kib: if number < 10 { 50_000 } else { 100_000 } + 7 * number as u64 % 50,
                cycles: Latency { count: 9, median_micros: 300, p99_micros: 900 },
                waits: Latency { count: 9, median_micros: 30_000, p99_micros: 90_000 },
                tables: BTreeMap::from([("cluster.tasks".to_owned(), 40_000 + number % 3)]),
                ..SoakSample::default()
            };
            change(number, &mut sample);
            sample
        };
        (0..100).map(sample).collect()
    }

    fn grown(change: impl Fn(usize, &mut SoakSample)) -> Vec<String> {
        Verdict::of(&samples(change), 1.0).growths.into_iter().map(|growth| growth.name).collect()
    }

    #[test]
    fn a_steady_life_is_clean_and_its_first_tenth_does_not_count() {
        let verdict = Verdict::of(&samples(|_, _| {}), 1.0);
        assert!(verdict.is_clean(), "{verdict:?}");
        assert!(verdict.memory_percent.abs() < 0.1, "{verdict:?}");
    }

    #[test]
    fn a_growing_column_is_named() {
        let more = |number: usize, of: u64| of + of * number as u64 / 100;
        assert_eq!(grown(|n, it| it.resident_kib += n as u64 * 13), ["resident memory"]);
        let table = |n: usize, it: &mut SoakSample| {
            it.tables.insert("cluster.tasks".to_owned(), 40_000 + n * 80);
            it.tables.insert("cache.full".to_owned(), n * 100);
            it.tables.insert("cache.new".to_owned(), n * 300);
        };
        assert_eq!(grown(table), ["cache.new", "cluster.tasks"]);
        assert_eq!(grown(|n, it| it.cycles.median_micros = more(n, 3_000)), ["median cycle"]);
        assert_eq!(
            grown(|n, it| it.waits.median_micros = more(n, 2_000_000)),
            ["median wait of pods"]
        );
    }
}
