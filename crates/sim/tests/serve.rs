//! The embedded API server over real HTTP on loopback: every verb, conflict and error that clients
//! of a Kubernetes API server rely on, and the simulated kubelets.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};
use vc_sim::serve::{
    Change, DeleteOptions, Expander, Key, Kind, NODES, PODS, RUN_SECONDS, ServeError, ServeOptions,
    Server, Store, start,
};

const PODS_PATH: &str = "/api/v1/namespaces/default/pods";
const GROUPS_PATH: &str = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups";
const QUEUES_PATH: &str = "/apis/scheduling.volcano.sh/v1beta1/queues";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
/// Only so that a lost event fails a test instead of hanging it.
const HANG: Duration = Duration::from_secs(30);

/// A server and a client that opens one connection per request, in HTTP/1.0: bodies end with it.
struct Cluster {
    server: Server,
}

impl Cluster {
    async fn start(nodes: u32) -> Cluster {
        Cluster::with(ServeOptions { nodes, ..ServeOptions::default() }).await
    }

    async fn with(options: ServeOptions) -> Cluster {
        let listen = "127.0.0.1:0".parse().unwrap();
        let server = start(ServeOptions { listen, ..options }).await.unwrap();
        Cluster { server }
    }

    async fn open(&self, head: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.server.addr).await.unwrap();
        let length = body.len();
        let (line, headers) = head.split_once('\n').unwrap_or((head, ""));
        let headers: String = headers.lines().map(|line| format!("{line}\r\n")).collect();
        let text = format!("{line} HTTP/1.0\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).await.unwrap();
        BufReader::new(stream)
    }

    /// The code and body of an answer.
    async fn raw(&self, head: &str, body: &str) -> (u16, String) {
        let mut text = String::new();
        let mut stream = self.open(head, body).await;
        tokio::time::timeout(HANG, stream.read_to_string(&mut text)).await.unwrap().unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    async fn send(&self, head: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (code, text) = self.raw(head, &body).await;
        (code, serde_json::from_str(&text).unwrap())
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.send(&format!("GET {path}"), &Value::Null).await
    }

    async fn names(&self, path: &str) -> Vec<String> {
        let (code, list) = self.get(path).await;
        assert_eq!(code, 200, "{list}");
        names(&list)
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send(&format!("POST {path}\nContent-Type: application/json"), body).await
    }

    async fn create(&self, path: &str, body: &Value) -> Value {
        let (code, object) = self.post(path, body).await;
        assert_eq!(code, 201, "{object}");
        object
    }

    async fn put(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send(&format!("PUT {path}\nContent-Type: application/json"), body).await
    }

    async fn patch(&self, path: &str, form: &str, body: &Value) -> (u16, Value) {
        self.send(&format!("PATCH {path}\nContent-Type: {form}"), body).await
    }

    async fn delete(&self, path: &str, options: &Value) -> (u16, Value) {
        self.send(&format!("DELETE {path}"), options).await
    }

    async fn bind(&self, pod: &str, binding: &Value) -> (u16, Value) {
        self.post(&format!("{PODS_PATH}/{pod}/binding"), binding).await
    }

    async fn watch(&self, path: &str) -> Watch {
        let mut stream = self.open(&format!("GET {path}"), "").await;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert_ne!(stream.read_line(&mut line).await.unwrap(), 0);
        }
        Watch { stream }
    }
}

struct Watch {
    stream: BufReader<TcpStream>,
}

impl Watch {
    /// The next event; `None` at the end of the watch.
    async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = tokio::time::timeout(HANG, self.stream.read_line(&mut line));
        match read.await.expect("the watch says something").unwrap() {
            0 => None,
            _ => Some(serde_json::from_str(&line).unwrap()),
        }
    }

    /// `ADDED web`, `BOOKMARK`, ...
    async fn label(&mut self) -> String {
        let event = self.next().await.expect("the watch goes on");
        let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
        format!("{} {name}", event["type"].as_str().unwrap()).trim_end().to_owned()
    }

    /// Skips events until the object satisfies `test`.
    async fn until(&mut self, label: &str, test: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self.next().await.expect("the watch goes on");
            if event["type"] == label && test(&event["object"]) {
                return event["object"].clone();
            }
        }
    }
}

fn names(list: &Value) -> Vec<String> {
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    list["items"].as_array().unwrap().iter().map(name).collect()
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": { "containers": [{ "name": "main", "image": "busybox" }] },
    })
}

fn pod_group(name: &str) -> Value {
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": { "name": name }, "spec": { "minMember": 2 },
    })
}

fn binding(node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {},
        "target": { "apiVersion": "v1", "kind": "Node", "name": node },
    })
}

fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap()
}

#[track_caller]
fn assert_refused(answer: &(u16, Value), code: u16, reason: &str, message: &str) {
    let (found, status) = answer;
    assert_eq!(*found, code, "{status}");
    assert_eq!(status["kind"], "Status");
    assert_eq!(status["status"], "Failure");
    assert_eq!(status["code"], code);
    assert_eq!(status["reason"], reason);
    let text = status["message"].as_str().unwrap();
    assert!(text.contains(message), "{text}");
}

#[tokio::test]
async fn discovery_version_and_health() {
    let cluster = Cluster::start(0).await;
    for path in ["/healthz", "/livez", "/readyz", "/readyz?verbose"] {
        assert_eq!(cluster.raw(&format!("GET {path}"), "").await, (200, "ok".to_owned()));
    }
    assert_eq!(cluster.get("/version").await.1["minor"], "36");
    assert_eq!(cluster.get("/api").await.1["versions"], json!(["v1"]));
    let (_, groups) = cluster.get("/apis").await;
    let named = |group: &Value| group["name"] == "scheduling.volcano.sh";
    assert!(groups["groups"].as_array().unwrap().iter().any(named));
    let (_, group) = cluster.get("/apis/scheduling.volcano.sh").await;
    assert_eq!(group["preferredVersion"]["version"], "v1beta1");
    let (_, kinds) = cluster.get("/apis/scheduling.volcano.sh/v1beta1").await;
    let kinds: Vec<&Value> = kinds["resources"].as_array().unwrap().iter().collect();
    let listed: Vec<&str> = kinds.iter().map(|kind| kind["name"].as_str().unwrap()).collect();
    assert_eq!(listed, ["podgroups", "queues", "queues/status"]);
    assert_eq!(kinds[0]["namespaced"], true);
    assert_refused(&cluster.get("/openapi/v2").await, 404, "NotFound", "could not find");
    let (_, index) = cluster.get("/openapi/v3").await;
    let url = &index["paths"]["apis/apps/v1"]["serverRelativeURL"];
    let (_, document) = cluster.get(url.as_str().unwrap()).await;
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}";
    assert_eq!(document["paths"][path]["patch"]["parameters"][0]["name"], "fieldValidation");
    assert_refused(&cluster.get("/apis/none/v1").await, 404, "NotFound", "could not find");
}

