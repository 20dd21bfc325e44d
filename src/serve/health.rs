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
    match is_verbose(query.as_deref()) {
        true => "[+]ping ok\nhealthz check passed\n",
        false => "ok",
    }
}

fn is_verbose(query: Option<&str>) -> bool {
    let pairs = query.unwrap_or_default().split('&');
    pairs.map(|pair| pair.split('=').next().unwrap_or_default()).any(|name| name == "verbose")
}

/// Leader and synced, or standby and connected; with `?verbose` also what somebody should look at.
async fn readyz(
    State(meter): State<Arc<Meter>>,
    RawQuery(query): RawQuery,
) -> (StatusCode, String) {
    let state = *meter.state.borrow();
    let code = if state.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let text = match (is_verbose(query.as_deref()), state.is_ready()) {
        (true, is_ready) => verbose(&meter, is_ready, &state.to_string()),
        (false, true) => "ok".to_owned(),
        (false, false) => format!("not ready: {state}\n"),
    };
    (code, text)
}

/// One row a check, as Kubernetes' own servers have them. `[!]` fails nothing.
fn verbose(meter: &Meter, is_ready: bool, state: &str) -> String {
    let (mark, word) = if is_ready { ('+', "passed") } else { ('-', "failed") };
    let remarks: String = meter.remarks().iter().map(|row| format!("[!]{row}\n")).collect();
    format!("[{mark}]{state}\n{remarks}readyz check {word}\n")
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
        let rows = "[+]leading\nreadyz check passed\n".to_owned();
        assert_eq!(get(&routes, "/readyz?verbose").await, (200, rows));
    }

    #[tokio::test]
    async fn c40_an_unknown_plugin_has_a_row() {
        let meter = Arc::new(Meter::default());
        let text = "actions: allocate\ntiers:\n- plugins:\n  - name: magic\n";
        let loaded = vc_conf::parse("f", text, &vc_engine::KNOWN).unwrap();
        meter.configuration(&loaded, 0);
        let rows = "[-]starting\n[!]configuration: line 4: unknown plugin magic, it is skipped\n\
            readyz check failed\n";
        let told = get(&routes(meter), "/readyz?verbose").await;
        assert_eq!(told, (503, rows.to_owned()));
    }
}
