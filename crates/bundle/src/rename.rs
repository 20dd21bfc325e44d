//! A bundle with other texts. The texts of the first state and of the inputs are replaced. The new
//! bundle is then decided beside the old one: what it decides is recorded in it, and its later
//! states are stored on the way. Specification: answers.md 15 (ANS-102).

use std::collections::BTreeMap;
use std::io::Write;

use ciborium::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;
use vc_engine::{
    Checkpoint, DecidingOptions, Effect, Engine, Evaluator, Nomination, RepeatedBatch,
};

use crate::RecordedInput;
use crate::archive::{Bundle, BundleError, inputs_name, state_name};
use crate::effect_line::effect_line;
use crate::manifest::Manifest;
use crate::texts::{TextChange, TextPlace, WithTexts};

/// Returns the new form of a name.
pub type Renaming<'a> = dyn Fn(&str) -> String + 'a;

impl Bundle {
    /// Shows each text of the first state and of the inputs. Names of later states are among them.
    ///
    /// # Errors
    /// The state or an input cannot be read.
    pub fn show_texts(&self, show: &dyn Fn(TextPlace, &str)) -> Result<(), BundleError> {
        let change = |place: TextPlace, text: &str| -> Option<String> {
            show(place, text);
            None
        };
        let state = self.checkpoint(None)?;
        self.encode(&self.first_state_name(), &WithTexts::new(&state, &change), std::io::sink())?;
        for &cycle in &self.segments {
            let name = inputs_name(cycle);
            for input in self.inputs_of_segment(cycle)? {
                self.encode(&name, &WithTexts::new(&input, &change), std::io::sink())?;
            }
        }
        Ok(())
    }

    /// Returns the bundle with other texts. `change` replaces texts, and `rename` does the same for
    /// a name alone. Flags and files for people, objects too, are left out; the configuration stays as it is.
    ///
    /// # Errors
    /// The bundle cannot be read, it is not decided as it was recorded, or its copy with the other
    /// texts is decided otherwise.
    pub fn renamed(
        &self,
        change: &TextChange<'_>,
        rename: &Renaming<'_>,
    ) -> Result<Self, BundleError> {
        let first = self.first_state_name();
        let mut state: Checkpoint = self.changed(&first, &self.checkpoint(None)?, change)?;
        state.rebuild_indexes();
        let engine_options = self.manifest.engine_options.as_ref().map(|named| DecidingOptions {
            evaluator: named.evaluator.clone(),
            ..state.deciding_options()
        });
        let confs = self.files.iter().filter(|(name, _)| name.starts_with("conf/"));
        let mut files: BTreeMap<String, Vec<u8>> =
            confs.map(|(name, contents)| (name.clone(), contents.clone())).collect();
        files.insert(first.clone(), self.encoded(&first, &state)?);
        let mut engines = EnginePair::new(self.checkpoint(None)?, state, self.differs_hint());
        engines.check().map_err(|problem| file_error(&first, problem))?;
        for &cycle in &self.segments {
            let name = state_name(cycle);
            if name != first && self.files.contains_key(&name) {
                let state = engines.checkpoint().map_err(|problem| file_error(&name, problem))?;
                files.insert(name.clone(), self.encoded(&name, &state)?);
            }
            let name = inputs_name(cycle);
            let mut inputs: Vec<u8> = Vec::new();
            for input in self.inputs_of_segment(cycle)? {
                let changed: RecordedInput = self.changed(&name, &input, change)?;
                let recorded = engines.decide(input, changed, rename)?;
                self.encode(&name, &recorded, &mut inputs)?;
            }
            files.insert(name, inputs);
        }
        let manifest = Manifest {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            flags: Vec::new(),
            engine_options,
            anonymized: true,
            files: BTreeMap::new(),
            ..self.manifest.clone()
        };
        Ok(Self { manifest, files, objects: None, segments: self.segments.clone() })
    }

    /// Returns what to do if the bundle is not decided as it was recorded.
    fn differs_hint(&self) -> String {
        let (theirs, own) = (&self.manifest.version, env!("CARGO_PKG_VERSION"));
        if theirs == own {
            return "`kubectl vc bundle FILE` without --anonymize writes it with names, and `vcsim \
                    replay FILE` shows what differs"
                .to_owned();
        }
        format!("use the kubectl-vc or vcsim of version {theirs}, which wrote it; this is {own}")
    }

    fn first_state_name(&self) -> String {
        state_name(self.manifest.first_cycle)
    }

    fn encode(
        &self,
        name: &str,
        value: &impl Serialize,
        out: impl Write,
    ) -> Result<(), BundleError> {
        ciborium::into_writer(value, out).map_err(|error| self.unreadable(name, &error))
    }

