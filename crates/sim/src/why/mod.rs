//! `vcsim why`: the engine over objects from files, then the reason why jobs wait. Specification:
//! answers.md 13, 16.

mod evicted;
mod names;

use serde::Serialize;
use vc_answers::{
    Depth, ExpectedEnds, Explanation, add_start, explain, explain_not_ours, explain_waiting,
};
use vc_page::{ExplanationJson, ExplanationListJson, why_list_text, why_text};

use crate::run::{RunError, RunOptions, Simulated, simulate};
use evicted::EvictionRow;
use names::{Found, find};

pub(crate) use names::{OwnerNames, group_named};

/// What is asked.
#[derive(Clone, Debug)]
pub struct WhyOptions {
    /// What to run before.
    pub run: RunOptions,
    /// Namespace of the name, or of the jobs that are listed. Absent: any.
    pub namespace: Option<String>,
    /// `[KIND/]NAME`. Absent: every job that waits.
    pub name: Option<String>,
}

/// Why nothing was answered.
#[derive(Debug, thiserror::Error)]
pub enum WhyError {
    #[error(transparent)]
    Run(#[from] RunError),
    /// Nothing has the name. The second line is a hint, if there is one.
    #[error("{0}")]
    Unknown(String),
    /// Several jobs have it.
    #[error("{0}")]
    Several(String),
    #[error("no cycle was run\nhint: leave out --cycles 0")]
    NoCycle,
}

/// The answer.
pub struct WhyAnswer {
    asked: Asked,
    /// Objects that could not be read and plugins that nobody knows, each with file and line.
    pub problems: Vec<String>,
    /// Whether a file is neither YAML nor JSON: what follows in it was not run.
    pub is_broken: bool,
}

/// An explanation, or a list of them.
#[derive(Serialize)]
#[serde(untagged)]
enum Asked {
    One(Box<ExplanationJson>),
    All(ExplanationListJson),
}

/// Runs the cycles and asks about the state after the last one.
///
/// # Errors
/// The objects cannot be read, or the name is unknown or ambiguous.
pub fn why(options: &WhyOptions) -> Result<WhyAnswer, WhyError> {
    let Simulated { mut simulation, last, result, problems, is_broken } = simulate(&options.run)?;
    let evictions = EvictionRow::all(&result.certificates);
    let last = last.ok_or(WhyError::NoCycle)?;
    let mut state = simulation.answer_state(&last);
    let owners = OwnerNames::of(&simulation);
    let namespace = options.namespace.as_deref();
    let source = options.run.source;
    let json = |it: &Explanation| ExplanationJson::new(it, &|key| owners.get(key), source);
    let asked = match &options.name {
        Some(name) => match find(&simulation, state.cluster(), (namespace, name)) {
            Err(unknown) => {
                let gone = evictions.iter().find(|row| row.is_named(namespace, name));
                let gone = gone.ok_or(unknown)?.json(&owners);
                let as_of = source.as_of(state.as_of());
                Asked::One(Box::new(ExplanationJson::gone(gone, as_of)))
            }
            Ok(Found::Ours(subject)) => {
                let mut one = explain(&mut state, subject, Depth::Full);
                let ends = ExpectedEnds::default();
                let engine = simulation.engine_after_cycle();
                add_start(engine, (&mut state, &ends), subject, &mut one);
                let mut one = json(&one);
                let group = format!("{}/{}", one.subject.namespace, one.subject.name);
                let own = evictions.iter().filter(|row| row.is_about(&group));
                one.evictions = own.map(|row| row.json(&owners)).collect();
                Asked::One(Box::new(one))
            }
            Ok(Found::NotOurs { pod, scheduler }) => {
                Asked::One(Box::new(json(&explain_not_ours(&state, pod, &scheduler))))
            }
        },
        None => {
            let is_asked =
                |it: &&Explanation| namespace.is_none_or(|name| *it.subject.key.namespace == *name);
            let all = explain_waiting(&mut state);
            let items: Vec<ExplanationJson> = all.iter().filter(is_asked).map(json).collect();
            let as_of = source.as_of(state.as_of());
            Asked::All(ExplanationListJson::new("ExplanationList", as_of, items))
        }
    };
    Ok(WhyAnswer { asked, problems, is_broken })
}

impl WhyAnswer {
    /// Returns the answer for people.
    pub fn text(&self) -> String {
        match &self.asked {
            Asked::One(one) => why_text(one),
            Asked::All(all) => why_list_text(all),
        }
    }

    /// Returns the answer for programs.
    pub fn json(&self) -> &impl Serialize {
        &self.asked
    }

    /// True if what was asked about waits for this scheduler.
    pub fn waits(&self) -> bool {
        match &self.asked {
            Asked::One(one) => one.waits(),
            Asked::All(all) => all.items.iter().any(ExplanationJson::waits),
        }
    }
}
