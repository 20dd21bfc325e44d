//! Keys of older versions of Volcano, and what stands in their place now. Volcano ignores them
//! silently; here the warning names the new place (C-07).

use crate::switches::SWITCHES;

/// Owner of an argument that has moved, its old key, and the remedy. A `*` at the end stands for any
/// text.
const MOVED: &[(&str, &str, &str)] = &[
    ("predicates", "predicate.GPUSharingEnable", SHARING),
    ("predicates", "GPUSharingEnable", SHARING),
    ("predicates", "predicate.GPUNumberEnable", NUMBER),
    ("predicates", "GPUNumberEnable", NUMBER),
    ("predicates", "predicate.VGPUEnable", VGPU),
    ("predicates", "predicate.NodeLockEnable", LOCK),
    ("predicates", "NodeLockEnable", LOCK),
    ("deviceshare", "NodeLockEnable", "write deviceshare.NodeLockEnable"),
    ("predicates", "predicate.ProportionalEnable", PROPORTIONAL),
    ("predicates", "ProportionalEnable", PROPORTIONAL),
    ("predicates", "predicate.resources", RESOURCES),
    ("predicates", "predicate.resources.*", RESOURCES),
    ("usage", "thresholds.cpu", "write a map, as in thresholds: {cpu: 80}"),
    ("usage", "thresholds.mem", "write a map, as in thresholds: {mem: 80}"),
    ("usage", "estimator.*", "write a map, as in estimator: {request_ratio: 0.7}"),
];
const SHARING: &str = "it is deviceshare.GPUSharingEnable of the plugin deviceshare now";
const NUMBER: &str = "it is deviceshare.GPUNumberEnable of the plugin deviceshare now";
const VGPU: &str = "it is deviceshare.VGPUEnable of the plugin deviceshare now";
const LOCK: &str = "it is deviceshare.NodeLockEnable of the plugin deviceshare now";
const PROPORTIONAL: &str = "it is proportional.enable of the plugin resource-strategy-fit now, as in \
    proportional: {enable: true}";
const RESOURCES: &str = "it is part of proportional of the plugin resource-strategy-fit now, as in \
    proportional: {resources: nvidia.com/gpu, resourceProportion: {nvidia.com/gpu.cpu: 4}}";

/// What stands in the place of an argument of an older version.
pub(crate) fn moved_argument(owner: &str, key: &str) -> Option<&'static str> {
    let is_it = |pattern: &str| match pattern.strip_suffix('*') {
        Some(prefix) => key.starts_with(prefix),
        None => key == pattern,
    };
    let rows = MOVED.iter().filter(|(of, _, _)| *of == owner);
    rows.clone().find(|(_, pattern, _)| is_it(pattern)).map(|(_, _, remedy)| *remedy)
}

/// What stands in the place of a switch of an older version: `disableTaskOrder: true` has become
/// `enableTaskOrder: false`. `value` is what the file says, if it is a boolean.
pub(crate) fn renamed_switch(key: &str, value: Option<bool>) -> Option<String> {
    let name = key.strip_prefix("disable")?;
    let is_it = |switch: &&str| {
        [switch.strip_prefix("enable"), switch.strip_prefix("enabled")].contains(&Some(name))
    };
    let switch = SWITCHES.iter().map(|(switch, _, _)| *switch).find(is_it)?;
    let instead = match value {
        Some(off) => (!off).to_string(),
        None => "true or false".to_owned(),
    };
    Some(format!("write {switch}: {instead}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known_arguments::keys_of;

    #[test]
    fn no_argument_that_is_read_counts_as_moved() {
        for (owner, pattern, _) in MOVED {
            assert!(!keys_of(owner).contains(pattern), "{owner}: {pattern}");
            for key in keys_of(owner) {
                assert_eq!(moved_argument(owner, key), None, "{owner}: {key}");
            }
        }
    }

    #[test]
    fn switches_of_old() {
        for (key, value, expected) in [
            ("disableTaskOrder", Some(true), Some("write enableTaskOrder: false")),
            ("disableJobOrder", Some(false), Some("write enableJobOrder: true")),
            ("disableOverused", Some(true), Some("write enabledOverused: false")),
            ("disablePredicate", None, Some("write enablePredicate: true or false")),
            ("disableNothing", Some(true), None),
            ("enableTaskOrder", Some(true), None),
        ] {
            assert_eq!(renamed_switch(key, value).as_deref(), expected, "{key}");
        }
    }
}
