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

use super::draw::Draw;
use super::fault::{self, FaultKind};
use super::trace::Trace;

/// How long a client waits for a connection that is lost.
const LOST: Duration = Duration::from_secs(5);

/// The network. Clones share it.
#[derive(Clone)]
pub(super) struct Network(Arc<Shared>);

struct Shared {
    router: Router,
    trace: Trace,
    state: Mutex<NetworkState>,
}

struct NetworkState {
    draw: Draw,
    /// Kinds that may strike. Empty once the story is quiet.
    faults: BTreeSet<FaultKind>,
    /// The server is away until then.
    away_until: Option<Instant>,
    /// Writes that the server has done, without those of Leases and events.
    n_writes: u64,
}

/// What happens to one request.
struct Course {
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
        router: Router,
        seed: u64,
        faults: BTreeSet<FaultKind>,
        trace: Trace,
    ) -> Self {
        let draw = Draw::new(seed);
        let state = NetworkState { draw, faults, away_until: None, n_writes: 0 };
        Self(Arc::new(Shared { router, trace, state: Mutex::new(state) }))
    }

    fn state(&self) -> MutexGuard<'_, NetworkState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on nothing strikes.
    pub(super) fn calm(&self) {
        let mut state = self.state();
        state.faults.clear();
        state.away_until = None;
    }

    /// The server is away for so long.
    pub(super) fn away_for(&self, time: Duration) {
        self.state().away_until = Some(Instant::now() + time);
    }

    /// Returns the number of writes so far, without those of Leases and events.
    pub(super) fn n_writes(&self) -> u64 {
        self.state().n_writes
    }

    /// Clients of a process of this name.
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
        let course = self.state().course(is_write, is_watch);
        let path = parts.uri.path();
        let name = format!("{process}: {} {path}", parts.method);
        if let Some(fault) = course.fault {
            self.0.trace.say(format_args!("{name}: {}", fault.word()));
        }
        let bytes = body.collect().await?.to_bytes();
        let is_counted = is_write && !path.contains("/leases") && !path.contains("/events");
        // A task of its own: what was sent arrives, whatever becomes of the sender.
        let server = tokio::spawn(self.serve(
            Request::from_parts(parts, Body::from(bytes)),
            course,
            is_watch,
            (is_counted, name),
        ));
        server.await.map_err(BoxError::from)?
    }

    async fn serve(
        self,
        request: Request<Body>,
        course: Course,
        is_watch: bool,
        (is_counted, name): (bool, String),
    ) -> Answer {
        sleep(course.before).await;
        let is_away = self.state().away_until.is_some_and(|until| Instant::now() < until);
        if is_away || course.fault == Some(FaultKind::LostRequest) {
            sleep(LOST).await;
            return Err("the connection was lost".into());
        }
        if let Some(refusal) = refusal(&course) {
            return Ok(refusal);
        }
        let answer = self.0.router.clone().oneshot(request).await?;
        if is_counted {
            self.state().n_writes += u64::from(answer.status().is_success());
            self.0.trace.say(format_args!("{name}: {}", answer.status().as_u16()));
        }
        sleep(course.after).await;
        match course.fault {
            Some(FaultKind::LostAnswer) => {
                sleep(LOST).await;
                Err("the connection was lost".into())
            }
            _ if is_watch => Ok(disturbed(answer, &course)),
            _ => Ok(answer),
        }
    }
}

impl NetworkState {
    fn course(&mut self, is_write: bool, is_watch: bool) -> Course {
        let draw = &mut self.draw;
        let fault = fault::of_request(draw, &self.faults, is_write);
        let slow = if fault == Some(FaultKind::Slow) { draw.between(1_000, 40_000) } else { 0 };
        let [before, after] = [draw.between(1, 9) + slow, draw.between(1, 9)];
        let (cut, lag) = (draw.between(0, 120_000), draw.between(0, 3_000));
        let [is_cut, lags] = [draw.happens(500), draw.happens(200)];
        let may = |kind| is_watch && self.faults.contains(&kind);
        let is_cut = is_cut && may(FaultKind::WatchCut);
        let lags = lags && may(FaultKind::WatchLag);
        Course {
            before: Duration::from_millis(before),
            after: Duration::from_millis(after),
            // A watch that is lost is one that is cut.
            fault: fault.filter(|_| !is_watch || !may(FaultKind::WatchCut)),
            cut_after: is_cut.then(|| Duration::from_millis(cut)),
            lag: Duration::from_millis(if lags { lag } else { 0 }),
            retry_after: draw.happens(500).then(|| draw.between(1, 3)),
        }
    }
}

/// The answer in place of the server's. `None`: the server answers.
fn refusal(course: &Course) -> Option<Response<Body>> {
    let (code, reason) = match course.fault? {
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
        && let Some(seconds) = course.retry_after
    {
        answer = answer.header(header::RETRY_AFTER, seconds);
    }
    answer.body(Body::from(status.to_string())).ok()
}

/// A watch whose events come late, or that is cut.
fn disturbed(answer: Response<Body>, course: &Course) -> Response<Body> {
    let (parts, body) = answer.into_parts();
    let cut: Pin<Box<dyn Future<Output = ()> + Send>> = match course.cut_after {
        Some(after) => Box::pin(sleep_until(Instant::now() + after)),
        None => Box::pin(std::future::pending()),
    };
    let lag = course.lag;
    let late = body.into_data_stream().then(move |piece| async move {
        sleep(lag).await;
        piece
    });
    let pieces = late.take_until(cut).map(|piece: Result<Bytes, _>| piece);
    let rest = stream::empty::<Result<Bytes, axum::Error>>();
    Response::from_parts(parts, Body::from_stream(pieces.chain(rest)))
}
