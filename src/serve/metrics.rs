//! The metrics port: `/metrics` as Prometheus' text format, profiles under `/debug/pprof`. What is
//! not wanted is not there. Specification: core.md 1.8, 9.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;

use super::profile;
use crate::flags::Flags;
use crate::meter::Meter;

/// Of the text that is served.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Routes of the metrics port.
pub(super) fn routes(flags: &Flags, meter: Arc<Meter>) -> Router {
    let mut routes = Router::new();
    if flags.metrics {
        routes = routes.route("/metrics", get(metrics).with_state(meter));
    }
    if flags.profiles {
        routes = routes.merge(profile::routes());
    }
    routes
}

async fn metrics(State(meter): State<Arc<Meter>>) -> impl IntoResponse {
    ([(CONTENT_TYPE, FORMAT)], meter.metrics.encode())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::testing::get;

    #[tokio::test]
    async fn what_is_not_wanted_is_not_there() {
        let cases = [("--enable-metrics", [200, 404, 404]), ("--enable-pprof", [404, 200, 200])];
        for (flag, codes) in cases {
            let flags = Flags::parse(["vc-scheduler", flag].map(Into::into)).unwrap();
            let routes = routes(&flags, Arc::default());
            let paths = ["/metrics", "/debug/pprof/cmdline", "/debug/pprof/heap"];
            for (path, code) in paths.into_iter().zip(codes) {
                assert_eq!(get(&routes, path).await.0, code, "{flag} {path}");
            }
        }
    }
}
