//! Texts that many objects share (labels, namespaces, names of queues and resources) are kept once.
//! Memory of 200,000 pods is made of such texts; docs/performance.md.

use std::cell::RefCell;
use std::hash::Hasher;
use std::sync::Arc;

use rustc_hash::FxHasher;
use serde::de::{DeserializeSeed, Deserializer, Visitor};

/// Places of the memory; a power of two.
const PLACES: usize = 4096;
/// Longer texts are messages, which nobody else has.
const LONGEST: usize = 64;

/// A word that was seen. Its counter is written to by every thread that has it, so that its text is
/// often in the cache of another core: the copy is not.
#[derive(Clone)]
struct RecentWords {
    copy: [u8; LONGEST],
    word: Arc<str>,
}

thread_local! {
    /// By hash of the text, the last one seen: what is rare is soon forgotten, and nothing grows.
    static SEEN: RefCell<Vec<Option<RecentWords>>> = RefCell::new(vec![None; PLACES]);
}

/// The text, shared with an earlier equal one if there was one lately.
pub(crate) fn word(text: &str) -> Arc<str> {
    if LONGEST < text.len() || is_uid(text) {
        return text.into();
    }
    let mut hasher = FxHasher::default();
    hasher.write(text.as_bytes());
    // The upper half is mixed best.
    let place = (hasher.finish() >> 32) as usize % PLACES;
    SEEN.with_borrow_mut(|seen| match &seen[place] {
        Some(seen) if seen.word.len() == text.len() && seen.copy.starts_with(text.as_bytes()) => {
            seen.word.clone()
        }
        _ => {
            let mut copy = [0; LONGEST];
            copy[..text.len()].copy_from_slice(text.as_bytes());
            seen[place].insert(RecentWords { copy, word: text.into() }).word.clone()
        }
    })
}

/// Each object has a uid of its own.
fn is_uid(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 36 && [8, 13, 18, 23].iter().all(|&place| bytes[place] == b'-')
}

/// Reads a key of a map as a word.
pub(crate) struct WordKey;

impl<'de> DeserializeSeed<'de> for WordKey {
    type Value = Arc<str>;
    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<Self::Value, D::Error> {
        key.deserialize_str(self)
    }
}

impl Visitor<'_> for WordKey {
    type Value = Arc<str>;
    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a key")
    }
    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(word(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_words_are_one_and_long_texts_are_not_remembered() {
        assert!(Arc::ptr_eq(&word("volcano.sh/queue-name"), &word("volcano.sh/queue-name")));
        assert_ne!(word("a"), word("b"));
        let long = "x".repeat(LONGEST + 1);
        for own in [&long, "4d0b9ae6-9b5f-4bd6-97ee-ae1d9b0b3a1e"] {
            assert!(!Arc::ptr_eq(&word(own), &word(own)));
        }
        for number in 0..100_000 {
            let text = number.to_string();
            assert_eq!(*word(&text), text);
        }
    }
}
