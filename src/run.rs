//! Start and end of the process: version, queues, engine on its own thread, watches and writer
//! around it. Specification: core.md 1.3, 1.5, 1.6, 2.6.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use vc_conf::Config;
use vc_engine::{Engine, EngineOptions, KNOWN};
use vc_kube::{Clients, Incoming, Pump, ServerVersion};
use vc_model::RequestGates;

use crate::check::{LoadError, load};
use crate::flags::{Flags, component};

/// How long writes in flight may take at the end (C-05).
const LAST_WRITES: Duration = Duration::from_secs(5);
/// Batches of effects between engine and writer.
const BATCHES: usize = 16;

/// `--disable-default-scheduler-config` makes a bad file fatal; the exit code is 255.
#[derive(Debug, thiserror::Error)]
#[error("configuration: {0}")]
pub struct BadConfiguration(LoadError);

/// The configuration in force from the first cycle on (core.md 2.6).
///
/// # Errors
/// The file is bad and the default is not wanted.
pub fn configuration(flags: &Flags) -> Result<Config, BadConfiguration> {
    let loaded = match load(&flags.scheduler_conf) {
        Ok((loaded, text)) => {
            tracing::info!(v = 2, "Successfully loaded Scheduler conf as follows:");
            text.lines().for_each(|line| tracing::info!(v = 2, "{line}"));
            loaded
        }
        Err(error) if flags.strict_conf => return Err(BadConfiguration(error)),
        Err(error) => {
            tracing::error!("the built-in configuration is in force: {error}");
            let parsed = vc_conf::parse("built-in configuration", vc_conf::BUILT_IN, &KNOWN);
            parsed.map_err(|error| BadConfiguration(error.into()))?
        }
    };
    for warning in &loaded.warnings {
        tracing::warn!("configuration: {warning}");
    }
    Ok(loaded.config)
}

