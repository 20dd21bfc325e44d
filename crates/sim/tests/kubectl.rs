//! An unmodified `kubectl` against the embedded API server, with the kubeconfig that the server
//! writes. Where `kubectl` is not installed this says so and checks nothing.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::{
    io::{ErrorKind, Write},
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use vc_sim::serve::{Key, ServeOptions, Server, start};

const MANIFEST: &str = r#"
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: gang}
spec: {minMember: 2}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {a: "1"}
---
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web}
spec:
  schedulerName: volcano
  containers:
  - name: main
    image: busybox
    env: [{name: A, value: "1"}]
    resources: {requests: {cpu: "1"}}
"#;

const SECOND_POD: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: second}
spec: {containers: [{name: main, image: busybox}]}
"#;

/// `kubectl` for one server, with a home of its own.
struct Kubectl {
    home: PathBuf,
}

impl Kubectl {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command
            .args(args)
            .env("KUBECONFIG", self.home.join("config"))
            .env("HOME", &self.home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs with `input` on standard input; off the server's thread.
    async fn run(&self, args: &[&str], input: &'static str) -> Output {
        let mut command = self.command(args);
        let run = move || {
            let mut child = command.spawn().unwrap();
            child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
            child.wait_with_output().unwrap()
        };
        tokio::task::spawn_blocking(run).await.unwrap()
    }

    /// What a command that succeeds prints.
    async fn ok(&self, args: &[&str], input: &'static str) -> String {
        let output = self.run(args, input).await;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {args:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// A server with two nodes, or nothing and a line that says so.
async fn cluster(test: &str) -> Option<(Server, Kubectl)> {
    if Command::new("kubectl").arg("version").arg("--client").output().map_err(|e| e.kind())
        == Err(ErrorKind::NotFound)
    {
        eprintln!("skipped: {test}: kubectl is not on PATH");
        return None;
    }
    let home = std::env::temp_dir().join(format!("vcsim-kubectl-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    let options = ServeOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        nodes: 2,
        write_kubeconfig: Some(home.join("config")),
        ..ServeOptions::default()
    };
    Some((start(options).await.unwrap(), Kubectl { home }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn get_describe_create_apply_delete() {
    let Some((server, kubectl)) = cluster("verbs").await else {
        return;
    };
    let nodes = kubectl.ok(&["get", "nodes"], "").await;
    assert!(
        nodes.contains("NAME") && nodes.contains("node-1") && nodes.contains("Ready"),
        "{nodes}"
    );
    let applied = kubectl.ok(&["apply", "--validate=false", "-f", "-"], MANIFEST).await;
    assert_eq!(applied.matches(" created").count(), 3, "{applied}");
    let again = kubectl.ok(&["apply", "-f", "-"], MANIFEST).await;
    assert_eq!(again.matches(" unchanged").count(), 3, "{again}");

    let pods = kubectl.ok(&["get", "po", "-A", "-o", "wide", "--show-labels"], "").await;
    assert!(pods.contains("Pending") && pods.contains("app=web"), "{pods}");
    let gangs = kubectl.ok(&["get", "podgroups,queues,pg", "-l", "!x"], "").await;
    assert!(gangs.contains("gang") && gangs.contains("MINMEMBER"), "{gangs}");
    let described = kubectl.ok(&["describe", "pod", "web"], "").await;
    assert!(described.contains("busybox"), "{described}");
    let described = kubectl.ok(&["describe", "node", "node-0"], "").await;
    assert!(described.contains("kubernetes.io/hostname=node-0"), "{described}");
    let described = kubectl.ok(&["describe", "podgroup", "gang"], "").await;
    assert!(described.contains("Min Member:"), "{described}");

    let binding = serde_json::json!({ "metadata": {}, "target": { "name": "node-0" } });
    server.store.bind(&Key::new("default", "web"), &binding).unwrap();
    let waited = &["wait", "--for=condition=Ready", "pod/web", "--timeout=60s"];
    kubectl.ok(waited, "").await;
    let name = kubectl.ok(&["get", "pod", "web", "-o", "jsonpath={.spec.nodeName}"], "").await;
    assert_eq!(name, "node-0");
    kubectl.ok(&["delete", "pod/web", "configmap/settings", "pg/gang"], "").await;
    let left = kubectl.ok(&["get", "pods,cm,pg", "-o", "name"], "").await;
    assert_eq!(left, "");
    std::fs::remove_dir_all(&kubectl.home).unwrap();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn create_patch_label_and_refusals() {
    let Some((server, kubectl)) = cluster("more").await else {
        return;
    };
    // These are sent as protobuf by kubectl 1.32 and later.
    for what in [
        &["namespace", "team"][..],
        &["configmap", "files", "--from-literal=a=b"],
        &["serviceaccount", "robot"],
        &["quota", "limit", "--hard=cpu=4,pods=7"],
        &["poddisruptionbudget", "few", "--selector=app=web", "--max-unavailable=50%"],
        &["poddisruptionbudget", "most", "--selector=app=web", "--min-available=2"],
        &["priorityclass", "high", "--value=1000", "--description=x"],
        &["deployment", "web", "--image=nginx", "--replicas=3", "--port=80"],
        &["job", "once", "--image=busybox", "--", "sleep", "1"],
    ] {
        kubectl.ok(&[&["create"], what].concat(), "").await;
    }
    let path = "jsonpath={.spec.replicas} {.spec.template.spec.containers[0].image}";
    let deployment = kubectl.ok(&["get", "deployment", "web", "-o", path], "").await;
    assert_eq!(deployment, "3 nginx");
    let quota = kubectl.ok(&["get", "quota", "limit", "-o", "jsonpath={.spec.hard}"], "").await;
    assert_eq!(quota, r#"{"cpu":"4","pods":"7"}"#);
    let spec = "jsonpath={.items[*].spec}";
    let budgets = kubectl.ok(&["get", "pdb", "-o", spec], "").await;
    let selector = r#""selector":{"matchLabels":{"app":"web"}}"#;
    let few = format!(r#"{{"maxUnavailable":"50%",{selector}}}"#);
    assert_eq!(budgets, format!(r#"{few} {{"minAvailable":2,{selector}}}"#));
    let command = "jsonpath={.spec.template.spec.containers[0].command}";
    let job = kubectl.ok(&["get", "jobs.batch", "once", "-o", command], "").await;
    assert_eq!(job, r#"["sleep","1"]"#);
    let class = kubectl.ok(&["get", "pc", "high", "-o", "jsonpath={.value}"], "").await;
    assert_eq!(class, "1000");
    kubectl.ok(&["create", "--validate=false", "-n", "team", "-f", "-"], MANIFEST).await;
    let twice =
        kubectl.run(&["create", "--validate=false", "-n", "team", "-f", "-"], MANIFEST).await;
    let errors = String::from_utf8_lossy(&twice.stderr);
    assert!(!twice.status.success() && errors.contains("AlreadyExists"), "{errors}");
    kubectl.ok(&["label", "-n", "team", "pod/web", "pg/gang", "tier=1"], "").await;
    let found = kubectl.ok(&["get", "-n", "team", "pods,pg", "-l", "tier in (1,2)"], "").await;
    assert!(found.contains("web") && found.contains("gang"), "{found}");
    kubectl.ok(&["annotate", "-n", "team", "pod/web", "note=x"], "").await;
    kubectl.ok(&["cordon", "node-1"], "").await;
    let nodes = kubectl.ok(&["get", "nodes"], "").await;
    assert!(nodes.contains("SchedulingDisabled"), "{nodes}");
    kubectl.ok(&["taint", "node", "node-0", "a=b:NoSchedule"], "").await;
    let changed: &str = concat!(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: team}\n",
        "spec: {schedulerName: volcano, containers: [{name: main, image: newer}]}\n",
    );
    kubectl.ok(&["apply", "--validate=false", "-f", "-"], changed).await;
    let image = "jsonpath={.spec.containers[0].image}";
    let image = kubectl.ok(&["get", "-n", "team", "pod", "web", "-o", image], "").await;
    assert_eq!(image, "newer");
    let server_side = &["apply", "--server-side", "--validate=false", "-f", "-"];
    let refused = kubectl.run(server_side, changed).await;
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(errors.contains("without --server-side"), "{errors}");
    let binding = serde_json::json!({ "metadata": {}, "target": { "name": "node-1" } });
    server.store.bind(&Key::new("team", "web"), &binding).unwrap();
    kubectl.ok(&["drain", "node-1", "--force", "--timeout=60s"], "").await;
    let pods = kubectl.ok(&["get", "-n", "team", "pods", "-o", "name"], "").await;
    assert_eq!(pods, "");
    kubectl.ok(&["create", "-n", "team", "-f", "-"], SECOND_POD).await;
    kubectl.ok(&["logs", "-n", "team", "second"], "").await;
    let all = kubectl.ok(&["get", "all", "-n", "team", "-o", "name"], "").await;
    assert_eq!(all, "pod/second\n");
    kubectl.ok(&["api-resources"], "").await;
    kubectl.ok(&["delete", "namespace", "team"], "").await;
    let missing = kubectl.run(&["get", "-n", "team", "pod", "web"], "").await;
    let errors = String::from_utf8_lossy(&missing.stderr);
    assert!(errors.contains("(NotFound): namespaces \"team\" not found"), "{errors}");
    std::fs::remove_dir_all(&kubectl.home).unwrap();
    server.stop().await;
}
