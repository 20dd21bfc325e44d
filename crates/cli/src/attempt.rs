//! One way to a scheduler that is tried, and what became of it. Specification: answers.md 13 (ANS-88).

use std::cell::Cell;

use vc_kube::{AnswersError, AnswersWay};
use vc_text::escape_lines;

use crate::args::Arguments;

/// What a failure says about the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// There is no scheduler that this user could ask there.
    NotThere,
    /// Nothing comes back.
    NoAnswer,
    /// Somebody is there, and cannot answer now.
    Unavailable,
    /// Somebody is there, and this user may not ask.
    Forbidden,
    /// A refusal of the question, or a problem on this side.
    Other,
}

/// Why a question to a scheduler has no answer.
#[derive(Clone)]
pub(crate) struct AskFailure {
    pub(crate) text: String,
    pub(crate) kind: FailureKind,
}

impl AskFailure {
    /// True if a scheduler has decided about the question, or if none could.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self.kind, FailureKind::Forbidden | FailureKind::Other)
    }
}

impl From<String> for AskFailure {
    fn from(text: String) -> Self {
        Self { text, kind: FailureKind::Other }
    }
}

impl From<AnswersError> for AskFailure {
    fn from(error: AnswersError) -> Self {
        let kind = match &error {
            error if error.is_not_there() => FailureKind::NotThere,
            AnswersError::NoAnswer { .. } => FailureKind::NoAnswer,
            AnswersError::Unavailable(_) => FailureKind::Unavailable,
            AnswersError::Forbidden(_) => FailureKind::Forbidden,
            _ => FailureKind::Other,
        };
        Self { text: error.to_string(), kind }
    }
}

/// A way that is tried.
pub(crate) struct Attempt<'a> {
    arguments: &'a Arguments,
    way: AnswersWay,
    /// True if the way is neither named by the user nor fixed: whoever owns it is told to the user.
    is_found: bool,
    /// True if the line about this way is printed.
    is_reported: Cell<bool>,
}

impl<'a> Attempt<'a> {
    pub(crate) fn new(arguments: &'a Arguments, way: AnswersWay, is_found: bool) -> Self {
        Self { arguments, way, is_found, is_reported: Cell::new(false) }
    }

    /// True if another way may lead to an answer after this failure.
    pub(crate) fn leads_on(&self, failure: &AskFailure) -> bool {
        let leads_on = match failure.kind {
            FailureKind::NotThere => true,
            // The API server checks other rights than a scheduler does: by path.
            FailureKind::Forbidden => self.way == AnswersWay::ApiServer,
            // A pod that leads no more is one of several.
            FailureKind::Unavailable => self.is_found,
            FailureKind::NoAnswer | FailureKind::Other => false,
        };
        leads_on && self.arguments.can_ask_again()
    }

    /// Says, once, that this way answers.
    pub(crate) fn report_answer(&self) {
        self.report("answers", self.is_found);
    }

    /// Says, once, why this way does not answer.
    pub(crate) fn report_failure(&self, failure: &AskFailure) {
        let is_asked = self.is_found && failure.kind != FailureKind::NotThere;
        self.report(first_line(&failure.text), is_asked);
    }

    fn report(&self, result: &str, is_asked: bool) {
        if self.is_reported.replace(true) {
            return;
        }
        match (self.arguments.verbose, is_asked) {
            (true, _) => print_line(&format!("{}: {result}", self.way)),
            (false, true) => print_line(&asked_line(&self.way)),
            (false, false) => {}
        }
    }
}

/// Returns the line that names who was asked.
pub(crate) fn asked_line(way: &AnswersWay) -> String {
    format!("asked {way}")
}

/// Prints a line beside the answer.
pub(crate) fn print_line(text: &str) {
    eprintln!("{}", escape_lines(text));
}

pub(crate) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
