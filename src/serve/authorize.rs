//! Lets only those read metrics and profiles whom the API server lets GET the path
//! (`--metrics-authorization`). Specification: core.md 1.8.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use vc_kube::{AccessDecision, CallError, Reviewer};

/// The same routes behind the question whether the client may have them.
pub(super) fn protect(routes: Router, reviewer: Reviewer) -> Router {
    let guard = AccessGuard { reviewer, warned: Mutex::default() };
    routes.layer(from_fn_with_state(Arc::new(guard), check))
}

/// Pause between two warnings that the API server cannot be asked.
const WARNING_PAUSE: Duration = Duration::from_secs(60);

struct AccessGuard {
    reviewer: Reviewer,
    /// When the last warning was logged.
    warned: Mutex<Option<Instant>>,
}

impl AccessGuard {
    /// Logs that nobody can be let in, once in a while: anybody can ask for the metrics.
    fn warn(&self, error: &CallError) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.is_none_or(|at| WARNING_PAUSE <= at.elapsed()) {
            *warned = Some(Instant::now());
            tracing::warn!(
                "metrics are refused, because the API server cannot be asked who reads them: {error}\n\
                 hint: grant create of tokenreviews (authentication.k8s.io) and \
                 subjectaccessreviews (authorization.k8s.io)"
            );
        }
    }
}

async fn check(State(guard): State<Arc<AccessGuard>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let Some(token) = token(request.headers()).map(str::to_owned) else {
        return unauthenticated();
    };
    match guard.reviewer.review(&token, &path).await {
        Ok(AccessDecision::Granted) => next.run(request).await,
        Ok(AccessDecision::Unauthenticated) => unauthenticated(),
        Ok(AccessDecision::Forbidden(user)) => {
            let text = format!(
                "user {user:?} may not get {path}: a ClusterRole with nonResourceURLs [{path:?}] and \
                 verbs [get] grants it\n"
            );
            (StatusCode::FORBIDDEN, text).into_response()
        }
        Err(error) => {
            guard.warn(&error);
            let text = "the API server cannot be asked who you are; the scheduler's log says why\n";
            (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
        }
    }
}

fn unauthenticated() -> Response {
    let text = "a bearer token of a Kubernetes account is needed\n";
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], text).into_response()
}

/// The bearer token of a request.
fn token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
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
            assert_eq!(token(&headers), wanted, "{text:?}");
        }
        assert_eq!(token(&HeaderMap::new()), None);
    }
}
