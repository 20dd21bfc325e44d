//! PodGroups as their watch or our last write brought them, for the next write: it needs no list
//! then. Only those that soon get a new status, and few; a stale one is refused with 409 and listed
//! after all. ARCHITECTURE.md; core.md 7.6 (C-29).

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashSet;
use tokio::sync::Notify;
use vc_model::{ByteLruCache, ObjectKey};

use crate::source::ObjectChange;

/// Of their texts together; a PodGroup has about a kilobyte.
const MOST_BYTES: usize = 8 << 20;

/// They may be forgotten at any time.
#[derive(Debug, Default)]
pub(crate) struct PodGroupCache {
    texts: Mutex<PodGroupTexts>,
    /// Some of [`PodGroupTexts::awaited`] have changed.
    changed: Notify,
}

#[derive(Debug, Default)]
struct PodGroupTexts {
    by_key: ByteLruCache<ObjectKey, Box<str>>,
    /// PodGroups whose next change ends the pause after a refused write.
    awaited: FxHashSet<ObjectKey>,
    /// Those of them that have changed, in the order of their changes.
    changed: Vec<ObjectKey>,
}

impl PodGroupCache {
    /// What a watch says about an object.
    pub(crate) fn see(&self, change: &mut ObjectChange) {
        let (object, text) = match change {
            ObjectChange::Applied(object) => {
                let text = object.text.take();
                (object, text)
            }
            ObjectChange::Deleted(object) => (object, None),
            ObjectChange::Begun { .. } | ObjectChange::Listed => return,
        };
        let Some((key, _)) = &object.identity else { return };
        self.note_change(key);
        match text {
            Some(text) => self.keep(key, text),
            None => drop(self.take(key)),
        }
    }

    fn note_change(&self, key: &ObjectKey) {
        let mut texts = self.lock();
        if !texts.awaited.is_empty() && texts.awaited.remove(key) {
            texts.changed.push(key.clone());
            self.changed.notify_one();
        }
    }

    /// The next change of this PodGroup that a watch shows is among [`PodGroupCache::changed`].
    pub(crate) fn await_change(&self, key: &ObjectKey) {
        self.lock().awaited.insert(key.clone());
    }

    /// Waits for changes of PodGroups that are awaited.
    pub(crate) async fn changed(&self) -> Vec<ObjectKey> {
        self.changed.notified().await;
        std::mem::take(&mut self.lock().changed)
    }

    /// The object; it is forgotten.
    pub(crate) fn take(&self, key: &ObjectKey) -> Option<Box<str>> {
        self.lock().by_key.take(key)
    }

    /// For the next write of it.
    pub(crate) fn keep(&self, key: &ObjectKey, text: impl Into<Box<str>>) {
        let text = text.into();
        let n_bytes = text.len();
        let mut texts = self.lock();
        let by_key = &mut texts.by_key;
        by_key.put(key.clone(), text, n_bytes);
        while MOST_BYTES < by_key.n_bytes() {
            by_key.pop_oldest();
        }
    }

    /// Returns how much is kept, by table.
    pub(crate) fn table_sizes(&self) -> [(&'static str, usize); 2] {
        let texts = self.lock();
        let n_awaited = texts.awaited.len() + texts.changed.len();
        [
            ("cache.pod_group_texts_bytes", texts.by_key.n_bytes()),
            ("writes.awaited_pod_groups", n_awaited),
        ]
    }

    fn lock(&self) -> MutexGuard<'_, PodGroupTexts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("ns", name)
    }

    #[test]
    fn the_newest_text_is_given_out_once() {
        let cache = PodGroupCache::default();
        cache.keep(&key("a"), "1");
        cache.keep(&key("a"), "2");
        assert_eq!(cache.take(&key("a")).as_deref(), Some("2"));
        assert_eq!(cache.take(&key("a")), None);
    }

    #[tokio::test]
    async fn a_change_is_told_once_to_who_awaits_it() {
        let cache = PodGroupCache::default();
        cache.note_change(&key("a"));
        cache.await_change(&key("a"));
        cache.note_change(&key("b"));
        cache.note_change(&key("a"));
        cache.note_change(&key("a"));
        assert_eq!(cache.changed().await, [key("a")]);
    }

    #[test]
    fn their_bytes_are_bounded_and_the_oldest_go_first() {
        let (cache, text) = (PodGroupCache::default(), "x".repeat(MOST_BYTES / 4));
        for name in ["a", "b", "c", "a", "d", "e"] {
            cache.keep(&key(name), &*text);
        }
        let left = ["a", "b", "c", "d", "e"].map(|name| cache.take(&key(name)).is_some());
        assert_eq!(left, [true, false, true, true, true]);
        assert_eq!(cache.lock().by_key.n_bytes(), 0);
    }
}
