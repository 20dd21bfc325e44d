//! Scheduling behaviour as data: a cluster, a configuration, and what cycles must decide.
//! Format: tests/scenarios/README.md.

pub(crate) mod anonymous;
mod compare;
mod file;
mod flags;
mod junit;
mod outcome;
mod rewrite;
mod suite;
mod written;

pub use file::{Scenario, ScenarioError};
pub use outcome::{GroupState, ScenarioOutcome};
pub use suite::{
    EvaluatorChoice, ScenarioSuite, ScenarioVerdict, SuiteReport, TestedScenario, Write, run,
};
pub use written::{ScenarioNames, ScenarioText, ScenarioTitle, scenario_text};
