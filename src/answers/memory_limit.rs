//! How much history the memory limit of the process leaves room for. Specification: answers.md 16.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of one MiB.
const MIB: usize = 1 << 20;
/// Limits from here on mean that there is none: cgroup v1 states one of nearly 8 EiB.
const UNLIMITED: u64 = 1 << 60;

/// Returns the bytes of history that are kept: as many as the flag says, at most half of the memory
/// limit of this process. Logs a warning if that is less.
pub(super) fn history_bytes(history_mib: usize) -> usize {
    let limit = memory_limit();
    let bytes = limited_history(history_mib, limit);
    if bytes < history_mib.saturating_mul(MIB) {
        let (half_mib, limit_mib) = (bytes / MIB, limit.unwrap_or_default() >> 20);
        tracing::warn!(
            "the history of inputs takes at most {half_mib} MiB, which is half of the memory limit of \
             {limit_mib} MiB, and not {history_mib} MiB\n\
             hint: lower --answers-history-mib, or raise the memory limit of the container"
        );
    }
    bytes
}

/// Returns the bytes of history that are kept under a memory limit in bytes.
fn limited_history(history_mib: usize, limit: Option<u64>) -> usize {
    let half = limit.map_or(usize::MAX, |limit| usize::try_from(limit / 2).unwrap_or(usize::MAX));
    history_mib.saturating_mul(MIB).min(half)
}

/// Returns the memory limit of the cgroup of this process in bytes. Returns `None` if there is none.
fn memory_limit() -> Option<u64> {
    let read = |file: &Path| fs::read_to_string(file).ok();
    smallest_limit(&read(Path::new("/proc/self/cgroup"))?, read)
}

/// Returns the smallest limit of the cgroups in a text like that of `/proc/self/cgroup`, and of those
/// around them. `read` returns the content of a file.
fn smallest_limit(cgroups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    limit_files(cgroups).iter().filter_map(|file| limit(&read(file)?)).min()
}

/// Returns the files that may hold a limit. A container often sees its own cgroup as the root of the
/// mount, while the text has its path on the machine: not all of the files exist.
fn limit_files(cgroups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in cgroups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(id), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let is_of_memory = controllers.split(',').any(|controller| controller == "memory");
        let (mount, name) = match (id, controllers) {
            ("0", "") => ("/sys/fs/cgroup", "memory.max"),
            _ if is_of_memory => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        let path = Path::new(path.trim_start_matches('/'));
        files.extend(path.ancestors().map(|cgroup| Path::new(mount).join(cgroup).join(name)));
    }
    files
}

/// Returns the limit in the content of such a file, in bytes. Returns `None` for `max`, and for a number
/// that means the same.
fn limit(content: &str) -> Option<u64> {
    content.trim().parse::<u64>().ok().filter(|limit| *limit < UNLIMITED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_memory_limit_is_used_for_history() {
        let limit_mib = |mib: u64| Some(mib << 20);
        assert_eq!(limited_history(64, None), 64 << 20);
        assert_eq!(limited_history(64, limit_mib(256)), 64 << 20);
        assert_eq!(limited_history(64, limit_mib(128)), 64 << 20, "just fits");
        assert_eq!(limited_history(64, limit_mib(100)), 50 << 20);
        assert_eq!(limited_history(0, limit_mib(1)), 0);
        assert_eq!(limited_history(usize::MAX, None), usize::MAX);
    }

    #[test]
    fn a_limit_is_a_number_of_bytes() {
        assert_eq!(limit("268435456\n"), Some(256 << 20));
        for unlimited in ["max\n", "9223372036854771712\n", "", "-1", "99999999999999999999"] {
            assert_eq!(limit(unlimited), None, "{unlimited}");
        }
    }

    /// The files that a test has in place of the cgroup's: path and contents of each.
    type Files = &'static [(&'static str, &'static str)];

    #[test]
    fn the_smallest_limit_of_the_cgroups_around_a_process_counts() {
        let v2 = "0::/kubepods/pod:1\n";
        let v1 =
            "9:name=systemd:/x\n5:cpu,memory:/kubepods\n3:memory_of_others:/y\nno line\n0::/\n";
        let cases: [(&str, Files, Option<u64>); 6] = [
            (v2, &[], None),
            (v2, &[("/sys/fs/cgroup/memory.max", "7")], Some(7)),
            (
                v2,
                &[
                    ("/sys/fs/cgroup/kubepods/pod:1/memory.max", "max"),
                    ("/sys/fs/cgroup/kubepods/memory.max", "9"),
                ],
                Some(9),
            ),
            (v1, &[("/sys/fs/cgroup/memory/memory.limit_in_bytes", "8")], Some(8)),
            (
                v1,
                &[
                    ("/sys/fs/cgroup/memory/kubepods/memory.limit_in_bytes", "5"),
                    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
                    ("/sys/fs/cgroup/memory/y/memory.limit_in_bytes", "1"),
                ],
                Some(5),
            ),
            ("", &[("/sys/fs/cgroup/memory.max", "7")], None),
        ];
        for (cgroups, files, expected) in cases {
            let read = |path: &Path| {
                let file = files.iter().find(|(name, _)| Path::new(name) == path);
                file.map(|(_, content)| (*content).to_owned())
            };
            assert_eq!(smallest_limit(cgroups, read), expected, "{cgroups} {files:?}");
        }
    }
}
