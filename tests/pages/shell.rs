//! A reader at a terminal: runs the commands of one page in a folder of its own, with the programs
//! that the tests have built.

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use vc_sim::Controllers;
use vc_sim::serve::{ServeOptions, Server, start};

use crate::guard::Guard;
use crate::project;

/// Longest time that a command may take. Only a command that hangs gets there.
const HANG: Duration = Duration::from_secs(120);

/// A program as the tests have built it.
pub(crate) fn program(name: &str) -> PathBuf {
    let scheduler = Path::new(env!("CARGO_BIN_EXE_vc-scheduler"));
    let path = scheduler.with_file_name(name);
    assert!(path.is_file(), "no {}\nhint: cargo test --workspace builds it", path.display());
    path
}

/// An API server and a scheduler for all pages: the cluster of the reader.
pub(crate) struct Shared {
    kubeconfig: PathBuf,
    _server: Server,
    _scheduler: Child,
    _guard: Guard,
}

impl Shared {
    pub(crate) async fn start(folder: &Path) -> Shared {
        std::fs::create_dir_all(folder).unwrap();
        let kubeconfig = folder.join("kubeconfig");
        let conf =
            std::fs::read_to_string(project().join("config/volcano-scheduler.conf")).unwrap();
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"},
            "data": {"volcano-scheduler.conf": conf},
        });
        let options = ServeOptions {
            listen: "127.0.0.1:0".parse().unwrap(),
            nodes: 4,
            write_kubeconfig: Some(kubeconfig.clone()),
            objects: vec![map],
            expander: Some(Arc::new(Controllers)),
            ..ServeOptions::default()
        };
        let server = start(options).await.unwrap();
        let mut scheduler = Command::new(program("vc-scheduler"));
        scheduler
            .args(["--master", &server.url(), "--leader-elect=false", "--bare-pods=schedule"])
            .env("DEBUG_SOCKET_DIR", folder)
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let scheduler = scheduler.spawn().unwrap();
        let guard = Guard::over(scheduler.id().unwrap());
        Shared { kubeconfig, _server: server, _scheduler: scheduler, _guard: guard }
    }
}

/// Somebody who reads one page.
pub(crate) struct Reader<'a> {
    folder: PathBuf,
    shared: &'a Shared,
    /// Of the server and of the metrics that this page starts.
    ports: [u16; 2],
    /// What runs beside, with the guard that ends it with the test.
    beside: Vec<(Child, Guard)>,
}

impl<'a> Reader<'a> {
    /// `files` are those that the pages show.
    pub(crate) fn new<'f>(
        folder: &Path,
        page: &str,
        shared: &'a Shared,
        files: impl Iterator<Item = (&'f str, &'f str)>,
    ) -> Self {
        let folder = folder.join(page.replace(['/', '.', ' '], "-"));
        std::fs::create_dir_all(folder.join("tmp")).unwrap();
        std::fs::create_dir_all(folder.join("target/release")).unwrap();
        for name in ["vcsim", "vc-scheduler"] {
            symlink(program(name), folder.join("target/release").join(name)).unwrap();
        }
        for name in ["config", "deploy", "docs", "examples", "tests"] {
            symlink(project().join(name), folder.join(name)).unwrap();
        }
        std::fs::copy(project().join("tests/pages/my-job.yaml"), folder.join("my-job.yaml"))
            .unwrap();
        std::fs::create_dir_all(folder.join(".kube")).unwrap();
        std::fs::copy(&shared.kubeconfig, folder.join(".kube/config")).unwrap();
        for (name, text) in files {
            std::fs::write(folder.join(name), text).unwrap();
        }
        Reader { folder, shared, ports: free_ports(), beside: Vec::new() }
    }

    /// Runs a line, and returns what it prints; what ends with `&` goes on beside.
    ///
    /// # Errors
    /// The command fails, hangs, or does not begin to listen.
    pub(crate) async fn run(&mut self, line: &str) -> Result<String, String> {
        let (beside, last) = match line.strip_suffix(" &") {
            Some(beside) => (beside, None),
            None => line.rsplit_once(" & ").map_or(("", Some(line)), |(b, last)| (b, Some(last))),
        };
        for command in beside.split(" & ").filter(|command| !command.is_empty()) {
            self.start(command).await?;
        }
        match last {
            Some(command) => self.finish(command).await,
            None => Ok(String::new()),
        }
    }

    /// The command with ports and folders of this page.
    fn here(&self, command: &str) -> String {
        let [server, metrics] = self.ports;
        let tmp = format!("{}/tmp/", self.folder.display());
        let mut text = command
            .replace("127.0.0.1:8001", &format!("127.0.0.1:{server}"))
            .replace("127.0.0.1:8080", &format!("127.0.0.1:{metrics}"))
            .replace("/tmp/", &tmp);
        if command.starts_with("vcsim serve") && !command.contains("--listen") {
            text += &format!(" --listen 127.0.0.1:{server}");
        }
        if command.starts_with("vc-scheduler -") && command.contains("--enable-metrics") {
            text += &format!(" --listen-address=127.0.0.1:{metrics}");
        }
        match self.beside.last() {
            Some((child, _)) => text.replace("$!", &child.id().unwrap_or_default().to_string()),
            None => text,
        }
    }

    /// A shell in the folder of the page.
    fn shell(&self, text: &str) -> Command {
        let programs = self.folder.join("target/release");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell
            .args(["-c", text])
            .current_dir(&self.folder)
            .env("PATH", format!("{}:{path}", programs.display()))
            .env("HOME", &self.folder)
            .env("KUBECONFIG", &self.shared.kubeconfig)
            .env("DEBUG_SOCKET_DIR", self.folder.join("tmp"))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        shell
    }

    async fn start(&mut self, command: &str) -> Result<(), String> {
        let mut shell = self.shell(&format!("exec {}", self.here(command)));
        let mut child = shell.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let guard = Guard::over(child.id().unwrap());
        let out = child.stdout.take().unwrap();
        self.beside.push((child, guard));
        if !command.starts_with("vcsim serve") {
            return Ok(());
        }
        // What comes next asks the server.
        let mut lines = BufReader::new(out).lines();
        let first = timeout(HANG, lines.next_line()).await;
        match first.map_err(|_| "it does not listen")?.map_err(|error| error.to_string())? {
            Some(line) if line.starts_with("listening on ") => Ok(()),
            other => Err(format!("it says {other:?}")),
        }
    }

    async fn finish(&mut self, command: &str) -> Result<String, String> {
        let output = timeout(HANG, self.shell(&self.here(command)).output()).await;
        let output = output.map_err(|_| "it does not end")?.map_err(|error| error.to_string())?;
        let reported = [output.stdout, output.stderr].concat();
        let reported = String::from_utf8_lossy(&reported).into_owned();
        match output.status.success() {
            true => Ok(reported),
            false => Err(format!("{}: {}", output.status, reported.trim())),
        }
    }
}

/// Two ports that nobody has at this moment.
fn free_ports() -> [u16; 2] {
    let listeners = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}
