//! YAML streams. Documents are split first, so that a broken one does not take the others with it.

use std::sync::Arc;

use serde_yaml::{Options, SnippetMode};

use super::{Input, document::Document};

/// Levels of maps and lists; each costs the parser some 30 KiB of stack in a debug build.
const MAX_DEPTH: usize = 60;
/// Begin of a document.
const MARKER: &str = "---";

/// Sized for dumps of whole clusters. Only `true` and `false` are booleans: a label `no` or a node
/// `n` is a text to everybody but YAML 1.1.
pub fn options() -> Options {
    const MANY: usize = 1 << 40;
    serde_yaml::options! {
        budget: serde_yaml::budget! {
            max_depth: MAX_DEPTH,
            max_events: MANY,
            max_nodes: MANY,
            max_total_scalar_bytes: MANY,
            max_total_comment_bytes: MANY
        },
        strict_booleans: true
    }
}

/// An error of the parser, with its place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlProblem {
    /// From 1.
    pub line: usize,
    /// From 1. `None`: the parser does not say it.
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl YamlProblem {
    /// Returns what an error says.
    pub fn of(error: &serde_yaml::Error) -> Self {
        let error = error.without_snippet();
        let number = |number: u64| usize::try_from(number).ok();
        let line = error.location().and_then(|at| number(at.line())).unwrap_or(1);
        let column = error.location().and_then(|at| number(at.column()));
        let render = serde_yaml::render_options! { snippets: SnippetMode::Off };
        let text = error.render_with_options(render);
        let message = text.rsplit_once(" at line ").map_or(&*text, |(message, _)| message);
        Self { line, column, message: message.to_owned() }
    }
}

pub(super) fn read(input: &mut Input, file: &Arc<str>, text: &str) {
    for YamlDocument { first_line, marker_columns, text: document } in documents(text) {
        let parsed = serde_yaml::from_str_with_options::<Option<Document>>(document, options());
        match parsed {
            Ok(None) => {}
            Ok(Some(parsed)) => {
                for (line, object) in parsed.into_objects(content_line(document)) {
                    input.add_object(file, first_line + line.max(1) - 1, object);
                }
            }
            Err(error) => {
                let YamlProblem { line, column, message } = YamlProblem::of(&error);
                let before = if line == 1 { marker_columns } else { 0 };
                let column = column.map(|column| column + before);
                input.add_failure(file, (first_line + line - 1, column), message);
            }
        }
    }
}

/// A document of a stream.
struct YamlDocument<'a> {
    /// The number of its first line, from 1.
    first_line: usize,
    /// Columns of the marker before it on its first line.
    marker_columns: usize,
    text: &'a str,
}

/// The documents of a stream. A marker at the start of a line ends a document even inside a scalar.
fn documents(text: &str) -> Vec<YamlDocument<'_>> {
    let mut found = Vec::new();
    let (mut start, mut position) = (0, 0);
    let (mut first_line, mut marker_columns) = (1, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if is_marker(line) {
            found.push(YamlDocument { first_line, marker_columns, text: &text[start..position] });
            // What follows the marker on its line belongs to the new document.
            start = position + MARKER.len();
            (first_line, marker_columns) = (number + 1, MARKER.len());
        }
        position += line.len();
    }
    found.push(YamlDocument { first_line, marker_columns, text: &text[start..] });
    found.retain(|document| !is_blank(document.text));
    found
}

fn is_marker(line: &str) -> bool {
    line.strip_prefix(MARKER)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

fn is_blank(document: &str) -> bool {
    document.lines().all(|line| {
        let line = line.trim();
        line.is_empty() || line.starts_with(['#', '%']) || line == "..."
    })
}

/// The line of a document on which its content begins.
fn content_line(document: &str) -> usize {
    let content = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    document.lines().position(content).map_or(1, |position| position + 1)
}
