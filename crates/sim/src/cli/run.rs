//! `vcsim run`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use vc_sim::report::run_and_report;
use vc_sim::run::{RunOptions, RunOutcome, run, table};
use vc_sim::{check_new_file, write_new_file};
use vc_text::{JsonEscaper, escape_lines};

use super::simulate::SimulateArgs;
use super::{fail, json_text, misuse, print};

const EXAMPLES: &str = "\
Examples, in the folder of the project:
  vcsim run examples/cluster.yaml examples/gang.yaml
  vcsim run --until-settled --scheduler-conf examples/priority/scheduler.conf examples/cluster.yaml examples/priority
  kubectl get -A -o yaml nodes,queues,podgroups,priorityclasses,pods | vcsim run - examples/gang.yaml";

/// What to do where a file of the page's name exists.
const HINT: &str = "give another FILE";

/// Schedule the objects of files and say where each pod goes, and why the others wait.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    simulate: SimulateArgs,
    /// Form of the result.
    #[arg(short, long, value_enum, default_value_t = RunOutput::Table)]
    output: RunOutput,
    /// Exit with 1 when an object cannot be read, or a plugin of the configuration is unknown.
    #[arg(long)]
    strict: bool,
    /// Also write what the scheduler was given into this file, for vcsim replay.
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    /// Also write the answers about the cluster after the last cycle into this new file, as one page.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Files, directories, or - for standard input.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum RunOutput {
    Table,
    Json,
    Yaml,
}

impl RunArgs {
    pub(crate) fn execute(self) -> ExitCode {
        let mut options = match self.simulate.options(self.paths) {
            Ok(options) => options,
            Err(error) => return misuse(error),
        };
        options.keeps_history = self.bundle.is_some();
        if let Some(path) = &self.html
            && let Err(error) = check_new_file(path, HINT)
        {
            return fail(&escape_lines(&error));
        }
        let (ran, page) = match run_for(&options, self.html.is_some()) {
            Ok(ran) => ran,
            Err(error) => return fail(&escape_lines(&error)),
        };
        for problem in &ran.problems {
            eprintln!("{}", escape_lines(problem));
        }
        match rendered(&ran, self.output) {
            Ok(text) => print(&text),
            Err(error) => return fail(&error),
        }
        if let Some(path) = &self.bundle
            && let Err(error) = write_bundle(path, ran.bundle.as_ref())
        {
            return fail(&escape_lines(&error));
        }
        if let (Some(path), Some(page)) = (&self.html, &page)
            && let Err(error) = write_new_file(path, page.as_bytes(), HINT)
        {
            return fail(&escape_lines(&error));
        }
        ExitCode::from(u8::from(ran.is_broken || self.strict && !ran.problems.is_empty()))
    }
}

/// Runs the cycles. Returns what was run, with the page about it if one is wanted.
fn run_for(options: &RunOptions, wants_page: bool) -> Result<(RunOutcome, Option<String>), String> {
    if wants_page {
        let made = run_and_report(options).map_err(|error| error.to_string());
        return made.map(|(ran, page)| (ran, Some(page)));
    }
    run(options).map(|ran| (ran, None)).map_err(|error| error.to_string())
}

fn write_bundle(path: &Path, bundle: Option<&Result<Vec<u8>, String>>) -> Result<(), String> {
    let bundle = bundle.ok_or("no bundle: the configuration asks services outside")?.as_ref()?;
    std::fs::write(path, bundle)
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn rendered(ran: &RunOutcome, output: RunOutput) -> Result<String, String> {
    match output {
        RunOutput::Table => Ok(table(&ran.result)),
        RunOutput::Json => json_text(&ran.result),
        RunOutput::Yaml => yaml(ran),
    }
}

/// The result as YAML. Line feeds and other control characters make a text quoted, with escapes. The
/// marks of direction, which YAML takes as they are, become escapes as in JSON; in a text without
/// quotes the escape is what is read.
fn yaml(ran: &RunOutcome) -> Result<String, String> {
    let options = serde_yaml::ser_options! { prefer_block_scalars: false };
    let text = serde_yaml::to_string_with_options(&ran.result, options)
        .map_err(|error| error.to_string())?;
    let mut escaped = JsonEscaper(Vec::with_capacity(text.len()));
    escaped.write_all(text.as_bytes()).map_err(|error| error.to_string())?;
    String::from_utf8(escaped.0).map_err(|error| error.to_string())
}
