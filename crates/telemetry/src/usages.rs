//! Series of the usage that `fairshare` remembers. Usage fades all the time, so its value is
//! computed at the scrape. Specification: fair-share.md 13.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use vc_engine::{FairshareUsage, Sample};

use crate::text;

const USAGE: &str = "volcano_namespace_decayed_usage";
const SHARE: &str = "volcano_namespace_share";
const LEVEL: &str = "volcano_fairshare_level";
const MICROS_PER_SECOND: f64 = 1e6;

/// Values by queue and namespace.
#[derive(Debug, Default)]
pub(crate) struct UsageSeries {
    usages: BTreeMap<(Arc<str>, Arc<str>), FairshareUsage>,
    shares: BTreeMap<(Arc<str>, Arc<str>), f64>,
    /// Parent and weight by queue.
    queues: BTreeMap<Arc<str>, (Arc<str>, f64)>,
}

impl UsageSeries {
    pub(crate) fn take(&mut self, sample: &Sample) {
        match sample {
            Sample::FairshareUsage(usage) => {
                let key = (usage.queue.clone(), usage.account.clone());
                self.usages.insert(key, (**usage).clone());
            }
            Sample::FairshareShare { queue, account, share } => {
                self.shares.insert((queue.clone(), account.clone()), *share);
            }
            Sample::FairshareQueue { queue, parent, weight } => {
                self.queues.insert(queue.clone(), (parent.clone(), f64::from(*weight)));
            }
            Sample::FairshareGone { queue, account } => {
                let key = (queue.clone(), account.clone());
                self.usages.remove(&key);
                self.shares.remove(&key);
            }
            Sample::QueueGone(name) => {
                self.usages.retain(|(queue, _), _| queue != name);
                self.shares.retain(|(queue, _), _| queue != name);
                self.queues.remove(name);
            }
            _ => {}
        }
    }

    pub(crate) fn write(&self, out: &mut String, now: SystemTime) {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as f64;
        let usages = self.usages.iter().map(|(key, usage)| (key, usage_at(usage, now)));
        write_one(out, USAGE, usages);
        write_one(out, SHARE, self.shares.iter().map(|(key, &share)| (key, share)));
        let levels = self.levels(now);
        if !levels.is_empty() {
            text::begin(out, LEVEL);
        }
        for (queue, level) in levels {
            text::series(out, LEVEL, &[("queue_name", queue)], level);
        }
    }

    /// Returns for each queue that has used something its part in the weights of its siblings over
    /// its part of their usage. A queue counts with all queues below it.
    fn levels(&self, now: f64) -> BTreeMap<&str, f64> {
        let mut used: BTreeMap<&str, f64> = BTreeMap::new();
        for ((queue, _), usage) in &self.usages {
            let usage = usage_at(usage, now);
            let above = |queue: &str| self.queues.get(queue).map(|(parent, _)| &**parent);
            let up = |queue: &&str| above(queue).filter(|parent| parent != queue);
            let path = std::iter::successors(Some(&**queue), up);
            // Parents may form a cycle.
            path.take(self.queues.len()).for_each(|at| *used.entry(at).or_default() += usage);
        }
        let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for (queue, (parent, weight)) in self.queues.iter().filter(|(queue, _)| &***queue != "root")
        {
            let sum = sums.entry(parent).or_default();
            sum.0 += weight;
            sum.1 += used.get(&**queue).copied().unwrap_or_default();
        }
        let mut levels = BTreeMap::new();
        for (queue, (parent, weight)) in &self.queues {
            let used = used.get(&**queue).copied().filter(|&used| 0.0 < used);
            let sum = sums.get(&**parent).filter(|(weights, _)| 0.0 < *weights);
            if let (Some(used), Some((weights, usages))) = (used, sum)
                && &**queue != "root"
            {
                levels.insert(&**queue, (weight / weights) / (used / usages));
            }
        }
        levels
    }
}

