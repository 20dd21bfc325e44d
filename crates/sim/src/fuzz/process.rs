//! A scheduler process in the simulation: the daemon's own code from its flags to its end, and a supervisor
//! that starts it again. Its end at any point is the end of its tasks; what it has sent still arrives.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use vc_daemon::conf;
use vc_daemon::environment::Environment;
use vc_daemon::fatal::Fatal;
use vc_daemon::flags::Flags;
use vc_daemon::meter::Meter;
use vc_daemon::run::{self, Process};
use vc_kube::SimulatedProcess;

use super::config_file::{CONFIG_PATH, ConfigFile, MountedConfig};
use super::crash::{Crash, CrashPoint, PlannedCrash};
use super::findings::Findings;
use super::machine::SimulatedHost;
use super::network::Network;
use super::trace::Trace;

/// How long it takes until a process that has ended by itself is started again.
const RESTART: Duration = Duration::from_secs(2);
/// Flags of every process. Each cycle checks all sums.
const FLAGS: [&str; 4] = [
    "--lock-object-namespace=volcano-system",
    "--leader-elect-resource-name=vc-scheduler",
    "--cache-check-cycles=1",
    "--csi-storage=false",
];
/// Flags of a process that follows only the kinds of which a story has objects.
const FEW_KINDS: &str = "--feature-gates=WorkLoadSupport=false,PodDisruptionBudgetsSupport=false,\
    ResourceTopology=false,DynamicResourceAllocation=false";
/// Flags of the version before: the plain evaluator at a fixed pace.
const OLD: [&str; 2] = ["--evaluator=plain", "--schedule-trigger=period"];

/// What a process is started with. Clones share it.
#[derive(Clone)]
pub(super) struct ProcessSetup {
    /// Its identity in the Lease begins like this.
    pub(super) name: String,
    pub(super) network: Network,
    pub(super) config: ConfigFile,
    pub(super) trace: Trace,
    pub(super) findings: Arc<Findings>,
    /// Its clock is so far ahead of the server's.
    pub(super) ahead_micros: Arc<AtomicI64>,
    /// The crash that is planned for its present life.
    pub(super) crash: PlannedCrash,
    /// True for the version before.
    pub(super) is_old: bool,
    /// True if faults strike its start too. It follows all kinds then that a daemon follows by itself.
    pub(super) strikes_starts: bool,
    /// True if its configuration keeps the usage of `fairshare`.
    pub(super) keeps_usage: bool,
    /// True if its configuration places by HyperNodes.
    pub(super) has_networks: bool,
    /// True if its configuration shares GPUs by memory.
    pub(super) has_gpus: bool,
}

impl ProcessSetup {
    /// Returns what all tasks of the present life share.
    pub(super) fn process(&self) -> SimulatedProcess {
        let crash = self.crash.clone();
        SimulatedProcess::new(self.ahead_micros.clone(), move || crash.passes(CrashPoint::Await))
    }

    /// Returns the flags of the process.
    fn flags(&self) -> Flags {
        let file = format!("--scheduler-conf={CONFIG_PATH}");
        let mut args = vec!["vc-scheduler", file.as_str()];
        args.extend(FLAGS);
        if self.is_old {
            args.extend(OLD);
        }
        if self.is_old || !self.strikes_starts {
            args.push(FEW_KINDS);
        }
        Flags::parse(args.into_iter().map(Into::into)).expect("the flags are good")
    }
}

/// A scheduler process, with its supervisor that starts it again.
pub(super) struct SchedulerProcess {
    setup: ProcessSetup,
    n_starts: u64,
    running: Option<RunningProcess>,
    /// The life that was told to end last. It may crash before it has.
    ending: Option<JoinHandle<()>>,
    /// The farthest that its clock was ahead.
    most_ahead_micros: i64,
}

struct RunningProcess {
    supervisor: JoinHandle<()>,
    /// The process is told to end when this is dropped.
    _stop: watch::Sender<()>,
}

impl SchedulerProcess {
    pub(super) fn new(setup: ProcessSetup) -> Self {
        Self { setup, n_starts: 0, running: None, ending: None, most_ahead_micros: 0 }
    }

    /// Starts it, unless it runs. Whenever it ends by itself, it is started again.
    pub(super) fn start(&mut self) {
        if self.running.as_ref().is_some_and(|it| !it.supervisor.is_finished()) {
            return;
        }
        self.n_starts += 1;
        // A crash that was planned for the life before does not end this one.
        self.setup.crash.plan(None);
        self.setup.crash = PlannedCrash::default();
        let name = format!("{}.{}", self.setup.name, self.n_starts);
        let (stop, stopped) = watch::channel(());
        let life = supervise(self.setup.clone(), name, stopped);
        // Nobody waits for it. If it panics, that is recorded: `super::panics`.
        let supervisor = tokio::task::spawn_local(life);
        self.running = Some(RunningProcess { supervisor, _stop: stop });
    }

