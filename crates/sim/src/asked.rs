//! Questions about the whole cluster: the engine over objects from files, then the answer that the
//! scheduler would give. Specification: answers.md 11, 13 (ANS-91).

use vc_page::{AnswerView, Document, Problem, Question, StateSource};

use crate::run::{RunError, RunOptions, Simulated, simulate};
use crate::why::OwnerNames;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("no cycle was run\nhint: leave out --cycles 0")]
    NoCycle,
    /// Nothing has the name. The text is that of the scheduler.
    #[error("{}", .0.message)]
    Problem(Problem),
}

/// The answer.
pub struct Asked {
    /// What the scheduler would send.
    pub document: Document,
    /// Objects that could not be read and plugins that nobody knows, each with file and line.
    pub problems: Vec<String>,
}

/// Runs the cycles and asks about the state after the last one.
///
/// # Errors
/// The objects cannot be read, or nothing has the name that is asked about.
pub fn ask(options: &RunOptions, question: &Question) -> Result<Asked, AskError> {
    let Simulated { mut simulation, last, problems, .. } = simulate(options)?;
    let last = last.ok_or(AskError::NoCycle)?;
    let timeline = simulation.timeline();
    let owners = OwnerNames::of(&simulation);
    let engine = simulation.engine_after_cycle();
    let mut view = AnswerView::new(engine, &last.report, StateSource::File);
    view.set_owners(owners.all());
    let document = view.answer(engine, &timeline, question).map_err(AskError::Problem)?;
    Ok(Asked { document, problems })
}
