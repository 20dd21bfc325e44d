//! The way from a scheduler process to the simulated API server: delays, and faults of single requests
//! and watches.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::USER_AGENT;
use axum::http::{HeaderValue, Method, Request, Response, Uri};
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use tower::{BoxError, ServiceExt};
use vc_kube::RequestBody;

use super::admission::{RefusedWrite, Refuser};
use super::answer::{self, Passing};
use super::crash::{CrashPoint, PlannedCrash};
use super::fault::{FaultKind, Strikes};
use super::managers::MANAGER;
use super::request_faults::{RequestFaults, RequestKind, draw_cache_lag, takes_any_version};
use super::rest_writes::RestWrites;
use super::script::Script;
use super::topology::TopologyWitness;
use super::trace::Trace;
use super::usage::{self, UsageWitness};
use super::witness::{SentWrite, Witness};
use super::write_counts::WriteCounts;
use crate::rng::Rng;
use crate::serve::{Change, Event, Store};

/// Time until a client notices that its connection is lost.
const LOST: Duration = Duration::from_secs(5);

/// Path of the version of the server, which is the first that a process asks for.
const VERSION: &str = "/version";

/// The network. Clones share it.
#[derive(Clone)]
pub(super) struct Network(Arc<Shared>);

struct Shared {
    router: Router,
    store: Arc<Store>,
    trace: Trace,
    /// Counts up when every open watch ends.
    cuts: watch::Sender<u64>,
    /// Nothing takes the Lease from who leads.
    keeps_leader: bool,
    /// Faults strike the start of processes too.
    strikes_starts: bool,
    state: Mutex<NetworkState>,
}

struct NetworkState {
    rng: Rng,
    /// Of lists that may come from a cache. A source of its own, so that the other numbers stay the
    /// same whether there are such lists or not.
    cache_rng: Rng,
    /// Kinds that may strike. Empty once the story is quiet.
    faults: BTreeSet<FaultKind>,
    /// The server is away by this kind of fault until then.
    away: Option<(FaultKind, Instant)>,
    /// Until then every request takes up to so many milliseconds more.
    slow_until: Option<(Instant, u64)>,
    /// What is refused to whom, until when.
    refusals: Vec<(Refused, Instant)>,
    /// Writes that the server has done, without those of Leases and events.
    n_writes: u64,
    /// The writes at rest. `None`: the story is not at rest.
    rest_writes: Option<RestWrites>,
    strikes: Strikes,
    witness: Witness,
    counts: WriteCounts,
    /// `None`: no usage is kept in this story.
    usage: Option<UsageWitness>,
    /// `None`: there are no HyperNodes in this story.
    topology: Option<TopologyWitness>,
}

impl NetworkState {
    /// Looks at a request on its way to the server.
    fn look_at_request(&mut self, sent: &SentWrite, kind: RequestKind, store: &Arc<Store>) {
        match kind {
            RequestKind::Write => {
                self.witness.sent(sent, store);
                self.counts.sent(sent);
            }
            RequestKind::Get => self.counts.note_read(sent),
            RequestKind::List { .. } | RequestKind::Watch { .. } => {}
        }
    }

    /// Looks at a request that the server has refused or not got.
    fn look_at_failure(&mut self, sent: &SentWrite) {
        self.witness.not_done(sent);
        self.counts.struck(sent);
    }

    /// Looks at what the server has done, before the process knows of it.
    fn look_at_answer(&mut self, sent: &SentWrite, store: &Arc<Store>) {
        self.witness.done(sent, store);
        self.counts.done(sent, store);
        if let Some(topology) = self.topology.as_mut().filter(|_| sent.is_bind()) {
            topology.look_at_bind(sent, self.witness.leader(), store);
        }
    }
}

/// Requests that are refused for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// 401 for the process whose names begin like this.
    Process(String),
    /// 403 for a part of the path.
    Resource(&'static str),
    /// What an admission plugin says.
    Write(RefusedWrite, Refuser),
}

/// Reports to the planned crash that a write of the process has reached this point. Never returns
/// if the process has crashed. Writes of the Lease are left out unless the crash counts them.
async fn pass(crash: &PlannedCrash, sent: &SentWrite, point: CrashPoint) {
    let is_counted = !sent.path.contains("/leases") || crash.counts_leases();
    if is_counted && !crash.passes(point) {
        std::future::pending::<()>().await;
    }
}

