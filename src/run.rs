//! Start and end of the process: version, queues, servers, election, and as leader the engine on
//! its own thread with watches and writer around it. Specification: core.md 1.3-1.6.

use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use vc_engine::{Engine, EngineCommand, EngineOptions};
use vc_kube::{
    Clients, DeviceApi, Election, ElectionNews, EngineMessage, EngineVisit, Feeds, KindSet,
    LeaderSetup, LeaderWork, Leadership, Observer, ServerVersion, identity,
};
use vc_model::{ClusterEvent, RequestGates, Settings, UtcOffset};

use crate::answers::{self, AnswerHandle};
use crate::conf::{self, ConfigFollower, StartConfig, UsableConfig};
use crate::device_config::{self, DeviceConfigReader};
use crate::dump::Dumper;
use crate::environment::Environment;
use crate::fatal::Fatal;
use crate::flags::{Flags, component, gates};
use crate::loads;
use crate::log::Level;
use crate::meter::{Meter, State};
use crate::saved_usage::UsageReader;
use crate::serve;
use crate::threads::OwnThreads;

/// What the process was told, and where it tells.
pub struct Process {
    pub flags: Flags,
    pub environment: Environment,
    pub level: Level,
    pub meter: Arc<Meter>,
    /// The way to the answers; unused without `--enable-answers`.
    pub answers: AnswerHandle,
    /// The configuration file at the start of the process, if it could be used.
    pub good_conf: Option<UsableConfig>,
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

/// Schedules while this process leads, until `stop`.
///
/// # Errors
/// Whatever ends the process; see [`Fatal`].
pub async fn run(
    process: &Process,
    clients: Clients,
    stop: impl Future<Output = ()>,
) -> Result<(), Fatal> {
    let mut stop = std::pin::pin!(stop);
    let mut dumper = Dumper::install()?;
    let start = async {
        // Before anything is asked: an API server that does not answer shows in the metrics.
        let servers = serve::start(&process.flags, &clients, &process.meter, &process.answers);
        let servers = servers.await?;
        let server = prepare(process, &clients).await?;
        Ok::<_, Fatal>((server, servers, elect(process, &clients).await))
    };
    let (server, _servers, leadership) = tokio::select! {
        () = &mut stop => return Ok(()),
        () = dumper.idle() => unreachable!("it never returns"),
        started = start => started?,
    };
    lead(process, clients, server, leadership, dumper, stop).await
}

/// What the API server can do.
#[derive(Clone, Debug)]
struct ServerFeatures {
    version: ServerVersion,
    /// `None`: we are told to leave claims for devices alone (plugins-nodes.md 2.1).
    devices: Option<DeviceApi>,
}

impl ServerFeatures {
    fn serves_devices(&self) -> bool {
        self.devices.as_ref().is_some_and(DeviceApi::are_served)
    }
}

async fn prepare(process: &Process, clients: &Clients) -> Result<ServerFeatures, Fatal> {
    let Process { flags, meter, .. } = process;
    let version = vc_kube::server_version(&clients.core).await.map_err(Fatal::Version)?;
    tracing::info!(v = 1, "API server {}.{}", version.major, version.minor);
    conf::check_directory(flags)?;
    if flags.answers.is_some() {
        answers::unmark(clients, process.environment.pod.as_ref()).await;
    }
    vc_kube::ensure_queues(&clients.volcano, &flags.default_queue).await?;
    let devices = match flags.gate(gates::DEVICES) {
        Some(false) => None,
        _ => Some(vc_kube::devices(clients, &**meter).await.map_err(Fatal::Devices)?),
    };
    Ok(ServerFeatures { version, devices })
}

/// Waits for the Lease. `None`: nobody is asked.
async fn elect(process: &Process, clients: &Clients) -> Option<Leadership> {
    let flags = process.flags.lease.clone()?;
    let election = Election {
        namespace: flags.namespace,
        name: flags.name,
        identity: identity(),
        component: component(&process.flags.scheduler_names),
        lease: flags.lease,
        renew: flags.renew,
        retry: flags.retry,
    };
    let tell = |news: ElectionNews<'_>| {
        process.answers.stands_by(news.leader);
        process.meter.reached(State::Standby { connected: news.connected });
    };
    Some(election.win(clients, tell).await)
}

async fn lead(
    process: &Process,
    clients: Clients,
    server: ServerFeatures,
    leadership: Option<Leadership>,
    dumper: Dumper,
    stop: impl Future<Output = ()>,
) -> Result<(), Fatal> {
    process.meter.reached(State::Leading { synced: false });
    let start = conf::start(&process.flags, process.good_conf.as_ref())?;
    let mut reader = DeviceConfigReader::new(clients.clone());
    let devices = reader.read(&start.loaded.config).await;
    let mut usages = UsageReader::new(clients.clone());
    let usage = usages.read(&start.loaded.config).await;
    let config = LeaderConfig { start, devices, reader, usage, usages };
    let mut threads = OwnThreads::new(&process.meter, &clients.backlog);
    let (work, _aside) = begin(process, &mut threads, clients, server, dumper, config)?;
    Ok(work.lead(leadership, stop).await?)
}

