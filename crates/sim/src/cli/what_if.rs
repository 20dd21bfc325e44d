//! `vcsim what-if`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use vc_objects::what_if::flags::ChangeFlags;
use vc_sim::what_if::{WhatIfOptions, what_if};
use vc_text::escape_lines;

use super::simulate::SimulateArgs;
use super::{fail, json_text, misuse, print};

/// Exit code if something that was applied is not placed.
const UNPLACED: u8 = 3;

const EXAMPLES: &str = "\
Examples, in the folder of the project:
  vcsim what-if --add-nodes g1=2 --scheduler-conf examples/why/scheduler.conf examples/why/taint.yaml
  vcsim what-if -f examples/gang.yaml examples/cluster.yaml
  vcsim what-if -f examples/why/what-if.yaml --scheduler-conf examples/why/scheduler.conf examples/why/taint.yaml";

/// Say what would happen with more nodes, other limits or another configuration, or if a job were
/// submitted.
///
/// The cycles of `vcsim run` come first. Then changes are made in a copy, more cycles are run with the
/// changes and without, and what differs is printed. Exits with 3 when a pod of an applied object gets no
/// node.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WhatIfArgs {
    /// A document WhatIf, or objects to apply; - is standard input.
    #[arg(short, long, value_name = "FILE")]
    filename: Vec<PathBuf>,
    /// Another configuration of the scheduler.
    #[arg(long, value_name = "FILE")]
    conf: Option<PathBuf>,
    /// Set a field of a queue: research.weight=4, research.capability.cpu=20.
    #[arg(long, value_name = "QUEUE.FIELD=VALUE")]
    set_queue: Vec<String>,
    /// Add empty nodes like one that exists.
    #[arg(long, value_name = "NODE=COUNT")]
    add_nodes: Vec<String>,
    /// Remove a node; its pods have to go elsewhere.
    #[arg(long, value_name = "NODE")]
    drain: Vec<String>,
    #[command(flatten)]
    simulate: SimulateArgs,
    /// Form of the answer.
    #[arg(short, long, value_enum, default_value_t = WhatIfOutput::Text)]
    output: WhatIfOutput,
    /// Files, directories, or - for standard input.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WhatIfOutput {
    Text,
    Json,
}

impl WhatIfArgs {
    pub(crate) fn execute(self) -> ExitCode {
        let flags = ChangeFlags {
            conf: self.conf.as_deref(),
            set_queue: &self.set_queue,
            add_nodes: &self.add_nodes,
            drain: &self.drain,
        };
        let flags = match flags.changes() {
            Ok(flags) => flags,
            Err(error) => return misuse(&error),
        };
        if flags.is_empty() && self.filename.is_empty() {
            return misuse(
                "no change is given\nhint: -f FILE, --add-nodes, --drain, --set-queue or --conf",
            );
        }
        let run = match self.simulate.options(self.paths) {
            Ok(run) => run,
            Err(error) => return misuse(error),
        };
        let options = WhatIfOptions { run, files: self.filename, flags };
        let answered = match what_if(&options) {
            Ok(answered) => answered,
            Err(error) => return fail(&escape_lines(&error.to_string())),
        };
        for problem in &answered.problems {
            eprintln!("{}", escape_lines(problem));
        }
        let text = match self.output {
            WhatIfOutput::Text => Ok(answered.text()),
            WhatIfOutput::Json => json_text(&answered.json()),
        };
        match text {
            Ok(text) => print(&text),
            Err(error) => return fail(&error),
        }
        match answered.is_unplaced() {
            true => ExitCode::from(UNPLACED),
            false => ExitCode::from(u8::from(answered.is_broken)),
        }
    }
}
