//! What an engine is given, as data, so that another engine can be given the same.
//! Specification: answers.md 10 (ANS-56, ANS-57), 15.

use serde::{Deserialize, Serialize};
use vc_conf::{Config, Warning};
use vc_framework::{Effect, Report};
use vc_model::ClusterEvent;

use crate::effect_digest::EffectDigest;
use crate::engine::{CycleTime, Engine};

/// How the engine was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BatchKind {
    /// A whole cycle.
    Cycle,
    /// What follows from the events without a session.
    FollowUp,
}

/// Events that the engine was given at once, with a digest of the effects.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EngineBatch {
    /// How the engine was called.
    pub kind: BatchKind,
    /// The events.
    pub events: Vec<ClusterEvent>,
    /// The time that the engine was given.
    pub now: CycleTime,
    /// Digest of the effects that the engine has returned.
    pub digest: u64,
}

/// The result of [`EngineBatch::repeat`].
pub struct RepeatedBatch {
    /// Digest of the effects.
    pub digest: u64,
    /// The effects, in order.
    pub effects: Vec<Effect>,
    /// Report of a whole cycle. `None` if there was none.
    pub report: Option<Report>,
}

impl EngineBatch {
    /// Gives the batch to another engine.
    pub fn repeat(self, engine: &mut Engine) -> RepeatedBatch {
        let (mut early, mut digest) = (Vec::new(), EffectDigest::default());
        let (effects, report) = match self.kind {
            BatchKind::Cycle => {
                let keep = &mut |effects: Vec<_>, _: &_| early.extend(effects);
                let (effects, report) = engine.cycle_with(self.events, self.now, keep);
                (effects, Some(report))
            }
            BatchKind::FollowUp => (engine.follow_up(self.events, self.now), None),
        };
        digest.add(&early);
        digest.add(&effects);
        early.extend(effects);
        RepeatedBatch { digest: digest.value(), effects: early, report }
    }
}

/// A change of the engine that is no event. It is data, so that a second engine can repeat it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum EngineCommand {
    /// Events that are applied at once, before the next command.
    Apply(Vec<ClusterEvent>),
    /// Another configuration.
    Configure(Box<Config>),
    /// The API server serves ResourceClaims from now on.
    ServeDevices,
}

impl EngineCommand {
    /// Returns the command with a configuration that has no secrets.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        match self {
            Self::Configure(config) => Self::Configure(Box::new(config.without_secrets())),
            other => other.clone(),
        }
    }

    /// Runs it. Returns warnings about a configuration.
    pub fn run(self, engine: &mut Engine) -> Vec<Warning> {
        match self {
            Self::Apply(events) => engine.apply(events),
            Self::Configure(config) => return engine.configure(&config),
            Self::ServeDevices => engine.serve_devices(),
        }
        Vec::new()
    }
}
