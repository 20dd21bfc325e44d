//! The mounted configuration file of a process, and what a life of the process must make of it (I9).

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use vc_conf::Config;
use vc_daemon::ConfigFiles;

use super::configs;
use super::process::ProcessSetup;

/// Path of the file.
pub(super) const CONFIG_PATH: &str = "/volcano.scheduler/volcano-scheduler.conf";
/// Time within which a good file that was read is in force. The engine may wait for its writes so long.
const SETTLED: Duration = Duration::from_secs(60);

/// The file as it is mounted. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct ConfigFile(Arc<Mutex<&'static str>>);

impl ConfigFile {
    pub(super) fn new(text: &'static str) -> Self {
        Self(Arc::new(Mutex::new(text)))
    }

    pub(super) fn write(&self, text: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn text(&self) -> &'static str {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file as one life of a process reads it. Clones share what was read.
#[derive(Clone)]
pub(super) struct MountedConfig {
    /// The life.
    name: Arc<str>,
    setup: ProcessSetup,
    read: Arc<Mutex<ConfigRead>>,
}

/// What a life has read.
struct ConfigRead {
    /// The text that was read last. `None`: none was.
    last: Option<String>,
    /// The last good text. `None`: there was none.
    good: Option<String>,
    /// What must be in force: the last good file that was read, else the built-in one.
    expected: Config,
    /// When that was read.
    since: Instant,
}

impl MountedConfig {
    pub(super) fn new(name: &str, setup: &ProcessSetup) -> Self {
        let built_in = configs::read(vc_conf::BUILT_IN);
        let expected = built_in.expect("the built-in configuration is good").config;
        let read = ConfigRead { last: None, good: None, expected, since: Instant::now() };
        Self { name: name.into(), setup: setup.clone(), read: Arc::new(Mutex::new(read)) }
    }

    fn text(&self) -> String {
        let text = match self.setup.strikes_starts {
            true => configs::with_sources(self.setup.config.text()),
            false => self.setup.config.text().to_owned(),
        };
        let text = if self.setup.keeps_usage { configs::with_usage(&text) } else { text };
        let text = if self.setup.has_networks { configs::with_networks(&text) } else { text };
        if self.setup.has_gpus { configs::with_gpus(&text) } else { text }
    }

    /// I9: what is in force is the last good file.
    pub(super) fn fault(&self, in_force: &Config) -> Option<String> {
        let read = self.lock();
        let is_it = read.expected == *in_force || Instant::now() < read.since + SETTLED;
        let name = &self.name;
        (!is_it).then(|| format!("I9: {name}: not the last good configuration is in force"))
    }

    fn lock(&self) -> MutexGuard<'_, ConfigRead> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConfigRead {
    /// Takes in what the file says. True: it is good and another one than the last good one.
    fn take_in(&mut self, text: &str) -> bool {
        if self.last.as_deref() == Some(text) {
            return false;
        }
        self.last = Some(text.to_owned());
        let Ok(loaded) = configs::read(text) else { return false };
        let is_new = self.good.as_deref() != Some(text);
        if is_new {
            self.good = Some(text.to_owned());
            (self.expected, self.since) = (loaded.config, Instant::now());
        }
        is_new
    }
}

impl ConfigFiles for MountedConfig {
    fn read(&self, path: &Path) -> io::Result<String> {
        if path != Path::new(CONFIG_PATH) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let text = self.text();
        self.lock().take_in(&text);
        Ok(text)
    }

    /// Reads the file while the process leads.
    async fn read_aside(&self, path: &Path) -> Option<io::Result<String>> {
        let is_new = path == Path::new(CONFIG_PATH) && self.lock().take_in(&self.text());
        if is_new {
            self.setup.trace.say(format_args!("{}: has a new configuration", self.name));
            self.setup.network.has_new_configuration();
            self.setup.findings.forget_eviction_turns();
        }
        Some(self.read(path))
    }

    fn is_directory(&self, path: &Path) -> bool {
        Path::new(CONFIG_PATH).parent() == Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn another_configuration_than_the_last_good_one_is_found() {
        let expected = |text: &str| configs::read(text).unwrap().config;
        let mut read = ConfigRead {
            last: None,
            good: None,
            expected: expected(vc_conf::BUILT_IN),
            since: Instant::now(),
        };
        assert!(!read.take_in(configs::BAD[0]));
        assert_eq!(read.expected, expected(vc_conf::BUILT_IN));
        assert!(read.take_in(configs::GOOD[1]) && !read.take_in(configs::GOOD[1]));
        assert!(!read.take_in(configs::BAD[0]) && !read.take_in(configs::GOOD[1]));
        assert_eq!(read.expected, expected(configs::GOOD[1]));
        assert!(read.take_in(configs::GOOD[2]));
        assert_eq!(read.expected, expected(configs::GOOD[2]));
    }
}
