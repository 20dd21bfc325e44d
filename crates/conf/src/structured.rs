//! Shapes of the structured arguments, checked at load (core.md 2.4, C-09): a wrong shape makes
//! the file invalid, where Volcano would end the process inside a cycle.

use serde_json::{Map, Value, json};

use crate::argument::{Argument, ArgumentReader, ArgumentType, WrongArgument};
use crate::arguments::{meant, shown, whole};
use crate::error::Warning;
use crate::spelling::did_you_mean;

/// What a structured argument must look like. Nothing (`null`) counts as absent everywhere.
#[derive(Clone, Copy, Debug)]
pub enum ArgumentShape {
    /// A number; a fraction is cut off.
    Int,
    Number,
    Bool,
    Text,
    List(&'static ArgumentShape),
    /// Any keys.
    MapOf(&'static ArgumentShape),
    /// These keys without regard to case; others are ignored with a warning.
    Record(&'static [(&'static str, ArgumentShape)]),
    /// A list of strings, or one comma-separated string (plugins-jobs-queues.md D35).
    Names,
}

/// A part of a structured argument, whose shape was checked when the file was loaded. A part that
/// is absent or of another type reads as nothing.
#[derive(Clone, Copy, Debug)]
pub struct StructuredPart<'a>(Option<&'a Value>);

impl<'a> StructuredPart<'a> {
    pub(crate) fn new(value: Option<&'a Value>) -> Self {
        Self(value)
    }

    /// Returns the entry of a record. Its key is compared without regard to case.
    pub fn field(self, name: &str) -> Self {
        let mut entries = self.0.and_then(Value::as_object).into_iter().flatten();
        Self(entries.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value))
    }

    /// Returns the entries of a map by key.
    pub fn entries(self) -> impl Iterator<Item = (&'a str, Self)> {
        let entries = self.0.and_then(Value::as_object).into_iter().flatten();
        entries.map(|(key, value)| (key.as_str(), Self(Some(value))))
    }

    /// Returns the items of a list.
    pub fn items(self) -> impl Iterator<Item = Self> {
        let items = self.0.and_then(Value::as_array).into_iter().flatten();
        items.map(|value| Self(Some(value)))
    }

    /// True if there is such a part, and it is not `null`.
    pub fn is_given(self) -> bool {
        self.0.is_some_and(|value| !value.is_null())
    }

    /// True if the part is a list.
    pub fn is_list(self) -> bool {
        self.0.is_some_and(Value::is_array)
    }

    /// Returns the text, or an empty one.
    pub fn text(self) -> &'a str {
        self.0.and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the integer. A fraction is cut off.
    pub fn int(self) -> Option<i64> {
        self.0.and_then(whole)
    }

    /// Returns the number.
    pub fn number(self) -> Option<f64> {
        self.0.and_then(Value::as_f64)
    }

    /// True if the value is true.
    pub fn is_true(self) -> bool {
        self.0.and_then(Value::as_bool).unwrap_or_default()
    }
}

/// The default of a number whose type is checked when the file is loaded.
#[derive(Clone, Copy, Debug)]
pub struct StructuredInt(pub i64);

impl ArgumentType for StructuredInt {
    type Value = i64;

    fn read(argument: &Argument<Self>, reader: &mut ArgumentReader<'_>) -> i64 {
        reader.value().and_then(whole).unwrap_or(argument.default.0)
    }

    fn describe(_argument: &Argument<Self>) -> (String, Value) {
        ArgumentShape::Int.describe()
    }

    fn remark(&self) -> &'static str {
        "; structured"
    }

    fn check(&self, value: &Value, reader: &mut ArgumentReader<'_>) -> Result<(), WrongArgument> {
        ArgumentShape::Int.check(value, reader)
    }
}

impl ArgumentType for ArgumentShape {
    type Value = Value;

    fn read(_argument: &Argument<Self>, reader: &mut ArgumentReader<'_>) -> Value {
        reader.value().cloned().unwrap_or_default()
    }

    fn describe(argument: &Argument<Self>) -> (String, Value) {
        argument.default.describe()
    }

    fn remark(&self) -> &'static str {
        "; structured"
    }

    fn check(&self, value: &Value, reader: &mut ArgumentReader<'_>) -> Result<(), WrongArgument> {
        let field = reader.from.field_of(reader.key);
        reader.check_shape(self, value, &field)
    }
}

