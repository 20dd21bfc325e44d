//! Loads from the documents of Metricbeat in Elasticsearch: one search per node.
//! Specification: plugins-nodes.md 12.2.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use serde_json::json;

use super::client::{LoadClient, LoadError, encoded};
use super::{AT_ONCE, NodePercentages};
use crate::wall_clock::wall_micros;

/// Bytes of an answer.
const MOST: usize = 1 << 20;
/// From a part of the capacity to percent.
const PERCENT: f64 = 100.0;

#[derive(Deserialize)]
struct Answer {
    /// Milliseconds of the search. Every answer has it.
    #[serde(rename = "took")]
    _took: i64,
    /// `None` if no index has the name.
    aggregations: Option<Aggregations>,
}

#[derive(Deserialize)]
struct Aggregations {
    cpu: Average,
    mem: Average,
}

#[derive(Deserialize)]
struct Average {
    /// `None` if no document has the field.
    value: Option<f64>,
}

/// Reads all nodes. A node without documents is left out.
///
/// # Errors
/// The first search that failed ends the round.
pub(super) async fn read(
    client: &LoadClient,
    index: &str,
    host_field: &str,
    nodes: &[Arc<str>],
) -> Result<NodePercentages, LoadError> {
    let path = &format!("/{}/_search", encoded(index));
    let of_node = |name: &Arc<str>| {
        let name = name.clone();
        async move {
            let text = client.post(path, search(host_field, &name), MOST).await?;
            let answer: Answer =
                serde_json::from_slice(&text).map_err(|error| LoadError::unreadable(&error))?;
            Ok::<_, LoadError>((name, answer.aggregations))
        }
    };
    let mut answers = stream::iter(nodes.iter().map(of_node)).buffer_unordered(AT_ONCE);
    let (mut read, now) = (NodePercentages::default(), wall_micros());
    while let Some((name, found)) = answers.try_next().await? {
        let Some(Aggregations { cpu, mem }) = found else { continue };
        let timed = |part: f64| (name.clone(), (part * PERCENT, now));
        read.cpu.extend(cpu.value.map(timed));
        read.memory.extend(mem.value.map(timed));
    }
    Ok(read)
}

/// The search for the averages of a node over the last ten minutes.
fn search(host_field: &str, node: &str) -> String {
    let range = json!({"range": {"@timestamp": {"gte": "now-10m", "lt": "now"}}});
    let host = json!({"term": {host_field: node}});
    json!({
        "size": 0,
        "query": {"bool": {"filter": [range, host]}},
        "aggs": {
            "cpu": {"avg": {"field": "host.cpu.usage"}},
            "mem": {"avg": {"field": "system.memory.actual.used.pct"}},
        },
    })
    .to_string()
}
