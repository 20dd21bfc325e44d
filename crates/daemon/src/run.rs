//! Start and roles of the process: version, queues, servers, election, and as leader the engine with
//! watches and writer around it. Specification: core.md 1.3-1.6.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use vc_engine::{Engine, EngineCommand, EngineOptions};
use vc_kube::{
    Clients, DeviceApi, Election, ElectionNews, EngineMessage, EngineVisit, Feeds, KindSet,
    LeaderSetup, LeaderWork, Leadership, Observer, ServerVersion, of_this_process,
};
use vc_model::{ClusterEvent, RequestGates, Settings};

use crate::conf::{self, ConfigFollower, StartConfig, UsableConfig};
use crate::device_config::{self, DeviceConfigReader};
use crate::environment::Environment;
use crate::fatal::Fatal;
use crate::flags::{Flags, component, gates};
use crate::host::{DumpRequests, EngineMachine, ProcessHost};
use crate::loads;
use crate::meter::{Meter, State};
use crate::saved_usage::UsageReader;

/// What the process was told, and where it counts.
pub struct Process {
    pub flags: Flags,
    pub environment: Environment,
    pub meter: Arc<Meter>,
    /// The configuration file at the start of the process, if it could be used.
    pub good_conf: Option<UsableConfig>,
}

/// Schedules while this process leads, until `stop`.
///
/// # Errors
/// Whatever ends the process; see [`Fatal`].
pub async fn run<H: ProcessHost>(
    host: &H,
    process: &Process,
    clients: Clients,
    stop: impl Future<Output = ()>,
) -> Result<(), Fatal> {
    let mut stop = std::pin::pin!(stop);
    let mut dumps = host.catch_dumps()?;
    let start = async {
        // Before anything is asked: an API server that does not answer shows in the metrics.
        let servers = host.serve(process, &clients).await?;
        let server = prepare(host, process, &clients).await?;
        Ok::<_, Fatal>((server, servers, elect(host, process, &clients).await))
    };
    let (server, _servers, leadership) = tokio::select! {
        biased;
        () = &mut stop => return Ok(()),
        () = dumps.idle() => unreachable!("it never returns"),
        started = start => started?,
    };
    lead(host, process, clients, server, (leadership, dumps), stop).await
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

async fn prepare<H: ProcessHost>(
    host: &H,
    process: &Process,
    clients: &Clients,
) -> Result<ServerFeatures, Fatal> {
    let Process { flags, meter, .. } = process;
    let version = vc_kube::server_version(&clients.core).await.map_err(Fatal::Version)?;
    tracing::info!(v = 1, "API server {}.{}", version.major, version.minor);
    conf::check_directory(&host.files(), flags)?;
    if flags.answers.is_some() {
        host.unmark_answers(process, clients).await;
    }
    vc_kube::ensure_queues(&clients.volcano, &flags.default_queue).await?;
    let devices = match flags.gate(gates::DEVICES) {
        Some(false) => None,
        _ => Some(vc_kube::devices(clients, &**meter).await.map_err(Fatal::Devices)?),
    };
    Ok(ServerFeatures { version, devices })
}

/// Waits for the Lease. `None`: nobody is asked.
async fn elect<H: ProcessHost>(
    host: &H,
    process: &Process,
    clients: &Clients,
) -> Option<Leadership> {
    let flags = process.flags.lease.clone()?;
    let election = Election {
        namespace: flags.namespace,
        name: flags.name,
        identity: host.identity(),
        component: component(&process.flags.scheduler_names),
        lease: flags.lease,
        renew: flags.renew,
        retry: flags.retry,
    };
    let tell = |news: ElectionNews<'_>| {
        host.stands_by(news);
        process.meter.reached(State::Standby { connected: news.connected });
    };
    Some(election.win(clients, tell).await)
}

