//! The types of arguments: how each is read, and how the page and the schema show it (core.md 2.4).

use serde_json::{Value, json};

use crate::argument::{Argument, ArgumentReader, ArgumentType, DeclaredArgument, WrongArgument};
use crate::arguments::{meant, shown};
use crate::spelling::did_you_mean;

/// One of a few words, of which the first is the default.
#[derive(Clone, Copy, Debug)]
pub struct OneOf {
    pub words: &'static [&'static str],
    /// True if another value makes the file invalid. Otherwise it gives a warning.
    pub is_strict: bool,
}

/// One of two words, or both in this order, which is the default. Another list makes the file
/// invalid.
#[derive(Clone, Copy, Debug)]
pub struct OneOrBoth(pub [&'static str; 2]);

/// A duration. The reader brings the parser, which returns microseconds.
#[derive(Clone, Copy, Debug)]
pub struct DurationRule {
    pub parse: fn(&Value) -> Option<i64>,
    /// The warning for a value that the parser refuses; `{value}` stands for it.
    pub problem: &'static str,
    pub remedy: &'static str,
}

/// A map with fixed keys (plugins-nodes.md 12.1). A value that is no map, and another key, give a
/// warning.
#[derive(Clone, Copy, Debug)]
pub struct Section(pub &'static [&'static dyn DeclaredArgument]);

/// A value that nothing checks: its type in words, and the names of its JSON types.
#[derive(Clone, Copy, Debug)]
pub struct FreeForm(pub &'static str, pub &'static [&'static str]);

impl<'a> ArgumentReader<'a> {
    pub(crate) fn value(&self) -> Option<&'a Value> {
        self.from.get(self.key)
    }

    fn warn(&mut self, message: &str, remedy: &str) {
        self.warnings.push(self.from.warning(self.key, message, remedy));
    }

    fn refuse(&self, problem: &str, hint: String) -> WrongArgument {
        let problem = format!("plugin \"{}\": {problem}", self.owner);
        WrongArgument { field: self.from.field_of(self.key), problem, hint: Some(hint) }
    }

    /// A value of another type gives a warning; an absent key gives the default silently.
    fn typed<T: ToString>(
        &mut self,
        default: T,
        expected: &str,
        convert: impl Fn(&Value) -> Option<T>,
    ) -> T {
        let Some(value) = self.value() else { return default };
        if let Some(converted) = convert(value) {
            return converted;
        }
        let kept = default.to_string();
        let kept = if kept.is_empty() { "\"\"" } else { kept.as_str() };
        let message = format!("expected {expected}, found {}", shown(value));
        let write = meant(value, |meant| !meant.is_string() && convert(meant).is_some());
        let write = write.unwrap_or_else(|| format!("write {expected}"));
        self.warn(&message, &format!("{write}; until then the default {kept} is in force"));
        default
    }

    /// A number beyond a bound of the argument gives a warning and the default.
    fn bounded<T: PartialOrd + Copy + ToString>(
        &mut self,
        argument: &Argument<T>,
        value: T,
        remedy: &str,
    ) -> T {
        if let Some(most) = argument.most.filter(|most| *most < value) {
            let (most, default) = (most.to_string(), argument.default.to_string());
            let range = match argument.least {
                Some(least) => format!("{} to {most}", least.to_string()),
                None => format!("{most} or less"),
            };
            let remedy = format!("write {range}; until then the default {default} is in force");
            self.warn(&format!("{} is more than {most}", value.to_string()), &remedy);
            return argument.default;
        }
        let Some(least) = argument.least.filter(|least| value < *least) else { return value };
        let (least, default) = (least.to_string(), argument.default.to_string());
        let remedy = argument.remedy.unwrap_or(remedy);
        let remedy = remedy.replace("{least}", &least).replace("{default}", &default);
        self.warn(&format!("{} is less than {least}", value.to_string()), &remedy);
        argument.default
    }
}

/// A YAML integer; neither `"10"` nor `10.0`.
impl ArgumentType for i64 {
    type Value = i64;

    fn read(argument: &Argument<Self>, reader: &mut ArgumentReader<'_>) -> i64 {
        let value = reader.typed(argument.default, "an integer", |value| match value {
            Value::String(text) if argument.takes_decimal_text => text.trim().parse().ok(),
            other => other.as_i64(),
        });
        let remedy = "write {least} or more; until then the default {default} is in force";
        reader.bounded(argument, value, remedy)
    }

    fn describe(argument: &Argument<Self>) -> (String, Value) {
        let schema = match argument.takes_decimal_text {
            true => json!({"type": ["integer", "string"], "pattern": "^[+-]?[0-9]+$"}),
            false => json!({"type": "integer"}),
        };
        with_bounds("int", schema, argument)
    }
}

/// A YAML float or integer; finite.
impl ArgumentType for f64 {
    type Value = f64;

    fn read(argument: &Argument<Self>, reader: &mut ArgumentReader<'_>) -> f64 {
        let value = reader.typed(argument.default, "a number", Value::as_f64);
        let remedy =
            "write a number of at least {least}; until then the default {default} is in force";
        reader.bounded(argument, value, remedy)
    }

    fn describe(argument: &Argument<Self>) -> (String, Value) {
        with_bounds("float", json!({"type": "number"}), argument)
    }
}

fn with_bounds<T: Copy + ToString + Into<Value>>(
    name: &str,
    mut schema: Value,
    argument: &Argument<T>,
) -> (String, Value) {
    if let Some(least) = argument.least {
        schema["minimum"] = least.into();
    }
    if let Some(most) = argument.most {
        schema["maximum"] = most.into();
    }
    let bounds = [argument.least, argument.most].map(|bound| bound.map(|it| it.to_string()));
    let text = match bounds {
        [Some(least), Some(most)] => format!("{name}, {least} to {most}"),
        [Some(least), None] => format!("{name}, {least} or more"),
        [None, Some(most)] => format!("{name}, {most} or less"),
        [None, None] => name.to_owned(),
    };
    (text, schema)
}

/// A YAML boolean, or one of the strings `1 t T TRUE true True 0 f F FALSE false False`.
impl ArgumentType for bool {
    type Value = bool;
    const UNUSED: (&'static str, &'static str) = ("set it to false", "`true` refuses the file");

    fn read(argument: &Argument<Self>, reader: &mut ArgumentReader<'_>) -> bool {
        let keys = argument.alias.into_iter().chain([reader.key]);
        keys.fold(argument.default, |default, key| {
            let ArgumentReader { owner, from, warnings, .. } = reader;
            ArgumentReader { owner, key, from, warnings }.typed(default, "true or false", bool_of)
        })
    }

    fn describe(_argument: &Argument<Self>) -> (String, Value) {
        ("bool".to_owned(), json!({"$ref": "#/$defs/bool"}))
    }

    fn is_used(value: &Value) -> bool {
        bool_of(value) == Some(true)
    }
}

/// Reads a YAML boolean, or a text that Go's `strconv.ParseBool` takes.
fn bool_of(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::String(text) => crate::arguments::bool_of(text),
        _ => None,
    }
}

/// A YAML string, not a number.
impl ArgumentType for &'static str {
    type Value = String;

    fn read(argument: &Argument<Self>, reader: &mut ArgumentReader<'_>) -> String {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        reader.typed(argument.default.to_owned(), "a string", text)
    }

    fn describe(_argument: &Argument<Self>) -> (String, Value) {
        ("string".to_owned(), json!({"type": "string"}))
    }
}

