//! The arguments of a plugin or an action as they stand in the file (core.md 2.4).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Warning;
use crate::structured::StructuredPart;

/// Name to value, in the order of the names. Equal when the values are, wherever they stand.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Arguments {
    /// Path of the map in the file, for warnings.
    field: String,
    entries: BTreeMap<String, ArgumentEntry>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ArgumentEntry {
    value: Value,
    line: Option<usize>,
}

impl Arguments {
    /// No arguments, read from the map at this path of the file.
    pub(crate) fn at(field: String) -> Arguments {
        Arguments { field, entries: BTreeMap::new() }
    }

    pub(crate) fn insert(&mut self, key: String, value: Value, line: Option<usize>) {
        self.entries.insert(key, ArgumentEntry { value, line });
    }

    /// Sets a value that does not come from the file.
    pub fn set(&mut self, key: &str, value: Value) {
        self.insert(key.to_owned(), value, None);
    }

    /// The value as written; structured arguments are read with this.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, entry)| (key.as_str(), &entry.value))
    }

    /// Names and values to be changed, by name.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Value)> {
        self.entries.iter_mut().map(|(key, entry)| (key.as_str(), &mut entry.value))
    }

    /// The structured list of maps from text to text under a key; `None` where it is absent or of
    /// another shape.
    pub fn structured_text_maps(&self, key: &str) -> Option<Vec<BTreeMap<String, String>>> {
        let text =
            |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        let map = |item: &Value| item.as_object()?.iter().map(text).collect();
        self.get(key)?.as_array()?.iter().map(map).collect()
    }

    /// A structured list of records with two numbers each; keys without regard to case, absent
    /// ones are 0. `None`: absent.
    pub fn structured_pairs(&self, key: &str, fields: [&str; 2]) -> Option<Vec<(i64, i64)>> {
        let number = |record: &Value, field: &str| {
            let mut entries = record.as_object().into_iter().flatten();
            let found = entries.find(|(key, _)| key.eq_ignore_ascii_case(field));
            found.and_then(|(_, value)| whole(value)).unwrap_or(0)
        };
        let records = self.get(key)?.as_array()?;
        let pair = |record| (number(record, fields[0]), number(record, fields[1]));
        Some(records.iter().map(pair).collect())
    }

    /// The entries of a map under a key, for arguments with a [`crate::Section`]. Empty where the key
    /// is absent or no map. A warning about an entry names the line of the key.
    pub fn section(&self, key: &str) -> Arguments {
        let mut section = Arguments::at(self.field_of(key));
        let entries = self.get(key).and_then(Value::as_object).into_iter().flatten();
        for (name, value) in entries {
            section.insert(name.clone(), value.clone(), self.line(key));
        }
        section
    }

    /// The value of a structured argument, to be read part by part.
    pub fn structured(&self, key: &str) -> StructuredPart<'_> {
        StructuredPart::new(self.get(key))
    }

    /// A warning about the value of a key, with its place in the file; for a reader that checks
    /// bounds or meaning beyond the type.
    pub fn warning(&self, key: &str, message: &str, remedy: &str) -> Warning {
        let line = self.line(key);
        Warning::new(line, self.field_of(key), message, remedy)
    }

    /// Path of the map in the file.
    pub(crate) fn path(&self) -> &str {
        &self.field
    }

    /// Path of a key in the file.
    pub(crate) fn field_of(&self, key: &str) -> String {
        match self.field.is_empty() {
            true => key.to_owned(),
            false => format!("{}.{key}", self.field),
        }
    }

    pub(crate) fn line(&self, key: &str) -> Option<usize> {
        self.entries.get(key).and_then(|entry| entry.line)
    }
}

impl PartialEq for Arguments {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

/// Arguments that come from no file, for embedding binaries and tests.
impl<K: Into<String>> FromIterator<(K, Value)> for Arguments {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(pairs: I) -> Self {
        let mut arguments = Arguments::default();
        for (key, value) in pairs {
            arguments.insert(key.into(), value, None);
        }
        arguments
    }
}

/// An integer, or a fraction cut off.
pub(crate) fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().map(|number| number as i64))
}

/// The texts that Go's `strconv.ParseBool` takes.
pub(crate) fn bool_of(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// The boolean that a text means: Go's words, and those of YAML 1.1.
pub(crate) fn meant_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "y" | "on" => Some(true),
        "no" | "n" | "off" => Some(false),
        lower => bool_of(lower),
    }
}

/// What to write in place of a value of the wrong type, as in `write 10 without quotes`. `None`:
/// nothing that `fits` is meant by it.
pub(crate) fn meant(value: &Value, fits: impl Fn(&Value) -> bool) -> Option<String> {
    let whole_number = |number: f64| {
        let is_whole = number.fract() == 0.0 && number.abs() < 1e15;
        is_whole.then(|| Value::from(number as i64))
    };
    let number = match value {
        Value::String(text) => text.trim().parse::<f64>().ok().filter(|number| number.is_finite()),
        other => other.as_f64(),
    };
    let truth = match value {
        Value::String(text) => meant_bool(text.trim()),
        other => other.as_f64().and_then(|number| {
            if number == 0.0 { Some(false) } else { (number == 1.0).then_some(true) }
        }),
    };
    let candidates =
        [number.and_then(whole_number), number.map(Value::from), truth.map(Value::from)];
    let found = candidates.into_iter().flatten().find(|candidate| fits(candidate))?;
    let quotes = if value.is_string() { " without quotes" } else { "" };
    Some(format!("write {found}{quotes}"))
}

