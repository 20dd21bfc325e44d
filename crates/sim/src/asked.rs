//! Questions about the whole cluster: the engine over objects from files, then the answer that the
//! scheduler would give. Specification: answers.md 11, 13 (ANS-91).

use std::sync::Arc;

use serde_json::{Map, Value};
use vc_page::{
    AnswerView, ClusterNames, Document, Problem, Question, StateSource, Timeline, report_answers,
};

use crate::run::{RunError, RunOptions, Simulated, simulate};
use crate::simulation::{Cycle, Simulation};
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
    let Simulated { simulation, last, problems, .. } = simulate(options)?;
    let last = last.ok_or(AskError::NoCycle)?;
    let mut answers = SimulatedAnswers::new(simulation, &last, options.source);
    let document = answers.answer(question).map_err(AskError::Problem)?;
    Ok(Asked { document, problems })
}

/// A simulation after a cycle, with the answers about it.
pub(crate) struct SimulatedAnswers {
    simulation: Simulation,
    timeline: Timeline,
    view: AnswerView,
}

impl SimulatedAnswers {
    /// Returns the answers about a simulation whose last cycle is this one.
    pub(crate) fn new(mut simulation: Simulation, last: &Cycle, source: StateSource) -> Self {
        let timeline = simulation.timeline();
        let owners = OwnerNames::of(&simulation);
        let engine = simulation.engine_after_cycle();
        let mut view = AnswerView::new(engine, &last.report, source);
        view.set_owners(owners.all());
        Self { simulation, timeline, view }
    }

    /// Answers a question.
    ///
    /// # Errors
    /// Nothing has the name that is asked about, or several do.
    pub(crate) fn answer(&mut self, question: &Question) -> Result<Document, Problem> {
        self.view.answer(self.simulation.engine_after_cycle(), &self.timeline, question)
    }

    /// Returns all answers that the page shows, by path below that of the version.
    pub(crate) fn answer_all(&mut self) -> Map<String, Value> {
        report_answers(&mut self.view, self.simulation.engine_after_cycle(), &self.timeline)
    }

    /// Returns the names by which hidden ones are found in sentences.
    pub(crate) fn names(&mut self) -> Arc<ClusterNames> {
        self.view.names()
    }
}
