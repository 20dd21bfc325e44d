//! Arguments that are maps with fixed keys and are read leniently: a section that is no map is ignored
//! with a warning. Specification: plugins-nodes.md 12.1.

use serde_json::Value;

use crate::arguments::{Arguments, shown};
use crate::error::Warning;
use crate::spelling::did_you_mean;

/// Plugin, argument, the keys of its map.
const SECTIONS: &[(&str, &str, &[&str])] =
    &[("usage", "thresholds", &["cpu", "mem"]), ("usage", "estimator", ESTIMATOR)];
const ESTIMATOR: &[&str] =
    &["request_ratio", "burst_ratio", "risk_threshold", "risk_factor", "be_cpu", "be_mem"];

/// Warns of every section of a plugin that is no map, and of keys in it that nobody reads.
pub(crate) fn check(plugin: &str, arguments: &Arguments, warnings: &mut Vec<Warning>) {
    for (_, section, keys) in SECTIONS.iter().filter(|(owner, _, _)| *owner == plugin) {
        let map = match arguments.get(section) {
            None | Some(Value::Null) => continue,
            Some(Value::Object(map)) => map,
            Some(other) => {
                let message = format!("expected a map, found {}, it is ignored", shown(other));
                let remedy = format!("write a map, as in {section}: {{{}: ...}}", keys[0]);
                warnings.push(arguments.warning(section, &message, &remedy));
                continue;
            }
        };
        for key in map.keys().filter(|key| !keys.contains(&key.as_str())) {
            let message = format!("unknown key {key}, it is ignored");
            warnings.push(arguments.warning(section, &message, &did_you_mean(key, keys)));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::known_arguments::keys_of;

    #[test]
    fn every_section_is_a_known_key() {
        for (plugin, section, _) in SECTIONS {
            assert!(keys_of(plugin).contains(section), "{plugin} {section}");
        }
    }

    #[test]
    fn a_section_is_a_map_with_known_keys() {
        for (section, value, told) in [
            ("thresholds", json!({"cpu": 80, "mem": 70}), None),
            ("thresholds", json!(null), None),
            ("thresholds", json!(80), Some("expected a map, found 80, it is ignored")),
            ("thresholds", json!({"memory": 70}), Some("unknown key memory, it is ignored")),
            ("estimator", json!({"be_cpu": "250m", "risk_factor": 1.2}), None),
            ("estimator", json!([1]), Some("expected a map, found [1], it is ignored")),
        ] {
            let arguments: Arguments = [(section, value.clone())].into_iter().collect();
            let mut warnings = Vec::new();
            check("usage", &arguments, &mut warnings);
            let messages: Vec<&str> = warnings.iter().map(|w| w.message.as_str()).collect();
            assert_eq!(messages, told.into_iter().collect::<Vec<_>>(), "{section}: {value}");
        }
    }
}
