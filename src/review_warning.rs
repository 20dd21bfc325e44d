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
