//! `/healthz` as Kubernetes' own servers answer it, and `/livez` and `/readyz` for the probes of a
//! Deployment. Specification: core.md 1.8.

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::routing::get;

use crate::meter::Meter;

/// Routes of the health port.
pub(super) fn routes(meter: Arc<Meter>) -> Router {
    let routes = Router::new()
        .route("/healthz", get(healthz))
        .route("/healthz/ping", get(ok))
        .route("/livez", get(ok))
        .route("/readyz", get(readyz));
    routes.with_state(meter)
}

async fn ok() -> &'static str {
    "ok"
}

async fn healthz(RawQuery(query): RawQuery) -> &'static str {
    let query = query.unwrap_or_default();
    let mut names = query.split('&').map(|pair| pair.split('=').next().unwrap_or_default());
    match names.any(|name| name == "verbose") {
        true => "[+]ping ok\nhealthz check passed\n",
        false => "ok",
    }
}

/// Leader and synced, or standby and connected.
async fn readyz(State(meter): State<Arc<Meter>>) -> (StatusCode, String) {
    let state = *meter.state.borrow();
    match state.is_ready() {
        true => (StatusCode::OK, "ok".to_owned()),
        false => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {state}\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::State as Process;
    use crate::serve::testing::get;

    #[tokio::test]
    async fn health_is_told_as_kubernetes_does() {
        let routes = routes(Arc::default());
        let cases = [
            ("/healthz", 200, "ok"),
            ("/healthz?verbose", 200, "[+]ping ok\nhealthz check passed\n"),
            ("/healthz?verbose=1", 200, "[+]ping ok\nhealthz check passed\n"),
            ("/healthz/ping", 200, "ok"),
            ("/livez", 200, "ok"),
            ("/nothing", 404, ""),
        ];
        for (path, code, text) in cases {
            assert_eq!(get(&routes, path).await, (code, text.to_owned()), "{path}");
        }
    }

    #[tokio::test]
    async fn ready_is_the_synced_leader_and_the_connected_standby() {
        let meter = Arc::new(Meter::default());
        let routes = routes(meter.clone());
        let cases = [
            (Process::Starting, 503, "not ready: starting\n"),
            (Process::Standby { connected: true }, 200, "ok"),
            (Process::Standby { connected: false }, 503, "not ready: standby, not connected\n"),
            (Process::Leading { synced: false }, 503, "not ready: leading, not synced\n"),
            (Process::Leading { synced: true }, 200, "ok"),
        ];
        for (state, code, text) in cases {
            meter.state.send_replace(state);
            assert_eq!(get(&routes, "/readyz").await, (code, text.to_owned()));
        }
    }
}
