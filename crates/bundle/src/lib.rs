//! Bundles: what an engine was given in the last minutes, as one file, and its replay. An engine is a
//! function of its state and its inputs, so whoever has both decides the same again.
//! Specification: answers.md 15.
//!
//! - [`History`] keeps the inputs in memory: checkpoints of the state, and what came after each.
//! - [`BundleWriter`] makes a file of it.
//! - [`Bundle`] reads such a file, and [`Replay`] runs it.

mod archive;
mod decided;
mod history;
mod manifest;
mod replay;

pub use archive::{Bundle, BundleError, BundleWriter};
pub use decided::decided_text;
pub use history::{EncodedCheckpoint, History, HistoryCopy, SegmentId, encode_checkpoint};
pub use manifest::{FORMAT, Manifest};
pub use replay::{Replay, ReplayStep, difference};

use serde::{Deserialize, Serialize};
use vc_engine::{EngineBatch, EngineCommand};

/// What an engine was given, and what came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RecordedInput {
    /// Events, and the effects that followed.
    Batch {
        /// The events.
        batch: EngineBatch,
        /// The effects, one line each, as [`decided_text`] returns them.
        decided: Vec<String>,
    },
    /// A change that is no event.
    Command(EngineCommand),
}
