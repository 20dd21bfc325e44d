//! What the edge tells the metrics: one method per fact, each of which may be left out.
//! Specification: core.md 9; this crate does not know how they are counted.

use std::time::Duration;

use vc_engine::{CycleTime, Engine, Report};

use crate::unreadable::KindRefusal;

/// Somebody who counts. Called from any thread; must not block.
pub trait Observer: Send + Sync {
    /// A cycle has ended.
    fn cycle(&self, _report: &Report) {}

    /// A cycle at this time has decided what the report says. The engine is as it was left.
    fn decided(&self, _engine: &Engine, _report: &Report, _now: CycleTime) {}

    /// Everything is listed, cycles start.
    fn synced(&self) {}

    /// A request that changes something was answered; code 0: it was not.
    fn api_write(&self, _verb: &str, _resource: &str, _code: u16) {}

    /// Any request was answered; code 0: it was not.
    fn request(&self, _method: &str, _host: &str, _code: u16, _took: Duration) {}

    /// A watch was interrupted.
    fn watch_restart(&self, _kind: &'static str) {}

    /// A kind cannot be read: an optional one counts as "there are none", a required one is waited
    /// for.
    fn kind_refused(&self, _refusal: &KindRefusal) {}

    /// A kind can be read that was refused before; `resource` is its plural name.
    fn kind_readable(&self, _resource: &'static str) {}

    /// So many objects of the kind are known.
    fn objects(&self, _kind: &'static str, _n_objects: usize) {}

    /// A pod without a node has come, so long after it was created, for the scheduler of this name.
    fn watched(&self, _scheduler: &str, _since_creation: Duration) {}

    /// A pod has reached this stage so long after it was created.
    fn task_stage(&self, _stage: &'static str, _since_creation: Duration) {}

    /// A stage of the scheduling of a pod took so long.
    fn stage(&self, _stage: &'static str, _took: Duration) {}

    /// A load source gave the loads of so many nodes, and none of so many others.
    fn loads_read(&self, _source: &'static str, _n_read: usize, _n_missing: usize) {}

    /// A round of a load source brought nothing.
    fn loads_failed(&self, _source: &'static str, _cause: &'static str) {}

    /// The load source is no longer read.
    fn loads_stopped(&self) {}

    /// Something in an object of the kind could not be read.
    fn malformed(&self, _kind: &'static str) {}

    /// The usage of fairshare was written, or not: `written`, `conflict`, `failed`.
    fn usage_saved(&self, _result: &'static str) {}

    /// A pod that we were about to bind is bound already, by somebody else.
    fn foreign_bind(&self) {}

    /// The API server's clock is so many seconds ahead of ours.
    fn clock_skew(&self, _seconds: i64) {}

    /// A table of the writers has so many values, or bytes if its name ends with `_bytes`. Called once a minute
    /// for each. Names of caches begin with `cache.`.
    fn table_size(&self, _table: &'static str, _size: usize) {}

    /// Something that cannot happen has happened.
    fn internal_error(&self, _kind: &'static str) {}
}

/// Nobody counts.
#[derive(Clone, Copy, Debug)]
pub struct Unobserved;

impl Observer for Unobserved {}
