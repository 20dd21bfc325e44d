//! A CPU profile: where the process was when its timer rang.

use pprof::Report;

use super::proto::Profile;

/// In pprof's format.
pub(super) fn encode(report: &Report) -> Vec<u8> {
    let timing = &report.timing;
    let period = 1_000_000_000 / i64::from(timing.frequency.max(1));
    let mut profile = Profile::new(&[("samples", "count"), ("cpu", "nanoseconds")]);
    for (frames, &count) in &report.data {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let symbols = frames.frames.iter().flatten();
        let locations = symbols.map(|symbol| profile.location(symbol)).collect();
        profile.sample(locations, &[count, count.saturating_mul(period)]);
    }
    profile.time(timing.start_time, timing.duration.as_nanos());
    profile.period("cpu", "nanoseconds", period);
    profile.finish()
}
