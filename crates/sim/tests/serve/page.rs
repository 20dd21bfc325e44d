//! The page of the answers beside the embedded API server, and what it answers about the objects.

use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use vc_bundle::{Bundle, OBJECTS, Replay};
use vc_conf::AllowMissing;
use vc_page::BASE;
use vc_sim::serve::{
    EVENTS, Key, NODES, PageOptions, QUEUES, ServeError, ServeOptions, Server, start,
};

use crate::bed::{HANG, binding, pod, pod_group};

/// What was answered.
struct Reply {
    code: u16,
    head: String,
    body: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// Returns the tag of the answer without its last part, the minute.
    fn tag(&self) -> &str {
        let tag = self.head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
        tag.rsplit_once('-').unwrap().0
    }
}

/// Sends a request to the page.
async fn send(server: &Server, line: &str, body: &str) -> Reply {
    let mut stream = TcpStream::connect(server.page_addr.unwrap()).await.unwrap();
    let length = body.len();
    let request = format!("{line} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    tokio::time::timeout(HANG, stream.read_to_string(&mut text)).await.unwrap().unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    Reply { code, head: head.to_owned(), body: body.to_owned() }
}

/// Asks for a file below the path of the answers. Returns the code and the contents.
async fn file(server: &Server, path: &str) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(server.page_addr.unwrap()).await.unwrap();
    let request = format!("GET {BASE}{path} HTTP/1.0\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    tokio::time::timeout(HANG, stream.read_to_end(&mut bytes)).await.unwrap().unwrap();
    let end = bytes.windows(4).position(|part| part == b"\r\n\r\n").unwrap();
    let contents = bytes.split_off(end + 4);
    let head = String::from_utf8(bytes).unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), contents)
}

/// Asks for a path below that of the answers.
async fn ask(server: &Server, path: &str) -> Reply {
    send(server, &format!("GET {BASE}{path}"), "").await
}

async fn answer(server: &Server, path: &str) -> Value {
    let reply = ask(server, path).await;
    assert_eq!(reply.code, 200, "{path}: {}", reply.body);
    reply.json()
}

/// Returns how many jobs of the default queue wait.
async fn n_waiting(server: &Server) -> u64 {
    let queues = answer(server, "/queues").await;
    let mut queues = queues["items"].as_array().unwrap().iter();
    let queue = queues.find(|queue| queue["name"] == "default").unwrap();
    queue["waiting"].as_u64().unwrap()
}

fn page(listen: &str) -> Option<PageOptions> {
    let listen = listen.parse().unwrap();
    let (page, problems) = PageOptions::read(listen, None, &AllowMissing::Nothing).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    Some(page)
}

/// A pod of the gang `train`. A node of the cluster has room for one.
fn member(name: &str) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["annotations"] = json!({ "scheduling.k8s.io/group-name": "train" });
    pod["spec"]["schedulerName"] = json!("volcano");
    pod["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": "3" } });
    pod
}

/// A cluster of one node, and a gang of two that waits.
async fn cluster() -> Server {
    let options = ServeOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        nodes: 1,
        node_cpu: "4".to_owned(),
        objects: vec![pod_group("train"), member("train-0"), member("train-1")],
        page: page("127.0.0.1:0"),
        ..ServeOptions::default()
    };
    let server = start(options).await.unwrap();
    assert!(server.rejected.is_empty(), "{:?}", server.rejected);
    server
}

#[tokio::test]
async fn ans_93_the_root_leads_to_the_page() {
    let server = cluster().await;
    let address = server.page_addr.unwrap();
    assert_eq!(server.page_url(), Some(format!("http://{address}/")));
    let root = send(&server, "GET /", "").await;
    assert_eq!(root.code, 303);
    assert!(root.head.contains("\r\nlocation: ui/"), "{}", root.head);
    let index = send(&server, "GET /ui/", "").await;
    assert_eq!(index.code, 200);
    assert!(index.body.starts_with("<!doctype html>"), "{}", index.body);
}

#[tokio::test]
async fn ans_93_answers_follow_the_objects() {
    let server = cluster().await;
    let path = "/namespaces/default/explanations/train";
    let before = answer(&server, path).await;
    assert_eq!(before["gang"]["needed"], 2, "{before}");
    assert_eq!(n_waiting(&server).await, 1);
    assert_eq!(answer(&server, "/explanations").await["total"], 1);
    let node = json!({
        "metadata": { "name": "second" },
        "status": { "allocatable": { "cpu": "4", "memory": "16Gi", "pods": "110" } },
    });
    server.store.create(&NODES, &node).unwrap();
    assert_eq!(n_waiting(&server).await, 0);
    assert_eq!(answer(&server, "/explanations").await["total"], 0);
    let after = answer(&server, path).await;
    assert_ne!(after["verdict"]["code"], before["verdict"]["code"], "{after}");
    let unknown = ask(&server, "/nodes/third").await;
    assert_eq!((unknown.code, &unknown.json()["message"]), (404, &json!("no node third")));
}

