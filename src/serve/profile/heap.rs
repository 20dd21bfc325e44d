//! A heap profile: where what was allocated since the start, and what is still in use, was
//! allocated. The numbers are estimates from samples, scaled up.

use std::collections::HashMap;
use std::time::SystemTime;

use super::proto::{Profile, SourceLine};
use crate::heap::{HeapAmounts, RATE, is_ours, resolve, sites};

/// As Go names them; the last is what `go tool pprof` shows.
const VALUES: [(&str, &str); 4] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
];

/// In pprof's format.
pub(super) fn encode() -> Vec<u8> {
    let mut profile = Profile::new(&VALUES);
    let mut known = HashMap::<usize, Vec<u64>>::new();
    for (stack, amounts) in sites() {
        let mut locations = Vec::new();
        for address in stack {
            let lines = known.entry(address).or_insert_with(|| lines(&mut profile, address));
            locations.extend_from_slice(lines);
        }
        profile.sample(locations, &values(amounts));
    }
    profile.time(SystemTime::now(), 0);
    profile.period("space", "bytes", i64::try_from(RATE).unwrap_or(i64::MAX));
    profile.finish()
}

/// Locations of the functions at an address; those of the allocator itself are left out.
fn lines(profile: &mut Profile, address: usize) -> Vec<u64> {
    let mut lines = Vec::new();
    resolve(address, |symbol| {
        // `#` leaves out the hash behind the name.
        let function = symbol.name().map_or("Unknown".to_owned(), |name| format!("{name:#}"));
        if is_ours(&function) {
            return;
        }
        let file = symbol.filename().map(|file| file.to_string_lossy().into_owned());
        lines.push(profile.location(&SourceLine {
            function,
            file: file.unwrap_or("Unknown".to_owned()),
            line: symbol.lineno().unwrap_or(0),
        }));
    });
    lines
}

fn values(amounts: HeapAmounts) -> [i64; 4] {
    let HeapAmounts { alloc_objects, alloc_bytes, inuse_objects, inuse_bytes } = amounts;
    // Sums of estimates may end a little below nothing.
    [alloc_objects, alloc_bytes, inuse_objects, inuse_bytes].map(|value| value.max(0.0) as i64)
}
