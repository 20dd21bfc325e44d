//! The scheduler of the demo: `vc-scheduler` as a process of its own, which knows the embedded API
//! server by its address only. Flags: core.md 1.1.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use tokio::process::{Child, Command};

use super::DemoError;

const PROGRAM: &str = "vc-scheduler";
/// Lines of its log that are shown when it fails.
const TAIL_LINES: usize = 15;

/// How to start it.
pub(super) struct SchedulerStart<'a> {
    /// Of the API server.
    pub(super) url: &'a str,
    /// The program; absent, the one beside the running program.
    pub(super) program: Option<&'a Path>,
    /// A configuration file; absent, the text below.
    pub(super) configuration: Option<&'a Path>,
    /// The configuration of the workload.
    pub(super) default_configuration: &'a str,
    pub(super) verbosity: u8,
    /// Where its files go; made here, removed at the end unless `keep_files`.
    pub(super) directory: PathBuf,
    pub(super) keep_files: bool,
}

/// The running child. It ends with this value.
pub(super) struct DemoScheduler {
    child: Child,
    directory: PathBuf,
    keep_files: bool,
    /// For messages.
    pub(super) pid: u32,
}

impl DemoScheduler {
    pub(super) fn start(start: SchedulerStart<'_>) -> Result<DemoScheduler, DemoError> {
        let program = find(start.program)?;
        let directory = start.directory;
        let unwritten = |error| DemoError::Directory { path: directory.clone(), error };
        fs::create_dir_all(&directory).map_err(unwritten)?;
        let log = File::create(directory.join("stderr.log")).map_err(unwritten)?;
        let configuration = match start.configuration {
            Some(path) => path.to_owned(),
            None => {
                let path = directory.join("volcano-scheduler.conf");
                fs::write(&path, start.default_configuration).map_err(unwritten)?;
                path
            }
        };
        let spawned = Command::new(&program)
            .arg("--master")
            .arg(start.url)
            .arg("--scheduler-conf")
            .arg(configuration)
            .arg(format!("-v={}", start.verbosity))
            .args(["--leader-elect=false", "--schedule-period=500ms"])
            .args(["--enable-answers", "--answers-auth=off", "--answers-address=127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            // Ctrl-C in the terminal is for the demo, which ends its child itself.
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let child = spawned.map_err(|error| DemoError::Start { path: program, error })?;
        let pid = child.id().unwrap_or_default();
        Ok(DemoScheduler { child, directory, keep_files: start.keep_files, pid })
    }

    /// What it wrote to stderr.
    pub(super) fn log(&self) -> PathBuf {
        self.directory.join("stderr.log")
    }

    /// Returns the address of its page. Returns `None` if there is none.
    pub(super) fn page(&self) -> Option<String> {
        let log = fs::read_to_string(self.log()).ok()?;
        let (_, rest) = log.split_once("serving answers on ")?;
        let address = rest.split_whitespace().next()?;
        Some(format!("http://{address}/ui/"))
    }

    /// Waits for its end. May be dropped and called again.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// What its end means: it should not have ended yet.
    pub(super) fn failure(&self, ended: io::Result<ExitStatus>) -> DemoError {
        match ended {
            Ok(status) => DemoError::Ended { status, tail: self.tail() },
            Err(error) => DemoError::Lost(error),
        }
    }

    /// The end of its log.
    pub(super) fn tail(&self) -> String {
        let text = fs::read(self.log()).unwrap_or_default();
        tail(&String::from_utf8_lossy(&text))
    }

    /// Ends it and returns when it has gone.
    pub(super) async fn stop(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        let _gone = self.child.kill().await;
    }
}

impl Drop for DemoScheduler {
    fn drop(&mut self) {
        if !self.keep_files {
            // A left over file in the directory for temporary ones is no reason to fail.
            let _left = fs::remove_dir_all(&self.directory);
        }
    }
}

fn find(given: Option<&Path>) -> Result<PathBuf, DemoError> {
    let beside = || {
        let own = std::env::current_exe().unwrap_or_default();
        own.with_file_name(format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX))
    };
    let path = given.map_or_else(beside, Path::to_owned);
    if path.is_file() { Ok(path) } else { Err(DemoError::Missing(path)) }
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_a_log() {
        let text: String = (0..20).map(|line| format!("line {line}\n")).collect();
        let shown = tail(&text);
        assert!(shown.starts_with("line 5\n") && shown.ends_with("line 19"), "{shown}");
        assert_eq!(tail(""), "");
    }

    #[test]
    fn a_missing_program_is_named_with_a_way_out() {
        let text = find(Some(Path::new("/nowhere/vc-scheduler"))).unwrap_err().to_string();
        assert!(text.starts_with("scheduler not found: /nowhere/vc-scheduler\nhint: "), "{text}");
    }
}