/// Ends at the first SIGTERM or SIGINT; the second one ends the process (core.md 1.6).
///
/// # Errors
/// The handlers cannot be installed.
pub fn signals() -> std::io::Result<impl Future<Output = ()>> {
    let (mut term, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (first, stopped) = oneshot::channel();
    tokio::spawn(async move {
        let mut first = Some(first);
        loop {
            tokio::select! { _ = term.recv() => {}, _ = interrupt.recv() => {} }
            match first.take() {
                Some(first) => drop(first.send(())),
                None => std::process::exit(1),
            }
        }
    });
    Ok(async { drop(stopped.await) })
}

/// Schedules until `stop`, then lets writes in flight end.
///
/// # Errors
/// The API server does not answer, the queues cannot be made, or the engine's thread has died.
pub async fn run(
    flags: &Flags,
    config: &Config,
    clients: Clients,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let mut stop = std::pin::pin!(stop);
    let version = tokio::select! {
        () = &mut stop => return Ok(()),
        version = prepare(flags, &clients) => version?,
    };
    let (engine, warnings) = Engine::new(options(flags, version), config);
    for warning in &warnings {
        tracing::warn!("configuration: {warning}");
    }
    let (sender, inbox) = vc_kube::inbox();
    let (effects, batches) = mpsc::channel(BATCHES);
    let with_classes = flags.priority_class && gate(flags, "PriorityClass").unwrap_or(true);
    let mut feeds = vc_kube::follow(&clients, with_classes, &sender);
    let writer =
        vc_kube::write(clients, component(&flags.scheduler_names), sender.clone(), batches);
    let writer = tokio::spawn(writer);
    let pump = Pump { inbox, effects, pace: flags.pace, n_kinds: feeds.len() };
    let mut ended = spawn(pump, engine)?;
    tokio::select! {
        () = &mut stop => {}
        _ = &mut ended => return Err(anyhow!("the engine's thread has died")),
        () = feeds.ended() => return Err(anyhow!("a watch has died")),
    }
    drop(feeds);
    let finish = async {
        // Either may be gone already; the writer ends when the engine's side of the channel is
        // closed.
        drop(sender.send(Incoming::Stop).await);
        drop(ended.await);
        drop(writer.await);
    };
    if timeout(LAST_WRITES, finish).await.is_err() {
        tracing::warn!("writes in flight were given up after {LAST_WRITES:?}");
    }
    Ok(())
}

async fn prepare(flags: &Flags, clients: &Clients) -> anyhow::Result<ServerVersion> {
    let version = vc_kube::server_version(&clients.core).await;
    let version = version.map_err(|error| anyhow!("version of the API server: {error}"))?;
    tracing::info!(v = 1, "API server {}.{}", version.major, version.minor);
    vc_kube::ensure_queues(&clients.volcano, &flags.default_queue).await?;
    Ok(version)
}

/// The engine on a thread of its own; the receiver tells its end, however that comes.
fn spawn(pump: Pump, engine: Engine) -> std::io::Result<oneshot::Receiver<()>> {
    let (guard, ended) = oneshot::channel();
    let runtime = tokio::runtime::Handle::current();
    std::thread::Builder::new().name("engine".into()).spawn(move || {
        let _guard: oneshot::Sender<()> = guard;
        pump.run(engine, &runtime);
    })?;
    Ok(ended)
}

fn options(flags: &Flags, version: ServerVersion) -> EngineOptions {
    let since = |minor| ServerVersion { major: 1, minor } <= version;
    let default = |name, minor| gate(flags, name).unwrap_or_else(|| since(minor));
    let pairs = flags.node_selector.iter();
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    EngineOptions {
        scheduler_names: flags.scheduler_names.iter().map(|name| name.as_str().into()).collect(),
        default_queue: flags.default_queue.as_str().into(),
        node_selector: pairs
            .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
            .collect(),
        gates: RequestGates {
            in_place_resize: default("InPlacePodVerticalScaling", 33),
            pod_level_resources: default("PodLevelResources", 34),
        },
        seed: u64::try_from(time.as_nanos() & u128::from(u64::MAX)).unwrap_or(0),
    }
}

/// The last word about a feature gate, if there is one.
fn gate(flags: &Flags, name: &str) -> Option<bool> {
    let of_name = |(gate, on): &(String, bool)| (gate == name).then_some(*on);
    flags.feature_gates.iter().rev().find_map(of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(args: &[&str]) -> Flags {
        let args = ["vc-scheduler"].iter().chain(args).map(Into::into);
        Flags::parse(args).unwrap()
    }

    #[test]
    fn core_34_gates_follow_the_server_unless_a_flag_says_otherwise() {
        let of = |minor, args: &[&str]| {
            let gates = options(&flags(args), ServerVersion { major: 1, minor }).gates;
            (gates.in_place_resize, gates.pod_level_resources)
        };
        assert_eq!(of(32, &[]), (false, false));
        assert_eq!(of(33, &[]), (true, false));
        assert_eq!(of(34, &[]), (true, true));
        let given = ["--feature-gates=PodLevelResources=false,InPlacePodVerticalScaling=true"];
        assert_eq!(of(32, &given), (true, false));
        let twice =
            ["--feature-gates=PodLevelResources=true", "--feature-gates=PodLevelResources=false"];
        assert_eq!(of(36, &twice), (true, false));
    }

    #[test]
    fn core_5_a_bad_file_falls_back_unless_that_is_forbidden() {
        let config = configuration(&flags(&[])).unwrap();
        assert_eq!(config.actions, ["enqueue", "allocate", "backfill"]);
        let names = |tier: usize| -> Vec<&str> {
            config.tiers[tier].plugins.iter().map(|plugin| plugin.name.as_str()).collect()
        };
        assert_eq!(names(0), ["priority", "gang", "conformance"]);
        assert_eq!(names(1), ["overcommit", "drf", "predicates", "proportion", "nodeorder"]);
        let unreadable = flags(&["--scheduler-conf=/does/not/exist"]);
        assert_eq!(configuration(&unreadable).unwrap(), config);
        let strict = flags(&["--disable-default-scheduler-config"]);
        let error = configuration(&strict).unwrap_err().to_string();
        assert!(error.starts_with("configuration: no configuration file\nhint: "), "{error}");
    }
}
