//! The routes as a router: who asks, whether he may, the answer, what of it he may see.
//! Specification: answers.md 11, 12, 16.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, Request, State};
use axum::http::header::{
    AUTHORIZATION, AsHeaderName, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, HOST,
    HeaderName, IF_NONE_MATCH, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Router};
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tower_http::compression::CompressionLayer;
use vc_http::{PeerCertificates, is_local_host};
use vc_objects::what_if::MOST_BYTES;

use crate::access::{Access, AccessError, KeptAccess, Right, User, UserSource};
use crate::discovery;
use crate::document::{BundleFile, Document, Question};
use crate::limits::{QuestionCost, TOO_MANY_REVIEWS, UserLimits};
use crate::openapi;
use crate::problem::Problem;
use crate::redaction::ClusterNames;
use crate::routes::{BASE, ROUTES, Route, RouteAnswer, RouteValues};
use crate::ui;

/// Questions that may wait at once.
const MOST_WAITING: usize = 32;
/// How long a request waits for its answer, and one for a file of everything.
const PATIENCE: Duration = Duration::from_secs(10);
const LONG_PATIENCE: Duration = Duration::from_secs(60);
/// The media type of a bundle.
pub(crate) const BUNDLE_TYPE: &str = "application/gzip";
/// The token for a request that goes through the API server, which takes `Authorization` away.
const OWN_AUTHORIZATION: HeaderName = HeaderName::from_static("x-answers-authorization");

/// An answer, with the names by which hidden ones are found in it.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The whole answer.
    pub document: Document,
    /// Names of the cluster.
    pub names: Arc<ClusterNames>,
}

/// Who answers.
pub trait AnswerSource: Send + Sync + 'static {
    /// Returns a text that changes whenever answers may change.
    ///
    /// # Errors
    /// Nobody can answer now.
    fn revision(&self) -> Result<String, Problem>;

    /// Answers a question.
    ///
    /// # Errors
    /// Nobody can answer now, or the question has no answer.
    fn ask(&self, question: Question) -> impl Future<Output = Result<Answered, Problem>> + Send;
}

/// Somebody who counts requests.
pub trait RequestObserver: Send + Sync + 'static {
    /// A request was answered. `user` is empty if nobody knows it.
    fn answered(&self, _route: &'static str, _user: &str, _code: u16, _took: Duration) {}

    /// An answer leaves something out because the budget of its question was spent.
    fn incomplete(&self, _route: &'static str) {}
}

/// Nobody counts.
#[derive(Clone, Copy, Debug)]
pub struct Uncounted;

impl RequestObserver for Uncounted {}

/// What all routes share.
struct Shared<A, S> {
    access: KeptAccess<A>,
    source: S,
    limits: Arc<UserLimits>,
    waiting: Semaphore,
    observer: Arc<dyn RequestObserver>,
}

/// What is served beside the answers, and to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteOptions {
    /// True if the page is served, below `/ui/`.
    pub has_page: bool,
}

/// Returns the routes. Requests about the cluster are answered by `source`, for whom `access` lets.
pub fn routes<A: Access, S: AnswerSource>(
    access: A,
    source: S,
    observer: Arc<dyn RequestObserver>,
    options: RouteOptions,
) -> Router {
    let is_open = access.is_open();
    let limits = Arc::new(UserLimits::default());
    let shared = Arc::new(Shared {
        access: KeptAccess::new(access, limits.clone()),
        source,
        limits,
        waiting: Semaphore::new(MOST_WAITING),
        observer,
    });
    let mut router = Router::new().route("/healthz", get(|| async { "ok" }));
    for (path, document) in discovery::documents() {
        router = router.route(path, fixed(document));
    }
    router = router.route(&format!("{BASE}/openapi.json"), fixed(openapi::document()));
    for route in ROUTES {
        let answer = match route.takes_body() {
            true => post(handle::<A, S>),
            false => get(handle::<A, S>),
        };
        for path in route.paths() {
            router = router.route(&path, answer.clone().with_state((shared.clone(), route)));
        }
    }
    let limit = DefaultBodyLimit::max(MOST_BYTES);
    if options.has_page {
        router = router.merge(ui::page_routes());
    }
    let router = router.fallback(unknown).method_not_allowed_fallback(wrong_method);
    // Whoever has to say who he is cannot be made to ask by a page of others.
    let router = if is_open { router.layer(from_fn(check_host)) } else { router };
    router.layer(limit).layer(CompressionLayer::new())
}

/// A document that has no data of the cluster.
fn fixed(document: serde_json::Value) -> MethodRouter {
    let document = Arc::new(document);
    get(move || {
        let document = document.clone();
        async move { json(StatusCode::OK, &*document) }
    })
}

