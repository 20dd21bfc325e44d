//! Lets only those read metrics and profiles whom the API server lets GET the path
//! (`--metrics-authorization`). Specification: core.md 1.8.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use vc_kube::{AccessDecision, Reviewer};
use vc_page::bearer_token;

use crate::review_warning::ReviewWarning;

/// The same routes behind the question whether the client may have them.
pub(super) fn protect(routes: Router, reviewer: Reviewer) -> Router {
    let guard = AccessGuard { reviewer, warning: ReviewWarning::default() };
    routes.layer(from_fn_with_state(Arc::new(guard), check))
}

struct AccessGuard {
    reviewer: Reviewer,
    warning: ReviewWarning,
}

async fn check(State(guard): State<Arc<AccessGuard>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let Some(token) = bearer_token(request.headers(), AUTHORIZATION).map(str::to_owned) else {
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
            guard.warning.log("metrics are refused", &error);
            let text = "the API server cannot be asked who you are; the scheduler's log says why\n";
            (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
        }
    }
}

fn unauthenticated() -> Response {
    let text = "a bearer token of a Kubernetes account is needed\n";
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], text).into_response()
}
