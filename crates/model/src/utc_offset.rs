//! The offset of local time from UTC, in which windows of the day are given.

use serde::{Deserialize, Serialize};

/// The offset of local time from UTC.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum UtcOffset {
    /// So many seconds at all times.
    Fixed(i64),
    /// Seconds as a function of the time in microseconds since 1970. It cannot be stored; see
    /// [`UtcOffset::fixed_at`].
    #[serde(skip)]
    Local(fn(i64) -> i64),
}

impl Default for UtcOffset {
    fn default() -> Self {
        Self::Fixed(0)
    }
}

impl UtcOffset {
    /// Returns the offset in seconds at a time in microseconds since 1970.
    pub fn seconds(self, now_micros: i64) -> i64 {
        match self {
            Self::Fixed(seconds) => seconds,
            Self::Local(seconds_at) => seconds_at(now_micros),
        }
    }

    /// Returns the offset that holds at this time, for all times.
    #[must_use]
    pub fn fixed_at(self, now_micros: i64) -> Self {
        Self::Fixed(self.seconds(now_micros))
    }
}
