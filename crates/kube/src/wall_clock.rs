//! The time of day, for what is written and for cycles. A simulation sets it for its thread; it then
//! follows tokio's clock, which a simulation moves on by itself.

use std::cell::Cell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

use crate::simulated::ahead_micros;

thread_local! {
    /// `None`: the clock of the machine.
    static SIMULATED: Cell<Option<SimulatedClock>> = const { Cell::new(None) };
}

/// A time of day that follows tokio's clock.
#[derive(Clone, Copy)]
struct SimulatedClock {
    /// Time of day at `start`, in microseconds since 1970.
    origin_micros: i64,
    start: Instant,
}

/// Sets the time of day of this thread, in microseconds since 1970. Every part of a simulation must
/// run on this thread.
pub fn simulate_wall_clock(micros: i64) {
    SIMULATED.set(Some(SimulatedClock { origin_micros: micros, start: Instant::now() }));
}

/// The time of day, in microseconds since 1970.
pub fn wall_micros() -> i64 {
    i64::try_from(wall_nanos() / 1_000).unwrap_or(i64::MAX)
}

/// The time of day, in nanoseconds since 1970.
fn wall_nanos() -> i128 {
    let nanos = |time: Duration| i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
    match SIMULATED.get() {
        Some(clock) => {
            let origin_micros = i128::from(clock.origin_micros) + i128::from(ahead_micros());
            origin_micros * 1_000 + nanos(clock.start.elapsed())
        }
        None => nanos(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
    }
}

/// The time of day as the API has it.
pub(crate) fn timestamp() -> Timestamp {
    Timestamp::from_nanosecond(wall_nanos()).unwrap_or_default()
}

/// How long ago that was; microseconds since 1970. Zero if it is still to come.
pub(crate) fn since(micros: i64) -> Duration {
    let passed = wall_micros().saturating_sub(micros);
    Duration::from_micros(u64::try_from(passed).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_simulated_day_follows_the_clock_of_the_runtime() {
        simulate_wall_clock(1_000_000);
        tokio::time::sleep(Duration::from_secs(90)).await;
        assert_eq!(wall_micros(), 91_000_000);
        assert_eq!(since(90_000_000), Duration::from_secs(1));
        assert_eq!(since(99_000_000), Duration::ZERO);
    }
}
