//! Exchanges with the service within one session: after a request without any answer the others of
//! the session are not sent, and the first failure of each hook is kept for a warning.
//! Specification: plugins-jobs-queues.md 15.2 (D50: a service that does not answer).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vc_framework::{
    ExtenderAnswer, ExtenderClient, ExtenderError, ExtenderQuery, ExtenderRequest, SessionView,
};

use super::arguments::{ExtenderHook, ExtenderSettings};

/// Longest text of the service that is shown to people, in characters.
const MOST_SHOWN: usize = 256;

/// The service as one session sees it.
#[derive(Debug, Default)]
pub(super) struct ExtenderService {
    /// `None`: this program sends no requests.
    pub(super) client: Option<Arc<dyn ExtenderClient>>,
    session: Mutex<SessionFailures>,
}

/// What failed in this session.
#[derive(Debug, Default)]
struct SessionFailures {
    /// The request without any answer. `None` if there was none.
    unreachable: Option<ExtenderError>,
    /// The first failure of each hook.
    first: BTreeMap<ExtenderHook, String>,
    /// The first wrong statement of each hook in an answer that counts otherwise.
    odd: BTreeMap<ExtenderHook, String>,
}

impl ExtenderService {
    fn session(&self) -> MutexGuard<'_, SessionFailures> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what failed in the session before.
    pub(super) fn begin_session(&self) {
        *self.session() = SessionFailures::default();
    }

    /// Asks a hook. Returns `None` if it is not called.
    pub(super) fn ask(
        &self,
        settings: &ExtenderSettings,
        view: SessionView<'_>,
        hook: ExtenderHook,
        query: ExtenderQuery<'_>,
    ) -> Option<Result<ExtenderAnswer, ExtenderError>> {
        self.ask_all(settings, view, hook, &[query])?.pop()
    }

    /// Asks a hook several questions that do not depend on each other. Returns one result for each,
    /// in order, or `None` if the hook is not called.
    pub(super) fn ask_all(
        &self,
        settings: &ExtenderSettings,
        view: SessionView<'_>,
        hook: ExtenderHook,
        queries: &[ExtenderQuery<'_>],
    ) -> Option<Vec<Result<ExtenderAnswer, ExtenderError>>> {
        let url = settings.url(hook)?;
        let timeout = settings.timeout;

        // The lock is not held while requests are under way.
        let unreachable = self.session().unreachable.clone();
        let mut results = match (unreachable, &self.client) {
            (Some(error), _) => vec![Err(error); queries.len()],
            (None, Some(client)) => {
                let requests: Vec<ExtenderRequest<'_>> = queries
                    .iter()
                    .map(|&query| ExtenderRequest { url, timeout, view, query })
                    .collect();
                client.exchange_all(&requests)
            }
            (None, None) => {
                let why = "this program sends no requests".to_owned();
                vec![Err(ExtenderError::Unreachable(why)); queries.len()]
            }
        };
        let missing = || Err(ExtenderError::BadAnswer("no result".to_owned()));
        results.resize_with(queries.len(), missing);
        self.note(hook, &results);
        Some(results)
    }

    fn note(&self, hook: ExtenderHook, results: &[Result<ExtenderAnswer, ExtenderError>]) {
        let mut session = self.session();
        for error in results.iter().filter_map(|result| result.as_ref().err()) {
            session.first.entry(hook).or_insert_with(|| shown(&error.to_string()));
            if matches!(error, ExtenderError::Unreachable(_)) && session.unreachable.is_none() {
                session.unreachable = Some(error.clone());
            }
        }
    }

    /// Records that an answer says something that cannot be, which is left out.
    pub(super) fn note_odd(&self, hook: ExtenderHook, text: impl FnOnce() -> String) {
        self.session().odd.entry(hook).or_insert_with(|| shown(&text()));
    }

    /// Returns warnings about this session, one for each hook.
    pub(super) fn warnings(&self, settings: &ExtenderSettings) -> Vec<String> {
        let session = self.session();
        let url = shown(&settings.shown_url);
        let failed = session.first.iter().map(|(hook, why)| {
            let consequence = consequence(*hook, settings.is_ignorable);
            format!("plugin extender: {} of {url} failed: {why}. {consequence}", hook.name())
        });
        let odd = session.odd.iter().map(|(hook, what)| {
            format!("plugin extender: {} of {url}: {what}. Correct the service.", hook.name())
        });
        failed.chain(odd).collect()
    }
}

/// Returns what a failure of the hook means, and what to do.
fn consequence(hook: ExtenderHook, is_ignorable: bool) -> &'static str {
    match (hook, is_ignorable) {
        (ExtenderHook::SessionClose | ExtenderHook::JobEnqueued | ExtenderHook::Deallocate, _) => {
            "Nothing depends on it. Check the service."
        }
        (_, true) => "Decided without it (extender.ignorable). Check the service.",
        (ExtenderHook::SessionOpen, false) => {
            "No hook is called in this cycle, so pods are placed without the service. Check the \
             service."
        }
        (_, false) => {
            "It counts as a no. Check the service, or set extender.ignorable to decide without it."
        }
    }
}

/// Returns a text of the service as people may see it: one line of limited length.
pub(super) fn shown(text: &str) -> String {
    let mut letters = text.chars();
    let visible = |letter: char| if letter.is_control() { ' ' } else { letter };
    let mut line: String = letters.by_ref().take(MOST_SHOWN).map(visible).collect();
    if letters.next().is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn texts_of_the_service_are_one_short_line() {
        assert_eq!(shown("a\nb\u{1b}[31mc"), "a b [31mc");
        assert_eq!(shown(&"ä".repeat(300)), format!("{}…", "ä".repeat(256)));
    }
}