async fn lead<H: ProcessHost>(
    host: &H,
    process: &Process,
    clients: Clients,
    server: ServerFeatures,
    (leadership, dumps): (Option<Leadership>, H::Dumps),
    stop: impl Future<Output = ()>,
) -> Result<(), Fatal> {
    process.meter.reached(State::Leading { synced: false });
    let start = conf::start(&host.files(), &process.flags, process.good_conf.as_ref())?;
    let mut reader = DeviceConfigReader::new(clients.clone());
    let devices = reader.read(&start.loaded.config).await;
    let mut usages = UsageReader::new(clients.clone());
    let usage = usages.read(&start.loaded.config).await;
    let config = LeaderConfig { start, devices, reader, usage, usages };
    let mut threads = host.threads(process, &clients.backlog);
    let (work, _beside) = begin(host, process, &mut threads, (clients, server), dumps, config)?;
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

/// The tasks beside a leader: reload, dumps, and those of the machine. They end with this value.
type LeaderTasks = JoinSet<()>;

/// Starts what runs while this process leads.
fn begin<H: ProcessHost>(
    host: &H,
    process: &Process,
    threads: &mut H::Threads,
    (clients, server): (Clients, ServerFeatures),
    dumps: H::Dumps,
    config: LeaderConfig,
) -> Result<(LeaderWork, LeaderTasks), Fatal> {
    let Process { flags, meter, .. } = process;
    let division = process.environment.division.as_ref();
    if division.is_some_and(|division| !division.is_member()) {
        let hint = "hint: SCHEDULER_POD_NAME must be <base>-0 to <base>-<SCHEDULER_NUM - 1>";
        tracing::error!("division of work: nothing is ours, our name is none of them\n{hint}");
    }
    let LeaderConfig { start, devices, reader, usage, usages } = config;
    let merged = device_config::merged(&start.loaded.config, devices.as_deref());
    let (mut engine, warnings) =
        Engine::new(options(host.engine_machine(), process, &server), &merged);
    engine.apply(usage.into_iter().collect());
    conf::warn(&warnings);
    meter.configuration(&start.loaded, warnings.len());
    meter.metrics.default_in_force(start.is_default());
    if start.is_last_good() {
        meter.metrics.reload_failure();
    }
    meter.devices(server.serves_devices());
    let setup = LeaderSetup {
        component: component(&flags.scheduler_names),
        kinds: kinds(flags, &server),
        pace: flags.pace,
        check_cycles: flags.check_cycles,
        observer: host.observer(meter),
        twin: host.start_twin(process)?,
    };
    let work = LeaderWork::start(threads, &clients, setup, engine).map_err(Into::into)?;
    let inbox = work.inbox();
    let mut beside = LeaderTasks::new();
    host.run_beside(process, &clients, &mut beside);
    let follower = ConfigFollower::new(host.files(), flags, &start, devices, meter.clone());
    let source = follower.load_source();
    let loads = loads::follow(source, clients.clone(), inbox.clone(), meter.clone());
    beside.spawn(of_this_process(loads));
    let reports = follower.report_source();
    let reports = vc_kube::follow_device_reports(reports, clients.clone(), inbox.clone());
    beside.spawn(of_this_process(reports));
    beside.spawn(of_this_process(follower.run(inbox.clone(), reader, usages)));
    let dumps = dumps.run(flags.dump_dir.clone(), inbox.clone(), meter.clone());
    beside.spawn(of_this_process(dumps));
    if let Some(before) = server.devices.filter(|found| !found.are_served()) {
        let devices = devices_later(clients, before, inbox.clone(), meter.clone());
        beside.spawn(of_this_process(devices));
    }
    Ok((work, beside))
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

fn options(machine: EngineMachine, process: &Process, server: &ServerFeatures) -> EngineOptions {
    let EngineMachine { seed, stopwatch, utc_offset, extender } = machine;
    let flags = &process.flags;
    let since = |minor| ServerVersion { major: 1, minor } <= server.version;
    let default = |name, minor| flags.gate(name).unwrap_or_else(|| since(minor));
    let pairs = flags.node_selector.iter();
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
        utc_offset,
    };
    EngineOptions {
        settings,
        stopwatch: flags.metrics.then_some(stopwatch),
        evaluator: flags.evaluator,
        plugins: EngineOptions::default().plugins,
        extender,
        seed,
    }
}

#[cfg(test)]
mod tests {
    use vc_model::UtcOffset;

    use super::*;

    fn process(args: &[&str]) -> Process {
        let args = ["vc-scheduler"].iter().chain(args).map(Into::into);
        Process {
            flags: Flags::parse(args).unwrap(),
            environment: Environment::read(|_| None),
            meter: Arc::default(),
            good_conf: None,
        }
    }

    fn options_of(process: &Process, server: &ServerFeatures) -> EngineOptions {
        let machine = EngineMachine {
            seed: 0,
            stopwatch: || 0,
            utc_offset: UtcOffset::default(),
            extender: None,
        };
        options(machine, process, server)
    }

    #[test]
    fn core_34_gates_follow_the_server_unless_a_flag_says_otherwise() {
        let of = |minor, args: &[&str]| {
            let version = ServerVersion { major: 1, minor };
            let server = ServerFeatures { version, devices: Some(DeviceApi::Served) };
            let gates = options_of(&process(args), &server).settings.gates;
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
            options_of(&process(args), &ServerFeatures { version, devices }).settings
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
