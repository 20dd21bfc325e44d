//! The way from a scheduler process to the simulated API server: delays, and faults of single requests
//! and watches.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, Response, header};
use futures::{StreamExt, stream};
use http_body_util::BodyExt;
use serde_json::json;
use tokio::time::{Instant, sleep, sleep_until};
use tower::{BoxError, ServiceExt};
use vc_kube::RequestBody;

use super::fault::{self, FaultKind};
use super::rng::Rng;
use super::trace::Trace;
use crate::serve::{LEASES, Store};

/// Time after which a leader has noticed that the Lease is another's: it renews every two seconds, and gives
/// up after ten without success.
const NOTICED: Duration = Duration::from_secs(12);
/// Time until a client notices that its connection is lost.
const LOST: Duration = Duration::from_secs(5);

/// The network. Clones share it.
#[derive(Clone)]
pub(super) struct Network(Arc<Shared>);

struct Shared {
    router: Router,
    store: Arc<Store>,
    trace: Trace,
    state: Mutex<NetworkState>,
}

struct NetworkState {
    rng: Rng,
    /// Kinds that may strike. Empty once the story is quiet.
    faults: BTreeSet<FaultKind>,
    /// The server is away until then.
    away_until: Option<Instant>,
    /// Writes that the server has done, without those of Leases and events.
    n_writes: u64,
    /// Who holds the Lease, and since when.
    holder: (String, Instant),
    violations: Vec<String>,
}

/// The delays and the fault of one request, and of the watch that it opens.
struct RequestFaults {
    before: Duration,
    after: Duration,
    fault: Option<FaultKind>,
    /// A watch ends after this time.
    cut_after: Option<Duration>,
    /// The events of a watch come so much later.
    lag: Duration,
    retry_after: Option<u64>,
}

type Answer = Result<Response<Body>, BoxError>;

impl Network {
    pub(super) fn new(
        (router, store): (Router, Arc<Store>),
        seed: u64,
        faults: BTreeSet<FaultKind>,
        trace: Trace,
    ) -> Self {
        let rng = Rng::new(seed);
        let state = NetworkState {
            rng,
            faults,
            away_until: None,
            n_writes: 0,
            holder: (String::new(), Instant::now()),
            violations: Vec::new(),
        };
        Self(Arc::new(Shared { router, store, trace, state: Mutex::new(state) }))
    }

    fn state(&self) -> MutexGuard<'_, NetworkState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all faults.
    pub(super) fn calm(&self) {
        let mut state = self.state();
        state.faults.clear();
        state.away_until = None;
    }

    /// Makes the server answer nobody for so long.
    pub(super) fn away_for(&self, time: Duration) {
        self.state().away_until = Some(Instant::now() + time);
    }

    /// Returns the violations that requests have shown, and forgets them.
    pub(super) fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut self.state().violations)
    }

    /// Returns the number of writes so far, without those of Leases and events.
    pub(super) fn n_writes(&self) -> u64 {
        self.state().n_writes
    }

    /// Returns clients for the process of this name.
    pub(super) fn clients(&self, process: &str) -> vc_kube::Clients {
        let (network, process): (_, Arc<str>) = (self.clone(), process.into());
        vc_kube::Clients::over(tower::service_fn(move |request: Request<RequestBody>| {
            let (network, process) = (network.clone(), process.clone());
            async move { network.send(process, request).await }
        }))
    }

    async fn send(self, process: Arc<str>, request: Request<RequestBody>) -> Answer {
        let (parts, body) = request.into_parts();
        let is_write = parts.method != "GET";
        let is_watch = parts.uri.query().is_some_and(|query| query.contains("watch=true"));
        let faults = self.state().faults(is_write, is_watch);
        let path = parts.uri.path();
        self.look_at_the_leader(&process, path);
        let name = format!("{process}: {} {path}", parts.method);
        if let Some(fault) = faults.fault {
            self.0.trace.say(format_args!("{name}: {}", fault.word()));
        }
        let bytes = body.collect().await?.to_bytes();
        let is_counted = is_write && !path.contains("/leases") && !path.contains("/events");
        // A task of its own: what was sent arrives, whatever becomes of the sender.
        let server = tokio::spawn(self.serve(
            Request::from_parts(parts, Body::from(bytes)),
            faults,
            is_watch,
            (is_counted, name),
        ));
        server.await.map_err(BoxError::from)?
    }

    /// I7: who binds holds the Lease, or has lost it only just now.
    fn look_at_the_leader(&self, process: &str, path: &str) {
        let lease = self.0.store.get(&LEASES, "volcano-system", "vc-scheduler");
        let holder = lease
            .and_then(|lease| lease.value["spec"]["holderIdentity"].as_str().map(str::to_owned));
        let (holder, mut state) = (holder.unwrap_or_default(), self.state());
        if state.holder.0 != holder {
            state.holder = (holder, Instant::now());
        }
        let is_over = state.holder.1 + NOTICED < Instant::now();
        if path.ends_with("/binding") && state.holder.0 != process && is_over {
            let holder = &state.holder.0;
            let text = format!("I7: {process} binds, while {holder:?} holds the Lease");
            state.violations.push(text);
        }
    }

    async fn serve(
        self,
        request: Request<Body>,
        faults: RequestFaults,
        is_watch: bool,
        (is_counted, name): (bool, String),
    ) -> Answer {
        sleep(faults.before).await;
        let is_away = self.state().away_until.is_some_and(|until| Instant::now() < until);
        if is_away || faults.fault == Some(FaultKind::LostRequest) {
            sleep(LOST).await;
            return Err("the connection was lost".into());
        }
        if let Some(refusal) = refusal(&faults) {
            return Ok(refusal);
        }
        let answer = self.0.router.clone().oneshot(request).await?;
        if is_counted {
            self.state().n_writes += u64::from(answer.status().is_success());
            self.0.trace.say(format_args!("{name}: {}", answer.status().as_u16()));
        }
        sleep(faults.after).await;
        match faults.fault {
            Some(FaultKind::LostAnswer) => {
                sleep(LOST).await;
                Err("the connection was lost".into())
            }
            _ if is_watch => Ok(disturbed(answer, &faults)),
            _ => Ok(answer),
        }
    }
}