#[tokio::test]
async fn create_gives_identity_and_defaults() {
    let cluster = Cluster::start(0).await;
    let made = cluster.create(PODS_PATH, &pod("web")).await;
    let metadata = &made["metadata"];
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["generation"], 1);
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
    assert!(metadata["creationTimestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(made["spec"]["schedulerName"], "default-scheduler");
    assert_eq!(made["spec"]["priority"], 0);
    assert_eq!(made["status"]["phase"], "Pending");
    assert_eq!(cluster.get(&format!("{PODS_PATH}/web")).await, (200, made.clone()));

    let group = cluster.create(GROUPS_PATH, &pod_group("g")).await;
    assert_eq!(group["spec"]["queue"], "default");
    assert_eq!(group["status"]["phase"], "Pending");
    let queue = json!({ "metadata": { "name": "q" }, "status": { "state": "Closed" } });
    let queue = cluster.create(QUEUES_PATH, &queue).await;
    assert_eq!((&queue["spec"]["weight"], &queue["status"]["state"]), (&json!(1), &json!("Open")));
    assert_eq!(queue["kind"], "Queue");
    assert!(queue["metadata"].get("namespace").is_none());

    let mut limited = pod("limited");
    limited["spec"]["containers"][0]["resources"]["limits"] = json!({ "cpu": 2 });
    let limited = cluster.create(PODS_PATH, &limited).await;
    assert_eq!(limited["spec"]["containers"][0]["resources"]["requests"], json!({ "cpu": "2" }));

    let mut generated = pod("");
    generated["metadata"] = json!({ "generateName": "web-" });
    let (one, two) = (cluster.create(PODS_PATH, &generated), cluster.create(PODS_PATH, &generated));
    let (one, two) = (one.await, two.await);
    assert_ne!(one["metadata"]["name"], two["metadata"]["name"]);
    assert!(one["metadata"]["name"].as_str().unwrap().starts_with("web-"));
}

#[tokio::test]
async fn create_refuses_what_it_cannot_store() {
    let cluster = Cluster::start(0).await;
    cluster.create(PODS_PATH, &pod("web")).await;
    let again = cluster.post(PODS_PATH, &pod("web")).await;
    assert_refused(&again, 409, "AlreadyExists", "pods \"web\" already exists");
    let nowhere = cluster.post("/api/v1/namespaces/nowhere/pods", &pod("a")).await;
    assert_refused(&nowhere, 404, "NotFound", "namespaces \"nowhere\" not found");
    let upper = cluster.post(PODS_PATH, &pod("Upper")).await;
    assert_refused(&upper, 422, "Invalid", "metadata.name");
    assert_eq!(upper.1["details"]["causes"][0]["field"], "metadata.name");
    let long = "a".repeat(254);
    assert_refused(&cluster.post(PODS_PATH, &pod(&long)).await, 422, "Invalid", "253 characters");
    cluster.create(PODS_PATH, &pod(&long[..253])).await;
    let mut elsewhere = pod("a");
    elsewhere["metadata"]["namespace"] = json!("kube-system");
    let answer = cluster.post(PODS_PATH, &elsewhere).await;
    assert_refused(&answer, 400, "BadRequest", "not that of the URL");
    let answer = cluster.post(PODS_PATH, &pod_group("a")).await;
    assert_refused(&answer, 400, "BadRequest", "apiVersion is not what the URL says");
    let mut mistyped = pod("a");
    mistyped["spec"]["nodeSelector"] = json!({ "gpu": true });
    let answer = cluster.post(PODS_PATH, &mistyped).await;
    assert_refused(&answer, 400, "BadRequest", "spec.nodeSelector: must be a map of strings");
    let mut versioned = pod("a");
    versioned["metadata"]["resourceVersion"] = json!("5");
    let answer = cluster.post(PODS_PATH, &versioned).await;
    assert_refused(&answer, 400, "BadRequest", "should not be set");
    for body in ["", "[]", "{\"metadata\": 5}", "{\"metadata\": {}}", "{"] {
        let (code, _) = cluster.raw(&format!("POST {PODS_PATH}"), body).await;
        assert!(code == 400 || code == 422, "{body}: {code}");
    }
    let yaml = format!("POST {PODS_PATH}\nContent-Type: application/yaml");
    assert_eq!(cluster.raw(&yaml, "kind: Pod").await.0, 415);
    let huge = format!("\"{}\"", "x".repeat(3 << 20));
    assert_eq!(cluster.raw(&format!("POST {PODS_PATH}"), &huge).await.0, 413);
    let dry = cluster.post(&format!("{PODS_PATH}?dryRun=All"), &pod("dry")).await;
    assert_refused(&dry, 400, "BadRequest", "dryRun");
    let answer = cluster.post("/api/v1/pods", &pod("a")).await;
    assert_refused(&answer, 405, "MethodNotAllowed", "does not allow this method");
}

#[tokio::test]
async fn priority_comes_from_the_class() {
    let cluster = Cluster::start(0).await;
    let path = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class = |name: &str, value: i64, default: bool| {
        let metadata = json!({ "name": name });
        json!({ "metadata": metadata, "value": value, "globalDefault": default })
    };
    cluster.create(path, &class("high", 100, false)).await;
    let mut high = pod("high");
    high["spec"]["priorityClassName"] = json!("high");
    assert_eq!(cluster.create(PODS_PATH, &high).await["spec"]["priority"], 100);
    let mut unknown = pod("unknown");
    unknown["spec"]["priorityClassName"] = json!("highest");
    let answer = cluster.post(PODS_PATH, &unknown).await;
    assert_refused(&answer, 403, "Forbidden", "no PriorityClass with name highest found");
    let mut claimed = pod("claimed");
    claimed["spec"]["priority"] = json!(7);
    let answer = cluster.post(PODS_PATH, &claimed).await;
    assert_refused(&answer, 403, "Forbidden", "spec.priority is 7 but its PriorityClass says 0");
    cluster.create(path, &class("usual", 5, true)).await;
    let usual = cluster.create(PODS_PATH, &pod("usual")).await;
    assert_eq!(usual["spec"]["priority"], 5);
    assert_eq!(usual["spec"]["priorityClassName"], "usual");
}

#[tokio::test]
async fn put_replaces_one_version() {
    let cluster = Cluster::start(0).await;
    let made = cluster.create(GROUPS_PATH, &pod_group("g")).await;
    let path = format!("{GROUPS_PATH}/g");
    let mut changed = made.clone();
    changed["spec"]["minMember"] = json!(3);
    changed["spec"]["unknown"] = json!({ "kept": null });
    changed["status"]["phase"] = json!("Inqueue");
    let (code, second) = cluster.put(&path, &changed).await;
    assert_eq!(code, 200);
    assert_eq!(second["spec"]["unknown"], json!({ "kept": null }));
    assert_eq!(second["status"]["phase"], "Inqueue");
    assert_eq!(second["metadata"]["generation"], 2);
    assert_ne!(version(&second), version(&made));
    let stale = cluster.put(&path, &changed).await;
    assert_refused(&stale, 409, "Conflict", "the object has been modified");
    // The same content again makes no new version.
    assert_eq!(cluster.put(&path, &second).await, (200, second.clone()));
    // What a manifest leaves out gets its default again.
    let mut manifest = pod_group("g");
    manifest["metadata"]["resourceVersion"] = second["metadata"]["resourceVersion"].clone();
    let (_, second) = cluster.put(&path, &manifest).await;
    assert_eq!(
        (&second["spec"]["queue"], &second["spec"]["minMember"]),
        (&json!("default"), &json!(2))
    );
    let mut blind = second.clone();
    blind["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    let answer = cluster.put(&path, &blind).await;
    assert_refused(&answer, 422, "Invalid", "metadata.resourceVersion");
    let mut other = second.clone();
    other["metadata"]["uid"] = json!("other");
    assert_refused(&cluster.put(&path, &other).await, 409, "Conflict", "UID");
    let answer = cluster.put(&format!("{GROUPS_PATH}/missing"), &second).await;
    assert_refused(&answer, 404, "NotFound", "podgroups.scheduling.volcano.sh \"missing\"");
    let answer = cluster.put(&format!("{GROUPS_PATH}/g/status"), &second).await;
    assert_refused(&answer, 404, "NotFound", "could not find");
}

#[tokio::test]
async fn status_is_written_apart() {
    let cluster = Cluster::start(0).await;
    let queue = json!({ "metadata": { "name": "q", "labels": { "a": "1" } }, "spec": {} });
    let queue = cluster.create(QUEUES_PATH, &queue).await;
    let mut both = queue.clone();
    both["spec"]["weight"] = json!(7);
    both["status"]["allocated"] = json!({ "cpu": "1" });
    both["metadata"]["labels"] = json!({});
    let (_, after) = cluster.put(&format!("{QUEUES_PATH}/q/status"), &both).await;
    assert_eq!(after["spec"]["weight"], 1);
    assert_eq!(after["status"]["allocated"]["cpu"], "1");
    assert_eq!(after["metadata"]["labels"], json!({ "a": "1" }));
    assert_eq!(after["metadata"]["generation"], 1);
    let mut main = after.clone();
    main["spec"]["weight"] = json!(9);
    main["status"] = json!({});
    let (_, after) = cluster.put(&format!("{QUEUES_PATH}/q"), &main).await;
    assert_eq!(after["spec"]["weight"], 9);
    assert_eq!(after["status"]["allocated"]["cpu"], "1");

    // A built-in kind takes labels, annotations and finalizers from a status write.
    let mut web = cluster.create(PODS_PATH, &pod("web")).await;
    web["spec"]["schedulerName"] = json!("other");
    web["status"]["conditions"] = json!([{ "type": "PodScheduled", "status": "False" }]);
    web["metadata"]["annotations"] = json!({ "seen": "yes" });
    let path = format!("{PODS_PATH}/web/status");
    let (_, after) = cluster.put(&path, &web).await;
    assert_eq!(after["spec"]["schedulerName"], "default-scheduler");
    assert_eq!(after["status"]["conditions"][0]["status"], "False");
    assert_eq!(after["metadata"]["annotations"]["seen"], "yes");
    assert_eq!(after["metadata"]["labels"]["app"], "web");
    assert_refused(&cluster.put(&path, &web).await, 409, "Conflict", "has been modified");
}

#[tokio::test]
async fn patches() {
    let cluster = Cluster::start(0).await;
    let made = cluster.create(PODS_PATH, &pod("web")).await;
    let path = format!("{PODS_PATH}/web");
    let patch = json!({ "metadata": { "labels": { "app": null, "tier": "1" } } });
    let (code, after) = cluster.patch(&path, MERGE, &patch).await;
    assert_eq!((code, &after["metadata"]["labels"]), (200, &json!({ "tier": "1" })));
    let patch = json!({ "spec": { "containers": [{ "name": "main", "image": "new" }] } });
    let (_, after) = cluster.patch(&path, STRATEGIC, &patch).await;
    assert_eq!(after["spec"]["containers"][0]["image"], "new");
    assert_eq!(after["spec"]["containers"].as_array().unwrap().len(), 1);
    assert_eq!(after["metadata"]["generation"], 2);

    let status = |kind: &str, status: &str| {
        let condition = json!({ "type": kind, "status": status });
        json!({ "status": { "conditions": [condition] } })
    };
    let status_path = format!("{path}/status");
    cluster.patch(&status_path, STRATEGIC, &status("PodScheduled", "False")).await;
    let (_, after) = cluster.patch(&status_path, STRATEGIC, &status("Other", "True")).await;
    assert_eq!(after["status"]["conditions"].as_array().unwrap().len(), 2);
    let (_, after) = cluster.patch(&path, MERGE, &status("Lost", "True")).await;
    assert_eq!(after["status"]["conditions"].as_array().unwrap().len(), 2);

    let stale = json!({ "metadata": { "resourceVersion": version(&made) } });
    assert_refused(&cluster.patch(&path, MERGE, &stale).await, 409, "Conflict", "modified");
    let other = json!({ "metadata": { "uid": "other" } });
    assert_refused(&cluster.patch(&path, STRATEGIC, &other).await, 409, "Conflict", "UID");
    let bound = json!({ "spec": { "nodeName": "n" } });
    assert_refused(&cluster.patch(&path, MERGE, &bound).await, 422, "Invalid", "spec.nodeName");
    let broken = json!({ "spec": 5 });
    assert_refused(&cluster.patch(&path, MERGE, &broken).await, 400, "BadRequest", "spec: must be");
    for broken in [json!(5), json!({ "metadata": null }), json!({ "metadata": [1] })] {
        let (code, _) = cluster.patch(&path, MERGE, &broken).await;
        assert!(code == 400 || broken["metadata"].is_null() && code == 200, "{broken}: {code}");
    }
    assert_eq!(cluster.get(&path).await.1["metadata"]["name"], "web");
    for form in ["application/json-patch+json", "application/apply-patch+yaml", ""] {
        let answer = cluster.patch(&path, form, &json!([])).await;
        assert_refused(&answer, 415, "UnsupportedMediaType", "merge-patch+json");
    }
    cluster.create(GROUPS_PATH, &pod_group("g")).await;
    let path = format!("{GROUPS_PATH}/g");
    let answer = cluster.patch(&path, STRATEGIC, &json!({})).await;
    assert_refused(&answer, 415, "UnsupportedMediaType", "custom resources");
    let patch = json!({ "spec": { "minMember": 4 } });
    assert_eq!(cluster.patch(&path, MERGE, &patch).await.1["spec"]["minMember"], 4);
}

#[tokio::test]
async fn removing_the_last_gate_by_strategic_patch() {
    let cluster = Cluster::start(0).await;
    let mut gated = pod("web");
    gated["spec"]["schedulingGates"] = json!([{ "name": "a" }, { "name": "b" }]);
    cluster.create(PODS_PATH, &gated).await;
    let path = format!("{PODS_PATH}/web");
    let gate = |name: &str| {
        let gone = json!({ "name": name, "$patch": "delete" });
        json!({ "spec": { "schedulingGates": [gone] } })
    };
    let bound = cluster.bind("web", &binding("n")).await;
    assert_refused(&bound, 409, "Conflict", "scheduling gates");
    cluster.patch(&path, STRATEGIC, &gate("a")).await;
    let (code, after) = cluster.patch(&path, STRATEGIC, &gate("b")).await;
    assert_eq!((code, &after["spec"]["schedulingGates"]), (200, &json!([])));
    // Once more is no error.
    assert_eq!(cluster.patch(&path, STRATEGIC, &gate("b")).await, (200, after));
}

#[tokio::test]
async fn lists_select() {
    let cluster = Cluster::start(2).await;
    for name in ["a", "b", "c"] {
        cluster.create(PODS_PATH, &pod(name)).await;
    }
    cluster.create("/api/v1/namespaces/kube-system/pods", &pod("a")).await;
    assert_eq!(cluster.bind("b", &binding("node-1")).await.0, 201);
    assert_eq!(cluster.names("/api/v1/pods").await, ["a", "b", "c", "a"]);
    let cases = [
        ("labelSelector=app%20in%20(a,c)", vec!["a", "c"]),
        ("labelSelector=app!%3Da,app", vec!["b", "c"]),
        ("fieldSelector=metadata.name%3Db", vec!["b"]),
        ("fieldSelector=metadata.name%3Dnone", vec![]),
        ("fieldSelector=spec.nodeName%3Dnode-1", vec!["b"]),
        ("fieldSelector=spec.nodeName%3D,metadata.name!%3Da", vec!["c"]),
        ("fieldSelector=spec.schedulerName%3Dvolcano", vec![]),
        ("resourceVersion=0&limit=0", vec!["a", "b", "c"]),
    ];
    for (query, expected) in cases {
        assert_eq!(cluster.names(&format!("{PODS_PATH}?{query}")).await, expected, "{query}");
    }
    let everywhere = "/api/v1/pods?fieldSelector=metadata.name%3Da,metadata.namespace%3Ddefault";
    assert_eq!(cluster.names(everywhere).await, ["a"]);
    assert_eq!(cluster.names("/api/v1/nodes").await, ["node-0", "node-1"]);
    for query in ["fieldSelector=spec.color%3Dred", "labelSelector=a%20b", "limit=many"] {
        let answer = cluster.get(&format!("{PODS_PATH}?{query}")).await;
        assert_refused(&answer, 400, "BadRequest", "");
    }
}

#[tokio::test]
async fn lists_in_pages() {
    let cluster = Cluster::start(0).await;
    for name in ["a", "b", "c", "d"] {
        cluster.create(PODS_PATH, &pod(name)).await;
    }
    let (_, first) = cluster.get("/api/v1/pods?limit=2").await;
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["kind"], "PodList");
    let next = first["metadata"]["continue"].as_str().unwrap().to_owned();
    cluster.create("/api/v1/namespaces/kube-public/pods", &pod("late")).await;
    let (_, second) = cluster.get(&format!("/api/v1/pods?limit=2&continue={next}")).await;
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(version(&second), version(&first));
    let last = second["metadata"]["continue"].as_str().unwrap();
    let (_, third) = cluster.get(&format!("/api/v1/pods?limit=2&continue={last}")).await;
    assert_eq!(names(&third), ["late"]);
    assert!(third["metadata"].get("continue").is_none());
    let old =
        format!("/api/v1/pods?resourceVersion={}&resourceVersionMatch=Exact", version(&first));
    assert_refused(&cluster.get(&old).await, 410, "Expired", "too old");
    cluster.server.store.compact();
    let answer = cluster.get(&format!("/api/v1/pods?limit=2&continue={next}")).await;
    assert_refused(&answer, 410, "Expired", "too old resource version");
    let answer = cluster.get("/api/v1/pods?continue=nonsense").await;
    assert_refused(&answer, 400, "BadRequest", "continue key is not valid");
}

#[tokio::test]
async fn watch_follows_from_a_version() {
    let cluster = Cluster::start(0).await;
    let first = cluster.create(PODS_PATH, &pod("a")).await;
    let path = format!("{PODS_PATH}?watch=true&resourceVersion={}", version(&first));
    let mut watch = cluster.watch(&path).await;
    cluster.create("/api/v1/namespaces/kube-system/pods", &pod("elsewhere")).await;
    cluster.create(PODS_PATH, &pod("b")).await;
    let patch = json!({ "metadata": { "labels": { "x": "y" } } });
    cluster.patch(&format!("{PODS_PATH}/a"), MERGE, &patch).await;
    cluster.delete(&format!("{PODS_PATH}/b"), &Value::Null).await;
    assert_eq!(watch.label().await, "ADDED b");
    assert_eq!(watch.label().await, "MODIFIED a");
    let deleted = watch.next().await.unwrap();
    assert_eq!(deleted["type"], "DELETED");
    let list = cluster.get(PODS_PATH).await.1;
    assert_eq!(version(&deleted["object"]), version(&list));

    // Without a version everything that exists comes first.
    let mut watch = cluster.watch(&format!("{PODS_PATH}?watch=1&timeoutSeconds=1")).await;
    assert_eq!(watch.label().await, "ADDED a");
    assert_eq!(watch.next().await, None);
}

#[tokio::test]
async fn watch_with_selectors_sees_objects_come_and_go() {
    let cluster = Cluster::start(1).await;
    let list = cluster.get(PODS_PATH).await.1;
    let since = version(&list);
    let unbound =
        format!("{PODS_PATH}?watch=true&resourceVersion={since}&fieldSelector=spec.nodeName%3D");
    let labelled = format!("{PODS_PATH}?watch=true&resourceVersion={since}&labelSelector=x");
    let (mut unbound, mut labelled) =
        (cluster.watch(&unbound).await, cluster.watch(&labelled).await);
    cluster.create(PODS_PATH, &pod("a")).await;
    assert_eq!(unbound.label().await, "ADDED a");
    for labels in [json!({ "x": "1" }), json!({ "x": "2" }), json!({ "x": null })] {
        let patch = json!({ "metadata": { "labels": labels } });
        cluster.patch(&format!("{PODS_PATH}/a"), MERGE, &patch).await;
        assert_eq!(unbound.label().await, "MODIFIED a");
    }
    cluster.bind("a", &binding("node-0")).await;
    let gone = unbound.next().await.unwrap();
    assert_eq!(gone["type"], "DELETED");
    assert!(gone["object"]["spec"].get("nodeName").is_none());
    for expected in ["ADDED a", "MODIFIED a", "DELETED a"] {
        assert_eq!(labelled.label().await, expected);
    }
}

#[tokio::test]
async fn watch_as_a_streaming_list() {
    let cluster = Cluster::start(0).await;
    cluster.create(PODS_PATH, &pod("a")).await;
    cluster.create(PODS_PATH, &pod("b")).await;
    let query = "watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersion=0";
    let answer = cluster.get(&format!("/api/v1/pods?{query}")).await;
    assert_refused(&answer, 422, "Invalid", "resourceVersionMatch");
    let query = format!("{query}&resourceVersionMatch=NotOlderThan");
    let mut watch = cluster.watch(&format!("/api/v1/pods?{query}")).await;
    assert_eq!(watch.label().await, "ADDED a");
    assert_eq!(watch.label().await, "ADDED b");
    let bookmark = watch.next().await.unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    let object = &bookmark["object"];
    assert_eq!(object["kind"], "Pod");
    assert_eq!(object["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(version(object), version(&cluster.get("/api/v1/pods").await.1));
    cluster.create(PODS_PATH, &pod("c")).await;
    assert_eq!(watch.label().await, "ADDED c");
}

#[tokio::test]
async fn watch_is_told_410_when_the_log_does_not_reach_back() {
    let cluster = Cluster::start(0).await;
    let first = cluster.create(PODS_PATH, &pod("a")).await;
    cluster.create(PODS_PATH, &pod("b")).await;
    cluster.server.store.compact();
    // Versions of the future come from an earlier server on this address.
    for since in [version(&first), "999999"] {
        let path = format!("{PODS_PATH}?watch=true&resourceVersion={since}");
        let mut watch = cluster.watch(&path).await;
        let error = watch.next().await.unwrap();
        assert_eq!(error["type"], "ERROR");
        assert_eq!(error["object"]["code"], 410);
        assert_eq!(error["object"]["reason"], "Expired");
        assert_eq!(watch.next().await, None);
    }
}

#[tokio::test]
async fn binding_happens_once() {
    let cluster = Cluster::start(1).await;
    let made = cluster.create(PODS_PATH, &pod("web")).await;
    let mut other = binding("node-0");
    other["metadata"] = json!({ "name": "web", "uid": "other" });
    assert_refused(&cluster.bind("web", &other).await, 409, "Conflict", "UID");
    let mut right = binding("node-0");
    right["metadata"] =
        json!({ "name": "web", "uid": made["metadata"]["uid"], "annotations": { "a": "b" } });
    let (code, status) = cluster.bind("web", &right).await;
    assert_eq!((code, &status["status"]), (201, &json!("Success")));
    let (_, bound) = cluster.get(&format!("{PODS_PATH}/web")).await;
    assert_eq!(bound["spec"]["nodeName"], "node-0");
    assert_eq!(bound["metadata"]["annotations"]["a"], "b");
    let conditions = bound["status"]["conditions"].as_array().unwrap();
    let scheduled = conditions.iter().find(|c| c["type"] == "PodScheduled").unwrap();
    assert_eq!(scheduled["status"], "True");
    let again = cluster.bind("web", &right).await;
    assert_refused(&again, 409, "Conflict", "already assigned to node \"node-0\"");
    let missing = cluster.bind("missing", &binding("node-0")).await;
    assert_refused(&missing, 404, "NotFound", "pods \"missing\" not found");
    let aimless = cluster.bind("web", &json!({ "metadata": {} })).await;
    assert_refused(&aimless, 400, "BadRequest", "target.name");
    let mut misnamed = binding("node-0");
    misnamed["metadata"] = json!({ "name": "other" });
    assert_refused(&cluster.bind("web", &misnamed).await, 400, "BadRequest", "URL");

    cluster.create(PODS_PATH, &pod("second")).await;
    let mut legacy = binding("node-0");
    legacy["metadata"] = json!({ "name": "second" });
    let (code, _) = cluster.post("/api/v1/namespaces/default/bindings", &legacy).await;
    assert_eq!(code, 201);
    let answer = cluster.get("/api/v1/namespaces/default/bindings").await;
    assert_refused(&answer, 405, "MethodNotAllowed", "");
}

#[tokio::test]
async fn pods_run_and_end_with_grace() {
    let cluster = Cluster::start(1).await;
    cluster.create(PODS_PATH, &pod("web")).await;
    let mut watch = cluster.watch(&format!("{PODS_PATH}?watch=true")).await;
    cluster.bind("web", &binding("node-0")).await;
    let running = watch.until("MODIFIED", |pod| pod["status"]["phase"] == "Running").await;
    let status = &running["status"];
    assert!(status["podIP"].is_string() && status["startTime"].is_string());
    assert_eq!(status["containerStatuses"][0]["ready"], true);
    let conditions = status["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"));

    let path = format!("{PODS_PATH}/web");
    let wrong = json!({ "preconditions": { "uid": "other" } });
    assert_refused(&cluster.delete(&path, &wrong).await, 409, "Conflict", "UID");
    let right = json!({ "preconditions": { "uid": running["metadata"]["uid"] } });
    let (code, marked) = cluster.delete(&path, &right).await;
    assert_eq!(code, 200);
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    watch.until("DELETED", |pod| pod["metadata"]["name"] == "web").await;
    assert_refused(&cluster.get(&path).await, 404, "NotFound", "");
    assert_refused(&cluster.delete(&path, &Value::Null).await, 404, "NotFound", "");

    // Not bound, or without grace: gone at once.
    cluster.create(PODS_PATH, &pod("web")).await;
    assert_eq!(cluster.delete(&path, &Value::Null).await.1["kind"], "Pod");
    assert_eq!(cluster.get(&path).await.0, 404);
    cluster.create(PODS_PATH, &pod("web")).await;
    cluster.bind("web", &binding("node-0")).await;
    cluster.delete(&format!("{path}?gracePeriodSeconds=0"), &Value::Null).await;
    assert_eq!(cluster.get(&path).await.0, 404);
    // A node that nobody simulates runs nothing.
    cluster.create(PODS_PATH, &pod("lost")).await;
    cluster.bind("lost", &binding("nowhere")).await;
    let last = cluster.create(PODS_PATH, &pod("last")).await;
    cluster.bind("last", &binding("node-0")).await;
    let uid = &last["metadata"]["uid"];
    let is_last =
        |pod: &Value| pod["metadata"]["uid"] == *uid && pod["status"]["phase"] == "Running";
    watch.until("MODIFIED", is_last).await;
    let (_, lost) = cluster.get(&format!("{PODS_PATH}/lost")).await;
    assert_eq!(lost["status"]["phase"], "Pending");
}

#[tokio::test]
async fn eviction_and_log() {
    let cluster = Cluster::start(1).await;
    cluster.create(PODS_PATH, &pod("web")).await;
    let path = format!("{PODS_PATH}/web");
    let log = cluster.raw(&format!("GET {path}/log"), "").await;
    assert_eq!(log, (200, String::new()));
    assert_eq!(cluster.raw(&format!("GET {PODS_PATH}/none/log"), "").await.0, 404);
    let eviction = json!({ "deleteOptions": { "preconditions": { "uid": "other" } } });
    let answer = cluster.post(&format!("{path}/eviction"), &eviction).await;
    assert_refused(&answer, 409, "Conflict", "UID");
    assert_eq!(cluster.post(&format!("{path}/eviction"), &json!({})).await.0, 201);
    assert_eq!(cluster.get(&path).await.0, 404);
    for (method, path) in [("PUT", "/eviction"), ("GET", "/binding"), ("DELETE", "/status")] {
        cluster.create(PODS_PATH, &pod("a")).await;
        let head = format!("{method} {PODS_PATH}/a{path}");
        assert_refused(&cluster.send(&head, &Value::Null).await, 405, "MethodNotAllowed", "");
        cluster.delete(&format!("{PODS_PATH}/a"), &Value::Null).await;
    }
    assert_eq!(cluster.get(&format!("{PODS_PATH}/a/exec")).await.0, 404);
}

#[tokio::test]
async fn deletes_cascade() {
    let cluster = Cluster::start(0).await;
    let group = cluster.create(GROUPS_PATH, &pod_group("owner")).await;
    let owned = |name: &str| {
        let mut pod = pod(name);
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "name": "owner",
            "uid": group["metadata"]["uid"],
        }]);
        pod
    };
    cluster.create(PODS_PATH, &owned("a")).await;
    cluster.create(PODS_PATH, &pod("b")).await;
    let (code, status) = cluster.delete(&format!("{GROUPS_PATH}/owner"), &Value::Null).await;
    assert_eq!((code, &status["status"]), (200, &json!("Success")));
    assert_eq!(cluster.names(PODS_PATH).await, ["b"]);

    let group = cluster.create(GROUPS_PATH, &pod_group("owner")).await;
    let mut kept = owned("kept");
    kept["metadata"]["ownerReferences"][0]["uid"] = group["metadata"]["uid"].clone();
    cluster.create(PODS_PATH, &kept).await;
    let orphan = json!({ "propagationPolicy": "Orphan" });
    cluster.delete(&format!("{GROUPS_PATH}/owner"), &orphan).await;
    assert_eq!(cluster.names(PODS_PATH).await, ["b", "kept"]);

    let (_, list) =
        cluster.delete(&format!("{PODS_PATH}?labelSelector=app%3Db"), &Value::Null).await;
    assert_eq!(names(&list), ["b"]);
    assert_eq!(cluster.names(PODS_PATH).await, ["kept"]);
    let everywhere = cluster.delete("/api/v1/pods", &Value::Null).await;
    assert_refused(&everywhere, 405, "MethodNotAllowed", "");

    cluster.create("/api/v1/namespaces", &json!({ "metadata": { "name": "team" } })).await;
    cluster.create("/api/v1/namespaces/team/pods", &pod("a")).await;
    cluster.delete("/api/v1/namespaces/team", &Value::Null).await;
    assert_eq!(cluster.names("/api/v1/namespaces/team/pods").await, Vec::<String>::new());
    assert_eq!(cluster.get("/api/v1/namespaces/team").await.0, 404);
}