    /// Ends it at whatever point it is. False: it does not run.
    pub(super) fn crash(&mut self) -> bool {
        let running = self.running.take().map(|running| running.supervisor);
        let ending = self.ending.take().filter(|ending| !ending.is_finished());
        let Some(life) = running.or(ending) else { return false };
        self.setup.trace.say(format_args!("{}: crash", self.setup.name));
        life.abort();
        true
    }

    /// Plans a crash of the running process. `None` cancels the plan.
    pub(super) fn plan_crash(&self, crash: Option<Crash>) {
        self.setup.crash.plan(crash);
    }

    /// Waits until the planned crash happens.
    pub(super) async fn crashed(&self) {
        self.setup.crash.crashed().await;
    }

    /// Tells it to end (SIGTERM). What it has decided is written before. False: it does not run.
    pub(super) fn stop(&mut self) -> bool {
        // It ends by itself; a process that is started meanwhile is another one.
        let Some(running) = self.running.take() else { return false };
        self.ending = Some(running.supervisor);
        true
    }

    /// Rewrites its configuration file.
    pub(super) fn configure(&self, text: &'static str) {
        self.setup.config.write(text);
    }

    /// Sets its clock.
    pub(super) fn set_clock(&mut self, ahead_seconds: i64) {
        let ahead = ahead_seconds * 1_000_000;
        self.most_ahead_micros = self.most_ahead_micros.max(ahead);
        self.setup.ahead_micros.store(ahead, Ordering::Relaxed);
    }

    /// Returns how far its clock is behind the latest time that it may have shown, at most.
    pub(super) fn behind_itself(&self) -> Duration {
        let behind = self.most_ahead_micros - self.setup.ahead_micros.load(Ordering::Relaxed);
        Duration::from_micros(u64::try_from(behind).unwrap_or(0))
    }
}

/// How a life of a process ended.
enum LifeEnd {
    /// It was told to end.
    Stopped,
    /// It has ended by itself.
    Failed(String),
}

/// Returns when the process is told to end; may be called again then.
async fn told_to_end(stopped: &mut watch::Receiver<()>) {
    while stopped.changed().await.is_ok() {}
}

async fn supervise(setup: ProcessSetup, name: String, mut stopped: watch::Receiver<()>) {
    for n_ends in 0.. {
        let life = Life { name: format!("{name}.{n_ends}"), setup: setup.clone() };
        let (end, name) = (life.run(&mut stopped).await, &life.name);
        match end {
            LifeEnd::Stopped => return setup.trace.say(format_args!("{name}: has ended")),
            LifeEnd::Failed(why) => setup.trace.say(format_args!("{name}: ends: {why}")),
        }
        tokio::select! {
            biased;
            () = told_to_end(&mut stopped) => return,
            () = tokio::time::sleep(RESTART) => {}
        }
    }
}

/// One life of a process: waits for the Lease, leads until it is lost or it is told to end.
struct Life {
    /// Its identity in the Lease.
    name: String,
    setup: ProcessSetup,
}

impl Life {
    async fn run(&self, stopped: &mut watch::Receiver<()>) -> LifeEnd {
        let findings = &self.setup.findings;
        let config = MountedConfig::new(&self.name, &self.setup);
        let host = SimulatedHost { name: self.name.clone(), setup: self.setup.clone(), config };
        let process = self.schedule(&host, stopped);
        match self.setup.process().run(process).await {
            Ok(()) => LifeEnd::Stopped,
            Err(fatal) => {
                if !is_expected(&fatal) {
                    findings.add(format!("I9: {}: {fatal}", self.name));
                }
                LifeEnd::Failed(fatal.to_string())
            }
        }
    }

    /// Does what the binary does with its flags.
    async fn schedule(
        &self,
        host: &SimulatedHost,
        stopped: &mut watch::Receiver<()>,
    ) -> Result<(), Fatal> {
        let flags = self.setup.flags();
        let good_conf = conf::before_start(&host.config, &flags)?;
        let environment = Environment::read(|_| None);
        let meter = Arc::new(Meter::new(false, flags.scheduler_names.clone()));
        let process = Process { flags, environment, meter, good_conf };
        let clients = self.setup.network.clients(&self.name, &self.setup.crash);
        run::run(host, &process, clients, told_to_end(stopped)).await
    }
}

/// True if a fault of the server may end a process like this. Its supervisor starts it again.
fn is_expected(fatal: &Fatal) -> bool {
    matches!(fatal, Fatal::Version(_) | Fatal::Devices(_) | Fatal::Queues(_) | Fatal::LeaseLost)
}
