//! The binary as a child process, whose log is read line by line: what a test waits for is a line.

use std::collections::BTreeSet;
use std::fs::DirEntry;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, Lines,
};
use tokio::net::TcpStream;
use tokio::process::{Child as Process, ChildStderr, Command};
use tokio::time::timeout;

use crate::cluster::HANG;
use crate::guard::Guard;

pub(crate) struct Child {
    process: Process,
    log: Lines<BufReader<ChildStderr>>,
    _guard: Guard,
}

impl Child {
    /// `sockets` is where the log level socket goes.
    pub(crate) fn start(args: &[&str], sockets: &Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_vc-scheduler"))
            .args(args)
            .env("DEBUG_SOCKET_DIR", sockets)
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let log = BufReader::new(process.stderr.take().unwrap()).lines();
        let guard = Guard::over(process.id().unwrap());
        Self { process, log, _guard: guard }
    }

    /// What follows `text` in the first line that has it.
    pub(crate) async fn says(&mut self, text: &str) -> String {
        let lines = self.lines_until(text).await;
        let (_, rest) = lines.last().and_then(|line| line.split_once(text)).unwrap();
        rest.to_owned()
    }

    /// The lines to the first one that has `text`.
    pub(crate) async fn lines_until(&mut self, text: &str) -> Vec<String> {
        let search = async {
            let mut lines = Vec::new();
            while let Some(line) = self.log.next_line().await.unwrap() {
                let is_wanted = line.contains(text);
                lines.push(line);
                if is_wanted {
                    return lines;
                }
            }
            panic!("it has ended without a word of {text:?}");
        };
        timeout(HANG, search).await.unwrap_or_else(|_| panic!("it never says {text:?}"))
    }

    /// The lines to its end.
    pub(crate) async fn rest(mut self) -> Vec<String> {
        let read = async {
            let mut lines = Vec::new();
            while let Some(line) = self.log.next_line().await.unwrap() {
                lines.push(line);
            }
            lines
        };
        timeout(HANG, read).await.expect("it ends")
    }

    /// Where it serves that.
    pub(crate) async fn address(&mut self, purpose: &str) -> SocketAddr {
        self.says(&format!("serving {purpose} on ")).await.parse().unwrap()
    }

    /// Returns the names of its threads.
    pub(crate) fn threads(&self) -> BTreeSet<String> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.process.id().unwrap()));
        // A thread may end while they are read.
        let name = |entry: io::Result<DirEntry>| {
            std::fs::read_to_string(entry.ok()?.path().join("comm")).ok()
        };
        threads.unwrap().filter_map(name).map(|name| name.trim_end().to_owned()).collect()
    }

    pub(crate) async fn signal(&self, name: &str) {
        let pid = self.process.id().unwrap().to_string();
        let sent = Command::new("kill").args([name, &pid]).status().await.unwrap();
        assert!(sent.success());
    }

    pub(crate) async fn ended(mut self) -> ExitStatus {
        timeout(HANG, self.process.wait()).await.unwrap().unwrap()
    }
}

/// Status and body of a GET over HTTP.
pub(crate) async fn get(address: SocketAddr, path: &str) -> (u16, Vec<u8>) {
    let stream = TcpStream::connect(address).await.unwrap();
    ask(stream, path).await.unwrap()
}

/// Likewise over any connection.
pub(crate) async fn ask(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    path: &str,
) -> io::Result<(u16, Vec<u8>)> {
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut answer = Vec::new();
    timeout(HANG, stream.read_to_end(&mut answer)).await.expect("an answer ends")?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("{path}: {} bytes without a head", answer.len()));
    let code = std::str::from_utf8(&answer[9..12]).unwrap().parse().unwrap();
    Ok((code, answer.split_off(end + 4)))
}
