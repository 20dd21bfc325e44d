//! What an engine was given lately, compressed in memory, within a limit of bytes.
//! Specification: answers.md 15 (ANS-100, ANS-101).
//!
//! A segment is a checkpoint of the state and the inputs after it. A checkpoint takes time, so it is
//! made elsewhere, of a copy, while the inputs after it are recorded already.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use vc_engine::{Checkpoint, DecidingOptions, EngineCommand};

use crate::RecordedInput;

/// Inputs, before compression, from which on another segment begins.
const SEGMENT_BYTES: usize = 8 << 20;
/// Age from which on another segment begins, if it has inputs.
const SEGMENT_MICROS: i64 = 600_000_000;
/// Age before which no other segment begins, however much comes: each costs a checkpoint.
const LEAST_MICROS: i64 = 60_000_000;
/// Least inputs of a segment, as a multiple of the bytes of its compressed checkpoint.
const CHECKPOINTS: usize = 4;
/// Inputs that are compressed at once.
const BLOCK_BYTES: usize = 256 << 10;

/// Number of a segment, in the order of their beginnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentId(u64);

/// A checkpoint as it is kept: compressed CBOR, with its configuration as a text.
#[derive(Clone, Debug)]
pub struct EncodedCheckpoint {
    pub(crate) bytes: Arc<Vec<u8>>,
    /// The configuration in force, as a file without secrets.
    conf: Arc<str>,
    /// The options of the engine.
    options: Arc<DecidingOptions>,
}

impl EncodedCheckpoint {
    /// Returns the bytes of the compressed state.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the options by which the engine decides.
    pub(crate) fn options(&self) -> DecidingOptions {
        (*self.options).clone()
    }
}

/// The inputs of the last minutes.
#[derive(Debug)]
pub struct History {
    most_bytes: usize,
    segments: VecDeque<Segment>,
    n_begun: u64,
    /// True if no checkpoint fits into the limit.
    is_off: bool,
}

/// The segments of a history at one moment.
#[derive(Clone, Debug, Default)]
pub struct HistoryCopy {
    pub(crate) segments: Vec<Segment>,
}

/// A checkpoint, and what came after it.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    id: SegmentId,
    /// The last cycle before the inputs.
    pub(crate) cycle: u64,
    /// The last cycle of the inputs.
    pub(crate) last_cycle: u64,
    begun_micros: i64,
    /// `None`: it is being made, or cannot be made.
    pub(crate) checkpoint: Option<EncodedCheckpoint>,
    /// True if there will be no checkpoint.
    is_given_up: bool,
    /// Compressed inputs.
    pub(crate) blocks: Vec<Arc<[u8]>>,
    /// Inputs that are not compressed yet, one CBOR item after the other.
    pub(crate) uncompressed: Vec<u8>,
    /// Bytes of all inputs before compression.
    n_bytes: usize,
    /// Configurations that came with the inputs, as files without secrets, each with the last cycle before it.
    confs: Vec<(u64, Arc<str>)>,
}

impl Segment {
    /// Returns the bytes that it takes in memory.
    fn size(&self) -> usize {
        let checkpoint = self.checkpoint.as_ref().map_or(0, EncodedCheckpoint::size);
        let blocks: usize = self.blocks.iter().map(|block| block.len()).sum();
        let confs: usize = self.confs.iter().map(|(_, text)| text.len()).sum();
        checkpoint + blocks + self.uncompressed.len() + confs
    }
}

impl History {
    /// Returns an empty history that takes so many bytes at most. With 0 nothing is kept.
    pub fn new(most_bytes: usize) -> Self {
        Self { most_bytes, segments: VecDeque::new(), n_begun: 0, is_off: most_bytes == 0 }
    }

    /// True if inputs are kept.
    pub fn is_on(&self) -> bool {
        !self.is_off
    }

    /// True if a segment is to begin now, which must be between two cycles.
    pub fn is_due(&self, now_micros: i64) -> bool {
        let is_over = |last: &Segment, checkpoint: &EncodedCheckpoint| {
            let age = now_micros.saturating_sub(last.begun_micros);
            let is_long = SEGMENT_BYTES.max(CHECKPOINTS * checkpoint.size()) <= last.n_bytes;
            (is_long && LEAST_MICROS <= age) || (SEGMENT_MICROS <= age && 0 < last.n_bytes)
        };
        // One checkpoint is made at a time.
        let is_due = |last: &Segment| match &last.checkpoint {
            Some(checkpoint) => is_over(last, checkpoint),
            None => last.is_given_up,
        };
        !self.is_off && self.segments.back().is_none_or(is_due)
    }

    /// Begins a segment after this cycle. Its checkpoint follows with [`History::put_checkpoint`].
    pub fn begin(&mut self, cycle: u64, now_micros: i64) -> SegmentId {
        let id = SegmentId(self.n_begun);
        self.n_begun += 1;
        self.segments.push_back(Segment {
            id,
            cycle,
            last_cycle: cycle,
            begun_micros: now_micros,
            checkpoint: None,
            is_given_up: false,
            blocks: Vec::new(),
            uncompressed: Vec::new(),
            n_bytes: 0,
            confs: Vec::new(),
        });
        id
    }

