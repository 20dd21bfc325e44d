//! `vcsim load`: nodes and gangs at a given rate against any API server, and how fast they are
//! bound. It knows neither scheduler nor server: requests over HTTP, a watch of the pods, `/proc`
//! and `/metrics` of the scheduler when they are named.

mod access;
mod client;
mod plot;
mod process;
mod report;
mod send;
mod shapes;
mod watch;

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub use access::LoadAccess;
pub use client::{ApiConnection, Client};
pub use process::{SchedulerProcess, WriteCounts, metrics};
pub use report::{LoadReport, PodRate};
pub use send::{RequestRate, bind_all, create, create_gangs, create_nodes};
pub use shapes::{LoadObject, Workload};
pub use watch::BindWatch;

pub use crate::demo::summary::{Quantiles, quantiles};

/// Why a load has not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Neither a server nor a page of metrics can be there.
    #[error("not an address: {0}\nhint: write it like http://127.0.0.1:8001, or give --kubeconfig")]
    Address(String),
    /// It does not say where the server is, or who we are.
    #[error("kubeconfig {path}: {why}")]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Nobody listens there, or TLS does not come about.
    #[error("cannot connect to {authority}: {error}\nhint: {}", hint(error))]
    Connect {
        /// Host and port.
        authority: String,
        /// What the system says.
        error: io::Error,
    },
    /// The connection broke, again and again.
    #[error("lost the connection: {0}")]
    Http(#[from] hyper::Error),
    /// The server does not want an object.
    #[error("refused: {path}: {code}: {message}{}", on_refusal(message))]
    Refused {
        /// Of the request.
        path: String,
        /// HTTP status.
        code: u16,
        /// What the server says.
        message: String,
    },
    /// There are fewer nodes than HyperNodes.
    #[error(
        "--hypernodes {hyper_nodes}: there are only {nodes} nodes\nhint: give more with --nodes"
    )]
    FewNodes {
        /// Number of HyperNodes.
        hyper_nodes: u32,
        /// Number of nodes that are created.
        nodes: u32,
    },
    /// Nothing more is seen of the pods.
    #[error("watch of the pods: {0}")]
    Watch(String),
}

/// A Go server for TLS answers plain HTTP in these words.
fn on_refusal(message: &str) -> &'static str {
    match message.contains("HTTP request to an HTTPS server") {
        true => "\nhint: it speaks TLS: give --kubeconfig in place of --server",
        false => "",
    }
}

/// What to look at when there is no connection.
fn hint(error: &io::Error) -> &'static str {
    let text = error.to_string();
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "nothing listens there: is the server up, are address and port right?"
        }
        _ if text.contains("InvalidContentType") => {
            "it does not speak TLS: give its address with --server http://..."
        }
        _ if text.contains("UnknownIssuer") => {
            "its CA is not known: name it in the kubeconfig (certificate-authority-data)"
        }
        _ if text.contains("NotValidForName") => "its certificate is for another name",
        _ => "is the address right, and the server up?",
    }
}

/// A whole load.
pub struct LoadOptions {
    /// The API server.
    pub access: LoadAccess,
    /// What is created.
    pub workload: Workload,
    /// How fast gangs are created.
    pub pressure: RequestRate,
    /// How long binds are waited for after the last creation.
    pub timeout: Duration,
    /// Whether pods are bound here, without a scheduler, once all exist.
    pub bind: bool,
    /// The scheduler's process, to tell its CPU and memory.
    pub scheduler: Option<SchedulerProcess>,
    /// URL of the scheduler's metrics, to tell its writes.
    pub metrics: Option<String>,
}

/// Runs a load to its end: all are bound, or the time is up.
///
/// # Errors
/// The server is gone, or refuses something.
pub async fn run(options: &LoadOptions) -> Result<LoadReport, LoadError> {
    let LoadOptions { workload, pressure, .. } = options;
    let client = Client::new(options.access.clone());
    let mut connection = client.connection();
    for made in workload.surroundings() {
        connection.create(&made).await?;
    }
    create_nodes(&client, workload, pressure.in_flight).await?;
    for number in 0..workload.hyper_nodes {
        connection.create(&workload.hyper_node(number)).await?;
    }
    let mut binds = BindWatch::watch(&client, workload).await?;
    let before = SchedulerUse::now(options).await?;
    let start = Instant::now();
    let created = create_gangs(&client, workload, *pressure).await?;
    if options.bind {
        bind_all(&client, workload, pressure.in_flight).await?;
    }
    binds.until(workload.n_pods(), options.timeout).await?;
    let after = SchedulerUse::now(options).await?;
    let both = after.cpu_seconds.zip(before.cpu_seconds);
    Ok(LoadReport {
        workload: workload.clone(),
        start,
        created: created.into_iter().map(Some).collect(),
        bound: binds.times(),
        waits: client.waits(),
        cpu_seconds: both.map(|(after, before)| after - before),
        peak_mib: options.scheduler.and_then(SchedulerProcess::peak_mib),
        writes: after.writes.zip(before.writes).map(|(after, before)| after.since(&before)),
    })
}

/// What the scheduler has used so far.
struct SchedulerUse {
    cpu_seconds: Option<f64>,
    writes: Option<WriteCounts>,
}

impl SchedulerUse {
    async fn now(options: &LoadOptions) -> Result<SchedulerUse, LoadError> {
        let writes = match &options.metrics {
            Some(url) => Some(WriteCounts::scrape(url).await?),
            None => None,
        };
        Ok(SchedulerUse {
            cpu_seconds: options.scheduler.and_then(SchedulerProcess::cpu_seconds),
            writes,
        })
    }
}
