//! Volcano itself beside our scheduler: its chart as it is rendered, and its own controllers, webhooks and
//! scheduler as processes. tests/volcano/build.sh builds them. Specification: docs/spec/real-apiserver.md 9.

mod hand_over;
mod jobs;

use std::fs::OpenOptions;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::api::{Api, code, text, until};
use crate::cluster::{Cluster, install, read_manifests};
use crate::guard::Guard;
use crate::objects::name;
use crate::served;

const NAMESPACE: &str = "volcano-system";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// What only Volcano's controllers know. It goes with its objects.
const OF_CONTROLLERS: [&str; 6] = [
    "jobs.batch.volcano.sh",
    "cronjobs.batch.volcano.sh",
    "commands.bus.volcano.sh",
    "jobflows.flow.volcano.sh",
    "jobtemplates.flow.volcano.sh",
    "colocationconfigurations.config.volcano.sh",
];
const JOBS: &str = "/apis/batch.volcano.sh/v1alpha1";

/// A file that tests/volcano/build.sh makes.
fn built(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/volcano").join(file)
}

/// False where the module proxy has no Volcano: build.sh says so, and tests with its programs are left out.
fn is_built() -> bool {
    let is_there = built("manifests.yaml").exists();
    if !is_there {
        eprintln!("left out: target/volcano is missing; `make apiserver` builds it");
    }
    is_there
}

/// A running process of Volcano; it is killed when this is dropped.
struct Program {
    child: Child,
    _guard: Guard,
}

impl Program {
    /// It logs into the folder of the test's API server.
    fn start(cluster: &Cluster, program: &str, args: &[String]) -> Self {
        let dir = cluster.dir();
        let log = dir.join(format!("volcano-{program}-{}.log", cluster.namespace));
        let log = OpenOptions::new().create(true).append(true).open(log).unwrap();
        let child = Command::new(built(program))
            .args(args)
            .env("DEBUG_SOCKET_DIR", &dir)
            .env("KUBE_POD_NAMESPACE", NAMESPACE)
            .env("HELM_RELEASE_NAME", "volcano")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let guard = Guard::over(child.id().unwrap());
        Self { child, _guard: guard }
    }

    /// SIGTERM; returns when it has ended.
    async fn terminate(mut self) {
        let pid = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
        self.child.wait().await.unwrap();
    }
}

/// An installation of Volcano without its scheduler.
struct Volcano {
    _controllers: Program,
    _webhooks: Program,
}

impl Volcano {
    /// Definitions, roles and webhooks of the chart, and the programs with the rights that it gives them.
    async fn install(cluster: &mut Cluster) -> Self {
        remove_definitions(&cluster.api).await;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("https://127.0.0.1:{port}");
        for mut object in read_manifests(&built("manifests.yaml")) {
            if is_installed(text(&object["kind"])) {
                serve_from(&mut object, &address);
                cluster.api.apply_unchecked(&object).await.unwrap();
            }
        }
        served::kinds(&cluster.api).await;
        let webhooks = Self::webhooks(cluster, &address, port);
        let kubeconfig = account(cluster, "volcano-controllers");
        let args = [
            format!("--kubeconfig={}", kubeconfig.display()),
            "--leader-elect=false".to_owned(),
            "--kube-api-qps=500".to_owned(),
            "--kube-api-burst=1000".to_owned(),
        ];
        let controllers = Program::start(cluster, "controller-manager", &args);
        webhooks_answer(&cluster.api).await;
        Self { _controllers: controllers, _webhooks: webhooks }
    }

    /// With the certificate of the API server, which is one for this address.
    fn webhooks(cluster: &mut Cluster, address: &str, port: u16) -> Program {
        let kubeconfig = account(cluster, "volcano-admission");
        let file =
            |flag: &str, name: &str| format!("--{flag}={}", cluster.dir().join(name).display());
        let args = [
            format!("--kubeconfig={}", kubeconfig.display()),
            file("tls-cert-file", "server.crt"),
            file("tls-private-key-file", "server.key"),
            file("ca-cert-file", "ca.crt"),
            format!("--webhook-url={address}"),
            "--listen-address=127.0.0.1".to_owned(),
            format!("--port={port}"),
            enabled_webhooks(),
        ];
        Program::start(cluster, "webhook-manager", &args)
    }

