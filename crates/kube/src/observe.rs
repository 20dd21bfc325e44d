//! What the edge tells the metrics: one method per fact, each of which may be left out.
//! Specification: core.md 9; this crate does not know how they are counted.

use std::time::Duration;

use vc_engine::Report;

/// Somebody who counts. Called from any thread; must not block.
pub trait Observer: Send + Sync {
    /// A cycle has ended.
    fn cycle(&self, _report: &Report, _took: Duration) {}

    /// Everything is listed, cycles start.
    fn synced(&self) {}

    /// A request that changes something was answered; code 0: it was not.
    fn api_write(&self, _verb: &'static str, _resource: &str, _code: u16) {}

    /// A watch was interrupted.
    fn watch_restart(&self, _kind: &'static str) {}

    /// So many objects of the kind are known.
    fn objects(&self, _kind: &'static str, _n_objects: usize) {}

    /// A pod has reached this stage so long after it was created.
    fn task_stage(&self, _stage: &'static str, _since_creation: Duration) {}

    /// Something that cannot happen has happened.
    fn internal_error(&self, _kind: &'static str) {}
}

/// Nobody counts.
#[derive(Clone, Copy, Debug)]
pub struct Unobserved;

impl Observer for Unobserved {}
