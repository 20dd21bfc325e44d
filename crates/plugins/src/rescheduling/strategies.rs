//! The argument `strategies`: which strategies run, each with thresholds in percent.
//! Specification: plugins-jobs-queues.md 14, D29, D31.

use vc_conf::{Argument, ArgumentType, Arguments, FreeForm, Warning};

use super::low_node_utilization::{LowNodeUtilization, Percent};

pub(super) const STRATEGIES: Argument<FreeForm> = Argument::new(
    "strategies",
    FreeForm("list of `{name, params}`", &["array"]),
    "what to run; `params` has `thresholds` and `targetThresholds` in percent of `cpu`, `memory` \
     and `pods`",
)
.shown_as("`lowNodeUtilization`");

/// A value of the configuration.
type Value = <FreeForm as ArgumentType>::Value;

const LOW_NODE_UTILIZATION: &str = "lowNodeUtilization";
const THRESHOLDS: &str = "thresholds";
const TARGETS: &str = "targetThresholds";
/// Parameters of Volcano without effect there.
const WITHOUT_EFFECT: [&str; 3] = ["numberOfNodes", "thresholdPriorityClassName", "nodeFit"];

/// Returns the strategies that run. Without the argument, or with an empty list, the default one
/// runs. Entries that cannot be read, and unknown names, are dropped with a warning.
pub(super) fn read(arguments: &Arguments, warnings: &mut Vec<Warning>) -> Vec<LowNodeUtilization> {
    let given = arguments.get(STRATEGIES.key);
    let entries = given.and_then(|value| value.as_array()).filter(|list| !list.is_empty());
    let Some(entries) = entries else {
        return vec![LowNodeUtilization::default()];
    };
    let mut warn = |problem: String, remedy: &str| {
        warnings.push(arguments.warning(STRATEGIES.key, &problem, remedy));
    };
    let read = |(place, entry)| read_strategy(place, entry, &mut warn);
    entries.iter().enumerate().filter_map(read).collect()
}

fn read_strategy(
    place: usize,
    entry: &Value,
    warn: &mut impl FnMut(String, &str),
) -> Option<LowNodeUtilization> {
    match entry["name"].as_str() {
        Some(LOW_NODE_UTILIZATION) => {}
        Some(name) => {
            let remedy = "write lowNodeUtilization, the only one that Volcano has";
            warn(format!("[{place}]: unknown strategy {name}, it does not run"), remedy);
            return None;
        }
        None => {
            let remedy = "write {name: lowNodeUtilization, params: {...}}";
            warn(format!("[{place}]: no strategy with a name: {entry}, it does not run"), remedy);
            return None;
        }
    }
    let params = &entry["params"];
    let known = [THRESHOLDS, TARGETS];
    let keys = params.as_object().into_iter().flat_map(|params| params.keys());
    for key in keys.filter(|key| !known.contains(&key.as_str())) {
        let problem = match WITHOUT_EFFECT.contains(&key.as_str()) {
            true => format!("[{place}].params.{key} has no effect, as in Volcano"),
            false => format!("[{place}].params.{key} is unknown, it is ignored"),
        };
        warn(problem, "remove it, or write thresholds or targetThresholds");
    }
    let [thresholds, targets] = known.map(|key| {
        let path = format!("[{place}].params.{key}");
        read_percent(&params[key], &path, warn)
    });
    Some(LowNodeUtilization { thresholds, targets })
}

/// Reads a map of percentages. What is not given is 100.
fn read_percent(value: &Value, path: &str, warn: &mut impl FnMut(String, &str)) -> Percent {
    let mut percent = Percent::default();
    if value.is_null() {
        return percent;
    }
    let Some(entries) = value.as_object() else {
        let remedy = "write a map, as in {cpu: 20, memory: 20}; until then 100 is in force";
        warn(format!("{path}: not a map: {value}"), remedy);
        return percent;
    };
    for (name, value) in entries {
        let place = match name.as_str() {
            "cpu" => &mut percent.cpu,
            "memory" => &mut percent.memory,
            // D29: both spellings count.
            "pods" | "pod" => &mut percent.pods,
            _ => {
                let remedy = "write cpu, memory or pods";
                warn(format!("{path}.{name}: no such percentage, it is ignored"), remedy);
                continue;
            }
        };
        match value.as_f64() {
            Some(given) => *place = given,
            None => warn(
                format!("{path}.{name}: not a number: {value}, 100 is in force"),
                "write a percentage without quotes and %, such as 20",
            ),
        }
    }
    percent
}
