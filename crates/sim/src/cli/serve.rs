//! `vcsim serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use vc_objects::input;
use vc_sim::Controllers;
use vc_sim::run::RunError;
use vc_sim::serve::{PageOptions, ServeOptions, start};
use vc_text::escape_lines;

use super::simulate::ConfArgs;
use super::{fail, misuse, print};

const EXAMPLES: &str = "\
Examples, in the folder of the project:
  vcsim serve --nodes 10 --write-kubeconfig /tmp/kubeconfig &
  vc-scheduler --master http://127.0.0.1:8001 --leader-elect=false &
  kubectl --kubeconfig /tmp/kubeconfig apply -f examples/gang.yaml";

/// Serve an embedded Kubernetes API with simulated nodes and kubelets.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Address to listen on; port 0 takes any free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8001")]
    listen: SocketAddr,
    /// Allow an address other than loopback. Anybody who reaches it may do everything.
    #[arg(long)]
    allow_remote: bool,
    /// Number of simulated nodes.
    #[arg(long, value_name = "N", default_value_t = 0)]
    nodes: u32,
    /// Cpu of each simulated node.
    #[arg(long, value_name = "QUANTITY", default_value = "32")]
    node_cpu: String,
    /// Memory of each simulated node.
    #[arg(long, value_name = "QUANTITY", default_value = "128Gi")]
    node_memory: String,
    /// Pods that each simulated node can hold.
    #[arg(long, value_name = "N", default_value_t = 110)]
    node_pods: u32,
    /// GPUs of each simulated node, which containers share as vGPUs.
    #[arg(long, value_name = "N", default_value_t = 0)]
    node_vgpus: u32,
    /// Memory in MiB of each GPU of a simulated node.
    #[arg(long, value_name = "MIB", default_value_t = 16_384)]
    node_vgpu_memory: u32,
    /// Write a kubeconfig for the server once it listens.
    #[arg(long, value_name = "FILE")]
    write_kubeconfig: Option<PathBuf>,
    /// Serve a page there that says why jobs wait; port 0 takes any free one. Absent: no page.
    #[arg(long, value_name = "ADDRESS")]
    page_address: Option<SocketAddr>,
    #[command(flatten)]
    conf: ConfArgs,
    /// Files, directories, or - for standard input, with objects that exist from the start.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
}

impl ServeArgs {
    pub(crate) fn execute(self) -> ExitCode {
        if self.page_address.is_none() && self.conf.is_given() {
            return misuse("only the page reads a configuration\nhint: give --page-address too");
        }
        let page = match self.page_address.map(|listen| page(listen, &self.conf)).transpose() {
            Ok(page) => page,
            Err(error) => return fail(&escape_lines(&error.to_string())),
        };
        let input = match input::read(&self.paths) {
            Ok(input) => input,
            Err(error) => return fail(&error),
        };
        for unreadable in &input.unreadable {
            eprintln!("{unreadable}");
        }
        let options = ServeOptions {
            listen: self.listen,
            nodes: self.nodes,
            node_cpu: self.node_cpu,
            node_memory: self.node_memory,
            node_pods: self.node_pods,
            node_vgpus: self.node_vgpus,
            node_vgpu_memory: self.node_vgpu_memory,
            write_kubeconfig: self.write_kubeconfig,
            objects: input.objects.into_iter().map(|object| object.value).collect(),
            allow_remote: self.allow_remote,
            expander: Some(Arc::new(Controllers)),
            page,
        };
        match tokio::runtime::Runtime::new() {
            Ok(runtime) => runtime.block_on(serve(options)),
            Err(error) => fail(&error),
        }
    }
}

/// Returns what page to serve. Says on standard error which entries of the configuration this
/// version lacks.
fn page(listen: SocketAddr, conf: &ConfArgs) -> Result<PageOptions, RunError> {
    let file = conf.scheduler_conf.as_deref();
    let (page, problems) = PageOptions::read(listen, file, &conf.allow_missing())?;
    for problem in &problems {
        eprintln!("{}", escape_lines(problem));
    }
    Ok(page)
}

/// Serves until the process is told to end.
async fn serve(options: ServeOptions) -> ExitCode {
    let server = match start(options).await {
        Ok(server) => server,
        Err(error) => return fail(&error),
    };
    for rejected in &server.rejected {
        eprintln!("{rejected}");
    }
    print(&format!("listening on {}\n", server.url()));
    if let Some(url) = server.page_url() {
        print(&format!("serving the page on {url}\n"));
    }
    let waited = ended().await;
    server.stop().await;
    match waited {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Waits for Ctrl-C or, where there is one, SIGTERM.
async fn ended() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}
