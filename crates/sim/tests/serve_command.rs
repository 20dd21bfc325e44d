//! `vcsim serve` as a command: it says where it listens and where its page is, and workloads in its
//! files become pods.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// Ends the server with the test, also when it fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

fn get(address: &str, path: &str) -> Value {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap()
}

const JOB: &str = "
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: default}
spec:
  tasks:
  - {name: w, replicas: 2, template: {spec: {containers: [{name: c, image: busybox}]}}}
";

#[test]
fn the_server_listens_and_expands_workloads() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("serve_command");
    std::fs::create_dir_all(&folder).unwrap();
    let (job, kubeconfig) = (folder.join("job.yaml"), folder.join("kubeconfig"));
    std::fs::write(&job, JOB).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_vcsim"))
        .args(["serve", "--listen", "127.0.0.1:0", "--nodes", "3", "--write-kubeconfig"])
        .arg(&kubeconfig)
        .arg(&job)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let _running = Running(child);
    let address = line.trim().strip_prefix("listening on http://").unwrap();
    let nodes = get(address, "/api/v1/nodes");
    assert_eq!(nodes["items"].as_array().unwrap().len(), 3);
    let pods = get(address, "/api/v1/namespaces/default/pods");
    let names: Vec<&Value> =
        pods["items"].as_array().unwrap().iter().map(|pod| &pod["metadata"]["name"]).collect();
    assert_eq!(names, ["train-w-0", "train-w-1"]);
    assert!(std::fs::read_to_string(&kubeconfig).unwrap().contains(address));
}

/// Returns the path of an example of the project.
fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

#[test]
fn the_page_says_why_the_jobs_of_the_files_wait() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_vcsim"))
        .args(["serve", "--listen", "127.0.0.1:0", "--page-address", "127.0.0.1:0"])
        .args(["cluster.yaml", "gang-that-waits.yaml"].map(example))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let _running = Running(child);
    let first = lines.next().unwrap().unwrap();
    assert!(first.starts_with("listening on http://127.0.0.1:"), "{first}");
    let second = lines.next().unwrap().unwrap();
    let address = second.strip_prefix("serving the page on http://").unwrap();
    let address = address.strip_suffix('/').unwrap();
    let path = "/apis/answers.volcano.sh/v1/namespaces/default/explanations/quintet";
    let explanation = get(address, path);
    assert_eq!(explanation["verdict"]["code"], "GangShort", "{explanation}");
    assert_eq!(explanation["gang"]["placed"], 4, "{explanation}");
}

#[test]
fn a_configuration_without_a_page_is_wrong_usage() {
    let call = |arguments: &[&str]| {
        let mut vcsim = Command::new(env!("CARGO_BIN_EXE_vcsim"));
        let output = vcsim.args(["serve", "--listen", "127.0.0.1:0"]).args(arguments).output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, told) = call(&["--scheduler-conf", "missing.conf"]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.starts_with("error: only the page reads a configuration\nhint: "), "{told}");
    let (code, told) = call(&["--page-address", "127.0.0.1:0", "--scheduler-conf", "missing.conf"]);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.starts_with("error: cannot read missing.conf: "), "{told}");
}

#[test]
fn an_address_that_is_not_loopback_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_vcsim"))
        .args(["serve", "--listen", "0.0.0.0:0"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("error: not a loopback address: 0.0.0.0:0"), "{message}");
}
