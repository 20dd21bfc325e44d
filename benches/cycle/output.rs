//! Medians as a table or as one JSON object per line.

use std::io::{self, Write};

use vc_engine::Evaluator;

use crate::run::{Sample, name};

/// Medians over the fresh starts of one case, for one cycle.
pub(crate) struct Row {
    case: &'static str,
    evaluator: Evaluator,
    cycle: u32,
    n_starts: usize,
    medians: Sample,
}

impl Row {
    /// The row of these samples.
    pub(crate) fn medians(
        (case, evaluator): (&'static str, Evaluator),
        cycle: u32,
        samples: &[Sample],
    ) -> Self {
        Self { case, evaluator, cycle, n_starts: samples.len(), medians: medians(samples) }
    }

    /// Column heads and values, in the order of the columns.
    fn columns(&self) -> [(&'static str, String); 17] {
        let of = &self.medians;
        let millis = |nanos: u64| format!("{:.3}", nanos as f64 / 1e6);
        let per_second = of.n_decisions as f64 / (of.wall_nanos.max(1) as f64 / 1e9);
        [
            ("case", self.case.to_owned()),
            ("evaluator", name(self.evaluator).to_owned()),
            ("cycle", self.cycle.to_string()),
            ("cycles", self.n_starts.to_string()),
            ("nodes", of.n_nodes.to_string()),
            ("pending", of.n_pending.to_string()),
            ("running", of.n_running.to_string()),
            ("decisions", of.n_decisions.to_string()),
            ("wall_ms", millis(of.wall_nanos)),
            ("cpu_ms", millis(of.cpu_nanos)),
            ("evict_ms", millis(of.evict_nanos)),
            ("search_ms", millis(of.search_nanos)),
            ("placements_per_s", format!("{per_second:.1}")),
            ("faults", of.n_faults.to_string()),
            ("alloc_count", of.alloc_count.to_string()),
            ("alloc_bytes", of.alloc_bytes.to_string()),
            ("peak_rss_mib", format!("{:.1}", of.peak_rss_kib as f64 / 1024.0)),
        ]
    }

    /// Texts are names without characters that JSON escapes.
    fn json(&self) -> String {
        let member = |(index, (head, value)): (usize, (&str, String))| match index {
            0 | 1 => format!("\"{head}\":\"{value}\""),
            _ => format!("\"{head}\":{value}"),
        };
        let members: Vec<String> = self.columns().into_iter().enumerate().map(member).collect();
        format!("{{{}}}", members.join(","))
    }
}

/// Each figure is the median of its own.
pub(crate) fn medians(samples: &[Sample]) -> Sample {
    let median = |of: fn(&Sample) -> u64| {
        let mut figures: Vec<u64> = samples.iter().map(of).collect();
        figures.sort_unstable();
        figures[figures.len() / 2]
    };
    Sample {
        n_nodes: median(|sample| sample.n_nodes),
        n_pending: median(|sample| sample.n_pending),
        n_running: median(|sample| sample.n_running),
        n_decisions: median(|sample| sample.n_decisions),
        wall_nanos: median(|sample| sample.wall_nanos),
        cpu_nanos: median(|sample| sample.cpu_nanos),
        evict_nanos: median(|sample| sample.evict_nanos),
        search_nanos: median(|sample| sample.search_nanos),
        n_faults: median(|sample| sample.n_faults),
        alloc_count: median(|sample| sample.alloc_count),
        alloc_bytes: median(|sample| sample.alloc_bytes),
        peak_rss_kib: median(|sample| sample.peak_rss_kib),
    }
}

/// Writes rows as they come.
pub(crate) struct Output {
    json: bool,
    has_heads: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json, has_heads: false }
    }

    /// # Errors
    /// Standard output is closed.
    pub(crate) fn print(&mut self, row: &Row) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", row.json())?;
            return out.flush();
        }
        let columns = row.columns();
        if !self.has_heads {
            self.has_heads = true;
            writeln!(out, "{}", table_line(columns.each_ref().map(|(head, _)| (*head, *head))))?;
        }
        writeln!(out, "{}", table_line(columns.each_ref().map(|(head, value)| (*head, &**value))))?;
        out.flush()
    }
}

/// The case to the left, numbers to the right, as wide as the widest expected value.
fn table_line(columns: [(&str, &str); 17]) -> String {
    let cell = |(head, value): (&str, &str)| match head {
        "case" => format!("{value:<20}"),
        "alloc_bytes" | "wall_ms" | "cpu_ms" => format!("{value:>13}"),
        _ => format!("{value:>width$}", width = head.len().max(7)),
    };
    columns.map(cell).join(" ")
}
