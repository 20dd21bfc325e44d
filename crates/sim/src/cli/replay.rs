//! `vcsim replay`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgGroup, Args, ValueEnum};
use vc_sim::replay::{ReplayOptions, replay};
use vc_text::escape_lines;

use super::{fail, json_text, print};

/// Exit code if something was decided otherwise.
const DIFFERS: u8 = 3;

const EXAMPLES: &str = "\
Examples, with a file of kubectl vc bundle:
  vcsim replay bundle-48211.tar.gz
  vcsim replay --until 48190 --why ml/train bundle-48211.tar.gz
  vcsim replay --conf scheduler.conf bundle-48211.tar.gz
  vcsim replay --closed --conf scheduler.conf bundle-48211.tar.gz
  vcsim replay --at 48190 --to-scenario incident.yaml bundle-48211.tar.gz
  vcsim replay --anonymize --to-bundle shared.tar.gz bundle-48211.tar.gz
  vcsim replay --to-objects state.yaml bundle-48211.tar.gz";

/// Decide the last minutes of a scheduler once more, out of a bundle.
///
/// The bundle holds the state and what the scheduler was given, so this decides the same, cycle by cycle.
/// Exits with 3 when a cycle is decided otherwise than it was. Of a bundle that holds a state alone the next
/// cycle is decided, and is compared with nothing.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("new_file").args(["to_scenario", "to_bundle"]).multiple(true))]
pub(crate) struct ReplayArgs {
    /// Begin with the last stored state at or before this cycle; absent: the first one.
    ///
    /// With --conf or --to-scenario it is the cycle that they are about, and the replay begins before it.
    #[arg(long, value_name = "CYCLE")]
    at: Option<u64>,
    /// End after this cycle; absent: the last one.
    #[arg(long, value_name = "CYCLE")]
    until: Option<u64>,
    /// Say why a job waits after the last cycle.
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    why: Option<String>,
    /// Decide the cycle of --at, or the last one, also with this configuration, and print what differs.
    #[arg(long, value_name = "FILE")]
    conf: Option<PathBuf>,
    /// Run the cycles also in a simulation that answers to other decisions, and print waits and utilisation.
    ///
    /// Of the inputs only what came from outside is used; bound pods run at once, and for as long as they
    /// ran. With --conf there is a column for each configuration.
    #[arg(long)]
    closed: bool,
    /// Write the cycle of --at, or the last one, into this new file, as a scenario that vcsim test runs.
    #[arg(long, value_name = "FILE")]
    to_scenario: Option<PathBuf>,
    /// Write the whole bundle into this new file, without names; needs --anonymize.
    ///
    /// It is decided beside the bundle with names. Nothing is written if they differ.
    #[arg(long, value_name = "FILE", requires = "anonymize")]
    to_bundle: Option<PathBuf>,
    /// Write the state after the last cycle into this new file, as Kubernetes objects that vcsim run reads.
    ///
    /// Nothing is written if a cycle is decided otherwise than it was. With --anonymize --to-bundle the new bundle has
    /// them without names.
    #[arg(long, value_name = "FILE", conflicts_with = "anonymize")]
    to_objects: Option<PathBuf>,
    /// With --to-scenario or --to-bundle: numbers in place of names, so that it can be shown to
    /// others.
    #[arg(long, requires = "new_file")]
    anonymize: bool,
    /// Form of the result.
    #[arg(short, long, value_enum, default_value_t = ReplayOutput::Text)]
    output: ReplayOutput,
    /// The bundle.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReplayOutput {
    Text,
    Json,
}

impl ReplayArgs {
    pub(crate) fn execute(self) -> ExitCode {
        let options = ReplayOptions {
            file: self.file,
            at: self.at,
            until: self.until,
            why: self.why,
            kind: None,
            conf: self.conf,
            closed: self.closed,
            to_scenario: self.to_scenario,
            anonymize: self.anonymize,
            to_bundle: self.to_bundle,
            to_objects: self.to_objects,
        };
        let result = match replay(&options) {
            Ok(result) => result,
            Err(error) => return fail(&escape_lines(&error.to_string())),
        };
        for warning in result.warnings() {
            eprintln!("{}", escape_lines(warning));
        }
        let text = match self.output {
            ReplayOutput::Text => Ok(result.text()),
            ReplayOutput::Json => json_text(&result),
        };
        match text {
            Ok(text) => print(&text),
            Err(error) => return fail(&error),
        }
        ExitCode::from(if result.is_same() { 0 } else { DIFFERS })
    }
}