impl NetworkState {
    /// Draws the delays and the fault of a request.
    fn faults(&mut self, is_write: bool, is_watch: bool) -> RequestFaults {
        let rng = &mut self.rng;
        let fault = fault::of_request(rng, &self.faults, is_write);
        let slow = if fault == Some(FaultKind::Slow) { rng.between(1_000, 40_000) } else { 0 };
        let [before, after] = [rng.between(1, 9) + slow, rng.between(1, 9)];
        let (cut, lag) = (rng.between(0, 120_000), rng.between(0, 3_000));
        let [is_cut, lags] = [rng.happens(500), rng.happens(200)];
        let may = |kind| is_watch && self.faults.contains(&kind);
        let is_cut = is_cut && may(FaultKind::WatchCut);
        let lags = lags && may(FaultKind::WatchLag);
        RequestFaults {
            before: Duration::from_millis(before),
            after: Duration::from_millis(after),
            // A watch that is lost is one that is cut.
            fault: fault.filter(|_| !is_watch || !may(FaultKind::WatchCut)),
            cut_after: is_cut.then(|| Duration::from_millis(cut)),
            lag: Duration::from_millis(if lags { lag } else { 0 }),
            retry_after: rng.happens(500).then(|| rng.between(1, 3)),
        }
    }
}

/// Returns the answer in place of the server's. `None`: the server answers.
fn refusal(faults: &RequestFaults) -> Option<Response<Body>> {
    let (code, reason) = match faults.fault? {
        FaultKind::Conflict => (409, "Conflict"),
        FaultKind::TooManyRequests => (429, "TooManyRequests"),
        FaultKind::ServerError => (500, "InternalError"),
        FaultKind::Unavailable => (503, "ServiceUnavailable"),
        _ => return None,
    };
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "message": "a fault of the simulation", "reason": reason, "code": code,
    });
    let mut answer = Response::builder().status(code).header("content-type", "application/json");
    if code == 429
        && let Some(seconds) = faults.retry_after
    {
        answer = answer.header(header::RETRY_AFTER, seconds);
    }
    answer.body(Body::from(status.to_string())).ok()
}

/// Returns the answer of a watch whose events come late, or that is cut.
fn disturbed(answer: Response<Body>, faults: &RequestFaults) -> Response<Body> {
    let (parts, body) = answer.into_parts();
    let cut: Pin<Box<dyn Future<Output = ()> + Send>> = match faults.cut_after {
        Some(after) => Box::pin(sleep_until(Instant::now() + after)),
        None => Box::pin(std::future::pending()),
    };
    let lag = faults.lag;
    let late = body.into_data_stream().then(move |piece| async move {
        sleep(lag).await;
        piece
    });
    let pieces = late.take_until(cut).map(|piece: Result<Bytes, _>| piece);
    let rest = stream::empty::<Result<Bytes, axum::Error>>();
    Response::from_parts(parts, Body::from_stream(pieces.chain(rest)))
}
