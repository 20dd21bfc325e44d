//! `docs/metrics.md`, made from the table. Architecture: "documentation is generated and compared
//! in a test".

use std::fmt::Write;

use vc_engine::PendingReason;

use crate::table::{MetricKind, MetricOrigin, MetricRow, TABLE};

const HEAD: &str = "\
# Metrics

Served as text on `--listen-address`, path `/metrics`, with `--enable-metrics`. This page is made
from the table in `crates/telemetry/src/table.rs`: `UPDATE_DOCS=1 cargo test -p vc-telemetry`.

A metric with labels is exported once it has a value. Numbers of jobs and queues are those at the
end of the last cycle. The series of a Queue vanish when it is deleted, those of a job when neither
its PodGroup nor pods of it are left.
";

const VOLCANO: &str = "
## Volcano's metrics

Names, labels and buckets are those of Volcano, so its dashboards and alerts keep working. Amounts
are in internal units: millicores, bytes, whole pods, thousandths of everything else (1 GPU = 1000).
A scalar resource that was shown once for a queue and is missing later is shown as 0.

Two series have only the name of the PodGroup as label; groups of the same name in different
namespaces share one, which is the sum over them (in Volcano the last writer wins).
";

const OURS: &str = "
## Our own metrics

Volcano has none of these names.
";

const PENDING: &str = "
`volcano_pending_pods` has one series per queue and reason; pods of PodGroups whose queue does not
exist have an empty `queue`. A pod that names no PodGroup is counted only with
`--bare-pods=schedule`. Reasons:
";

const COMMON: &str = "
## Metrics of the process and its clients
";

const TAIL: &str = "
`process_*` (CPU seconds, resident and virtual memory, open and largest number of file descriptors,
start time, threads) come from the operating system, on Linux. There is no counterpart of Go's
`go_*`.
";

/// The page.
pub fn reference() -> String {
    let mut page = HEAD.to_owned();
    page.push_str(VOLCANO);
    table(&mut page, MetricOrigin::Volcano);
    page.push_str(OURS);
    table(&mut page, MetricOrigin::Ours);
    page.push_str(PENDING);
    page.push_str("\n| Reason | Meaning |\n|---|---|\n");
    for (reason, meaning) in PendingReason::ALL.map(PendingReason::text) {
        // Writing to a String does not fail.
        let _ = writeln!(page, "| `{reason}` | {meaning} |");
    }
    page.push_str(COMMON);
    table(&mut page, MetricOrigin::Common);
    page.push_str(TAIL);
    page
}

fn table(page: &mut String, origin: MetricOrigin) {
    page.push_str("\n| Metric | Type | Labels | Meaning | Changes |\n|---|---|---|---|---|\n");
    for row in TABLE.iter().filter(|row| row.origin == origin) {
        let MetricRow { name, help, updated, .. } = row;
        let (kind, labels) = (kind(row), labels(row));
        let _ = writeln!(page, "| `{name}` | {kind} | {labels} | {help} | {updated} |");
    }
}

fn kind(row: &MetricRow) -> String {
    match (row.kind, row.buckets) {
        (MetricKind::Histogram, [first, .., last]) => {
            format!("histogram, {} buckets from {first} to {last}", row.buckets.len())
        }
        (kind, _) => kind.as_str().to_owned(),
    }
}

fn labels(row: &MetricRow) -> String {
    let quoted: Vec<String> = row.labels.iter().map(|label| format!("`{label}`")).collect();
    quoted.join(", ")
}
