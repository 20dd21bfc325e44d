//! The replay of a bundle: an engine that begins with its state is given its inputs, with their
//! times, and what it decides is compared. Specification: answers.md 15 (ANS-104).

use std::vec::IntoIter;

use vc_engine::{
    BatchKind, CycleTime, Effect, EffectDigest, Engine, EngineBatch, EngineCommand, Evaluator,
    RepeatedBatch, Report,
};

use crate::RecordedInput;
use crate::archive::{Bundle, BundleError};
use crate::effect_line::effect_line;

/// An engine with the inputs that are left.
pub struct Replay {
    engine: Engine,
    inputs: IntoIter<RecordedInput>,
}

/// What came of one batch.
pub struct ReplayStep {
    /// How the engine was called.
    pub kind: BatchKind,
    /// The number of the last cycle.
    pub cycle: u64,
    /// The time that the engine was given.
    pub now: CycleTime,
    /// The effects that were recorded, one line each.
    pub recorded: Vec<String>,
    /// The effects of the replay.
    pub effects: Vec<Effect>,
    /// The report of a whole cycle.
    pub report: Option<Report>,
    /// True if the effects are those that were recorded, or if nobody has recorded any.
    pub is_same: bool,
}

impl Replay {
    /// Begins with the last state at or before a cycle; `None`: with the first state.
    ///
    /// # Errors
    /// The bundle does not have the cycle, or is damaged.
    pub fn new(bundle: &Bundle, at: Option<u64>) -> Result<Self, BundleError> {
        let checkpoint = bundle.checkpoint(at)?;
        let inputs = bundle.inputs(checkpoint.n_cycles())?.into_iter();
        Ok(Self { engine: Engine::restore(checkpoint, Evaluator::Fast), inputs })
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the engine, to go on otherwise.
    pub fn into_engine(self) -> Engine {
        self.engine
    }

    /// Gives the engine the next batch, with the commands before it. Returns `None` after the last.
    pub fn step(&mut self) -> Option<ReplayStep> {
        self.run_commands();
        let RecordedInput::Batch { batch, effect_lines } = self.inputs.next()? else { return None };
        let (kind, now, expected) = (batch.kind, batch.now, batch.digest);
        let RepeatedBatch { digest, effects, report } = batch.repeat(&mut self.engine);
        Some(ReplayStep {
            kind,
            cycle: self.engine.n_cycles(),
            now,
            recorded: effect_lines,
            effects,
            report,
            is_same: digest == expected,
        })
    }

    /// Returns the batch of the cycle after the last input, which nobody has recorded. It has no events, and the time of
    /// the last cycle. If there was no cycle, its time is the creation of the newest pod.
    pub fn unrecorded_batch(&self) -> EngineBatch {
        let tasks = &self.engine.cluster().tasks;
        let newest = || tasks.iter().map(|(_, task)| task.created_micros).max();
        let last = Some(self.engine.last_micros()).filter(|_| 0 < self.engine.n_cycles());
        let unix_micros = last.or_else(newest).unwrap_or_default();
        EngineBatch {
            kind: BatchKind::Cycle,
            events: Vec::new(),
            now: CycleTime { unix_micros },
            digest: EffectDigest::default().value(),
        }
    }

    /// Decides the cycle after the last input, which nobody has recorded: there is nothing to compare it with.
    pub fn decide_unrecorded(&mut self) -> ReplayStep {
        self.run_commands();
        let batch = self.unrecorded_batch();
        let (kind, now) = (batch.kind, batch.now);
        let RepeatedBatch { effects, report, .. } = batch.repeat(&mut self.engine);
        let cycle = self.engine.n_cycles();
        ReplayStep { kind, cycle, now, recorded: Vec::new(), effects, report, is_same: true }
    }

    /// Runs the commands before the next batch.
    pub fn run_commands(&mut self) {
        while let Some(RecordedInput::Command(_)) = self.inputs.as_slice().first() {
            if let Some(RecordedInput::Command(command)) = self.inputs.next() {
                drop(command.run(&mut self.engine));
            }
        }
    }

    /// Returns the commands before the next batch.
    pub fn next_commands(&self) -> impl Iterator<Item = &EngineCommand> {
        self.inputs.as_slice().iter().map_while(|input| match input {
            RecordedInput::Command(command) => Some(command),
            RecordedInput::Batch { .. } => None,
        })
    }

    /// Returns the next batch. Returns `None` after the last.
    pub fn next_batch(&self) -> Option<EngineBatch> {
        self.inputs.as_slice().iter().find_map(|input| match input {
            RecordedInput::Batch { batch, .. } => Some(batch.clone()),
            RecordedInput::Command(_) => None,
        })
    }

    /// Returns the number of the cycle that the next batch belongs to.
    pub fn next_cycle(&self) -> u64 {
        let is_cycle = |input: &RecordedInput| match input {
            RecordedInput::Batch { batch, .. } => batch.kind == BatchKind::Cycle,
            RecordedInput::Command(_) => false,
        };
        let next =
            self.inputs.as_slice().iter().find(|it| matches!(it, RecordedInput::Batch { .. }));
        self.engine.n_cycles() + u64::from(next.is_some_and(is_cycle))
    }
}

/// Returns the first effects in which a replay differs: what was recorded, and what was decided.
/// An absent side has no further effect.
pub fn difference(step: &ReplayStep) -> (Option<String>, Option<String>) {
    let replayed: Vec<String> = step.effects.iter().map(effect_line).collect();
    let both = step.recorded.iter().zip(&replayed);
    let first = both.take_while(|(recorded, replayed)| recorded == replayed).count();
    (step.recorded.get(first).cloned(), replayed.get(first).cloned())
}
