//! The YAML text as an untyped tree in which every node knows its line (core.md 2.1).
//!
//! Untyped on purpose: a plain `yes` is a bool while a quoted `"yes"` is a string, which a typed
//! read loses. Duplicate keys are kept, so that the loader can name them before the last one wins.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_yaml::{DuplicateKeyPolicy, NonFiniteFloatPolicy, Spanned};

/// A YAML node with its place.
#[derive(Clone, Debug)]
pub(crate) struct YamlNode {
    /// Line on which the node is used, from 1; 0 when the parser does not know.
    pub(crate) line: usize,
    pub(crate) tree: YamlTree,
    /// Start and length of the defining text, in characters.
    span: (usize, usize),
}

#[derive(Clone, Debug)]
pub(crate) enum YamlTree {
    Null,
    Bool(bool),
    Int(i64),
    /// Above `i64::MAX` only.
    Unsigned(u64),
    Float(f64),
    Text(String),
    List(Vec<YamlNode>),
    Map(Vec<(YamlNode, YamlNode)>),
}

/// Levels of lists and maps. A real file has about ten; each level costs the parser some 30 KiB of
/// stack in a debug build.
const MAX_DEPTH: usize = 24;

/// Reads the first document as go-yaml v2 would (YAML 1.1, not strict).
pub(crate) fn load(text: &str) -> Result<YamlNode, serde_yaml::Error> {
    let options = serde_yaml::options! {
        budget: serde_yaml::budget! { max_depth: MAX_DEPTH },
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        legacy_octal_numbers: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough
    };
    let mut bytes = text.as_bytes();
    let mut documents = serde_yaml::read_with_options(&mut bytes, options);
    documents.next().unwrap_or(Ok(YamlNode { line: 0, tree: YamlTree::Null, span: (0, 0) }))
}

impl YamlNode {
    /// The line, unless the parser does not know it.
    pub(crate) fn line(&self) -> Option<usize> {
        (self.line > 0).then_some(self.line)
    }

    /// What the node is, as an operator calls it.
    pub(crate) fn kind(&self) -> &'static str {
        match self.tree {
            YamlTree::Null => "nothing",
            YamlTree::Bool(_) => "a boolean",
            YamlTree::Int(_) | YamlTree::Unsigned(_) => "an integer",
            YamlTree::Float(_) => "a number",
            YamlTree::Text(_) => "a string",
            YamlTree::List(_) => "a list",
            YamlTree::Map(_) => "a map",
        }
    }

    /// The text of a scalar as it stands in `source`; `None` for lists and maps.
    pub(crate) fn text(&self, source: &str) -> Option<String> {
        match &self.tree {
            YamlTree::Null => Some(String::new()),
            YamlTree::Text(text) => Some(text.clone()),
            YamlTree::List(_) | YamlTree::Map(_) => None,
            YamlTree::Bool(_) | YamlTree::Int(_) | YamlTree::Unsigned(_) | YamlTree::Float(_) => {
                let (start, length) = self.span;
                Some(source.chars().skip(start).take(length).collect())
            }
        }
    }

    /// The scalar as JSON, `None` for lists and maps. An infinite or undefined number, which JSON
    /// lacks, becomes its YAML text.
    pub(crate) fn scalar(&self) -> Option<Value> {
        match &self.tree {
            YamlTree::Null => Some(Value::Null),
            YamlTree::Bool(value) => Some(Value::from(*value)),
            YamlTree::Int(value) => Some(Value::from(*value)),
            YamlTree::Unsigned(value) => Some(Value::from(*value)),
            YamlTree::Float(value) if value.is_finite() => Some(Value::from(*value)),
            YamlTree::Float(value) => Some(Value::from(non_finite(*value))),
            YamlTree::Text(text) => Some(Value::from(text.as_str())),
            YamlTree::List(_) | YamlTree::Map(_) => None,
        }
    }
}

/// Reads a YAML text as the value of an argument.
///
/// # Errors
/// What is wrong with the text, with its line.
pub fn argument_value(text: &str) -> Result<Value, String> {
    let node = load(text).map_err(|error| {
        let line = error.location().map_or(0, |place| place.line());
        let full = error.without_snippet().to_string();
        format!("line {line}: {}", full.split(" at line ").next().unwrap_or(&full))
    })?;
    Ok(value(&node))
}

/// Returns the node as JSON. Keys that are no scalars are left out.
fn value(node: &YamlNode) -> Value {
    match &node.tree {
        YamlTree::List(items) => items.iter().map(value).collect(),
        YamlTree::Map(entries) => {
            let entry = |(key, of): &(YamlNode, YamlNode)| {
                let key = match key.scalar()? {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                Some((key, value(of)))
            };
            Value::Object(entries.iter().filter_map(entry).collect())
        }
        _ => node.scalar().unwrap_or_default(),
    }
}

fn non_finite(value: f64) -> &'static str {
    match (value.is_nan(), value > 0.0) {
        (true, _) => ".nan",
        (false, true) => ".inf",
        (false, false) => "-.inf",
    }
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<YamlTree>::deserialize(deserializer)?;
        let span = spanned.defined.span();
        Ok(YamlNode {
            line: usize::try_from(spanned.referenced.line()).unwrap_or(0),
            span: (position(span.offset()), position(span.len())),
            tree: spanned.value,
        })
    }
}

fn position(characters: impl TryInto<usize>) -> usize {
    characters.try_into().unwrap_or(0)
}

impl<'de> Deserialize<'de> for YamlTree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = YamlTree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    fn visit_unit<E>(self) -> Result<YamlTree, E> {
        Ok(YamlTree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlTree, E> {
        Ok(YamlTree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<YamlTree, E> {
        Ok(YamlTree::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<YamlTree, E> {
        Ok(i64::try_from(value).map_or(YamlTree::Unsigned(value), YamlTree::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<YamlTree, E> {
        Ok(YamlTree::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<YamlTree, E> {
        Ok(YamlTree::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<YamlTree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(YamlTree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<YamlTree, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(YamlTree::Map(entries))
    }
}
