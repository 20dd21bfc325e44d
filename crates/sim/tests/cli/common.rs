//! Runs the `vcsim` binary over files of a test.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// What a call printed, and its exit code.
pub(crate) struct Called {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl Called {
    /// The result of `-o json`.
    pub(crate) fn json(&self) -> Value {
        let problem = |error| panic!("{error}: {}{}", self.stdout, self.stderr);
        serde_json::from_str(&self.stdout).unwrap_or_else(problem)
    }
}

/// Calls `vcsim`.
pub(crate) fn vcsim(arguments: &[&str]) -> Called {
    vcsim_with_input(arguments, "")
}

/// Calls `vcsim` with this on standard input.
pub(crate) fn vcsim_with_input(arguments: &[&str], input: &str) -> Called {
    let mut child = Command::new(env!("CARGO_BIN_EXE_vcsim"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A call that fails early does not read its input.
    let _unread = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Called {
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        code: output.status.code().unwrap(),
    }
}

/// An empty folder for the test of this name.
pub(crate) fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _absent = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Writes a file of the test and returns its path.
pub(crate) fn file(test: &str, name: &str, text: &str) -> String {
    let path = folder(test).join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}
