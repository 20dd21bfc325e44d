//! What the engine of a simulation was given, for a bundle. Specification: answers.md 15.

use vc_bundle::{BundleWriter, History, RecordedInput, effect_line, encode_checkpoint};
use vc_engine::{BatchKind, CycleTime, Effect, EffectDigest, Engine, EngineBatch, EngineCommand};
use vc_model::ClusterEvent;

/// The inputs of a simulation since its beginning.
pub(crate) struct SimulationHistory(History);

impl SimulationHistory {
    /// Begins with the state of the engine. Returns `None` if the configuration asks services outside,
    /// whose answers are not recorded.
    pub(crate) fn new(engine: &Engine, now_micros: i64) -> Option<Self> {
        let mut history = History::new(usize::MAX);
        let segment = history.begin(engine.n_cycles(), engine.last_micros());
        let checkpoint = engine.twin()?.into_checkpoint(now_micros).ok()?;
        history.put_checkpoint(segment, encode_checkpoint(&checkpoint).ok()?);
        Some(Self(history))
    }

    /// Adds events that were applied without a call.
    pub(crate) fn applied(&mut self, events: Vec<ClusterEvent>, engine: &Engine) {
        let command = EngineCommand::Apply(events);
        self.0.record(&RecordedInput::Command(command), engine.n_cycles());
    }

    /// Adds a call with its effects.
    pub(crate) fn called(
        &mut self,
        (kind, events): (BatchKind, Vec<ClusterEvent>),
        now: CycleTime,
        effects: &[Effect],
        engine: &Engine,
    ) {
        let mut digest = EffectDigest::default();
        digest.add(effects);
        let batch = EngineBatch { kind, events, now, digest: digest.value() };
        let effect_lines = effects.iter().map(effect_line).collect();
        self.0.record(&RecordedInput::Batch { batch, effect_lines }, engine.n_cycles());
    }

    /// Returns the bundle.
    pub(crate) fn bundle(&self) -> Result<Vec<u8>, String> {
        let writer = BundleWriter::new(&self.0.copy(), None);
        let mut writer = writer.map_err(|error| error.to_string())?;
        writer.set_process(env!("CARGO_PKG_VERSION"), Vec::new());
        let mut bytes = Vec::new();
        writer.write(&mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    }
}
