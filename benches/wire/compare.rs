//! The cases of the comparison with Volcano in docs/performance.md that need an API server, measured
//! and printed as that table's column.

use anyhow::Context as _;

use crate::cases::CASES;
use crate::server::Kind;
use crate::{Context, Figure};

/// A row of the table: from the least to the most of one figure over several cases. `tests/tidy`
/// compares its first cell with the pages.
struct ComparedRow {
    what: &'static str,
    /// Name of the figure.
    figure: &'static str,
    unit: &'static str,
    decimals: usize,
}

/// The real API server: `make bench-compare` gives `--apiserver`.
const ON_REAL: (&[&str], &[ComparedRow]) = (
    &["arriving/20x500", "arriving/500x20", "arriving/10000x1"],
    &[
        ComparedRow {
            what: "10,000 pods at once on 1,000 nodes, real API server: last bind after last create",
            figure: "last bind after last create",
            unit: "s",
            decimals: 2,
        },
        ComparedRow {
            what: "CPU per bound pod in it, events included",
            figure: "CPU per pod",
            unit: "ms",
            decimals: 2,
        },
    ],
);

const ON_EMBEDDED: (&[&str], &[ComparedRow]) = (
    &["memory/10k-200k"],
    &[ComparedRow {
        what: "memory, 10,000 nodes, 200,000 pods, 50,000 PodGroups",
        figure: "peak memory",
        unit: "MiB",
        decimals: 0,
    }],
);

/// Measures the cases with this prefix, and prints the rows that they fill.
///
/// # Errors
/// A case fails, or lacks a figure.
#[allow(clippy::print_stdout, reason = "a table for the reader")]
pub(crate) async fn print(context: &Context, prefix: &str) -> anyhow::Result<()> {
    let (names, rows) = match context.kind {
        Kind::Real => ON_REAL,
        Kind::Embedded => ON_EMBEDDED,
    };
    let is_wanted = |name: &&str| names.contains(name) && name.starts_with(prefix);
    let mut measured = Vec::new();
    for case in CASES.iter().filter(|case| is_wanted(&case.name)) {
        measured.push(case.run(context).await?);
    }
    if measured.is_empty() {
        return Ok(());
    }
    for row in rows {
        let values: Vec<f64> =
            measured.iter().map(|figures| value(row, figures)).collect::<anyhow::Result<_>>()?;
        println!("| {} | {} |", row.what, range(row, &values));
    }
    Ok(())
}

/// The number of the row's figure.
fn value(row: &ComparedRow, figures: &[Figure]) -> anyhow::Result<f64> {
    let figure = figures.iter().find(|figure| figure.name == row.figure);
    let figure = figure.with_context(|| format!("no figure {}", row.figure))?;
    let number = figure.value.strip_suffix(row.unit).map(str::trim).and_then(|it| it.parse().ok());
    number.with_context(|| format!("{}: no number of {}: {}", row.figure, row.unit, figure.value))
}

fn range(row: &ComparedRow, values: &[f64]) -> String {
    let ComparedRow { unit, decimals, .. } = *row;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    match least < most {
        true => format!("{least:.decimals$} to {most:.decimals$} {unit}"),
        false => format!("{most:.decimals$} {unit}"),
    }
}