    fn encoded(&self, name: &str, value: &impl Serialize) -> Result<Vec<u8>, BundleError> {
        let mut bytes: Vec<u8> = Vec::new();
        self.encode(name, value, &mut bytes)?;
        Ok(bytes)
    }

    /// Returns a value of the file with this name with other texts.
    fn changed<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        value: &T,
        change: &TextChange<'_>,
    ) -> Result<T, BundleError> {
        let bytes = self.encoded(name, &WithTexts::new(value, change))?;
        ciborium::from_reader(&*bytes).map_err(|error| self.unreadable(name, &error))
    }
}

fn file_error(name: &str, problem: String) -> BundleError {
    BundleError::File { name: name.to_owned(), problem }
}

/// An engine with the old names and one with the new ones. Both are given the same.
struct EnginePair {
    named: Engine,
    renamed: Engine,
    /// The hint of [`BundleError::Differs`].
    differs_hint: String,
}

/// Why the state of a scheduler that shares its work has no copy without names.
const DIVIDED: &str = "cluster.settings.division: this scheduler shares its work with others by \
    hashes of names (MULTI_SCHEDULER_ENABLE), so it cannot be anonymized\n\
    hint: share the bundle as it is, or a cycle of it with --to-scenario --anonymize";

impl EnginePair {
    fn new(named: Checkpoint, renamed: Checkpoint, differs_hint: String) -> Self {
        let [named, renamed] =
            [named, renamed].map(|state| Engine::restore(state, Evaluator::Fast));
        Self { named, renamed, differs_hint }
    }

    /// Checks that every row is found by its new name, that sums are those of the rows, and that
    /// the state has no hashes of names.
    fn check(&self) -> Result<(), String> {
        if self.named.cluster().settings.division.is_some() {
            return Err(DIVIDED.to_owned());
        }
        // If the state with names breaks a rule of the tables, the renamed state may break it too.
        if self.named.cluster().check().is_err() {
            return Ok(());
        }
        let text = |problem: String| format!("it cannot be anonymized: {problem}");
        self.renamed.cluster().check().map_err(text)
    }

    /// Returns the state with the new names.
    fn checkpoint(&self) -> Result<Checkpoint, String> {
        let now_micros = self.renamed.last_micros();
        self.renamed.copy().into_checkpoint(now_micros).map_err(|error| error.to_string())
    }

    /// Gives both engines an input. Returns the renamed one with what was decided.
    fn decide(
        &mut self,
        named: RecordedInput,
        renamed: RecordedInput,
        rename: &Renaming<'_>,
    ) -> Result<RecordedInput, BundleError> {
        match (named, renamed) {
            (RecordedInput::Batch { batch: named, .. }, RecordedInput::Batch { mut batch, .. }) => {
                let recorded = named.digest;
                let expected = named.repeat(&mut self.named);
                if expected.digest != recorded {
                    let (cycle, hint) = (self.named.n_cycles(), self.differs_hint.clone());
                    return Err(BundleError::Differs { cycle, hint });
                }
                let RepeatedBatch { digest, effects, .. } = batch.clone().repeat(&mut self.renamed);
                self.compare(&expected.effects, &effects, rename)?;
                batch.digest = digest;
                let effect_lines = effects.iter().map(effect_line).collect();
                Ok(RecordedInput::Batch { batch, effect_lines })
            }
            (RecordedInput::Command(named), RecordedInput::Command(command)) => {
                drop(named.run(&mut self.named));
                drop(command.clone().run(&mut self.renamed));
                Ok(RecordedInput::Command(command))
            }
            // Unreachable: other texts make no other kind of input.
            (_, renamed) => Ok(renamed),
        }
    }

    /// Compares decisions. Reports may differ: a text with other names may be reported once more.
    fn compare(
        &self,
        named: &[Effect],
        renamed: &[Effect],
        rename: &Renaming<'_>,
    ) -> Result<(), BundleError> {
        let mut expected = named.iter().filter_map(|effect| Decision::of(effect, rename));
        let same = |name: &str| name.to_owned();
        let mut found = renamed.iter().filter_map(|effect| Decision::of(effect, &same));
        loop {
            let (with, without) = match (expected.next(), found.next()) {
                (None, None) => return Ok(()),
                (with, without) if with == without => continue,
                different => different,
            };
            let text = |decision: Option<Decision>| {
                decision.map_or_else(|| "nothing more".to_owned(), |decision| decision.line)
            };
            let (with, mut without) = (text(with), text(without));
            if with == without {
                without.push_str(" with other contents");
            }
            return Err(BundleError::NamesDecide { cycle: self.renamed.n_cycles(), with, without });
        }
    }
}

