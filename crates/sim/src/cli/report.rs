//! `vcsim report`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use vc_sim::report::report;
use vc_text::escape_lines;

use super::simulate::SimulateArgs;
use super::{fail, misuse, print};

const EXAMPLES: &str = "\
Examples, in the folder of the project:
  vcsim report examples/cluster.yaml examples/gang-that-waits.yaml
  vcsim report -o why.html --scheduler-conf examples/why/scheduler.conf examples/why/taint.yaml";

/// Write the answers about a cluster as one page: queues, jobs that wait and why, nodes, evictions.
///
/// The cycles of `vcsim run` come first. The file needs nothing else: it opens without a network.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    simulate: SimulateArgs,
    /// File to write; - is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Files, directories, or - for standard input.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

impl ReportArgs {
    pub(crate) fn execute(self) -> ExitCode {
        let run = match self.simulate.options(self.paths) {
            Ok(run) => run,
            Err(error) => return misuse(error),
        };
        let made = match report(&run) {
            Ok(made) => made,
            Err(error) => return fail(&escape_lines(&error.to_string())),
        };
        for problem in &made.problems {
            eprintln!("{}", escape_lines(problem));
        }
        if self.output == Path::new("-") {
            print(&made.html);
        } else {
            let name = self.output.display();
            if let Err(error) = std::fs::write(&self.output, &made.html) {
                return fail(&format!("cannot write {name}: {error}"));
            }
            print(&format!("wrote {name}\n"));
        }
        ExitCode::from(u8::from(made.is_broken))
    }
}