/// What this process begins with, and who reads the device configuration from then on.
struct LeaderConfig {
    start: StartConfig,
    /// The content of the ConfigMap with the device configuration.
    devices: Option<String>,
    reader: DeviceConfigReader,
    /// The usage that an earlier process has saved. `None`: the configuration keeps none.
    usage: Option<ClusterEvent>,
    usages: UsageReader,
}

/// Reload, dumps, log level; they end with this value.
type Aside = JoinSet<()>;

/// Starts what runs while this process leads.
fn begin(
    process: &Process,
    threads: &mut OwnThreads,
    clients: Clients,
    server: ServerFeatures,
    dumper: Dumper,
    config: LeaderConfig,
) -> Result<(LeaderWork, Aside), Fatal> {
    let Process { flags, meter, .. } = process;
    let division = process.environment.division.as_ref();
    if division.is_some_and(|division| !division.is_member()) {
        let hint = "hint: SCHEDULER_POD_NAME must be <base>-0 to <base>-<SCHEDULER_NUM - 1>";
        tracing::error!("division of work: nothing is ours, our name is none of them\n{hint}");
    }
    let LeaderConfig { start, devices, reader, usage, usages } = config;
    let merged = device_config::merged(&start.loaded.config, devices.as_deref());
    let (mut engine, warnings) = Engine::new(options(process, &server), &merged);
    engine.apply(usage.into_iter().collect());
    conf::warn(&warnings);
    meter.configuration(&start.loaded, warnings.len());
    meter.metrics.default_in_force(start.is_default());
    if start.is_last_good() {
        meter.metrics.reload_failure();
    }
    meter.devices(server.serves_devices());
    let of_answers = flags.answers.as_ref();
    let twin = of_answers.map(|flags| answers::start(&process.answers, flags, meter));
    let setup = LeaderSetup {
        component: component(&flags.scheduler_names),
        kinds: kinds(flags, &server),
        pace: flags.pace,
        check_cycles: flags.check_cycles,
        observer: meter.clone(),
        twin: twin.transpose()?,
    };
    let work = LeaderWork::start(threads, &clients, setup, engine)?;
    let inbox = work.inbox();
    let mut aside = Aside::new();
    if flags.answers.is_some() {
        let pod = process.environment.pod.clone();
        aside.spawn(answers::mark(process.answers.clone(), clients.clone(), pod));
    }
    let follower = ConfigFollower::new(flags, &start, devices, meter.clone());
    let source = follower.load_source();
    aside.spawn(loads::follow(source, clients.clone(), inbox.clone(), meter.clone()));
    let reports = follower.report_source();
    aside.spawn(vc_kube::follow_device_reports(reports, clients.clone(), inbox.clone()));
    aside.spawn(follower.run(inbox.clone(), reader, usages));
    aside.spawn(dumper.run(flags.dump_dir.clone(), inbox.clone(), meter.clone()));
    if let Some(before) = server.devices.filter(|found| !found.are_served()) {
        aside.spawn(devices_later(clients, before, inbox.clone(), meter.clone()));
    }
    let (sockets, level) = (process.environment.socket_dir.clone(), process.level.clone());
    aside.spawn(async move { serve::socket(&sockets, level).await });
    Ok((work, aside))
}

/// The kinds that are followed beside those of every scheduler.
fn kinds(flags: &Flags, server: &ServerFeatures) -> Vec<KindSet> {
    let gate = |name| flags.gate(name).unwrap_or(true);
    let sets = [
        (KindSet::PriorityClasses, with_priority_classes(flags)),
        (KindSet::NodeShards, flags.sharding.mode != vc_model::ShardingMode::None),
        (KindSet::CsiStorage, flags.csi_storage),
        (KindSet::Devices, server.serves_devices()),
        (KindSet::Controllers, gate(gates::WORKLOADS)),
        (KindSet::Budgets, gate(gates::BUDGETS)),
        (KindSet::NumaTopologies, gate(gates::NUMA_TOPOLOGIES)),
    ];
    sets.into_iter().filter(|(_, is_wanted)| *is_wanted).map(|(set, _)| set).collect()
}

fn with_priority_classes(flags: &Flags) -> bool {
    flags.priority_class && flags.gate(gates::PRIORITY_CLASSES).unwrap_or(true)
}

/// Follows claims for devices from the moment when the server has them (C-06).
async fn devices_later(
    clients: Clients,
    before: DeviceApi,
    inbox: mpsc::Sender<EngineMessage>,
    meter: Arc<Meter>,
) {
    vc_kube::devices_appear(&clients, before, &*meter).await;
    tracing::info!("resource claims of pods are taken into account from now on");
    meter.devices(true);
    // From here on pods with claims wait until these are known.
    let visit = EngineVisit::change(vec![EngineCommand::ServeDevices], |_| {});
    if inbox.send(EngineMessage::Visit(visit)).await.is_err() {
        return;
    }
    let (mut feeds, observer) = (Feeds::default(), meter as Arc<dyn Observer>);
    feeds.follow(KindSet::Devices, &clients, &inbox, &observer);
    feeds.ended().await;
}