impl ArgumentType for OneOf {
    type Value = &'static str;

    fn read(argument: &Argument<Self>, reader: &mut ArgumentReader<'_>) -> &'static str {
        let OneOf { words, is_strict } = argument.default;
        let default = words[0];
        let word = |value: &str| words.iter().find(|word| **word == value).copied();
        let text = match reader.value() {
            // A strict value was checked when the file was loaded.
            Some(value) if is_strict => return value.as_str().and_then(word).unwrap_or(default),
            // A plain `off` is the boolean false in YAML 1.1 and means the word all the same.
            Some(Value::Bool(false)) if word("off").is_some() => "off".to_owned(),
            _ => reader
                .typed(default.to_owned(), "a string", |value| value.as_str().map(str::to_owned)),
        };
        word(&text).unwrap_or_else(|| {
            let known = words.join(", ");
            let remedy = format!("write one of {known}; until then {default} is in force");
            reader.warn(&format!("unknown value {text}"), &remedy);
            default
        })
    }

    fn describe(argument: &Argument<Self>) -> (String, Value) {
        let words = argument.default.words;
        let off = words.contains(&"off").then_some(Value::Bool(false));
        let schema: Vec<Value> = words.iter().map(|word| Value::from(*word)).chain(off).collect();
        (format!("`{}`", words.join("`, `")), json!({"enum": schema}))
    }

    fn remark(&self) -> &'static str {
        if self.is_strict { "; strict" } else { "" }
    }

