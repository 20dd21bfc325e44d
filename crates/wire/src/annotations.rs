//! Which annotations are kept. A pod of a training job carries kilobytes of them, and what nothing
//! reads is not worth its memory. Specification: core.md 3.3.

use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::scan::{JsonScan, UnusualJson};
use crate::soft::{FieldShape, LenientField, LenientMap};
use crate::word::{WordKey, word};

/// Whether something reads this annotation.
pub fn is_read(key: &str) -> bool {
    match key.strip_prefix("volcano.sh/") {
        Some(local) => VOLCANO.contains(&local) || local.starts_with("vgpu-"),
        None => OTHERS.contains(&key) || PREFIXES.iter().any(|prefix| key.starts_with(prefix)),
    }
}

/// The annotations that are kept of an object.
pub trait KeptAnnotations: FieldShape + Default {
    /// True for an annotation whose value names something and reaches messages and logs.
    fn is_name(key: &str) -> bool {
        NAMES.contains(&key)
    }

    /// Returns the annotations.
    fn into_map(self) -> LenientMap<Arc<str>>;
}

const NAMES: &[&str] = &[
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
    "scheduling.volcano.sh/queue-name",
    "volcano.sh/task-spec",
    "volcano.sh/task-topology-affinity",
    "volcano.sh/task-topology-anti-affinity",
    "volcano.sh/task-topology-task-order",
];

/// Keys under `volcano.sh/`, without those that begin with `vgpu-`.
const VOLCANO: &[&str] = &[
    "task-spec",
    "task-priority",
    "preemptable",
    "revocable-zone",
    "numa-topology-policy",
    "topology-decision",
    "sla-waiting-time",
    "jdb-min-available",
    "jdb-max-unavailable",
    "job-allocated-hypernode",
    "hierarchy",
    "hierarchy-weights",
    "nodegroup-resource-limits",
    "offline-job-evicting",
    "oversubscription-cpu",
    "oversubscription-memory",
    "forward-cluster",
    "template-uid",
    "cooldown-time",
    "task-topology",
    "task-topology-affinity",
    "task-topology-anti-affinity",
    "task-topology-task-order",
    "resource-strategy-scoring-type",
    "resource-strategy-weight",
    "gpu-index",
    "predicate-time",
    "gpu-unhealthy-ids",
    "devices-to-allocate",
    "bind-time",
    "bind-phase",
    "node-vgpu-register",
];

/// Beginnings of keys that name a queue's quota, or a common word of NPUs.
const PREFIXES: &[&str] = &["cohort.volcano.sh/", "hami.io/"];

const OTHERS: &[&str] = &[
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
    "scheduling.volcano.sh/queue-allocation-gate",
    "scheduling.volcano.sh/queue-name",
    "sla-waiting-time",
    "nvidia.com/use-gputype",
    "nvidia.com/nouse-gputype",
    "baseDeviceInfos",
    "huawei.com/Ascend310P",
    "huawei.com/Ascend310P-Recovering",
    "huawei.com/Ascend310P-Unhealthy",
    "huawei.com/AscendReal",
    "huawei.com/npu-core",
    "huawei.com/vnpu-mode",
    "hami-vnpu-core",
    "reservation.volcano.sh/runtime",
    "reservation.volcano.sh/template",
    "kueue.x-k8s.io/max-exec-time-seconds",
    "gpu",
    "hamivgpu",
    "pv.kubernetes.io/bind-completed",
    "storage.alpha.kubernetes.io/migrated-plugins",
    "volume.beta.kubernetes.io/storage-class",
    "volume.kubernetes.io/selected-node",
];

/// Annotations of an object; those that nothing reads are skipped without being copied.
#[derive(Clone, Debug, Default)]
pub struct Annotations(pub(crate) LenientMap<Arc<str>>);

impl FieldShape for Annotations {
    const WANTED: &'static str = "a map";
    fn from_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        let mut kept = Vec::new();
        while let Some(key) = map.next_key_seed(KnownKey)? {
            match key {
                Some(key) => kept.push((key, map.next_value()?)),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Some(Self(LenientMap(kept))))
    }
    fn scan_map(scan: &mut JsonScan<'_>, into: &mut LenientField<Self>) -> Result<(), UnusualJson> {
        let Self(LenientMap(kept)) = into.begin();
        scan.object(|key, scan| {
            if !is_read(key) {
                return scan.skip();
            }
            let mut value = LenientField::Absent;
            scan.soft(&mut value)?;
            kept.push((word(key), value));
            Ok(())
        })
    }
}

