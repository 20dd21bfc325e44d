//! Loads from the HTTP API of Prometheus: one query for cpu and one for memory, for all nodes.
//! Specification: plugins-nodes.md 12.2.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream, try_join};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use vc_text::escape;

use super::client::{LoadClient, LoadError, encoded};
use super::{AT_ONCE, NodePercentages};
use crate::wall_clock::wall_micros;

/// Bytes of an answer: 50 thousand nodes with the usual labels.
const MOST: usize = 16 << 20;
/// The server has looked at the query, and cannot answer it.
const UNPROCESSABLE: u16 = 422;

/// The query for a resource. `matcher` stands for `,instance="NODE"`, or for nothing.
type Query = fn(matcher: &str) -> String;

fn cpu(matcher: &str) -> String {
    format!(
        "avg_over_time(clamp_min(100 - (avg by (instance) \
         (rate(node_cpu_seconds_total{{mode=\"idle\"{matcher}}}[5m])) * 100), 0)[10m:30s])"
    )
}

fn memory(matcher: &str) -> String {
    let labels = match matcher.strip_prefix(',') {
        Some(matcher) => format!("{{{matcher}}}"),
        None => String::new(),
    };
    format!(
        "100*avg_over_time(((1-node_memory_MemAvailable_bytes{labels}/\
         node_memory_MemTotal_bytes{labels}))[10m:30s])"
    )
}

/// Reads all nodes.
///
/// # Errors
/// A query failed. One that is too much for the server, or whose answer is too large, is repeated
/// node by node first.
pub(super) async fn read(
    client: &LoadClient,
    nodes: &[Arc<str>],
) -> Result<NodePercentages, LoadError> {
    let (cpu, memory) = try_join!(of_all(client, cpu, nodes), of_all(client, memory, nodes))?;
    let now = wall_micros();
    let timed = |percentages: FxHashMap<Arc<str>, f64>| {
        percentages.into_iter().map(|(name, percent)| (name, (percent, now))).collect()
    };
    Ok(NodePercentages { cpu: timed(cpu), memory: timed(memory) })
}

async fn of_all(
    client: &LoadClient,
    query: Query,
    nodes: &[Arc<str>],
) -> Result<FxHashMap<Arc<str>, f64>, LoadError> {
    match ask(client, &query("")).await {
        Ok(series) => Ok(by_node(series, nodes)),
        Err(LoadError::Status { code, .. }) if code.as_u16() == UNPROCESSABLE => {
            one_by_one(client, query, nodes).await
        }
        Err(LoadError::TooLarge(_)) => one_by_one(client, query, nodes).await,
        Err(error) => Err(error),
    }
}

async fn one_by_one(
    client: &LoadClient,
    query: Query,
    nodes: &[Arc<str>],
) -> Result<FxHashMap<Arc<str>, f64>, LoadError> {
    let of_node = |name: &Arc<str>| {
        let name = name.clone();
        async move {
            let series = ask(client, &query(&format!(",instance=\"{name}\""))).await?;
            let value = series.first().map(|series| series.value);
            Ok::<_, LoadError>(value.map(|value| (name, value)))
        }
    };
    let answers = stream::iter(nodes.iter().map(of_node)).buffer_unordered(AT_ONCE);
    let answers = answers.try_filter_map(|found| async move { Ok(found) });
    answers.try_collect().await
}

/// Joins series and nodes by the label `instance`, with and without its port. A node takes the first
/// series with exactly its name, else the first one.
fn by_node(series: Vec<Series>, nodes: &[Arc<str>]) -> FxHashMap<Arc<str>, f64> {
    let mut names: Vec<&Arc<str>> = nodes.iter().collect();
    names.sort_unstable();
    let named = |text: &str| names.binary_search_by(|name| (***name).cmp(text)).ok();
    let mut found = FxHashMap::default();
    for is_exact in [true, false] {
        for series in &series {
            let text = if is_exact { Some(&*series.instance) } else { host(&series.instance) };
            if let Some(at) = text.and_then(named) {
                found.entry(names[at].clone()).or_insert(series.value);
            }
        }
    }
    found
}

/// Returns the part of an instance before its port. Returns `None` if it has none.
fn host(instance: &str) -> Option<&str> {
    let (host, port) = instance.rsplit_once(':')?;
    port.parse::<u16>().is_ok().then_some(host)
}

/// The last value of a series.
struct Series {
    instance: String,
    value: f64,
}

#[derive(Deserialize)]
struct Answer {
    status: String,
    #[serde(default)]
    error: String,
    data: Option<AnswerData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerData {
    result_type: String,
    result: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct VectorElement {
    metric: SeriesLabels,
    /// Time and value.
    value: (f64, String),
}

#[derive(Deserialize)]
struct SeriesLabels {
    instance: String,
}

/// Runs a query whose answer is a vector. An element that cannot be read is left out.
async fn ask(client: &LoadClient, query: &str) -> Result<Vec<Series>, LoadError> {
    let path = format!("/api/v1/query?query={}", encoded(query));
    let text = client.get(&path, MOST).await?;
    let answer: Answer =
        serde_json::from_slice(&text).map_err(|error| LoadError::unreadable(&error))?;
    let data = match answer.data {
        Some(data) if answer.status == "success" => data,
        _ => {
            let [status, error] = [&answer.status, &answer.error].map(|text| escape(text));
            return Err(LoadError::Unreadable(format!("status {status}: {error}")));
        }
    };
    if data.result_type != "vector" {
        let text = format!("{} in place of a vector", escape(&data.result_type));
        return Err(LoadError::Unreadable(text));
    }
    let series = |element: &RawValue| {
        let element: VectorElement = serde_json::from_str(element.get()).ok()?;
        let value = element.value.1.parse().ok()?;
        Some(Series { instance: element.metric.instance, value })
    };
    Ok(data.result.iter().filter_map(|element| series(element)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_joined_by_instance() {
        let series = |instance: &str, value| Series { instance: instance.to_owned(), value };
        let all = vec![
            series("n1:9100", 1.0),
            series("n1", 2.0),
            series("n1:9101", 3.0),
            series("n2:9100", 4.0),
            series("n2:9101", 5.0),
            series("10.0.0.3:9100", 6.0),
            series("n4:metrics", 7.0),
        ];
        let nodes: Vec<Arc<str>> = ["n4", "n2", "n1", "n3"].map(Arc::from).into();
        let mut found: Vec<_> = by_node(all, &nodes).into_iter().collect();
        found.sort_by(|left, right| left.0.cmp(&right.0));
        assert_eq!(found, [("n1".into(), 2.0), ("n2".into(), 4.0)]);
    }

    #[test]
    fn the_queries_are_those_of_the_specification() {
        assert_eq!(
            cpu(",instance=\"n\""),
            "avg_over_time(clamp_min(100 - (avg by (instance) (rate(node_cpu_seconds_total{mode=\
             \"idle\",instance=\"n\"}[5m])) * 100), 0)[10m:30s])"
        );
        assert_eq!(
            memory(",instance=\"n\""),
            "100*avg_over_time(((1-node_memory_MemAvailable_bytes{instance=\"n\"}/\
             node_memory_MemTotal_bytes{instance=\"n\"}))[10m:30s])"
        );
        assert_eq!(
            memory(""),
            "100*avg_over_time(((1-node_memory_MemAvailable_bytes/node_memory_MemTotal_bytes))\
             [10m:30s])"
        );
    }
}
