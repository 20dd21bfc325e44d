//! Division of work between several schedulers. A consistent-hash ring assigns each pod, PodGroup
//! and node to one scheduler. Specification: core.md 4.4.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Number of points of one scheduler on the ring.
const POINTS: u32 = 20;

/// The ring of all schedulers, and our own name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Division {
    ours: Arc<str>,
    /// Scheduler name by point.
    ring: BTreeMap<u32, Arc<str>>,
}

impl Division {
    /// Returns the ring of the schedulers `<base>-0` to `<base>-(n_schedulers - 1)`. Our own name
    /// is `<base>-<ordinal>`. Both arguments come from the environment: `SCHEDULER_POD_NAME` and
    /// `SCHEDULER_NUM`.
    pub fn new(pod_name: &str, n_schedulers: u32) -> Self {
        let base = pod_name.rsplit_once('-').map_or(pod_name, |(base, _)| base);
        let mut ring = BTreeMap::new();
        for ordinal in 0..n_schedulers {
            let name: Arc<str> = format!("{base}-{ordinal}").into();
            for point in 0..POINTS {
                // If two names hash to one point, the later name gets it.
                ring.insert(crc32(format!("{name}|{point}").as_bytes()), name.clone());
            }
        }
        Self { ours: pod_name.into(), ring }
    }

    /// True if our name is on the ring. If it is not, no object is ours.
    pub fn is_member(&self) -> bool {
        self.ring.values().any(|name| *name == self.ours)
    }

    /// Returns our own name.
    pub fn own_name(&self) -> &str {
        &self.ours
    }

    /// Returns the number of schedulers on the ring.
    pub fn n_schedulers(&self) -> usize {
        self.ring.values().collect::<BTreeSet<_>>().len()
    }

    /// True if the object with this key is ours.
    pub fn owns(&self, key: &str) -> bool {
        self.owner(key) == Some(&*self.ours)
    }

    /// Returns the other scheduler that the object with this key belongs to. Returns `None` if it is
    /// ours, or nobody's.
    pub(crate) fn other_owner(&self, key: &str) -> Option<&str> {
        self.owner(key).filter(|name| **name != *self.ours)
    }

    /// Returns the scheduler at the first point after the hash of the key, around the ring. Returns
    /// `None` if there is no scheduler.
    fn owner(&self, key: &str) -> Option<&str> {
        let behind = crc32(key.as_bytes()).checked_add(1);
        let next = behind.and_then(|point| self.ring.range(point..).next());
        next.or_else(|| self.ring.first_key_value()).map(|(_, name)| &**name)
    }
}

/// Returns the CRC-32 of IEEE 802.3, like Go's `crc32.ChecksumIEEE`.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, &byte: &u8| TABLE[usize::from(crc as u8 ^ byte)] ^ (crc >> 8);
    !bytes.iter().fold(!0, step)
}

/// The CRC remainder of every byte.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            let odd = remainder & 1 == 1;
            remainder = (remainder >> 1) ^ if odd { 0xedb8_8320 } else { 0 };
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_crc_32_of_ieee() {
        let cases =
            [("", 0), ("a", 0xe8b7_be43), ("123456789", 0xcbf4_3926), ("s-0|0", 0xab30_f927)];
        for (text, crc) in cases {
            assert_eq!(crc32(text.as_bytes()), crc, "{text:?}");
        }
    }

    /// Returns the owner by a scan of all points instead of a search.
    fn owner_by_walk(n_schedulers: u32, key: &str) -> String {
        let points = |ordinal: u32| (0..20).map(move |point| format!("s-{ordinal}|{point}"));
        let mut ring: Vec<(u32, u32)> = (0..n_schedulers)
            .flat_map(|ordinal| points(ordinal).map(move |text| (crc(&text), ordinal)))
            .collect();
        ring.sort_unstable();
        let behind = ring.iter().find(|(point, _)| crc(key) < *point);
        format!("s-{}", behind.unwrap_or(&ring[0]).1)
    }

    /// Bit by bit, without a table.
    fn crc(text: &str) -> u32 {
        let mut crc = !0u32;
        for byte in text.bytes() {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
            }
        }
        !crc
    }

    #[test]
    fn core_63_each_key_belongs_to_exactly_one_scheduler() {
        let divisions = [Division::new("s-0", 2), Division::new("s-1", 2)];
        assert!(divisions.iter().all(|division| division.ring.len() == 40));
        let mut n_ours = [0; 2];
        for index in 0..500 {
            let key = format!("job-{index}");
            let owners: Vec<usize> = (0..2).filter(|&which| divisions[which].owns(&key)).collect();
            assert_eq!(owners.len(), 1, "{key}: {owners:?}");
            assert_eq!(owner_by_walk(2, &key), format!("s-{}", owners[0]), "{key}");
            n_ours[owners[0]] += 1;
        }
        assert!(n_ours.iter().all(|&count| 50 < count), "{n_ours:?}");
    }

    #[test]
    fn a_name_that_is_not_on_the_ring_owns_nothing() {
        for (name, n_schedulers) in [("s-2", 2), ("s", 1), ("", 1), ("s-0", 0)] {
            let division = Division::new(name, n_schedulers);
            assert!(!division.is_member() && !division.owns("n1"), "{name:?} of {n_schedulers}");
        }
        assert!(Division::new("s-0", 1).owns("n1"));
    }

    #[test]
    fn a_key_belongs_to_the_first_point_that_is_greater() {
        let hash = crc32(b"a");
        for (points, owner) in [
            ([5, hash - 1], "s-0"),
            ([5, hash], "s-0"),
            ([5, hash + 1], "s-1"),
            ([hash, hash + 1], "s-1"),
        ] {
            let ring = [(points[0], "s-0".into()), (points[1], "s-1".into())].into();
            let division = Division { ours: "s-0".into(), ring };
            assert_eq!(division.owner("a"), Some(owner), "{points:?}");
        }
    }
}
