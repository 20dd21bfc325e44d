//! `vcsim what-if`: the engine over objects from files, then the difference that changes make.
//! Specification: answers.md 9, 13, 16.

mod live;

use std::path::PathBuf;

use serde_json::Value;
use vc_answers::{
    Change, ExpectedEnds, LiveObject, SubjectKind, WhatIfError, WhatIfResult, what_if as answer,
};
use vc_model::ObjectKey;
use vc_objects::input::{self, Input, InputError, InputObject};
use vc_objects::what_if::{MOST_BYTES, WhatIfAsked, WhatIfTexts, split, understand};
use vc_page::{StateSource, WhatIfResultJson, what_if_text};

use crate::run::{RunError, RunOptions, Simulated, simulate};
use crate::simulation::Simulation;
use crate::why::{OwnerNames, group_named};
use live::SimulationObjects;

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
    source: StateSource,
    /// Objects that could not be read and plugins that nobody knows, each with file and line.
    pub problems: Vec<String>,
    /// Whether a file is neither YAML nor JSON: what follows in it was not run.
    pub is_broken: bool,
}

/// Runs the cycles, makes the changes and compares.
///
/// # Errors
/// The objects cannot be read, or a change is wrong.
pub fn what_if(options: &WhatIfOptions) -> Result<WhatIfAnswer, WhatIfFailure> {
    let Simulated { mut simulation, last, problems, is_broken, .. } = simulate(&options.run)?;
    last.ok_or(WhatIfFailure::NoCycle)?;
    simulation.engine_after_cycle();
    let live = SimulationObjects::of(&simulation);
    let texts = read(options)?;
    let understood =
        understand(texts, &live).map_err(|error| WhatIfFailure::Change(error.to_string()))?;
    let WhatIfAsked { mut question, places, warnings } = understood;
    question.changes.iter_mut().for_each(|change| name_groups(change, &simulation));
    let named = |error: WhatIfError| {
        let place = places.get(error.change).map_or("", |place| &**place);
        WhatIfFailure::Change(format!("{place}{}: {}", error.field, error.message))
    };
    let mut result = answer(simulation.engine_after_cycle(), &ExpectedEnds::default(), &question)
        .map_err(named)?;
    result.warnings.splice(0..0, warnings);
    let (owners, source) = (OwnerNames::of(&simulation), options.run.source);
    Ok(WhatIfAnswer { result, owners, source, problems, is_broken })
}

/// Reads the files: a document, and objects to apply.
fn read(options: &WhatIfOptions) -> Result<WhatIfTexts, WhatIfFailure> {
    let Input { objects, unreadable, .. } = input::read(&options.files)?;
    if let Some(unreadable) = unreadable.first() {
        return Err(WhatIfFailure::Change(unreadable.to_string()));
    }
    let (document, objects) = split(objects).map_err(WhatIfFailure::Change)?;
    if let Some(InputObject { value, source }) = &document
        && MOST_BYTES < value.to_string().len()
    {
        return Err(WhatIfFailure::Change(format!("{source}: 1 MiB at most")));
    }
    let document = document.map(|document| (format!("{}: ", document.source), document));
    let flags = options.flags.clone();
    Ok(WhatIfTexts { document, objects, flags, ..WhatIfTexts::default() })
}

/// Names controllers of a change by their PodGroups.
fn name_groups(change: &mut Change, simulation: &Simulation) {
    let keys: Vec<&mut ObjectKey> = match change {
        Change::Finish(jobs) => jobs.iter_mut().collect(),
        Change::SetJob(job, _) => vec![job],
        Change::SetPods(job, _) => vec![job],
        Change::Delete(objects) => {
            objects.iter_mut().for_each(|object| name_group(object, simulation));
            Vec::new()
        }
        _ => Vec::new(),
    };
    for key in keys {
        if let Some(group) = group_named(simulation, None, key) {
            *key = group;
        }
    }
}

/// Names a controller that is deleted by its PodGroup, if it has one alone.
fn name_group(object: &mut LiveObject, simulation: &Simulation) {
    let (kind, key) = match object {
        LiveObject::Job(key) => (None, key),
        LiveObject::Controller(kind, key) => match SubjectKind::of(Some(&**kind)) {
            SubjectKind::Controller(kind) => (Some(kind), key),
            _ => return,
        },
        _ => return,
    };
    if let Some(group) = group_named(simulation, kind, key) {
        *object = LiveObject::Job(group);
    }
}

impl WhatIfAnswer {
    /// Returns the answer for people.
    pub fn text(&self) -> String {
        what_if_text(&self.json())
    }

    /// Returns the answer for programs.
    pub fn json(&self) -> WhatIfResultJson {
        WhatIfResultJson::new(&self.result, &|key| self.owners.get(key), self.source)
    }

    /// True if a pod that was applied has no node at the end.
    pub fn is_unplaced(&self) -> bool {
        !self.result.unplaced_applied.is_empty()
    }
}