impl ArgumentShape {
    fn describe(&self) -> (String, Value) {
        let word = |text: &str, kind: &str| (text.to_owned(), json!({"type": kind}));
        match self {
            ArgumentShape::Int => word("int", "number"),
            ArgumentShape::Number => word("float", "number"),
            ArgumentShape::Bool => word("bool", "boolean"),
            ArgumentShape::Text => word("string", "string"),
            ArgumentShape::List(of) => {
                let (text, items) = of.describe();
                (format!("list of {text}"), json!({"type": "array", "items": items}))
            }
            ArgumentShape::MapOf(of) => {
                let (text, values) = of.describe();
                let schema = json!({"type": "object", "additionalProperties": values});
                (format!("map of {text}"), schema)
            }
            ArgumentShape::Record(keys) => {
                let names: Vec<&str> = keys.iter().map(|(name, _)| *name).collect();
                let parts = keys.iter().map(|(name, of)| ((*name).to_owned(), of.describe().1));
                let parts: Map<String, Value> = parts.collect();
                let schema = json!({"type": "object", "properties": parts});
                (format!("`{{{}}}`", names.join(", ")), schema)
            }
            ArgumentShape::Names => {
                let schema = json!({"type": ["array", "string"], "items": {"type": "string"}});
                ("list of strings, or one with commas".to_owned(), schema)
            }
        }
    }

    fn refuse(&self, value: &Value, field: &str) -> WrongArgument {
        let expected = match self {
            ArgumentShape::Int | ArgumentShape::Number => "a number",
            ArgumentShape::Bool => "true or false without quotes",
            ArgumentShape::Text => "a string",
            ArgumentShape::List(_) => "a list",
            ArgumentShape::MapOf(_) | ArgumentShape::Record(_) => "a map",
            ArgumentShape::Names => "a list of strings",
        };
        let fits = |meant: &Value| match self {
            ArgumentShape::Int | ArgumentShape::Number => meant.is_number(),
            ArgumentShape::Bool => meant.is_boolean(),
            _ => false,
        };
        WrongArgument {
            field: field.to_owned(),
            problem: format!("expected {expected}, found {}", shown(value)),
            hint: meant(value, fits),
        }
    }
}

impl ArgumentReader<'_> {
    fn check_shape(
        &mut self,
        shape: &ArgumentShape,
        value: &Value,
        field: &str,
    ) -> Result<(), WrongArgument> {
        match (shape, value) {
            (_, Value::Null) => Ok(()),
            (ArgumentShape::Int | ArgumentShape::Number, Value::Number(_)) => Ok(()),
            (ArgumentShape::Bool, Value::Bool(_)) => Ok(()),
            (ArgumentShape::Text | ArgumentShape::Names, Value::String(_)) => Ok(()),
            (ArgumentShape::Names, Value::Array(items)) => {
                self.check_items(&ArgumentShape::Text, items, field)
            }
            (ArgumentShape::List(of), Value::Array(items)) => self.check_items(of, items, field),
            (ArgumentShape::MapOf(of), Value::Object(map)) => {
                map.iter().try_for_each(|(key, value)| {
                    self.check_shape(of, value, &format!("{field}.{key}"))
                })
            }
            (ArgumentShape::Record(keys), Value::Object(map)) => {
                map.iter().try_for_each(|(key, value)| self.check_entry(keys, key, value, field))
            }
            _ => Err(shape.refuse(value, field)),
        }
    }

    fn check_items(
        &mut self,
        of: &ArgumentShape,
        items: &[Value],
        field: &str,
    ) -> Result<(), WrongArgument> {
        let mut numbered = items.iter().enumerate();
        numbered.try_for_each(|(at, item)| self.check_shape(of, item, &format!("{field}[{at}]")))
    }

    fn check_entry(
        &mut self,
        keys: &[(&str, ArgumentShape)],
        key: &str,
        value: &Value,
        field: &str,
    ) -> Result<(), WrongArgument> {
        let field = format!("{field}.{key}");
        if let Some((_, shape)) = keys.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)) {
            return self.check_shape(shape, value, &field);
        }
        let names: Vec<&str> = keys.iter().map(|(name, _)| *name).collect();
        let message = format!("unknown key {key}, it is ignored");
        let line = self.from.line(self.key);
        self.warnings.push(Warning::new(line, field, message, did_you_mean(key, &names)));
        Ok(())
    }
}
