//! Limits for one user: how many questions it may ask, and how often its rights are reviewed.
//! Specification: answers.md 11 (ANS-74), 12 (ANS-78).

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

/// Questions of one user in a second, and at once.
const PER_SECOND: u32 = 20;
const BURST: u32 = 50;
/// Changes to suppose of one user in a second, and at once.
const WHAT_IFS_PER_SECOND: u32 = 1;
const BURST_OF_WHAT_IFS: u32 = 5;
/// Bundles of one user in a minute, and at once.
const BUNDLES_PER_MINUTE: u32 = 1;
const BURST_OF_BUNDLES: u32 = 1;
/// Reviews of the rights of one user in a second, and at once. They are more than questions: each
/// question needs one, and names in its answer need further ones.
const REVIEWS_PER_SECOND: u32 = 40;
const BURST_OF_REVIEWS: u32 = 200;
/// Message for a user whose rights would have to be reviewed too often.
pub(crate) const TOO_MANY_REVIEWS: &str =
    "too many questions about rights: 40 a second, 200 at once";
/// One question in units of a bucket. At a rate of one a minute a millisecond adds one unit.
const QUESTION: u64 = 60_000;
/// Users who are kept; then the one who has been silent for longest goes.
const MOST_USERS: usize = 1_024;

/// A bucket that fills again by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    /// In parts of [`QUESTION`].
    level: u64,
    filled: Option<Instant>,
}

impl TokenBucket {
    /// Returns a bucket with so much in it.
    pub(crate) fn full(burst: u32) -> Self {
        Self { level: u64::from(burst) * QUESTION, filled: None }
    }

    /// Takes one out. Returns false if the bucket is empty.
    pub(crate) fn take(&mut self, now: Instant, per_second: u32, burst: u32) -> bool {
        self.take_per_minute(now, per_second.saturating_mul(60), burst)
    }

    /// Takes one out, at a rate for a minute.
    fn take_per_minute(&mut self, now: Instant, per_minute: u32, burst: u32) -> bool {
        let before = self.filled.unwrap_or(now);
        let millis = now.saturating_duration_since(before).as_millis();
        let new = u64::try_from(millis).unwrap_or(u64::MAX).saturating_mul(u64::from(per_minute));
        self.level = self.level.saturating_add(new).min(u64::from(burst) * QUESTION);
        self.filled = Some(now);
        let is_there = QUESTION <= self.level;
        self.level -= if is_there { QUESTION } else { 0 };
        is_there
    }
}

/// The limit that a question counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuestionCost {
    /// It is answered from the state.
    Plain,
    /// It supposes changes in a copy of the state.
    WhatIf,
    /// It wants a file of everything.
    Bundle,
}

impl QuestionCost {
    /// Returns what is told whoever asks too much.
    pub(crate) fn refusal(self) -> &'static str {
        match self {
            Self::Plain => "too many questions: 20 a second, 50 at once",
            Self::WhatIf => "too many what-ifs: 1 a second, 5 at once",
            Self::Bundle => "too many bundles: 1 a minute",
        }
    }
}

/// What one user has left.
struct UserBuckets {
    questions: TokenBucket,
    what_ifs: TokenBucket,
    bundles: TokenBucket,
    reviews: TokenBucket,
}

impl UserBuckets {
    fn full() -> Self {
        Self {
            questions: TokenBucket::full(BURST),
            what_ifs: TokenBucket::full(BURST_OF_WHAT_IFS),
            bundles: TokenBucket::full(BURST_OF_BUNDLES),
            reviews: TokenBucket::full(BURST_OF_REVIEWS),
        }
    }

    /// Returns when the user has asked last.
    fn last(&self) -> Option<Instant> {
        let buckets = [&self.questions, &self.what_ifs, &self.bundles, &self.reviews];
        buckets.into_iter().filter_map(|bucket| bucket.filled).max()
    }
}

/// Buckets for each user.
#[derive(Default)]
pub(crate) struct UserLimits(Mutex<BTreeMap<String, UserBuckets>>);

impl UserLimits {
    /// Returns true if the user may ask one more question of this cost now.
    pub(crate) fn allow(&self, user: &str, cost: QuestionCost) -> bool {
        self.take(user, |buckets, now| match cost {
            QuestionCost::Plain => buckets.questions.take(now, PER_SECOND, BURST),
            QuestionCost::WhatIf => {
                buckets.what_ifs.take(now, WHAT_IFS_PER_SECOND, BURST_OF_WHAT_IFS)
            }
            QuestionCost::Bundle => {
                buckets.bundles.take_per_minute(now, BUNDLES_PER_MINUTE, BURST_OF_BUNDLES)
            }
        })
    }

    /// Returns true if one more right of the user may be reviewed now.
    pub(crate) fn allow_review(&self, user: &str) -> bool {
        self.take(user, |buckets, now| {
            buckets.reviews.take(now, REVIEWS_PER_SECOND, BURST_OF_REVIEWS)
        })
    }

    /// Lets a function take out of the buckets of the user. Returns what it returns.
    fn take(&self, user: &str, from: impl FnOnce(&mut UserBuckets, Instant) -> bool) -> bool {
        let mut users = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if MOST_USERS <= users.len() && !users.contains_key(user) {
            let oldest = users.iter().min_by_key(|(_, buckets)| buckets.last());
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                users.remove(&oldest);
            }
        }
        let buckets = users.entry(user.to_owned()).or_insert_with(UserBuckets::full);
        from(buckets, Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ans_74_a_user_has_a_burst_and_then_a_rate() {
        let limits = UserLimits::default();
        assert!((0..BURST).all(|_| limits.allow("jo", QuestionCost::Plain)));
        assert!(
            !limits.allow("jo", QuestionCost::Plain) && limits.allow("ann", QuestionCost::Plain),
            "each user has a bucket"
        );
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((0..BURST).filter(|_| limits.allow("jo", QuestionCost::Plain)).count(), 20);
        assert_eq!(
            (0..BURST).filter(|_| limits.allow("jo", QuestionCost::WhatIf)).count(),
            5,
            "what-ifs are dear"
        );
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!((0..BURST).filter(|_| limits.allow("jo", QuestionCost::WhatIf)).count(), 2);
        let bundles = || (0..9).filter(|_| limits.allow("jo", QuestionCost::Bundle)).count();
        assert_eq!(bundles(), 1);
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!(bundles(), 0);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(bundles(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn ans_74_the_user_who_was_silent_for_longest_is_forgotten() {
        let limits = UserLimits::default();
        while limits.allow("first", QuestionCost::Plain) {}
        tokio::time::advance(Duration::from_millis(1)).await;
        for number in 0..MOST_USERS {
            assert!(limits.allow(&number.to_string(), QuestionCost::Plain));
        }
        assert_eq!(limits.0.lock().unwrap().len(), MOST_USERS);
        assert!(limits.allow("first", QuestionCost::Plain), "its bucket is a new one");
    }
}
