//! Escapes in JSON that is being written. `serde_json` escapes what JSON demands, which are the
//! characters below U+0020; the others of [`is_escaped`](crate::is_escaped) it writes as they are.

use std::io::{self, Write};

use crate::is_escaped;

/// A writer of JSON text in which the characters of [`is_escaped`](crate::is_escaped) above U+007E
/// become `\u` escapes. In JSON they can only stand inside strings, so that the meaning stays. Each
/// write must end at a character's end, as those of `serde_json` do; other bytes pass unchanged.
pub struct JsonEscaper<W>(pub W);

impl<W: Write> Write for JsonEscaper<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = match std::str::from_utf8(bytes) {
            Ok(text) if text.contains(is_above_ascii) => text,
            _ => {
                self.0.write_all(bytes)?;
                return Ok(bytes.len());
            }
        };
        let mut rest = text;
        while let Some(start) = rest.find(is_above_ascii) {
            let (before, behind) = rest.split_at(start);
            self.0.write_all(before.as_bytes())?;
            let mut characters = behind.chars();
            let character = characters.next().unwrap_or_default();
            // All of them are in the first plane: one unit of UTF-16.
            write!(self.0, "\\u{:04x}", u32::from(character))?;
            rest = characters.as_str();
        }
        self.0.write_all(rest.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// True for what JSON allows as it is and a terminal obeys. Line ends between documents stay.
fn is_above_ascii(character: char) -> bool {
    '\u{7e}' < character && is_escaped(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_keeps_its_meaning() {
        let mut out = Vec::new();
        let mut writer = JsonEscaper(&mut out);
        writer.write_all("{\"a\":\"x\u{202e}y\u{9b}\u{7f}ü\\n\"}\n".as_bytes()).unwrap();
        writer.write_all(b"\xff").unwrap();
        writer.flush().unwrap();
        assert_eq!(
            out,
            "{\"a\":\"x\\u202ey\\u009b\\u007fü\\n\"}\n".bytes().chain([255]).collect::<Vec<_>>()
        );
    }
}
