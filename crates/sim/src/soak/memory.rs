//! The memory of a process, as Linux tells it.

use std::io;

/// Returns the resident memory in KiB of a process, by its number or `self`. It is exact, where
/// `/proc/PID/statm` may lag behind.
pub(crate) fn resident_kib(process: &str) -> io::Result<u64> {
    let file = format!("/proc/{process}/smaps_rollup");
    let text = std::fs::read_to_string(&file)?;
    resident_of(&text).ok_or_else(|| io::Error::other(format!("{file} has no line Rss")))
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
