//! The page and the answers about the objects of the store. An engine follows them, and one cycle is decided in a
//! copy of it, as `vcsim why` does over files. Specification: answers.md 11, 14 (ANS-93).
//!
//! The decided state is kept until an object that the engine reads changes, and for a minute at
//! most: waiting times are part of answers (ANS-72). Nothing that is decided happens, so the timeline has what
//! others have done to the objects.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::routing::get;
use tokio::sync::{Mutex, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use vc_conf::{AllowMissing, Config};
use vc_engine::EngineOptions;
use vc_kube::wall_micros;
use vc_objects::admission::{AdmittedObjects, admit};
use vc_objects::input::{Input, InputObject, Source};
use vc_page::{
    AnswerSource, Answered, BundleFile, Document, Everybody, Problem, Question, RouteOptions,
    StateSource, Uncounted,
};

use super::expand::is_workload;
use super::kinds::ServedKind;
use super::object::Object;
use super::store::{Store, StoreState};
use super::stream::stopped;
use crate::asked::SimulatedAnswers;
use crate::run::{RunError, configuration};
use crate::simulation::{KubeletMode, ObservedStep, Setup, Simulation};

/// The state is decided anew after this time even if nothing changes.
const MINUTE_MICROS: i64 = 60_000_000;
/// Time between two looks at the objects while nobody asks, at least.
const PAUSE: Duration = Duration::from_secs(1);
/// The pause after a look is at least so many times as long as the look.
const PAUSE_FACTOR: u32 = 10;
/// The pause after a look that has failed. Standard error has a message of each.
const PAUSE_OF_FAILURE: Duration = Duration::from_secs(60);

/// What page to serve.
#[derive(Clone, Debug)]
pub struct PageOptions {
    /// Where to listen; port 0 takes any free one.
    pub listen: SocketAddr,
    /// The configuration that decides.
    pub config: Config,
}

impl PageOptions {
    /// Reads the configuration; without a file it is that of the chart. Also returns a line for
    /// each of its entries that this version lacks.
    ///
    /// # Errors
    /// The file cannot be read, or the scheduler would refuse it.
    pub fn read(
        listen: SocketAddr,
        scheduler_conf: Option<&Path>,
        allow_missing: &AllowMissing,
    ) -> Result<(Self, Vec<String>), RunError> {
        let (name, loaded) = configuration(scheduler_conf, allow_missing)?;
        let problems = loaded.missing.iter().map(|entry| entry.in_file(&name)).collect();
        Ok((Self { listen, config: loaded.config }, problems))
    }
}

/// Returns the routes of the answers and of the page. The root leads to the page.
pub(super) fn routes(answers: StoreAnswers) -> Router {
    let options = RouteOptions { has_page: true };
    let routes = vc_page::routes(Everybody, answers, Arc::new(Uncounted), options);
    routes.route("/", get(|| async { (StatusCode::SEE_OTHER, [(LOCATION, "ui/")]) }))
}

/// Looks at the objects now and then until the server stops, so that what happens is remembered though nobody asks.
pub(super) async fn follow(answers: StoreAnswers, stop: watch::Receiver<bool>) {
    let look = move || {
        let answers = answers.clone();
        async move { answers.look(|_| Ok(())).await.is_ok() }
    };
    repeat_look(look, stop).await;
}

/// Looks again and again until the server stops. `look` returns false if it has failed.
async fn repeat_look<F: Future<Output = bool>>(
    mut look: impl FnMut() -> F,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        let begin = Instant::now();
        let pause = match look().await {
            true => PAUSE.max(PAUSE_FACTOR * begin.elapsed()),
            false => PAUSE_OF_FAILURE,
        };
        if timeout(pause, stopped(&mut stop)).await.is_ok() {
            return;
        }
    }
}

/// Answers about the objects of a store.
#[derive(Clone)]
pub(super) struct StoreAnswers {
    store: Arc<Store>,
    config: Arc<Config>,
    /// Tells the answers of this process from those of others.
    start_micros: i64,
    /// What is known of the objects. `None`: nobody has looked yet, or a look has panicked. One
    /// question is answered at a time.
    observed: Arc<Mutex<Option<ObservedStore>>>,
}

impl StoreAnswers {
    pub(super) fn new(store: Arc<Store>, config: Config) -> Self {
        let (config, start_micros) = (Arc::new(config), wall_micros());
        Self { store, config, start_micros, observed: Arc::default() }
    }

    /// Looks at the objects, if they have changed, and then at what is known of them.
    async fn look<T: Send + 'static>(
        &self,
        then: impl FnOnce(&mut ObservedStore) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let mut observed = self.observed.clone().lock_owned().await;
        let (store, config) = (self.store.clone(), self.config.clone());
        let looking = spawn_blocking(move || {
            // A panic leaves nothing that is half done: what is known is put back after the look.
            let renewed = ObservedStore::renew(observed.take(), &store, &config);
            then(observed.insert(renewed))
        });
        looking.await.unwrap_or_else(|_| Err(failed()))
    }
}

impl AnswerSource for StoreAnswers {
    fn revision(&self) -> Result<String, Problem> {
        let StateRevision { n_restores, revision, minute } = StateRevision::of(&self.store.lock());
        Ok(format!("{}-{n_restores}-{revision}-{minute}", self.start_micros))
    }

    async fn ask(&self, question: Question) -> Result<Answered, Problem> {
        self.look(move |observed| observed.answer(&question)).await
    }
}

fn failed() -> Problem {
    problem(500, "the question failed: standard error says why")
}

fn problem(code: u16, message: &str) -> Problem {
    let message = message.to_owned();
    Problem { code, message, retry_after: None, field: None, nameless: None }
}