#[tokio::test]
async fn finalizers_hold_an_object() {
    let cluster = Cluster::start(0).await;
    let mut group = pod_group("g");
    group["metadata"]["finalizers"] = json!(["example.com/hold"]);
    cluster.create(GROUPS_PATH, &group).await;
    let path = format!("{GROUPS_PATH}/g");
    let (_, marked) = cluster.delete(&path, &Value::Null).await;
    assert_eq!(marked["kind"], "PodGroup");
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    let (code, _) =
        cluster.patch(&path, MERGE, &json!({ "metadata": { "finalizers": null } })).await;
    assert_eq!(code, 200);
    assert_eq!(cluster.get(&path).await.0, 404);
}

#[tokio::test]
async fn tables_for_kubectl() {
    let cluster = Cluster::start(1).await;
    cluster.create(PODS_PATH, &pod("web")).await;
    let accept = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let (code, table) = cluster.send(&format!("GET {PODS_PATH}\n{accept}"), &Value::Null).await;
    assert_eq!((code, &table["kind"]), (200, &json!("Table")));
    let titles: Vec<&str> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(titles[..5], ["Name", "Ready", "Status", "Restarts", "Age"]);
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(cells[..4], [json!("web"), json!("0/1"), json!("Pending"), json!("0")]);
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let (_, one) = cluster
        .send(&format!("GET /api/v1/nodes/node-0?includeObject=Object\n{accept}"), &Value::Null)
        .await;
    assert_eq!(one["rows"][0]["cells"][1], "Ready");
    assert_eq!(one["rows"][0]["object"]["kind"], "Node");
    for path in [QUEUES_PATH, GROUPS_PATH, "/api/v1/events", "/api/v1/configmaps"] {
        let (_, table) = cluster.send(&format!("GET {path}\n{accept}"), &Value::Null).await;
        assert_eq!(table["rows"], json!([]));
    }
    let mut watch = cluster.watch(&format!("{PODS_PATH}?watch=true\n{accept}")).await;
    let event = watch.next().await.unwrap();
    assert_eq!(event["object"]["kind"], "Table");
    assert_eq!(event["object"]["rows"][0]["cells"][0], "web");
}

