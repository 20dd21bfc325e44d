//! Reading of Kubernetes resource lists (core.md 3.1): which names count, and in which unit.

use crate::quantity::Quantity;

/// Prefix of the dimensions that count volumes a node can attach.
const ATTACHABLE_VOLUMES: &str = "attachable-volumes-";

/// Kind of a resource name, which gives the unit of its amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// Millicores.
    Cpu,
    /// Bytes.
    Memory,
    /// Whole pod slots.
    Pods,
    /// Thousandths of the unit.
    Milli,
    /// Whole units of a scalar.
    Count,
    /// Not a resource of the scheduler.
    Dropped,
}

/// Returns the kind of a name in a Kubernetes resource list.
pub fn name_kind(name: &str) -> NameKind {
    match name {
        "cpu" => NameKind::Cpu,
        "memory" => NameKind::Memory,
        "pods" => NameKind::Pods,
        "ephemeral-storage" => NameKind::Milli,
        _ if name.starts_with("count/") || is_part_of_npu(name) => NameKind::Dropped,
        _ if is_scalar_name(name) => NameKind::Milli,
        _ => NameKind::Dropped,
    }
}

/// Returns the kind by which vectors hold `name`. It is that of `name_kind`, except for attachable
/// volumes. These do not come from resource lists and are plain counts (core.md 3.5.1, 3.8).
pub fn stored_kind(name: &str) -> NameKind {
    if name.starts_with(ATTACHABLE_VOLUMES) { NameKind::Count } else { name_kind(name) }
}

/// Returns the amount of a resource list entry in the scheduler's unit, rounded up. Returns `None`
/// if the name is dropped.
pub fn amount(name: &str, quantity: Quantity) -> Option<i64> {
    match name_kind(name) {
        NameKind::Cpu | NameKind::Milli => Some(quantity.milli()),
        NameKind::Memory | NameKind::Pods | NameKind::Count => Some(quantity.value()),
        NameKind::Dropped => None,
    }
}

/// True for memory and cores of Ascend NPUs. No node offers them: only the plugin that chooses
/// devices counts them (plugins-nodes.md 16.3).
fn is_part_of_npu(name: &str) -> bool {
    let rest = name.strip_prefix("huawei.com/Ascend");
    rest.is_some_and(|rest| rest.ends_with("-memory") || rest.ends_with("-core"))
}

fn is_scalar_name(name: &str) -> bool {
    name.contains("kubernetes.io/")
        || name.starts_with("hugepages-")
        || name.starts_with(ATTACHABLE_VOLUMES)
        || is_extended(name)
}

fn is_extended(name: &str) -> bool {
    name.contains('/')
        && !name.starts_with("requests.")
        && is_qualified(&format!("requests.{name}"))
}

/// True for a Kubernetes qualified name with a prefix: `<DNS subdomain>/<name>`.
fn is_qualified(name: &str) -> bool {
    let Some((prefix, local)) = name.split_once('/') else {
        return false;
    };
    let lower_case = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    prefix.len() <= 253
        && prefix.split('.').all(|label| is_word(label, lower_case, b"-"))
        && local.len() <= 63
        && is_word(local, |c| c.is_ascii_alphanumeric(), b"-_.")
}

/// True if the text is not empty, has only `letter` and `inner` bytes, and has letters at both
/// ends.
fn is_word(text: &str, letter: impl Fn(u8) -> bool, inner: &[u8]) -> bool {
    let bytes = text.as_bytes();
    let edge = |c: Option<&u8>| c.is_some_and(|&c| letter(c));
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|&c| letter(c) || inner.contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_resource_lists() {
        let cases = [
            ("cpu", NameKind::Cpu),
            ("memory", NameKind::Memory),
            ("pods", NameKind::Pods),
            ("ephemeral-storage", NameKind::Milli),
            ("hugepages-2Mi", NameKind::Milli),
            ("nvidia.com/gpu", NameKind::Milli),
            ("Nvidia.com/gpu", NameKind::Dropped),
            ("example.com/", NameKind::Dropped),
            ("/gpu", NameKind::Dropped),
            ("-a.com/gpu", NameKind::Dropped),
            ("a-.com/gpu", NameKind::Dropped),
            ("a..com/gpu", NameKind::Dropped),
            ("a.com/b/c", NameKind::Dropped),
            ("a.com/_b", NameKind::Dropped),
            ("a.com/B_c.d-1", NameKind::Milli),
            ("kubernetes.io/batch-cpu", NameKind::Milli),
            ("requests.kubernetes.io/x", NameKind::Milli),
            ("requests.nvidia.com/gpu", NameKind::Dropped),
            ("requests.cpu", NameKind::Dropped),
            ("limits.cpu", NameKind::Dropped),
            ("huawei.com/Ascend310P", NameKind::Milli),
            ("huawei.com/Ascend310P-memory", NameKind::Dropped),
            ("huawei.com/Ascend910B3-core", NameKind::Dropped),
            ("storage", NameKind::Dropped),
            ("count/pods", NameKind::Dropped),
            ("count/jobs.kubernetes.io/x", NameKind::Dropped),
            ("attachable-volumes-csi-x", NameKind::Milli),
        ];
        for (name, want) in cases {
            assert_eq!(name_kind(name), want, "{name}");
        }
        assert_eq!(stored_kind("attachable-volumes-csi-x"), NameKind::Count);
        assert_eq!(stored_kind("nvidia.com/gpu"), NameKind::Milli);
    }

    #[test]
    fn length_limits_include_the_probing_prefix() {
        let long = |n: usize| format!("{}/gpu", "a".repeat(n));
        assert_eq!(name_kind(&long(244)), NameKind::Milli);
        assert_eq!(name_kind(&long(245)), NameKind::Dropped);
        let local = |n: usize| format!("a.com/{}", "b".repeat(n));
        assert_eq!(name_kind(&local(63)), NameKind::Milli);
        assert_eq!(name_kind(&local(64)), NameKind::Dropped);
    }

    #[test]
    fn amounts_of_the_table_in_core_3_1() {
        let read = |name, text: &str| amount(name, text.parse().unwrap());
        assert_eq!(read("cpu", "1.5"), Some(1500));
        assert_eq!(read("memory", "4Gi"), Some(4 << 30));
        assert_eq!(read("nvidia.com/gpu", "2"), Some(2000));
        assert_eq!(read("hugepages-2Mi", "4Mi"), Some(4_194_304_000));
        assert_eq!(read("pods", "110"), Some(110));
        assert_eq!(read("limits.cpu", "1"), None);
    }
}
