//! Bundles: what an engine was given in the last minutes, as one file, and its replay. An engine is a
//! function of its state and its inputs, so whoever has both decides the same again.
//! Specification: answers.md 15.
//!
//! - [`History`] keeps the inputs in memory: checkpoints of the state, and what came after each.
//! - [`BundleWriter`] makes a file of it.
//! - [`Bundle`] reads such a file, and [`Replay`] runs it. [`Bundle::renamed`] replaces its texts.

mod archive;
mod effect_line;
mod history;
mod manifest;
mod plugin_states;
mod rename;
mod replay;
mod texts;

pub use archive::{Bundle, BundleError, BundleWriter, CompressedFile};
pub use effect_line::effect_line;
pub use history::{EncodedCheckpoint, History, HistoryCopy, SegmentId, encode_checkpoint};
pub use manifest::{FORMAT, Manifest, OBJECTS};
pub use rename::Renaming;
pub use replay::{Replay, ReplayStep, difference};
pub use texts::{TextChange, TextPlace};

use serde::{Deserialize, Serialize};
use vc_engine::{EngineBatch, EngineCommand};

/// One input of an engine: events with the effects that followed, or a command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RecordedInput {
    /// Events, and the effects that followed.
    Batch {
        /// The events.
        batch: EngineBatch,
        /// The effects, one line each, as [`effect_line`] returns them.
        effect_lines: Vec<String>,
    },
    /// A change that is no event.
    Command(EngineCommand),
}
