//! JSON: one value after the other, lists with items that know their lines.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Deserializer, Value};

use super::{Input, document};

/// A `List` with its items unread.
#[derive(Deserialize)]
struct RawList<'a> {
    kind: String,
    #[serde(rename = "apiVersion", default)]
    api_version: String,
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

pub(super) fn read(input: &mut Input, file: &Arc<str>, text: &str) {
    let mut lines = LineIndex { text, offset: 0, line: 1 };
    for value in Deserializer::from_str(text).into_iter::<&RawValue>() {
        match value {
            Ok(raw) => add(input, file, &mut lines, raw),
            Err(error) => input.add_failure(file, error.line(), plain(&error)),
        }
    }
}

fn add(input: &mut Input, file: &Arc<str>, lines: &mut LineIndex<'_>, raw: &RawValue) {
    let list = serde_json::from_str::<RawList<'_>>(raw.get());
    let line = lines.of(raw.get());
    let Some(list) = list.ok().filter(|list| list.kind.ends_with("List")) else {
        return match serde_json::from_str::<Value>(raw.get()) {
            Ok(value) => input.add_object(file, line, value),
            Err(error) => input.add_failure(file, line + error.line() - 1, plain(&error)),
        };
    };
    let inherited = document::kind_of_items(&list.kind, &list.api_version);
    for item in list.items {
        let line = lines.of(item.get());
        match serde_json::from_str(item.get()) {
            Ok(value) => input.add_object(file, line, document::with_kind(value, &inherited)),
            Err(error) => input.add_failure(file, line + error.line() - 1, plain(&error)),
        }
    }
}

/// Finds the lines of parts of a text, which are asked for in its order.
struct LineIndex<'a> {
    text: &'a str,
    offset: usize,
    line: usize,
}

impl LineIndex<'_> {
    /// Raw values borrow from the text, so that their address is their place.
    fn of(&mut self, part: &str) -> usize {
        let offset = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        if let Some(between) = self.text.as_bytes().get(self.offset..offset) {
            self.line += between.iter().filter(|&&c| c == b'\n').count();
            self.offset = offset;
        }
        self.line
    }
}

/// The message without its place, which is given by the file's line.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(message, _)| message.to_owned())
}