/// True for a question about a restore: a list of one object, which may be the one that was seen last.
fn asks_about_restore(query: &str) -> bool {
    query.split('&').any(|part| part == "limit=1")
}

type Answer = Result<Response<Body>, BoxError>;

impl Refused {
    fn kind(&self) -> FaultKind {
        match self {
            Self::Process(_) => FaultKind::TokenExpired,
            Self::Resource(_) => FaultKind::RightTaken,
            Self::Write(..) => FaultKind::Refusal,
        }
    }

    /// Status, reason and message for this request. `None`: it is another one.
    fn refusal(&self, sent: &SentWrite) -> Option<answer::Refusal> {
        let SentWrite { process, path, .. } = sent;
        match self {
            Self::Process(name) => {
                let is_it = process.starts_with(name.as_str());
                is_it.then_some((401, "Unauthorized", "Unauthorized".into()))
            }
            Self::Resource(resource) => {
                let is_it = path.split('/').any(|part| part == *resource);
                is_it.then_some((403, "Forbidden", "no right to this resource".into()))
            }
            Self::Write(write, refuser) => refuser.refusal(*write, sent),
        }
    }
}

impl Network {
    pub(super) fn new(
        (router, store): (Router, Arc<Store>),
        script: &Script,
        faults: BTreeSet<FaultKind>,
        trace: Trace,
    ) -> Self {
        let state = NetworkState {
            rng: Rng::new(script.seed),
            cache_rng: Rng::new(!script.seed),
            faults,
            away: None,
            slow_until: None,
            refusals: Vec::new(),
            n_writes: 0,
            rest_writes: None,
            strikes: Strikes::default(),
            witness: Witness::new(),
            // Controllers make the pods of a gang after its PodGroup was written.
            counts: WriteCounts::new(!script.has_controllers),
            usage: script.keeps_usage.then(UsageWitness::new),
            topology: script.has_networks.then(TopologyWitness::new),
        };
        let (cuts, _) = watch::channel(0);
        let Script { keeps_leader, strikes_starts, .. } = *script;
        let state = Mutex::new(state);
        Self(Arc::new(Shared { router, store, trace, cuts, keeps_leader, strikes_starts, state }))
    }

    fn state(&self) -> MutexGuard<'_, NetworkState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all faults.
    pub(super) fn calm(&self) {
        let mut state = self.state();
        state.faults.clear();
        state.away = None;
        state.slow_until = None;
        state.refusals.clear();
    }

    /// Makes the server answer nobody for so long, by this kind of fault.
    pub(super) fn away_for(&self, kind: FaultKind, time: Duration) {
        self.state().away = Some((kind, Instant::now() + time));
    }

    /// Counts a fault that has struck.
    pub(super) fn strike(&self, kind: FaultKind) {
        self.state().strikes.add(kind);
    }

    /// Returns how often each kind of fault has struck so far.
    pub(super) fn strikes(&self) -> Strikes {
        self.state().strikes.clone()
    }

    /// Makes every request take up to so many milliseconds more, for so long.
    pub(super) fn slow_for(&self, time: Duration, most_millis: u64) {
        self.state().slow_until = Some((Instant::now() + time, most_millis));
    }

    /// Refuses requests for so long.
    pub(super) fn refuse(&self, refused: Refused, time: Duration) {
        self.state().refusals.push((refused, Instant::now() + time));
    }

    /// The server has begun anew with older objects: every watch ends.
    pub(super) fn restored(&self) {
        let mut state = self.state();
        state.witness.restored(&self.0.store);
        state.counts.restored();
        state.usage.iter_mut().for_each(UsageWitness::restored);
        state.topology.iter_mut().for_each(TopologyWitness::note_restore);
        drop(state);
        self.note_all_pods();
        self.0.cuts.send_modify(|n_cuts| *n_cuts += 1);
    }

    /// Something has changed from outside. `may_evict`: evictions may follow.
    pub(super) fn outside_change(&self, may_evict: bool) {
        self.state().witness.outside_change(may_evict, &self.0.store);
    }

