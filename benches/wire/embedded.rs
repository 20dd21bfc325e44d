//! `vcsim serve` inside the bench: its CPU is not the scheduler's.

use std::path::PathBuf;
use std::sync::Arc;

use vc_sim::serve::{self, ServeOptions, Store};

use crate::server::directory;

pub(crate) struct Embedded {
    server: serve::Server,
    /// A kubeconfig of an administrator. This server has no other users.
    pub(crate) kubeconfig: PathBuf,
}

impl Embedded {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let kubeconfig = directory("embedded")?.join("kubeconfig");
        let options = ServeOptions {
            listen: "127.0.0.1:0".parse()?,
            write_kubeconfig: Some(kubeconfig.clone()),
            ..ServeOptions::default()
        };
        Ok(Self { server: serve::start(options).await?, kubeconfig })
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.server.store
    }

    pub(crate) async fn stop(self) {
        self.server.stop().await;
    }
}
