//! What a load has shown: rates, times from creation to bind, the scheduler's CPU and writes per
//! pod, as a table and as a picture.

use std::time::{Duration, Instant};

use super::plot::{self, Curve};
use super::process::WriteCounts;
use super::{Quantiles, Workload, quantiles};

/// The times of a load, and what its scheduler has used.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// What was asked for.
    pub workload: Workload,
    /// Since when all times count.
    pub start: Instant,
    /// When the server said that a pod is created, by position.
    pub created: Vec<Option<Instant>>,
    /// When the watch said that it is bound, by position.
    pub bound: Vec<Option<Instant>>,
    /// How often a 429 was waited out.
    pub waits: u64,
    /// CPU seconds of the scheduler meanwhile, if its process is known.
    pub cpu_seconds: Option<f64>,
    /// Peak memory of the scheduler so far, in MiB.
    pub peak_mib: Option<f64>,
    /// Writes of the scheduler meanwhile, if its metrics are known.
    pub writes: Option<WriteCounts>,
}

/// A number of pods over a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PodRate {
    /// Pods.
    pub n_pods: usize,
    /// From the start to the first of them, in seconds.
    pub first: f64,
    /// From the start to the last of them, in seconds.
    pub last: f64,
}

impl PodRate {
    fn of(times: &[Option<Instant>], start: Instant) -> PodRate {
        let seconds = seconds(times, start);
        let (first, last) = (seconds.first().copied(), seconds.last().copied());
        PodRate {
            n_pods: seconds.len(),
            first: first.unwrap_or_default(),
            last: last.unwrap_or_default(),
        }
    }

    /// Per second, from the first to the last.
    pub fn rate(&self) -> f64 {
        self.n_pods.saturating_sub(1) as f64 / (self.last - self.first).max(1e-6)
    }
}

impl LoadReport {
    /// How pods were created.
    pub fn creation(&self) -> PodRate {
        PodRate::of(&self.created, self.start)
    }

    /// How pods were bound.
    pub fn binding(&self) -> PodRate {
        PodRate::of(&self.bound, self.start)
    }

    /// Seconds from the last creation to the last bind; absent unless all are bound.
    pub fn lag(&self) -> Option<f64> {
        let (created, bound) = (self.creation(), self.binding());
        (bound.n_pods == self.bound.len()).then_some((bound.last - created.last).max(0.0))
    }

    /// From creation to bind; absent when nothing was bound.
    pub fn waited(&self) -> Option<Quantiles> {
        let both = self.created.iter().zip(&self.bound);
        let waited = |(created, bound): (&Option<Instant>, &Option<Instant>)| {
            Some(bound.as_ref()?.saturating_duration_since((*created)?))
        };
        quantiles(&both.filter_map(waited).collect::<Vec<Duration>>())
    }

    /// CPU milliseconds of the scheduler per bound pod.
    pub fn cpu_ms_per_pod(&self) -> Option<f64> {
        let n_bound = self.binding().n_pods.max(1) as f64;
        self.cpu_seconds.map(|seconds| seconds * 1000.0 / n_bound)
    }

    /// Writes of the scheduler per bound pod, without events.
    pub fn writes_per_pod(&self) -> Option<f64> {
        let n_bound = self.binding().n_pods.max(1) as f64;
        self.writes.as_ref().map(|writes| writes.n_objects() as f64 / n_bound)
    }

    /// The table.
    pub fn lines(&self) -> Vec<String> {
        let Workload { nodes, gangs, size, .. } = &self.workload;
        let (created, bound) = (self.creation(), self.binding());
        let mut lines = vec![
            format!("workload            {gangs} gangs of {size} pods, {nodes} nodes created"),
            format!("created             {}", pace(created)),
        ];
        if 0 < self.waits {
            lines.push(format!("429 waited out      {} times", self.waits));
        }
        lines.push(format!("bound               {} of {}", pace(bound), self.bound.len()));
        lines.push(match self.lag() {
            Some(lag) => format!("last bind           {lag:.2} s after the last create"),
            None => format!("not bound           {}", self.bound.len() - bound.n_pods),
        });
        if let Some(Quantiles { p50, p99, max }) = self.waited() {
            let [p50, p99, max] = [p50, p99, max].map(|span| span.as_secs_f64() * 1000.0);
            let text = format!("p50 {p50:.1} ms, p99 {p99:.1} ms, longest {max:.1} ms");
            lines.push(format!("created to bound    {text}"));
        }
        lines.extend(self.costs());
        lines
    }

