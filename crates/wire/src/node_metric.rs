//! Metrics of nodes as the custom metrics API serves them. Specification: plugins-nodes.md 12.2.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use vc_resource::Quantity;

use crate::time::parse_time;

/// The value of a metric of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeMetric {
    /// Name of the node.
    pub node: Arc<str>,
    /// When it was measured, in microseconds since 1970.
    pub measured_micros: i64,
    pub value: f64,
}

#[derive(Deserialize)]
struct MetricValueList {
    items: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetricValue {
    described_object: DescribedObject,
    timestamp: String,
    value: String,
}

#[derive(Deserialize)]
struct DescribedObject {
    name: Arc<str>,
}

/// Reads a MetricValueList of nodes. An item that cannot be read is left out.
///
/// # Errors
/// The text is no such list.
pub fn node_metrics(text: &[u8]) -> serde_json::Result<Vec<NodeMetric>> {
    let list: MetricValueList = serde_json::from_slice(text)?;
    Ok(list.items.iter().filter_map(|item| metric(item.get())).collect())
}

fn metric(text: &str) -> Option<NodeMetric> {
    let item: MetricValue = serde_json::from_str(text).ok()?;
    let value: Quantity = item.value.parse().ok()?;
    Some(NodeMetric {
        node: item.described_object.name,
        measured_micros: parse_time(&item.timestamp)?,
        value: value.to_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_that_cannot_be_read_is_left_out() {
        let item = |name: &str, time: &str, value: &str| {
            format!(
                r#"{{"describedObject": {{"kind": "Node", "name": {name}, "apiVersion": "/v1"}},
                    "metric": {{"name": "node_cpu_usage_avg"}}, "timestamp": {time},
                    "value": {value}}}"#
            )
        };
        let time = r#""1970-01-01T00:00:02Z""#;
        let items = [
            item("\"n1\"", time, "\"345678u\""),
            item("\"n2\"", time, "\"much\""),
            item("\"n3\"", "\"yesterday\"", "\"1\""),
            item("7", time, "\"1\""),
            item("\"n5\"", time, "1"),
            "null".to_owned(),
            item("\"n6\"", time, "\"2\""),
        ];
        let text = format!(r#"{{"kind": "MetricValueList", "items": [{}]}}"#, items.join(","));
        let read = node_metrics(text.as_bytes()).expect("a list");
        let expected = [("n1", 0.345678), ("n6", 2.0)].map(|(node, value)| NodeMetric {
            node: node.into(),
            measured_micros: 2_000_000,
            value,
        });
        assert_eq!(read, expected);
        for text in ["", "{}", "[]", r#"{"items": 7}"#, "<html>"] {
            assert!(node_metrics(text.as_bytes()).is_err(), "{text}");
        }
    }
}
