//! Escapes for texts that a user of the cluster has chosen: names, annotations, queue names. Such a
//! text may not begin a new line of a log, move a cursor or turn the direction of what follows.
//! Specification: core.md 1.8 (texts of users).

mod json;

use std::borrow::Cow;

pub use json::JsonEscaper;

/// True for a character that a terminal or an editor obeys instead of showing: the control
/// characters (C0, DEL, C1), the marks of writing direction, and the separators of lines and
/// paragraphs.
pub fn is_escaped(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{061C}'
                | '\u{200E}'
                | '\u{200F}'
                | '\u{2028}'..='\u{202E}'
                | '\u{2066}'..='\u{2069}'
                | '\u{FEFF}'
        )
}

/// The text with each character of [`is_escaped`] written as Rust writes it: `\n`, `\u{202e}`. It
/// is borrowed if there is none.
pub fn escape(text: &str) -> Cow<'_, str> {
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_plain || !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match is_escaped(character) {
            true => escaped.extend(character.escape_default()),
            false => escaped.push(character),
        }
    }
    Cow::Owned(escaped)
}

/// The same, but line feeds stay: for a text of several lines that is the program's own.
pub fn escape_lines(text: &str) -> String {
    text.split('\n').map(escape).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_a_terminal_obeys_are_escaped() {
        let cases = [
            ("train/job-1", "train/job-1"),
            ("größer als 4 µs 任务", "größer als 4 µs 任务"),
            ("x\n\r\tE1123 forged", "x\\n\\r\\tE1123 forged"),
            ("\u{1b}[2J\u{7f}\u{9b}1m", "\\u{1b}[2J\\u{7f}\\u{9b}1m"),
            ("abc\u{202e}cba", "abc\\u{202e}cba"),
            ("\u{061c}\u{200e}\u{200f}", "\\u{61c}\\u{200e}\\u{200f}"),
            ("\u{2028}\u{2029}\u{202a}", "\\u{2028}\\u{2029}\\u{202a}"),
            ("\u{2066}\u{2069}\u{feff}", "\\u{2066}\\u{2069}\\u{feff}"),
        ];
        for (text, wanted) in cases {
            assert_eq!(escape(text), wanted);
            assert!(!escape(text).contains(is_escaped));
        }
        assert!(matches!(escape("plain"), Cow::Borrowed("plain")));
        assert_eq!(escape_lines("a\r\nb\u{202e}\n"), "a\\r\nb\\u{202e}\n");
    }
}
