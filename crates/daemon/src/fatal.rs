//! What ends the process, and its exit codes. Specification: core.md 1.4-1.6, 2.6.

use std::error::Error;
use std::path::PathBuf;

use vc_kube::{CallError, ClientError, LeaderFailure, QueueError};

use crate::conf::ConfigLoadError;

/// Why the process cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    /// `--disable-default-scheduler-config` makes a bad file fatal.
    #[error("configuration: {0}")]
    Configuration(#[from] ConfigLoadError),
    #[error(
        "{}: no such directory\nhint: the directory of --scheduler-conf must exist, it is watched",
        .0.display()
    )]
    NoDirectory(PathBuf),
    /// The files of a server with TLS are of no use.
    #[error(transparent)]
    Tls(Box<dyn Error + Send + Sync>),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(
        "version of the API server: {0}\nhint: see --master, --kubeconfig and the server's log"
    )]
    Version(CallError),
    #[error(
        "claims for devices: {0}\nhint: --feature-gates=DynamicResourceAllocation=false starts without"
    )]
    Devices(CallError),
    #[error(transparent)]
    Queues(#[from] QueueError),
    #[error("cannot listen on {address}: {error}\nhint: give another --healthz-address")]
    Listen { address: String, error: std::io::Error },
    /// As client-go words it.
    #[error("leaderelection lost")]
    LeaseLost,
    #[error("{0} has died")]
    Died(&'static str),
    #[error("cannot start: {0}")]
    System(#[from] std::io::Error),
}

impl Fatal {
    /// The exit code: 255 where Volcano logs a fatal line, 2 where it panics, else 1.
    pub fn code(&self) -> u8 {
        match self {
            Self::Configuration(_) | Self::Tls(_) | Self::LeaseLost => 255,
            Self::NoDirectory(_) => 2,
            Self::Client(_)
            | Self::Version(_)
            | Self::Devices(_)
            | Self::Queues(_)
            | Self::Listen { .. }
            | Self::Died(_)
            | Self::System(_) => 1,
        }
    }
}

impl From<LeaderFailure> for Fatal {
    fn from(failure: LeaderFailure) -> Self {
        match failure {
            LeaderFailure::LeaseLost => Self::LeaseLost,
            LeaderFailure::Died(part) => Self::Died(part),
        }
    }
}
