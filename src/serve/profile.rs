//! `/debug/pprof`: CPU and heap profiles as `go tool pprof` reads them. Specification: core.md 1.8.

mod cpu;
#[cfg(feature = "heap-profiles")]
mod heap;
mod proto;

use std::sync::Once;
use std::time::Duration;

use axum::Router;
use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use nix::sys::signal::{Signal, raise};
use pprof::{ProfilerGuard, ProfilerGuardBuilder};
use tokio::time::sleep;

/// Samples per second of CPU time, as Go takes them.
const HERTZ: i32 = 100;
/// Length of a profile if the request does not say.
const SECONDS: u64 = 30;
/// A profile must be shorter: so long does Volcano's server write at most.
const LIMIT: u64 = 60;
/// It cannot be unwound.
const NOT_IN: [&str; 1] = ["vdso"];

const INDEX: &str = "profile?seconds=N: CPU profile in pprof format\n\
    cmdline: the command line\n";
#[cfg(feature = "heap-profiles")]
const HEAP_INDEX: &str =
    "heap, allocs: memory in use and allocated since the start, in pprof format\n";
#[cfg(not(feature = "heap-profiles"))]
const HEAP_INDEX: &str = "heap, allocs: not built in (feature heap-profiles)\n";

/// Routes of the profiles.
pub(super) fn routes() -> Router {
    let routes = Router::new()
        .route("/debug/pprof/", get(async || [INDEX, HEAP_INDEX].concat()))
        .route("/debug/pprof/cmdline", get(async || command_line()))
        .route("/debug/pprof/profile", get(profile));
    #[cfg(feature = "heap-profiles")]
    let routes =
        routes.route("/debug/pprof/heap", get(memory)).route("/debug/pprof/allocs", get(memory));
    routes
}

fn command_line() -> String {
    std::env::args().collect::<Vec<_>>().join("\0")
}

async fn profile(RawQuery(query): RawQuery) -> Response {
    let seconds = match seconds(&query.unwrap_or_default()) {
        Some(seconds) if seconds < LIMIT => Duration::from_secs(seconds),
        Some(_) => return refuse(StatusCode::BAD_REQUEST, "a profile must be shorter than 60 s"),
        None => return refuse(StatusCode::BAD_REQUEST, "seconds: not a positive integer"),
    };
    match cpu(seconds).await {
        Ok(bytes) => binary(bytes),
        Err(problem) => refuse(StatusCode::INTERNAL_SERVER_ERROR, &problem),
    }
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
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

fn binary(bytes: Vec<u8>) -> Response {
    ([(CONTENT_TYPE, "application/octet-stream")], bytes).into_response()
}

fn refuse(code: StatusCode, problem: &str) -> Response {
    (code, format!("Could not enable CPU profiling: {problem}\n")).into_response()
}

fn seconds(query: &str) -> Option<u64> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix("seconds="));
    value.map_or(Some(SECONDS), |text| text.parse().ok()).filter(|seconds| 0 < *seconds)
}

async fn cpu(time: Duration) -> Result<Vec<u8>, String> {
    let guard = aside(begin).await?;
    sleep(time).await;
    // Names are found from addresses here.
    aside(move || {
        let report = guard.report().build();
        let profile = report.map(|report| cpu::encode(&report));
        forget_symbols();
        profile
    })
    .await
}

/// Gives back the tables of symbols that names were found in: some hundred megabytes, which would
/// stay until the process ends.
fn forget_symbols() {
    backtrace::clear_symbol_cache();
}

/// What takes a while.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> pprof::Result<T> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

fn begin() -> pprof::Result<ProfilerGuard<'static>> {
    static FIRST: Once = Once::new();
    FIRST.call_once(learn_modules);
    ProfilerGuardBuilder::default().frequency(HERTZ).blocklist(&NOT_IN).build()
}

/// The first sample of the process reads the tables of all its modules, and allocates memory for
/// them. In the middle of an allocation that ends the process, so this thread takes it now: by a
/// signal to itself, long before the timer rings.
fn learn_modules() {
    let rarely = ProfilerGuardBuilder::default().frequency(1).build();
    if rarely.is_ok()
        && let Err(error) = raise(Signal::SIGPROF)
    {
        tracing::warn!(%error, "the first sample is taken anywhere");
    }
}
