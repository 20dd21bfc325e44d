//! The page and the answers about the objects of the store. An engine of its own decides once over
//! them, as `vcsim why` does over files. Specification: answers.md 11, 14 (ANS-93).
//!
//! The decided state is kept until an object that the engine reads changes, and for a minute at
//! most: waiting times are part of answers (ANS-72).

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::routing::get;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use vc_conf::{AllowMissing, Config};
use vc_engine::EngineOptions;
use vc_kube::wall_micros;
use vc_objects::admission::{AdmittedObjects, admit};
use vc_objects::input::{Input, InputObject, Source};
use vc_page::{
    AnswerSource, Answered, Everybody, Problem, Question, RouteOptions, StateSource, Uncounted,
};

use super::expand::is_workload;
use super::kinds::ServedKind;
use super::object::Object;
use super::store::{Store, StoreState};
use crate::asked::SimulatedAnswers;
use crate::run::{RunError, configuration};
use crate::simulation::{KubeletMode, Setup, Simulation};

/// The state is decided anew after this time even if nothing changes.
const MINUTE_MICROS: i64 = 60_000_000;

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
pub(super) fn routes(store: Arc<Store>, config: Config) -> Router {
    let answers = StoreAnswers {
        store,
        config: Arc::new(config),
        start_micros: wall_micros(),
        decided: Arc::default(),
    };
    let options = RouteOptions { has_page: true };
    let routes = vc_page::routes(Everybody, answers, Arc::new(Uncounted), options);
    routes.route("/", get(|| async { (StatusCode::SEE_OTHER, [(LOCATION, "ui/")]) }))
}

/// Answers about the objects of a store.
struct StoreAnswers {
    store: Arc<Store>,
    config: Arc<Config>,
    /// Tells the answers of this process from those of others.
    start_micros: i64,
    /// The state that was decided last. `None`: there is none yet, or a question has panicked. One
    /// question is answered at a time.
    decided: Arc<Mutex<Option<DecidedState>>>,
}

impl AnswerSource for StoreAnswers {
    fn revision(&self) -> Result<String, Problem> {
        let StateRevision { n_restores, revision, minute } = StateRevision::of(&self.store.lock());
        Ok(format!("{}-{n_restores}-{revision}-{minute}", self.start_micros))
    }

    async fn ask(&self, question: Question) -> Result<Answered, Problem> {
        if let Some(what) = memory_asked_by(&question) {
            return Err(without_memory(what));
        }
        let mut decided = self.decided.clone().lock_owned().await;
        let (store, config) = (self.store.clone(), self.config.clone());
        let answering = spawn_blocking(move || {
            // A panic leaves nothing that is half done: the state is put back after the answer.
            let mut state = DecidedState::renew(decided.take(), &store, &config);
            let answered = state.answer(&question);
            *decided = Some(state);
            answered
        });
        let failed = |_| Err(problem(500, "the question failed: standard error says why"));
        answering.await.unwrap_or_else(failed)
    }
}

/// Returns what a question wants to know that only a scheduler remembers. Returns `None` if the
/// objects are enough.
fn memory_asked_by(question: &Question) -> Option<&'static str> {
    match question {
        Question::Timeline(_) => Some("timeline"),
        Question::Cycles { .. } => Some("list of cycles"),
        Question::Bundle { .. } => Some("bundle"),
        _ => None,
    }
}

fn without_memory(what: &str) -> Problem {
    let text = format!(
        "vcsim serve has no {what}: it remembers nothing and decides from the objects as they are\n\
         hint: start vc-scheduler with --enable-answers and ask that"
    );
    problem(501, &text)
}

fn problem(code: u16, message: &str) -> Problem {
    Problem { code, message: message.to_owned(), retry_after: None, field: None }
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

/// The state after one cycle over the objects.
struct DecidedState {
    revision: StateRevision,
    answers: SimulatedAnswers,
}

impl DecidedState {
    /// Returns the state that is known if nothing has changed since, else a new one.
    fn renew(known: Option<Self>, store: &Store, config: &Config) -> Self {
        let newest = StateRevision::of(&store.lock());
        if let Some(known) = known.filter(|known| known.revision == newest) {
            return known;
        }
        let (revision, objects) = read_objects(store);
        Self { revision, answers: decide(&objects, config) }
    }

    fn answer(&mut self, question: &Question) -> Result<Answered, Problem> {
        let document = self.answers.answer(question)?;
        Ok(Answered { document, names: self.answers.names() })
    }
}

/// Returns the objects that the engine reads, and the revision of their state.
fn read_objects(store: &Store) -> (StateRevision, Vec<Arc<Object>>) {
    let state = store.lock();
    let read = state.collections.iter().filter(|(kind, _)| is_read(kind));
    let objects = read.flat_map(|(_, it)| it.objects.values().cloned()).collect();
    (StateRevision::of(&state), objects)
}

/// Runs one cycle over objects.
fn decide(objects: &[Arc<Object>], config: &Config) -> SimulatedAnswers {
    let source = Source { file: "vcsim serve".into(), line: 1 };
    let input =
        |object: &Arc<Object>| InputObject { value: object.value.clone(), source: source.clone() };
    let objects = objects.iter().map(input).collect();
    let AdmittedObjects { objects, now_micros, .. } = admit(Input { objects, ..Input::default() });
    let (mut simulation, _findings, _warnings) = Simulation::new(Setup {
        options: EngineOptions::default(),
        config,
        objects,
        // The clock of a cluster whose dump was loaded may be ahead of this one.
        now_micros: now_micros.max(wall_micros()),
        kubelet: KubeletMode::None,
    });
    simulation.keep_timeline();
    let last = simulation.cycle();
    SimulatedAnswers::new(simulation, &last, StateSource::File)
}
