//! `/debug/pprof`: CPU and heap profiles as `go tool pprof` reads them. Specification: core.md 1.8.
//! Each kind is a feature of the build: `cpu-profiles` and `heap-profiles`.

#[cfg(feature = "cpu-profiles")]
mod cpu;
#[cfg(feature = "heap-profiles")]
mod heap;
#[cfg(any(feature = "cpu-profiles", feature = "heap-profiles"))]
mod lines;
#[cfg(any(feature = "cpu-profiles", feature = "heap-profiles"))]
mod proto;

use axum::Router;
#[cfg(any(feature = "cpu-profiles", feature = "heap-profiles"))]
use axum::http::header::CONTENT_TYPE;
#[cfg(any(feature = "cpu-profiles", feature = "heap-profiles"))]
use axum::response::{IntoResponse, Response};
use axum::routing::get;

#[cfg(feature = "cpu-profiles")]
const CPU_INDEX: &str = "profile?seconds=N: CPU profile in pprof format\n";
#[cfg(not(feature = "cpu-profiles"))]
const CPU_INDEX: &str = "profile: not built in (feature cpu-profiles)\n";
const INDEX: &str = "cmdline: the command line\n";
#[cfg(feature = "heap-profiles")]
const HEAP_INDEX: &str =
    "heap, allocs: memory in use and allocated since the start, in pprof format\n";
#[cfg(not(feature = "heap-profiles"))]
const HEAP_INDEX: &str = "heap, allocs: not built in (feature heap-profiles)\n";

/// Routes of the profiles.
pub(super) fn routes() -> Router {
    let routes = Router::new()
        .route("/debug/pprof/", get(async || [CPU_INDEX, INDEX, HEAP_INDEX].concat()))
        .route("/debug/pprof/cmdline", get(async || command_line()));
    #[cfg(feature = "cpu-profiles")]
    let routes = routes.route("/debug/pprof/profile", get(cpu::profile));
    #[cfg(not(feature = "cpu-profiles"))]
    let routes = routes.route("/debug/pprof/profile", get(async || cpu_not_built()));
    #[cfg(feature = "heap-profiles")]
    let routes =
        routes.route("/debug/pprof/heap", get(memory)).route("/debug/pprof/allocs", get(memory));
    routes
}

fn command_line() -> String {
    std::env::args().collect::<Vec<_>>().join("\0")
}

#[cfg(not(feature = "cpu-profiles"))]
fn cpu_not_built() -> (axum::http::StatusCode, &'static str) {
    let text = "CPU profiles are not built in: build with the feature cpu-profiles\n";
    (axum::http::StatusCode::NOT_FOUND, text)
}

/// The same profile for both paths: its reader chooses among the values.
#[cfg(feature = "heap-profiles")]
async fn memory() -> Response {
    let encode = || {
        let profile = heap::encode();
        forget_symbols();
        profile
    };
    match tokio::task::spawn_blocking(encode).await {
        Ok(bytes) => binary(bytes),
        Err(error) => {
            let code = axum::http::StatusCode::INTERNAL_SERVER_ERROR;
            (code, format!("{error}\n")).into_response()
        }
    }
}

#[cfg(any(feature = "cpu-profiles", feature = "heap-profiles"))]
fn binary(bytes: Vec<u8>) -> Response {
    ([(CONTENT_TYPE, "application/octet-stream")], bytes).into_response()
}

/// Gives back the tables of symbols that names were found in: some hundred megabytes, which would
/// stay until the process ends.
#[cfg(any(feature = "cpu-profiles", feature = "heap-profiles"))]
fn forget_symbols() {
    backtrace::clear_symbol_cache();
}
