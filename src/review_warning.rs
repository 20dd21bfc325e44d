//! The warning that the API server cannot be asked who asks.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use vc_kube::CallError;

/// Pause between two warnings: anybody can send a request.
const PAUSE: Duration = Duration::from_secs(60);

/// The time of the last warning.
#[derive(Default)]
pub(crate) struct ReviewWarning(Mutex<Option<Instant>>);

impl ReviewWarning {
    /// Logs why reviews fail, at most once a minute. `refused` says what follows.
    pub(crate) fn log(&self, refused: &str, error: &CallError) {
        let mut warned = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.is_none_or(|at| PAUSE <= at.elapsed()) {
            *warned = Some(Instant::now());
            tracing::warn!(
                "{refused}, because the API server cannot be asked who asks: {error}\n\
                 hint: grant create of tokenreviews (authentication.k8s.io) and \
                 subjectaccessreviews (authorization.k8s.io)"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::tests::logged;

    #[test]
    fn ans_76_many_requests_are_one_warning_a_minute() {
        let (warning, error) = (ReviewWarning::default(), CallError::TimedOut(PAUSE));
        let lines = logged(0, || {
            (0..1_000).for_each(|_| warning.log("nobody is let through", &error));
        });
        let expected = "nobody is let through, because the API server cannot be asked who asks: ";
        assert_eq!(lines.iter().filter(|line| line.contains(expected)).count(), 1, "{lines:?}");
        *warning.0.lock().unwrap() = Instant::now().checked_sub(PAUSE);
        let lines = logged(0, || warning.log("nobody is let through", &error));
        assert!(lines.iter().any(|line| line.contains(expected)), "{lines:?}");
    }
}
