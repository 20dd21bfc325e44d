//! The scheduler's binary as a child: with the arguments and the configuration that the shipped
//! manifests give it, and with the rights of its ServiceAccount.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::api::{text, until};
use crate::bad_input::logged;
use crate::cluster::{Cluster, manifests};
use crate::guard::Guard;

/// Only so that a process that stays fails a test instead of hanging it.
const HANG: Duration = Duration::from_secs(120);

/// A running scheduler; it is killed when this is dropped.
pub(crate) struct Scheduler {
    child: Child,
    _guard: Guard,
}

impl Scheduler {
    /// The only replica, with a short period so that what failed is soon tried again.
    pub(crate) async fn start(cluster: &Cluster) -> Self {
        Self::start_with(cluster, &["--leader-elect=false", "--schedule-period=100ms"]).await
    }

    /// These arguments come after the shipped ones and win.
    pub(crate) async fn start_with(cluster: &Cluster, args: &[&str]) -> Self {
        Self::start_in("UTC0", cluster, args).await
    }

    /// The same in a time zone, as `TZ` names it.
    pub(crate) async fn start_in(zone: &str, cluster: &Cluster, args: &[&str]) -> Self {
        Self::spawn(env!("CARGO_BIN_EXE_vc-scheduler"), zone, cluster, args)
    }

    /// The scheduler of another version: the binary that `EARLIER_SCHEDULER` names, or this one. `make test-upgrade`
    /// builds that of a commit.
    pub(crate) fn start_earlier(cluster: &Cluster, args: &[&str]) -> Self {
        let named = std::env::var("EARLIER_SCHEDULER").unwrap_or_default();
        let program = if named.is_empty() { env!("CARGO_BIN_EXE_vc-scheduler") } else { &named };
        Self::spawn(program, "UTC0", cluster, args)
    }

    fn spawn(program: &str, zone: &str, cluster: &Cluster, args: &[&str]) -> Self {
        let dir = cluster.dir();
        let conf = dir.join("volcano-scheduler.conf");
        // A scheduler that runs already must not read half of it.
        if !conf.exists() {
            fs::write(&conf, shipped_conf()).unwrap();
        }
        let log = cluster.scheduler_log();
        let log = OpenOptions::new().create(true).append(true).open(log).unwrap();
        let child = Command::new(program)
            .args(shipped_args())
            .arg(flag("kubeconfig", &cluster.scheduler_kubeconfig))
            .arg(flag("scheduler-conf", &conf))
            .arg(flag("cache-dump-dir", &dir))
            .args(["--healthz-address=127.0.0.1:0", "--listen-address=127.0.0.1:0"])
            .args(args)
            .env("DEBUG_SOCKET_DIR", &dir)
            .env("TZ", zone)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let guard = Guard::over(child.id().unwrap());
        Self { child, _guard: guard }
    }

    /// Waits until cycles run, then ends it as Kubernetes does: the cycle that has begun, the only
    /// one of a long period, is finished, and so are its writes.
    pub(crate) async fn one_cycle(self, cluster: &Cluster) {
        logged(cluster, "cycles start").await;
        assert!(self.terminate().await.success());
        let log = fs::read_to_string(cluster.scheduler_log()).unwrap();
        assert!(!log.contains("writes in flight were given up"), "the machine is too slow: {log}");
    }

    /// As a crash of the node: nothing is finished.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// `STOP` and `CONT`: for a while it does nothing at all.
    pub(crate) async fn signal(&self, name: &str) {
        let pid = self.child.id().unwrap().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &pid]).status().await.unwrap();
        assert!(sent.success());
    }

    /// SIGTERM, as Kubernetes ends a pod.
    pub(crate) async fn terminate(mut self) -> ExitStatus {
        self.signal("TERM").await;
        tokio::time::timeout(HANG, self.child.wait()).await.unwrap().unwrap()
    }
}

/// What the only scheduler of the test serves at `/metrics`.
pub(crate) async fn metrics(cluster: &Cluster) -> String {
    let log = cluster.scheduler_log();
    let address = until("the port of the metrics", async || {
        let log = fs::read_to_string(&log).ok()?;
        let at = log.split_once("serving metrics on ")?.1;
        at.split_whitespace().next().map(str::to_owned)
    })
    .await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = "GET /metrics HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

fn flag(name: &str, path: &Path) -> String {
    format!("--{name}={}", path.display())
}

fn shipped(kind: &str) -> Value {
    let objects = manifests().into_iter();
    { objects }.find(|object| object["kind"] == kind).unwrap()
}

fn shipped_args() -> Vec<String> {
    let deployment = shipped("Deployment");
    let args = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    args.as_array().unwrap().iter().map(|arg| text(arg).to_owned()).collect()
}

pub(crate) fn shipped_conf() -> String {
    text(&shipped("ConfigMap")["data"]["volcano-scheduler.conf"]).to_owned()
}
