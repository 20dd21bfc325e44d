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
    let mut places = PlaceIndex { text, offset: 0, line: 1, line_start: 0 };
    for value in Deserializer::from_str(text).into_iter::<&RawValue>() {
        match value {
            Ok(raw) => add(input, file, &mut places, raw),
            Err(error) => {
                let whole = Place { line: 1, columns_before: 0 };
                input.add_failure(file, whole.of(&error), plain(&error));
            }
        }
    }
}

fn add(input: &mut Input, file: &Arc<str>, places: &mut PlaceIndex<'_>, raw: &RawValue) {
    let list = serde_json::from_str::<RawList<'_>>(raw.get());
    let place = places.of(raw.get());
    let Some(list) = list.ok().filter(|list| list.kind.ends_with("List")) else {
        return match serde_json::from_str::<Value>(raw.get()) {
            Ok(value) => input.add_object(file, place.line, value),
            Err(error) => input.add_failure(file, place.of(&error), plain(&error)),
        };
    };
    let inherited = document::kind_of_items(&list.kind, &list.api_version);
    for item in list.items {
        let place = places.of(item.get());
        match serde_json::from_str(item.get()) {
            Ok(value) => input.add_object(file, place.line, document::with_kind(value, &inherited)),
            Err(error) => input.add_failure(file, place.of(&error), plain(&error)),
        }
    }
}

/// The begin of a part of a text.
#[derive(Clone, Copy)]
struct Place {
    /// From 1.
    line: usize,
    /// Columns before the part on its first line.
    columns_before: usize,
}

impl Place {
    /// Returns line and column of an error in the part. The column is `None` if the parser does not say where it is.
    fn of(self, error: &serde_json::Error) -> (usize, Option<usize>) {
        let before = if error.line() <= 1 { self.columns_before } else { 0 };
        // At the end of a line the column is that of the line break, which is 0.
        let column = (0 < error.line()).then(|| error.column().max(1) + before);
        (self.line + error.line().max(1) - 1, column)
    }
}

/// Finds the places of parts of a text, which are asked for in its order.
struct PlaceIndex<'a> {
    text: &'a str,
    offset: usize,
    line: usize,
    /// Offset of the begin of this line.
    line_start: usize,
}

impl PlaceIndex<'_> {
    /// Raw values borrow from the text, so that their address is their place.
    fn of(&mut self, part: &str) -> Place {
        let offset = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        if let Some(between) = self.text.as_bytes().get(self.offset..offset) {
            self.line += between.iter().filter(|&&c| c == b'\n').count();
            if let Some(last) = between.iter().rposition(|&c| c == b'\n') {
                self.line_start = self.offset + last + 1;
            }
            self.offset = offset;
        }
        Place { line: self.line, columns_before: self.offset - self.line_start }
    }
}

/// The message without its place, which is given by the file's line.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(message, _)| message.to_owned())
}
