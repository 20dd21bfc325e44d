//! Where facts about the process meet: readiness, and what the metrics are told. Specification:
//! core.md 1.2 (C-03), 1.8, 9.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use vc_engine::Report;
use vc_kube::Observer;

/// Exit code of a failed assertion that is to end the process: that of a Go panic.
const PANIC: i32 = 2;

/// How far the process is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Starting,
    /// Not the leader.
    Standby {
        /// The last attempt to get the Lease was answered.
        connected: bool,
    },
    /// The leader, or alone.
    Leading {
        /// Everything is listed, cycles run.
        synced: bool,
    },
}

impl State {
    /// Leader and synced, or standby and connected.
    pub fn is_ready(self) -> bool {
        matches!(self, Self::Standby { connected: true } | Self::Leading { synced: true })
    }
}

impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Starting => "starting",
            Self::Standby { connected: true } => "standby",
            Self::Standby { connected: false } => "standby, not connected",
            Self::Leading { synced: true } => "leading",
            Self::Leading { synced: false } => "leading, not synced",
        })
    }
}

/// The facts.
#[derive(Default)]
pub struct Meter {
    /// How far the process is; may be waited for.
    pub state: watch::Sender<State>,
    fatal_assertions: bool,
    reload_failures: AtomicU64,
}

impl Meter {
    /// With `PANIC_ON_ERROR=true` the first internal error ends the process.
    pub fn new(fatal_assertions: bool) -> Self {
        Self { fatal_assertions, ..Self::default() }
    }

    /// The text of `/metrics`.
    pub fn text(&self) -> String {
        String::new()
    }

    pub(crate) fn reload_failure(&self) {
        self.reload_failures.fetch_add(1, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn reload_failures(&self) -> u64 {
        self.reload_failures.load(Ordering::Relaxed)
    }

    pub(crate) fn config_warnings(&self, _n_warnings: usize) {}
}

impl Observer for Meter {
    fn cycle(&self, _report: &Report, _took: Duration) {}

    fn synced(&self) {
        self.state.send_replace(State::Leading { synced: true });
    }

    fn internal_error(&self, kind: &'static str) {
        tracing::error!(kind, "internal error");
        if self.fatal_assertions {
            tracing::error!("PANIC_ON_ERROR=true: the process ends");
            std::process::exit(PANIC);
        }
    }
}