    /// The next test finds what is shipped.
    async fn remove(self, api: &Api) {
        drop(self);
        for kind in ["mutating", "validating"] {
            let all = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations");
            api.delete(&all).await.unwrap();
        }
        remove_definitions(api).await;
        install(api).await;
    }
}

/// What is no workload: nothing runs a Deployment here.
fn is_installed(kind: &str) -> bool {
    let kinds = ["ServiceAccount", "CustomResourceDefinition", "ConfigMap"];
    kinds.contains(&kind)
        || kind.starts_with("ClusterRole")
        || kind.ends_with("WebhookConfiguration")
}

/// A webhook that is registered under the name of a Service is called at this address.
fn serve_from(object: &mut Value, address: &str) {
    let webhooks = object.get_mut("webhooks").and_then(Value::as_array_mut);
    for webhook in webhooks.into_iter().flatten() {
        let path = text(&webhook["clientConfig"]["service"]["path"]).to_owned();
        webhook["clientConfig"] = json!({"url": format!("{address}{path}")});
    }
}

/// The argument of the chart's Deployment that says which webhooks are registered.
fn enabled_webhooks() -> String {
    let objects = read_manifests(&built("manifests.yaml"));
    let deployment = objects
        .iter()
        .find(|object| object["kind"] == "Deployment" && name(object) == "volcano-admission");
    let args = &deployment.unwrap()["spec"]["template"]["spec"]["containers"][0]["args"];
    let mut args = args.as_array().unwrap().iter().map(text);
    args.find(|arg| arg.starts_with("--enabled-admission=")).unwrap().to_owned()
}

/// Path of a kubeconfig of a ServiceAccount of the chart.
fn account(cluster: &mut Cluster, account: &str) -> PathBuf {
    let token = cluster.token_in(NAMESPACE, account);
    cluster.kubeconfig_named(account, &json!({"token": token}))
}

async fn remove_definitions(api: &Api) {
    for definition in OF_CONTROLLERS {
        let path = format!("{DEFINITIONS}/{definition}");
        drop(api.delete(&path).await);
        until(&format!("no {definition} are defined"), async || {
            api.get(&path).await.err().filter(|error| code(error) == 404)
        })
        .await;
    }
}

/// Waits until the webhooks fill in and refuse.
async fn webhooks_answer(api: &Api) {
    let queue = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {"name": "sample"}, "spec": {"parent": "root"}});
    let path = "/apis/scheduling.volcano.sh/v1beta1/queues?dryRun=All";
    until("the webhook fills in the weight of a queue", async || {
        let stored = api.post(path, &queue).await.ok()?;
        (stored["spec"]["weight"] == 1).then_some(())
    })
    .await;
}

/// Waits until the scheduler has made its queue, and the webhooks know that.
async fn takes_jobs(cluster: &Cluster) {
    let path = format!("{JOBS}/namespaces/{}/jobs?dryRun=All", cluster.namespace);
    until("a job is taken", async || {
        cluster.api.post(&path, &job(cluster.namespace, "sample", 1)).await.ok()
    })
    .await;
}

/// A job of one task with this many pods, of one CPU each; all of them are needed.
fn job(namespace: &str, name: &str, n_pods: u32) -> Value {
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}]}});
    json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulerName": "volcano", "minAvailable": n_pods, "tasks": [
            {"name": "worker", "replicas": n_pods, "template": pod}]}})
}

/// The pods of a job that have not ended and are not told to.
async fn pods_of(cluster: &Cluster, job: &str) -> Vec<Value> {
    let selector = format!("pods?labelSelector=volcano.sh/job-name%3D{job}");
    let mut pods = cluster.api.list(&cluster.path(&selector)).await;
    pods.retain(|pod| !pod["metadata"]["deletionTimestamp"].is_string());
    pods.sort_by(|a, b| name(a).cmp(name(b)));
    pods
}
