//! Session ids: UUIDs that follow from a seed and the number of the cycle. Specification: core.md
//! 5.1.

/// Returns the text of a version 4 UUID.
pub(crate) fn session_id(seed: u64, cycle: u64) -> String {
    let first = mix(seed ^ mix(cycle));
    let second = mix(first);
    let version = (first & 0xffff_ffff_ffff_0fff) | 0x4000;
    let variant = (second & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        version >> 32,
        (version >> 16) & 0xffff,
        version & 0xffff,
        variant >> 48,
        variant & 0xffff_ffff_ffff,
    )
}

/// One step of SplitMix64.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::session_id;

    #[test]
    fn ids_are_uuids_and_differ_by_cycle_and_seed() {
        let id = session_id(1, 1);
        let lengths: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(&id[14..15], "4");
        assert_eq!(id, session_id(1, 1));
        assert_ne!(id, session_id(1, 2));
        assert_ne!(id, session_id(2, 1));
    }
}
