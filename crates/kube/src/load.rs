//! Reads what monitoring says of nodes, and sends it to the engine. A source that fails is logged
//! and counted; nodes keep what was read before, until that is too old. Nothing waits for a source.
//! Specification: plugins-nodes.md 12.2, core.md 2.5.

mod adaptor;
mod client;
mod elasticsearch;
mod prometheus;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use rustc_hash::FxHashMap;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};
use vc_model::{ClusterEvent, NodeLoad};

use crate::client::Clients;
use crate::inbox::{EngineMessage, EngineVisit};
use crate::observe::Observer;
use crate::wall_clock::wall_micros;
use client::{LoadClient, LoadError};

pub use client::LoadServer;

/// Longest time of a round.
const ROUND: Duration = Duration::from_secs(60);
/// Requests for single nodes at the same time.
const AT_ONCE: usize = 8;

/// A source of loads: the `metrics` section of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadSource {
    pub kind: LoadSourceKind,
    /// Time between two rounds.
    pub interval: Duration,
}

/// What the source is, and where.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadSourceKind {
    Prometheus(LoadServer),
    /// The API server itself serves the metrics, on behalf of a Prometheus adapter.
    PrometheusAdaptor,
    Elasticsearch {
        server: LoadServer,
        index: String,
        /// Field with the name of the node.
        host_field: String,
    },
}

impl LoadSourceKind {
    /// The name in the configuration.
    fn name(&self) -> &'static str {
        match self {
            Self::Prometheus(_) => "prometheus",
            Self::PrometheusAdaptor => "prometheus_adaptor",
            Self::Elasticsearch { .. } => "elasticsearch",
        }
    }

    /// The address for messages, without credentials.
    fn place(&self) -> &str {
        match self {
            Self::Prometheus(server) | Self::Elasticsearch { server, .. } => server.shown(),
            Self::PrometheusAdaptor => "API server",
        }
    }
}

/// Percentages of cpu and of memory that a source gave for nodes, by name, each with the time at
/// which it was measured, in microseconds since 1970.
#[derive(Debug, Default)]
struct NodePercentages {
    cpu: FxHashMap<Arc<str>, (f64, i64)>,
    memory: FxHashMap<Arc<str>, (f64, i64)>,
}

impl NodePercentages {
    /// Returns the loads of the nodes of which both percentages are known.
    fn loads(&self, nodes: &[Arc<str>], interval: Duration) -> Vec<(Arc<str>, NodeLoad)> {
        let now = wall_micros();
        let interval = i64::try_from(interval.as_micros()).unwrap_or(i64::MAX);
        let load = |name: &Arc<str>| {
            let (cpu, memory) = (self.cpu.get(name)?, self.memory.get(name)?);
            // A clock that is ahead must not keep a load fresh for longer.
            let measured = cpu.1.min(memory.1).min(now);
            Some((name.clone(), NodeLoad::new(cpu.0, memory.0, measured, interval)?))
        };
        nodes.iter().filter_map(load).collect()
    }
}

/// Follows the source that `sources` holds, until nobody listens any more. `None`: nothing is read.
/// A changed source is read at once.
pub async fn follow_loads(
    mut sources: watch::Receiver<Option<LoadSource>>,
    clients: Clients,
    inbox: mpsc::Sender<EngineMessage>,
    observer: Arc<dyn Observer>,
) {
    loop {
        let source = sources.borrow_and_update().clone();
        let follow = async {
            match source {
                Some(source) => {
                    LoadReader { source, clients: &clients, inbox: &inbox, observer: &*observer }
                        .run()
                        .await
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = follow => return,
            changed = sources.changed() => {
                observer.loads_stopped();
                if changed.is_err() {
                    return;
                }
            }
        }
    }
}

/// One source, and who is told.
struct LoadReader<'a> {
    source: LoadSource,
    clients: &'a Clients,
    inbox: &'a mpsc::Sender<EngineMessage>,
    observer: &'a dyn Observer,
}

impl LoadReader<'_> {
    /// Reads the source round after round, until the engine is gone.
    async fn run(self) {
        let client = match self.client() {
            Ok(client) => client,
            Err(error) => {
                self.failed(&error);
                return std::future::pending().await;
            }
        };
        let (kind, place) = (self.source.kind.name(), self.source.kind.place());
        tracing::info!(v = 1, "node loads are read from {kind} ({place})");
        let mut ticks = interval(self.source.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let Some(nodes) = self.nodes().await else { return };
            if nodes.is_empty() {
                continue;
            }
            let round = timeout(ROUND, self.round(&client, &nodes)).await;
            match round.unwrap_or(Err(LoadError::TimedOut(ROUND))) {
                Ok(loads) => {
                    let event = ClusterEvent::NodeLoadsRead(loads);
                    if self.inbox.send(EngineMessage::Event(event)).await.is_err() {
                        return;
                    }
                }
                Err(error) => self.failed(&error),
            }
        }
    }

    fn client(&self) -> Result<SourceClient<'_>, LoadError> {
        Ok(match &self.source.kind {
            LoadSourceKind::Prometheus(server) => {
                SourceClient::Prometheus(LoadClient::new(server)?)
            }
            LoadSourceKind::PrometheusAdaptor => SourceClient::Adaptor(&self.clients.core),
            LoadSourceKind::Elasticsearch { server, index, host_field } => {
                SourceClient::Elasticsearch { client: LoadClient::new(server)?, index, host_field }
            }
        })
    }

    /// Returns the names of the nodes that the engine knows. Returns `None` if it is gone.
    async fn nodes(&self) -> Option<Vec<Arc<str>>> {
        let (answer, nodes) = oneshot::channel();
        let visit = EngineVisit::look(move |engine| {
            let cluster = engine.cluster();
            let name = |&node| cluster.nodes[node].name.clone();
            // Nobody may listen any more.
            drop(answer.send(cluster.nodes_by_name().iter().map(name).collect()));
        });
        self.inbox.send(EngineMessage::Visit(visit)).await.ok()?;
        nodes.await.ok()
    }

    async fn round(
        &self,
        client: &SourceClient<'_>,
        nodes: &[Arc<str>],
    ) -> Result<Vec<(Arc<str>, NodeLoad)>, LoadError> {
        let read = match client {
            SourceClient::Prometheus(client) => prometheus::read(client, nodes).await?,
            SourceClient::Adaptor(client) => adaptor::read(client).await?,
            SourceClient::Elasticsearch { client, index, host_field } => {
                elasticsearch::read(client, index, host_field, nodes).await?
            }
        };
        let loads = read.loads(nodes, self.source.interval);
        if loads.is_empty() {
            return Err(LoadError::NoNode { n_nodes: nodes.len() });
        }
        let n_missing = nodes.len() - loads.len();
        self.observer.loads_read(self.source.kind.name(), loads.len(), n_missing);
        tracing::debug!(v = 4, n_read = loads.len(), n_missing, "node loads read");
        Ok(loads)
    }

    /// Logs and counts a round that brought nothing.
    fn failed(&self, error: &LoadError) {
        let kind = self.source.kind.name();
        self.observer.loads_failed(kind, error.cause());
        let source = format!("{kind} ({})", self.source.kind.place());
        self.clients.failures.warn("node loads not read", source, error);
    }
}

/// The client of a source.
enum SourceClient<'a> {
    Prometheus(LoadClient),
    Adaptor(&'a Client),
    Elasticsearch { client: LoadClient, index: &'a str, host_field: &'a str },
}
