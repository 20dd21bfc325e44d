//! `vcsim why`: the engine over objects from files, then the reason why jobs wait. Specification:
//! answers.md 13, 16.

mod evicted;
mod json;
mod names;
mod start;
mod start_json;
mod text;

use vc_answers::{Depth, Explanation, add_start, explain, explain_not_ours, explain_waiting};

use crate::run::{RunError, RunOptions, Simulated, simulate};
use evicted::EvictionRow;
use names::{Found, find};

pub use json::WhyJson;
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
    owners: OwnerNames,
    /// Pods that had to go in the cycles, if they concern the job that was asked about.
    evictions: Vec<EvictionRow>,
    /// Objects that could not be read and plugins that nobody knows, each with file and line.
    pub problems: Vec<String>,
    /// Whether a file is neither YAML nor JSON: what follows in it was not run.
    pub is_broken: bool,
}

enum Asked {
    One(Box<Explanation>),
    All(Vec<Explanation>),
    /// A pod that is gone.
    Gone(EvictionRow),
}

/// Runs the cycles and asks about the state after the last one.
///
/// # Errors
/// The objects cannot be read, or the name is unknown or ambiguous.
pub fn why(options: &WhyOptions) -> Result<WhyAnswer, WhyError> {
    let Simulated { mut simulation, last, result, problems, is_broken } = simulate(&options.run)?;
    let mut evictions = EvictionRow::all(&result.certificates);
    let last = last.ok_or(WhyError::NoCycle)?;
    let mut state = simulation.answer_state(&last);
    let owners = OwnerNames::of(&simulation);
    let namespace = options.namespace.as_deref();
    let asked = match &options.name {
        Some(name) => match find(&simulation, state.cluster(), (namespace, name)) {
            Err(unknown) => {
                let gone = evictions.iter().find(|row| row.is_named(namespace, name));
                Asked::Gone(gone.cloned().ok_or(unknown)?)
            }
            Ok(Found::Ours(subject)) => {
                let mut one = explain(&mut state, subject, Depth::Full);
                add_start(simulation.engine_after_cycle(), &state, subject, &mut one);
                Asked::One(Box::new(one))
            }
            Ok(Found::NotOurs { pod, scheduler }) => {
                Asked::One(Box::new(explain_not_ours(&state, pod, &scheduler)))
            }
        },
        None => {
            let mut all = explain_waiting(&mut state);
            let is_asked =
                |it: &Explanation| namespace.is_none_or(|name| *it.subject.key.namespace == *name);
            all.retain(is_asked);
            Asked::All(all)
        }
    };
    let group = match &asked {
        Asked::One(one) => one.subject.key.to_string(),
        Asked::All(_) | Asked::Gone(_) => String::new(),
    };
    evictions.retain(|row| row.is_about(&group));
    Ok(WhyAnswer { asked, owners, evictions, problems, is_broken })
}

impl WhyAnswer {
    /// Returns the answer for people.
    pub fn text(&self) -> String {
        match &self.asked {
            Asked::One(one) => text::of_one(one, &self.owners, &self.evictions),
            Asked::Gone(row) => vc_text::escape_lines(&row.gone_text(&self.owners)),
            Asked::All(all) => text::of_all(all, &self.owners),
        }
    }

    /// Returns the answer for programs.
    pub fn json(&self) -> WhyJson<'_> {
        match &self.asked {
            Asked::One(one) => WhyJson::one(one, &self.owners, &self.evictions),
            Asked::Gone(row) => WhyJson::Gone(Box::new(row.gone_json(&self.owners))),
            Asked::All(all) => WhyJson::all(all, &self.owners),
        }
    }

    /// True if what was asked about waits for this scheduler.
    pub fn waits(&self) -> bool {
        match &self.asked {
            Asked::One(one) => one.waits(),
            Asked::All(all) => all.iter().any(Explanation::waits),
            Asked::Gone(_) => false,
        }
    }
}
