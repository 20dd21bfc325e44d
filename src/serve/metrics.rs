//! The metrics port: `/metrics` as Prometheus' text format, profiles under `/debug/pprof`. What is
//! not wanted is not there. Specification: core.md 1.8, 9.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tower_http::compression::CompressionLayer;

use super::profile;
use crate::answers::AnswerHandle;
use crate::flags::Flags;
use crate::meter::Meter;

/// Of the text that is served.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Routes of the metrics port.
pub(super) fn routes(flags: &Flags, meter: Arc<Meter>, answers: AnswerHandle) -> Router {
    let mut routes = Router::new();
    if flags.metrics {
        // Series of many PodGroups are megabytes.
        let metrics = get(metrics).with_state((meter, answers)).layer(CompressionLayer::new());
        routes = routes.route("/metrics", metrics);
    }
    if flags.profiles {
        routes = routes.merge(profile::routes());
    }
    routes
}

async fn metrics(State((meter, answers)): State<(Arc<Meter>, AnswerHandle)>) -> impl IntoResponse {
    // The age grows while nothing happens, so it is read at each scrape.
    meter.metrics.answers_behind(answers.behind_seconds());
    ([(CONTENT_TYPE, FORMAT)], meter.metrics.encode())
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use tower::ServiceExt;

    use super::*;
    use crate::serve::testing::get;

    #[tokio::test]
    async fn who_can_read_gzip_gets_it() {
        let flags = ["vc-scheduler", "--enable-metrics"].map(Into::into);
        let routes = routes(&Flags::parse(flags).unwrap(), Arc::default(), AnswerHandle::default());
        for (accepts, encoding) in [("gzip;q=1.0, identity;q=0.5", Some("gzip")), ("", None)] {
            let request = http::Request::get("/metrics").header("accept-encoding", accepts);
            let answer = routes.clone().oneshot(request.body(Body::empty()).unwrap());
            let answer = answer.await.unwrap();
            let found = answer.headers().get("content-encoding").map(|value| value.to_str());
            assert_eq!(found.transpose().unwrap(), encoding);
            assert_eq!(answer.headers()[CONTENT_TYPE], FORMAT);
            let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
            assert_eq!(body.starts_with(b"\x1f\x8b"), encoding.is_some());
        }
    }

    #[tokio::test]
    async fn what_is_not_wanted_is_not_there() {
        let cases = [("--enable-metrics", [200, 404, 404]), ("--enable-pprof", [404, 200, 200])];
        for (flag, codes) in cases {
            let flags = Flags::parse(["vc-scheduler", flag].map(Into::into)).unwrap();
            let routes = routes(&flags, Arc::default(), AnswerHandle::default());
            let paths = ["/metrics", "/debug/pprof/cmdline", "/debug/pprof/"];
            for (path, code) in paths.into_iter().zip(codes) {
                assert_eq!(get(&routes, path).await.0, code, "{flag} {path}");
            }
        }
    }
}
