//! `vcsim report` and `vcsim run --html`: the engine over objects from files, then all answers as one page.
//! Specification: answers.md 14 (ANS-96).

use vc_page::report_html;

use crate::asked::SimulatedAnswers;
use crate::run::{RunError, RunOptions, RunOutcome, Simulated, simulate};

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("no cycle was run\nhint: leave out --cycles 0")]
    NoCycle,
}

/// The page.
pub struct Report {
    /// One file with data, styles and scripts.
    pub html: String,
    /// Objects that could not be read and plugins that nobody knows, each with file and line.
    pub problems: Vec<String>,
    /// Whether a file is neither YAML nor JSON: what follows in it was not run.
    pub is_broken: bool,
}

/// Runs the cycles and writes down the state after the last one.
///
/// # Errors
/// The objects cannot be read, or no cycle was run.
pub fn report(options: &RunOptions) -> Result<Report, ReportError> {
    let (RunOutcome { problems, is_broken, .. }, html) = run_and_report(options)?;
    Ok(Report { html, problems, is_broken })
}

/// Runs the cycles. Returns what was run, and the page about the state after the last one.
///
/// # Errors
/// The objects cannot be read, or no cycle was run.
pub fn run_and_report(options: &RunOptions) -> Result<(RunOutcome, String), ReportError> {
    let Simulated { simulation, last, result, problems, is_broken } = simulate(options)?;
    let last = last.ok_or(ReportError::NoCycle)?;
    let bundle = simulation.bundle();
    let answers = SimulatedAnswers::new(simulation, &last, options.source).answer_all();
    Ok((RunOutcome { result, problems, is_broken, bundle }, report_html(&answers)))
}
