//! `vcsim serve`: an embedded Kubernetes API server over HTTP with simulated nodes and kubelets, so
//! that a scheduler, `kubectl` and tests have a cluster without one. It stores the kinds of
//! `kinds.rs`, keeps nothing on disk, knows no users and listens on loopback unless told otherwise.
//! On request it also serves the page of the answers about its objects.

mod backup;
mod clock;
mod collections;
mod create;
mod defaults;
mod delete;
pub mod devices;
mod discovery;
mod expand;
mod hosts;
mod kinds;
mod kubelet;
mod log;
mod managed_fields;
mod nodes;
mod object;
mod openapi;
mod page;
mod patch;
mod protobuf;
mod refused;
mod request;
mod revise;
mod routes;
mod selector;
mod store;
mod stream;
mod table;
mod validate;
mod volumes;

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use axum::serve::ListenerExt;
use serde_json::Value;
use tokio::{net::TcpListener, sync::watch, task::JoinSet, time::timeout};
use vc_http::ServerLimits;
use vc_resource::Quantity;

pub use backup::Backup;
pub(crate) use clock::micro_time;
pub use delete::DeleteOptions;
pub use expand::Expander;
use hosts::Hosts;
pub use kinds::{
    BINDINGS, CLAIMS, EVENTS, HYPER_NODES, KINDS, LEASES, NAMESPACES, NODES, POD_GROUPS, PODS,
    PRIORITY_CLASSES, QUEUES, STORAGE_CLASSES, Scope, ServedKind, Status, VOLUMES,
};
pub use kubelet::RUN_SECONDS;
pub use log::{Change, Event, Subscription};
pub use object::{Key, Object};
pub use page::PageOptions;
pub use refused::Refused;
pub(crate) use store::LOG_CAPACITY;
pub use store::{Listing, Store, TrackedWrite};
pub(crate) use stream::CacheLag;
pub(crate) use validate::refusal_of_new;
pub use volumes::{PROVISION_FAILURES, PROVISION_SECONDS};

/// What the server holds for its clients. Watches stay open for as long as they are read.
const LIMITS: ServerLimits = ServerLimits {
    connections: 4096,
    head: Duration::from_secs(30),
    short_head: Duration::from_secs(1),
    write: Duration::from_secs(10),
    buffer: 128 * 1024,
    connection: None,
};

/// How long open connections may take to end when the server stops.
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// What to serve.
pub struct ServeOptions {
    /// Where to listen; port 0 takes any free one.
    pub listen: SocketAddr,
    /// How many simulated nodes there are.
    pub nodes: u32,
    /// Cpu of each, a quantity.
    pub node_cpu: String,
    /// Memory of each, a quantity.
    pub node_memory: String,
    /// Pods that each can hold.
    pub node_pods: u32,
    /// GPUs of each, which containers share as vGPUs.
    pub node_vgpus: u32,
    /// Memory of each GPU in MiB.
    pub node_vgpu_memory: u32,
    /// Where to write a kubeconfig for this server, once it listens.
    pub write_kubeconfig: Option<PathBuf>,
    /// Objects that exist from the start.
    pub objects: Vec<Value>,
    /// Whether to listen on an address other than loopback. Anybody there is an administrator.
    pub allow_remote: bool,
    /// Makes the pods of workloads; absent, workloads are only stored.
    pub expander: Option<Arc<dyn Expander>>,
    /// The page with the answers about the objects; absent, there is none.
    pub page: Option<PageOptions>,
}

impl Default for ServeOptions {
    fn default() -> ServeOptions {
        ServeOptions {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8001)),
            nodes: 0,
            node_cpu: "32".to_owned(),
            node_memory: "128Gi".to_owned(),
            node_pods: 110,
            node_vgpus: 0,
            node_vgpu_memory: 16_384,
            write_kubeconfig: None,
            objects: Vec::new(),
            allow_remote: false,
            expander: None,
            page: None,
        }
    }
}

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// There is no access control.
    #[error(
        "not a loopback address: {0}\n\
         hint: anybody who reaches the server may do everything; allow remote access explicitly"
    )]
    Remote(SocketAddr),
    /// The address is in use or not of this machine.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the system says.
        error: std::io::Error,
    },
    /// The size of a node is not a quantity.
    #[error("invalid {field} of the nodes: {value}: {why}")]
    NodeSize {
        /// `cpu` or `memory`.
        field: &'static str,
        /// What was given.
        value: String,
        /// What is wrong with it.
        why: String,
    },
    /// The kubeconfig could not be written.
    #[error("cannot write the kubeconfig: {path}: {error}")]
    Kubeconfig {
        /// The file asked for.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
}

