//! An embedded API server, a client that shows every byte, and small objects.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use vc_sim::serve::{ServeOptions, Server, start};

pub(crate) const PODS_PATH: &str = "/api/v1/namespaces/default/pods";
pub(crate) const GROUPS_PATH: &str =
    "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups";
pub(crate) const QUEUES_PATH: &str = "/apis/scheduling.volcano.sh/v1beta1/queues";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
/// Only so that a lost event fails a test instead of hanging it.
pub(crate) const HANG: Duration = Duration::from_secs(180);

/// A server and a client that opens one connection per request, in HTTP/1.0: bodies end with it.
pub(crate) struct Cluster {
    pub(crate) server: Server,
}

impl Cluster {
    pub(crate) async fn start(nodes: u32) -> Cluster {
        Cluster::with(ServeOptions { nodes, ..ServeOptions::default() }).await
    }

    pub(crate) async fn with(options: ServeOptions) -> Cluster {
        let listen = "127.0.0.1:0".parse().unwrap();
        let server = start(ServeOptions { listen, ..options }).await.unwrap();
        Cluster { server }
    }

    pub(crate) async fn open(&self, head: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.server.addr).await.unwrap();
        let length = body.len();
        let (line, headers) = head.split_once('\n').unwrap_or((head, ""));
        let headers: String = headers.lines().map(|line| format!("{line}\r\n")).collect();
        let text = format!("{line} HTTP/1.0\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).await.unwrap();
        BufReader::new(stream)
    }

    /// The code and body of an answer.
    pub(crate) async fn raw(&self, head: &str, body: &str) -> (u16, String) {
        let mut text = String::new();
        let mut stream = self.open(head, body).await;
        tokio::time::timeout(HANG, stream.read_to_string(&mut text)).await.unwrap().unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    pub(crate) async fn send(&self, head: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (code, text) = self.raw(head, &body).await;
        (code, serde_json::from_str(&text).unwrap())
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.send(&format!("GET {path}"), &Value::Null).await
    }

    pub(crate) async fn names(&self, path: &str) -> Vec<String> {
        let (code, list) = self.get(path).await;
        assert_eq!(code, 200, "{list}");
        names(&list)
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send(&format!("POST {path}\nContent-Type: application/json"), body).await
    }

    pub(crate) async fn create(&self, path: &str, body: &Value) -> Value {
        let (code, object) = self.post(path, body).await;
        assert_eq!(code, 201, "{object}");
        object
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send(&format!("PUT {path}\nContent-Type: application/json"), body).await
    }

    pub(crate) async fn patch(&self, path: &str, form: &str, body: &Value) -> (u16, Value) {
        self.send(&format!("PATCH {path}\nContent-Type: {form}"), body).await
    }

    pub(crate) async fn delete(&self, path: &str, options: &Value) -> (u16, Value) {
        self.send(&format!("DELETE {path}"), options).await
    }

    pub(crate) async fn bind(&self, pod: &str, binding: &Value) -> (u16, Value) {
        self.post(&format!("{PODS_PATH}/{pod}/binding"), binding).await
    }

    pub(crate) async fn watch(&self, path: &str) -> Watch {
        let mut stream = self.open(&format!("GET {path}"), "").await;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert_ne!(stream.read_line(&mut line).await.unwrap(), 0);
        }
        Watch { stream }
    }
}

pub(crate) struct Watch {
    stream: BufReader<TcpStream>,
}

impl Watch {
    /// The next event; `None` at the end of the watch.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = tokio::time::timeout(HANG, self.stream.read_line(&mut line));
        match read.await.expect("the watch says something").unwrap() {
            0 => None,
            _ => Some(serde_json::from_str(&line).unwrap()),
        }
    }

    /// `ADDED web`, `BOOKMARK`, ...
    pub(crate) async fn label(&mut self) -> String {
        let event = self.next().await.expect("the watch goes on");
        let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
        format!("{} {name}", event["type"].as_str().unwrap()).trim_end().to_owned()
    }

    /// Skips events until the object satisfies `test`.
    pub(crate) async fn until(&mut self, label: &str, test: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self.next().await.expect("the watch goes on");
            if event["type"] == label && test(&event["object"]) {
                return event["object"].clone();
            }
        }
    }
}

pub(crate) fn names(list: &Value) -> Vec<String> {
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    list["items"].as_array().unwrap().iter().map(name).collect()
}

pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": { "containers": [{ "name": "main", "image": "busybox" }] },
    })
}

pub(crate) fn pod_group(name: &str) -> Value {
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": { "name": name }, "spec": { "minMember": 2 },
    })
}

pub(crate) fn binding(node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {},
        "target": { "apiVersion": "v1", "kind": "Node", "name": node },
    })
}

pub(crate) fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap()
}

#[track_caller]
pub(crate) fn assert_refused(answer: &(u16, Value), code: u16, reason: &str, message: &str) {
    let (found, status) = answer;
    assert_eq!(*found, code, "{status}");
    assert_eq!(status["kind"], "Status");
    assert_eq!(status["status"], "Failure");
    assert_eq!(status["code"], code);
    assert_eq!(status["reason"], reason);
    let text = status["message"].as_str().unwrap();
    assert!(text.contains(message), "{text}");
}
