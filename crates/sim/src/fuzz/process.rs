//! A scheduler process in the simulation: election, watches, writer and engine of the real one, joined
//! as in the binary. Its end at any point is the end of its tasks; what it has sent still arrives.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use vc_engine::{Engine, EngineOptions};
use vc_kube::{
    Backlog, CyclePace, Election, EngineMessage, KindSet, Observer, ScheduleTrigger, SchedulerLoop,
};

use super::network::Network;
use super::trace::Trace;

/// Batches of effects between engine and writer, as in the binary.
const BATCHES: usize = 16;
/// How long it takes until a process that has ended is started again.
const RESTART: Duration = Duration::from_secs(2);
const PACE: CyclePace = CyclePace {
    trigger: ScheduleTrigger::Change,
    period: Duration::from_secs(1),
    gather: Duration::from_millis(10),
};

/// A scheduler process, with its supervisor that starts it again.
pub(super) struct SchedulerProcess {
    name: String,
    network: Network,
    config: Arc<vc_conf::Config>,
    trace: Trace,
    faults: Arc<ProcessFaults>,
    n_starts: u64,
    running: Option<JoinHandle<()>>,
}

/// Faults that the processes of a story have found in themselves.
#[derive(Default)]
pub(super) struct ProcessFaults {
    texts: Mutex<Vec<String>>,
    /// The inbox of the engine that led last. `None`: none has led.
    leader: Mutex<Option<mpsc::Sender<EngineMessage>>>,
    pub(super) n_cycles: AtomicU64,
}

impl ProcessFaults {
    /// Returns the texts so far, and forgets them.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.texts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the inbox of the engine that led last. `None`: none has led.
    pub(super) fn leader(&self) -> Option<mpsc::Sender<EngineMessage>> {
        self.leader.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn leads(&self, inbox: &mpsc::Sender<EngineMessage>) {
        *self.leader.lock().unwrap_or_else(PoisonError::into_inner) = Some(inbox.clone());
    }

    fn add(&self, text: String) {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }
}

impl SchedulerProcess {
    pub(super) fn new(
        name: &str,
        network: &Network,
        config: &Arc<vc_conf::Config>,
        trace: &Trace,
        faults: &Arc<ProcessFaults>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            network: network.clone(),
            config: config.clone(),
            trace: trace.clone(),
            faults: faults.clone(),
            n_starts: 0,
            running: None,
        }
    }

    /// Starts it. Whenever it ends by itself, it is started again.
    pub(super) fn start(&mut self) {
        self.n_starts += 1;
        let start = ProcessStart {
            name: format!("{}.{}", self.name, self.n_starts),
            network: self.network.clone(),
            config: self.config.clone(),
            trace: self.trace.clone(),
            faults: self.faults.clone(),
        };
        self.running = Some(tokio::task::spawn_local(start.supervise()));
    }

    /// Ends it at whatever point it is.
    pub(super) fn crash(&mut self) {
        if let Some(running) = self.running.take() {
            self.trace.say(format_args!("{}: crash", self.name));
            running.abort();
        }
    }
}

/// What a process is started with.
#[derive(Clone)]
struct ProcessStart {
    /// Its identity in the Lease.
    name: String,
    network: Network,
    config: Arc<vc_conf::Config>,
    trace: Trace,
    faults: Arc<ProcessFaults>,
}

impl ProcessStart {
    async fn supervise(self) {
        let mut n_ends = 0;
        loop {
            let name = format!("{}.{n_ends}", self.name);
            let end = self.run(&name).await;
            self.trace.say(format_args!("{name}: ends: {end}"));
            n_ends += 1;
            tokio::time::sleep(RESTART).await;
        }
    }

    /// One life: waits for the Lease, leads until it is lost. Returns why it ended.
    async fn run(&self, name: &str) -> String {
        let clients = self.network.clients(name);
        if let Err(error) = vc_kube::ensure_queues(&clients.volcano, "default").await {
            return error.to_string();
        }
        let mut leadership = self.election(name).win(&clients, |_| {}).await;
        self.trace.say(format_args!("{name}: leads"));
        let observer: Arc<dyn Observer> = Arc::new(FaultObserver {
            faults: self.faults.clone(),
            is_over: AtomicBool::new(false),
        });
        let (inbox, receiver) = vc_kube::inbox();
        self.faults.leads(&inbox);
        let (effects, batches) = mpsc::channel(BATCHES);
        let mut feeds = vc_kube::follow(&clients, &[KindSet::PriorityClasses], &inbox, &observer);
        let backlog: Backlog = clients.backlog.clone();
        let component = "volcano".to_owned();
        let writer = vc_kube::write(clients, component, inbox.clone(), batches, observer.clone());
        let scheduler_loop = SchedulerLoop {
            inbox: receiver,
            effects,
            pace: PACE,
            backlog,
            n_kinds: feeds.len(),
            check_cycles: 1,
            observer,
            twin: None,
        };
        let (engine, _warnings) = Engine::new(EngineOptions::default(), &self.config);
        tokio::select! {
            biased;
            () = leadership.lost() => "the Lease is lost".to_owned(),
            () = feeds.ended() => "a watch has ended".to_owned(),
            () = writer => "the writer has ended".to_owned(),
            () = scheduler_loop.drive(engine) => "the engine has ended".to_owned(),
            () = never(&inbox) => String::new(),
        }
    }

    fn election(&self, name: &str) -> Election {
        Election {
            namespace: "volcano-system".to_owned(),
            name: "vc-scheduler".to_owned(),
            identity: name.to_owned(),
            component: "volcano".to_owned(),
            lease: Duration::from_secs(15),
            renew: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// Keeps the sender of the inbox for as long as it is polled.
async fn never(_inbox: &mpsc::Sender<EngineMessage>) {
    std::future::pending().await
}

/// Collects what must not happen inside a process.
struct FaultObserver {
    faults: Arc<ProcessFaults>,
    is_over: AtomicBool,
}

impl Observer for FaultObserver {
    fn cycle(&self, _report: &vc_engine::Report) {
        self.faults.n_cycles.fetch_add(1, Ordering::Relaxed);
    }

    fn internal_error(&self, kind: &'static str) {
        if !self.is_over.swap(true, Ordering::Relaxed) {
            self.faults.add(format!("I5: internal error: {kind}"));
        }
    }
}
