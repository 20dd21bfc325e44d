//! Clients of the API server: where it is, who we are, how fast we may ask. Specification: core.md
//! 1.1, 1.9; rust-ecosystem.md 3 (K-01 no retries, K-04 rate limit, K-17 order of sources, K-19
//! user agent).

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tokio::runtime::Handle;
use tower::{BoxError, Layer, Service};

use crate::backlog::Backlog;
use crate::connect_error::ConnectErrorLayer;
use crate::count::CountLayer;
use crate::direct::DirectClient;
use crate::event_batch::EventCopies;
use crate::failure_log::FailureLog;
use crate::http2::Http2;
use crate::observe::Observer;
use crate::pod_group_cache::PodGroupCache;
use crate::qps::{QpsLayer, RateLimit};
use crate::restored::RestoreNotices;
use crate::retry_after::RetryAfterLayer;
use crate::skew::ClockSkew;
use crate::stack::http1;
use crate::token_file;
use crate::usage_store::UsageStore;

/// What the flags say about the API server.
#[derive(Clone, Debug)]
pub struct ServerAccess {
    /// `--master`; empty: from the kubeconfig.
    pub master: String,
    /// `--kubeconfig`; both empty: in-cluster.
    pub kubeconfig: String,
    /// Requests per second of each client; negative: no limit.
    pub qps: f64,
    pub burst: u32,
}

/// One client per purpose, each with a rate limit of its own (core.md 1.9).
#[derive(Clone)]
pub struct Clients {
    pub core: Client,
    pub volcano: Client,
    pub events: Client,
    /// For the Lease: renewals must not wait behind binds.
    pub elections: Client,
    /// For what every pod costs.
    pub(crate) writes: WriteClients,
    /// Binds that wait to be sent.
    pub backlog: Backlog,
    /// PodGroups that were seen, for those who write them.
    pub(crate) pod_group_cache: Arc<PodGroupCache>,
    /// The saved usage that was seen, for those who write it.
    pub(crate) usage_store: Arc<UsageStore>,
    /// What is logged of requests that fail.
    pub(crate) failures: Arc<FailureLog>,
    /// Tells the feeds of all kinds that the server was restored from a backup.
    pub(crate) restores: RestoreNotices,
    /// Where what comes in bulk is decoded.
    pub(crate) bulk: Handle,
    /// Makes copies of events for the twin.
    pub(crate) event_copies: EventCopies,
    /// How to build the same again; `None`: all are the same client.
    plan: Option<Arc<ClientPlan>>,
}

/// The ways of the writes that come in bulk, each of the client of that purpose.
#[derive(Clone)]
pub(crate) struct WriteClients {
    pub(crate) binds: DirectClient,
    pub(crate) pod_groups: DirectClient,
    pub(crate) events: DirectClient,
}

