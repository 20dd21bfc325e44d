//! `vcsim what-if`: the engine over objects from files, then the difference that changes make.
//! Specification: answers.md 9, 13, 16.

mod applied;
pub mod flags;
mod json;
mod parse;
mod text;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use vc_answers::{Change, LiveObject, WhatIf, WhatIfError, WhatIfResult, what_if as answer};
use vc_model::ObjectKey;

use crate::input::{self, ANSWERS, Input, InputError, InputObject, Source};
use crate::run::{RunError, RunOptions, Simulated, simulate};
use crate::simulation::Simulation;
use crate::why::OwnerNames;
use applied::applied;
use parse::{ParsedChange, ParsedQuestion, parse};

pub use json::WhatIfJson;

/// Longest document, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// What is asked.
#[derive(Clone, Debug)]
pub struct WhatIfOptions {
    /// What to run before.
    pub run: RunOptions,
    /// Files with a document `WhatIf`, or with objects to apply.
    pub files: Vec<PathBuf>,
    /// Changes of flags, each with the flag as it was written.
    pub flags: Vec<(String, Value)>,
}

/// Why nothing was answered.
#[derive(Debug, thiserror::Error)]
pub enum WhatIfFailure {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Input(#[from] InputError),
    /// A change is wrong. The text names its place.
    #[error("{0}")]
    Change(String),
    #[error("no cycle was run\nhint: leave out --cycles 0")]
    NoCycle,
}

/// The answer.
pub struct WhatIfAnswer {
    result: WhatIfResult,
    owners: OwnerNames,
    /// Objects that could not be read and plugins that nobody knows, each with file and line.
    pub problems: Vec<String>,
    /// Whether a file is neither YAML nor JSON: what follows in it was not run.
    pub is_broken: bool,
}

/// A change with what the user calls it.
struct PlacedChange {
    place: String,
    change: Change,
}

/// Runs the cycles, makes the changes and compares.
///
/// # Errors
/// The objects cannot be read, or a change is wrong.
pub fn what_if(options: &WhatIfOptions) -> Result<WhatIfAnswer, WhatIfFailure> {
    let Simulated { mut simulation, last, problems, is_broken, .. } = simulate(&options.run)?;
    last.ok_or(WhatIfFailure::NoCycle)?;
    simulation.engine_after_cycle();
    let (question, places, warnings) = question(options, &simulation)?;
    let named = |error: WhatIfError| {
        let place = places.get(error.change).map_or("", |place| &**place);
        WhatIfFailure::Change(format!("{place}{}: {}", error.field, error.message))
    };
    let mut result = answer(simulation.engine_after_cycle(), &question).map_err(named)?;
    result.warnings.splice(0..0, warnings);
    Ok(WhatIfAnswer { result, owners: OwnerNames::of(&simulation), problems, is_broken })
}

/// Returns the question, what the user calls each of its changes, and warnings.
fn question(
    options: &WhatIfOptions,
    simulation: &Simulation,
) -> Result<(WhatIf, Vec<String>, Vec<String>), WhatIfFailure> {
    let (documents, objects) = read(options)?;
    let mut asked = WhatIf::default();
    let (mut changes, mut warnings) = (Vec::new(), Vec::new());
    for InputObject { value, source } in &documents {
        let place = format!("{source}: ");
        let question = parse(value).map_err(|text| wrong(&place, &text))?;
        (asked.cycles, asked.kubelet) = (question.cycles, question.kubelet);
        take(question, (&place, source), simulation, (&mut changes, &mut warnings))?;
    }
    if !objects.is_empty() {
        let made = applied(objects, simulation).map_err(|text| wrong("", &text))?;
        warnings.extend(made.warnings);
        changes.push(PlacedChange { place: String::new(), change: Change::Apply(made.events) });
    }
    for (flag, change) in &options.flags {
        let document = json!({ "spec": { "changes": [change] } });
        let place = format!("{flag}: ");
        let question = parse(&document).map_err(|text| wrong(&place, &text))?;
        let source = Source { file: flag.as_str().into(), line: 1 };
        take(question, (&place, &source), simulation, (&mut changes, &mut warnings))?;
    }
    let mut places = Vec::new();
    for PlacedChange { place, change } in changes {
        places.push(place);
        asked.changes.push(resolved(change, simulation));
    }
    Ok((asked, places, warnings))
}

fn wrong(place: &str, text: &str) -> WhatIfFailure {
    WhatIfFailure::Change(format!("{place}{text}"))
}

/// Reads the files: documents, and objects to apply.
fn read(options: &WhatIfOptions) -> Result<(Vec<InputObject>, Vec<InputObject>), WhatIfFailure> {
    let Input { objects, unreadable, .. } = input::read(&options.files)?;
    if let Some(unreadable) = unreadable.first() {
        return Err(WhatIfFailure::Change(unreadable.to_string()));
    }
    let is_document = |object: &InputObject| {
        object.value["kind"] == "WhatIf" && object.value["apiVersion"] == ANSWERS
    };
    let (documents, objects): (Vec<_>, Vec<_>) = objects.into_iter().partition(is_document);
    if let [_, second, ..] = &documents[..] {
        let text = format!("{}: one WhatIf wanted, {} given", second.source, documents.len());
        return Err(WhatIfFailure::Change(text));
    }
    for InputObject { value, source } in &documents {
        if MOST_BYTES < value.to_string().len() {
            return Err(WhatIfFailure::Change(format!("{source}: 1 MiB at most")));
        }
    }
    Ok((documents, objects))
}

/// Adds the changes of a document.
fn take(
    question: ParsedQuestion,
    (place, source): (&str, &Source),
    simulation: &Simulation,
    (changes, warnings): (&mut Vec<PlacedChange>, &mut Vec<String>),
) -> Result<(), WhatIfFailure> {
    warnings.extend(question.warnings);
    let is_flag = source.file.starts_with("--");
    for (path, change) in question.changes {
        let place = if is_flag { place.to_owned() } else { format!("{place}{path}.") };
        let change = match change {
            ParsedChange::Made(change) => change,
            ParsedChange::Apply(objects) => {
                let mut input = Input::default();
                let file: Arc<str> = format!("{}: {path}.apply", source.file).into();
                for value in objects {
                    input.add_object(&file, source.line, value);
                }
                if let Some(unreadable) = input.unreadable.first() {
                    return Err(WhatIfFailure::Change(unreadable.to_string()));
                }
                let made = applied(input.objects, simulation);
                let made = made.map_err(WhatIfFailure::Change)?;
                warnings.extend(made.warnings);
                Change::Apply(made.events)
            }
        };
        changes.push(PlacedChange { place, change });
    }
    Ok(())
}

/// Names controllers of a change by their PodGroups.
fn resolved(mut change: Change, simulation: &Simulation) -> Change {
    let keys: Vec<&mut ObjectKey> = match &mut change {
        Change::Finish(jobs) => jobs.iter_mut().collect(),
        Change::SetJob(job, _) => vec![job],
        Change::SetPods(job, _) => vec![job],
        Change::Delete(objects) => objects.iter_mut().filter_map(job_key).collect(),
        _ => Vec::new(),
    };
    for key in keys {
        if let Some(group) = crate::why::group_named(simulation, key) {
            *key = group;
        }
    }
    change
}

fn job_key(object: &mut LiveObject) -> Option<&mut ObjectKey> {
    match object {
        LiveObject::Job(key) => Some(key),
        _ => None,
    }
}

impl WhatIfAnswer {
    /// Returns the answer for people.
    pub fn text(&self) -> String {
        text::of(&self.result, &self.owners)
    }

    /// Returns the answer for programs.
    pub fn json(&self) -> WhatIfJson<'_> {
        WhatIfJson::of(&self.result)
    }

    /// True if a pod that was applied has no node at the end.
    pub fn is_unplaced(&self) -> bool {
        !self.result.unplaced_applied.is_empty()
    }
}
