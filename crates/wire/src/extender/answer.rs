//! Answers of the service of `extender`. As in Volcano, unknown fields are ignored, field names
//! match without regard to case, and a missing field or null is zero.

use serde_json::{Map, Value};

/// Fields that an answer of a hook may have; see [`read_extender_answer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtenderFields {
    /// `status`, a text, and `code`.
    Predicate,
    /// `nodeScore` and `errorMessage`.
    Prioritize,
    /// `status`, a number, and `victims`.
    Victims,
    /// `status`, a number.
    Vote,
    /// `overused`.
    Overused,
    /// `status`, true or false.
    Ready,
    /// `errorMessage`.
    Event,
    /// No field.
    Nothing,
}

/// An answer that cannot be read, as text for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableAnswer {
    /// The body is empty.
    #[error("the answer is empty; write a JSON object")]
    Empty,
    /// The body is no JSON.
    #[error("the answer is no JSON: {0}")]
    NotJson(String),
    /// A value has another type than the field.
    #[error("field {field} of the answer is no {expected}")]
    WrongType { field: &'static str, expected: &'static str },
}

/// An answer; a field that the hook does not have is zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExtenderAnswerFields {
    /// `status` of predicate, and `errorMessage`.
    pub message: String,
    /// `code`, and `status` as a number.
    pub code: i64,
    /// `overused`, and `status` of jobReady.
    pub is_true: bool,
    /// `nodeScore`.
    pub scores: Vec<(String, f64)>,
    /// `UID` of each of `victims`.
    pub victims: Vec<String>,
}

/// Reads the body of an answer.
///
/// # Errors
/// The body is empty or no JSON, or a field has another type.
pub fn read_extender_answer(
    body: &[u8],
    fields: ExtenderFields,
) -> Result<ExtenderAnswerFields, UnreadableAnswer> {
    // As Go's decoder: what follows the first value is not read.
    let mut values = serde_json::Deserializer::from_slice(body).into_iter::<Value>();
    let value = values.next().ok_or(UnreadableAnswer::Empty)?;
    let value = value.map_err(|error| UnreadableAnswer::NotJson(error.to_string()))?;
    let object = Object::of(&value, "")?;
    let mut answer = ExtenderAnswerFields::default();
    match fields {
        ExtenderFields::Predicate => {
            answer.message = object.text("status")?;
            answer.code = object.int("code")?;
        }
        ExtenderFields::Prioritize => {
            answer.message = object.text("errorMessage")?;
            answer.scores = object.scores("nodeScore")?;
        }
        ExtenderFields::Victims => {
            answer.code = object.int("status")?;
            answer.victims = object.uids("victims")?;
        }
        ExtenderFields::Vote => answer.code = object.int("status")?,
        ExtenderFields::Overused => answer.is_true = object.bool("overused")?,
        ExtenderFields::Ready => answer.is_true = object.bool("status")?,
        ExtenderFields::Event => answer.message = object.text("errorMessage")?,
        ExtenderFields::Nothing => {}
    }
    Ok(answer)
}

/// A JSON object; null counts as an empty one.
struct Object<'a>(Option<&'a Map<String, Value>>);

impl<'a> Object<'a> {
    fn of(value: &'a Value, field: &'static str) -> Result<Self, UnreadableAnswer> {
        match value {
            Value::Object(map) => Ok(Self(Some(map))),
            Value::Null => Ok(Self(None)),
            _ if field.is_empty() => {
                Err(UnreadableAnswer::NotJson("expected an object".to_owned()))
            }
            _ => Err(UnreadableAnswer::WrongType { field, expected: "object" }),
        }
    }

    /// Returns the value of a field. An exact name goes first. Returns `None` for null too.
    fn field(&self, name: &str) -> Option<&'a Value> {
        let map = self.0?;
        let by_case = || map.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        let found = map.get(name).or_else(|| by_case().map(|(_, value)| value));
        found.filter(|value| !value.is_null())
    }

    fn read<T: Default>(
        &self,
        field: &'static str,
        expected: &'static str,
        convert: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<T, UnreadableAnswer> {
        let Some(value) = self.field(field) else { return Ok(T::default()) };
        convert(value).ok_or(UnreadableAnswer::WrongType { field, expected })
    }

    fn text(&self, field: &'static str) -> Result<String, UnreadableAnswer> {
        self.read(field, "text", |value| value.as_str().map(str::to_owned))
    }

    fn int(&self, field: &'static str) -> Result<i64, UnreadableAnswer> {
        self.read(field, "integer", Value::as_i64)
    }

    fn bool(&self, field: &'static str) -> Result<bool, UnreadableAnswer> {
        self.read(field, "boolean", Value::as_bool)
    }

    fn scores(&self, field: &'static str) -> Result<Vec<(String, f64)>, UnreadableAnswer> {
        let score = |(name, value): (&String, &Value)| match value {
            Value::Null => Some((name.clone(), 0.0)),
            value => Some((name.clone(), value.as_f64()?)),
        };
        let expected = "map of numbers";
        self.read(field, expected, |value| value.as_object()?.iter().map(score).collect())
    }

    fn uids(&self, field: &'static str) -> Result<Vec<String>, UnreadableAnswer> {
        let uid = |task: &'a Value| Object::of(task, field)?.text("UID");
        match self.field(field) {
            None => Ok(Vec::new()),
            Some(Value::Array(tasks)) => tasks.iter().map(uid).collect(),
            Some(_) => Err(UnreadableAnswer::WrongType { field, expected: "list of tasks" }),
        }
    }
}