/// A running server. It stops when it is dropped or told to.
pub struct Server {
    /// Where it listens.
    pub addr: SocketAddr,
    /// Where the page is; absent, there is none.
    pub page_addr: Option<SocketAddr>,
    /// Its objects.
    pub store: Arc<Store>,
    /// One line for each of the given objects that was refused.
    pub rejected: Vec<String>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

/// Starts a server inside the current tokio runtime.
///
/// # Errors
/// When it cannot or may not listen there, or the options make no sense.
pub async fn start(mut options: ServeOptions) -> Result<Server, ServeError> {
    check_quantity("cpu", &options.node_cpu)?;
    check_quantity("memory", &options.node_memory)?;
    let (listener, addr) = listen(options.listen, options.allow_remote).await?;
    let store = Arc::new(Store::new(options.expander.clone()));
    let rejected = fill(&store, &mut options);

    let (stop, stopped) = watch::channel(false);
    let mut tasks = JoinSet::new();
    tasks.spawn(kubelet::run(store.clone(), stopped.clone()));
    tasks.spawn(volumes::run(store.clone(), stopped.clone()));
    let mut page_addr = None;
    if let Some(PageOptions { listen: address, config }) = options.page.take() {
        let (listener, addr) = listen(address, options.allow_remote).await?;
        page_addr = Some(addr);
        let answers = page::StoreAnswers::new(store.clone(), config);
        tasks.spawn(page::follow(answers.clone(), stopped.clone()));
        let routes = page::routes(answers);
        let limits = ServerLimits::SMALL;
        tasks.spawn(vc_http::serve(listener, limits, None, routes, stopped.clone()));
    }
    let hosts = if options.allow_remote { Hosts::Any } else { Hosts::Local };
    tasks.spawn(serve(listener, store.clone(), hosts, stopped));
    let server = Server { addr, page_addr, store, rejected, stop, tasks };
    if let Some(path) = &options.write_kubeconfig {
        write_kubeconfig(path, &server.url())?;
    }
    Ok(server)
}

/// Listens on an address, on loopback only unless others are allowed. Returns where it listens.
async fn listen(
    address: SocketAddr,
    allow_remote: bool,
) -> Result<(TcpListener, SocketAddr), ServeError> {
    if !allow_remote && !address.ip().is_loopback() {
        return Err(ServeError::Remote(address));
    }
    let refused = |error| ServeError::Listen { address, error };
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let taken = listener.local_addr().map_err(refused)?;
    Ok((listener, taken))
}

/// A server without sockets inside the current tokio runtime: what answers requests, and its objects.
/// It ends with the runtime. Its uids and generated names follow from the seed. It keeps at most
/// `log_capacity` events of each kind for watches.
pub(crate) fn in_process(
    seed: u64,
    log_capacity: impl Fn(&ServedKind) -> usize,
) -> (axum::Router, Arc<Store>) {
    let store = Arc::new(Store::seeded(None, seed, log_capacity));
    // Objects of every cluster, which this very server does not refuse.
    let _refused = store.load(defaults::initial_objects());
    let (stop, stopped) = watch::channel(false);
    let (pods, volumes) = (store.clone(), store.clone());
    let (of_kubelets, of_volumes) = (stopped.clone(), stopped.clone());
    tokio::spawn(async move {
        // Held for as long as there are kubelets.
        let _stop = stop;
        kubelet::run(pods, of_kubelets).await;
    });
    tokio::spawn(volumes::run(volumes, of_volumes));
    let app = routes::App { store: store.clone(), hosts: Hosts::Any, stop: stopped };
    (routes::router(app), store)
}

impl Server {
    /// The address for clients on this machine: `http://127.0.0.1:8001`.
    pub fn url(&self) -> String {
        url_of(self.addr)
    }

    /// The address of the page for browsers on this machine: `http://127.0.0.1:8002/`. `None`:
    /// there is no page.
    pub fn page_url(&self) -> Option<String> {
        self.page_addr.map(|address| url_of(address) + "/")
    }

    /// Ends all watches and connections and returns when that is done.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        // Connections of clients that do not read are cut off with the tasks.
        let _cut_off = timeout(STOP_LIMIT, ended).await.is_err();
    }
}

/// The URL under which this machine reaches an address.
fn url_of(mut address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    format!("http://{address}")
}

async fn serve(
    listener: TcpListener,
    store: Arc<Store>,
    hosts: Hosts,
    stop: watch::Receiver<bool>,
) {
    // A watch event must not wait for a second one to fill a segment.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let router = routes::router(routes::App { store, hosts, stop: stop.clone() });
    vc_http::serve(listener, LIMITS, None, router, stop).await;
}

/// Puts in the given objects and, where they do not say otherwise, the simulated nodes and what
/// every cluster has.
fn fill(store: &Store, options: &mut ServeOptions) -> Vec<String> {
    let identity = |object: &Value| (object["kind"].to_string(), Key::of(object));
    let given: BTreeSet<_> = options.objects.iter().map(identity).collect();
    let node = |number| {
        let ServeOptions { node_cpu, node_memory, node_pods, .. } = &*options;
        let mut node = nodes::node(number, node_cpu, node_memory, *node_pods);
        devices::register(&mut node, options.node_vgpus, options.node_vgpu_memory);
        node
    };
    let own = (0..options.nodes).map(node).chain(defaults::initial_objects());
    let mut objects: Vec<Value> = own.filter(|own| !given.contains(&identity(own))).collect();
    objects.append(&mut options.objects);
    store.load(objects)
}

fn check_quantity(field: &'static str, value: &str) -> Result<(), ServeError> {
    let why = match value.parse::<Quantity>() {
        Ok(amount) if Quantity::from_value(0) <= amount => return Ok(()),
        Ok(_) => "negative".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(ServeError::NodeSize { field, value: value.to_owned(), why })
}

fn write_kubeconfig(path: &Path, url: &str) -> Result<(), ServeError> {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: vcsim\n\
         clusters:\n- name: vcsim\n  cluster:\n    server: {url}\n\
         contexts:\n- name: vcsim\n  context:\n    cluster: vcsim\n    user: vcsim\n\
         users:\n- name: vcsim\n  user: {{}}\n"
    );
    let failed = |error| ServeError::Kubeconfig { path: path.to_owned(), error };
    std::fs::write(path, text).map_err(failed)
}
