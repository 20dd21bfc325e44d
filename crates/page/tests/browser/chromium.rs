//! The browser: found on the machine, started once for all parts.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chromiumoxide::{Browser, BrowserConfig};
use futures::StreamExt;
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// Names of programs that speak the DevTools protocol. `tests/browser/install.sh` has them too.
const PROGRAMS: &[&str] = &["chromium", "chromium-browser", "google-chrome"];
/// Time in which a browser starts on a machine that has much else to do.
const LONGEST_START: Duration = Duration::from_secs(60);

/// Returns the first program of `PROGRAMS` that is on the PATH. Returns `None` if none is.
pub(crate) fn find_program() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let mut files = PROGRAMS.iter().flat_map(|name| folders.iter().map(move |it| it.join(name)));
    files.find(|file| file.is_file())
}

/// A browser without windows, with a profile of its own.
pub(crate) struct Chromium {
    pub(crate) browser: Browser,
    /// The task that moves messages between the browser and the tabs.
    messages: JoinHandle<()>,
    _profile: TempDir,
}

impl Chromium {
    pub(crate) async fn launch(program: &Path) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let config = BrowserConfig::builder()
            .chrome_executable(program)
            .no_sandbox()
            .viewport(None)
            .user_data_dir(profile.path())
            .launch_timeout(LONGEST_START)
            .arg("disable-gpu");
        let launched = Browser::launch(config.build().unwrap()).await;
        let (browser, mut handler) = launched.unwrap_or_else(|error| {
            panic!("{} does not start: {error}", program.display());
        });
        let messages = tokio::spawn(async move { while handler.next().await.is_some() {} });
        Self { browser, messages, _profile: profile }
    }

    pub(crate) async fn close(mut self) {
        self.browser.close().await.unwrap();
        self.browser.wait().await.unwrap();
        self.messages.abort();
    }
}
