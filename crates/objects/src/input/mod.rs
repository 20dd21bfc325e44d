//! Kubernetes objects from files, directories and standard input: YAML with several documents,
//! JSON, `List` kinds, as `kubectl get -A -o yaml` prints them. Every object knows its place.

mod document;
mod files;
mod json;
mod lines;
mod unknown_fields;
mod yaml;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

pub use document::{ANSWERS, is_what_if};
pub use files::text_of;
pub use files::{InputError, read, scenario_files};
pub use lines::{LinePlace, ObjectLines};
pub use unknown_fields::unknown_fields;
pub use yaml::{YamlProblem, options as yaml_options};

/// Where an object stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// As the user named it; `-` is standard input.
    pub file: Arc<str>,
    /// From 1.
    pub line: usize,
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.file, self.line)
    }
}

/// An object as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputObject {
    pub value: Value,
    pub source: Source,
}

/// Something that cannot be read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pub source: Source,
    /// From 1. `None`: the whole object is meant, or the parser does not say it.
    pub column: Option<usize>,
    pub message: String,
}

impl Unreadable {
    /// Returns a problem with a whole object.
    pub fn of_object(source: Source, message: String) -> Self {
        Self { source, column: None, message }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            Some(column) => write!(out, "{}:{column}: {}", self.source, self.message),
            None => write!(out, "{}: {}", self.source, self.message),
        }
    }
}

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct Input {
    pub objects: Vec<InputObject>,
    pub unreadable: Vec<Unreadable>,
    /// Whether a text is neither YAML nor JSON, so that what follows in it is lost.
    pub is_broken: bool,
}

/// True if the text is JSON rather than YAML in flow style. Keys of JSON are quoted, and its strings
/// hold no line breaks, so a separator of YAML documents is never part of it.
fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    let is_object = text.strip_prefix('{').is_some_and(|rest| {
        let rest = rest.trim_start();
        rest.is_empty() || rest.starts_with(['"', '}'])
    });
    (is_object || text.starts_with('[')) && !text.contains("\n---")
}

impl Input {
    /// Takes in a text in either format.
    pub fn add_text(&mut self, file: &Arc<str>, text: &str) {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if is_json(text) {
            json::read(self, file, text);
        } else {
            yaml::read(self, file, text);
        }
    }

    pub fn add_object(&mut self, file: &Arc<str>, line: usize, value: Value) {
        let source = Source { file: file.clone(), line };
        match document::identity_problem(&value) {
            None => self.objects.push(InputObject { value, source }),
            Some(message) => self.unreadable.push(Unreadable::of_object(source, message)),
        }
    }

    fn add_failure(
        &mut self,
        file: &Arc<str>,
        (line, column): (usize, Option<usize>),
        message: String,
    ) {
        let source = Source { file: file.clone(), line };
        self.unreadable.push(Unreadable { source, column, message });
        self.is_broken = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_in_flow_style_is_no_json() {
        let json = ["{}", "{\n  \"kind\": 1}", "[{}]", "{"];
        let yaml =
            ["{kind: Pod}", "{\"kind\": 1}\n---\n{\"kind\": 2}", "kind: Pod", "{ kind: x }\n---\n"];
        assert_eq!(json.map(is_json), [true; 4]);
        assert_eq!(yaml.map(is_json), [false; 4]);
        let (file, mut input) = (Arc::from("-"), Input::default());
        let queue = |name| format!("{{apiVersion: v1, kind: Queue, metadata: {{name: {name}}}}}");
        input.add_text(&file, &format!("{}\n---\n{}\n", queue("a"), queue("b")));
        assert_eq!((input.objects.len(), input.is_broken), (2, false));
    }

    /// Returns the last problem of a text that is neither YAML nor JSON.
    fn problem(text: &str) -> String {
        let mut input = Input::default();
        input.add_text(&Arc::from("-"), text);
        assert!(input.is_broken, "{text}");
        input.unreadable.last().map(ToString::to_string).unwrap_or_default()
    }

    /// Returns line and column of a problem.
    fn place(problem: &str) -> [Option<usize>; 2] {
        let mut parts = problem.split(':').skip(1);
        [parts.next(), parts.next()].map(|part| part?.parse().ok())
    }

    #[test]
    fn ans_16_what_is_no_json_has_its_line_and_column() {
        for (text, expected) in [
            ("{\n  \"a\": x}", "-:2:8: expected value"),
            ("{\"a\": 1}\n{\"b\"", "-:2:4: EOF while parsing an object"),
        ] {
            assert!(problem(text).starts_with(expected), "{}", problem(text));
        }
        // The column of an item counts from the begin of its line.
        let nested = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let item = |before: &str| {
            let list = format!("{{\"kind\": \"List\", \"items\": [\n{before}{nested}]}}");
            place(&problem(&list))
        };
        let ([line, near], [_, far]) = (item(""), item("  "));
        assert_eq!((line, far), (Some(2), near.map(|column| column + 2)));
        assert!(near > Some(1), "{near:?}");
    }

    /// Which end of a bracket the parser of YAML names may change with its version.
    #[test]
    fn ans_16_what_is_no_yaml_has_its_line_and_column() {
        let cases = [("a: [\n", 1), ("a: 1\n---\nb: {c: [\n", 3), ("a: 1\n--- {c: ]\n", 2)];
        for (text, least) in cases {
            let [line, column] = place(&problem(text));
            assert!(line >= Some(least) && column > Some(0), "{text}: {}", problem(text));
        }
        // The marker of a document is a part of its first line.
        for (text, column) in [("a: 1\n--- ]\n", 5), ("a: 1\n--- {b: *x}\n", 9)] {
            assert_eq!(place(&problem(text)), [Some(2), Some(column)], "{text}");
        }
    }
}
