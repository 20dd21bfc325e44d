//! Failed requests in the log: one line per kind and cause a minute, with the number of those that
//! were left out. An API server that goes away fails thousands of requests a second. Specification:
//! core.md 7.2.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How often a kind of failure with the same cause is logged.
pub(crate) const PERIOD: Duration = Duration::from_secs(60);
/// Causes of a kind that have lines of their own; further ones share a line.
const MOST_CAUSES: usize = 8;

/// What was logged in the last minute.
#[derive(Debug, Default)]
pub(crate) struct FailureLog(Mutex<BTreeMap<&'static str, FailureCauses>>);

/// Of one kind, by cause.
type FailureCauses = BTreeMap<String, FailureLine>;

#[derive(Debug)]
struct FailureLine {
    /// When the line was written last.
    written: Instant,
    /// Failures since then.
    n_more: u64,
    /// Text of the last one.
    last: String,
}

impl FailureLog {
    /// Logs the failure of a request, or counts it if one like it was logged less than a minute
    /// ago. `what` is the kind of failure, as in `pod not bound`.
    pub(crate) fn warn(&self, what: &'static str, object: impl Display, error: impl Display) {
        let error = error.to_string();
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let causes = log.entry(what).or_default();
        let mut cause = cause(&error);
        if MOST_CAUSES <= causes.len() && !causes.contains_key(&cause) {
            cause = String::new();
        }
        let (text, now) = (format!("{what}: {object}: {error}"), Instant::now());
        match causes.get_mut(&cause) {
            Some(line) if now < line.written + PERIOD => {
                line.n_more += 1;
                line.last = text;
            }
            Some(line) => {
                tracing::warn!("{}", counted(&text, line.n_more));
                *line = FailureLine { written: now, n_more: 0, last: String::new() };
            }
            None => {
                tracing::warn!("{text}");
                causes.insert(cause, FailureLine { written: now, n_more: 0, last: String::new() });
            }
        }
    }

    /// Logs what was counted and not logged for a minute; forgets kinds that no longer fail.
    pub(crate) fn flush(&self) {
        self.write(|line| line.written + PERIOD <= Instant::now());
    }

    /// Logs whatever was counted.
    pub(crate) fn flush_all(&self) {
        self.write(|_| true);
    }

    fn write(&self, is_due: impl Fn(&FailureLine) -> bool) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for causes in log.values_mut() {
            causes.retain(|_, line| {
                if !is_due(line) {
                    return true;
                }
                if 0 < line.n_more {
                    tracing::warn!("{}", counted(&line.last, line.n_more - 1));
                    line.written = Instant::now();
                }
                std::mem::take(&mut line.n_more) != 0
            });
        }
        log.retain(|_, causes| !causes.is_empty());
    }
}

fn counted(text: &str, n_more: u64) -> String {
    match n_more {
        0 => text.to_owned(),
        _ => format!("{text} (and {n_more} more like it since the last line)"),
    }
}

/// The text of an error without what differs from object to object: what is quoted, and words with
/// digits.
fn cause(error: &str) -> String {
    let outside = error.split('"').step_by(2).collect::<Vec<_>>().join("\"");
    let has_digit = |word: &&str| word.contains(|letter: char| letter.is_ascii_digit());
    let mask = |word: &str| if has_digit(&word) { "#" } else { word }.to_owned();
    outside.split_whitespace().map(mask).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_do_not_name_objects() {
        let cases = [
            (
                r#"pods "a-1" is forbidden: User "x" cannot create resource "pods/binding""#,
                r#"pods " is forbidden: User " cannot create resource ""#,
            ),
            ("pods p-7 not found in 12ms", "pods # not found in #"),
            ("tcp connect error", "tcp connect error"),
        ];
        for (error, wanted) in cases {
            assert_eq!(cause(error), wanted);
        }
    }

    /// Lines that are kept of one kind, and failures that wait for the next line of each.
    fn counts(log: &FailureLog) -> Vec<u64> {
        let log = log.0.lock().unwrap();
        log.values().flat_map(|causes| causes.values().map(|line| line.n_more)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_logged_once_a_minute_and_counted_meanwhile() {
        let log = FailureLog::default();
        for pod in 0..4000 {
            log.warn(
                "pod not bound",
                format!("ns/p-{pod}"),
                format!("pods \"p-{pod}\" is refused"),
            );
        }
        assert_eq!(counts(&log), [3999]);
        log.warn("pod not bound", "ns/q", "no answer");
        assert_eq!(counts(&log), [0, 3999], "another cause");
        log.flush();
        assert_eq!(counts(&log), [0, 3999]);
        tokio::time::advance(PERIOD).await;
        log.flush();
        assert_eq!(counts(&log), [0], "told, and the other cause is forgotten");
        tokio::time::advance(PERIOD).await;
        log.warn("pod not bound", "ns/p", "pods \"p\" is refused");
        assert_eq!(counts(&log), [0]);
    }

    #[tokio::test(start_paused = true)]
    async fn causes_are_bounded() {
        let log = FailureLog::default();
        for name in (b'a'..=b'z').map(char::from) {
            log.warn("pod not bound", "ns/p", format!("namespace {name} is being terminated"));
        }
        assert_eq!(counts(&log).len(), MOST_CAUSES + 1);
        assert_eq!(counts(&log)[0], 26 - MOST_CAUSES as u64 - 1);
    }
}
