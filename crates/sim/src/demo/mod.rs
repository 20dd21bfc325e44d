//! `vcsim demo`: an embedded API server with simulated nodes, `vc-scheduler` as a process of its
//! own against it, and a workload of gangs over some seconds, shown while it happens. It ends by
//! itself with a summary.

pub mod line;
pub mod manifests;
pub mod picture;
mod run;
mod scheduler;
mod signals;
mod stage;
pub mod state;
pub mod summary;
mod terminal;
pub mod view;
mod watch;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

pub use run::run;

use crate::serve::ServeError;
use manifests::Workload;
use vc_objects::input::InputError;

/// How much faster `--fast` is.
const FAST: f64 = 8.0;
/// The exit code of a program that Ctrl-C has ended.
const INTERRUPTED: u8 = 130;

const EXAMPLES: &str = "\
Examples:
  vcsim demo
  vcsim demo --topology
  vcsim demo --fast --svg /tmp/demo.svg";

/// Show an embedded cluster at work: vc-scheduler as a process, gangs in two queues.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct DemoArgs {
    /// Apply these manifests (a directory or a file) instead of the built-in ones. The annotation
    /// vcsim/apply-at of an object is the second at which it is applied, vcsim/run-seconds of a pod
    /// how long it runs
    #[arg(long, value_name = "PATH", conflicts_with = "topology")]
    pub manifests: Option<PathBuf>,
    /// Show gangs with a network topology, in racks and halls
    #[arg(long)]
    pub topology: bool,
    /// The vc-scheduler program [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    pub scheduler: Option<PathBuf>,
    /// The scheduler's configuration [default: config/volcano-scheduler.conf, or with --topology
    /// config/volcano-scheduler-topology.conf; both are built in]
    #[arg(long, value_name = "FILE")]
    pub scheduler_conf: Option<PathBuf>,
    /// How many simulated nodes of 32 cpu and 128Gi there are
    #[arg(long, default_value_t = 12)]
    pub nodes: u32,
    /// Print lines of what happens, also on a terminal
    #[arg(long)]
    pub plain: bool,
    /// Write a picture: the view at the moment in which most cpu is in use, and the summary
    #[arg(long, value_name = "FILE.svg")]
    pub svg: Option<PathBuf>,
    /// Eight times as fast
    #[arg(long)]
    pub fast: bool,
    /// End after so many seconds even if the workload has not settled, with exit code 1
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub timeout: u64,
    /// Go on after the summary until Ctrl-C, so that the page and kubectl-vc can ask the scheduler
    #[arg(long)]
    pub keep: bool,
    /// Let the scheduler log at level 3 and keep its log, named in the summary
    #[arg(short, long)]
    pub verbose: bool,
}

/// What a demo is to be.
#[derive(Clone, Debug)]
pub struct DemoOptions {
    /// What is applied.
    pub workload: Workload,
    /// The program; absent, `vc-scheduler` beside the running one.
    pub scheduler: Option<PathBuf>,
    /// Absent, the configuration that ships for the workload.
    pub scheduler_conf: Option<PathBuf>,
    /// Simulated nodes.
    pub nodes: u32,
    /// Lines instead of a view that redraws itself.
    pub plain: bool,
    /// Where the picture of the busiest moment is written; absent, there is none.
    pub svg: Option<PathBuf>,
    /// How much faster than written the workload goes; above 0.
    pub speed: f64,
    /// From the start of the workload.
    pub timeout: Duration,
    /// Whether server and scheduler go on after the summary, until a signal comes.
    pub keep: bool,
    /// Whether the scheduler logs at level 3 and its log is kept.
    pub verbose: bool,
}

/// Why a demo has not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// There is no program of that name.
    #[error(
        "scheduler not found: {0}\n\
         hint: build it with `cargo build --release`, or name it with --scheduler PATH"
    )]
    Missing(PathBuf),
    /// It is no program, or may not be started.
    #[error("cannot start the scheduler: {path}: {error}")]
    Start {
        /// The program.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Its configuration and log have no place.
    #[error("cannot write files of the scheduler: {path}: {error}")]
    Directory {
        /// A directory among the temporary ones.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It should have run until the end of the demo.
    #[error("the scheduler has ended: {status}\n{tail}")]
    Ended {
        /// Its exit code or signal.
        status: ExitStatus,
        /// The end of its log.
        tail: String,
    },
    /// The system does not tell whether it runs.
    #[error("cannot wait for the scheduler: {0}")]
    Lost(io::Error),
    /// It runs and has made no request that succeeded.
    #[error("the scheduler has not connected within {limit} s\n{tail}")]
    Silent {
        /// How long it had, in seconds.
        limit: u64,
        /// The end of its log.
        tail: String,
    },
    /// The server does not start.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The manifests given cannot be read.
    #[error(transparent)]
    Manifests(#[from] InputError),
    /// Ctrl-C would not be heard.
    #[error("cannot listen for signals: {0}")]
    Signals(io::Error),
    /// The picture has no place.
    #[error("cannot write the picture: {path}: {error}")]
    Picture {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Nobody reads the output any more.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// Ctrl-C, or another signal that asks a program to end.
    #[error("interrupted")]
    Interrupted,
}

impl DemoArgs {
    /// Runs the demo on standard output. The code is 0 when the workload has settled.
    pub fn run(&self) -> ExitCode {
        let runtime = match tokio::runtime::Runtime::new() {
            Ok(runtime) => runtime,
            Err(error) => return failed(&error),
        };
        match runtime.block_on(run(&self.options(), &mut io::stdout())) {
            Ok(summary) if summary.settled => ExitCode::SUCCESS,
            Ok(_) => ExitCode::FAILURE,
            Err(DemoError::Interrupted) => ExitCode::from(INTERRUPTED),
            Err(error) => failed(&error),
        }
    }

    fn options(&self) -> DemoOptions {
        DemoOptions {
            workload: match (&self.manifests, self.topology) {
                (Some(path), _) => Workload::Given(path.clone()),
                (None, true) => Workload::Topology,
                (None, false) => Workload::Gangs,
            },
            scheduler: self.scheduler.clone(),
            scheduler_conf: self.scheduler_conf.clone(),
            nodes: self.nodes,
            plain: self.plain || !io::stdout().is_terminal(),
            svg: self.svg.clone(),
            speed: if self.fast { FAST } else { 1.0 },
            timeout: Duration::from_secs(self.timeout),
            keep: self.keep,
            verbose: self.verbose,
        }
    }
}

fn failed(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::FAILURE
}
