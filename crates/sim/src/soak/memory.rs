//! The memory of this process, as Linux tells it.

use std::io;

/// Returns the resident memory in KiB. It is exact, where `/proc/self/statm` may lag behind.
pub(super) fn resident_kib() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup")?;
    resident_of(&text).ok_or_else(|| io::Error::other("/proc/self/smaps_rollup has no line Rss"))
}

fn resident_of(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resident_memory_is_read() {
        let text = "5604a1e0b000-7ffe [rollup]\nRss:                 812 kB\nPss: 9 kB\n";
        assert_eq!(resident_of(text), Some(812));
        assert_eq!(resident_of("Pss: 9 kB\n"), None);
    }
}
