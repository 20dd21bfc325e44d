//! YAML streams. Documents are split first, so that a broken one does not take the others with it.

use std::sync::Arc;

use serde_yaml::{Options, SnippetMode};

use super::{Input, document::Document};

/// Levels of maps and lists; each costs the parser some 30 KiB of stack in a debug build.
const MAX_DEPTH: usize = 60;

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

/// The line of an error within its text, and what it says.
pub fn error_text(error: &serde_yaml::Error) -> (usize, String) {
    let error = error.without_snippet();
    let line = error.location().map_or(1, |at| usize::try_from(at.line()).unwrap_or(1));
    let render = serde_yaml::render_options! { snippets: SnippetMode::Off };
    let text = error.render_with_options(render);
    let message = text.rsplit_once(" at line ").map_or(&*text, |(message, _)| message);
    (line, message.to_owned())
}

pub(super) fn read(input: &mut Input, file: &Arc<str>, text: &str) {
    for (first_line, document) in documents(text) {
        let parsed = serde_yaml::from_str_with_options::<Option<Document>>(document, options());
        match parsed {
            Ok(None) => {}
            Ok(Some(parsed)) => {
                for (line, object) in parsed.into_objects(content_line(document)) {
                    input.add_object(file, first_line + line.max(1) - 1, object);
                }
            }
            Err(error) => {
                let (line, message) = error_text(&error);
                input.add_failure(file, first_line + line - 1, message);
            }
        }
    }
}

/// The documents of a stream with the number of their first line. A marker at the start of a line
/// ends a document even inside a scalar.
fn documents(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut start, mut first_line, mut position) = (0, 1, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if is_marker(line) {
            found.push((first_line, &text[start..position]));
            // What follows the marker on its line belongs to the new document.
            (start, first_line) = (position + 3, number + 1);
        }
        position += line.len();
    }
    found.push((first_line, &text[start..]));
    found.retain(|(_, document)| !is_blank(document));
    found
}

fn is_marker(line: &str) -> bool {
    line.strip_prefix("---")
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
