//! The configuration file: read at the start, read again once a second, in force when it is good
//! and differs. The last good one stays. Specification: core.md 2.6 (C-10).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval};
use vc_conf::{AllowMissing, ConfigChange, ConfigInForce, LoadedConfig, MissingError, Warning};
use vc_engine::{EngineCommand, KNOWN};
use vc_kube::{DeviceReportSource, EngineMessage, EngineVisit, LoadSource};
use vc_model::ClusterEvent;

use crate::device_config::{self, DeviceConfigReader};
use crate::device_reports;
use crate::fatal::Fatal;
use crate::flags::Flags;
use crate::host::ConfigFiles;
use crate::loads::{self, source_in_force};
use crate::meter::Meter;
use crate::saved_usage::UsageReader;

/// How often the file is read. A mounted ConfigMap changes by a swap of symlinks, which only its
/// content shows reliably.
const PERIOD: Duration = Duration::from_secs(1);

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigLoadError {
    #[error("{path}: {error}\nhint: give a readable file with --scheduler-conf")]
    Unreadable { path: String, error: std::io::Error },
    #[error("no configuration file\nhint: name one with --scheduler-conf")]
    Unnamed,
    #[error(transparent)]
    Invalid(#[from] vc_conf::ConfError),
    /// What it names would restrict and is not built (core.md C-40).
    #[error(transparent)]
    Missing(#[from] MissingError),
}

/// Reads a configuration file as the scheduler does: its text, if it could be read, and what it
/// means. What is missing in it is not judged.
pub fn parse(files: &impl ConfigFiles, path: &Path) -> ParsedFile {
    match path.as_os_str().is_empty() {
        true => (None, Err(ConfigLoadError::Unnamed)),
        false => parse_text(path, files.read(path)),
    }
}

/// The text of a configuration file, if it could be read, and what it means.
pub type ParsedFile = (Option<String>, Result<LoadedConfig, ConfigLoadError>);

fn parse_text(path: &Path, read: io::Result<String>) -> ParsedFile {
    let name = path.display().to_string();
    match read {
        Err(error) => (None, Err(ConfigLoadError::Unreadable { path: name, error })),
        Ok(text) => {
            let loaded = vc_conf::parse(&name, &text, &KNOWN).map_err(ConfigLoadError::from);
            (Some(text), loaded)
        }
    }
}

/// Reads a configuration file, and refuses what names something of Volcano that is not built.
fn load(files: &impl ConfigFiles, path: &Path, allowed: &AllowMissing) -> ParsedFile {
    admit(parse(files, path), path, allowed)
}

fn admit((text, parsed): ParsedFile, path: &Path, allowed: &AllowMissing) -> ParsedFile {
    let name = path.display().to_string();
    (text, parsed.and_then(|loaded| Ok(loaded.admit(&name, allowed)?)))
}

/// A file that can be used.
#[derive(Clone, Debug)]
pub struct UsableConfig {
    text: String,
    loaded: LoadedConfig,
}

/// What is in force when this process begins to schedule.
#[derive(Debug)]
pub struct StartConfig {
    /// The warnings are those of reading the file; the engine adds its own.
    pub loaded: LoadedConfig,
    /// The file, as far as it could be read.
    text: Option<String>,
    /// The file whose configuration is in force; `None`: the built-in one is.
    in_force: Option<String>,
}

impl StartConfig {
    /// The file could not be used: the built-in configuration stands in for it.
    pub(crate) fn is_default(&self) -> bool {
        self.in_force.is_none()
    }

    /// The file is bad by now: that of the process's start is in force.
    pub(crate) fn is_last_good(&self) -> bool {
        self.in_force.is_some() && self.in_force != self.text
    }
}

/// Reads the file before anything else is done, so that a new version that cannot do what the file
/// asks for ends here, and a rolling update stops. `None`: the file cannot be used, and the built-in
/// configuration may stand in for it.
///
/// # Errors
/// The file names something of Volcano that is not built, or it is bad and the built-in
/// configuration is not wanted.
pub fn before_start(
    files: &impl ConfigFiles,
    flags: &Flags,
) -> Result<Option<UsableConfig>, Fatal> {
    match load(files, &flags.scheduler_conf, &flags.allow_missing) {
        (text, Ok(loaded)) => Ok(Some(UsableConfig { text: text.unwrap_or_default(), loaded })),
        (_, Err(error)) if flags.strict_conf || matches!(error, ConfigLoadError::Missing(_)) => {
            Err(error.into())
        }
        _ => Ok(None),
    }
}

/// Reads the file when this process begins to schedule. In place of a bad one that of the process's
/// start is in force, else the built-in configuration, unless that is forbidden.
///
/// # Errors
/// The file cannot be used, and neither can anything in its place.
pub fn start(
    files: &impl ConfigFiles,
    flags: &Flags,
    before: Option<&UsableConfig>,
) -> Result<StartConfig, Fatal> {
    let (text, loaded) = load(files, &flags.scheduler_conf, &flags.allow_missing);
    let start = match (loaded, before) {
        (Ok(loaded), _) => {
            accepted(text.as_deref().unwrap_or_default(), &loaded.config);
            StartConfig { loaded, in_force: text.clone(), text }
        }
        (Err(error), _) if flags.strict_conf => return Err(error.into()),
        (Err(error), Some(UsableConfig { text: good, loaded })) => {
            tracing::error!("the last good configuration stays in force: {error}");
            StartConfig { loaded: loaded.clone(), in_force: Some(good.clone()), text }
        }
        (Err(error @ ConfigLoadError::Missing(_)), None) => return Err(error.into()),
        (Err(error), None) => {
            tracing::error!("the built-in configuration is in force: {error}");
            let parsed = vc_conf::parse("built-in configuration", vc_conf::BUILT_IN, &KNOWN);
            StartConfig { loaded: parsed.map_err(ConfigLoadError::from)?, in_force: None, text }
        }
    };
    say(&start.loaded, &flags.scheduler_conf);
    Ok(start)
}

/// `--scheduler-conf` names a file of a directory that exists: the directory is what Volcano
/// watches.
///
/// # Errors
/// There is no such directory.
pub fn check_directory(files: &impl ConfigFiles, flags: &Flags) -> Result<(), Fatal> {
    let parent = flags.scheduler_conf.parent();
    let Some(parent) = parent.filter(|parent| !parent.as_os_str().is_empty()) else {
        return Ok(());
    };
    match files.is_directory(parent) {
        true => Ok(()),
        false => Err(Fatal::NoDirectory(parent.to_owned())),
    }
}

fn accepted(text: &str, config: &vc_conf::Config) {
    tracing::info!(v = 2, "Successfully loaded Scheduler conf as follows:");
    let lines = vc_conf::lines_without_secrets(text, config);
    lines.iter().for_each(|line| tracing::info!(v = 2, "{line}"));
}

/// Says what is missing in a configuration that is put in force, every warning, which caches it
/// switches off, and what each costs.
fn say(loaded: &LoadedConfig, path: &Path) {
    let name = path.display().to_string();
    for missing in &loaded.missing {
        tracing::error!("configuration: {}", missing.in_file(&name));
    }
    warn(&loaded.warnings);
    loads::warning(&loaded.config).iter().for_each(|warning| {
        tracing::warn!("configuration: {warning}");
    });
    for cache in vc_engine::caches_off(&loaded.config) {
        tracing::info!("configuration: a cache is switched off: {cache}");
    }
}

/// Says every warning.
pub(crate) fn warn(warnings: &[Warning]) {
    warnings.iter().for_each(|warning| tracing::warn!("configuration: {warning}"));
}

/// The file as it is followed while the process runs.
pub(crate) struct ConfigFollower<F> {
    files: F,
    path: PathBuf,
    allowed: AllowMissing,
    in_force: ConfigInForce,
    /// The load source in force.
    loads: watch::Sender<Option<LoadSource>>,
    reports: watch::Sender<Option<DeviceReportSource>>,
    /// The content of the ConfigMap with the device configuration.
    devices: Option<String>,
    meter: Arc<Meter>,
}

impl<F: ConfigFiles> ConfigFollower<F> {
    pub(crate) fn new(
        files: F,
        flags: &Flags,
        start: &StartConfig,
        devices: Option<String>,
        meter: Arc<Meter>,
    ) -> Self {
        let (path, allowed) = (flags.scheduler_conf.clone(), flags.allow_missing.clone());
        let (seen, text) = (start.text.clone(), start.in_force.clone());
        let in_force = ConfigInForce::new(seen, text, start.loaded.clone());
        let loads = watch::Sender::new(source_in_force(&start.loaded.config));
        let reports = watch::Sender::new(device_reports::source(&start.loaded.config));
        Self { files, path, allowed, in_force, loads, reports, devices, meter }
    }

    /// The load source of the configuration in force, now and after a change.
    pub(crate) fn load_source(&self) -> watch::Receiver<Option<LoadSource>> {
        self.loads.subscribe()
    }

    /// Who reports Ascend chips for the configuration in force, now and after a change.
    pub(crate) fn report_source(&self) -> watch::Receiver<Option<DeviceReportSource>> {
        self.reports.subscribe()
    }

    /// Hands every good change to the engine, until nobody listens.
    pub(crate) async fn run(
        mut self,
        inbox: mpsc::Sender<EngineMessage>,
        mut reader: DeviceConfigReader,
        mut usages: UsageReader,
    ) {
        if self.path.as_os_str().is_empty() {
            return;
        }
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = None;
        loop {
            ticks.tick().await;
            let Some(read) = self.files.read_aside(&self.path).await else { return };
            let read = self.parse_changed(read, last.as_deref());
            last.clone_from(&read.0);
            let known = &self.in_force.loaded().config;
            let newest = read.1.as_ref().map_or(known, |loaded| &loaded.config);
            let devices = reader.read(newest).await;
            let usage = usages.read(newest).await;
            if let Some(visit) = self.changed(read, devices, usage)
                && inbox.send(EngineMessage::Visit(visit)).await.is_err()
            {
                return;
            }
            if let Some(usage) = usages.read_late().await
                && inbox.send(EngineMessage::Event(usage)).await.is_err()
            {
                return;
            }
        }
    }

    /// Returns what the file means. A file that says what it said before is not parsed again: with
    /// it comes what is in force, also if it was bad, since `ConfigInForce::read` knows the text.
    fn parse_changed(&self, read: io::Result<String>, last: Option<&str>) -> ParsedFile {
        match read {
            Ok(text) if last == Some(text.as_str()) => {
                (Some(text), Ok(self.in_force.loaded().clone()))
            }
            read => admit(parse_text(&self.path, read), &self.path, &self.allowed),
        }
    }

    /// Returns what makes a good change of the file, or of the device configuration, known to the
    /// engine. `usage`: what was read for this file, if it keeps usage.
    fn changed(
        &mut self,
        read: ParsedFile,
        devices: Option<String>,
        usage: Option<ClusterEvent>,
    ) -> Option<EngineVisit> {
        let has_other_devices = devices != self.devices;
        self.devices = devices;
        let has_other_file = self.has_changed(read);
        if has_other_devices && !has_other_file {
            tracing::info!("the device configuration has changed");
        }
        (has_other_devices || has_other_file).then(|| {
            let (loaded, devices) = (self.in_force.loaded().clone(), self.devices.clone());
            let meter = self.meter.clone();
            let config = device_config::merged(&loaded.config, devices.as_deref());
            let commands = vec![
                EngineCommand::Apply(usage.into_iter().collect()),
                EngineCommand::Configure(Box::new(config.into_owned())),
            ];
            EngineVisit::change(commands, move |warnings| configured(&loaded, &warnings, &meter))
        })
    }

    /// True if the file is good, and another one than is in force.
    fn has_changed(&mut self, read: ParsedFile) -> bool {
        let (text, loaded) = read;
        match self.in_force.read(text, loaded) {
            ConfigChange::Unchanged => false,
            ConfigChange::Again => {
                tracing::info!("the configuration is again what is in force");
                false
            }
            ConfigChange::Accepted => {
                let loaded = self.in_force.loaded();
                accepted(self.in_force.text().unwrap_or_default(), &loaded.config);
                say(loaded, &self.path);
                let config = &loaded.config;
                self.loads.send_if_modified(|known| replace(known, source_in_force(config)));
                self.reports
                    .send_if_modified(|known| replace(known, device_reports::source(config)));
                true
            }
            ConfigChange::Refused(error) => {
                tracing::error!("the last good configuration stays in force: {error}");
                self.meter.metrics.reload_failure();
                false
            }
        }
    }
}

/// Returns true if the new value is another one.
fn replace<T: PartialEq>(known: &mut T, new: T) -> bool {
    let is_another = *known != new;
    *known = new;
    is_another
}

fn configured(loaded: &LoadedConfig, warnings: &[Warning], meter: &Meter) {
    warn(warnings);
    meter.configuration(loaded, warnings.len());
    meter.metrics.default_in_force(false);
    tracing::info!("the new configuration is in force");
}

#[cfg(test)]
mod tests {
    use vc_engine::Engine;

    use super::*;
    use crate::logged::logged;

    /// The files of this machine.
    #[derive(Clone)]
    struct Disk;

    impl ConfigFiles for Disk {
        fn read(&self, path: &Path) -> io::Result<String> {
            std::fs::read_to_string(path)
        }

        async fn read_aside(&self, path: &Path) -> Option<io::Result<String>> {
            Some(self.read(path))
        }

        fn is_directory(&self, path: &Path) -> bool {
            path.is_dir()
        }
    }

    fn flags(args: &[&str]) -> Flags {
        Flags::parse(["vc-scheduler"].iter().chain(args).map(Into::into)).unwrap()
    }

    #[test]
    fn core_5_a_bad_file_falls_back_unless_that_is_forbidden() {
        let config = start(&Disk, &flags(&[]), None).unwrap().loaded.config;
        assert_eq!(config.actions, ["enqueue", "allocate", "backfill"]);
        let names = |tier: usize| -> Vec<&str> {
            config.tiers[tier].plugins.iter().map(|plugin| plugin.name.as_str()).collect()
        };
        assert_eq!(names(0), ["priority", "gang", "conformance"]);
        assert_eq!(names(1), ["overcommit", "drf", "predicates", "proportion", "nodeorder"]);
        let unreadable = flags(&["--scheduler-conf=/does/not/exist"]);
        assert!(before_start(&Disk, &unreadable).unwrap().is_none());
        let instead = start(&Disk, &unreadable, None).unwrap();
        assert!(instead.is_default());
        assert_eq!(instead.loaded.config, config);
        let error = check_directory(&Disk, &unreadable).unwrap_err();
        assert_eq!(error.code(), 2);
        assert!(error.to_string().starts_with("/does/not: no such directory\nhint: "), "{error}");
        let strict = flags(&["--disable-default-scheduler-config"]);
        assert_eq!(before_start(&Disk, &strict).unwrap_err().code(), 255);
        let error = start(&Disk, &strict, None).unwrap_err();
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

    const UNKNOWN: &str = "actions: \"allocate\"\ntiers:\n- plugins:\n  - name: magic\n";

    #[test]
    fn c40_an_unknown_plugin_is_skipped_and_shown() {
        let path = file("unknown", UNKNOWN);
        let path_flag = ["--scheduler-conf", path.to_str().unwrap()];
        let meter = Meter::default();
        let is_shown = |flags: &Flags| {
            let first = start(&Disk, flags, None).unwrap();
            assert_eq!(first.loaded.config.tiers[0].plugins.len(), 0);
            meter.configuration(&first.loaded, 0);
            meter.metrics.encode().contains("volcano_config_unknown_plugins{plugin=\"magic\"} 1")
        };
        assert!(is_shown(&flags(&path_flag)));
        assert!(!is_shown(&flags(&[&path_flag[..], &["--allow-missing-plugins=magic"]].concat())));
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }

    #[test]
    fn caches_that_are_switched_off_are_logged_once_at_the_start_and_at_a_reload() {
        const LEVEL: &str = "actions: \"allocate\"\ntiers:\n- plugins:\n  - name: capacity\n    \
            enableHierarchy: true\n    arguments: {ancestorReclaimLevel: 1}\n";
        let reclaim = "plugin capacity with ancestorReclaimLevel: votes about victims are not \
            kept: each search in another state asks for the candidates of every node anew";
        let order = "plugin capacity with enableHierarchy: the order of queues is not kept: the \
            next queue is found by comparing all queues";
        let path = file("caches", LEVEL);
        let flags = flags(&["--scheduler-conf", path.to_str().unwrap()]);
        let mut follow = None;
        let at_start = logged(|| {
            let first = start(&Disk, &flags, None).unwrap();
            follow =
                Some(ConfigFollower::new(Disk, &flags, &first, None, Arc::new(Meter::default())));
        });
        let mut follow = follow.unwrap();
        let mut reload = |text: &str| {
            std::fs::write(&path, text).unwrap();
            logged(|| drop(follow.changed(load(&Disk, &path, &AllowMissing::Nothing), None, None)))
        };
        let same = reload(LEVEL);
        let without = reload(ONE);
        let again = reload(LEVEL);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        let costs = |lines: &[String]| -> Vec<String> {
            let said = |line: &String| {
                line.split_once("a cache is switched off: ").map(|it| it.1.to_owned())
            };
            lines.iter().filter_map(said).collect()
        };
        for lines in [at_start, again] {
            let costs = costs(&lines);
            for wanted in [reclaim, order] {
                assert_eq!(costs.iter().filter(|cost| *cost == wanted).count(), 1, "{costs:#?}");
            }
        }
        assert_eq!((costs(&same), costs(&without)), (Vec::new(), Vec::new()));
    }

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
        let first = start(&Disk, &flags, None).unwrap();
        assert!(!first.is_default());
        let meter = Arc::new(Meter::default());
        meter.metrics.default_in_force(true);
        let mut follow = ConfigFollower::new(Disk, &flags, &first, None, meter.clone());
        let (mut engine, _) = Engine::new(Default::default(), &first.loaded.config);
        // What is written, whether the engine is told, failures so far.
        let steps = [
            (ONE, false, 0),
            ("actions: \"elect\"", false, 1),
            ("actions: \"elect\"", false, 1),
            (ONE, false, 1),
            ("tiers: [", false, 2),
            ("actions: \"fly\"", false, 3),
            (OTHER, true, 3),
            (OTHER, false, 3),
        ];
        for (text, reported, n_failures) in steps {
            std::fs::write(&path, text).unwrap();
            let visit = follow.changed(load(&Disk, &path, &AllowMissing::Nothing), None, None);
            assert_eq!(visit.is_some(), reported, "{text}");
            assert_eq!(failures(&meter), n_failures, "{text}");
            if let Some(visit) = visit {
                visit.pay(&mut engine, |_| {});
                let text = meter.metrics.encode();
                assert!(text.contains("\nvolcano_config_default_in_force 0\n"), "{text}");
            }
        }
        // The device configuration changes without the file, and the engine is told once.
        for (devices, reported) in
            [("nvidia: {}", true), ("nvidia: {}", false), ("vnpus: []", true)]
        {
            let devices = Some(devices.to_owned());
            let visit =
                follow.changed(load(&Disk, &path, &AllowMissing::Nothing), devices.clone(), None);
            assert_eq!(visit.is_some(), reported, "{devices:?}");
        }
        assert!(follow.changed(load(&Disk, &path, &AllowMissing::Nothing), None, None).is_some());
        std::fs::remove_file(&path).unwrap();
        assert!(follow.changed(load(&Disk, &path, &AllowMissing::Nothing), None, None).is_none());
        assert!(follow.changed(load(&Disk, &path, &AllowMissing::Nothing), None, None).is_none());
        assert_eq!(failures(&meter), 4);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    }
}
