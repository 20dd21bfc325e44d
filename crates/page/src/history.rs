//! What is known of the life of a job, as JSON and for people. Specification: answers.md 8 (ANS-115).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vc_answers::{JobHistory, time_text};

/// The life of a job until now, as far as it is known. Nothing is estimated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryJson {
    /// When its PodGroup was created, RFC 3339; a pod without one, when it was. Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub created: Option<String>,
    /// When it was admitted to its queue last, RFC 3339. Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub admitted: Option<String>,
    /// When its first pod got a node, RFC 3339. Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_bind: Option<String>,
    /// Number of its pods that hold a node now.
    pub on_nodes: usize,
    /// Number of its pods that have ended by themselves, as far as they are remembered.
    pub ended: usize,
    /// Number of its pods that were evicted, as far as they are remembered.
    pub evicted: usize,
    /// When the last of them was evicted, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_eviction: Option<String>,
}

impl From<JobHistory> for HistoryJson {
    fn from(it: JobHistory) -> Self {
        Self {
            created: it.created_micros.map(time_text),
            admitted: it.admitted_micros.map(time_text),
            first_bind: it.first_bind_micros.map(time_text),
            on_nodes: it.on_nodes,
            ended: it.ended,
            evicted: it.evicted,
            last_eviction: it.last_eviction_micros.map(time_text),
        }
    }
}

/// Returns the life of a job in one line: `created 2026-11-23T08:30:00Z, 1 pod on nodes`.
pub(crate) fn history_text(it: &HistoryJson) -> String {
    let times =
        [("created", &it.created), ("admitted", &it.admitted), ("first bind", &it.first_bind)];
    let times = times.into_iter().filter_map(|(word, time)| {
        let time = time.as_ref()?;
        Some(format!("{word} {time}"))
    });
    let last = it.last_eviction.as_ref().map(|time| format!(" (the last at {time})"));
    let counts = [
        (it.on_nodes, "on nodes", String::new()),
        (it.ended, "ended", String::new()),
        (it.evicted, "evicted", last.unwrap_or_default()),
    ];
    let counts = counts.into_iter().filter(|(count, ..)| 0 < *count).map(|(count, what, last)| {
        let pods = if count == 1 { "pod" } else { "pods" };
        format!("{count} {pods} {what}{last}")
    });
    times.chain(counts).collect::<Vec<_>>().join(", ")
}
