//! A CPU profile: where the process was when its timer rang.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::lines::LocationCache;
use super::proto::Profile;
use super::{binary, forget_symbols};
use crate::cpu::{CpuSamples, HERTZ, RunningProfile};

/// Length of a profile if the request does not say.
const SECONDS: u64 = 30;
/// A profile must be shorter: so long does Volcano's server write at most.
const LIMIT: u64 = 60;

/// Answers `/debug/pprof/profile`.
pub(super) async fn profile(RawQuery(query): RawQuery) -> Response {
    let time = match seconds(&query.unwrap_or_default()) {
        Some(seconds) if seconds < LIMIT => Duration::from_secs(seconds),
        Some(_) => return refuse(StatusCode::BAD_REQUEST, "a profile must be shorter than 60 s"),
        None => return refuse(StatusCode::BAD_REQUEST, "seconds: not a positive integer"),
    };
    match take(time).await {
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
    // Files are read here.
    let running = spawn_blocking(move || RunningProfile::start(time)).await;
    let running = running.map_err(|error| error.to_string())??;
    let begin = SystemTime::now();
    sleep(time).await;
    let samples = running.finish();
    if 0 < samples.n_lost {
        tracing::info!(samples = samples.n_lost, "samples of a CPU profile were lost");
    }
    // Names are found from addresses here.
    let encoded = spawn_blocking(move || {
        let profile = encode(&samples, begin, time);
        forget_symbols();
        profile
    });
    encoded.await.map_err(|error| error.to_string())
}

fn encode(samples: &CpuSamples, begin: SystemTime, time: Duration) -> Vec<u8> {
    let period = 1_000_000_000 / i64::from(HERTZ);
    let mut profile = Profile::new(&[("samples", "count"), ("cpu", "nanoseconds")]);
    let mut counts = HashMap::<&[u64], i64>::new();
    samples.stacks().for_each(|stack| *counts.entry(stack).or_default() += 1);
    let mut cache = LocationCache::default();
    for (stack, count) in counts {
        let mut locations = Vec::new();
        for &address in stack {
            locations.extend_from_slice(cache.locations(&mut profile, address, |_| false));
        }
        profile.sample(locations, &[count, count.saturating_mul(period)]);
    }
    profile.time(begin, time.as_nanos());
    profile.period("cpu", "nanoseconds", period);
    profile.finish()
}