    /// Returns the violations that requests have shown, and forgets them.
    pub(super) fn take_violations(&self) -> Vec<String> {
        let mut state = self.state();
        let usage = state.usage.as_mut().map(UsageWitness::take).unwrap_or_default();
        let topology = state.topology.as_mut().map(|it| it.take(&self.0.store));
        let topology = topology.unwrap_or_default();
        let counts = state.counts.take();
        state.witness.take().into_iter().chain(counts).chain(usage).chain(topology).collect()
    }

    /// Takes note of pods that have changed, for the usage that is saved.
    pub(super) fn note_pods(&self, events: &[Arc<Event>]) {
        if let Some(usage) = &mut self.state().usage {
            for event in events {
                let is_gone = event.change == Change::Deleted;
                usage.note_pod(&event.object, vc_kube::wall_micros(), is_gone);
            }
        }
    }

    /// Takes note of all pods that there are.
    pub(super) fn note_all_pods(&self) {
        if let Some(usage) = &mut self.state().usage {
            usage.note_pods(&self.0.store, vc_kube::wall_micros());
        }
    }

    /// HyperNodes have changed.
    pub(super) fn hyper_nodes_changed(&self) {
        self.state().topology.iter_mut().for_each(TopologyWitness::note_change);
    }

    /// The clock of a process is set.
    pub(super) fn clock_is_set(&self) {
        self.state().usage.iter_mut().for_each(UsageWitness::clock_is_set);
    }

    /// True if who leads has saved the usage last.
    pub(super) fn leader_has_saved_usage(&self) -> bool {
        let state = self.state();
        state.usage.as_ref().is_some_and(|usage| usage.is_saver(state.witness.leader()))
    }

    /// Somebody else has written into the ConfigMap with the usage, or has deleted it.
    pub(super) fn others_wrote_usage(&self, note: Option<&str>) {
        self.state().usage.iter_mut().for_each(|usage| usage.others_wrote(note));
    }

    /// Returns the nodes that got a bind whose sender no longer held the Lease, and forgets them.
    pub(super) fn take_late_binds(&self) -> BTreeSet<String> {
        self.state().witness.take_late_binds()
    }

    /// True if the leader's list of pods has not come to its end, unless it takes very long.
    pub(super) fn leader_lists_pods(&self) -> bool {
        self.state().witness.leader_lists_pods()
    }

    /// Returns the PodGroups of which the scheduler has evicted pods.
    pub(super) fn evicted_groups(&self) -> BTreeSet<String> {
        self.state().witness.evicted.clone()
    }

    /// A process begins to lead.
    pub(super) fn leads(&self, process: &str) {
        let mut state = self.state();
        state.witness.leads(&self.0.store);
        if let Some(usage) = &mut state.usage {
            usage.begins_with(&process.into(), usage::stored(&self.0.store));
        }
    }

    /// A process has a new configuration.
    pub(super) fn has_new_configuration(&self) {
        self.state().witness.has_new_configuration();
    }

    /// Returns the PodGroups that a leader before has left half bound, and others that it could not
    /// complete.
    pub(super) fn half_bound_groups(&self) -> BTreeSet<String> {
        self.state().witness.half_bound.clone()
    }

    /// Tells the witness that a node goes.
    pub(super) fn loses_node(&self, name: &str) {
        self.state().witness.loses_node(name);
    }

    /// Returns the PodGroups of which a bind was refused or lost.
    pub(super) fn unbound_groups(&self) -> BTreeSet<String> {
        self.state().witness.unbound.clone()
    }

    /// Returns the number of writes so far, without those of Leases and events.
    pub(super) fn n_writes(&self) -> u64 {
        self.state().n_writes
    }

    /// Takes note of all writes from now on, which are those at rest.
    pub(super) fn begin_rest(&self) {
        self.state().rest_writes = Some(RestWrites::default());
    }

    /// Returns the violations that writes at rest have shown. The rest ends.
    pub(super) fn end_rest(&self) -> Vec<String> {
        let writes = self.state().rest_writes.take();
        writes.map(|writes| writes.violations()).unwrap_or_default()
    }

    /// Returns the violations that events about pods have shown.
    pub(super) fn repeated_events(&self) -> Vec<String> {
        self.state().counts.repeated_events()
    }

