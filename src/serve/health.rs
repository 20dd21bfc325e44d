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

/// Leader and synced with every right that is required, or standby and connected. Else the state and
/// each missing right with its remedy. With `?verbose` also what somebody should look at.
async fn readyz(
    State(meter): State<Arc<Meter>>,
    RawQuery(query): RawQuery,
) -> (StatusCode, String) {
    let (state, missing) = (*meter.state.borrow(), missing_rights(&meter));
    let is_ready = state.is_ready() && missing.is_empty();
    let code = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let text = match (is_verbose(query.as_deref()), is_ready) {
        (true, is_ready) => verbose(&meter, is_ready, &missing),
        (false, true) => "ok".to_owned(),
        (false, false) => format!("not ready: {state}\n{}", rows("", &missing)),
    };
    (code, text)
}

/// Each right that is required and missing, with its remedy.
fn missing_rights(meter: &Meter) -> Vec<String> {
    let missing = meter.missing_kinds();
    missing.iter().map(|refusal| format!("{refusal}: {}", refusal.remedy())).collect()
}

fn rows(mark: &str, rows: &[String]) -> String {
    rows.iter().map(|row| format!("{mark}{row}\n")).collect()
}

/// One row a check, as Kubernetes' own servers have them. `[!]` fails nothing.
fn verbose(meter: &Meter, is_ready: bool, missing: &[String]) -> String {
    let state = *meter.state.borrow();
    let mark = if state.is_ready() { "[+]" } else { "[-]" };
    let word = if is_ready { "passed" } else { "failed" };
    let (missing, remarks) = (rows("[-]", missing), rows("[!]", &meter.remarks()));
    format!("{mark}{state}\n{missing}{remarks}readyz check {word}\n")
}

#[cfg(test)]
mod tests {
    use vc_kube::{KindRefusal, Observer};

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
    async fn who_lacks_a_required_right_is_not_ready_and_names_it() {
        let meter = Arc::new(Meter::default());
        let routes = routes(meter.clone());
        let of = |resource, is_required| KindRefusal {
            group: "",
            resource,
            verb: "watch",
            code: 403,
            is_required,
        };
        meter.state.send_replace(Process::Leading { synced: true });
        meter.kind_refused(&of("resourcequotas", false));
        assert_eq!(get(&routes, "/readyz").await, (200, "ok".to_owned()));
        meter.kind_refused(&of("nodes", true));
        let text = "not ready: leading\nno right to watch nodes in the core API group (403): add to \
            the ClusterRole of the scheduler: {apiGroups: [\"\"], resources: [nodes], verbs: [list, \
            watch]}\n";
        assert_eq!(get(&routes, "/readyz").await, (503, text.to_owned()));
        let exported = meter.metrics.encode();
        let line = |kind, required| {
            format!(
                "volcano_unreadable_kinds{{code=\"403\",kind=\"{kind}\",required=\"{required}\",\
                 verb=\"watch\"}} 1"
            )
        };
        for line in [line("nodes", true), line("resourcequotas", false)] {
            assert!(exported.contains(&line), "{line}\n{exported}");
        }
        meter.kind_readable("nodes");
        assert_eq!(get(&routes, "/readyz").await, (200, "ok".to_owned()));
        assert!(!meter.metrics.encode().contains("kind=\"nodes\""));
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
        let reported = get(&routes(meter), "/readyz?verbose").await;
        assert_eq!(reported, (503, rows.to_owned()));
    }
}