/// Returns the usage at a time in microseconds since 1970, in charge times seconds.
fn usage_at(usage: &FairshareUsage, now: f64) -> f64 {
    let half_life = usage.half_life_micros as f64;
    let passed = (now - usage.since_micros as f64).max(0.0);
    let kept = (-passed / half_life).exp2();
    let level = usage.level * kept + usage.rate * (1.0 - kept);
    level * half_life / MICROS_PER_SECOND / std::f64::consts::LN_2
}

fn write_one<'a>(
    out: &mut String,
    name: &str,
    series: impl Iterator<Item = (&'a (Arc<str>, Arc<str>), f64)>,
) {
    let mut series = series.peekable();
    if series.peek().is_some() {
        text::begin(out, name);
    }
    for ((queue, account), value) in series {
        text::series(out, name, &[("namespace_name", account), ("queue", queue)], value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Example A of the specification: half-life 4 h, 8 GPUs from 0:00 to 4:00.
    #[test]
    fn fs_fading_half_life() {
        let hour = 3_600e6;
        let begun = FairshareUsage {
            queue: "q".into(),
            account: "a".into(),
            level: 0.0,
            rate: 8.0,
            since_micros: 0,
            half_life_micros: 4 * 3_600_000_000,
        };
        let gpu_hours = |usage: &FairshareUsage, hours: f64| {
            let found = usage_at(usage, hours * hour) / 3_600.0;
            (found * 100.0).round() / 100.0
        };
        assert_eq!(gpu_hours(&begun, 4.0), 23.08);
        let ended =
            FairshareUsage { level: 4.0, rate: 0.0, since_micros: 4 * 3_600_000_000, ..begun };
        assert_eq!([8.0, 24.0].map(|at| gpu_hours(&ended, at)), [11.54, 0.72]);
    }

    /// Two of three siblings have used something, one of them by its child.
    #[test]
    fn fs_level() {
        let mut series = UsageSeries::default();
        for (queue, parent, weight) in [
            ("root", "root", 1),
            ("a", "root", 1),
            ("b", "root", 2),
            ("c", "root", 1),
            ("b1", "b", 5),
        ] {
            let (queue, parent) = (queue.into(), parent.into());
            series.take(&Sample::FairshareQueue { queue, parent, weight });
        }
        for (queue, level) in [("a", 2.0), ("b1", 2.0)] {
            series.take(&Sample::FairshareUsage(Box::new(FairshareUsage {
                queue: queue.into(),
                account: "ns".into(),
                level,
                rate: 0.0,
                since_micros: 0,
                half_life_micros: 1_000_000,
            })));
        }
        let levels: Vec<(&str, f64)> = series.levels(0.0).into_iter().collect();
        assert_eq!(levels, [("a", 0.5), ("b", 1.0), ("b1", 1.0)]);
    }

    #[test]
    fn fs_metrics_end() {
        let mut series = UsageSeries::default();
        let of = |account: &str| FairshareUsage {
            queue: "q".into(),
            account: account.into(),
            level: 1.0,
            rate: 0.0,
            since_micros: 0,
            half_life_micros: 1_000_000,
        };
        series.take(&Sample::FairshareUsage(Box::new(of("a"))));
        series.take(&Sample::FairshareUsage(Box::new(of("b"))));
        let share = |account: &str| Sample::FairshareShare {
            queue: "q".into(),
            account: account.into(),
            share: 2.0,
        };
        series.take(&share("b"));
        let text = |series: &UsageSeries| {
            let mut text = String::new();
            series.write(&mut text, UNIX_EPOCH);
            text.lines().filter(|line| !line.starts_with('#')).count()
        };
        assert_eq!(text(&series), 3);
        series.take(&Sample::FairshareGone { queue: "q".into(), account: "a".into() });
        assert_eq!(text(&series), 2);
        series.take(&Sample::QueueGone("q".into()));
        assert_eq!(text(&series), 0);
    }
}
