//! NodeMetrics of `metrics.k8s.io` as what monitoring says of nodes. A scheduler has its loads from
//! elsewhere; here they stand among the objects. Specification: plugins-nodes.md 12.

use std::sync::Arc;

use serde_json::Value;
use vc_model::NodeLoad;
use vc_resource::Quantity;
use vc_wire::parse_time;

use vc_objects::field::text;
use vc_objects::input::InputObject;

/// True if the object says what a node uses.
pub(crate) fn is_node_metrics(value: &Value) -> bool {
    let is_group = |version: &str| version.starts_with("metrics.k8s.io/");
    text(value, "/kind") == "NodeMetrics" && is_group(text(value, "/apiVersion"))
}

/// Times of the simulation, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadTimes {
    pub(crate) now_micros: i64,
    pub(crate) interval_micros: i64,
}

/// Returns the load of a node in percent of its capacity. It was measured at `timestamp`, or now.
///
/// # Errors
/// What is wrong with the object.
pub(crate) fn load(
    metrics: &InputObject,
    node: Option<&Value>,
    times: LoadTimes,
) -> Result<(Arc<str>, NodeLoad), String> {
    let value = &metrics.value;
    let name = text(value, "/metadata/name");
    let failed = |problem: String| format!("NodeMetrics {name}: {problem}");
    let node = node.ok_or_else(|| failed("there is no node of this name".to_owned()))?;
    let percent = |resource: &str| {
        let path = |of: &str| format!("{of}/{resource}");
        let amount = |of: &Value, path: &str| -> Result<f64, String> {
            let read = match of.pointer(path) {
                Some(Value::String(text)) => text.parse().map(Quantity::to_f64).ok(),
                Some(other) => other.as_f64(),
                None => Some(0.0),
            };
            read.ok_or_else(|| format!("{}: must be a quantity", path.replace('/', ".")))
        };
        let used = amount(value, &path("/usage")).map_err(failed)?;
        let capacity = amount(node, &path("/status/capacity")).map_err(failed)?;
        Ok::<_, String>(if capacity <= 0.0 { 0.0 } else { used / capacity * 100.0 })
    };
    let measured = match text(value, "/timestamp") {
        "" => times.now_micros,
        time => {
            parse_time(time).ok_or_else(|| failed(format!("timestamp: is no time: {time:?}")))?
        }
    };
    let measured = measured.min(times.now_micros);
    let load = NodeLoad::new(percent("cpu")?, percent("memory")?, measured, times.interval_micros);
    let load = load.ok_or_else(|| failed("usage: must not be below 0".to_owned()))?;
    Ok((name.into(), load))
}