#[tokio::test]
async fn ans_72_only_objects_that_the_engine_reads_make_new_answers() {
    let server = cluster().await;
    let before = ask(&server, "/queues").await;
    let event = json!({
        "metadata": { "name": "train.1" }, "reason": "Unschedulable", "type": "Warning",
        "involvedObject": { "kind": "PodGroup", "name": "train", "uid": "u" },
    });
    server.store.create(&EVENTS, &event).unwrap();
    assert_eq!(ask(&server, "/queues").await.tag(), before.tag());
    let queue = json!({ "metadata": { "name": "research" }, "spec": { "weight": 1 } });
    server.store.create(&QUEUES, &queue).unwrap();
    assert_ne!(ask(&server, "/queues").await.tag(), before.tag());
}

#[tokio::test]
async fn ans_93_changes_are_supposed_and_nothing_changes() {
    let server = cluster().await;
    let changes = json!([{ "addNodes": { "like": "node-0", "count": 1 } }]);
    let body = json!({
        "apiVersion": "answers.volcano.sh/v1", "kind": "WhatIf", "spec": { "changes": changes },
    });
    let supposed = send(&server, &format!("POST {BASE}/whatifs"), &body.to_string()).await;
    assert_eq!(supposed.code, 200, "{}", supposed.body);
    assert_eq!(supposed.json()["placed"].as_array().unwrap().len(), 2, "{}", supposed.body);
    assert_eq!(n_waiting(&server).await, 1, "nothing was changed");
}

#[tokio::test]
async fn ans_93_what_others_did_is_remembered() {
    let server = cluster().await;
    let jobs = |timeline: Value| -> Vec<String> {
        let jobs = timeline["jobs"].as_array().unwrap().iter();
        jobs.map(|span| span["job"].as_str().unwrap().to_owned()).collect()
    };
    let binds = |cycles: &Value| -> u64 {
        let cycles = cycles["items"].as_array().unwrap().iter();
        cycles.map(|cycle| cycle["binds"].as_u64().unwrap()).sum()
    };
    assert_eq!(jobs(answer(&server, "/timeline").await), [""; 0], "nothing runs");
    assert_eq!(binds(&answer(&server, "/cycles").await), 0);
    // A gang that would start is none that has started.
    let fits = json!({
        "metadata": { "name": "second" },
        "status": { "allocatable": { "cpu": "4", "memory": "16Gi", "pods": "110" } },
    });
    server.store.create(&NODES, &fits).unwrap();
    assert_eq!(n_waiting(&server).await, 0);
    assert_eq!(jobs(answer(&server, "/timeline").await), [""; 0], "nobody has bound it");
    for (name, node) in [("train-0", "node-0"), ("train-1", "second")] {
        server.store.bind(&Key::new("default", name), &binding(node)).unwrap();
    }
    assert_eq!(jobs(answer(&server, "/timeline").await), ["default/train"]);
    assert_eq!(binds(&answer(&server, "/cycles").await), 2);
}

#[tokio::test]
async fn ans_93_a_bundle_has_the_cycle_of_the_page() {
    let server = cluster().await;
    let (code, contents) = file(&server, "/bundles/now").await;
    assert_eq!(code, 200);
    let bundle = Bundle::read(&*contents).unwrap();
    assert_eq!((bundle.manifest().first_cycle, bundle.manifest().last_cycle), (0, 1));
    let mut archive = tar::Archive::new(GzDecoder::new(&*contents));
    let mut entries = archive.entries().unwrap().map(Result::unwrap);
    let mut entry = entries.find(|it| &*it.path_bytes() == OBJECTS.as_bytes()).unwrap();
    let mut objects = String::new();
    entry.read_to_string(&mut objects).unwrap();
    assert!(objects.contains("name: train-0"), "{objects}");
    let mut replay = Replay::new(&bundle, None).unwrap();
    assert!(replay.step().unwrap().is_same && replay.step().is_none());
}

#[tokio::test]
async fn the_page_is_on_loopback_only_and_on_request() {
    let listen = "127.0.0.1:0".parse().unwrap();
    let options = ServeOptions { listen, page: page("0.0.0.0:0"), ..ServeOptions::default() };
    let error = start(options).await.err().unwrap();
    assert!(matches!(error, ServeError::Remote(address) if address.ip().is_unspecified()));
    let server = start(ServeOptions { listen, ..ServeOptions::default() }).await.unwrap();
    assert_eq!(server.page_url(), None);
}
