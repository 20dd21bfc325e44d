//! How long a watch waits before it is begun again: a second while the server is away, longer while
//! it is there and says that it has too much to do. Specification: core.md 4.1.

use std::time::Duration;

/// After the first failure; each further one doubles it.
const FIRST: Duration = Duration::from_millis(250);
/// Without an answer there is no load: who waits longer is late when the server is back.
const LONGEST: Duration = Duration::from_secs(1);
/// After 429 and 5xx: a list of everything is what such a server needs least.
const LONGEST_BUSY: Duration = Duration::from_secs(10);

/// Failures in a row.
#[derive(Debug, Default)]
pub(crate) struct RestartBackoff(u32);

impl RestartBackoff {
    /// The pause after a failure with this HTTP status, if there was an answer.
    pub(crate) fn after(&mut self, status: Option<u16>) -> Duration {
        let pause = FIRST.saturating_mul(1 << self.0.min(16));
        self.0 += 1;
        match status {
            Some(429 | 500..) => pause.min(LONGEST_BUSY),
            _ => pause.min(LONGEST),
        }
    }

    /// Something has come.
    pub(crate) fn reset(&mut self) {
        self.0 = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_away_is_asked_every_second_and_a_busy_one_less_often() {
        let pauses = |status| {
            let mut pauses = RestartBackoff::default();
            let mut next = || pauses.after(status).as_millis();
            [next(), next(), next(), next(), next(), next(), next()]
        };
        assert_eq!(pauses(None), [250, 500, 1000, 1000, 1000, 1000, 1000]);
        assert_eq!(pauses(Some(403)), pauses(None));
        let busy = [250, 500, 1000, 2000, 4000, 8000, 10_000];
        assert_eq!((pauses(Some(429)), pauses(Some(503))), (busy, busy));
        let mut again = RestartBackoff::default();
        again.after(None);
        again.reset();
        assert_eq!(again.after(None), FIRST);
    }
}
