//! What the scheduler's process costs: CPU time and memory as Linux tells them, and its writes to
//! the API server as its metrics tell them.

use std::collections::BTreeMap;

use super::client::Client;
use super::{LoadAccess, LoadError};

/// Clock ticks per second in `/proc`, the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// A process of this machine.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerProcess {
    /// Its number.
    pub pid: u32,
}

impl SchedulerProcess {
    /// CPU seconds of user and kernel so far; absent when there is no such process.
    pub fn cpu_seconds(self) -> Option<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        // The name stands in parentheses and may hold anything.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut ticks = fields.split_whitespace().skip(11).map(str::parse::<f64>);
        let (user, kernel) = (ticks.next()?.ok()?, ticks.next()?.ok()?);
        Some((user + kernel) / TICKS_PER_SECOND)
    }

    /// Resident memory in KiB; absent when there is no such process.
    pub fn resident_kib(self) -> Option<u64> {
        crate::soak::resident_kib(&self.pid.to_string()).ok()
    }

    /// Peak resident memory in MiB; absent when there is no such process.
    pub fn peak_mib(self) -> Option<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
        Some(kib / 1024.0)
    }
}

/// Returns the text at a URL like `http://127.0.0.1:8080/metrics`.
///
/// # Errors
/// Nobody answers there.
pub async fn metrics(url: &str) -> Result<String, LoadError> {
    let wrong = || LoadError::Address(url.to_owned());
    let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, "metrics"));
    let access = LoadAccess::plain(&format!("http://{authority}"))?;
    Client::new(access).connection().text(&format!("/{path}")).await
}

/// Answered writes of a scheduler by resource, from its `/metrics`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WriteCounts {
    /// `pods/binding` and so on to the number of requests, successful or not.
    pub by_resource: BTreeMap<String, u64>,
}

impl WriteCounts {
    /// Reads `volcano_api_writes_total` at a URL like `http://127.0.0.1:8080/metrics`.
    ///
    /// # Errors
    /// Nobody answers there.
    pub async fn scrape(url: &str) -> Result<WriteCounts, LoadError> {
        metrics(url).await.map(|text| WriteCounts::of(&text))
    }

    /// Reads the text of the metrics.
    pub fn of(text: &str) -> WriteCounts {
        let mut writes = WriteCounts::default();
        for line in text.lines() {
            let Some(rest) = line.strip_prefix("volcano_api_writes_total{") else { continue };
            let Some((labels, value)) = rest.rsplit_once("} ") else { continue };
            let resource = labels.split("resource=\"").nth(1).and_then(|it| it.split('"').next());
            if let (Some(resource), Ok(value)) = (resource, value.parse::<f64>()) {
                *writes.by_resource.entry(resource.to_owned()).or_default() += value as u64;
            }
        }
        writes
    }

    /// What came since an earlier reading.
    #[must_use]
    pub fn since(&self, before: &WriteCounts) -> WriteCounts {
        let left = |(name, count): (&String, &u64)| {
            let before = before.by_resource.get(name).copied().unwrap_or_default();
            (name.clone(), count.saturating_sub(before))
        };
        let by_resource = self.by_resource.iter().map(left).filter(|(_, count)| 0 < *count);
        WriteCounts { by_resource: by_resource.collect() }
    }

    /// All but events, which are best effort, and the leader's Lease.
    pub fn n_objects(&self) -> u64 {
        let counts = |(name, _): &(&String, &u64)| !matches!(name.as_str(), "events" | "leases");
        self.by_resource.iter().filter(counts).map(|(_, count)| count).sum()
    }

    /// Those of events.
    pub fn n_events(&self) -> u64 {
        self.by_resource.get("events").copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_cpu_and_memory() {
        let this = SchedulerProcess { pid: std::process::id() };
        assert!(this.cpu_seconds().is_some_and(|seconds| 0.0 <= seconds));
        assert!(this.peak_mib().is_some_and(|mib| 1.0 < mib));
        assert!(SchedulerProcess { pid: u32::MAX }.cpu_seconds().is_none());
    }

    #[test]
    fn writes_are_read_by_resource() {
        let text = "# TYPE volcano_api_writes_total counter\n\
            volcano_api_writes_total{code=\"201\",resource=\"pods/binding\",verb=\"create\"} 90\n\
            volcano_api_writes_total{code=\"409\",resource=\"pods/binding\",verb=\"create\"} 1\n\
            volcano_api_writes_total{code=\"200\",resource=\"podgroups\",verb=\"update\"} 20\n\
            volcano_api_writes_total{code=\"201\",resource=\"events\",verb=\"create\"} 7\n\
            volcano_objects{kind=\"pods\"} 5\n";
        let writes = WriteCounts::of(text);
        assert_eq!((writes.n_objects(), writes.n_events()), (111, 7));
        let before = WriteCounts {
            by_resource: BTreeMap::from([("podgroups".into(), 20), ("events".into(), 6)]),
        };
        let since = writes.since(&before);
        assert_eq!(
            since.by_resource,
            BTreeMap::from([("events".into(), 1), ("pods/binding".into(), 91)])
        );
    }
}
