//! Which annotations are kept. A pod of a training job carries kilobytes of them, and what nothing
//! reads is not worth its memory. Specification: core.md 3.3.

use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::scan::{JsonScan, UnusualJson};
use crate::soft::{FieldShape, LenientField, LenientMap};
use crate::word::word;

/// Whether something reads this annotation.
pub fn is_read(key: &str) -> bool {
    match key.strip_prefix("volcano.sh/") {
        Some(local) => VOLCANO.contains(&local) || local.starts_with("vgpu-"),
        None => OTHERS.contains(&key) || PREFIXES.iter().any(|prefix| key.starts_with(prefix)),
    }
}

/// True for an annotation whose value names something and reaches messages and logs.
pub(crate) fn is_name(key: &str) -> bool {
    NAMES.contains(&key)
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
    "huawei.com/AscendReal",
    "huawei.com/npu-core",
    "huawei.com/vnpu-mode",
    "hami-vnpu-core",
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
}