async fn unknown() -> Response {
    refuse(&Problem::not_found("no such path").hint(format!("{BASE}/openapi.json lists them")))
}

/// Refuses requests that were meant for another machine: a page of others whose name leads here must
/// not read the answers.
async fn check_host(request: Request, next: Next) -> Response {
    // Without a host it is from no browser.
    let host = request.headers().get(HOST);
    let is_foreign = |host: &&HeaderValue| !host.to_str().is_ok_and(is_local_host);
    match host.filter(is_foreign).map(|host| String::from_utf8_lossy(host.as_bytes())) {
        None => next.run(request).await,
        Some(host) => refuse(&Problem::forbidden(format!("{host} is not a name of this machine"))),
    }
}

async fn wrong_method() -> Response {
    let hint = "whatifs are sent with POST, everything else is read with GET";
    refuse(&Problem::wrong_method().hint(hint))
}

fn json(code: StatusCode, content: &impl Serialize) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    match serde_json::to_vec(content) {
        Ok(text) => (code, headers, text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn bundle(file: BundleFile) -> Response {
    let name = format!("attachment; filename=\"bundle-{}.tar.gz\"", file.cycle);
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(BUNDLE_TYPE)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    let name = HeaderValue::from_str(&name).map(|name| [(CONTENT_DISPOSITION, name)]);
    match name {
        Ok(name) => (StatusCode::OK, headers, name, file.contents).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn refuse(problem: &Problem) -> Response {
    let code = StatusCode::from_u16(problem.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(code, &problem.status());
    if let Some(seconds) = problem.retry_after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if problem.code == 401 {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

type RouteState<A, S> = (Arc<Shared<A, S>>, &'static Route);

async fn handle<A: Access, S: AnswerSource>(
    State((shared, route)): State<RouteState<A, S>>,
    Path(path): Path<Vec<(String, String)>>,
    RawQuery(query): RawQuery,
    peer: Option<Extension<PeerCertificates>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let start = Instant::now();
    let part = |name: &str| path.iter().find(|(key, _)| key == name).map(|(_, it)| it.clone());
    let pairs = form_urlencoded::parse(query.as_deref().unwrap_or_default().as_bytes());
    let mut values = RouteValues {
        namespace: part("namespace"),
        name: part("name"),
        query: pairs.into_owned().collect(),
        body: String::new(),
    };
    let mut user = String::new();
    let patience = match route.answer {
        RouteAnswer::Bundle => LONG_PATIENCE,
        _ => PATIENCE,
    };
    let answered = match text_of(body) {
        Ok(text) => {
            values.body = text;
            let sender = Sender { peer: peer.map(|Extension(peer)| peer), headers };
            timeout(patience, shared.answer(route, &values, &sender, &mut user)).await
        }
        Err(problem) => Ok(Err(problem)),
    };
    let late = || Err(Problem::unavailable(format!("no answer within {} s", patience.as_secs())));
    let response = match answered.unwrap_or_else(|_| late()) {
        Ok(response) => response,
        Err(problem) => refuse(&problem),
    };
    let code = response.status().as_u16();
    shared.observer.answered(route.path, &user, code, start.elapsed());
    response
}

/// What a request and its connection say about who sends it.
struct Sender {
    peer: Option<PeerCertificates>,
    headers: HeaderMap,
}

/// Returns the body of a request.
fn text_of(body: Result<Bytes, BytesRejection>) -> Result<String, Problem> {
    let bytes = body.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::too_large(),
        _ => Problem::invalid(error.body_text()),
    })?;
    String::from_utf8(bytes.into()).map_err(|_| Problem::invalid("the body is no UTF-8"))
}

impl<A: Access, S: AnswerSource> Shared<A, S> {
    async fn answer(
        &self,
        route: &'static Route,
        values: &RouteValues,
        sender: &Sender,
        user_name: &mut String,
    ) -> Result<Response, Problem> {
        let user = self.user(sender).await?;
        user_name.clone_from(&user.name);
        let cost = route.cost();
        // Without tokens all are one user: only what is expensive has a limit.
        let is_free = self.access.is_open() && cost == QuestionCost::Plain;
        let charge = || match is_free || self.limits.allow(&user.name, cost) {
            true => Ok(()),
            false => Err(Problem::too_many(cost.refusal())),
        };
        // A bundle is charged when nothing else refuses it: there is one a minute.
        if cost != QuestionCost::Bundle {
            charge()?;
        }
        self.check(&user, route, values).await?;
        let tag = format!("\"{}\"", self.source.revision()?);
        let tag = HeaderValue::from_str(&tag).map_err(|_| Problem::failed(0))?;
        let is_known = sender.headers.get_all(IF_NONE_MATCH).iter().any(|known| *known == tag);
        if is_known && !route.takes_body() {
            let not_modified = Response::builder().status(StatusCode::NOT_MODIFIED);
            let not_modified = not_modified.header(ETAG, tag).body(Body::empty());
            return not_modified.map_err(|_| Problem::failed(0));
        }
        let question = route.question(values)?;
        if cost == QuestionCost::Bundle {
            charge()?;
        }
        let waiting = self.waiting.try_acquire();
        let _waiting = waiting.map_err(|_| Problem::too_many("busy: 32 questions wait"))?;
        let Answered { mut document, names } = match self.source.ask(question).await {
            Ok(answered) => answered,
            Err(problem) => return Err(self.redacted(problem, &user, route.right(values)).await?),
        };
        if document.is_incomplete() {
            self.observer.incomplete(route.path);
        }
        let (namespaces, queues) = document.mentions(&names);
        let visible = self.access.visible(&user, &namespaces, &queues).await.map_err(unreviewed)?;
        document.redact(&names, &visible);
        if let Document::Bundle(file) = document {
            return Ok(bundle(*file));
        }
        let mut response = json(StatusCode::OK, &document);
        if !route.takes_body() {
            response.headers_mut().insert(ETAG, tag);
        }
        Ok(response)
    }

    /// Returns a problem with names of jobs that the user may see alone. Whoever has the right of the route for some
    /// names of a namespace only sees no other job of it.
    async fn redacted(
        &self,
        problem: Problem,
        user: &User,
        right: Right,
    ) -> Result<Problem, Problem> {
        let Some(message) = problem.nameless.clone() else { return Ok(problem) };
        let of_any_name = Right { name: None, ..right };
        match self.access.may(user, &of_any_name).await.map_err(unreviewed)? {
            true => Ok(problem),
            false => Ok(Problem { message, nameless: None, ..problem }),
        }
    }

    /// Returns who asks.
    async fn user(&self, sender: &Sender) -> Result<User, Problem> {
        if let UserSource::FrontProxy(user) =
            self.access.user_source(sender.peer.as_ref(), &sender.headers)
        {
            let nobody = "the API server's front proxy names no user";
            return user.ok_or_else(|| Problem::unauthenticated(nobody));
        }
        let token = match token(&sender.headers) {
            _ if self.access.is_open() => "",
            Some(token) => token,
            None => {
                let hint = "send Authorization: Bearer TOKEN, through the API server \
                    X-Answers-Authorization: Bearer TOKEN";
                return Err(Problem::unauthenticated("a bearer token is needed").hint(hint));
            }
        };
        let user = self.access.user(token).await.map_err(|error| match error {
            AccessError::Busy => Problem::too_many("too many unknown tokens"),
            AccessError::Unknown(why) => {
                Problem::unavailable(format!("the API server did not review the token: {why}"))
            }
        })?;
        user.ok_or_else(|| Problem::unauthenticated("the token was refused"))
    }

    /// Refuses whoever lacks the right of the route.
    async fn check(
        &self,
        user: &User,
        route: &'static Route,
        values: &RouteValues,
    ) -> Result<(), Problem> {
        let right = route.right(values);
        if self.access.may(user, &right).await.map_err(unreviewed)? {
            return Ok(());
        }
        let place = match &right.namespace {
            Some(namespace) => format!(" in namespace {namespace}"),
            None => String::new(),
        };
        let what = format!("{} {}.{}{place}", right.verb, right.resource, crate::access::GROUP);
        let hint = "bind ClusterRole vc-scheduler-answers-view or vc-scheduler-answers-admin";
        Err(Problem::forbidden(format!("user {} may not {what}", user.name)).hint(hint))
    }
}

fn unreviewed(error: AccessError) -> Problem {
    match error {
        AccessError::Busy => Problem::too_many(TOO_MANY_REVIEWS),
        AccessError::Unknown(why) => {
            Problem::unavailable(format!("the API server did not review the right: {why}"))
        }
    }
}

/// Returns the bearer token of a request.
fn token(headers: &HeaderMap) -> Option<&str> {
    let own = bearer_token(headers, OWN_AUTHORIZATION);
    own.or_else(|| bearer_token(headers, AUTHORIZATION))
}

/// Returns the bearer token in a header of this name. Returns `None` if there is none.
pub fn bearer_token(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    let (scheme, token) = headers.get(name)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_stands_behind_the_word_bearer() {
        let cases = [
            ("Bearer abc", Some("abc")),
            ("bearer  abc ", Some("abc")),
            ("Bearer ", None),
            ("Bearer", None),
            ("Basic abc", None),
        ];
        for (text, wanted) in cases {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, text.parse().unwrap())]);
            assert_eq!(bearer_token(&headers, AUTHORIZATION), wanted, "{text:?}");
        }
        assert_eq!(bearer_token(&HeaderMap::new(), AUTHORIZATION), None);
    }
}
