//! Kubernetes objects from files, directories and standard input: YAML with several documents,
//! JSON, `List` kinds, as `kubectl get -A -o yaml` prints them. Every object knows its place.

mod document;
mod files;
mod json;
mod unknown_fields;
mod yaml;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

pub(crate) use files::text_of;
pub use files::{InputError, read, scenario_files};
pub(crate) use unknown_fields::unknown_fields;
pub(crate) use yaml::{error_text, options as yaml_options};

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
#[derive(Clone, Debug)]
pub struct InputObject {
    pub value: Value,
    pub source: Source,
}

/// Something that cannot be read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    pub source: Source,
    pub message: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.source, self.message)
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

impl Input {
    /// Takes in a text in either format.
    pub fn add_text(&mut self, file: &Arc<str>, text: &str) {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim_start().starts_with(['{', '[']) {
            json::read(self, file, text);
        } else {
            yaml::read(self, file, text);
        }
    }

    pub(crate) fn add_object(&mut self, file: &Arc<str>, line: usize, value: Value) {
        let source = Source { file: file.clone(), line };
        match document::identity_problem(&value) {
            None => self.objects.push(InputObject { value, source }),
            Some(message) => self.unreadable.push(Unreadable { source, message }),
        }
    }

    fn add_failure(&mut self, file: &Arc<str>, line: usize, message: String) {
        let source = Source { file: file.clone(), line };
        self.unreadable.push(Unreadable { source, message });
        self.is_broken = true;
    }
}
