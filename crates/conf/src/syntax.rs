//! Errors of the YAML reader, in words for an operator.

use serde_yaml::Error;

use crate::error::{ConfError, printable};

/// Part of the reader's message, and what to do then.
const HINTS: &[(&str, &str)] = &[
    ("tab", "indent with spaces, YAML does not allow tabs there"),
    ("unclosed", "close the bracket; the file may be cut off"),
    ("quoted scalar", "close the quote and keep the text indented; the file may be cut off"),
    ("mapping values", "put a value that contains a colon and a blank into quotes"),
    ("unknown anchor", "define the anchor (&name) before its use (*name)"),
    ("weak recursion", "an anchor may not contain itself"),
    ("merge value", "<< takes a map or a list of maps"),
    ("expected key", "align the key with its neighbours"),
];
const TOO_MUCH: &str = "nested too deeply or too large for a configuration";

/// The error with its line; the field is the file's text as such.
pub(crate) fn explain(file: &str, error: &Error) -> ConfError {
    let full = error.without_snippet().to_string();
    let message = full.split(" at line ").next().unwrap_or(&full);
    let limit = message.contains("budget breached") || message.contains("recursion limit");
    let (problem, hint) = match limit {
        true => (TOO_MUCH, "the longest way down to an argument is about ten levels"),
        false => (message, hint(message)),
    };
    let line = error.location().and_then(|place| usize::try_from(place.line()).ok());
    ConfError {
        file: file.to_owned(),
        line: line.filter(|line| *line > 0),
        field: "YAML syntax".to_owned(),
        problem: printable(problem),
        hint: hint.to_owned(),
    }
}

fn hint(message: &str) -> &'static str {
    let known = HINTS.iter().find(|(part, _)| message.contains(part));
    known.map_or("check indentation and quotes of this line and the one before", |row| row.1)
}
