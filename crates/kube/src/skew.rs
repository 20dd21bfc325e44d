//! How far the API server's clock is from ours, by the `Date` of its answers: ages, deadlines and
//! conditions mix both clocks. Elections do not (core.md 1.4). Told when it begins and when it
//! ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use http::HeaderMap;
use http::header::DATE;

use crate::observe::Observer;

/// Less is the way of the answer and the whole seconds of `Date`.
const TOLERATED_SECONDS: i64 = 5;

/// Whether the clocks were told to differ.
#[derive(Debug, Default)]
pub(crate) struct ClockSkew(AtomicBool);

impl ClockSkew {
    /// Compares the date of an answer with `now`.
    pub(crate) fn look(&self, headers: &HeaderMap, now: SystemTime, observer: &dyn Observer) {
        let Some(seconds) = ahead(headers, now) else { return };
        observer.clock_skew(seconds);
        let differs = TOLERATED_SECONDS < seconds.abs();
        if self.0.swap(differs, Ordering::Relaxed) == differs {
            return;
        }
        match differs {
            true => tracing::warn!(
                "clock of the API server: {seconds} s ahead of ours\n\
                 hint: ages and waiting times are off by that much; synchronise both clocks (NTP)"
            ),
            false => tracing::info!("clock of the API server: as ours again"),
        }
    }
}

/// Seconds by which the sender's clock is ahead.
fn ahead(headers: &HeaderMap, now: SystemTime) -> Option<i64> {
    let date = httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()?;
    let seconds = |time: std::time::Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Some(match date.duration_since(now) {
        Ok(later) => seconds(later),
        Err(earlier) => -seconds(earlier.duration()),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[derive(Default)]
    struct ReportedSkews(Mutex<Vec<i64>>);

    impl Observer for ReportedSkews {
        fn clock_skew(&self, seconds: i64) {
            self.0.lock().unwrap().push(seconds);
        }
    }

    #[test]
    fn a_clock_that_differs_is_told_once_and_measured_always() {
        let (skew, reported) = (ClockSkew::default(), ReportedSkews::default());
        let mut headers = HeaderMap::new();
        let now = |seconds: u64| UNIX_EPOCH + Duration::from_secs(784_111_777 + seconds);
        skew.look(&headers, now(0), &reported);
        headers.insert(DATE, "nonsense".parse().unwrap());
        skew.look(&headers, now(0), &reported);
        headers.insert(DATE, "Sun, 06 Nov 1994 08:49:37 GMT".parse().unwrap());
        let mut differs = Vec::new();
        for seconds in [0, 3, 60, 61, 1] {
            skew.look(&headers, now(seconds), &reported);
            differs.push(skew.0.load(Ordering::Relaxed));
        }
        assert_eq!(*reported.0.lock().unwrap(), [0, -3, -60, -61, -1]);
        assert_eq!(differs, [false, false, true, true, false]);
        headers.insert(DATE, "Sun, 06 Nov 1994 09:49:37 GMT".parse().unwrap());
        skew.look(&headers, now(0), &reported);
        assert_eq!(reported.0.lock().unwrap().last(), Some(&3600));
    }
}
