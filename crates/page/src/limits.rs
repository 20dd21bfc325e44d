//! Limits of the questions of one user. Specification: answers.md 11 (ANS-74).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// Questions of one user in a second, and at once.
const PER_SECOND: u32 = 20;
const BURST: u32 = 50;
/// Changes to suppose of one user in a second, and at once.
const WHAT_IFS_PER_SECOND: u32 = 1;
const BURST_OF_WHAT_IFS: u32 = 5;
/// Users who are kept; then the one who has been silent for longest goes.
const MOST_USERS: usize = 1_024;

/// A bucket that fills again by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    /// Thousandths.
    level: u64,
    filled: Option<Instant>,
}

impl TokenBucket {
    /// Returns a bucket with so much in it.
    pub(crate) fn full(burst: u32) -> Self {
        Self { level: u64::from(burst) * 1_000, filled: None }
    }

    /// Takes one out. Returns false if the bucket is empty.
    pub(crate) fn take(&mut self, now: Instant, per_second: u32, burst: u32) -> bool {
        let before = self.filled.unwrap_or(now);
        let millis = now.saturating_duration_since(before).as_millis();
        let new = u64::try_from(millis).unwrap_or(u64::MAX).saturating_mul(u64::from(per_second));
        self.level = self.level.saturating_add(new).min(u64::from(burst) * 1_000);
        self.filled = Some(now);
        let is_there = 1_000 <= self.level;
        self.level -= if is_there { 1_000 } else { 0 };
        is_there
    }
}

/// What one user has left.
struct UserBuckets {
    questions: TokenBucket,
    what_ifs: TokenBucket,
}

/// Buckets for each user.
#[derive(Default)]
pub(crate) struct UserLimits(Mutex<BTreeMap<String, UserBuckets>>);

impl UserLimits {
    /// Returns true if the user may ask one more question now, which supposes changes or not.
    pub(crate) fn allow(&self, user: &str, is_what_if: bool) -> bool {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if MOST_USERS <= users.len() && !users.contains_key(user) {
            let oldest = users
                .iter()
                .min_by_key(|(_, buckets)| buckets.questions.filled.max(buckets.what_ifs.filled));
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                users.remove(&oldest);
            }
        }
        let buckets = users.entry(user.to_owned()).or_insert_with(|| UserBuckets {
            questions: TokenBucket::full(BURST),
            what_ifs: TokenBucket::full(BURST_OF_WHAT_IFS),
        });
        match is_what_if {
            true => buckets.what_ifs.take(Instant::now(), WHAT_IFS_PER_SECOND, BURST_OF_WHAT_IFS),
            false => buckets.questions.take(Instant::now(), PER_SECOND, BURST),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ans_74_a_user_has_a_burst_and_then_a_rate() {
        let limits = UserLimits::default();
        assert!((0..BURST).all(|_| limits.allow("jo", false)));
        assert!(!limits.allow("jo", false) && limits.allow("ann", false), "each user has a bucket");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((0..BURST).filter(|_| limits.allow("jo", false)).count(), 20);
        assert_eq!((0..BURST).filter(|_| limits.allow("jo", true)).count(), 5, "what-ifs are dear");
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!((0..BURST).filter(|_| limits.allow("jo", true)).count(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn ans_74_the_user_who_was_silent_for_longest_is_forgotten() {
        let limits = UserLimits::default();
        while limits.allow("first", false) {}
        tokio::time::advance(Duration::from_millis(1)).await;
        for number in 0..MOST_USERS {
            assert!(limits.allow(&number.to_string(), false));
        }
        assert_eq!(limits.0.lock().unwrap().len(), MOST_USERS);
        assert!(limits.allow("first", false), "its bucket is a new one");
    }
}
