//! Labels and annotations that the engine reads: their keys, and which words of their values stay.
//! Specification: answers.md 15 (ANS-102).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::scenario::anonymous::{is_setting_key, setting_words, words_of};

/// Keys without a well-known domain that the engine reads.
const KEYS: &[&str] = &[
    "accelerator",
    "baseDeviceInfos",
    "gpu",
    "hami-vnpu-core",
    "hamivgpu",
    "kueue.x-k8s.io/max-exec-time-seconds",
    "nodedNodeHealtyStatus",
    "ring-controller.atlas",
    "servertype",
    "sla-waiting-time",
    "vnpu-dvpp",
    "vnpu-level",
];

/// Further keys whose values are words of a list, models of devices, or ids of chips.
const SETTINGS: &[&str] = &[
    "hami-vnpu-core",
    "huawei.com/Ascend310P",
    "huawei.com/Ascend310P-Recovering",
    "huawei.com/Ascend310P-Unhealthy",
    "huawei.com/AscendReal",
    "huawei.com/npu-core",
    "huawei.com/vnpu-mode",
    "nodedNodeHealtyStatus",
    "nvidia.com/nouse-gputype",
    "nvidia.com/use-gputype",
    "ring-controller.atlas",
    "vnpu-dvpp",
    "vnpu-level",
    "volcano.sh/vgpu-mode",
    "volcano.sh/vgpu-podgroup-policy",
];

/// Keys of locks of nodes. The value begins with a time.
const LOCKS: &[&str] = &["gpu", "hami.io/mutex.lock", "hamivgpu"];
/// Key of the GPUs of a node: `uuid,count,memory,type,health,mode:` for each.
const GPUS: &str = "volcano.sh/node-vgpu-register";
/// Key of the GPUs of a pod. The name of a group of MIG instances is in brackets.
const GPUS_OF_POD: &str = "volcano.sh/vgpu-ids-new";
/// Beginning of the keys of the NPUs of a node, a list in JSON.
const NPUS: &str = "hami.io/node-register-";
/// Key of the chips of a node, an object in JSON with names of chips as keys.
const CHIPS: &str = "baseDeviceInfos";

/// True for a key whose words stay.
pub(super) fn is_known_key(key: &str) -> bool {
    KEYS.contains(&key)
}

/// True for a key whose values have words that stay.
pub(super) fn has_known_words(key: &str) -> bool {
    is_setting_key(key)
        || SETTINGS.contains(&key)
        || LOCKS.contains(&key)
        || [GPUS, GPUS_OF_POD, CHIPS].contains(&key)
        || key.starts_with(NPUS)
}

/// Returns the words of the value of such a key: those that stay, and names. Words that are in both
/// stay.
pub(super) fn words_of_value(key: &str, value: &str) -> [BTreeSet<String>; 2] {
    let kept = match key {
        GPUS => words_of_gpus(value),
        GPUS_OF_POD => {
            let groups = value.split('[').skip(1).map(|rest| rest.split(']').next().unwrap_or(""));
            groups.flat_map(words_of).collect()
        }
        _ if LOCKS.contains(&key) => words_of(value.split(',').next().unwrap_or("")),
        _ if is_setting_key(key) => return setting_words(value),
        _ => match serde_json::from_str::<Value>(value) {
            // NPUs and chips of nodes, and those that a pod has got under a key of chips.
            Ok(json) if json.is_array() || json.is_object() => {
                let mut keys = BTreeSet::new();
                add_keys(&json, &mut keys);
                keys
            }
            _ if key == CHIPS || key.starts_with(NPUS) => BTreeSet::new(),
            _ => return setting_words(value),
        },
    };
    [kept, words_of(value)]
}

/// Returns the words of models and modes. The uuid and the amounts are in front of them.
fn words_of_gpus(value: &str) -> BTreeSet<String> {
    let gpus = value.split(':');
    gpus.flat_map(|gpu| gpu.split(',').skip(3)).flat_map(words_of).collect()
}

/// Adds the words of the keys of all objects.
fn add_keys(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|value| add_keys(value, into)),
        Value::Object(fields) => {
            for (key, value) in fields {
                into.append(&mut words_of(key));
                add_keys(value, into);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_102_words_of_devices_stay_and_their_ids_do_not() {
        let npus = r#"[{"id": "rack-A", "devmem": 2, "custominfo": {"NetworkID": 3}}]"#;
        for (key, value, expected) in [
            (GPUS, "GPU-ada,10,32768,NVIDIA-V100,true,mig:", "NVIDIA V100 mig true"),
            (GPUS_OF_POD, "ada[group2-3],NVIDIA,1,0:ada,NVIDIA,1,0:;", "group2"),
            ("hami.io/node-register-Ascend310P", npus, "NetworkID custominfo devmem id"),
            (NPUS, "no JSON", ""),
            (CHIPS, r#"{"Ascend310P-0": {"IP": "rack"}}"#, "Ascend310P IP"),
            ("huawei.com/Ascend310P", r#"[{"UUID": "rack-A", "temp": "vir01"}]"#, "UUID temp"),
            ("huawei.com/Ascend310P", "Ascend310P-0,Ascend310P-1", "Ascend310P"),
            ("hami.io/mutex.lock", "2026-01-01T12:00:00Z,ml,train-0", "T12 Z"),
            ("huawei.com/AscendReal", "Ascend310P-1c-9-0_0", "Ascend310P c"),
            ("volcano.sh/vgpu-mode", "hami-core", "core hami"),
        ] {
            assert!(has_known_words(key), "{key}");
            let [kept, _] = words_of_value(key, value);
            assert_eq!(kept.into_iter().collect::<Vec<_>>().join(" "), expected, "{key}: {value}");
        }
        let limits = ("volcano.sh/nodegroup-resource-limits", r#"{"rack-a": {"cpu": "4"}}"#);
        let [kept, names] = words_of_value(limits.0, limits.1);
        assert!(names.contains("rack") && !kept.contains("rack"), "{kept:?}");
        assert!(!has_known_words("kueue.x-k8s.io/queue-name"));
        assert!(!has_known_words("accelerator") && is_known_key("accelerator"));
    }
}
