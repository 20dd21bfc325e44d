//! `vcsim run`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use vc_sim::run::{RunOutcome, run, table};
use vc_text::{JsonEscaper, escape_lines};

use super::simulate::SimulateArgs;
use super::{fail, json_text, misuse, print};

const EXAMPLES: &str = "\
Examples, in the folder of the project:
  vcsim run examples/cluster.yaml examples/gang.yaml
  vcsim run --until-settled --scheduler-conf examples/priority/scheduler.conf examples/cluster.yaml examples/priority
  kubectl get -A -o yaml nodes,queues,podgroups,priorityclasses,pods | vcsim run - examples/gang.yaml";

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
        let ran = match run(&options) {
            Ok(ran) => ran,
            Err(error) => return fail(&error),
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
            return fail(&error);
        }
        ExitCode::from(u8::from(ran.is_broken || self.strict && !ran.problems.is_empty()))
    }
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
