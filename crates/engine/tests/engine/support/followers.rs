//! Who follows the engine of a world: a twin, an engine made of the stored state, and the history.

use std::fmt::Debug;

use vc_bundle::{Bundle, BundleWriter, History, RecordedInput, effect_line, encode_checkpoint};
use vc_engine::{
    BatchKind, Checkpoint, CycleTime, Effect, EffectDigest, Engine, EngineBatch, Evaluator,
};
use vc_model::{Cluster, ClusterEvent};

use super::World;

pub(crate) fn digest(effects: &[Effect]) -> u64 {
    let mut digest = EffectDigest::default();
    digest.add(effects);
    digest.value()
}

/// The cluster as it is stored, in bytes.
pub(crate) fn stored(cluster: &Cluster) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(cluster, &mut bytes).expect("it is stored");
    bytes
}

/// The cluster as it is stored, with the entries of its maps in the order of their keys.
pub(crate) fn sorted(cluster: &Cluster) -> ciborium::Value {
    fn sort(value: ciborium::Value) -> ciborium::Value {
        use ciborium::Value;
        match value {
            Value::Array(values) => Value::Array(values.into_iter().map(sort).collect()),
            Value::Map(entries) => {
                let mut entries: Vec<(Value, Value)> =
                    entries.into_iter().map(|(key, value)| (sort(key), sort(value))).collect();
                entries.sort_by_cached_key(|(key, _)| format!("{key:?}"));
                Value::Map(entries)
            }
            value => value,
        }
    }
    sort(ciborium::from_reader(&*stored(cluster)).expect("it is read"))
}

/// Compares the rows of two tables, by their ids.
fn compare_rows<'r, I: Debug, V: Debug + 'r>(
    engine: impl Iterator<Item = (I, &'r V)>,
    twin: impl Iterator<Item = (I, &'r V)>,
) {
    let text = |(id, row): (I, &'r V)| format!("{id:?}: {row:?}");
    let (engine, twin): (Vec<String>, Vec<String>) =
        (engine.map(text).collect(), twin.map(text).collect());
    assert_eq!(engine, twin, "a row of the twin differs");
}

impl World {
    /// What follows from the events alone, without a cycle.
    pub(crate) fn engine_follow_up(&mut self) -> Vec<Effect> {
        let now = CycleTime { unix_micros: self.now_micros };
        if let Some(plain) = &mut self.plain {
            plain.follow_up(self.inbox.clone(), now);
        }
        let twin = self.twin.as_mut().map(|twin| twin.follow_up(self.inbox.clone(), now));
        let events = self.history.as_ref().map(|_| self.inbox.clone());
        let effects = self.engine.follow_up(std::mem::take(&mut self.inbox), now);
        if let Some(events) = events {
            self.record_batch(BatchKind::FollowUp, events, now, &effects);
        }
        self.compare_with_twin(&effects, twin);
        effects
    }

    /// The twin decides the same, and has the same rows afterwards.
    pub(super) fn compare_with_twin(&self, effects: &[Effect], twin: Option<Vec<Effect>>) {
        let Some(twin) = twin else { return };
        let differ = effects.iter().zip(&twin).find(|(engine, twin)| engine != twin);
        assert_eq!(differ, None, "engine and twin decide differently");
        assert_eq!(digest(effects), digest(&twin), "engine and twin decide differently");
        let Some(twin) = self.twin.as_ref().filter(|_| self.compares_rows) else { return };
        let (engine, twin) = (self.engine.cluster(), twin.cluster());
        compare_rows(engine.nodes.iter(), twin.nodes.iter());
        compare_rows(engine.tasks.iter(), twin.tasks.iter());
        compare_rows(engine.jobs.iter(), twin.jobs.iter());
        compare_rows(engine.queues.iter(), twin.queues.iter());
        assert!(stored(engine) == stored(twin), "the twin has something else than the engine");
    }

    /// From now on a twin of the engine follows, and must decide the same.
    pub(crate) fn follow(&mut self) {
        // As in the process: only the twin explains.
        self.engine.explain(false);
        // The tables are shared, and the twin takes its own ones.
        self.engine.share();
        self.twin = self.engine.twin();
        self.twin.as_mut().expect("no service is asked").unshare();
        self.compares_rows = true;
    }

    /// From now on an engine that is made of the stored state follows, and must decide the same.
    pub(crate) fn follow_stored(&mut self) {
        self.follow();
        let checkpoint = self.twin.take().expect("it follows");
        let checkpoint = checkpoint.into_checkpoint(self.now_micros).expect("a cycle is over");
        let mut bytes = Vec::new();
        ciborium::into_writer(&checkpoint, &mut bytes).expect("it is stored");
        let stored: Checkpoint = ciborium::from_reader(&*bytes).expect("it is read");
        let restored = Engine::restore(stored, Evaluator::Fast);
        assert_eq!(restored.cluster().check(), Ok(()));
        self.twin = Some(restored);
        // Indices of its rows are others.
        self.compares_rows = false;
    }

    /// From now on what the engine is given is recorded.
    pub(crate) fn keep_history(&mut self) {
        // As in the process: only the twin explains.
        self.engine.explain(false);
        self.history = Some(History::new(usize::MAX));
        self.begin_segment();
    }

    /// Returns what was recorded, as a bundle.
    pub(crate) fn bundle(&self) -> Bundle {
        let history = self.history.as_ref().expect("it is kept").copy();
        let mut bytes = Vec::new();
        let writer = BundleWriter::new(&history, None).expect("there is a state");
        writer.write(&mut bytes).expect("memory takes it");
        Bundle::read(&*bytes).expect("it is read")
    }

    pub(super) fn record(&mut self, input: &RecordedInput) {
        let cycle = self.engine.n_cycles();
        self.history.iter_mut().for_each(|history| history.record(input, cycle));
    }

    /// Begins a segment of the history, if one is due.
    pub(super) fn begin_segment(&mut self) {
        let now_micros = self.now_micros;
        let Some(history) = self.history.as_mut().filter(|it| it.is_due(now_micros)) else {
            return;
        };
        let segment = history.begin(self.engine.n_cycles(), now_micros);
        let checkpoint = self.engine.twin().expect("no service is asked");
        let checkpoint = checkpoint.into_checkpoint(self.now_micros).expect("a cycle is over");
        assert!(
            history.put_checkpoint(segment, encode_checkpoint(&checkpoint).expect("it is stored"))
        );
    }

    pub(super) fn record_batch(
        &mut self,
        kind: BatchKind,
        events: Vec<ClusterEvent>,
        now: CycleTime,
        effects: &[Effect],
    ) {
        let batch = EngineBatch { kind, events, now, digest: digest(effects) };
        let effect_lines = effects.iter().map(effect_line).collect();
        self.record(&RecordedInput::Batch { batch, effect_lines });
    }
}
