//! Texts that are read and not kept: phases, operators, types of conditions. They stand in place: a
//! list has some of them per object, and to share them with other threads costs more than to copy
//! them. docs/performance.md (start).

use std::ops::Deref;
use std::sync::Arc;

use crate::soft::Shape;

/// Longest text that stands in place.
const ROOM: usize = 22;

/// A text, usually a short one.
#[derive(Clone, Debug)]
pub struct Brief(Kept);

#[derive(Clone, Debug)]
enum Kept {
    Here { len: u8, bytes: [u8; ROOM] },
    Elsewhere(Box<str>),
}

impl Default for Brief {
    fn default() -> Self {
        Self(Kept::Here { len: 0, bytes: [0; ROOM] })
    }
}

impl From<&str> for Brief {
    fn from(text: &str) -> Self {
        let mut bytes = [0; ROOM];
        match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(place), Ok(len)) => {
                place.copy_from_slice(text.as_bytes());
                Self(Kept::Here { len, bytes })
            }
            _ => Self(Kept::Elsewhere(text.into())),
        }
    }
}

impl Deref for Brief {
    type Target = str;
    fn deref(&self) -> &str {
        match &self.0 {
            Kept::Here { len, bytes } => std::str::from_utf8(&bytes[..usize::from(*len)])
                .expect("it was a text when it was copied, and as long as that"),
            Kept::Elsewhere(text) => text,
        }
    }
}

impl Shape for Brief {
    const WANTED: &'static str = "a string";
    fn from_text(text: &str) -> Option<Result<Self, String>> {
        Some(Ok(text.into()))
    }
}

/// A text of its own that no other object has: it is not looked for among the shared ones, where it
/// would take the place of one that is.
#[derive(Clone, Debug, Default)]
pub struct Own(pub Arc<str>);

impl Shape for Own {
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
            assert_eq!(*Brief::from(&*text), *text);
        }
        assert_eq!(&*Brief::from("\u{e9}"), "\u{e9}");
        assert_eq!(&*Brief::default(), "");
    }
}
