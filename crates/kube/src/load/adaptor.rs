//! Loads from the custom metrics API, which a Prometheus adapter serves behind the API server.
//! Specification: plugins-nodes.md 12.2.

use futures::try_join;
use http::Request;
use kube::Client;
use kube::client::Body;
use vc_wire::{NodeMetric, node_metrics};

use super::NodePercentages;
use super::client::{LoadError, innermost, limited, received};

/// Bytes of an answer: 50 thousand nodes.
const MOST: usize = 32 << 20;
/// From a part of the capacity to percent.
const PERCENT: f64 = 100.0;

/// Reads all nodes.
///
/// # Errors
/// The API server has no such metric, or refuses it.
pub(super) async fn read(client: &Client) -> Result<NodePercentages, LoadError> {
    let (cpu, memory) =
        try_join!(metric(client, "node_cpu_usage_avg"), metric(client, "node_memory_usage_avg"))?;
    let timed =
        |metric: NodeMetric| (metric.node, (metric.value * PERCENT, metric.measured_micros));
    Ok(NodePercentages {
        cpu: cpu.into_iter().map(timed).collect(),
        memory: memory.into_iter().map(timed).collect(),
    })
}

/// Reads a metric of all nodes, from the older version of the API if there is no newer one.
async fn metric(client: &Client, name: &str) -> Result<Vec<NodeMetric>, LoadError> {
    match of_version(client, "v1beta2", name).await {
        Err(LoadError::Status { code, .. }) if code == http::StatusCode::NOT_FOUND => {
            of_version(client, "v1beta1", name).await
        }
        answer => answer,
    }
}

async fn of_version(
    client: &Client,
    version: &str,
    name: &str,
) -> Result<Vec<NodeMetric>, LoadError> {
    let path = format!("/apis/custom.metrics.k8s.io/{version}/nodes/*/{name}");
    let request = Request::get(path).body(Body::empty());
    let request = request.map_err(|error| LoadError::Connection(error.to_string()))?;
    let text = limited(async {
        let answer = client.send(request).await;
        received(answer.map_err(|error| LoadError::Connection(innermost(&error)))?, MOST).await
    })
    .await?;
    node_metrics(&text).map_err(|error| LoadError::unreadable(&error))
}
