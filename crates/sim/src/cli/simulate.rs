//! The flags of commands that run cycles over files: `vcsim run` and `vcsim why`. Those of the
//! configuration are also those of `vcsim serve`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use vc_conf::AllowMissing;
use vc_page::StateSource;
use vc_sim::KubeletMode;
use vc_sim::run::{RunLimit, RunOptions};

/// What configuration decides.
#[derive(Args)]
pub(crate) struct ConfArgs {
    /// Configuration of the scheduler; absent: that of the chart.
    #[arg(long, value_name = "FILE")]
    pub(crate) scheduler_conf: Option<PathBuf>,
    /// What the configuration may name though this version lacks it; without names: everything.
    #[arg(
        long,
        value_name = "NAME,...",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = AllowMissing::ALL
    )]
    allow_missing_plugins: Vec<String>,
}

/// What to run, and how long.
#[derive(Args)]
pub(crate) struct SimulateArgs {
    #[command(flatten)]
    conf: ConfArgs,
    /// Cycles to run.
    #[arg(long, value_name = "N", default_value_t = 1)]
    cycles: u32,
    /// Run, with instant kubelets, until a cycle decides nothing.
    #[arg(long, conflicts_with = "cycles")]
    until_settled: bool,
    /// What happens to pods between cycles; none unless given.
    #[arg(long, value_enum)]
    kubelet: Option<KubeletArg>,
}

#[derive(Clone, Copy, ValueEnum)]
enum KubeletArg {
    /// Bound pods stay pending, evicted pods stay.
    None,
    /// Bound pods run, evicted pods go.
    Instant,
}

impl ConfArgs {
    /// True if one of the flags is given.
    pub(crate) fn is_given(&self) -> bool {
        self.scheduler_conf.is_some() || !self.allow_missing_plugins.is_empty()
    }

    /// Returns what the configuration may name though this version lacks it.
    pub(crate) fn allow_missing(&self) -> AllowMissing {
        AllowMissing::of(self.allow_missing_plugins.iter().map(String::as_str))
    }
}

impl SimulateArgs {
    /// Returns the options for these paths.
    ///
    /// # Errors
    /// The flags contradict each other; the text has a second line with a hint.
    pub(crate) fn options(self, paths: Vec<PathBuf>) -> Result<RunOptions, &'static str> {
        let (until, kubelet) = match (self.until_settled, self.kubelet) {
            (true, Some(KubeletArg::None)) => {
                return Err("--until-settled needs instant kubelets\n\
                    hint: leave out --kubelet none, or give --cycles");
            }
            (true, _) => (RunLimit::Settled, KubeletMode::Instant),
            (false, Some(KubeletArg::Instant)) => {
                (RunLimit::Cycles(self.cycles), KubeletMode::Instant)
            }
            (false, _) => (RunLimit::Cycles(self.cycles), KubeletMode::None),
        };
        let allow_missing = self.conf.allow_missing();
        let scheduler_conf = self.conf.scheduler_conf;
        Ok(RunOptions {
            scheduler_conf,
            allow_missing,
            until,
            kubelet,
            keeps_history: false,
            paths,
            source: StateSource::File,
        })
    }
}
