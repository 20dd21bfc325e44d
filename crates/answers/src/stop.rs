//! The end of a question that is stopped before it is answered, because changes of the state wait for its thread.
//! Specification: answers.md 10 (ANS-61).
//!
//! No answer depends on it: a question that is stopped has none. The signal is read between trials, supposed changes
//! and supposed cycles, where nothing is lifted. A copy may still be changed: it is dropped with the question or the state.

use std::panic::resume_unwind;
use std::sync::Arc;

/// What a question that was stopped unwinds with, without a message. Whoever asks catches it, and drops the state that
/// was asked.
#[derive(Clone, Copy, Debug)]
pub struct QuestionStopped;

/// Tells whether questions are to be stopped.
pub type StopCondition = Arc<dyn Fn() -> bool + Send + Sync>;

/// The condition under which questions about a state are stopped. None are by default.
#[derive(Clone, Default)]
pub(crate) struct StopSignal(Option<StopCondition>);

impl StopSignal {
    pub(crate) fn new(is_due: StopCondition) -> Self {
        Self(Some(is_due))
    }

    /// Returns the condition. Returns `None` if no question is stopped.
    pub(crate) fn condition(&self) -> Option<StopCondition> {
        self.0.clone()
    }

    /// Ends the question with [`QuestionStopped`] if it is to be stopped.
    pub(crate) fn check(&self) {
        if self.0.as_ref().is_some_and(|is_due| is_due()) {
            resume_unwind(Box::new(QuestionStopped));
        }
    }
}
