//! How answers are printed. Specification: answers.md 13 (ANS-86).

use std::io::Write;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::args::Output;

/// Prints a document in this form, and returns it.
///
/// # Errors
/// The document is none of this version.
pub(crate) fn show<T: DeserializeOwned>(
    output: Output,
    text: &str,
    for_people: impl Fn(&T) -> String,
) -> Result<T, String> {
    let unreadable = |error: serde_json::Error| {
        format!("the answer cannot be read: {error}\nhint: is kubectl-vc as old as the scheduler?")
    };
    let it: T = serde_json::from_str(text).map_err(unreadable)?;
    match output {
        Output::Text | Output::Wide => print(&for_people(&it)),
        // What this version does not know is printed, too.
        Output::Json => print(&json(&value(text)?)?),
        Output::Yaml => print(&yaml(&value(text)?)?),
    }
    Ok(it)
}

fn value(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

pub(crate) fn json(content: &impl Serialize) -> Result<String, String> {
    let text = serde_json::to_string_pretty(content);
    text.map(|text| text + "\n").map_err(|error| format!("cannot print: {error}"))
}

pub(crate) fn yaml(content: &impl Serialize) -> Result<String, String> {
    serde_yaml::to_string(content).map_err(|error| format!("cannot print: {error}"))
}

/// Prints. Whoever does not read on has read enough.
pub(crate) fn print(text: &str) {
    drop(std::io::stdout().lock().write_all(text.as_bytes()));
}
