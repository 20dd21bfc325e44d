//! The metrics `process_*`, read from `/proc/self` when they are scraped. Specification: core.md 9.
//! The collector of the crate prometheus is not used: its reader of `/proc` brings four more crates.

use std::fs;

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Counter, IntGauge};

/// Unit of times in `/proc`, a constant of Linux (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;
/// Number of the field of `/proc/self/stat` that stands behind the name of the program.
const FIRST_FIELD: usize = 3;

/// The collector of the calling process.
pub(crate) struct ProcessMetrics {
    cpu_seconds: Counter,
    open_fds: IntGauge,
    max_fds: IntGauge,
    virtual_bytes: IntGauge,
    resident_bytes: IntGauge,
    start_seconds: IntGauge,
    threads: IntGauge,
}

/// What the kernel says of a process.
#[derive(Debug, PartialEq)]
struct ProcessStat {
    cpu_seconds: f64,
    threads: i64,
    /// From the boot of the machine on.
    start_seconds: f64,
    virtual_bytes: i64,
}

impl ProcessMetrics {
    pub(crate) fn new() -> prometheus::Result<Self> {
        Ok(Self {
            cpu_seconds: Counter::new("process_cpu_seconds_total", "CPU time used, in seconds")?,
            open_fds: IntGauge::new("process_open_fds", "Open file descriptors")?,
            max_fds: IntGauge::new("process_max_fds", "Largest number of open file descriptors")?,
            virtual_bytes: IntGauge::new("process_virtual_memory_bytes", "Virtual memory")?,
            resident_bytes: IntGauge::new("process_resident_memory_bytes", "Resident memory")?,
            start_seconds: IntGauge::new(
                "process_start_time_seconds",
                "Start of the process, in seconds since 1970",
            )?,
            threads: IntGauge::new("process_threads", "Threads of the process")?,
        })
    }

    /// Reads all values anew. One that cannot be read stays as it is.
    fn refresh(&self) {
        let read = |name: &str| fs::read_to_string(format!("/proc/{name}")).unwrap_or_default();
        if let Some(stat) = parse_stat(&read("self/stat")) {
            // Another scrape may have added the same time in between.
            self.cpu_seconds.inc_by((stat.cpu_seconds - self.cpu_seconds.get()).max(0.0));
            self.threads.set(stat.threads);
            self.virtual_bytes.set(stat.virtual_bytes);
            if let Some(boot) = number_behind(&read("stat"), "btime") {
                self.start_seconds.set(boot + stat.start_seconds as i64);
            }
        }
        if let Some(kilobytes) = number_behind(&read("self/status"), "VmRSS:") {
            self.resident_bytes.set(kilobytes.saturating_mul(1024));
        }
        if let Some(limit) = number_behind(&read("self/limits"), "Max open files") {
            self.max_fds.set(limit);
        }
        if let Ok(entries) = fs::read_dir("/proc/self/fd") {
            // One of them is the folder that is read.
            self.open_fds.set(i64::try_from(entries.count()).unwrap_or(i64::MAX).max(1) - 1);
        }
    }

    fn collectors(&self) -> [&dyn Collector; 7] {
        [
            &self.cpu_seconds,
            &self.open_fds,
            &self.max_fds,
            &self.virtual_bytes,
            &self.resident_bytes,
            &self.start_seconds,
            &self.threads,
        ]
    }
}

impl Collector for ProcessMetrics {
    fn desc(&self) -> Vec<&Desc> {
        self.collectors().into_iter().flat_map(|metric| metric.desc()).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.refresh();
        self.collectors().into_iter().flat_map(|metric| metric.collect()).collect()
    }
}

/// Reads the text of `/proc/self/stat`. The name of the program may hold spaces and brackets; its
/// last `)` ends it. `None`: the text is something else.
fn parse_stat(text: &str) -> Option<ProcessStat> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - FIRST_FIELD)?.parse::<i64>().ok();
    let seconds = |ticks: i64| ticks as f64 / TICKS_PER_SECOND;
    Some(ProcessStat {
        cpu_seconds: seconds(field(14)?.saturating_add(field(15)?)),
        threads: field(20)?,
        start_seconds: seconds(field(22)?),
        virtual_bytes: field(23)?,
    })
}

/// The first number behind this beginning of a line. `None`: there is no such line, or no number in it.
fn number_behind(text: &str, beginning: &str) -> Option<i64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(beginning))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_program_may_hold_anything() {
        let text = "7 (a) b (c) R 1 2 3 4 5 6 7 8 9 10 250 50 13 14 15 16 9 18 4200 8192 21";
        let wanted =
            ProcessStat { cpu_seconds: 3.0, threads: 9, start_seconds: 42.0, virtual_bytes: 8192 };
        assert_eq!(parse_stat(text), Some(wanted));
        assert_eq!(parse_stat("7 (a) R 1 2"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn numbers_are_found_by_the_beginning_of_their_line() {
        let text = "VmPeak:  9 kB\nVmRSS:\t 12 kB\nMax open files  1024  4096  files\n";
        assert_eq!(number_behind(text, "VmRSS:"), Some(12));
        assert_eq!(number_behind(text, "Max open files"), Some(1024));
        assert_eq!(number_behind(text, "btime"), None);
        assert_eq!(number_behind("Max open files  unlimited", "Max open files"), None);
    }

    #[test]
    fn this_process_has_all_of_them() {
        let metrics = ProcessMetrics::new().unwrap();
        let families = metrics.collect();
        assert_eq!(families.len(), metrics.desc().len());
        let gauges = [&metrics.open_fds, &metrics.max_fds, &metrics.virtual_bytes];
        let others = [&metrics.resident_bytes, &metrics.threads];
        assert!(gauges.iter().chain(&others).all(|gauge| 0 < gauge.get()), "{families:?}");
        // The year 2020.
        assert!(1_577_836_800 < metrics.start_seconds.get(), "{families:?}");
    }
}
