//! `vcsim run`: the engine over Kubernetes objects from files. Where each pod goes, and why the
//! others wait.

mod certificate;
mod lint;
mod lists;
mod quota;
mod reasons;
mod result;
mod table;
mod topology;
mod usage;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use vc_conf::AllowMissing;
use vc_engine::EngineOptions;
use vc_page::StateSource;

use crate::simulation::{Cycle, Finding, KubeletMode, Setup, Simulation};
use vc_objects::admission::{self, AdmittedObjects};
use vc_objects::input::{self, InputError};

pub use certificate::{CertificateOutput, PlacementOutput, RuleOutput, VictimOutput};
pub use quota::QuotaUseOutput;
pub use result::{
    BindOutput, EvictionOutput, PipelinedOutput, PodGroupOutput, QueueUseOutput, RunResult,
    SkippedOutput, WaitingOutput,
};
pub use table::table;
pub use topology::{DomainOutput, TopologyOutput};
pub use usage::AccountUseOutput;

/// Time between two cycles, as `--schedule-period` has it.
const PERIOD_MICROS: i64 = 1_000_000;

/// A cluster that has not settled after this many cycles is taken for one that never will.
const MAX_CYCLES: u32 = 10_000;

/// How long to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLimit {
    Cycles(u32),
    /// Until a cycle decides nothing.
    Settled,
}

/// What to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Absent: the configuration of the chart.
    pub scheduler_conf: Option<PathBuf>,
    /// What the configuration may name though this version lacks it.
    pub allow_missing: AllowMissing,
    pub until: RunLimit,
    pub kubelet: KubeletMode,
    /// True if a bundle is wanted of it.
    pub keeps_history: bool,
    /// Files, directories and `-`. If the source is [`StateSource::Local`], one file with a JSON object in each line,
    /// none of which is a workload.
    pub paths: Vec<PathBuf>,
    /// What the answers say of where the objects are from.
    pub source: StateSource,
}

/// Why nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Conf(#[from] vc_conf::ConfError),
    #[error(transparent)]
    Missing(#[from] vc_conf::MissingError),
}

/// What was run.
#[derive(Debug)]
pub struct RunOutcome {
    pub result: RunResult,
    /// Objects that could not be read and plugins that nobody knows, each with file and line.
    pub problems: Vec<String>,
    /// Whether a file is neither YAML nor JSON: what follows in it was not run.
    pub is_broken: bool,
    /// The bundle, or why there is none. `None`: none was wanted, or the configuration asks services
    /// outside.
    pub bundle: Option<Result<Vec<u8>, String>>,
}

/// Reads the objects and runs the cycles.
///
/// # Errors
/// A path or the configuration cannot be read.
pub fn run(options: &RunOptions) -> Result<RunOutcome, RunError> {
    let Simulated { simulation, result, problems, is_broken, .. } = simulate(options)?;
    Ok(RunOutcome { result, problems, is_broken, bundle: simulation.bundle() })
}

/// A simulation after its last cycle.
pub(crate) struct Simulated {
    pub(crate) simulation: Simulation,
    /// The last cycle. `None` if none was run.
    pub(crate) last: Option<Cycle>,
    /// Without the tables about the state after the last cycle, and without warnings about objects, if they are lists
    /// of a cluster.
    pub(crate) result: RunResult,
    pub(crate) problems: Vec<String>,
    pub(crate) is_broken: bool,
}

/// Reads the objects and runs the cycles. The simulation stays, for questions.
///
/// # Errors
/// A path or the configuration cannot be read.
pub(crate) fn simulate(options: &RunOptions) -> Result<Simulated, RunError> {
    let (name, loaded) = configuration(options.scheduler_conf.as_deref(), &options.allow_missing)?;
    if options.source == StateSource::Local {
        return lists::simulate(options, &name, &loaded);
    }
    let input = input::read(&options.paths)?;
    let is_broken = input.is_broken;
    let fields = input::unknown_fields(&input.objects);
    let AdmittedObjects { objects, unreadable, now_micros } = admission::admit(input);
    let mut problems: Vec<String> =
        loaded.missing.iter().map(|entry| entry.in_file(&name)).collect();
    problems.extend(unreadable.iter().map(ToString::to_string));
    let mut result = RunResult {
        warnings: loaded.warnings.iter().map(ToString::to_string).collect(),
        ..RunResult::default()
    };
    result.warnings.extend(fields);
    result.warnings.extend(lint::warnings(&objects));
    let (mut simulation, findings, warnings) = Simulation::new(Setup {
        options: EngineOptions::default(),
        config: &loaded.config,
        objects,
        now_micros,
        kubelet: options.kubelet,
    });
    simulation.keep_timeline();
    if options.keeps_history {
        simulation.keep_history();
    }
    problems.extend(told_once(&findings));
    result.warnings.extend(warnings.iter().map(ToString::to_string));
    let last = cycles(&mut simulation, options.until, &mut result);
    if let Some(cycle) = &last {
        result.finish(&cycle.report, &simulation);
    }
    result.warnings = without_repetition(result.warnings);
    Ok(Simulated { simulation, last, result, problems, is_broken })
}

/// The findings with their places; pods of one workload all have the same, which is told once.
fn told_once(findings: &[Finding]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut reported = Vec::new();
    for Finding { source, message, .. } in findings {
        let what = message.split_once(": ").map_or(&**message, |(_, what)| what);
        if seen.insert((source, what)) {
            reported.push(format!("{source}: {message}"));
        }
    }
    reported
}

/// Returns the name and the content of a configuration. Without a file it is that of the chart.
///
/// # Errors
/// The file cannot be read, or the scheduler would refuse it.
pub(crate) fn configuration(
    file: Option<&Path>,
    allow_missing: &AllowMissing,
) -> Result<(String, vc_conf::LoadedConfig), RunError> {
    let (name, text) = match file {
        None => ("the default configuration".to_owned(), vc_conf::CHART.to_owned()),
        Some(path) => (path.display().to_string(), input::text_of(path)?),
    };
    let loaded = vc_conf::parse(&name, &text, &vc_engine::KNOWN)?;
    let loaded = loaded.admit(&name, allow_missing)?;
    Ok((name, loaded))
}

fn cycles(simulation: &mut Simulation, until: RunLimit, result: &mut RunResult) -> Option<Cycle> {
    let most = match until {
        RunLimit::Cycles(count) => count,
        RunLimit::Settled => MAX_CYCLES,
    };
    let mut last = None;
    for number in 0..most {
        if 0 < number {
            simulation.tick(PERIOD_MICROS);
        }
        let cycle = simulation.cycle();
        result.note(&cycle, simulation);
        let settled = until == RunLimit::Settled && cycle.is_quiet();
        last = Some(cycle);
        if settled {
            break;
        }
    }
    if until == RunLimit::Settled && result.cycles == MAX_CYCLES {
        result.warnings.push(format!("the cluster has not settled after {MAX_CYCLES} cycles"));
    }
    last
}

fn without_repetition(texts: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    texts.into_iter().filter(|text| seen.insert(text.clone())).collect()
}
