//! The engine over lists of a cluster, as `kubectl vc --local` takes them. They may be far larger than what the engine
//! keeps of them, so they stay in their file. Specification: answers.md 13 (ANS-91, ANS-92).

use vc_conf::LoadedConfig;
use vc_engine::EngineOptions;
use vc_objects::input::ObjectLines;

use super::{RunError, RunOptions, RunResult, Simulated, cycles, told_once, without_repetition};
use crate::simulation::{ListedSimulation, Setup, Simulation};

/// Reads the objects and runs the cycles. Warnings about objects are for those who write them, and tables about all
/// pods for those who look for no certain one: neither is made.
///
/// # Errors
/// The file cannot be read.
pub(super) fn simulate(
    options: &RunOptions,
    name: &str,
    loaded: &LoadedConfig,
) -> Result<Simulated, RunError> {
    let file = options.paths.first().cloned().unwrap_or_default();
    let setup = Setup {
        options: EngineOptions::default(),
        config: &loaded.config,
        objects: Vec::new(),
        now_micros: 0,
        kubelet: options.kubelet,
    };
    let ListedSimulation { mut simulation, unreadable, findings, warnings } =
        Simulation::from_lines(setup, ObjectLines::open(&file)?)?;
    simulation.keep_timeline();
    if options.keeps_history {
        simulation.keep_history();
    }
    let mut problems: Vec<String> =
        loaded.missing.iter().map(|entry| entry.in_file(name)).collect();
    problems.extend(unreadable.iter().map(ToString::to_string));
    problems.extend(told_once(&findings));
    let warnings = loaded.warnings.iter().chain(&warnings).map(ToString::to_string);
    let mut result = RunResult { warnings: warnings.collect(), ..RunResult::default() };
    let last = cycles(&mut simulation, options.until, &mut result);
    result.warnings = without_repetition(result.warnings);
    Ok(Simulated { simulation, last, result, problems, is_broken: false })
}
