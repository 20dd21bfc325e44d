//! A real kube-apiserver with embedded etcd, the shipped manifests applied, and a kubeconfig with
//! the rights of the shipped ServiceAccount. Contract: tests/apiserver/README.md.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};
use vc_sim::load::{ApiConnection, Client, LoadAccess, LoadObject};
use vc_sim::serve::{Scope, ServedKind};

use crate::server::directory;

/// What is served some time after its definition was made.
const CUSTOM: [&str; 3] = [
    "/apis/scheduling.volcano.sh/v1beta1/podgroups",
    "/apis/scheduling.volcano.sh/v1beta1/queues",
    "/apis/shard.volcano.sh/v1alpha1/nodeshards",
];

pub(crate) struct Real {
    child: Child,
    /// Directory of its files.
    dir: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    /// Of the scheduler.
    pub(crate) scheduler: PathBuf,
}

/// An API server that a failed case leaves behind is ended, too.
impl Drop for Real {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Real {
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let dir = directory("apiserver")?;
        let (child, ready) = up(&dir)?;
        let path = ready["kubeconfig"].as_str().context("no kubeconfig")?.into();
        let scheduler = dir.join("scheduler.kubeconfig");
        let server = Self { child, dir, kubeconfig: path, scheduler };
        let client = Client::new(LoadAccess::of_kubeconfig(&server.kubeconfig)?);
        install(&mut client.connection()).await?;
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "s",
            "clusters": [{"name": "s", "cluster":
                {"server": ready["server"], "certificate-authority": ready["ca"]}}],
            "users": [{"name": "s", "user": {"token": token(&server.dir)?}}],
            "contexts": [{"name": "s", "context": {"cluster": "s", "user": "s"}}]});
        fs::write(&server.scheduler, config.to_string())?;
        Ok(server)
    }

    /// Stores pods and PodGroups as they are, past the API server: with uids and statuses of their own.
    pub(crate) fn seed(&self, objects: Vec<Value>) -> anyhow::Result<()> {
        let put: Map<String, Value> =
            objects.into_iter().map(|object| (stored_at(&object), object)).collect();
        let mut child = Command::new(program())
            .args(["seed", "--dir"])
            .arg(&self.dir)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().context("stdin is piped")?;
        stdin.write_all(json!({"delete": [], "put": put}).to_string().as_bytes())?;
        drop(stdin);
        let done = child.wait_with_output()?;
        ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Ok(())
    }

    /// It ends when its stdin is closed.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        drop(self.child.stdin.take());
        self.child.wait()?;
        Ok(())
    }
}

fn program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/apiserver/harness")
}

fn up(dir: &Path) -> anyhow::Result<(Child, Value)> {
    ensure!(program().exists(), "target/apiserver/harness is missing: `make bench-apiserver`");
    let log = dir.join("apiserver.log");
    let mut child = Command::new(program())
        .args(["up", "--exit-with-stdin", "--dir"])
        .arg(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(File::create(&log)?)
        .spawn()?;
    let mut line = String::new();
    let stdout = child.stdout.take().context("stdout is piped")?;
    BufReader::new(stdout).read_line(&mut line)?;
    let ready = serde_json::from_str(&line);
    Ok((child, ready.with_context(|| format!("no API server: see {}", log.display()))?))
}

fn token(dir: &Path) -> anyhow::Result<String> {
    let account = ["--namespace=volcano-system", "--serviceaccount=vc-scheduler", "--ttl=2h"];
    let made = Command::new(program()).args(["token", "--dir"]).arg(dir).args(account).output()?;
    ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Ok(String::from_utf8(made.stdout)?.trim().to_owned())
}

/// Returns the key of a pod or a PodGroup in etcd.
fn stored_at(object: &Value) -> String {
    let place = match object["kind"] == "Pod" {
        true => "pods",
        false => "scheduling.volcano.sh/podgroups",
    };
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    format!("/registry/{place}/{}/{}", text("namespace"), text("name"))
}

/// The shipped manifests, in their order; kinds that the server does not know are left out.
async fn install(connection: &mut ApiConnection) -> anyhow::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/manifests");
    for object in vc_objects::input::read(&[path])?.objects {
        let text = |field: &str| object.value[field].as_str().unwrap_or_default();
        let Some(kind) = ServedKind::of(text("apiVersion"), text("kind")) else { continue };
        let made = LoadObject { path: collection(kind, &object.value), body: object.value };
        connection.create(&made).await?;
    }
    for path in CUSTOM {
        while connection.get(path).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

fn collection(kind: &ServedKind, object: &Value) -> String {
    let root = if kind.group.is_empty() { "/api" } else { "/apis" };
    let prefix = format!("{root}/{}", kind.api_version());
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
    match kind.scope {
        Scope::Cluster => format!("{prefix}/{}", kind.plural),
        Scope::Namespaced => format!("{prefix}/namespaces/{namespace}/{}", kind.plural),
    }
}
