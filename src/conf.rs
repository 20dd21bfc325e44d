//! The configuration file: read at the start, read again once a second, in force when it is good
//! and differs. The last good one stays. Specification: core.md 2.6 (C-10).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use vc_conf::{Config, Loaded, Warning};
use vc_engine::{Engine, KNOWN};
use vc_kube::{Incoming, Visit};

use crate::fatal::Fatal;
use crate::flags::Flags;
use crate::meter::Meter;

/// How often the file is read. A mounted ConfigMap changes by a swap of symlinks, which only its
/// content shows reliably.
const PERIOD: Duration = Duration::from_secs(1);

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{path}: {error}\nhint: give a readable file with --scheduler-conf")]
    Unreadable { path: String, error: std::io::Error },
    #[error("no configuration file\nhint: name one with --scheduler-conf")]
    Unnamed,
    #[error(transparent)]
    Invalid(#[from] vc_conf::ConfError),
}

/// Reads a configuration file as the scheduler does: its text, if it could be read, and what it
/// means.
pub fn load(path: &Path) -> (Option<String>, Result<Loaded, LoadError>) {
    if path.as_os_str().is_empty() {
        return (None, Err(LoadError::Unnamed));
    }
    let name = path.display().to_string();
    match std::fs::read_to_string(path) {
        Err(error) => (None, Err(LoadError::Unreadable { path: name, error })),
        Ok(text) => {
            let loaded = vc_conf::parse(&name, &text, &KNOWN).map_err(LoadError::from);
            (Some(text), loaded)
        }
    }
}

/// What is in force at the start.
#[derive(Debug)]
pub struct Start {
    pub config: Config,
    /// Of reading the file; the engine adds its own.
    pub warnings: Vec<Warning>,
    /// The file, as far as it could be read.
    text: Option<String>,
    /// Whether what is in force is the file.
    good: bool,
}

impl Start {
    /// The file could not be used: the built-in configuration stands in for it.
    pub(crate) fn is_default(&self) -> bool {
        !self.good
    }
}

/// Reads the file; a bad one means the built-in configuration unless that is forbidden.
///
/// # Errors
/// The file is bad and the default is not wanted.
pub fn start(flags: &Flags) -> Result<Start, Fatal> {
    let (text, loaded) = load(&flags.scheduler_conf);
    let good = loaded.is_ok();
    let loaded = match loaded {
        Ok(loaded) => {
            accepted(text.as_deref().unwrap_or_default());
            loaded
        }
        Err(error) if flags.strict_conf => return Err(error.into()),
        Err(error) => {
            tracing::error!("the built-in configuration is in force: {error}");
            let parsed = vc_conf::parse("built-in configuration", vc_conf::BUILT_IN, &KNOWN);
            parsed.map_err(LoadError::from)?
        }
    };
    let Loaded { config, warnings } = loaded;
    warn(&warnings);
    Ok(Start { config, warnings, text, good })
}

/// `--scheduler-conf` names a file of a directory that exists: the directory is what Volcano
/// watches.
///
/// # Errors
/// There is no such directory.
pub fn check_directory(flags: &Flags) -> Result<(), Fatal> {
    let parent = flags.scheduler_conf.parent();
    let Some(parent) = parent.filter(|parent| !parent.as_os_str().is_empty()) else {
        return Ok(());
    };
    match parent.is_dir() {
        true => Ok(()),
        false => Err(Fatal::NoDirectory(parent.to_owned())),
    }
}

fn accepted(text: &str) {
    tracing::info!(v = 2, "Successfully loaded Scheduler conf as follows:");
    text.lines().for_each(|line| tracing::info!(v = 2, "{line}"));
}

/// Says every warning.
pub(crate) fn warn(warnings: &[Warning]) {
    warnings.iter().for_each(|warning| tracing::warn!("configuration: {warning}"));
}

/// The file as it is followed while the process runs.
pub(crate) struct Follow {
    path: PathBuf,
    /// As last read; `None`: it could not be.
    seen: Option<String>,
    /// The last good one; `None`: the built-in configuration is in force.
    in_force: Option<String>,
    meter: Arc<Meter>,
}

impl Follow {
    pub(crate) fn new(flags: &Flags, start: &Start, meter: Arc<Meter>) -> Self {
        let seen = start.text.clone();
        let in_force = seen.clone().filter(|_| start.good);
        Self { path: flags.scheduler_conf.clone(), seen, in_force, meter }
    }