/// A value in a message, cut to a readable length.
pub(crate) fn shown(value: &Value) -> String {
    const LONGEST: usize = 80;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::argument::Argument;

    const INT: Argument<i64> = Argument::new("k", 7, "");
    const FLOAT: Argument<f64> = Argument::new("k", 1.2, "");
    const BOOL: Argument<bool> = Argument::new("k", true, "");
    const TEXT: Argument<&str> = Argument::new("k", "d", "");

    type Reader = fn(&Arguments, &mut Vec<Warning>);

    /// Reads key `k` and returns the value with the number of warnings.
    fn read<T>(value: Value, reader: impl Fn(&Arguments, &mut Vec<Warning>) -> T) -> (T, usize) {
        let arguments: Arguments = [("k", value)].into_iter().collect();
        let mut warnings = Vec::new();
        let result = reader(&arguments, &mut warnings);
        (result, warnings.len())
    }

    #[test]
    fn core_10_ints() {
        let cases = [
            (json!(15), 15, 0),
            (json!("15"), 7, 1),
            (json!(15.0), 7, 1),
            (json!(true), 7, 1),
            (json!(null), 7, 1),
            (json!(u64::MAX), 7, 1),
            (json!(-3), -3, 0),
        ];
        for (value, expected, warnings) in cases {
            let result = read(value.clone(), |a, w| INT.read(a, w));
            assert_eq!(result, (expected, warnings), "{value}");
        }
    }

    #[test]
    fn decimal_strings_are_lenient_ints() {
        let cases = [
            (json!("16"), 16, 0),
            (json!(" -1 "), -1, 0),
            (json!(16), 16, 0),
            (json!("x"), 7, 1),
            (json!(1.5), 7, 1),
            (json!("99999999999999999999"), 7, 1),
        ];
        for (value, expected, warnings) in cases {
            let result = read(value.clone(), |a, w| INT.or_decimal_text().read(a, w));
            assert_eq!(result, (expected, warnings), "{value}");
        }
    }

    #[test]
    fn core_10_floats_take_integers() {
        assert_eq!(read(json!(15), |a, w| FLOAT.read(a, w)), (15.0, 0));
        assert_eq!(read(json!(0.5), |a, w| FLOAT.read(a, w)), (0.5, 0));
        assert_eq!(read(json!("1.5"), |a, w| FLOAT.read(a, w)), (1.2, 1));
    }

    #[test]
    fn core_10_bools_take_the_strings_of_go() {
        for (value, expected, warnings) in [
            (json!("false"), false, 0),
            (json!("t"), true, 0),
            (json!("True"), true, 0),
            (json!("x"), true, 1),
            (json!("yes"), true, 1),
            (json!(1), true, 1),
            (json!(false), false, 0),
        ] {
            let result = read(value.clone(), |a, w| BOOL.read(a, w));
            assert_eq!(result, (expected, warnings), "{value}");
        }
    }

    #[test]
    fn core_10_strings_take_no_numbers() {
        assert_eq!(read(json!(0), |a, w| TEXT.read(a, w)), ("d".to_owned(), 1));
        assert_eq!(read(json!("v"), |a, w| TEXT.read(a, w)), ("v".to_owned(), 0));
    }

    #[test]
    fn an_absent_key_is_silent() {
        let mut warnings = Vec::new();
        assert_eq!(INT.read(&Arguments::default(), &mut warnings), 7);
        assert!(warnings.is_empty());
    }

    #[test]
    fn the_remedy_shows_the_value_that_was_meant() {
        let remedy = |value: Value, read: Reader| {
            let arguments: Arguments = [("k", value)].into_iter().collect();
            let mut warnings = Vec::new();
            read(&arguments, &mut warnings);
            let text = warnings.pop().map(|warning| warning.remedy).unwrap_or_default();
            text.split(';').next().unwrap_or_default().to_owned()
        };
        let int: Reader = |a, w| {
            INT.read(a, w);
        };
        let float: Reader = |a, w| {
            FLOAT.read(a, w);
        };
        let bool: Reader = |a, w| {
            BOOL.read(a, w);
        };
        let string: Reader = |a, w| {
            TEXT.read(a, w);
        };
        for (value, read, expected) in [
            (json!("10"), int, "write 10 without quotes"),
            (json!("10.0"), int, "write 10 without quotes"),
            (json!(10.0), int, "write 10"),
            (json!(1.5), int, "write an integer"),
            (json!("ten"), int, "write an integer"),
            (json!(true), int, "write an integer"),
            (json!("1.5"), float, "write 1.5 without quotes"),
            (json!("inf"), float, "write a number"),
            (json!("yes"), bool, "write true without quotes"),
            (json!("OFF"), bool, "write false without quotes"),
            (json!(0), bool, "write false"),
            (json!(2), bool, "write true or false"),
            // A number alone is no duration, so nobody can tell what was meant.
            (json!(5), string, "write a string"),
        ] {
            assert_eq!(remedy(value.clone(), read), expected, "{value}");
        }
    }

    #[test]
    fn the_warning_names_key_value_and_default() {
        let arguments: Arguments = [("weight", json!("x".repeat(200)))].into_iter().collect();
        let mut warnings = Vec::new();
        Argument::new("weight", 1, "").read(&arguments, &mut warnings);
        let text = warnings[0].to_string();
        assert!(text.starts_with("weight: expected an integer, found \"xxx"), "{text}");
        assert!(text.contains("...\nhint: write an integer; until then the default 1 is in force"));
        assert!(text.len() < 250, "{text}");
    }
}