impl KeptAnnotations for Annotations {
    fn into_map(self) -> LenientMap<Arc<str>> {
        self.0
    }
}

/// Annotations of a PodGroup: those of [`is_read`], and every other that may name the account of a
/// job. The configuration names its key, which is not known here (fair-share.md 3, FS-22).
#[derive(Clone, Debug, Default)]
pub struct GroupAnnotations(LenientMap<Arc<str>>);

/// Longest value that may name an account, in bytes.
const MAX_ACCOUNT: usize = 253;

impl GroupAnnotations {
    /// Whether the annotation is kept.
    fn keeps(key: &str, value: &LenientField<Arc<str>>) -> bool {
        let is_short = matches!(value, LenientField::Good(text) if text.len() <= MAX_ACCOUNT);
        is_read(key) || (is_short && may_name_an_account(key))
    }
}

/// What kubectl keeps of an object names nobody.
fn may_name_an_account(key: &str) -> bool {
    !key.starts_with("kubectl.kubernetes.io/")
}

impl KeptAnnotations for GroupAnnotations {
    fn is_name(key: &str) -> bool {
        Annotations::is_name(key) || !is_read(key)
    }

    fn into_map(self) -> LenientMap<Arc<str>> {
        self.0
    }
}

impl FieldShape for GroupAnnotations {
    const WANTED: &'static str = "a map";
    fn from_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        let mut kept = Vec::new();
        while let Some(key) = map.next_key_seed(WordKey)? {
            let value = map.next_value()?;
            if Self::keeps(&key, &value) {
                kept.push((key, value));
            }
        }
        Ok(Some(Self(LenientMap(kept))))
    }
    fn scan_map(scan: &mut JsonScan<'_>, into: &mut LenientField<Self>) -> Result<(), UnusualJson> {
        let Self(LenientMap(kept)) = into.begin();
        scan.object(|key, scan| {
            if !is_read(key) && !may_name_an_account(key) {
                return scan.skip();
            }
            let mut value = LenientField::Absent;
            scan.soft(&mut value)?;
            if Self::keeps(key, &value) {
                kept.push((word(key), value));
            }
            Ok(())
        })
    }
}

/// Reads a key, which becomes owned only when it is kept.
struct KnownKey;

impl<'de> DeserializeSeed<'de> for KnownKey {
    type Value = Option<Arc<str>>;
    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<Self::Value, D::Error> {
        key.deserialize_str(self)
    }
}

impl Visitor<'_> for KnownKey {
    type Value = Option<Arc<str>>;
    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a key")
    }
    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(is_read(key).then(|| word(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::scanned;

    #[test]
    fn only_annotations_that_something_reads_are_kept() {
        let json = r#"{"kubectl.kubernetes.io/last-applied-configuration": "{}",
            "scheduling.k8s.io/group-name": "pg", "volcano.sh/vgpu-time": "1", "x": {"a": 1}}"#;
        let LenientField::Good(Annotations(LenientMap(kept))) = serde_json::from_str(json).unwrap()
        else {
            panic!("not read")
        };
        let keys: Vec<&str> = kept.iter().map(|(key, _)| &**key).collect();
        assert_eq!(keys, ["scheduling.k8s.io/group-name", "volcano.sh/vgpu-time"]);
    }

    #[test]
    fn annotations_about_devices_are_kept() {
        for key in vc_model::DEVICE_ANNOTATIONS.concat() {
            assert!(is_read(key), "{key}");
        }
    }

    #[test]
    fn of_a_pod_group_everything_is_kept_that_may_name_an_account() {
        let long = "x".repeat(MAX_ACCOUNT + 1);
        let owner = r#""kubectl.kubernetes.io/last-applied-configuration":"{}","owner":"ann""#;
        let rest =
            format!(r#""long":"{long}","scheduling.k8s.io/group-name":"{long}","x":{{"a":1}}"#);
        let json = format!("{{{owner},{rest}}}");
        let by_serde = serde_json::from_str::<LenientField<GroupAnnotations>>(&json).unwrap();
        let LenientField::Good(by_serde) = by_serde else { panic!("not read") };
        for GroupAnnotations(LenientMap(kept)) in [by_serde, scanned(&json).unwrap()] {
            let keys: Vec<&str> = kept.iter().map(|(key, _)| &**key).collect();
            assert_eq!(keys, ["owner", "scheduling.k8s.io/group-name"]);
        }
    }
}
