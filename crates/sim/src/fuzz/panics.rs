//! I9: nothing panics. A task that panics ends in silence, or looks to others like a lost Lease or
//! a lost connection. So each panic of a story is recorded where it happens.

use std::cell::RefCell;
use std::panic::{self, PanicHookInfo};
use std::sync::Once;

thread_local! {
    /// Texts of the panics of the story that is played on this thread. `None`: none is played.
    static PANICS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Records the panics of this thread while it exists. A task that is aborted does not panic.
pub(super) struct PanicRecorder {
    /// What was recorded of a story around this one.
    outer: Option<Vec<String>>,
}

impl PanicRecorder {
    pub(super) fn start() -> Self {
        install();
        Self { outer: PANICS.replace(Some(Vec::new())) }
    }
}

impl Drop for PanicRecorder {
    fn drop(&mut self) {
        PANICS.set(self.outer.take());
    }
}

/// Returns one text for each panic since the last call.
pub(super) fn take() -> Vec<String> {
    PANICS.with_borrow_mut(|panics| panics.as_mut().map(std::mem::take).unwrap_or_default())
}

/// Lets this program record each panic before it does what it did before. Has an effect once.
fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            record(info);
            before(info);
        }));
    });
}

fn record(info: &PanicHookInfo<'_>) {
    // The texts are away on a thread that ends.
    let _recorded = PANICS.try_with(|panics| {
        if let Ok(mut panics) = panics.try_borrow_mut()
            && let Some(panics) = panics.as_mut()
        {
            panics.push(text_of(info));
        }
    });
}

fn text_of(info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
    match info.location() {
        Some(place) => format!("I9: panic at {}:{}: {text}", place.file(), place.line()),
        None => format!("I9: panic: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::one_thread::simulate;

    async fn fail(text: &'static str) {
        panic!("{text}");
    }

    #[test]
    fn panics_of_tasks_that_nobody_waits_for_are_found() {
        let found = simulate(async || {
            let _recorder = PanicRecorder::start();
            drop(tokio::spawn(fail("in a part")));
            drop(tokio::task::spawn_local(fail("in a process")));
            let aborted = tokio::spawn(std::future::pending::<()>());
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            aborted.abort();
            assert!(aborted.await.is_err_and(|error| error.is_cancelled()));
            take()
        });
        let found = found.unwrap();
        assert_eq!(found.len(), 2, "{found:?}");
        for text in ["in a part", "in a process"] {
            let is_it = |it: &String| it.starts_with("I9: panic at ") && it.ends_with(text);
            assert!(found.iter().any(is_it), "{text}: {found:?}");
        }
        assert_eq!(take(), [""; 0], "no story is played");
    }
}