    /// Returns clients for the process of this name. They tell `crash` how far its writes are.
    pub(super) fn clients(&self, process: &str, crash: &PlannedCrash) -> vc_kube::Clients {
        let (network, process, crash): (_, Arc<str>, _) =
            (self.clone(), process.into(), crash.clone());
        vc_kube::Clients::over(tower::service_fn(move |request: Request<RequestBody>| {
            let (network, process, crash) = (network.clone(), process.clone(), crash.clone());
            async move { network.send((process, crash), request).await }
        }))
    }

    async fn send(
        self,
        (process, crash): (Arc<str>, PlannedCrash),
        request: Request<RequestBody>,
    ) -> Answer {
        let (mut parts, body) = request.into_parts();
        if parts.uri.path() == VERSION && !self.0.strikes_starts {
            let request = Request::from_parts(parts, Body::empty());
            return Ok(self.0.router.clone().oneshot(request).await?);
        }
        parts.headers.entry(USER_AGENT).or_insert(HeaderValue::from_static(MANAGER));
        let query = parts.uri.query().unwrap_or_default();
        let kind = RequestKind::of(&parts.method, query);
        let lists = kind.lists() && !asks_about_restore(query);
        let is_cached = takes_any_version(query);
        let faults = self.draw_faults(kind, (&parts.method, parts.uri.path()));
        if let Some(uri) = faults.changed_query(&parts.uri) {
            parts.uri = uri;
            self.strike(FaultKind::ListCut);
        }
        let path = parts.uri.path().to_owned();
        let name = format!("{process}: {} {path}", parts.method);
        if let Some(fault) = faults.fault {
            self.0.trace.say(format_args!("{name}: {}", fault.word()));
        }
        if is_cached {
            let lag = draw_cache_lag(&mut self.state().cache_rng);
            self.0.trace.say(format_args!("{name}: a cache lacks {} versions", lag.versions));
            parts.extensions.insert(lag);
        }
        let method = parts.method.to_string();
        let bytes = body.collect().await?.to_bytes();
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let mut sent = SentWrite { process, method, path, body, pod_group: String::new() };
        if lists {
            self.state().witness.lists(&sent.process, &sent.path);
        }
        if kind == RequestKind::Write {
            pass(&crash, &sent, CrashPoint::Unsent).await;
            sent.find_pod_group(&self.0.store);
        }
        self.state().look_at_request(&sent, kind, &self.0.store);
        // A task of its own: what was sent arrives, whatever becomes of the sender.
        let request = Request::from_parts(parts, Body::from(bytes));
        let server = self.clone().serve(request, faults, kind, (sent.clone(), crash.clone()));
        let server = tokio::spawn(server);
        if kind == RequestKind::Write {
            pass(&crash, &sent, CrashPoint::Sent).await;
        }
        let answer = server.await.map_err(BoxError::from)??;
        match kind == RequestKind::Write && answer.status().is_success() {
            // The client may have given up waiting; then this line is never reached.
            true => {
                let answer = self.answered(&sent, answer).await;
                pass(&crash, &sent, CrashPoint::Answered).await;
                answer
            }
            false => Ok(answer),
        }
    }

    /// Draws the delays and the fault of a request.
    fn draw_faults(&self, kind: RequestKind, (method, path): (&Method, &str)) -> RequestFaults {
        let mut state = self.state();
        let NetworkState { rng, faults, slow_until, .. } = &mut *state;
        let drawn = RequestFaults::drawn(rng, faults, kind);
        let mut drawn = match self.0.keeps_leader {
            true => drawn.that_keep_the_leader(faults, (method, path)),
            false => drawn,
        };
        if let Some((_, most)) = slow_until.filter(|(until, _)| Instant::now() < *until) {
            drawn.before += Duration::from_millis(rng.below(most));
        }
        drawn
    }

