//! The samples of a soak as a table for people, and as CSV.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::sample::SoakSample;
use super::verdict::Verdict;

/// Rows of the table: tenths of the time.
const ROWS: usize = 10;

/// Returns a table with a row for each tenth of the time, and the verdict.
pub fn table(samples: &[SoakSample], found: &Verdict) -> String {
    let mut out = format!(
        "{:>7} {:>10} {:>8} {:>8} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
        "HOUR",
        "LIVED",
        "EVICTED",
        "WAITING",
        "MEMORY",
        "ALLOCATED",
        "VALUES",
        "CYCLES",
        "MEDIAN",
        "P99",
        "WAIT",
        "WAIT-P99"
    );
    let rows = (1..=ROWS).filter_map(|row| samples.get((row * samples.len() / ROWS).max(1) - 1));
    for it in rows {
        let (cycles, waits) = (&it.cycles, &it.waits);
        // Writing into a string cannot fail.
        let _ = writeln!(
            out,
            "{:>7.2} {:>10} {:>8} {:>8} {:>6} MiB {:>5} MiB {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
            it.hour,
            it.n_lived,
            it.n_evicted,
            it.n_waiting,
            it.resident_kib / 1_024,
            it.allocated_kib / 1_024,
            it.n_values(),
            cycles.count,
            duration(cycles.median_micros),
            duration(cycles.p99_micros),
            duration(waits.median_micros),
            duration(waits.p99_micros),
        );
    }
    out + &verdict(found)
}

fn verdict(verdict: &Verdict) -> String {
    let Verdict { memory_percent, allocated_percent, memory_limit, n_tables, growths } = verdict;
    let mut out = format!(
        "after the first tenth: memory {memory_percent:+.2} % (limit {memory_limit} %), \
         allocated {allocated_percent:+.2} %; {n_tables} tables: {}\n",
        if growths.is_empty() { "nothing grows" } else { "this grows" }
    );
    for growth in growths {
        let _ = writeln!(out, "  {}: {:.0} -> {:.0}", growth.name, growth.before, growth.after);
    }
    out
}

fn duration(micros: u64) -> String {
    match micros {
        0..10_000 => format!("{micros} us"),
        10_000..10_000_000 => format!("{} ms", micros / 1_000),
        _ => format!("{} s", micros / 1_000_000),
    }
}

/// Returns all samples as CSV with a header: a column for each measure and each table.
pub fn csv(samples: &[SoakSample]) -> String {
    let tables: BTreeSet<&String> = samples.iter().flat_map(|it| it.tables.keys()).collect();
    let mut out = "hour,pods_lived,pods_evicted,pods_waiting,resident_kib,allocated_kib,cycles,\
                   cycle_median_us,cycle_p99_us,pods_bound,wait_median_us,wait_p99_us"
        .to_owned();
    for name in &tables {
        let _ = write!(out, ",{name}");
    }
    out.push('\n');
    for it in samples {
        let (cycles, waits) = (&it.cycles, &it.waits);
        let _ = write!(
            out,
            "{:.4},{},{},{},{},{},{},{},{},{},{},{}",
            it.hour,
            it.n_lived,
            it.n_evicted,
            it.n_waiting,
            it.resident_kib,
            it.allocated_kib,
            cycles.count,
            cycles.median_micros,
            cycles.p99_micros,
            waits.count,
            waits.median_micros,
            waits.p99_micros
        );
        for name in &tables {
            let _ = write!(out, ",{}", it.tables.get(*name).copied().unwrap_or_default());
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn sample(number: u32) -> SoakSample {
        SoakSample {
            hour: f64::from(number),
            resident_kib: 10_240 + 100 * u64::from(number),
            tables: BTreeMap::from([("rows.pods".to_owned(), 7)]),
            ..SoakSample::default()
        }
    }

    #[test]
    fn the_table_has_a_row_for_each_tenth_and_names_what_grows() {
        let samples: Vec<SoakSample> = (1..=40).map(sample).collect();
        let text = table(&samples, &Verdict::of(&samples, 1.0));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 10 + 2, "{text}");
        assert!(lines[1].starts_with("   4.00 ") && lines[10].starts_with("  40.00 "), "{text}");
        assert_eq!(
            lines[11],
            "after the first tenth: memory +29.25 % (limit 1 %), allocated +0.00 %; 1 tables: this grows"
        );
        assert_eq!(lines[12], "  resident memory: 10940 -> 14140");
    }

    #[test]
    fn each_table_is_a_column() {
        let text = csv(&[sample(1)]);
        let [head, row] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
        assert!(head.starts_with("hour,pods_lived,") && head.ends_with(",rows.pods"), "{head}");
        assert_eq!(row, "1.0000,0,0,0,10340,0,0,0,0,0,0,0,7");
        assert_eq!(head.split(',').count(), row.split(',').count());
    }
}