fn options(process: &Process, server: &ServerFeatures) -> EngineOptions {
    let flags = &process.flags;
    let since = |minor| ServerVersion { major: 1, minor } <= server.version;
    let default = |name, minor| flags.gate(name).unwrap_or_else(|| since(minor));
    let pairs = flags.node_selector.iter();
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let settings = Settings {
        scheduler_names: flags.scheduler_names.iter().map(|name| name.as_str().into()).collect(),
        default_queue: flags.default_queue.as_str().into(),
        node_selector: pairs
            .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
            .collect(),
        gates: RequestGates {
            in_place_resize: default(gates::RESIZE, 33),
            pod_level_resources: default(gates::POD_LEVEL, 34),
        },
        bare_pods: flags.bare_pods,
        dynamic_resources: flags.gate(gates::DEVICES).unwrap_or(server.serves_devices()),
        consumable_capacity: default(gates::DEVICE_CAPACITY, 36),
        division: process.environment.division.clone(),
        sharding: flags.sharding.clone(),
        queue_gate_admission: flags.gate(gates::QUEUE_ADMISSION).unwrap_or(false),
        ignored_provisioners: {
            flags.ignored_provisioners.iter().map(|name| name.as_str().into()).collect()
        },
        storage_capacity_scoring: flags.gate(gates::STORAGE_SCORING).unwrap_or(false),
        utc_offset: UtcOffset::Local(crate::zone::utc_offset_seconds),
    };
    EngineOptions {
        settings,
        stopwatch: flags.metrics.then_some(stopwatch),
        evaluator: flags.evaluator,
        plugins: EngineOptions::default().plugins,
        extender: Some(Arc::new(vc_kube::HttpExtender::default())),
        seed: u64::try_from(time.as_nanos() & u128::from(u64::MAX)).unwrap_or(0),
    }
}

/// Nanoseconds since the first call.
fn stopwatch() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Format;

    fn process(args: &[&str]) -> Process {
        let args = ["vc-scheduler"].iter().chain(args).map(Into::into);
        Process {
            flags: Flags::parse(args).unwrap(),
            environment: Environment::read(|_| None),
            level: crate::log::start(0, Format::Text),
            meter: Arc::default(),
            answers: AnswerHandle::default(),
            good_conf: None,
        }
    }

    #[test]
    fn core_34_gates_follow_the_server_unless_a_flag_says_otherwise() {
        let of = |minor, args: &[&str]| {
            let version = ServerVersion { major: 1, minor };
            let server = ServerFeatures { version, devices: Some(DeviceApi::Served) };
            let gates = options(&process(args), &server).settings.gates;
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
    fn flags_reach_the_engine() {
        let version = ServerVersion { major: 1, minor: 36 };
        let with = |devices, args: &[&str]| {
            super::options(&process(args), &ServerFeatures { version, devices }).settings
        };
        let options = |args: &[&str]| with(Some(DeviceApi::Served), args);
        let gate = "--feature-gates=DynamicResourceAllocation=true";
        for (devices, args, on) in [
            (Some(DeviceApi::Served), &[][..], true),
            (Some(DeviceApi::Absent), &[], false),
            (Some(DeviceApi::Absent), &[gate], true),
            (None, &["--feature-gates=DynamicResourceAllocation=false"], false),
        ] {
            assert_eq!(with(devices.clone(), args).dynamic_resources, on, "{devices:?} {args:?}");
        }
        assert!(!options(&[]).bare_pods && options(&["--bare-pods=schedule"]).bare_pods);
        let gate = "--feature-gates=SchedulingGatesQueueAdmission=true";
        assert!(!options(&[]).queue_gate_admission && options(&[gate]).queue_gate_admission);
        let sharding = options(&["--scheduler-sharding-mode=hard"]).sharding;
        assert_eq!((sharding.mode, &*sharding.name), (vc_model::ShardingMode::Hard, "volcano"));
        let sharding = options(&["--scheduler-sharding-mode=x", "--scheduler-sharding-name=s"]);
        let sharding = sharding.sharding;
        assert_eq!((sharding.mode, &*sharding.name), (vc_model::ShardingMode::None, "s"));
        let gate = "--feature-gates=StorageCapacityScoring=true";
        assert!(
            !options(&[]).storage_capacity_scoring && options(&[gate]).storage_capacity_scoring
        );
        let ignored = options(&["--ignored-provisioners=a,b"]).ignored_provisioners;
        assert_eq!(ignored.iter().map(|name| &**name).collect::<Vec<_>>(), ["a", "b"]);
        assert!(with_priority_classes(&process(&[]).flags));
        assert!(!with_priority_classes(&process(&["--priority-class=false"]).flags));
        let gate = "--feature-gates=PriorityClass=false";
        assert!(!with_priority_classes(&process(&[gate]).flags));
    }
}
