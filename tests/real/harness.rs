//! The process of the API server: one for all tests of this binary. It ends when its stdin is
//! closed, so it ends with the tests. Contract: tests/apiserver/README.md.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Once;

use serde_json::{Value, json};

use crate::front_proxy;

/// Only what the scheduler, or Volcano's in its place, asks for is written down, with what it sent; of
/// its watches the start.
const AUDIT_POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
    "omitStages": ["RequestReceived"], "omitManagedFields": true, "rules": [
    {"level": "Request", "users": ["system:serviceaccount:volcano-system:vc-scheduler",
        "system:serviceaccount:volcano-system:volcano-scheduler"]},
    {"level": "None"}]}"#;

/// How the API server ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// As a rolling update ends it.
    Graceful,
    /// As a crash does.
    Killed,
}

/// A running API server.
pub(crate) struct Harness {
    child: Child,
    ready: Value,
    token: String,
    pub(crate) dir: PathBuf,
}

impl Harness {
    /// An API server with an empty store.
    pub(crate) fn start() -> Self {
        let dir = fresh_dir();
        fs::write(dir.join("audit-policy.json"), AUDIT_POLICY).unwrap();
        let (child, ready) = up(&dir);
        Self { child, ready, token: String::new(), dir }
    }

    /// Ends the server; clients are refused from then on.
    pub(crate) fn end(&mut self, end: End) {
        match end {
            End::Graceful => drop(self.child.stdin.take()),
            End::Killed => self.child.kill().unwrap(),
        }
        self.child.wait().unwrap();
    }

    /// Starts it again on what it had stored, under the same address.
    pub(crate) fn start_again(&mut self) {
        (self.child, self.ready) = up(&self.dir);
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// The administrator's.
    pub(crate) fn kubeconfig(&self) -> &str {
        self.ready["kubeconfig"].as_str().unwrap()
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.dir.join("audit.log")
    }

    /// Path of a kubeconfig with a token of the shipped ServiceAccount.
    pub(crate) fn scheduler_kubeconfig(&mut self) -> PathBuf {
        if self.token.is_empty() {
            self.token = self.token_for("1h");
        }
        let user = json!({"token": self.token});
        self.kubeconfig_with(&user, "scheduler")
    }

    /// A token of the shipped ServiceAccount.
    pub(crate) fn token_for(&self, ttl: &str) -> String {
        token(&self.dir, ("volcano-system", "vc-scheduler"), ttl)
    }

    /// A token of a ServiceAccount, by its namespace and name.
    pub(crate) fn token_of(&self, account: (&str, &str)) -> String {
        token(&self.dir, account, "1h")
    }

    /// Changes what is stored, past the API server (tests/apiserver/README.md).
    pub(crate) fn seed(&self, wanted: &Value) {
        let mut child = Command::new(program())
            .args(["seed", "--dir"])
            .arg(&self.dir)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(wanted.to_string().as_bytes()).unwrap();
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// Path of a kubeconfig with these credentials.
    pub(crate) fn kubeconfig_with(&self, user: &Value, name: &str) -> PathBuf {
        let (server, ca) = (&self.ready["server"], &self.ready["ca"]);
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "scheduler",
            "clusters": [{"name": "test",
                "cluster": {"server": server, "certificate-authority": ca}}],
            "users": [{"name": "scheduler", "user": user}],
            "contexts": [{"name": "scheduler",
                "context": {"cluster": "test", "user": "scheduler"}}]});
        let path = self.dir.join(format!("{name}.kubeconfig"));
        fs::write(&path, config.to_string()).unwrap();
        path
    }
}

fn program() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/apiserver/harness");
    assert!(path.exists(), "{} is missing\nhint: `make apiserver` builds it", path.display());
    path
}

/// Where everything of this process is: its API server's store and all logs.
pub(crate) fn dir() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("real-{}", std::process::id()))
}

/// With the first server of this process those of processes that are gone are removed, and that of
/// one that had our number.
fn fresh_dir() -> PathBuf {
    static FIRST: Once = Once::new();
    FIRST.call_once(remove_old);
    fs::create_dir_all(dir()).unwrap();
    dir()
}

fn remove_old() {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for entry in fs::read_dir(parent).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Some(pid) = name.strip_prefix("real-")
            && (path == dir() || !Path::new("/proc").join(pid).exists())
        {
            // Another run may do the same.
            drop(fs::remove_dir_all(&path));
        }
    }
}

/// Returns when the server is ready.
fn up(dir: &Path) -> (Child, Value) {
    let log = dir.join("apiserver.log");
    let stderr: File = OpenOptions::new().create(true).append(true).open(&log).unwrap();
    let mut child = Command::new(program())
        .args(["up", "--exit-with-stdin", "--dir"])
        .arg(dir)
        .arg("--")
        .arg(format!("--audit-policy-file={}", dir.join("audit-policy.json").display()))
        .arg(format!("--audit-log-path={}", dir.join("audit.log").display()))
        .args(front_proxy::flags(dir))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(stderr)
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready = serde_json::from_str(&line);
    (child, ready.unwrap_or_else(|_| panic!("no API server: see {}", log.display())))
}

fn token(dir: &Path, (namespace, name): (&str, &str), ttl: &str) -> String {
    let account = [format!("--namespace={namespace}"), format!("--serviceaccount={name}")];
    let made = Command::new(program())
        .args(["token", "--dir"])
        .arg(dir)
        .args(account)
        .arg(format!("--ttl={ttl}"))
        .output();
    let made = made.unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}
