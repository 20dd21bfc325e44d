//! Ends a child process when the test process is gone, however it ended: kill_on_drop does nothing
//! for a test that is killed itself.

use std::process::{Child, Command, Stdio};

/// A shell that waits for the end of its stdin, which is held open by the test process alone.
pub(crate) struct Guard(Child);

impl Guard {
    /// Watches over the process of that id.
    pub(crate) fn over(pid: u32) -> Self {
        let script = format!("read -r _ || kill -KILL {pid}");
        let shell = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(shell.unwrap())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Before its stdin is closed: the id may belong to another process by now.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
