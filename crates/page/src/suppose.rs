//! What would happen with changes, asked of copies of an engine. Specification: answers.md 9, 16.

use std::collections::BTreeMap;

use vc_answers::{Change, SharedNames, WhatIf, WhatIfError, WhatIfResult, WhatIfState};
use vc_engine::Engine;
use vc_model::{ClusterEvent, ObjectKey, PodGroupRecord};
use vc_objects::ClusterObjects;
use vc_objects::what_if::{WhatIfAsked, WhatIfMistake, WhatIfTexts, understand};

use crate::convert::{Owner, StateSource};
use crate::problem::Problem;
use crate::view::controller;
use crate::what_if::WhatIfResultJson;

/// Answers what would happen in a state. Nothing of it changes.
///
/// # Errors
/// A change is wrong, or is none of objects that the asker may change.
pub fn suppose(
    state: &WhatIfState<'_>,
    texts: &WhatIfTexts,
    source: StateSource,
) -> Result<WhatIfResultJson, Problem> {
    let engine = state.engine();
    let live = ClusterObjects::new(engine.cluster(), engine.last_micros());
    let understood = understand(texts.clone(), &live).map_err(|mistake| match mistake {
        WhatIfMistake::Wrong(text) => Problem::of_field(400, &text),
        WhatIfMistake::Outside(text) => Problem::of_field(403, &text),
    })?;
    let WhatIfAsked { question, places, warnings } = understood;
    let mut result = state.ask(&question).map_err(|error: WhatIfError| {
        let place = places.get(error.change).map_or("", |place| &**place);
        Problem::of_field(400, &format!("{place}{}: {}", error.field, error.message))
    })?;
    result.warnings.splice(0..0, warnings);
    let applied = applied_groups(&question);
    let shared = SharedNames::with_groups(engine.cluster(), applied.values().copied());
    let name_of = |key: &ObjectKey| {
        let applied = applied.get(key).and_then(|group| group.controller()?.name);
        let name = applied.or_else(|| controller(engine.cluster(), key));
        Some(Owner::of(name?, !shared.contains(key)))
    };
    Ok(WhatIfResultJson::new(&result, &name_of, source))
}

/// Returns a difference as JSON, with the names of the jobs in this engine.
pub fn difference_json(
    engine: &Engine,
    difference: &WhatIfResult,
    source: StateSource,
) -> WhatIfResultJson {
    let shared = SharedNames::of_cluster(engine.cluster());
    let name_of = |key: &ObjectKey| {
        Some(Owner::of(controller(engine.cluster(), key)?, !shared.contains(key)))
    };
    WhatIfResultJson::new(difference, &name_of, source)
}

/// Returns the PodGroups that are applied.
fn applied_groups(question: &WhatIf) -> BTreeMap<&ObjectKey, &PodGroupRecord> {
    let events = question.changes.iter().filter_map(|change| match change {
        Change::Apply(events) => Some(events),
        _ => None,
    });
    fn group(event: &ClusterEvent) -> Option<(&ObjectKey, &PodGroupRecord)> {
        match event {
            ClusterEvent::PodGroupApplied(group) => Some((&group.key, &**group)),
            _ => None,
        }
    }
    events.flatten().filter_map(group).collect()
}