/// What clients are built from, once per runtime.
struct ClientPlan {
    config: Config,
    observer: Arc<dyn Observer>,
    skew: Arc<ClockSkew>,
    /// Of core, volcano, events, elections; `None`: no limit.
    buckets: Option<[QpsLayer; 4]>,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error(
        "no API server: not running in a cluster: {0}\n\
         hint: give --kubeconfig or --master outside of a cluster"
    )]
    InCluster(#[from] InClusterError),
    #[error("kubeconfig {path}: {error}\nhint: check the path and the current context")]
    Kubeconfig { path: String, error: KubeconfigError },
    #[error("master address {0:?}: not a URL\nhint: write it like https://10.0.0.1:6443")]
    Master(String),
    #[error("client: {0}")]
    Build(#[from] kube::Error),
}

impl Clients {
    /// Must be called inside the runtime that will drive the requests (K-05).
    ///
    /// # Errors
    /// No configuration is found, it is unreadable, or its certificates are.
    pub async fn connect(
        access: &ServerAccess,
        observer: &Arc<dyn Observer>,
    ) -> Result<Self, ClientError> {
        let limit = RateLimit::from_flags(access.qps, access.burst);
        let plan = ClientPlan {
            config: config(access).await?,
            observer: observer.clone(),
            skew: Arc::default(),
            buckets: limit.map(|limit| std::array::from_fn(|_| limit.bucket())),
        };
        let (core, volcano) = (plan.client(0, None)?, plan.client(1, None)?);
        let (events, elections) = (plan.client(2, None)?, plan.client(3, None)?);
        let (backlog, pod_group_cache, bulk) =
            (Backlog::default(), Arc::default(), Handle::current());
        let plan = Some(Arc::new(plan));
        let writes = WriteClients::through(&core, &volcano, &events);
        let failures = Arc::default();
        Ok(Self {
            core,
            volcano,
            events,
            elections,
            writes,
            backlog,
            pod_group_cache,
            usage_store: Arc::default(),
            failures,
            restores: RestoreNotices::default(),
            bulk,
            event_copies: EventCopies::default(),
            plan,
        })
    }

    /// The same clients for another runtime, in which this must be called; rate limits and what else
    /// clients know are shared.
    ///
    /// # Errors
    /// Certificates have become unreadable.
    pub fn again(&self) -> Result<Self, ClientError> {
        let mut clients = self.clone();
        if let Some(plan) = &self.plan {
            clients.core = plan.client(0, None)?;
            clients.volcano = plan.client(1, None)?;
            clients.events = plan.client(2, None)?;
            clients.elections = plan.client(3, None)?;
            clients.writes =
                WriteClients::through(&clients.core, &clients.volcano, &clients.events);
        }
        Ok(clients)
    }

    /// As [`Clients::again`], but PodGroups, queues and events share one connection where the server
    /// has HTTP/2. What is written to pods (`core`) keeps connections of its own: a busy server serves
    /// those in turn, and a single one would wait behind everybody else's.
    ///
    /// # Errors
    /// The same.
    pub fn for_writes(&self) -> Result<Self, ClientError> {
        let mut clients = self.again()?;
        if let Some(plan) = &self.plan {
            let http2 = Http2::of(&plan.config)?;
            clients.volcano = plan.client(1, http2.as_ref())?;
            clients.events = plan.client(2, http2.as_ref())?;
            let way = |purpose, http2| plan.direct(purpose, http2);
            let [pod_groups, events] = [way(1, http2.as_ref())?, way(2, http2.as_ref())?];
            clients.writes = WriteClients { binds: way(0, None)?, pod_groups, events };
        }
        Ok(clients)
    }

    /// One client for every purpose, over a service in place of a network. Must be called inside a
    /// runtime.
    pub fn over<S, B>(service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Send + 'static,
        S::Future: Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let builder = ClientBuilder::new(service, "default");
        Self::shared(builder.with_layer(&RetryAfterLayer).build())
    }

    /// The same clients, whose events are copied so.
    pub(crate) fn with_copies(self, event_copies: EventCopies) -> Self {
        Self { event_copies, ..self }
    }

    /// The same client for every purpose. Must be called inside a runtime.
    pub fn shared(client: Client) -> Self {
        let (core, volcano) = (client.clone(), client.clone());
        let (events, (backlog, pod_group_cache)) = (client.clone(), Default::default());
        let bulk = Handle::current();
        let writes = WriteClients::through(&core, &volcano, &events);
        let (elections, plan, failures) = (client, None, Arc::default());
        Self {
            core,
            volcano,
            events,
            elections,
            writes,
            backlog,
            pod_group_cache,
            usage_store: Arc::default(),
            failures,
            restores: RestoreNotices::default(),
            bulk,
            event_copies: EventCopies::default(),
            plan,
        }
    }
}

impl WriteClients {
    /// As everything else of these clients.
    fn through(core: &Client, volcano: &Client, events: &Client) -> Self {
        let [binds, pod_groups, events] =
            [core, volcano, events].map(|client| DirectClient::from(client.clone()));
        Self { binds, pod_groups, events }
    }
}

/// `Config::infer` looks into `$KUBECONFIG` and the home directory first, client-go does not
/// (K-17).
pub(crate) async fn config(access: &ServerAccess) -> Result<Config, ClientError> {
    let mut config = if !access.kubeconfig.is_empty() {
        from_file(&access.kubeconfig).await?
    } else if access.master.is_empty() {
        Config::incluster()?
    } else {
        Config::new(address(&access.master)?)
    };
    if !access.master.is_empty() {
        config.cluster_url = address(&access.master)?;
    }
    if config.cluster_url.scheme_str() == Some("http") {
        // No TLS, no trust store: an image without one must do, and reading it costs time.
        config.root_cert = Some(Vec::new());
    }
    token_file::trim(&mut config);
    config.default_retry = false;
    let name = "user-agent".parse().expect("a valid header name");
    let value = concat!("vc-scheduler/", env!("CARGO_PKG_VERSION")).parse();
    config.headers.push((name, value.expect("a version is visible ASCII")));
    Ok(config)
}

async fn from_file(path: &str) -> Result<Config, ClientError> {
    let failed = |error| ClientError::Kubeconfig { path: path.to_owned(), error };
    let file = Kubeconfig::read_from(path).map_err(failed)?;
    Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(failed)
}

/// As client-go, an address without a scheme is plain HTTP.
fn address<T: std::str::FromStr>(master: &str) -> Result<T, ClientError> {
    let url = if master.contains("://") { master.to_owned() } else { format!("http://{master}") };
    url.parse().map_err(|_| ClientError::Master(master.to_owned()))
}

impl ClientPlan {
    fn client(&self, purpose: usize, http2: Option<&Http2>) -> Result<Client, ClientError> {
        Ok(match http2 {
            Some(http2) => {
                let namespace = self.config.default_namespace.clone();
                self.build(ClientBuilder::new(http2.clone(), namespace), purpose)
            }
            None => self.build(ClientBuilder::try_from(self.config.clone())?, purpose),
        })
    }

    fn build<S, B>(&self, builder: ClientBuilder<S>, purpose: usize) -> Client
    where
        S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Send + 'static,
        S::Future: Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let builder = builder.with_layer(&self.connect_error()).with_layer(&RetryAfterLayer);
        let builder = builder.with_layer(&self.count());
        match self.bucket(purpose) {
            Some(bucket) => builder.with_layer(bucket).build(),
            None => builder.build(),
        }
    }

    fn direct(&self, purpose: usize, http2: Option<&Http2>) -> Result<DirectClient, ClientError> {
        Ok(match http2 {
            Some(http2) => self.around(http2.clone(), purpose),
            None => match http1(&self.config)? {
                Some(stack) => self.around(stack, purpose),
                None => self.client(purpose, None)?.into(),
            },
        })
    }

    fn around<S, B>(&self, service: S, purpose: usize) -> DirectClient
    where
        S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Send + 'static,
        S::Future: Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let counted =
            self.count().layer(RetryAfterLayer.layer(self.connect_error().layer(service)));
        match self.bucket(purpose) {
            Some(bucket) => DirectClient::of(bucket.layer(counted)),
            None => DirectClient::of(counted),
        }
    }

    fn connect_error(&self) -> ConnectErrorLayer {
        let address = self.config.cluster_url.to_string();
        ConnectErrorLayer { address: address.trim_end_matches('/').into() }
    }

    fn count(&self) -> CountLayer {
        let host = self.config.cluster_url.authority().map_or("", |host| host.as_str()).into();
        let (observer, skew) = (self.observer.clone(), self.skew.clone());
        CountLayer { observer, host, skew }
    }

    /// `None`: no limit.
    fn bucket(&self, purpose: usize) -> Option<&QpsLayer> {
        self.buckets.as_ref().map(|buckets| &buckets[purpose])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Unobserved;

    fn access(master: &str, kubeconfig: &str) -> ServerAccess {
        ServerAccess { master: master.into(), kubeconfig: kubeconfig.into(), qps: 10.0, burst: 10 }
    }

    /// As an API server that has no time for anything: its own filter sends no `Status`.
    async fn overloaded(_: Request<Body>) -> Result<Response<Body>, BoxError> {
        let text = Body::from(b"Too many requests, please try again later.\n".to_vec());
        Ok(Response::builder().status(429).header("retry-after", "7").body(text)?)
    }

    #[tokio::test]
    async fn how_long_to_wait_is_read_from_the_header_on_every_way() {
        let config = Config::new("http://127.0.0.1:1".parse().unwrap());
        let observer: Arc<dyn Observer> = Arc::new(Unobserved);
        let plan = ClientPlan { config, observer, skew: Arc::default(), buckets: None };
        let client = plan.build(ClientBuilder::new(tower::service_fn(overloaded), "default"), 0);
        let request = || Request::post("/x").body(Vec::new()).unwrap();
        let answers = [
            client.request_text(request()).await,
            plan.around(tower::service_fn(overloaded), 0).request(request()).await,
        ];
        for answer in answers {
            let Err(kube::Error::Api(status)) = answer else { panic!("{answer:?}") };
            assert_eq!((status.code, status.details.unwrap().retry_after_seconds), (429, 7));
            assert_eq!(status.message, "Too many requests, please try again later.");
        }
    }

    fn kubeconfig() -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("vc-kube-config-{}", std::process::id()));
        let text = "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{name: k, cluster: {server: 'https://10.1.2.3:6443'}}]\n\
             contexts: [{name: c, context: {cluster: k, user: u}}]\n\
             users: [{name: u, user: {token: t}}]\n";
        std::fs::write(&path, text).unwrap();
        path
    }

    #[tokio::test]
    async fn k17_order_of_sources() {
        let path = kubeconfig();
        let file = path.to_str().unwrap();
        let cases = [
            ("http://127.0.0.1:8001", "", "http://127.0.0.1:8001/"),
            ("127.0.0.1:8001", "", "http://127.0.0.1:8001/"),
            ("", file, "https://10.1.2.3:6443/"),
            ("https://10.9.9.9", file, "https://10.9.9.9/"),
        ];
        for (master, kubeconfig, wanted) in cases {
            let config = config(&access(master, kubeconfig)).await.unwrap();
            assert_eq!(config.cluster_url.to_string(), wanted);
            assert!(!config.default_retry);
            assert_eq!(config.root_cert.is_some(), wanted.starts_with("http:"));
            assert_eq!(config.headers[0].0.as_str(), "user-agent");
        }
        std::fs::remove_file(path).unwrap();
    }

    #[tokio::test]
    async fn no_source_is_an_error_with_a_hint() {
        let cases = [
            (access("", ""), "hint: give --kubeconfig or --master"),
            (access("", "/does/not/exist"), "kubeconfig /does/not/exist: "),
            (access("http://a b", ""), "master address \"http://a b\": not a URL"),
        ];
        for (access, wanted) in cases {
            let error = config(&access).await.unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
