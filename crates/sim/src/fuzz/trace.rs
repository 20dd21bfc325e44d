//! What happened in a story, line by line, for people and to compare two runs.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

/// Lines with the time of the story. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    start: Instant,
    lines: Arc<Mutex<Timeline>>,
}

/// The lines of a story.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline(pub Vec<String>);

impl Trace {
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), lines: Arc::default() }
    }

    /// Adds a line.
    pub(super) fn say(&self, text: impl fmt::Display) {
        let passed = self.start.elapsed();
        let line = format!("{:>5}.{:03} {text}", passed.as_secs(), passed.subsec_millis());
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).0.push(line);
    }

    /// Returns the lines so far.
    pub(super) fn timeline(&self) -> Timeline {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Timeline {
    /// Returns a number that tells two timelines apart (FNV-1a over the lines).
    pub fn digest(&self) -> u64 {
        let bytes = self.0.iter().flat_map(|line| line.bytes().chain([b'\n']));
        bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|line| writeln!(out, "{line}"))
    }
}
