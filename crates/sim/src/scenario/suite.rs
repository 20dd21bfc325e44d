//! Runs scenario files and says which passed: `vcsim test`.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use vc_engine::Evaluator;

use super::file::{Scenario, ScenarioError, name_in};
use super::{compare, junit, rewrite};
use vc_objects::input::{InputError, scenario_files, text_of};

/// Whether files are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    Never,
    /// Where the outcome differs from `expect`, or nothing is expected yet.
    Expect,
}

/// Which evaluators find nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EvaluatorChoice {
    /// The one that looks at every node for every task.
    Plain,
    /// The one that remembers results.
    Fast,
    /// Both; where they differ, the scenario fails.
    #[default]
    Both,
}

/// What to run.
pub struct ScenarioSuite {
    pub paths: Vec<PathBuf>,
    /// Only scenarios whose name contains this.
    pub filter: Option<String>,
    pub write: Write,
    pub evaluators: EvaluatorChoice,
}

/// What became of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScenarioVerdict {
    Passed,
    /// Its `expect` was rewritten.
    Written,
    /// One line for each difference.
    Failed(Vec<String>),
    /// The file cannot be run; the error names its place.
    Unreadable(String),
}

/// A scenario that was run.
#[derive(Clone, Debug)]
pub struct TestedScenario {
    pub file: PathBuf,
    /// The name in the file, or the file's when it tells none.
    pub name: String,
    pub verdict: ScenarioVerdict,
}

/// The scenarios that were run.
#[derive(Clone, Debug, Default)]
pub struct SuiteReport {
    pub tested: Vec<TestedScenario>,
}

/// Runs the scenarios in parallel. The report lists them in the order of the paths, and within a
/// directory by name.
///
/// # Errors
/// A path does not exist or may not be read.
pub fn run(suite: &ScenarioSuite) -> Result<SuiteReport, InputError> {
    let files = scenario_files(&suite.paths)?;
    let tested = files.into_par_iter().filter_map(|file| test(file, suite)).collect();
    Ok(SuiteReport { tested })
}

/// Runs one scenario file.
/// `None`: the filter leaves it out.
fn test(file: PathBuf, suite: &ScenarioSuite) -> Option<TestedScenario> {
    let scenario = Scenario::read(&file);
    let name = match &scenario {
        Ok(scenario) => scenario.name.clone(),
        Err(_) => name_in(&file).unwrap_or_else(|| file.display().to_string()),
    };
    let is_wanted = suite.filter.as_ref().is_none_or(|filter| name.contains(filter.as_str()));
    is_wanted.then(|| {
        let verdict = verdict(scenario, &file, suite);
        TestedScenario { file, name, verdict }
    })
}

fn verdict(
    scenario: Result<Scenario, ScenarioError>,
    file: &Path,
    suite: &ScenarioSuite,
) -> ScenarioVerdict {
    let outcome = scenario.and_then(|scenario| decide(&scenario, file, suite));
    outcome.unwrap_or_else(|error| ScenarioVerdict::Unreadable(error.to_string()))
}

fn decide(
    scenario: &Scenario,
    file: &Path,
    suite: &ScenarioSuite,
) -> Result<ScenarioVerdict, ScenarioError> {
    let run = |evaluator| {
        // A fault of the engine in one scenario must not hide the verdicts of the others.
        catch_unwind(AssertUnwindSafe(|| scenario.run(evaluator)))
    };
    let (first, second) = match suite.evaluators {
        EvaluatorChoice::Plain => (Evaluator::Plain, None),
        EvaluatorChoice::Fast => (Evaluator::Fast, None),
        EvaluatorChoice::Both => (Evaluator::Fast, Some(Evaluator::Plain)),
    };
    let (Ok(outcome), Ok(other)) = (run(first), second.map(run).transpose()) else {
        return Ok(ScenarioVerdict::Failed(vec!["the scheduler panicked".to_owned()]));
    };
    let outcome = outcome?;
    if let Some(plain) = other.transpose()?.filter(|plain| *plain != outcome) {
        let texts = [format!("fast: {outcome:?}"), format!("plain: {plain:?}")];
        return Ok(ScenarioVerdict::Failed(texts.to_vec()));
    }
    if !outcome.faults.is_empty() {
        return Ok(ScenarioVerdict::Failed(outcome.faults));
    }
    let write = suite.write;
    let differences = match &scenario.expect {
        Some(expect) => compare::differences(expect, &outcome),
        None => vec!["expect: is missing".to_owned()],
    };
    if differences.is_empty() {
        return Ok(ScenarioVerdict::Passed);
    }
    let at = |message: String| {
        let file = file.to_string_lossy().into();
        ScenarioError { file, line: 1, message }
    };
    match (write, &scenario.expect) {
        (Write::Never, None) => {
            Err(at("expect: is missing\nhint: vcsim test --write fills it in".to_owned()))
        }
        (Write::Never, Some(_)) => Ok(ScenarioVerdict::Failed(differences)),
        (Write::Expect, expect) => {
            let text = text_of(file).map_err(|error| at(error.to_string()))?;
            let text = rewrite::rewrite(&text, expect.as_ref(), &outcome).map_err(at)?;
            std::fs::write(file, text).map_err(|error| at(error.to_string()))?;
            Ok(ScenarioVerdict::Written)
        }
    }
}

impl SuiteReport {
    /// 0: all passed; 1: some failed; 2: some file cannot be run.
    pub fn exit_code(&self) -> u8 {
        let any =
            |test: fn(&ScenarioVerdict) -> bool| self.tested.iter().any(|one| test(&one.verdict));
        if any(|verdict| matches!(verdict, ScenarioVerdict::Unreadable(_))) {
            2
        } else {
            u8::from(any(|verdict| matches!(verdict, ScenarioVerdict::Failed(_))))
        }
    }

    /// One line per scenario, differences below it, the numbers at the end.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for TestedScenario { name, verdict, file } in &self.tested {
            let _infallible = match verdict {
                ScenarioVerdict::Passed => writeln!(out, "ok    {name}"),
                ScenarioVerdict::Written => writeln!(out, "wrote {name} ({})", file.display()),
                ScenarioVerdict::Failed(_) => writeln!(out, "FAIL  {name} ({})", file.display()),
                ScenarioVerdict::Unreadable(error) => writeln!(out, "ERROR {}", indented(error)),
            };
            if let ScenarioVerdict::Failed(differences) = verdict {
                for difference in differences {
                    let _infallible = writeln!(out, "      {}", indented(difference));
                }
            }
        }
        let _infallible = writeln!(out, "{}", self.numbers());
        out
    }

    /// `N passed, N failed`; a file that cannot be run counts as failed.
    pub fn numbers(&self) -> String {
        let passed = |one: &&TestedScenario| {
            matches!(one.verdict, ScenarioVerdict::Passed | ScenarioVerdict::Written)
        };
        let n_passed = self.tested.iter().filter(passed).count();
        format!("{n_passed} passed, {} failed", self.tested.len() - n_passed)
    }

    /// The same for machines.
    pub fn junit(&self) -> String {
        junit::render(self)
    }
}

fn indented(text: &str) -> String {
    text.replace('\n', "\n      ")
}
