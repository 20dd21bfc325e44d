//! Reading of JSON objects that are not decoded as a whole, with the path of what is wrong.

use serde_json::{Map, Value};

/// A field of an object and its path.
#[derive(Clone, Debug)]
pub struct FieldReader<'a> {
    path: String,
    value: &'a Value,
}

impl<'a> FieldReader<'a> {
    /// The object itself.
    pub fn root(value: &'a Value) -> Self {
        Self { path: String::new(), value }
    }

    /// A field of this object. Absent and `null` are the same.
    pub fn at(&self, name: &str) -> FieldReader<'a> {
        let dot = if self.path.is_empty() { "" } else { "." };
        FieldReader { path: format!("{}{dot}{name}", self.path), value: &self.value[name] }
    }

    /// The path, such as `spec.changes[0]`.
    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn value(&self) -> &'a Value {
        self.value
    }

    pub fn is_absent(&self) -> bool {
        self.value.is_null()
    }

    /// The integer, `None` when absent.
    pub fn int(&self) -> Result<Option<i64>, String> {
        match self.value {
            Value::Null => Ok(None),
            value => value.as_i64().map(Some).ok_or_else(|| self.must_be("an integer")),
        }
    }

    /// The text, empty when absent.
    pub fn text(&self) -> Result<&'a str, String> {
        match self.value {
            Value::Null => Ok(""),
            value => value.as_str().ok_or_else(|| self.must_be("a string")),
        }
    }

    /// The flag, false when absent.
    pub fn flag(&self) -> Result<bool, String> {
        match self.value {
            Value::Null => Ok(false),
            value => value.as_bool().ok_or_else(|| self.must_be("true or false")),
        }
    }

    /// The elements, none when absent.
    pub fn list(&self) -> Result<Vec<FieldReader<'a>>, String> {
        let items: &[Value] = match self.value {
            Value::Null => &[],
            Value::Array(items) => items,
            _ => return Err(self.must_be("a list")),
        };
        let field = |(index, value)| FieldReader { path: format!("{}[{index}]", self.path), value };
        Ok(items.iter().enumerate().map(field).collect())
    }

    /// The object, `None` when absent.
    pub fn object(&self) -> Result<Option<&'a Map<String, Value>>, String> {
        match self.value {
            Value::Null => Ok(None),
            Value::Object(fields) => Ok(Some(fields)),
            _ => Err(self.must_be("an object")),
        }
    }

    /// A message about this field.
    pub fn problem(&self, message: &str) -> String {
        format!("{}: {message}", self.path)
    }

    fn must_be(&self, wanted: &str) -> String {
        self.problem(&format!("must be {wanted}: {}", self.value))
    }
}

/// The text at a JSON pointer, empty when there is none.
pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// `namespace/name`, or the name alone.
pub fn name_of(value: &Value) -> String {
    match (text(value, "/metadata/namespace"), text(value, "/metadata/name")) {
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

/// `job default/train`, for messages.
pub fn title_of(value: &Value) -> String {
    format!("{} {}", text(value, "/kind").to_lowercase(), name_of(value))
}

/// The object at a path of plain fields, made where it is absent; `None` where something else is
/// in the way.
pub fn object_mut<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    let mut value = value;
    for field in path {
        let fields = value.as_object_mut()?;
        value = fields.entry(*field).or_insert(Value::Null);
        if value.is_null() {
            *value = Value::Object(Map::new());
        }
    }
    value.as_object_mut()
}

/// Sets a field that is absent, `null` or an empty text.
pub fn set_default(value: &mut Value, path: &[&str], field: &str, to: impl Into<Value>) {
    if let Some(fields) = object_mut(value, path) {
        let old = fields.entry(field).or_insert(Value::Null);
        if old.is_null() || old.as_str() == Some("") {
            *old = to.into();
        }
    }
}
