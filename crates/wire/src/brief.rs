//! Texts that are read and not kept: phases, operators, types of conditions. They stand in place: a
//! list has some of them per object, and to share them with other threads costs more than to copy
//! them. docs/performance.md (start).

use std::ops::Deref;
use std::sync::Arc;

use crate::soft::FieldShape;

/// Longest text that stands in place.
const ROOM: usize = 22;

/// A text, usually a short one.
#[derive(Clone, Debug)]
pub struct ShortText(ShortTextRepr);

#[derive(Clone, Debug)]
enum ShortTextRepr {
    Here { len: u8, bytes: [u8; ROOM] },
    Elsewhere(Box<str>),
}

impl Default for ShortText {
    fn default() -> Self {
        Self(ShortTextRepr::Here { len: 0, bytes: [0; ROOM] })
    }
}

impl From<&str> for ShortText {
    fn from(text: &str) -> Self {
        let mut bytes = [0; ROOM];
        match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(place), Ok(len)) => {
                place.copy_from_slice(text.as_bytes());
                Self(ShortTextRepr::Here { len, bytes })
            }
            _ => Self(ShortTextRepr::Elsewhere(text.into())),
        }
    }
}

impl Deref for ShortText {
    type Target = str;
    fn deref(&self) -> &str {
        match &self.0 {
            ShortTextRepr::Here { len, bytes } => std::str::from_utf8(&bytes[..usize::from(*len)])
                .expect("it was a text when it was copied, and as long as that"),
            ShortTextRepr::Elsewhere(text) => text,
        }
    }
}

impl FieldShape for ShortText {
    const WANTED: &'static str = "a string";
    fn from_text(text: &str) -> Option<Result<Self, String>> {
        Some(Ok(text.into()))
    }
}

/// A text of its own that no other object has: it is not looked for among the shared ones, where it
/// would take the place of one that is.
#[derive(Clone, Debug, Default)]
pub struct OwnKey(pub Arc<str>);

impl FieldShape for OwnKey {
    const WANTED: &'static str = "a string";
    fn from_text(text: &str) -> Option<Result<Self, String>> {
        Some(Ok(Self(text.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_the_same_wherever_it_stands() {
        for length in [0, 1, ROOM - 1, ROOM, ROOM + 1, 300] {
            let text = "x".repeat(length);
            assert_eq!(*ShortText::from(&*text), *text);
        }
        assert_eq!(&*ShortText::from("\u{e9}"), "\u{e9}");
        assert_eq!(&*ShortText::default(), "");
    }
}
