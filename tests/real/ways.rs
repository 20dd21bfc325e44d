//! What a real API server says of ways to a scheduler that are not there, and its tunnel to one
//! that is there. Specification: answers.md 13 (ANS-88), case 79.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tokio::task::block_in_place;
use vc_kube::{
    AnswersAccess, AnswersClient, AnswersError, AnswersWay, find_answers_pods,
    find_answers_services, has_answers_group,
};

use crate::answers::{ARGS, ChartObjects, account, address, grant, revoke};
use crate::api::until;
use crate::bad_input::logged;
use crate::cluster::Cluster;
use crate::objects::{LABEL, node};
use crate::process::Scheduler;

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
/// The group of the answers, as an APIService.
const GROUP: &str = "v1.answers.volcano.sh";
/// Namespace of the scheduler.
const SYSTEM: &str = "volcano-system";
/// What `kubectl vc -v` prints where only the tunnel leads to a scheduler.
const TRIED: &str = "\
the API server: no answer from the API server: service unavailable
Service volcano-system/vc-scheduler-answers: no answer from Service volcano-system/vc-scheduler-answers: \
services \"vc-scheduler-answers\" not found
pod volcano-system/vc-0: answers
";

/// The administrator, who has a certificate and may have the token of the scheduler's
/// ServiceAccount.
fn administrator(cluster: &Cluster) -> AnswersAccess {
    AnswersAccess {
        kubeconfig: Some(cluster.dir().join("admin.kubeconfig")),
        service_account: Some((SYSTEM.to_owned(), "vc-scheduler".to_owned())),
        ..AnswersAccess::default()
    }
}

/// Registers the group with a Service that does not exist. Returns what the API server then says of
/// the group.
async fn register_nobody(cluster: &Cluster, access: &AnswersAccess) -> AnswersError {
    let service = json!({"namespace": SYSTEM, "name": "nobody", "port": 11253});
    let api_service = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": GROUP, "labels": {LABEL: ""}},
        "spec": {"group": "answers.volcano.sh", "version": "v1", "groupPriorityMinimum": 100,
            "versionPriority": 10, "insecureSkipTLSVerify": true, "service": service}});
    cluster.api.create(&api_service).await.unwrap();
    until("the group", async || has_answers_group(access).await.err()).await
}

/// Removes the group, and waits until the API server has forgotten it.
async fn remove_group(cluster: &Cluster, access: &AnswersAccess) {
    cluster.api.delete(&format!("{API_SERVICES}/{GROUP}")).await.unwrap();
    until("no group", async || has_answers_group(access).await.ok().filter(|has| !has)).await;
}

/// A kubelet that opens ports of this machine (tests/apiserver/README.md). It ends when this is
/// dropped.
struct Kubelet {
    child: Child,
    port: u16,
}

