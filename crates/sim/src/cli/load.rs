//! `vcsim load`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use vc_sim::load::{
    LoadAccess, LoadError, LoadOptions, LoadReport, RequestRate, SchedulerProcess, Workload, run,
};

use super::{fail, print};

const EXAMPLES: &str = "\
Examples, in the folder of the project:
  vcsim serve & vc-scheduler --master http://127.0.0.1:8001 --leader-elect=false &
  vcsim load --server http://127.0.0.1:8001 --nodes 10 --gangs 20 --size 5";

/// Create nodes and gangs on an API server and tell how fast they are bound.
///
/// Exits with 1 when a pod is not bound in time.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LoadArgs {
    /// Nodes of 64 CPUs to create first; with 0 those that are there are used.
    #[arg(long, value_name = "N", default_value_t = 100)]
    nodes: u32,
    /// HyperNodes of tier 1 to create, between which the nodes are divided; every gang then has to
    /// stay in one of them. The scheduler needs the plugin network-topology-aware.
    #[arg(long, value_name = "N", default_value_t = 0)]
    hypernodes: u32,
    /// Gangs to create.
    #[arg(long, value_name = "G", default_value_t = 10)]
    gangs: u32,
    /// Pods of a gang.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    size: u32,
    /// Pods created per second; absent: as fast as the server answers.
    #[arg(long, value_name = "R", value_parser = positive)]
    rate: Option<f64>,
    /// Requests under way at most.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    in_flight: u16,
    /// The API server on plain HTTP, as `vcsim serve` is.
    #[arg(long, value_name = "URL", required_unless_present = "kubeconfig")]
    server: Option<String>,
    /// The API server and credentials of the current context.
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    kubeconfig: Option<PathBuf>,
    /// CPU of a pod.
    #[arg(long, value_name = "QUANTITY", default_value = "1")]
    cpu: String,
    /// Memory of a pod.
    #[arg(long, value_name = "QUANTITY", default_value = "1Gi")]
    memory: String,
    /// Namespace of the gangs; made if it is missing.
    #[arg(long, value_name = "NAME", default_value = "load")]
    namespace: String,
    /// Queue of the gangs; made if it is missing.
    #[arg(long, value_name = "NAME", default_value = "load")]
    queue: String,
    /// First part of the names of the gangs.
    #[arg(long, value_name = "NAME", default_value = "gang")]
    prefix: String,
    /// Scheduler of the pods.
    #[arg(long, value_name = "NAME", default_value = "volcano")]
    scheduler_name: String,
    /// Bind the pods here once all exist, without a scheduler: what the server can do at most.
    #[arg(long)]
    bind: bool,
    /// Seconds to wait for binds after the last creation.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// Process of the scheduler, to tell its CPU time and memory.
    #[arg(long, value_name = "PID")]
    scheduler_pid: Option<u32>,
    /// Metrics of the scheduler, to tell its writes: http://127.0.0.1:8080/metrics.
    #[arg(long, value_name = "URL")]
    scheduler_metrics: Option<String>,
    /// Draw the creation curve and the bind curve.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

fn positive(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if rate.is_finite() && 0.0 < rate { Ok(rate) } else { Err("must be above 0".to_owned()) }
}

impl LoadArgs {
    pub(crate) fn execute(self) -> ExitCode {
        let plot = self.plot.clone();
        let options = match self.options() {
            Ok(options) => options,
            Err(error) => return fail(&error),
        };
        let runtime = match tokio::runtime::Runtime::new() {
            Ok(runtime) => runtime,
            Err(error) => return fail(&error),
        };
        match runtime.block_on(run(&options)) {
            Ok(report) => show(&report, plot.as_deref()),
            Err(error) => fail(&error),
        }
    }

    fn options(self) -> Result<LoadOptions, LoadError> {
        let access = match (&self.kubeconfig, &self.server) {
            (Some(path), _) => LoadAccess::of_kubeconfig(path)?,
            (None, server) => LoadAccess::plain(server.as_deref().unwrap_or_default())?,
        };
        let (hyper_nodes, nodes) = (self.hypernodes, self.nodes);
        if nodes < hyper_nodes {
            return Err(LoadError::FewNodes { hyper_nodes, nodes });
        }
        let workload = Workload {
            nodes,
            hyper_nodes,
            gangs: self.gangs,
            size: self.size,
            cpu: self.cpu,
            memory: self.memory,
            namespace: self.namespace,
            queue: self.queue,
            prefix: self.prefix,
            scheduler_name: self.scheduler_name,
        };
        Ok(LoadOptions {
            access,
            workload,
            pressure: RequestRate { in_flight: self.in_flight.into(), rate: self.rate },
            timeout: Duration::from_secs(self.timeout),
            bind: self.bind,
            scheduler: self.scheduler_pid.map(|pid| SchedulerProcess { pid }),
            metrics: self.scheduler_metrics,
        })
    }
}

fn show(report: &LoadReport, plot: Option<&Path>) -> ExitCode {
    print(&(report.lines().join("\n") + "\n"));
    if let Some(path) = plot
        && let Err(error) = std::fs::write(path, report.svg())
    {
        return fail(&format!("cannot write {}: {error}", path.display()));
    }
    ExitCode::from(u8::from(report.lag().is_none()))
}
