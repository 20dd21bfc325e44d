//! Series of the usage that `fairshare` remembers. Usage fades all the time, so its value is
//! computed at the scrape. Specification: fair-share.md 13.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use vc_engine::{FairshareUsage, Sample};

use crate::text;

const USAGE: &str = "volcano_namespace_decayed_usage";
const SHARE: &str = "volcano_namespace_share";
const MICROS_PER_SECOND: f64 = 1e6;

/// Values by queue and namespace.
#[derive(Debug, Default)]
pub(crate) struct UsageSeries {
    usages: BTreeMap<(Arc<str>, Arc<str>), FairshareUsage>,
    shares: BTreeMap<(Arc<str>, Arc<str>), f64>,
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
            Sample::FairshareGone { queue, account } => {
                let key = (queue.clone(), account.clone());
                self.usages.remove(&key);
                self.shares.remove(&key);
            }
            Sample::QueueGone(name) => {
                self.usages.retain(|(queue, _), _| queue != name);
                self.shares.retain(|(queue, _), _| queue != name);
            }
            _ => {}
        }
    }

    pub(crate) fn write(&self, out: &mut String, now: SystemTime) {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as f64;
        let usages = self.usages.iter().map(|(key, usage)| (key, usage_at(usage, now)));
        write_one(out, USAGE, usages);
        write_one(out, SHARE, self.shares.iter().map(|(key, &share)| (key, share)));
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
