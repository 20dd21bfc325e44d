//! `vcsim serve` inside the bench: its CPU is not the scheduler's.

use std::sync::Arc;

use vc_sim::serve::{self, ServeOptions, Store};

pub(crate) struct Embedded(serve::Server);

impl Embedded {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let listen = "127.0.0.1:0".parse()?;
        Ok(Self(serve::start(ServeOptions { listen, ..ServeOptions::default() }).await?))
    }

    pub(crate) fn url(&self) -> String {
        self.0.url()
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.0.store
    }

    pub(crate) async fn stop(self) {
        self.0.stop().await;
    }
}