    async fn serve(
        self,
        request: Request<Body>,
        faults: RequestFaults,
        kind: RequestKind,
        (sent, crash): (SentWrite, PlannedCrash),
    ) -> Answer {
        if faults.fault.is_some() {
            self.state().counts.struck(&sent);
        }
        sleep(faults.before).await;
        if let Some(kind) = self.loss(&faults) {
            self.strike(kind);
            self.state().look_at_failure(&sent);
            sleep(LOST).await;
            return Err("the connection was lost".into());
        }
        let refused = faults.refusal().or_else(|| self.refusal(&sent));
        if let Some((kind, refusal)) = refused {
            self.strike(kind);
            self.state().look_at_failure(&sent);
            return Ok(answer::refusal(refusal, faults.retry_after));
        }
        let uri = request.uri().clone();
        let answer = self.0.router.clone().oneshot(request).await?;
        let is_done = answer.status().is_success();
        self.count(&sent, kind, &answer);
        if is_done {
            self.state().look_at_answer(&sent, &self.0.store);
            self.look_at_usage(&sent, kind);
        }
        if is_done && kind == RequestKind::Write {
            pass(&crash, &sent, CrashPoint::Done).await;
        }
        sleep(faults.after).await;
        match (faults.fault, kind) {
            (Some(FaultKind::LostAnswer), _) => {
                self.strike(FaultKind::LostAnswer);
                sleep(LOST).await;
                Err("the connection was lost".into())
            }
            (_, RequestKind::Watch { .. } | RequestKind::List { .. }) if is_done => {
                Ok(self.passing(&sent.process, &uri, &faults).through(answer))
            }
            _ => Ok(answer),
        }
    }

    /// Looks at the usage that is read or saved by a request which was done.
    fn look_at_usage(&self, sent: &SentWrite, kind: RequestKind) {
        let mut state = self.state();
        let Some(usage) = state.usage.as_mut().filter(|_| usage::is_path(&sent.path)) else {
            return;
        };
        let text = usage::stored(&self.0.store);
        match kind {
            RequestKind::Write => usage.saved(&sent.process, text),
            _ => usage.read(&sent.process, text),
        }
    }

    /// Counts a write and says what became of it.
    fn count(&self, sent: &SentWrite, kind: RequestKind, answer: &Response<Body>) {
        let SentWrite { process, method, path, .. } = sent;
        if kind != RequestKind::Write {
            return;
        }
        let code = answer.status().as_u16();
        if let Some(writes) = &mut self.state().rest_writes {
            writes.note(sent, code, &self.0.store);
        }
        if !path.contains("/leases") && !path.contains("/events") {
            self.state().n_writes += u64::from(answer.status().is_success());
            let decision = sent.decision();
            self.0.trace.say(format_args!("{process}: {method} {path}{decision}: {code}"));
        }
    }

    /// The kind of fault by which a request is lost before the server has it. `None`: it arrives.
    /// Counts a slow request, too.
    fn loss(&self, faults: &RequestFaults) -> Option<FaultKind> {
        let mut state = self.state();
        if faults.fault == Some(FaultKind::Slow) {
            state.strikes.add(FaultKind::Slow);
        }
        let now = Instant::now();
        let away = state.away.filter(|(_, until)| now < *until).map(|(kind, _)| kind);
        away.or(faults.fault.filter(|kind| *kind == FaultKind::LostRequest))
    }

    fn refusal(&self, sent: &SentWrite) -> Option<(FaultKind, answer::Refusal)> {
        let mut state = self.state();
        let now = Instant::now();
        state.refusals.retain(|(_, until)| now < *until);
        let refusals = &state.refusals;
        refusals.iter().find_map(|(refused, _)| Some((refused.kind(), refused.refusal(sent)?)))
    }

    /// The process gets the answer to a write that was done.
    async fn answered(self, sent: &SentWrite, answer: Response<Body>) -> Answer {
        let (parts, body) = answer.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let object: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let version = object["metadata"]["resourceVersion"].as_str().map(str::to_owned);
        self.state().witness.answered(sent, version);
        Ok(Response::from_parts(parts, Body::from(bytes)))
    }

    /// How the body of a list or a watch comes to its process.
    fn passing(&self, process: &Arc<str>, uri: &Uri, faults: &RequestFaults) -> Passing {
        faults.on_the_way().for_each(|kind| self.strike(kind));
        let (network, process, path) = (self.clone(), process.clone(), uri.path().to_owned());
        let mut cuts = self.0.cuts.subscribe();
        let is_of_one = uri.query().is_some_and(asks_about_restore);
        let mut end = answer::EndOfList::default();
        Passing {
            cut_after: faults.cut_after,
            most_lines: faults.most_lines,
            most_bytes: faults.most_bytes,
            lag: faults.lag,
            cut: Box::pin(async move {
                if cuts.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }),
            listed: Box::new(move |piece: &Bytes| {
                if end.comes_with(piece) && !is_of_one {
                    network.state().witness.listed(&process, &path);
                }
            }),
        }
    }
}