/// What decides whether a state is still the one that would be decided now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StateRevision {
    n_restores: u64,
    /// The version of the newest change of an object that the engine reads.
    revision: u64,
    /// Minutes since 1970.
    minute: i64,
}

impl StateRevision {
    fn of(state: &StoreState) -> Self {
        let read = state.collections.iter().filter(|(kind, _)| is_read(kind));
        Self {
            n_restores: state.n_restores,
            revision: read.map(|(_, it)| it.log.newest()).max().unwrap_or_default(),
            minute: wall_micros().div_euclid(MINUTE_MICROS),
        }
    }
}

/// True if the engine reads objects of this kind. Workloads have their pods in the store already
/// and would become pods once more.
fn is_read(kind: &ServedKind) -> bool {
    !is_workload(kind) && vc_wire::kind_of(&kind.api_version(), kind.kind).is_some()
}

/// What is known of the objects of a store, and what has happened to them.
struct ObservedStore {
    /// Has the objects and their timeline. It decides nothing itself.
    simulation: Simulation,
    /// That of the last look.
    revision: StateRevision,
    n_looks: u64,
    /// Answers about what was decided from the objects. `None`: a question has panicked.
    answers: Option<SimulatedAnswers>,
}

impl ObservedStore {
    /// Returns what is known if nothing has changed since, else looks at the objects.
    fn renew(known: Option<Self>, store: &Store, config: &Config) -> Self {
        let newest = StateRevision::of(&store.lock());
        match known {
            Some(known) if known.revision == newest && known.answers.is_some() => known,
            known => Self::look(known, store, config),
        }
    }

    fn look(known: Option<Self>, store: &Store, config: &Config) -> Self {
        let begin = Instant::now();
        let (revision, objects) = read_objects(store);
        let AdmittedObjects { objects, now_micros, .. } = admitted(&objects);
        // The clock of a cluster whose dump was loaded may be ahead of this one.
        let now_micros = now_micros.max(wall_micros());
        let (mut simulation, binds, n_looks) = match known {
            Some(Self { mut simulation, n_looks, .. }) => {
                let binds = simulation.replace_objects(objects);
                (simulation, binds, n_looks + 1)
            }
            None => (begin_simulation(objects, now_micros, config), Vec::new(), 1),
        };
        simulation.tick((now_micros - simulation.now_micros()).max(0));
        let n_events = simulation.apply_observed();
        let mut decided = simulation.copy();
        let last = decided.cycle();
        let took_micros = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
        simulation.record_observed(&ObservedStep {
            binds: &binds,
            n_events,
            report: &last.report,
            number: n_looks,
            took_micros,
        });
        decided.set_timeline(simulation.timeline());
        let answers = Some(SimulatedAnswers::new(decided, &last, StateSource::File));
        Self { simulation, revision, n_looks, answers }
    }

    fn answer(&mut self, question: &Question) -> Result<Answered, Problem> {
        // A panic leaves no answers behind, so that the next question decides anew.
        let mut answers = self.answers.take().ok_or_else(failed)?;
        let document = match question {
            Question::Bundle { .. } => self.bundle(),
            question => answers.answer(question),
        };
        let names = answers.names();
        self.answers = Some(answers);
        document.map(|document| Answered { document, names })
    }

    /// Returns a bundle of the objects as they are, with the cycle that is decided from them.
    fn bundle(&self) -> Result<Document, Problem> {
        let mut simulation = self.simulation.copy();
        simulation.keep_history();
        simulation.cycle();
        let bundle = simulation.bundle();
        let bundle =
            bundle.ok_or_else(|| problem(501, "the configuration asks services outside"))?;
        let contents = bundle.map_err(Problem::unavailable)?;
        let cycle = simulation.n_cycles();
        Ok(Document::Bundle(Box::new(BundleFile { cycle, contents })))
    }
}

/// Returns the objects that the engine reads, and the revision of their state.
fn read_objects(store: &Store) -> (StateRevision, Vec<Arc<Object>>) {
    let state = store.lock();
    let read = state.collections.iter().filter(|(kind, _)| is_read(kind));
    let objects = read.flat_map(|(_, it)| it.objects.values().cloned()).collect();
    (StateRevision::of(&state), objects)
}

/// Returns objects as an API server and controllers would complete them.
fn admitted(objects: &[Arc<Object>]) -> AdmittedObjects {
    let source = Source { file: "vcsim serve".into(), line: 1 };
    let input =
        |object: &Arc<Object>| InputObject { value: object.value.clone(), source: source.clone() };
    let objects = objects.iter().map(input).collect();
    admit(Input { objects, ..Input::default() })
}

/// Returns a simulation that begins with objects, and remembers what happens to them.
fn begin_simulation(objects: Vec<InputObject>, now_micros: i64, config: &Config) -> Simulation {
    let (mut simulation, _findings, _warnings) = Simulation::new(Setup {
        options: EngineOptions::default(),
        config,
        objects,
        now_micros,
        kubelet: KubeletMode::None,
    });
    simulation.keep_timeline();
    simulation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ans_93_a_look_that_fails_is_not_the_last_one() {
        let (stop, stopped) = watch::channel(false);
        let begin = tokio::time::Instant::now();
        let mut n_looks = 0;
        let look = || {
            n_looks += 1;
            let is_failure = n_looks == 1;
            if n_looks == 3 {
                stop.send_replace(true);
            }
            async move { !is_failure }
        };
        repeat_look(look, stopped).await;
        assert_eq!(n_looks, 3);
        assert!(PAUSE_OF_FAILURE + PAUSE <= begin.elapsed(), "{:?}", begin.elapsed());
    }
}
