//! Which cycles of a bundle are decided again, and what is made of one of them: a comparison with another configuration,
//! and a scenario. Specification: answers.md 15 (ANS-101, ANS-104, ANS-105, ANS-107).

use std::path::Path;

use vc_answers::{AnswerTime, DecidedCycle, compare_cycles};
use vc_bundle::{BundleError, Manifest, Replay, ReplayStep};
use vc_conf::Config;
use vc_engine::{BatchKind, Engine, EngineBatch, RepeatedBatch, Report};
use vc_page::{StateSource, difference_json};

use super::{ComparedOutput, ReplayError, ReplayOptions, ReplayResult, write_new};
use crate::scenario::{ScenarioNames, ScenarioTitle, scenario_text};

/// The cycles of a bundle that are asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct AskedCycles {
    /// The replay begins with the last stored state at or before this cycle. `None`: it begins with the first state.
    pub(super) begin: Option<u64>,
    /// The last cycle of the replay.
    pub(super) until: u64,
    /// The recorded cycle for [`CycleUse`]. It is not read if the bundle has a state alone.
    one: u64,
    /// True if the bundle has a state and no recorded cycle: the next one is decided.
    pub(super) is_state_alone: bool,
}

/// What is made of one cycle.
pub(super) struct CycleUse<'a> {
    /// Another configuration, which decides it too. `None`: there is none.
    pub(super) conf: Option<&'a Config>,
    /// A new file for the cycle as a scenario. `None`: none is written.
    pub(super) scenario: Option<(&'a Path, ScenarioNames)>,
}

impl AskedCycles {
    /// Reads which cycles are asked for.
    ///
    /// # Errors
    /// The bundle does not have them.
    pub(super) fn new(
        options: &ReplayOptions,
        manifest: &Manifest,
        file: &str,
    ) -> Result<Self, ReplayError> {
        let (first, last) = (manifest.first_cycle, manifest.last_cycle);
        let outside = |cycle: &u64| !(first..=last).contains(cycle);
        if let Some(cycle) = [options.at, options.until].into_iter().flatten().find(outside) {
            let error = BundleError::Cycle { cycle, first, last };
            return Err(ReplayError::Bundle { file: file.to_owned(), error });
        }
        let is_state_alone = first == last;
        if is_state_alone {
            let cycles = Self { begin: None, until: last, one: last, is_state_alone };
            return match options.closed {
                true => Err(ReplayError::NoRecordedCycle(file.to_owned())),
                false => Ok(cycles),
            };
        }
        let until = options.until.unwrap_or(last);
        let is_of_one = options.conf.is_some() || options.to_scenario.is_some();
        let Some(at) = options.at.filter(|_| is_of_one) else {
            return Ok(Self { begin: options.at, until, one: until, is_state_alone });
        };
        match at.checked_sub(1).filter(|before| first <= *before) {
            None => Err(ReplayError::FirstState(first, last)),
            Some(_) if until < at => Err(ReplayError::NoCycle(first, last)),
            // The cycle is decided from the state before it.
            begin => Ok(Self { begin, until, one: at, is_state_alone }),
        }
    }

    /// Returns the state before the cycle for [`CycleUse`], with its batch. Returns `None` if something else comes next.
    pub(super) fn before_one(&self, replay: &mut Replay) -> Option<(Engine, EngineBatch)> {
        replay.run_commands();
        if replay.next_cycle() != self.one {
            return None;
        }
        let batch = replay.next_batch().filter(|batch| batch.kind == BatchKind::Cycle)?;
        Some((replay.engine().copy(), batch))
    }
}

impl CycleUse<'_> {
    /// True if anything is made of the cycle.
    pub(super) fn is_any(&self) -> bool {
        self.conf.is_some() || self.scenario.is_some()
    }

    /// Compares the cycle with another configuration and writes it as a scenario, as far as that is asked for. `before` is
    /// the state before the cycle with its batch, `step` what the cycle decided, and `after` the state after it.
    ///
    /// # Errors
    /// The scenario cannot be written.
    pub(super) fn apply(
        &self,
        before: (Engine, EngineBatch),
        (step, after): (&ReplayStep, &Engine),
        result: &mut ReplayResult,
    ) -> Result<(), ReplayError> {
        if let Some(file) = self.scenario {
            write_scenario(file, (&before.0, before.1.clone()), step, result)?;
        }
        if let Some(conf) = self.conf {
            result.with_conf = Some(decide_otherwise(conf, before, (step, after)));
        }
        Ok(())
    }

    /// Decides the cycle after the last input, which was not recorded. Returns its report.
    ///
    /// # Errors
    /// The scenario cannot be written.
    pub(super) fn decide_unrecorded(
        &self,
        replay: &mut Replay,
        result: &mut ReplayResult,
    ) -> Result<Option<Report>, ReplayError> {
        let before = self.is_any().then(|| (replay.engine().copy(), replay.unrecorded_batch()));
        let step = replay.decide_unrecorded();
        result.add(&step);
        result.unrecorded_cycle = Some(step.cycle);
        if let Some(before) = before {
            self.apply(before, (&step, replay.engine()), result)?;
        }
        Ok(step.report)
    }
}

/// Decides a cycle with another configuration, and compares it with the step and the engine after it.
fn decide_otherwise(
    conf: &Config,
    (mut engine, batch): (Engine, EngineBatch),
    (step, after): (&ReplayStep, &Engine),
) -> ComparedOutput {
    let as_of = AnswerTime { time_micros: engine.last_micros(), cycle: engine.n_cycles() };
    engine.configure(conf);
    let RepeatedBatch { effects, report, .. } = batch.repeat(&mut engine);
    let report = report.unwrap_or_default();
    let with = DecidedCycle { engine: &engine, effects: &effects, report };
    let report = step.report.clone().unwrap_or_default();
    let without = DecidedCycle { engine: after, effects: &step.effects, report };
    let difference = compare_cycles(with, without, as_of);
    let difference = difference_json(after, &difference, StateSource::Bundle);
    ComparedOutput::new(step.cycle, (&step.effects, &effects), difference)
}

/// Writes a cycle as a scenario into a new file.
fn write_scenario(
    (path, names): (&Path, ScenarioNames),
    (engine, batch): (&Engine, EngineBatch),
    step: &ReplayStep,
    result: &mut ReplayResult,
) -> Result<(), ReplayError> {
    let name = path.display().to_string();
    let failed = |error: String| ReplayError::NewFile(format!("{name}: {error}"));
    let mut before = engine.copy();
    before.apply(batch.events);
    let now_micros = batch.now.unix_micros;
    let cycle = step.cycle;
    let about = match result.unrecorded_cycle {
        None => format!("What was decided in cycle {cycle}, out of a bundle."),
        Some(_) => format!(
            "What is decided in cycle {cycle} from the state of a bundle, where it is not recorded."
        ),
    };
    let title = ScenarioTitle { name: format!("incident/cycle-{cycle}"), about };
    let scenario =
        scenario_text(title, &before, &step.effects, now_micros, names).map_err(failed)?;
    write_new(path, scenario.text.as_bytes())?;
    let lacks = scenario.left_out.iter().map(|what| format!("{name}: it has no {what}"));
    result.warnings.extend(lacks);
    result.scenario_differences = scenario.differences;
    Ok(())
}
