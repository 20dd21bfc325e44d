//! Reports of cycles and counts of the edge as Prometheus metrics, with Volcano's names, labels and
//! buckets. Specification: core.md 9, actions.md 10.4, plugins-jobs-queues.md 2.3, 4.1, 5.4.

mod buckets;
mod devices;
mod docs;
mod families;
mod jobs;
mod metrics;
#[cfg(target_os = "linux")]
mod process;
mod queues;
mod quotas;
mod table;
mod text;
mod usages;

pub use docs::reference;
pub use metrics::Metrics;
pub use table::{MetricKind, MetricOrigin, MetricRow, TABLE};
