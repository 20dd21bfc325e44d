//! The API server of a case, new and empty for each: embedded, or a real kube-apiserver.

use std::path::{Path, PathBuf};

use vc_sim::load::{Client, LoadAccess, Workload, create_nodes};

use crate::embedded::Embedded;
use crate::real::Real;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Embedded,
    Real,
}

pub(crate) enum Server {
    Embedded(Embedded),
    Real(Real),
}

impl Server {
    pub(crate) async fn start(kind: Kind) -> anyhow::Result<Self> {
        Ok(match kind {
            Kind::Embedded => Self::Embedded(Embedded::start().await?),
            Kind::Real => Self::Real(Real::start().await?),
        })
    }

    /// With the nodes, the namespace and the queue of a workload.
    pub(crate) async fn with(kind: Kind, workload: &Workload) -> anyhow::Result<(Self, Client)> {
        let server = Self::start(kind).await?;
        let client = Client::new(server.access()?);
        let mut connection = client.connection();
        for made in workload.surroundings() {
            connection.create(&made).await?;
        }
        create_nodes(&client, workload, 16).await?;
        Ok((server, client))
    }

    /// As an administrator.
    pub(crate) fn access(&self) -> anyhow::Result<LoadAccess> {
        Ok(match self {
            Self::Embedded(server) => LoadAccess::plain(&server.url())?,
            Self::Real(server) => LoadAccess::of_kubeconfig(&server.kubeconfig)?,
        })
    }

    /// The kubeconfig of an administrator.
    pub(crate) fn kubeconfig(&self) -> &Path {
        match self {
            Self::Embedded(server) => &server.kubeconfig,
            Self::Real(server) => &server.kubeconfig,
        }
    }

    /// How the scheduler finds it, with the rights that it has in a cluster.
    pub(crate) fn flag(&self) -> String {
        match self {
            Self::Embedded(server) => format!("--master={}", server.url()),
            Self::Real(server) => format!("--kubeconfig={}", server.scheduler.display()),
        }
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        match self {
            Self::Embedded(server) => server.stop().await,
            Self::Real(server) => server.stop()?,
        }
        Ok(())
    }
}

/// A new directory for files of one server or scheduler.
pub(crate) fn directory(what: &str) -> anyhow::Result<PathBuf> {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wire");
    let path = parent.join(format!("{what}-{}", std::process::id()));
    let _absent = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path)?;
    Ok(path)
}