    fn check(&self, value: &Value, reader: &mut ArgumentReader<'_>) -> Result<(), WrongArgument> {
        let OneOf { words, is_strict } = *self;
        if !is_strict || value.as_str().is_some_and(|text| words.contains(&text)) {
            return Ok(());
        }
        let text = value.as_str().map_or_else(|| shown(value), str::to_owned);
        let (key, words) = (reader.key, words.join(", "));
        let problem = format!("argument {key}: \"{text}\" is not one of {words}");
        Err(reader.refuse(&problem, format!("write one of {words}")))
    }
}

impl ArgumentType for OneOrBoth {
    type Value = Vec<String>;

    fn read(argument: &Argument<Self>, reader: &mut ArgumentReader<'_>) -> Vec<String> {
        let both = || argument.default.0.map(str::to_owned).to_vec();
        reader.value().and_then(names).unwrap_or_else(both)
    }

    fn describe(argument: &Argument<Self>) -> (String, Value) {
        let [first, second] = argument.default.0;
        let text = format!("list or string: `{first}`, `{second}`, or both in this order");
        (text, json!({"type": ["array", "string"], "items": {"type": "string"}}))
    }

    fn remark(&self) -> &'static str {
        "; strict"
    }

    fn check(&self, value: &Value, reader: &mut ArgumentReader<'_>) -> Result<(), WrongArgument> {
        let (names, both @ [first, second]) = (names(value), self.0);
        let lists = [&both[..1], &both[1..], &both];
        if names.as_ref().is_some_and(|names| lists.iter().any(|list| *list == names.as_slice())) {
            return Ok(());
        }
        let list = names.map_or_else(|| shown(value), |names| format!("[{}]", names.join(", ")));
        let hint = format!("write [{first}], [{second}] or both in this order");
        Err(reader.refuse(&format!("{}: {list} is not supported", reader.key), hint))
    }
}

impl ArgumentType for DurationRule {
    /// Microseconds. `None` if the key is absent or its value is refused.
    type Value = Option<i64>;

    fn read(argument: &Argument<Self>, reader: &mut ArgumentReader<'_>) -> Option<i64> {
        let DurationRule { parse, problem, remedy } = argument.default;
        let value = reader.value()?;
        let micros = parse(value);
        if micros.is_none() {
            let message = problem.replace("{value}", &value.to_string());
            reader.warn(&message, remedy);
        }
        micros
    }

    fn describe(_argument: &Argument<Self>) -> (String, Value) {
        ("duration".to_owned(), json!({"type": "string"}))
    }
}

impl ArgumentType for Section {
    type Value = Value;

    fn read(_argument: &Argument<Self>, reader: &mut ArgumentReader<'_>) -> Value {
        reader.value().cloned().unwrap_or_default()
    }

    fn describe(argument: &Argument<Self>) -> (String, Value) {
        let mut schema = json!({"type": "object", "additionalProperties": false});
        for part in argument.default.0 {
            schema["properties"][part.key()] = part.describe().1;
        }
        ("map".to_owned(), schema)
    }

    fn check(&self, value: &Value, reader: &mut ArgumentReader<'_>) -> Result<(), WrongArgument> {
        let keys: Vec<&str> = self.0.iter().map(|part| part.key()).collect();
        let Value::Object(map) = value else {
            let message = format!("expected a map, found {}, it is ignored", shown(value));
            let remedy = format!("write a map, as in {}: {{{}: ...}}", reader.key, keys[0]);
            reader.warn(&message, &remedy);
            return Ok(());
        };
        for key in map.keys().filter(|key| !keys.contains(&key.as_str())) {
            reader.warn(&format!("unknown key {key}, it is ignored"), &did_you_mean(key, &keys));
        }
        Ok(())
    }

    fn parts(&self) -> &'static [&'static dyn DeclaredArgument] {
        self.0
    }
}

impl ArgumentType for FreeForm {
    type Value = Value;

    fn read(_argument: &Argument<Self>, reader: &mut ArgumentReader<'_>) -> Value {
        reader.value().cloned().unwrap_or_default()
    }

    fn describe(argument: &Argument<Self>) -> (String, Value) {
        let FreeForm(text, types) = argument.default;
        let schema = if let [one] = types { json!({"type": one}) } else { json!({"type": types}) };
        (text.to_owned(), schema)
    }
}

/// A list of strings, or one comma-separated string (plugins-jobs-queues.md D35). `None`: neither.
fn names(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        Value::String(text) => {
            let names = text.split(',').map(|name| name.trim().to_owned());
            Some(names.filter(|name| !name.is_empty()).collect())
        }
        _ => None,
    }
}
