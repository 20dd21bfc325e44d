//! A CPU profile: where the process was when its timer rang.

use std::sync::Once;
use std::time::Duration;

use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use nix::sys::signal::{Signal, raise};
use pprof::{ProfilerGuard, ProfilerGuardBuilder, Report};
use tokio::time::sleep;

use super::proto::{Profile, SourceLine};
use super::{binary, forget_symbols};

/// Samples per second of CPU time, as Go takes them.
const HERTZ: i32 = 100;
/// Length of a profile if the request does not say.
const SECONDS: u64 = 30;
/// A profile must be shorter: so long does Volcano's server write at most.
const LIMIT: u64 = 60;
/// Modules that cannot be unwound.
const NOT_IN: [&str; 1] = ["vdso"];

/// Answers `/debug/pprof/profile`.
pub(super) async fn profile(RawQuery(query): RawQuery) -> Response {
    let seconds = match seconds(&query.unwrap_or_default()) {
        Some(seconds) if seconds < LIMIT => Duration::from_secs(seconds),
        Some(_) => return refuse(StatusCode::BAD_REQUEST, "a profile must be shorter than 60 s"),
        None => return refuse(StatusCode::BAD_REQUEST, "seconds: not a positive integer"),
    };
    match take(seconds).await {
        Ok(bytes) => binary(bytes),
        Err(problem) => refuse(StatusCode::INTERNAL_SERVER_ERROR, &problem),
    }
}

fn refuse(code: StatusCode, problem: &str) -> Response {
    (code, format!("Could not enable CPU profiling: {problem}\n")).into_response()
}

fn seconds(query: &str) -> Option<u64> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix("seconds="));
    value.map_or(Some(SECONDS), |text| text.parse().ok()).filter(|seconds| 0 < *seconds)
}

/// A profile of the given length in pprof's format.
async fn take(time: Duration) -> Result<Vec<u8>, String> {
    let guard = aside(begin).await?;
    sleep(time).await;
    // Names are found from addresses here.
    aside(move || {
        let report = guard.report().build();
        let profile = report.map(|report| encode(&report));
        forget_symbols();
        profile
    })
    .await
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

fn encode(report: &Report) -> Vec<u8> {
    let timing = &report.timing;
    let period = 1_000_000_000 / i64::from(timing.frequency.max(1));
    let mut profile = Profile::new(&[("samples", "count"), ("cpu", "nanoseconds")]);
    for (frames, &count) in &report.data {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let symbols = frames.frames.iter().flatten();
        let line = |symbol: &pprof::Symbol| SourceLine {
            function: symbol.name(),
            file: symbol.filename().into_owned(),
            line: symbol.lineno.unwrap_or(0),
        };
        let locations = symbols.map(|symbol| profile.location(&line(symbol))).collect();
        profile.sample(locations, &[count, count.saturating_mul(period)]);
    }
    profile.time(timing.start_time, timing.duration.as_nanos());
    profile.period("cpu", "nanoseconds", period);
    profile.finish()
}