#[tokio::test]
async fn events_leases_and_large_nodes_are_stored() {
    let cluster = Cluster::start(0).await;
    let event = json!({
        "metadata": { "name": "web.1" }, "reason": "Evict", "type": "Warning",
        "involvedObject": { "kind": "Pod", "name": "web", "uid": "u" },
    });
    let path = "/api/v1/namespaces/default/events";
    cluster.create(path, &event).await;
    let patch = json!({ "count": 2 });
    assert_eq!(cluster.patch(&format!("{path}/web.1"), STRATEGIC, &patch).await.1["count"], 2);
    let of = |name: &str| {
        format!("{path}?fieldSelector=involvedObject.name%3D{name},involvedObject.kind%3DPod")
    };
    assert_eq!(cluster.names(&of("web")).await, ["web.1"]);
    assert_eq!(cluster.names(&of("other")).await, Vec::<String>::new());

    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    let lease = json!({ "metadata": { "name": "l" }, "spec": { "holderIdentity": "a" } });
    let mut lease = cluster.create(path, &lease).await;
    lease["spec"]["holderIdentity"] = json!("b");
    assert_eq!(cluster.put(&format!("{path}/l"), &lease).await.0, 200);
    lease["spec"]["holderIdentity"] = json!("c");
    let answer = cluster.put(&format!("{path}/l"), &lease).await;
    assert_refused(&answer, 409, "Conflict", "modified");

    let labels: serde_json::Map<String, Value> =
        (0..10_000).map(|i| (format!("example.com/label-{i}"), json!("x"))).collect();
    let node = json!({ "metadata": { "name": "large", "labels": labels } });
    let node = cluster.create("/api/v1/nodes", &node).await;
    assert_eq!(node["metadata"]["labels"].as_object().unwrap().len(), 10_000);
    let select = "/api/v1/nodes?labelSelector=example.com/label-9999";
    assert_eq!(cluster.names(select).await, ["large"]);
}