/// A decision that can be compared.
#[derive(PartialEq)]
struct Decision {
    /// Its kind, the object and the place.
    line: String,
    /// What else is written.
    contents: Value,
}

impl Decision {
    /// Returns the decision with its names replaced. Returns `None` for a report.
    fn of(effect: &Effect, rename: &Renaming<'_>) -> Option<Self> {
        let (kind, object, place) = decision(effect)?;
        let line = format!("{kind} {} {}", rename(object), rename(place)).trim_end().to_owned();
        Some(Self { line, contents: contents(effect, rename) })
    }
}

/// Returns what a decision writes besides its object and its place. Texts for people are left out.
fn contents(effect: &Effect, rename: &Renaming<'_>) -> Value {
    match effect {
        // The keys are words of the engine and of the configuration, which stay.
        Effect::Bind { annotations, node_lock, .. } => {
            let (keys, values): (Vec<&str>, Vec<&str>) =
                annotations.iter().map(|(key, value)| (&**key, &**value)).unzip();
            let lock = node_lock.as_ref().map(|lock| (&*lock.annotation, lock.now_micros));
            Value::Array(vec![plain_value(&(keys, lock)), renamed_value(&values, rename)])
        }
        Effect::PreBind { writes, .. } => {
            renamed_value(&(&writes.bindings, &writes.provisions, &writes.devices), rename)
        }
        Effect::Evict { pod_group, for_pod, for_pod_group, .. } => {
            renamed_value(&(pod_group, for_pod, for_pod_group), rename)
        }
        Effect::NodeShardStatus { nodes_in_use, nodes_to_remove, nodes_to_add, .. } => {
            renamed_value(&(nodes_in_use, nodes_to_remove, nodes_to_add), rename)
        }
        Effect::UnreserveClaims { claims, .. } => renamed_value(claims, rename),
        Effect::DeallocateClaim { allocation, consumer, .. } => {
            renamed_value(&(allocation, consumer), rename)
        }
        Effect::SaveUsage { usage, .. } => renamed_value(usage, rename),
        // Names of resources, and amounts.
        Effect::QueueStatus { allocated, .. } => plain_value(allocated),
        Effect::CreateQueue { reclaimable, .. } => plain_value(reclaimable),
        Effect::QueueAnnotation { value, .. } => plain_value(value),
        _ => Value::Null,
    }
}

fn renamed_value(value: &impl Serialize, rename: &Renaming<'_>) -> Value {
    let change = |_: TextPlace, text: &str| -> Option<String> { Some(rename(text)) };
    plain_value(&WithTexts::new(value, &change))
}

fn plain_value(value: &impl Serialize) -> Value {
    Value::serialized(value).unwrap_or_else(|error| Value::Text(error.to_string()))
}

fn decision(effect: &Effect) -> Option<(&'static str, &str, &str)> {
    Some(match effect {
        Effect::Bind { uid, node, .. } => ("bind", &**uid, &**node),
        Effect::PreBind { uid, node, .. } => ("write volumes and claims of", &**uid, &**node),
        Effect::Evict { uid, reason, .. } => (reason.as_str(), &**uid, ""),
        Effect::PodCondition { uid, nomination: Nomination::Set(node), .. } => {
            ("nominate", &**uid, &**node)
        }
        Effect::PodCondition { uid, nomination: Nomination::Clear, .. }
        | Effect::ClearNomination { uid, .. } => ("clear nomination of", &**uid, ""),
        Effect::PodGroupStatus { uid, status, phase_changed: true, .. } => {
            (status.phase.as_str(), &**uid, "")
        }
        Effect::QueueStatus { queue, .. } => ("status of", &**queue, ""),
        Effect::CreateQueue { queue, .. } => ("create", &**queue, ""),
        Effect::QueueAnnotation { queue, key, .. } => (*key, &**queue, ""),
        Effect::NodeShardStatus { shard, .. } => ("status of", &**shard, ""),
        Effect::UnreserveClaims { uid, .. } => ("unreserve claims of", &**uid, ""),
        Effect::DeallocateClaim { uid, .. } => ("deallocate", &**uid, ""),
        Effect::Resync { uid, .. } => ("read again", &**uid, ""),
        Effect::RemoveGate { uid, .. } => ("remove gate of", &**uid, ""),
        // Its name is a setting, which stays.
        Effect::SaveUsage { .. } => ("save usage", "", ""),
        Effect::PodCondition { .. } | Effect::PodGroupStatus { .. } | Effect::Event { .. } => {
            return None;
        }
    })
}