    fn costs(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let (Some(seconds), Some(per_pod)) = (self.cpu_seconds, self.cpu_ms_per_pod()) {
            lines.push(format!("scheduler CPU       {per_pod:.3} ms per pod, {seconds:.2} s"));
        }
        if let Some(mib) = self.peak_mib {
            lines.push(format!("scheduler memory    {mib:.0} MiB at most"));
        }
        if let (Some(writes), Some(per_pod)) = (&self.writes, self.writes_per_pod()) {
            let (objects, events) = (writes.n_objects(), writes.n_events());
            lines.push(format!("API writes          {per_pod:.3} per pod, {objects}"));
            for (resource, count) in &writes.by_resource {
                lines.push(format!("  {resource:<18}{count}"));
            }
            lines.extend((0 < events).then(|| "  (events not counted)".to_owned()));
        }
        lines
    }

    /// The creation curve and the bind curve.
    pub fn svg(&self) -> String {
        let Workload { gangs, size, .. } = &self.workload;
        let curve = |name, color, times| Curve { name, color, seconds: seconds(times, self.start) };
        plot::svg(
            &format!("{gangs} gangs of {size} pods"),
            &[curve("created", "#888888", &self.created), curve("bound", "#0066cc", &self.bound)],
        )
    }
}

fn pace(pace: PodRate) -> String {
    let PodRate { n_pods, first, last } = pace;
    match n_pods {
        0 => "0".to_owned(),
        _ => format!("{n_pods} from {first:.2} s to {last:.2} s, {:.0}/s", pace.rate()),
    }
}

/// Since the start, in order.
fn seconds(times: &[Option<Instant>], start: Instant) -> Vec<f64> {
    let since = |at: &Instant| at.saturating_duration_since(start).as_secs_f64();
    let mut seconds: Vec<f64> = times.iter().flatten().map(since).collect();
    seconds.sort_by(f64::total_cmp);
    seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> LoadReport {
        let start = Instant::now();
        let at = |millis: &[u64]| -> Vec<Option<Instant>> {
            millis.iter().map(|&millis| Some(start + Duration::from_millis(millis))).collect()
        };
        LoadReport {
            workload: Workload { gangs: 2, size: 2, nodes: 3, ..Workload::default() },
            start,
            created: at(&[100, 200, 300, 400]),
            bound: at(&[150, 260, 1300, 1400]),
            waits: 2,
            cpu_seconds: Some(0.01),
            peak_mib: Some(20.4),
            writes: Some(WriteCounts::of(
                "volcano_api_writes_total{resource=\"pods/binding\"} 4\n\
                 volcano_api_writes_total{resource=\"events\"} 4\n\
                 volcano_api_writes_total{resource=\"podgroups\"} 6\n",
            )),
        }
    }

    #[test]
    fn the_table_says_what_was_seen() {
        let wanted = [
            "workload            2 gangs of 2 pods, 3 nodes created",
            "created             4 from 0.10 s to 0.40 s, 10/s",
            "429 waited out      2 times",
            "bound               4 from 0.15 s to 1.40 s, 2/s of 4",
            "last bind           1.00 s after the last create",
            "created to bound    p50 60.0 ms, p99 1000.0 ms, longest 1000.0 ms",
            "scheduler CPU       2.500 ms per pod, 0.01 s",
            "scheduler memory    20 MiB at most",
            "API writes          2.500 per pod, 10",
            "  events            4",
            "  podgroups         6",
            "  pods/binding      4",
            "  (events not counted)",
        ];
        assert_eq!(report().lines(), wanted);
    }

    #[test]
    fn what_is_not_bound_is_said() {
        let mut report = LoadReport { writes: None, cpu_seconds: None, peak_mib: None, ..report() };
        report.bound[3] = None;
        assert_eq!(report.lag(), None);
        assert!(report.lines().contains(&"not bound           1".to_owned()));
        report.bound = vec![None; 4];
        assert_eq!(report.waited(), None);
        assert!(report.lines().contains(&"bound               0 of 4".to_owned()));
    }
}