struct Twins;

impl Expander for Twins {
    fn expand(&self, object: &Value) -> Vec<Value> {
        let name = object["metadata"]["name"].as_str().unwrap();
        let mut stranger = pod("stranger");
        stranger["kind"] = json!("Stranger");
        vec![pod(&format!("{name}-0")), pod(&format!("{name}-1")), stranger]
    }
}

fn job(name: &str) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": { "name": name, "namespace": "default" }, "spec": {},
    })
}

#[tokio::test]
async fn workloads_are_expanded_once() {
    let mut child = pod("has-pods-x");
    child["metadata"]["ownerReferences"] = json!([{ "kind": "Job", "uid": "u-1" }]);
    let mut with_pods = job("has-pods");
    with_pods["metadata"]["uid"] = json!("u-1");
    let objects = vec![child, with_pods, job("loaded")];
    let expander: Option<Arc<dyn Expander>> = Some(Arc::new(Twins));
    let cluster =
        Cluster::with(ServeOptions { objects, expander, ..ServeOptions::default() }).await;
    assert_eq!(cluster.names(PODS_PATH).await, ["has-pods-x", "loaded-0", "loaded-1"]);
    let path = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs";
    let made = cluster.create(path, &job("made")).await;
    let (_, first) = cluster.get(&format!("{PODS_PATH}/made-0")).await;
    let owner = &first["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["uid"]), (&json!("Job"), &made["metadata"]["uid"]));
    let (_, events) = cluster.get("/api/v1/namespaces/default/events").await;
    assert_eq!(events["items"][0]["reason"], "FailedCreate");
    assert_eq!(events["items"][0]["message"], "Error creating: kind is not served: Stranger");
    cluster.delete(&format!("{path}/made"), &Value::Null).await;
    assert_eq!(cluster.names(PODS_PATH).await, ["has-pods-x", "loaded-0", "loaded-1"]);
}

#[tokio::test]
async fn a_dump_keeps_what_its_objects_are() {
    let mut bound = pod("bound");
    bound["metadata"] = json!({
        "name": "bound", "namespace": "team", "uid": "u-7", "resourceVersion": "12345",
        "creationTimestamp": "2024-01-01T00:00:00Z",
    });
    bound["spec"]["nodeName"] = json!("node-0");
    bound["spec"]["priority"] = json!(9);
    bound["status"] = json!({ "phase": "Running" });
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "node-0" } });
    let alien = json!({ "apiVersion": "v1", "kind": "Alien", "metadata": { "name": "x" } });
    let mut mistyped = pod("mistyped");
    mistyped["spec"] = json!("nothing");
    let objects = vec![bound, node, alien, mistyped];
    let cluster =
        Cluster::with(ServeOptions { nodes: 2, objects, ..ServeOptions::default() }).await;
    assert_eq!(
        cluster.server.rejected,
        [
            "Alien x: kind is not served: Alien of v1",
            "Pod mistyped: Pod cannot be read: spec: must be an object",
        ]
    );
    let (_, found) = cluster.get("/api/v1/namespaces/team/pods/bound").await;
    assert_eq!(found["metadata"]["uid"], "u-7");
    assert_eq!(found["metadata"]["creationTimestamp"], "2024-01-01T00:00:00Z");
    assert_ne!(version(&found), "12345");
    assert_eq!(
        (&found["spec"]["priority"], &found["status"]["phase"]),
        (&json!(9), &json!("Running"))
    );
    // A node of the dump wins over the simulated one of its name.
    let (_, node) = cluster.get("/api/v1/nodes/node-0").await;
    assert!(node.get("status").is_none());
    assert_eq!(cluster.names("/api/v1/nodes").await, ["node-0", "node-1"]);
}

