//! A scheduler process in the simulation: election, watches, writer and engine of the daemon, joined by
//! the daemon's own code. Its end at any point is the end of its tasks; what it has sent still arrives.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use vc_engine::{Engine, EngineCommand, EngineOptions, Evaluator};
use vc_kube::{
    ClientError, Clients, CyclePace, Election, EngineMessage, EngineVisit, KindSet, LeaderFailure,
    LeaderSetup, LeaderWork, Leadership, Observer, ScheduleTrigger,
};

use super::config_file::{ConfigFile, FollowedConfig};
use super::crash::{Crash, PlannedCrash};
use super::findings::{Findings, ProcessObserver};
use super::network::Network;
use super::trace::Trace;
use crate::one_thread::OneThread;

/// How long it takes until a process that has ended by itself is started again.
const RESTART: Duration = Duration::from_secs(2);
/// How often the configuration file is read, as by the daemon.
const READ_CONFIG: Duration = Duration::from_secs(1);
const PACE: CyclePace = CyclePace {
    trigger: ScheduleTrigger::Change,
    period: Duration::from_secs(1),
    gather: Duration::from_millis(10),
};

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
    /// True for the version before: the plain evaluator at a fixed pace.
    pub(super) is_old: bool,
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
        let supervisor = tokio::task::spawn_local(life);
        self.running = Some(RunningProcess { supervisor, _stop: stop });
    }

    /// Ends it at whatever point it is.
    pub(super) fn crash(&mut self) {
        let running = self.running.take().map(|running| running.supervisor);
        let ending = self.ending.take().filter(|ending| !ending.is_finished());
        if let Some(life) = running.or(ending) {
            self.setup.trace.say(format_args!("{}: crash", self.setup.name));
            life.abort();
        }
    }

    /// Plans a crash of the running process. `None` cancels the plan.
    pub(super) fn plan_crash(&self, crash: Option<Crash>) {
        self.setup.crash.plan(crash);
    }

    /// Waits until the planned crash happens.
    pub(super) async fn crashed(&self) {
        self.setup.crash.crashed().await;
    }

    /// Tells it to end (SIGTERM). What it has decided is written before.
    pub(super) fn stop(&mut self) {
        // It ends by itself; a process that is started meanwhile is another one.
        if let Some(running) = self.running.take() {
            self.ending = Some(running.supervisor);
        }
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
        let mut config = FollowedConfig::start(&self.setup.config);
        let clients = self.setup.network.clients(&self.name, &self.setup.crash);
        let won = tokio::select! {
            biased;
            () = told_to_end(stopped) => return LifeEnd::Stopped,
            won = self.win(&clients) => won,
        };
        let leadership = match won {
            Ok(leadership) => leadership,
            Err(why) => return LifeEnd::Failed(why),
        };
        self.setup.trace.say(format_args!("{}: leads", self.name));
        self.setup.network.leads();
        config.lead(&self.setup.config);
        let mut threads = OneThread::new(&self.setup.ahead_micros, self.setup.crash.clone());
        let work = match self.begin(&mut threads, &clients, &config) {
            Ok(work) => work,
            Err(error) => return LifeEnd::Failed(error.to_string()),
        };
        let ended = tokio::select! {
            biased;
            ended = self.follow(config, work.inbox().clone()) => ended,
            led = work.lead(Some(leadership), told_to_end(stopped)) => led,
        };
        match ended {
            Ok(()) => LifeEnd::Stopped,
            Err(LeaderFailure::LeaseLost) => LifeEnd::Failed("the Lease is lost".to_owned()),
            Err(died @ LeaderFailure::Died(_)) => {
                self.setup.findings.add(format!("I9: {}: {died}", self.name));
                LifeEnd::Failed(died.to_string())
            }
        }
    }

    async fn win(&self, clients: &Clients) -> Result<Leadership, String> {
        vc_kube::ensure_queues(&clients.volcano, "default").await.map_err(|it| it.to_string())?;
        let election = Election {
            namespace: "volcano-system".to_owned(),
            name: "vc-scheduler".to_owned(),
            identity: self.name.clone(),
            component: "volcano".to_owned(),
            lease: Duration::from_secs(15),
            renew: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        };
        let ahead = self.setup.ahead_micros.clone();
        Ok(vc_kube::with_clock_ahead(ahead, election.win(clients, |_| {})).await)
    }

    fn begin(
        &self,
        threads: &mut OneThread,
        clients: &Clients,
        config: &FollowedConfig,
    ) -> Result<LeaderWork, ClientError> {
        let observer = ProcessObserver::new(&self.setup.findings, &self.name);
        let mut options = EngineOptions::default();
        let mut pace = PACE;
        if self.setup.is_old {
            options.evaluator = Evaluator::Plain;
            pace.trigger = ScheduleTrigger::Period;
        }
        let (mut engine, _warnings) = Engine::new(options, config.in_force());
        engine.witness(true);
        let setup = LeaderSetup {
            component: "volcano".to_owned(),
            kinds: vec![KindSet::PriorityClasses],
            pace,
            check_cycles: 1,
            observer: Arc::new(observer) as Arc<dyn Observer>,
            twin: None,
        };
        let work = LeaderWork::start(threads, clients, setup, engine)?;
        self.setup.findings.leads(work.inbox());
        Ok(work)
    }

    /// Reads the configuration file again and again, and hands good changes to the engine. Never ends.
    async fn follow(
        &self,
        mut config: FollowedConfig,
        inbox: mpsc::Sender<EngineMessage>,
    ) -> Result<(), LeaderFailure> {
        loop {
            tokio::time::sleep(READ_CONFIG).await;
            let is_new = config.read(&self.setup.config);
            self.setup.findings.extend(config.faults(&self.name));
            if !is_new {
                continue;
            }
            self.setup.trace.say(format_args!("{}: has a new configuration", self.name));
            self.setup.network.has_new_configuration();
            let loaded = config.in_force().clone();
            let commands = vec![EngineCommand::Configure(Box::new(loaded))];
            let visit = EngineVisit::change(commands, |_warnings| {});
            // The engine has ended only when the process ends.
            let _ended = inbox.send(EngineMessage::Visit(visit)).await;
        }
    }
}