    /// Adds an input to the last segment. `cycle` is the number of the last cycle after it.
    pub fn record(&mut self, input: &RecordedInput, cycle: u64) {
        let Some(last) = self.segments.back_mut() else { return };
        let start = last.uncompressed.len();
        if ciborium::into_writer(input, &mut last.uncompressed).is_err() {
            // Unreachable for these types. Without this input the rest is of no use.
            return self.clear();
        }
        last.n_bytes += last.uncompressed.len() - start;
        last.last_cycle = cycle;
        if let RecordedInput::Command(EngineCommand::Configure(config)) = input
            && let Ok(text) = config.without_secrets().file_text()
        {
            last.confs.push((cycle, text.into()));
        }
        if BLOCK_BYTES <= last.uncompressed.len() {
            let block = compressed(&std::mem::take(&mut last.uncompressed));
            last.blocks.push(block);
            self.shrink();
        }
    }

    /// Adds the checkpoint with which a segment begins. Returns false if the history is switched off
    /// because the checkpoint alone exceeds the limit.
    pub fn put_checkpoint(&mut self, segment: SegmentId, checkpoint: EncodedCheckpoint) -> bool {
        if self.most_bytes < checkpoint.size() {
            self.clear();
            self.is_off = true;
            return false;
        }
        let found = self.segments.iter_mut().find(|it| it.id == segment);
        if let Some(segment) = found {
            segment.checkpoint = Some(checkpoint);
        }
        self.shrink();
        true
    }

    /// Gives the checkpoint of a segment up. The next segment is due at once.
    pub fn give_up(&mut self, segment: SegmentId) {
        let found = self.segments.iter_mut().find(|it| it.id == segment);
        found.into_iter().for_each(|it| it.is_given_up = true);
    }

    /// Forgets everything: nothing more follows on what was recorded.
    pub fn clear(&mut self) {
        self.segments.clear();
    }

    /// Removes the oldest segments until the limit holds. One with a checkpoint is kept. If a checkpoint
    /// takes so long that the inputs alone exceed twice the limit, all is forgotten.
    fn shrink(&mut self) {
        let size = |segments: &VecDeque<Segment>| segments.iter().map(Segment::size).sum::<usize>();
        let is_usable = |it: &Segment| it.checkpoint.is_some();
        while self.most_bytes < size(&self.segments) && self.segments.iter().skip(1).any(is_usable)
        {
            self.segments.pop_front();
        }
        if self.most_bytes.saturating_mul(2) < size(&self.segments) {
            self.clear();
        }
    }

    /// Returns the segments as they are now. Their compressed bytes are shared.
    pub fn copy(&self) -> HistoryCopy {
        HistoryCopy { segments: self.segments.iter().cloned().collect() }
    }
}

impl HistoryCopy {
    /// Returns a history of one state without inputs.
    pub fn of_now(cycle: u64, checkpoint: EncodedCheckpoint) -> Self {
        let mut history = History::new(usize::MAX);
        let segment = history.begin(cycle, 0);
        history.put_checkpoint(segment, checkpoint);
        history.copy()
    }

    /// True if there is no state to begin with.
    pub fn is_empty(&self) -> bool {
        self.segments.iter().all(|segment| segment.checkpoint.is_none())
    }

    /// Returns the segments that are needed for the last `n_cycles` cycles; `None`: for all. The
    /// first one has a checkpoint.
    pub(crate) fn last(&self, n_cycles: Option<u64>) -> &[Segment] {
        let last = self.segments.last().map_or(0, |segment| segment.last_cycle);
        let from = n_cycles.map_or(0, |n_cycles| last.saturating_sub(n_cycles));
        let usable = |segment: &Segment| segment.checkpoint.is_some();
        let first = self.segments.iter().rposition(|it| usable(it) && it.cycle <= from);
        let first = first.or_else(|| self.segments.iter().position(usable));
        first.map_or(&[], |first| &self.segments[first..])
    }
}

/// Returns each configuration in force in consecutive segments, as a file without secrets, by the last cycle before
/// it. The first one is that of the first checkpoint.
pub(crate) fn confs_in_force(segments: &[Segment]) -> BTreeMap<u64, Arc<str>> {
    let of_state = |segment: &Segment| {
        let checkpoint = segment.checkpoint.as_ref()?;
        Some((segment.cycle, checkpoint.conf.clone()))
    };
    let first = segments.first().and_then(of_state);
    let later = segments.iter().flat_map(|segment| segment.confs.iter().cloned());
    // Of two without a cycle between them only the second one has decided something.
    let by_cycle: BTreeMap<u64, Arc<str>> = first.into_iter().chain(later).collect();
    let mut before: Option<Arc<str>> = None;
    let is_new = |(_, text): &(u64, Arc<str>)| before.replace(text.clone()).as_ref() != Some(text);
    by_cycle.into_iter().filter(is_new).collect()
}

/// Returns the state as it is kept.
///
/// # Errors
/// A value cannot be stored, with the text of the format's error.
pub fn encode_checkpoint(checkpoint: &Checkpoint) -> Result<EncodedCheckpoint, String> {
    let conf = checkpoint.config().without_secrets().file_text()?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let mut buffered = std::io::BufWriter::new(&mut encoder);
    ciborium::into_writer(checkpoint, &mut buffered).map_err(|error| error.to_string())?;
    buffered.flush().map_err(|error| error.to_string())?;
    drop(buffered);
    let mut bytes = encoder.finish().map_err(|error| error.to_string())?;
    // The bytes shrink in place. A copy of them would take as much memory again.
    bytes.shrink_to_fit();
    let options = Arc::new(checkpoint.deciding_options());
    Ok(EncodedCheckpoint { bytes: bytes.into(), conf: conf.into(), options })
}

fn compressed(bytes: &[u8]) -> Arc<[u8]> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.unwrap_or_default().into()
}
