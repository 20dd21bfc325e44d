//! The scheduler process of a soak: watches, writer and engine of the daemon on the thread of the
//! simulation, over a network that only delays.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;
use tower::{BoxError, ServiceExt};
use vc_engine::{Engine, EngineOptions, Report};
use vc_kube::{
    Clients, CyclePace, EngineMessage, EngineVisit, KindSet, LeaderFailure, LeaderSetup,
    LeaderWork, Observer, RequestBody, ScheduleTrigger, SimulatedProcess,
};

use super::SoakError;
use crate::fuzz::configs;
use crate::one_thread::OneThread;

/// Time of a request on its way to the server.
const DELAY: Duration = Duration::from_millis(2);
/// The daemon's defaults.
const PACE: CyclePace = CyclePace {
    trigger: ScheduleTrigger::Change,
    period: Duration::from_secs(1),
    gather: Duration::from_millis(10),
};
/// After so many cycles every sum of the engine is computed anew and compared.
const CHECK_CYCLES: u64 = 1_000;

/// A running scheduler process. It ends with this value.
pub(super) struct SoakScheduler {
    /// Ends when the scheduler does, which it must not.
    pub(super) leading: Pin<Box<dyn Future<Output = Result<(), LeaderFailure>>>>,
    inbox: mpsc::Sender<EngineMessage>,
    log: Arc<CycleLog>,
    _threads: OneThread,
}

impl SoakScheduler {
    pub(super) async fn start(router: Router) -> Result<Self, SoakError> {
        let fault = |text: String| SoakError::Simulation(text);
        let config = configs::read(configs::EVICTING).map_err(fault)?.config;
        let options =
            EngineOptions { stopwatch: Some(nanos_of_machine), ..EngineOptions::default() };
        let (engine, _warnings) = Engine::new(options, &config);
        let log = Arc::new(CycleLog::default());
        let setup = LeaderSetup {
            component: "volcano".to_owned(),
            kinds: vec![KindSet::PriorityClasses],
            pace: PACE,
            check_cycles: CHECK_CYCLES,
            observer: log.clone(),
            twin: None,
        };
        let clients = clients(router);
        let queues = vc_kube::ensure_queues(&clients.volcano, "default").await;
        queues.map_err(|error| SoakError::Scheduler(error.to_string()))?;
        let mut threads = OneThread::new(SimulatedProcess::new(Arc::default(), || true));
        let work = LeaderWork::start(&mut threads, &clients, setup, engine)
            .map_err(|error| fault(error.to_string()))?;
        let inbox = work.inbox().clone();
        let leading = Box::pin(work.lead(None, std::future::pending()));
        Ok(Self { leading, inbox, log, _threads: threads })
    }

    /// Looks at the engine between two cycles.
    pub(super) async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Engine) -> T + Send + 'static,
    ) -> Result<T, SoakError> {
        let (sender, receiver) = oneshot::channel();
        let visit = EngineVisit::look(move |engine| drop(sender.send(look(engine))));
        let ended = || SoakError::Scheduler("the engine has ended".to_owned());
        self.inbox.send(EngineMessage::Visit(visit)).await.map_err(|_| ended())?;
        receiver.await.map_err(|_| ended())
    }

    /// Returns the durations of the cycles since the last call in microseconds of the machine.
    pub(super) fn take_cycles(&self) -> Vec<u64> {
        std::mem::take(&mut self.log.lock().cycles_micros)
    }

    /// Returns the sizes of the tables of the writers by name, as they were told last.
    pub(super) fn writer_tables(&self) -> BTreeMap<&'static str, usize> {
        self.log.lock().writer_tables.clone()
    }

    /// Returns what the scheduler has found wrong in itself. `None`: nothing.
    pub(super) fn fault(&self) -> Option<String> {
        self.log.lock().fault.clone()
    }
}

/// Nanoseconds of the machine's clock since the first call.
fn nanos_of_machine() -> u64 {
    static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(ORIGIN.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn clients(router: Router) -> Clients {
    Clients::over(tower::service_fn(move |request: Request<RequestBody>| {
        let router = router.clone();
        async move {
            sleep(DELAY).await;
            router.oneshot(request.map(Body::new)).await.map_err(BoxError::from)
        }
    }))
}

/// Durations of cycles, sizes of tables, and the first fault.
#[derive(Default)]
struct CycleLog(Mutex<CycleRecords>);

#[derive(Default)]
struct CycleRecords {
    cycles_micros: Vec<u64>,
    fault: Option<String>,
    writer_tables: BTreeMap<&'static str, usize>,
}

impl CycleLog {
    fn lock(&self) -> MutexGuard<'_, CycleRecords> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for CycleLog {
    fn cycle(&self, report: &Report) {
        let mut records = self.lock();
        records.cycles_micros.extend(report.timings.as_ref().map(|it| it.cycle / 1_000));
        if let Some(broken) = report.broken_invariants.first() {
            records.fault.get_or_insert_with(|| format!("{}: {}", broken.name, broken.text));
        }
    }

    fn table_size(&self, table: &'static str, size: usize) {
        self.lock().writer_tables.insert(table, size);
    }

    fn internal_error(&self, kind: &'static str) {
        self.lock().fault.get_or_insert_with(|| format!("internal error: {kind}"));
    }
}
