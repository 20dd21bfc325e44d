//! A heap profile: where what was allocated since the start, and what is still in use, was
//! allocated. The numbers are estimates from samples, scaled up.

use std::time::SystemTime;

use super::lines::LocationCache;
use super::proto::Profile;
use crate::heap::{HeapAmounts, RATE, is_ours, sites};

/// As Go names them; the last is what `go tool pprof` shows.
const VALUES: [(&str, &str); 4] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
];

/// In pprof's format. Functions of the allocator itself are left out.
pub(super) fn encode() -> Vec<u8> {
    let mut profile = Profile::new(&VALUES);
    let mut cache = LocationCache::default();
    for (stack, amounts) in sites() {
        let mut locations = Vec::new();
        for address in stack {
            // The address is where the call returns to; one less is in the call.
            let address = address.saturating_sub(1) as u64;
            locations.extend_from_slice(cache.locations(&mut profile, address, is_ours));
        }
        profile.sample(locations, &values(amounts));
    }
    profile.time(SystemTime::now(), 0);
    profile.period("space", "bytes", i64::try_from(RATE).unwrap_or(i64::MAX));
    profile.finish()
}

fn values(amounts: HeapAmounts) -> [i64; 4] {
    let HeapAmounts { alloc_objects, alloc_bytes, inuse_objects, inuse_bytes } = amounts;
    // Sums of estimates may end a little below nothing.
    [alloc_objects, alloc_bytes, inuse_objects, inuse_bytes].map(|value| value.max(0.0) as i64)
}
