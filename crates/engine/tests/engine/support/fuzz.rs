//! Random tests without end, on all cores: the targets `fuzz-evict` and `fuzz-fast` of the Makefile.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{available_parallelism, scope};

/// What the environment wants of a fuzz target.
pub(crate) enum FuzzRequest {
    /// Nothing: few cases of a seed of its own, as one test among others.
    Few(u64),
    /// One seed again.
    Seed(u64),
    /// New seeds from this one on, until something breaks.
    Forever(u64),
}

impl FuzzRequest {
    /// The value of the variable: `forever`, or a seed. `usual` is the seed without it.
    pub(crate) fn of(variable: &str, usual: u64) -> Self {
        let Ok(value) = std::env::var(variable) else { return Self::Few(usual) };
        let now = || std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
        value.parse().map_or_else(|_| Self::Forever(now()), Self::Seed)
    }
}

/// How many tests run at once.
pub(crate) fn n_cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Checks all items, as many at once as there are cores.
///
/// # Errors
/// What is wrong with the first one that fails; no further one is begun then.
pub(crate) fn check_at_once<T: Sync>(
    items: &[T],
    check: impl Fn(&T) -> Result<(), String> + Sync,
) -> Result<(), String> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let work = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(why) = check(item) {
                next.store(items.len(), Ordering::Relaxed);
                failed.lock().expect("nobody panics with it").get_or_insert(why);
            }
        }
    };
    scope(|scope| (0..n_cores()).for_each(|_| _ = scope.spawn(work)));
    failed.into_inner().expect("nobody panics with it").map_or(Ok(()), Err)
}
