//! Rust sources taken apart: code without comments and texts, and comments by paragraph.

use std::fs;
use std::path::{Path, PathBuf};

/// A source file of the project.
pub(crate) struct SourceFile {
    /// Path below the root of the project.
    pub(crate) path: String,
    /// The code; comments and the content of texts are left out, lines stay.
    pub(crate) code: String,
    /// Comments with the number of their first line. Adjacent lines are one comment.
    pub(crate) comments: Vec<(usize, String)>,
}

/// The sources of the folders below the root.
pub(crate) fn read_sources(folders: &[&str]) -> Vec<SourceFile> {
    let root = crate::root();
    let mut paths = Vec::new();
    folders.iter().for_each(|folder| crate::sources(&root.join(folder), &mut paths));
    paths.sort();
    assert!(!paths.is_empty(), "no sources in {folders:?}");
    paths.iter().map(|path| read_source(&root, path)).collect()
}

fn read_source(root: &Path, path: &PathBuf) -> SourceFile {
    let text = fs::read_to_string(path).expect("a source file");
    let path = path.strip_prefix(root).expect("a path below the root").display().to_string();
    SourceFile { path, code: code_of(&text), comments: comments_of(&text) }
}

/// The comments of a text. A comment behind code counts by itself.
fn comments_of(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (index, line) in text.lines().enumerate() {
        let content = line.trim_start().strip_prefix("//");
        let content = content.map(|rest| rest.trim_start_matches(['/', '!']).trim());
        match (content.filter(|content| !content.is_empty()), found.last_mut()) {
            (Some(content), Some((_, comment))) if is_open => {
                comment.push(' ');
                comment.push_str(content);
            }
            (Some(content), _) => found.push((index + 1, content.to_owned())),
            (None, _) => {}
        }
        is_open = content.is_some_and(|content| !content.is_empty());
    }
    found
}

/// The code of a text, without comments and without the content of texts and character literals.
fn code_of(text: &str) -> String {
    let (mut code, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            'r' if raw_hashes(rest).is_some() && !ends_in_word(&code) => {
                let end = format!("\"{}", "#".repeat(raw_hashes(rest).unwrap_or(0)));
                let start = end.len() + 1;
                rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len())
            }
            '"' => text_length(rest, '"'),
            '\'' if is_character(rest) => text_length(rest, '\''),
            _ => {
                code.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            }
        };
        code.push(' ');
        code.extend(rest[..length].chars().filter(|letter| *letter == '\n'));
        rest = &rest[length..];
    }
    code
}

fn ends_in_word(code: &str) -> bool {
    code.ends_with(|letter: char| letter.is_ascii_alphanumeric() && letter != 'b' || letter == '_')
}

/// The number of hashes of a raw text that begins here; `None`: none begins.
fn raw_hashes(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix('r')?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

/// True if a character literal begins here; else it is a lifetime.
fn is_character(rest: &str) -> bool {
    let mut letters = rest.chars().skip(1);
    letters.next() == Some('\\') || letters.next() == Some('\'')
}

/// The length of a literal with its quotes.
fn text_length(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            letter if letter == quote => return at + letter.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

#[test]
fn code_is_what_remains_without_comments_and_texts() {
    let text =
        "let a = \"told // x\"; // told\nlet b: &'a str = r#\"ask \" \"#; let c = '\\''; d('\"')";
    let code = code_of(text);
    assert!(!code.contains("told") && !code.contains("ask"), "{code}");
    assert!(code.contains("let b: &'a str") && code.contains("let c") && code.contains("d("));
    let comments = comments_of("/// One\n/// two.\nfn a() {}\n//! Three.\n//!\n//! Four.");
    let expected = [(1, "One two."), (4, "Three."), (6, "Four.")];
    assert_eq!(comments, expected.map(|(line, comment)| (line, comment.to_owned())));
}
