//! What the engine of a simulation was given, for a bundle. Specification: answers.md 15.

use vc_bundle::{
    BundleWriter, CompressedFile, History, RecordedInput, effect_line, encode_checkpoint,
};
use vc_engine::{BatchKind, CycleTime, Effect, EffectDigest, Engine, EngineBatch, EngineCommand};
use vc_model::{Cluster, ClusterEvent};
use vc_objects::written::write_objects;

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

    /// Returns the bundle. The cluster is that of the engine after the last input.
    pub(crate) fn bundle(&self, cluster: &Cluster) -> Result<Vec<u8>, String> {
        let objects = CompressedFile::new(|out| write_objects(cluster, out));
        let writer = BundleWriter::new(&self.0.copy(), None);
        let mut writer = writer.map_err(|error| error.to_string())?;
        writer.set_process(env!("CARGO_PKG_VERSION"), Vec::new());
        writer.add_objects(objects.map_err(|error| error.to_string())?);
        let mut bytes = Vec::new();
        writer.write(&mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    }
}
