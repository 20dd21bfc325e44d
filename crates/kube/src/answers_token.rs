//! The token that a user's questions carry through the API server: that of the kubeconfig, or one of a
//! ServiceAccount where the kubeconfig has a client certificate, which the API server does not pass on.
//! Specification: answers.md 13 (ANS-89).

use std::future::{Ready, ready};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, Response};
use kube::client::{Body, ConfigExt};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tower::{BoxError, Layer, Service, ServiceExt};

use crate::answers_client::{AnswersError, in_words};
use crate::connection_flags::in_time;

/// How long a token of a ServiceAccount is valid: the least that the API server gives.
const SECONDS: u64 = 600;
/// A token is used so long, then it is asked for again.
const RENEWED_AFTER: Duration = Duration::from_secs(SECONDS / 2);

/// A token that is renewed before it expires.
pub(crate) struct AnswersToken {
    config: Config,
    /// Namespace and name of the ServiceAccount. `None`: the kubeconfig has a token.
    account: Option<(String, String)>,
    /// How long a request for a token may take. `None`: there is no such limit.
    request_timeout: Option<Duration>,
    held: Mutex<Option<(HeaderValue, Instant)>>,
}

impl AnswersToken {
    /// Takes the token of the kubeconfig. If it has none, one of the ServiceAccount is asked for.
    ///
    /// # Errors
    /// There is no token, and none is given.
    pub(crate) async fn new(
        config: &Config,
        account: &(String, String),
        request_timeout: Option<Duration>,
    ) -> Result<Self, AnswersError> {
        let own = bearer(config).await?;
        let token = Self {
            config: config.clone(),
            account: own.is_none().then(|| account.clone()),
            request_timeout,
            held: Mutex::new(own.map(|own| (own, Instant::now()))),
        };
        token.value().await?;
        Ok(token)
    }

    /// True if this is the token of whoever asks with the rights of this ServiceAccount where he has no token.
    pub(crate) fn is_for(&self, account: &(String, String)) -> bool {
        self.account.as_ref().is_none_or(|of| of == account)
    }

    /// Returns the value of the header.
    ///
    /// # Errors
    /// A new one is needed and is not given.
    pub(crate) async fn value(&self) -> Result<HeaderValue, AnswersError> {
        let mut held = self.held.lock().await;
        let fresh = held.as_ref().filter(|(_, since)| since.elapsed() < RENEWED_AFTER);
        if let Some((value, _)) = fresh {
            return Ok(value.clone());
        }
        let (config, account) = (self.config.clone(), self.account.clone());
        let renewed = renewed(config, account, self.request_timeout);
        let renewed: BoxFuture<'static, _> = Box::pin(renewed);
        let value = renewed.await?;
        *held = Some((value.clone(), Instant::now()));
        Ok(value)
    }
}

async fn renewed(
    config: Config,
    account: Option<(String, String)>,
    request_timeout: Option<Duration>,
) -> Result<HeaderValue, AnswersError> {
    match account {
        None => bearer(&config).await?.ok_or(AnswersError::NoToken),
        Some(account) => of_account(config, account, request_timeout).await,
    }
}

/// Returns the `Authorization` that kube would send. Returns `None` if it sends none.
async fn bearer(config: &Config) -> Result<Option<HeaderValue>, AnswersError> {
    let Some(layer) = config.auth_layer().map_err(AnswersError::Build)? else { return Ok(None) };
    let request = Request::new(Body::empty());
    let seen = layer.layer(SeenToken).oneshot(request).await;
    let seen = seen.map_err(|error| AnswersError::Token(error.to_string()))?;
    Ok(seen.into_body())
}

/// Answers a request with the `Authorization` that it carries.
#[derive(Clone, Copy)]
struct SeenToken;

impl Service<Request<Body>> for SeenToken {
    type Response = Response<Option<HeaderValue>>;
    type Error = BoxError;
    type Future = Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        ready(Ok(Response::new(request.headers().get(AUTHORIZATION).cloned())))
    }
}

/// Asks for a token of a ServiceAccount, with the credentials of the kubeconfig.
async fn of_account(
    config: Config,
    (namespace, name): (String, String),
    request_timeout: Option<Duration>,
) -> Result<HeaderValue, AnswersError> {
    let account = format!("{namespace}/{name}");
    let client = Client::try_from(config).map_err(AnswersError::Build)?;
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": SECONDS}});
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
    let request = Request::post(path).header(CONTENT_TYPE, "application/json");
    let request = request.body(body.to_string().into_bytes());
    let request = request.map_err(|error| AnswersError::Token(error.to_string()))?;
    let answer = in_time(request_timeout, client.request::<Value>(request))
        .await
        .map_err(|error| AnswersError::NoAccountToken { account, error: in_words(&error) })?;
    let token = answer["status"]["token"].as_str().unwrap_or_default();
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let mut value = value.map_err(|error| AnswersError::Token(error.to_string()))?;
    value.set_sensitive(true);
    Ok(value)
}
