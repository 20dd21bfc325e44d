//! Free arguments of a plugin or an action, and their typed reads (core.md 2.4, actions.md A3).
//!
//! A value of the wrong type is reported and leaves the default; an absent key leaves it silently.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::Warning;

/// Name to value, in the order of the names. Equal when the values are, wherever they stand.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// Path of the map in the file, for warnings.
    field: String,
    entries: BTreeMap<String, ArgumentEntry>,
}

#[derive(Clone, Debug)]
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

    /// A YAML integer; neither `"10"` nor `10.0`.
    pub fn int(&self, key: &str, default: i64, warnings: &mut Vec<Warning>) -> i64 {
        self.read(key, default, "an integer", warnings, Value::as_i64)
    }

    /// A YAML integer, or a string with a decimal one (A3).
    pub fn int_lenient(&self, key: &str, default: i64, warnings: &mut Vec<Warning>) -> i64 {
        self.read(key, default, "an integer", warnings, |value| match value {
            Value::String(text) => text.trim().parse().ok(),
            other => other.as_i64(),
        })
    }

    /// A YAML float or integer; finite.
    pub fn float(&self, key: &str, default: f64, warnings: &mut Vec<Warning>) -> f64 {
        self.read(key, default, "a number", warnings, Value::as_f64)
    }

    /// A YAML boolean, or one of the strings `1 t T TRUE true True 0 f F FALSE false False`.
    pub fn bool(&self, key: &str, default: bool, warnings: &mut Vec<Warning>) -> bool {
        self.read(key, default, "true or false", warnings, |value| match value {
            Value::Bool(value) => Some(*value),
            Value::String(text) => bool_of(text),
            _ => None,
        })
    }

    /// A YAML string, not a number.
    pub fn string(&self, key: &str, default: &str, warnings: &mut Vec<Warning>) -> String {
        let default = default.to_owned();
        self.read(key, default, "a string", warnings, |value| value.as_str().map(str::to_owned))
    }

    /// A number of a structured argument, whose shape was checked at load; a fraction is cut off.
    pub fn structured_int(&self, key: &str, default: i64) -> i64 {
        self.get(key).and_then(whole).unwrap_or(default)
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

    fn read<T: ToString>(
        &self,
        key: &str,
        default: T,
        expected: &str,
        warnings: &mut Vec<Warning>,
        convert: impl Fn(&Value) -> Option<T>,
    ) -> T {
        let Some(value) = self.get(key) else {
            return default;
        };
        if let Some(converted) = convert(value) {
            return converted;
        }
        let kept = default.to_string();
        let kept = if kept.is_empty() { "\"\"" } else { kept.as_str() };
        let message = format!("expected {expected}, found {}", shown(value));
        let write = meant(value, |meant| !meant.is_string() && convert(meant).is_some());
        let write = write.unwrap_or_else(|| format!("write {expected}"));
        let remedy = format!("{write}; until then the default {kept} is in force");
        warnings.push(self.warning(key, &message, &remedy));
        default
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
fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().map(|number| number as i64))
}

/// The texts that Go's `strconv.ParseBool` takes.
fn bool_of(text: &str) -> Option<bool> {
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
            let result = read(value.clone(), |a, w| a.int("k", 7, w));
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
            let result = read(value.clone(), |a, w| a.int_lenient("k", 7, w));
            assert_eq!(result, (expected, warnings), "{value}");
        }
    }

    #[test]
    fn core_10_floats_take_integers() {
        assert_eq!(read(json!(15), |a, w| a.float("k", 1.2, w)), (15.0, 0));
        assert_eq!(read(json!(0.5), |a, w| a.float("k", 1.2, w)), (0.5, 0));
        assert_eq!(read(json!("1.5"), |a, w| a.float("k", 1.2, w)), (1.2, 1));
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
            let result = read(value.clone(), |a, w| a.bool("k", true, w));
            assert_eq!(result, (expected, warnings), "{value}");
        }
    }

    #[test]
    fn core_10_strings_take_no_numbers() {
        assert_eq!(read(json!(0), |a, w| a.string("k", "d", w)), ("d".to_owned(), 1));
        assert_eq!(read(json!("v"), |a, w| a.string("k", "d", w)), ("v".to_owned(), 0));
    }

    #[test]
    fn an_absent_key_is_silent() {
        let mut warnings = Vec::new();
        assert_eq!(Arguments::default().int("k", 7, &mut warnings), 7);
        assert!(warnings.is_empty());
    }

    #[test]
    fn the_remedy_shows_the_value_that_was_meant() {
        let remedy = |value: Value, read: fn(&Arguments, &mut Vec<Warning>)| {
            let arguments: Arguments = [("k", value)].into_iter().collect();
            let mut warnings = Vec::new();
            read(&arguments, &mut warnings);
            let text = warnings.pop().map(|warning| warning.remedy).unwrap_or_default();
            text.split(';').next().unwrap_or_default().to_owned()
        };
        let int = |a: &Arguments, w: &mut Vec<Warning>| {
            a.int("k", 7, w);
        };
        let float = |a: &Arguments, w: &mut Vec<Warning>| {
            a.float("k", 1.5, w);
        };
        let bool = |a: &Arguments, w: &mut Vec<Warning>| {
            a.bool("k", true, w);
        };
        let string = |a: &Arguments, w: &mut Vec<Warning>| {
            a.string("k", "", w);
        };
        for (value, read, expected) in [
            (json!("10"), int as fn(&Arguments, &mut Vec<Warning>), "write 10 without quotes"),
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
        arguments.int("weight", 1, &mut warnings);
        let text = warnings[0].to_string();
        assert!(text.starts_with("weight: expected an integer, found \"xxx"), "{text}");
        assert!(text.contains("...\nhint: write an integer; until then the default 1 is in force"));
        assert!(text.len() < 250, "{text}");
    }
}