impl Kubelet {
    fn start(dir: &Path) -> Self {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/apiserver/harness");
        let log = dir.join("kubelet.log");
        let mut child = Command::new(program)
            .args(["kubelet", "--exit-with-stdin"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap_or_default();
        let port = ready["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let hint = "hint: `make apiserver` builds one that is up to date";
        let port = port.unwrap_or_else(|| panic!("no kubelet: see {}\n{hint}", log.display()));
        Self { child, port }
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Creates a node with this kubelet, and on it a pod of the chart that leads. Its answers are on a
/// port of this machine.
async fn create_leader(cluster: &Cluster, chart: &ChartObjects, kubelet: &Kubelet, port: u16) {
    let mut host = node("host", "8");
    host["status"]["addresses"] = json!([{"type": "InternalIP", "address": "127.0.0.1"}]);
    host["status"]["daemonEndpoints"] = json!({"kubeletEndpoint": {"Port": kubelet.port}});
    let mut pod = chart.one("Deployment", "vc-scheduler")["spec"]["template"].clone();
    (pod["apiVersion"], pod["kind"]) = ("v1".into(), "Pod".into());
    pod["metadata"]["name"] = "vc-0".into();
    pod["metadata"]["namespace"] = SYSTEM.into();
    for (label, value) in [(LABEL, ""), ("scheduling.volcano.sh/answers", "true")] {
        pod["metadata"]["labels"][label] = value.into();
    }
    pod["spec"]["nodeName"] = "host".into();
    let ports = pod["spec"]["containers"][0]["ports"].as_array_mut().unwrap();
    let answers = ports.iter_mut().find(|port| port["name"] == "answers").unwrap();
    answers["containerPort"] = port.into();
    for object in [host, pod] {
        cluster.api.create(&object).await.unwrap();
    }
    let ready = json!({"status": {"phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}]}});
    let path = format!("/api/v1/namespaces/{SYSTEM}/pods/vc-0/status");
    cluster.api.merge(&path, &ready).await.unwrap();
}

/// Asks for the queues by a way, on a connection of its own.
async fn ask_by(access: &AnswersAccess, way: &AnswersWay) -> Result<String, AnswersError> {
    AnswersClient::by(access, way.clone()).await?.get("queues").await
}

/// Asks with `kubectl vc -v`. Returns its output and its messages. `None`: it is not built.
async fn ask_by_each_way(access: &AnswersAccess) -> Option<(String, String)> {
    // The program of another package, which tests of this one alone do not build.
    let program = Path::new(env!("CARGO_BIN_EXE_vc-scheduler")).with_file_name("kubectl-vc");
    if !program.is_file() {
        eprintln!("left out: no {}, which `make test` builds", program.display());
        return None;
    }
    let (namespace, name) = access.service_account.as_ref().unwrap();
    let mut command = tokio::process::Command::new(program);
    command.args(["queues", "-v", &format!("--service-account={namespace}/{name}")]);
    command.arg("--kubeconfig").arg(access.kubeconfig.as_ref().unwrap());
    let asked = command.output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, said) = (text(asked.stdout), text(asked.stderr));
    assert!(asked.status.success(), "{out}{said}");
    Some((out, said))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ans_88_a_group_without_a_scheduler_is_not_there() {
    let cluster = Cluster::take("group", 0).await;
    let access = administrator(&cluster);
    assert!(!has_answers_group(&access).await.unwrap());
    let problem = register_nobody(&cluster, &access).await;
    let expected = "no answer from the API server: service unavailable\nhint: ";
    assert!(problem.is_not_there() && problem.to_string().starts_with(expected), "{problem}");
    let client = AnswersClient::by(&access, AnswersWay::ApiServer).await.unwrap();
    let error = client.get("queues").await.unwrap_err();
    assert!(error.is_not_there() && error.to_string().starts_with(expected), "{error}");
    remove_group(&cluster, &access).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ans_88_services_and_tunnels_of_a_real_api_server_that_are_not_there() {
    let cluster = Cluster::take("tunnel", 0).await;
    cluster.without_kubelet();
    let access = administrator(&cluster);
    let service = (cluster.namespace.to_owned(), "nobody".to_owned());
    let named = AnswersAccess { service: Some(service), ..access.clone() };
    let error = AnswersClient::new(&named).await.unwrap().get("queues").await.unwrap_err();
    assert!(error.is_not_there(), "{error}");
    assert!(find_answers_services(&access, cluster.namespace).await.unwrap().is_empty());

    let none = find_answers_pods(&access, cluster.namespace).await.unwrap_err();
    assert!(none.is_not_there(), "{none}");
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "vc-0", "namespace": cluster.namespace,
            "labels": {"scheduling.volcano.sh/answers": "true"}},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "x"}]}});
    cluster.api.create(&pod).await.unwrap();
    assert!(find_answers_pods(&access, cluster.namespace).await.is_err(), "it is not ready");
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    cluster.api.merge(&cluster.path("pods/vc-0/status"), &ready).await.unwrap();
    let pods = find_answers_pods(&access, cluster.namespace).await.unwrap();
    let [pod] = &pods[..] else { panic!("{pods:?}") };
    assert_eq!((pod.name.as_str(), pod.port), ("vc-0", 11253));
    let client = AnswersClient::by(&access, AnswersWay::Pod(pod.clone())).await.unwrap();
    let error = client.get("queues").await.unwrap_err();
    let text = error.to_string();
    assert!(error.is_not_there() && text.contains("does not have a host assigned"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ans_88_a_tunnel_of_a_real_api_server_leads_to_a_scheduler() {
    let cluster = Cluster::take("tunnelled", 0).await;
    cluster.without_kubelet();
    let chart = ChartObjects::render(&cluster, "answers.enabled=true");
    grant(&cluster, (SYSTEM, "vc-scheduler"), chart.reviews(), None).await;
    account(&cluster, "admin").await;
    let asking = (cluster.namespace, "admin");
    grant(&cluster, asking, chart.rules("-answers-admin"), None).await;
    let access = AnswersAccess {
        service_account: Some((asking.0.to_owned(), asking.1.to_owned())),
        ..administrator(&cluster)
    };
    let scheduler = Scheduler::start_with(&cluster, &ARGS).await;
    let url = address(&cluster).await;
    let port: u16 = url.rsplit_once(':').unwrap().1.parse().unwrap();
    let kubelet = block_in_place(|| Kubelet::start(&cluster.dir()));
    create_leader(&cluster, &chart, &kubelet, port).await;
    // Questions that come before the first cycle would count against the limit of questions.
    logged(&cluster, "cycles start").await;

    // Nobody is behind the group, and there is no Service.
    let problem = register_nobody(&cluster, &access).await;
    assert!(problem.is_not_there(), "{problem}");
    let problem = ask_by(&access, &access.way()).await.unwrap_err();
    assert!(problem.is_not_there(), "{problem}");
    assert!(find_answers_services(&access, SYSTEM).await.unwrap().is_empty());

    let pods = find_answers_pods(&access, SYSTEM).await.unwrap();
    let [pod] = &pods[..] else { panic!("{pods:?}") };
    assert_eq!((pod.name.as_str(), pod.port), ("vc-0", port));
    let tunnel = AnswersWay::Pod(pod.clone());
    let answer = until("an answer", async || ask_by(&access, &tunnel).await.ok()).await;
    assert!(answer.contains("\"default\""), "{answer}");
    if let Some((out, said)) = ask_by_each_way(&access).await {
        assert!(out.contains("default"), "{out}");
        assert_eq!(said, TRIED);
    }

    // Nobody listens at the end of the tunnel, and then there is no tunnel.
    assert!(scheduler.terminate().await.success());
    let problem = ask_by(&access, &tunnel).await.unwrap_err();
    let text = problem.to_string();
    assert!(problem.is_not_there() && text.contains("error forwarding port"), "{text}");
    drop(kubelet);
    let problem = ask_by(&access, &tunnel).await.unwrap_err();
    let text = problem.to_string();
    assert!(problem.is_not_there() && text.contains("error dialing backend"), "{text}");
    remove_group(&cluster, &access).await;
    revoke(&cluster, &["admin", "vc-scheduler"]).await;
}
