//! The cases of the comparison with Volcano in docs/performance.md, measured and printed as that
//! table's column.

use std::collections::BTreeMap;

use anyhow::Context;
use vc_engine::Evaluator;

use crate::output::medians;
use crate::run::{Sample, samples_by_cycle};

/// A row of the table. `tests/tidy` compares its first cell with the pages.
struct ComparedRow {
    what: &'static str,
    figures: &'static [Figure],
}

/// A figure of a row.
struct Figure {
    /// Text between the figure before and this one.
    before: &'static str,
    case: &'static str,
    cycle: u32,
    show: fn(&Sample) -> String,
}

const fn first(case: &'static str, show: fn(&Sample) -> String) -> Figure {
    Figure { before: "", case, cycle: 1, show }
}

const ROWS: &[ComparedRow] = &[
    ComparedRow {
        what: "10,000 nodes, 100,000 pods in gangs of 100",
        figures: &[first("allocate/10k-100k", per_second_with_all_nodes)],
    },
    ComparedRow {
        what: "5,000 nodes, 1,000 shapes with affinity and spread",
        figures: &[first("shapes/5k-5k", per_second)],
    },
    ComparedRow {
        what: "cycle with nothing changed, 10,000 nodes, 200,000 pods",
        figures: &[Figure { cycle: 2, ..first("idle/10k-200k", millis_and_allocations) }],
    },
    ComparedRow {
        what: "500 gangs of 10 that fit nowhere, 5,000 full nodes",
        figures: &[
            first("unschedulable/5k-5k", millis),
            Figure { before: ", then ", cycle: 2, ..first("unschedulable/5k-5k", millis) },
        ],
    },
    ComparedRow {
        what: "preempt, gang of 512, 5,000 nodes, 50,000 candidates",
        figures: &[first("preempt/5k-50k", millis)],
    },
    ComparedRow {
        what: "preempt, gang of 100, 100 nodes, 1,000 candidates",
        figures: &[first("preempt/100-1k", millis)],
    },
    ComparedRow {
        what: "reclaim, the same two",
        figures: &[
            first("reclaim/5k-50k", millis),
            Figure { before: ", ", ..first("reclaim/100-1k", millis) },
        ],
    },
];

/// Measures the rows that have a case with this prefix.
///
/// # Errors
/// A case fails.
#[allow(clippy::print_stdout, reason = "a table for the reader")]
pub(crate) fn print(prefix: &str) -> anyhow::Result<()> {
    let has_case = |row: &&ComparedRow| row.figures.iter().any(|it| it.case.starts_with(prefix));
    println!("| What | vc-scheduler |\n|---|---|");
    for row in ROWS.iter().filter(has_case) {
        println!("| {} | {} |", row.what, measured(row)?);
    }
    Ok(())
}

/// The second cell of a row. Each of its cases is measured once.
fn measured(row: &ComparedRow) -> anyhow::Result<String> {
    let (mut samples, mut cell) = (BTreeMap::new(), String::new());
    for Figure { before, case, cycle, show } in row.figures {
        if !samples.contains_key(case) {
            samples.insert(case, samples_by_cycle(case, Evaluator::Fast, &[])?);
        }
        let of_cycle = samples.get(case).and_then(|cycles| cycles.get(cycle));
        let of_cycle = of_cycle.with_context(|| format!("{case}: no cycle {cycle}"))?;
        cell += before;
        cell += &show(&medians(of_cycle));
    }
    Ok(cell)
}

fn per_second(sample: &Sample) -> String {
    let seconds = sample.wall_nanos.max(1) as f64 / 1e9;
    format!("{}/s", with_commas((sample.n_decisions as f64 / seconds) as u64))
}

fn per_second_with_all_nodes(sample: &Sample) -> String {
    format!("{} with all nodes", per_second(sample))
}

/// Three digits that count.
fn millis(sample: &Sample) -> String {
    let millis = sample.wall_nanos as f64 / 1e6;
    match millis {
        _ if 100.0 <= millis => format!("{millis:.0} ms"),
        _ if 1.0 <= millis => format!("{millis:.1} ms"),
        _ => format!("{millis:.3} ms"),
    }
}

fn millis_and_allocations(sample: &Sample) -> String {
    let allocated = match sample.alloc_count {
        0 => "nothing allocated".to_owned(),
        count => format!("{} allocations", with_commas(count)),
    };
    format!("{}, {allocated}", millis(sample))
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<&str> = groups.filter_map(|group| str::from_utf8(group).ok()).collect();
    groups.join(",")
}
