//! `vcsim run`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use vc_conf::AllowMissing;
use vc_sim::KubeletMode;
use vc_sim::run::{RunLimit, RunOptions, RunOutcome, run, table};
use vc_text::{JsonEscaper, escape_lines};

use super::{fail, print};

const EXAMPLES: &str = "\
Examples, in the folder of the project:
  vcsim run examples/cluster.yaml examples/gang.yaml
  vcsim run --until-settled --scheduler-conf examples/priority/scheduler.conf examples/cluster.yaml examples/priority
  kubectl get -A -o yaml nodes,queues,podgroups,priorityclasses,pods | vcsim run - examples/gang.yaml";

/// Schedule the objects of files and say where each pod goes, and why the others wait.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// Configuration of the scheduler; absent: that of the chart.
    #[arg(long, value_name = "FILE")]
    scheduler_conf: Option<PathBuf>,
    /// What the configuration may name though this version lacks it; without names: everything.
    #[arg(
        long,
        value_name = "NAME,...",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = AllowMissing::ALL
    )]
    allow_missing_plugins: Vec<String>,
    /// Cycles to run.
    #[arg(long, value_name = "N", default_value_t = 1)]
    cycles: u32,
    /// Run, with instant kubelets, until a cycle decides nothing.
    #[arg(long, conflicts_with = "cycles")]
    until_settled: bool,
    /// What happens to pods between cycles; none unless given.
    #[arg(long, value_enum)]
    kubelet: Option<KubeletArg>,
    /// Form of the result.
    #[arg(short, long, value_enum, default_value_t = RunOutput::Table)]
    output: RunOutput,
    /// Exit with 1 when an object cannot be read, or a plugin of the configuration is unknown.
    #[arg(long)]
    strict: bool,
    /// Files, directories, or - for standard input.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum KubeletArg {
    /// Bound pods stay pending, evicted pods stay.
    None,
    /// Bound pods run, evicted pods go.
    Instant,
}

#[derive(Clone, Copy, ValueEnum)]
enum RunOutput {
    Table,
    Json,
    Yaml,
}

impl RunArgs {
    pub(crate) fn execute(self) -> ExitCode {
        let (until, kubelet) = match (self.until_settled, self.kubelet) {
            (true, Some(KubeletArg::None)) => {
                eprintln!("error: --until-settled needs instant kubelets");
                eprintln!("hint: leave out --kubelet none, or give --cycles");
                return ExitCode::from(2);
            }
            (true, _) => (RunLimit::Settled, KubeletMode::Instant),
            (false, Some(KubeletArg::Instant)) => {
                (RunLimit::Cycles(self.cycles), KubeletMode::Instant)
            }
            (false, _) => (RunLimit::Cycles(self.cycles), KubeletMode::None),
        };
        let allowed = self.allow_missing_plugins.iter().map(String::as_str);
        let options = RunOptions {
            scheduler_conf: self.scheduler_conf,
            allow_missing: AllowMissing::of(allowed),
            until,
            kubelet,
            paths: self.paths,
        };
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
        ExitCode::from(u8::from(ran.is_broken || self.strict && !ran.problems.is_empty()))
    }
}

fn rendered(ran: &RunOutcome, output: RunOutput) -> Result<String, String> {
    match output {
        RunOutput::Table => Ok(table(&ran.result)),
        RunOutput::Json => {
            let mut text = JsonEscaper(Vec::new());
            serde_json::to_writer_pretty(&mut text, &ran.result)
                .map_err(|error| error.to_string())?;
            String::from_utf8(text.0).map(|text| text + "\n").map_err(|error| error.to_string())
        }
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
