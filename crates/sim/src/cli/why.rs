//! `vcsim why`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use vc_sim::why::{WhyOptions, why};
use vc_text::escape_lines;

use super::simulate::SimulateArgs;
use super::{fail, json_text, misuse, print};

/// Exit code of `--exit-code` if something waits.
const WAITS: u8 = 3;

const EXAMPLES: &str = "\
Examples, in the folder of the project:
  vcsim why quintet examples/cluster.yaml examples/gang-that-waits.yaml
  vcsim why examples/cluster.yaml examples/gang-that-waits.yaml
  vcsim why job/train -o json --scheduler-conf examples/why/scheduler.conf examples/why/taint.yaml";

/// Say why jobs wait, what would let them start, and who is before them.
///
/// The first word is the name of a job unless it is a path. Without a name there is one line for
/// each job that waits. Exits with 1 when nothing has the name.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WhyArgs {
    /// Namespace of the job; absent: any.
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    simulate: SimulateArgs,
    /// Form of the answer.
    #[arg(short, long, value_enum, default_value_t = WhyOutput::Text)]
    output: WhyOutput,
    /// Exit with 3 if something waits.
    #[arg(long)]
    exit_code: bool,
    /// Optional [KIND/]NAME of a job, its PodGroup or a pod, then files, directories, or - for
    /// standard input.
    #[arg(required = true, value_name = "[KIND/]NAME | PATH")]
    words: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WhyOutput {
    Text,
    Json,
}

impl WhyArgs {
    pub(crate) fn execute(self) -> ExitCode {
        let (name, paths) = split(self.words);
        if paths.is_empty() {
            return misuse("no PATH is given\nhint: vcsim why [KIND/]NAME PATH...");
        }
        let run = match self.simulate.options(paths) {
            Ok(run) => run,
            Err(error) => return misuse(error),
        };
        let options = WhyOptions { run, namespace: self.namespace, name };
        let answered = match why(&options) {
            Ok(answered) => answered,
            Err(error) => return fail(&escape_lines(&error.to_string())),
        };
        for problem in &answered.problems {
            eprintln!("{}", escape_lines(problem));
        }
        let text = match self.output {
            WhyOutput::Text => Ok(answered.text()),
            WhyOutput::Json => json_text(&answered.json()),
        };
        match text {
            Ok(text) => print(&text),
            Err(error) => return fail(&error),
        }
        match self.exit_code && answered.waits() {
            true => ExitCode::from(WAITS),
            false => ExitCode::from(u8::from(answered.is_broken)),
        }
    }
}

/// The first word is a name unless a file or folder has it.
fn split(mut words: Vec<String>) -> (Option<String>, Vec<PathBuf>) {
    let is_path = |word: &str| word == "-" || PathBuf::from(word).exists();
    let name = words.first().is_some_and(|word| !is_path(word)).then(|| words.remove(0));
    (name, words.into_iter().map(PathBuf::from).collect())
}