    /// Hands every good change to the engine, until nobody listens.
    pub(crate) async fn run(mut self, inbox: mpsc::Sender<Incoming>) {
        if self.path.as_os_str().is_empty() {
            return;
        }
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let path = self.path.clone();
            // A file system that hangs must not hold up anything else.
            let Ok(read) = tokio::task::spawn_blocking(move || load(&path)).await else { return };
            if let Some(visit) = self.changed(read)
                && inbox.send(Incoming::Visit(visit)).await.is_err()
            {
                return;
            }
        }
    }

    fn changed(&mut self, read: (Option<String>, Result<Loaded, LoadError>)) -> Option<Visit> {
        let (text, loaded) = read;
        if text == self.seen {
            return None;
        }
        self.seen = text;
        match loaded {
            Ok(_) if self.seen == self.in_force => {
                tracing::info!("the configuration is again what is in force");
                None
            }
            Ok(loaded) => {
                accepted(self.seen.as_deref().unwrap_or_default());
                warn(&loaded.warnings);
                self.in_force.clone_from(&self.seen);
                let meter = self.meter.clone();
                Some(Visit::change(move |engine| configure(engine, &loaded, &meter)))
            }
            Err(error) => {
                tracing::error!("the last good configuration stays in force: {error}");
                self.meter.metrics.reload_failure();
                None
            }
        }
    }
}

fn configure(engine: &mut Engine, loaded: &Loaded, meter: &Meter) {
    let warnings = engine.configure(&loaded.config);
    warn(&warnings);
    meter.config_warnings(loaded.warnings.len() + warnings.len());
    meter.metrics.default_in_force(false);
    tracing::info!("the new configuration is in force");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(args: &[&str]) -> Flags {
        Flags::parse(["vc-scheduler"].iter().chain(args).map(Into::into)).unwrap()
    }

    #[test]
    fn core_5_a_bad_file_falls_back_unless_that_is_forbidden() {
        let config = start(&flags(&[])).unwrap().config;
        assert_eq!(config.actions, ["enqueue", "allocate", "backfill"]);
        let names = |tier: usize| -> Vec<&str> {
            config.tiers[tier].plugins.iter().map(|plugin| plugin.name.as_str()).collect()
        };
        assert_eq!(names(0), ["priority", "gang", "conformance"]);
        assert_eq!(names(1), ["overcommit", "drf", "predicates", "proportion", "nodeorder"]);
        let unreadable = flags(&["--scheduler-conf=/does/not/exist"]);
        let instead = start(&unreadable).unwrap();
        assert!(instead.is_default());
        assert_eq!(instead.config, config);
        let error = check_directory(&unreadable).unwrap_err();
        assert_eq!(error.code(), 2);
        assert!(error.to_string().starts_with("/does/not: no such directory\nhint: "), "{error}");
        let strict = flags(&["--disable-default-scheduler-config"]);
        let error = start(&strict).unwrap_err();
        assert_eq!(error.code(), 255);
        let text = error.to_string();
        assert!(text.starts_with("configuration: no configuration file\nhint: "), "{text}");
    }

    /// A file in a directory of its own.
    fn file(name: &str, text: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("vc-conf-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("volcano-scheduler.conf");
        std::fs::write(&path, text).unwrap();
        path
    }

    const ONE: &str = "actions: \"allocate\"\ntiers:\n- plugins:\n  - name: gang\n";
    const OTHER: &str = "actions: \"allocate, backfill\"\ntiers:\n- plugins:\n  - name: gang\n";

    fn failures(meter: &Meter) -> u64 {
        let text = meter.metrics.encode();
        let mut lines = text.lines();
        let value =
            lines.find_map(|line| line.strip_prefix("volcano_config_reload_failures_total "));
        value.unwrap().parse().unwrap()
    }

    #[test]
    fn core_11_only_a_good_change_reaches_the_engine() {
        let path = file("change", ONE);
        let flags = flags(&["--scheduler-conf", path.to_str().unwrap()]);
        let first = start(&flags).unwrap();
        assert!(!first.is_default());
        let meter = Arc::new(Meter::default());
        meter.metrics.default_in_force(true);
        let mut follow = Follow::new(&flags, &first, meter.clone());
        let (mut engine, _) = Engine::new(Default::default(), &first.config);
        // What is written, whether the engine is told, failures so far.
        let steps = [
            (ONE, false, 0),
            ("actions: \"elect\"", false, 1),
            ("actions: \"elect\"", false, 1),
            (ONE, false, 1),
            ("tiers: [", false, 2),
            (OTHER, true, 2),
            (OTHER, false, 2),
        ];
        for (text, told, n_failures) in steps {
            std::fs::write(&path, text).unwrap();
            let visit = follow.changed(load(&path));
            assert_eq!(visit.is_some(), told, "{text}");
            assert_eq!(failures(&meter), n_failures, "{text}");
            if let Some(visit) = visit {
                visit.pay(&mut engine);
                let text = meter.metrics.encode();
                assert!(text.contains("\nvolcano_config_default_in_force 0\n"), "{text}");
            }
        }
        std::fs::remove_file(&path).unwrap();
        assert!(follow.changed(load(&path)).is_none());
        assert!(follow.changed(load(&path)).is_none());
        assert_eq!(failures(&meter), 3);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