#[tokio::test]
async fn starts_on_loopback_only_and_writes_a_kubeconfig() {
    let remote = ServeOptions { listen: "0.0.0.0:0".parse().unwrap(), ..ServeOptions::default() };
    let error = start(remote).await.err().unwrap();
    assert!(error.to_string().starts_with("not a loopback address: 0.0.0.0:0\nhint: "));
    let listen = "127.0.0.1:0".parse().unwrap();
    let broken = ServeOptions { listen, node_cpu: "many".into(), ..ServeOptions::default() };
    assert!(matches!(start(broken).await, Err(ServeError::NodeSize { field: "cpu", .. })));
    let path = std::env::temp_dir().join(format!("vcsim-kubeconfig-{}", std::process::id()));
    let cluster = Cluster::with(ServeOptions {
        write_kubeconfig: Some(path.clone()),
        ..ServeOptions::default()
    })
    .await;
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(text.contains(&format!("server: {}\n", cluster.server.url())));
    let taken = ServeOptions { listen: cluster.server.addr, ..ServeOptions::default() };
    assert!(matches!(start(taken).await, Err(ServeError::Listen { .. })));
    let nowhere = Some("/nowhere/kubeconfig".into());
    let lost = ServeOptions { listen, write_kubeconfig: nowhere, ..ServeOptions::default() };
    assert!(matches!(start(lost).await, Err(ServeError::Kubeconfig { .. })));
}

