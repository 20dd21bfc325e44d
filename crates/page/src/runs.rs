//! Jobs that hold nodes, with their expected ends, as JSON and for people. Specification: answers.md 7
//! (ANS-114), 11.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vc_answers::{EndSource, RunningJob, time_text};

use crate::cluster::ListJson;
use crate::cluster_text::rest_of;
use crate::convert::{OwnerOf, job_name};
use crate::explanation::is_false;
use crate::table::Table;
use crate::why_text::as_of_text;

/// A job that holds nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunJson {
    /// Namespace and name.
    pub job: String,
    /// True if the reader may not see the job.
    #[serde(skip_serializing_if = "is_false", default)]
    pub hidden: bool,
    /// Namespace. Absent if the reader may not see the job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub namespace: Option<String>,
    /// Name of its queue.
    pub queue: String,
    /// Number of its pods that hold a node.
    pub pods: usize,
    /// When its first pod got a node, RFC 3339. Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub start: Option<String>,
    /// The last of the expected ends of these pods, RFC 3339. Absent if one of them has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub end: Option<String>,
    /// Where the end is from: `deadline`, `stated`, `learned`, or `terminating`, if the grace period of the
    /// pod ends then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source: Option<String>,
    /// The number of runs from which it is learned.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub runs: Option<usize>,
}

impl RunJson {
    pub(crate) fn of(it: &RunningJob, owner: OwnerOf<'_>) -> Self {
        let source = it.end.map(|end| end.source);
        Self {
            job: job_name(&it.key, owner),
            hidden: false,
            namespace: Some(it.key.namespace.to_string()),
            queue: it.queue.to_string(),
            pods: it.pods,
            start: it.start_micros.map(time_text),
            end: it.end.map(|end| time_text(end.at_micros)),
            source: source.map(|source| source.as_str().to_owned()),
            runs: match source {
                Some(EndSource::Learned(runs)) => Some(runs),
                _ => None,
            },
        }
    }
}

/// Returns the jobs that hold nodes, one line each.
pub fn runs_text(list: &ListJson<RunJson>) -> String {
    let mut table = Table::new(["JOB", "QUEUE", "PODS", "START", "END", "KNOWN FROM"]);
    for it in &list.items {
        let dash = || "-".to_owned();
        let job = if it.hidden { "(of another namespace)".to_owned() } else { it.job.clone() };
        let runs = it.runs.map(|runs| format!(" from {runs} runs")).unwrap_or_default();
        let source = it.source.as_ref().map(|source| format!("{source}{runs}"));
        table.row([
            job,
            it.queue.clone(),
            it.pods.to_string(),
            it.start.clone().unwrap_or_else(dash),
            it.end.clone().unwrap_or_else(dash),
            source.unwrap_or_else(dash),
        ]);
    }
    let text = if list.items.is_empty() { "nothing runs\n".to_owned() } else { table.text() };
    text + &rest_of(list) + &as_of_text(&list.as_of)
}
