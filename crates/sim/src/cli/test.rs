//! `vcsim test`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use vc_sim::scenario::{self, EvaluatorChoice, ScenarioSuite, Write};
use vc_text::escape_lines;

use super::print;

const EXAMPLES: &str = "\
Examples, in the folder of the project:
  vcsim test examples/policies
  vcsim test --filter product -o junit examples/policies";

/// Run scenario files and compare what is decided with what they expect.
///
/// Exits with 1 when one fails, with 2 when a file cannot be read or there is none.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TestArgs {
    /// Only scenarios whose name contains this.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Form of the result.
    #[arg(short, long, value_enum, default_value_t = TestOutput::Text)]
    output: TestOutput,
    /// Put what was decided into the `expect` of files that expect something else.
    #[arg(long)]
    write: bool,
    /// How nodes are found; both: with either, and where they differ the scenario fails.
    #[arg(long, value_enum, default_value_t = EvaluatorArg::Fast, hide = true)]
    evaluator: EvaluatorArg,
    /// Files, or directories that are searched for *.yaml.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum TestOutput {
    Text,
    Junit,
}

#[derive(Clone, Copy, ValueEnum)]
enum EvaluatorArg {
    Plain,
    Fast,
    Both,
}

impl TestArgs {
    pub(crate) fn execute(self) -> ExitCode {
        let write = if self.write { Write::Expect } else { Write::Never };
        let evaluators = match self.evaluator {
            EvaluatorArg::Plain => EvaluatorChoice::Plain,
            EvaluatorArg::Fast => EvaluatorChoice::Fast,
            EvaluatorArg::Both => EvaluatorChoice::Both,
        };
        let filter = self.filter.clone();
        let suite = ScenarioSuite { paths: self.paths, filter, write, evaluators };
        let report = match scenario::run(&suite) {
            Ok(report) => report,
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::from(2);
            }
        };
        if report.tested.is_empty() {
            let hint = match self.filter {
                Some(_) => "hint: name files, or folders with *.yaml; --filter may leave none",
                None => "hint: name files, or folders with *.yaml",
            };
            eprintln!("error: no scenario was found\n{hint}");
            return ExitCode::from(2);
        }
        match self.output {
            TestOutput::Text => print(&escape_lines(&report.text())),
            TestOutput::Junit => print(&report.junit()),
        }
        ExitCode::from(report.exit_code())
    }
}