#[tokio::test]
async fn stop_ends_watches() {
    let cluster = Cluster::start(0).await;
    let mut watch = cluster.watch("/api/v1/pods?watch=true&resourceVersion=1").await;
    let addr = cluster.server.addr;
    cluster.server.stop().await;
    assert_eq!(watch.next().await, None);
    assert!(TcpStream::connect(addr).await.is_err());
}

/// In-process, under paused time: hours pass in no time.
#[tokio::test(start_paused = true)]
async fn a_pod_ends_after_its_run_seconds() {
    let listen = "127.0.0.1:0".parse().unwrap();
    let server = start(ServeOptions { listen, nodes: 1, ..ServeOptions::default() }).await.unwrap();
    let store = &server.store;
    let mut events = store.subscribe(&PODS);
    let began = tokio::time::Instant::now();
    let mut timed = pod("timed");
    timed["metadata"]["annotations"] = json!({ RUN_SECONDS: "3600" });
    let mut endless = pod("endless");
    endless["metadata"]["annotations"] = json!({ RUN_SECONDS: "for ever" });
    for pod in [&timed, &endless] {
        let made = store.create(&PODS, pod).unwrap();
        store.bind(&Key::of(&made.value), &binding("node-0")).unwrap();
    }
    let finished = 'wait: loop {
        for event in events.next().await.unwrap() {
            if event.object.value["status"]["phase"] == "Succeeded" {
                break 'wait event;
            }
        }
    };
    assert_eq!(finished.key(), Key::new("default", "timed"));
    assert!(began.elapsed() >= Duration::from_secs(3600));
    let endless = store.get(&PODS, "default", "endless").unwrap();
    assert_eq!(endless.value["status"]["phase"], "Running");
    // A finished pod needs no grace.
    store.delete(&PODS, &finished.key(), &DeleteOptions::default()).unwrap();
    assert!(store.get(&PODS, "default", "timed").is_none());
    let last = events.next().await.unwrap();
    assert_eq!(last.last().unwrap().change, Change::Deleted);
}

#[tokio::test]
async fn the_store_is_used_in_process() {
    let store = Arc::new(Store::new(None));
    let nodes = Kind::find("", "v1", "nodes").unwrap();
    assert_eq!(nodes, &NODES);
    let mut events = store.subscribe(nodes);
    let node = json!({ "metadata": { "name": "n" } });
    let made = store.create(nodes, &node).unwrap();
    assert_eq!((made.name(), made.namespace()), ("n", ""));
    assert_eq!(events.next().await.unwrap()[0].change, Change::Added);
    assert_eq!(store.list(nodes, None).objects.len(), 1);
    let key = Key::new("", "n");
    let same = store.update(nodes, &key, |_| Ok(())).unwrap();
    assert_eq!(same.revision, made.revision);
    store
        .update(nodes, &key, |node| {
            node["spec"]["unschedulable"] = json!(true);
            Ok(())
        })
        .unwrap();
    store.compact();
    assert_eq!(events.next().await.unwrap_err().code(), 410);
}
