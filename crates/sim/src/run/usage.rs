//! Usage of accounts as `vcsim run` prints it. Specification: fair-share.md 13.

use serde::Serialize;

/// An account of a queue with what it has used by the last cycle.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountUseOutput {
    pub queue: String,
    pub account: String,
    /// Name of the resource, or `weighted resources`.
    pub charged: String,
    /// Cpus, GiB or pieces that its pods hold.
    pub running: f64,
    /// Units times hours.
    pub used_hours: f64,
    /// The same at the entry horizon, if nothing changes.
    pub projected_hours: f64,
    pub weight: f64,
    /// Above 1: served first. `None`: it has used nothing.
    pub level: Option<f64>,
    pub waiting_jobs: usize,
}

impl From<&vc_engine::AccountUse> for AccountUseOutput {
    fn from(usage: &vc_engine::AccountUse) -> Self {
        Self {
            queue: usage.queue.to_string(),
            account: usage.account.to_string(),
            charged: usage.charged.clone(),
            running: rounded(usage.running),
            used_hours: rounded(usage.used_hours),
            projected_hours: rounded(usage.projected_hours),
            weight: rounded(usage.weight),
            level: usage.level.map(rounded),
            waiting_jobs: usage.n_waiting_jobs,
        }
    }
}

/// Rounds a number to three decimal places.
fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

impl AccountUseOutput {
    pub(super) fn row(&self) -> [String; 9] {
        [
            self.queue.clone(),
            self.account.clone(),
            self.charged.clone(),
            self.running.to_string(),
            format!("{:.2} h", self.used_hours),
            format!("{:.2} h", self.projected_hours),
            self.weight.to_string(),
            self.level.map_or("-".to_owned(), |level| format!("{level:.2}")),
            self.waiting_jobs.to_string(),
        ]
    }
}
