//! Problems of an object with the path of the field, collected while a record is made.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use vc_model::{Labels, ResourceList};
use vc_resource::Quantity;
use vc_text::escape;

use crate::soft::{LenientField, LenientList, LenientMap};

/// A place in an object; made on the stack, formatted only when something is wrong there.
#[derive(Clone, Copy)]
pub(crate) struct FieldPath<'a> {
    parent: Option<&'a FieldPath<'a>>,
    step: PathStep<'a>,
}

#[derive(Clone, Copy)]
enum PathStep<'a> {
    Field(&'static str),
    Key(&'a str),
    Index(usize),
}

impl<'a> FieldPath<'a> {
    /// A field of the object itself.
    pub(crate) fn root(field: &'static str) -> Self {
        Self { parent: None, step: PathStep::Field(field) }
    }

    pub(crate) fn field(&'a self, field: &'static str) -> Self {
        Self { parent: Some(self), step: PathStep::Field(field) }
    }

    pub(crate) fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), step: PathStep::Key(key) }
    }

    pub(crate) fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: PathStep::Index(index) }
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(out)?;
        }
        let dot = if self.parent.is_some() { "." } else { "" };
        match self.step {
            PathStep::Field(field) => write!(out, "{dot}{field}"),
            PathStep::Key(key) if key.contains(['.', '/']) => write!(out, "[{}]", escape(key)),
            PathStep::Key(key) => write!(out, "{dot}{}", escape(key)),
            PathStep::Index(index) => write!(out, "[{index}]"),
        }
    }
}

/// What is wrong with one object.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    /// `path: message`, the message with its hint if it has one.
    found: Vec<String>,
    /// The first that makes the object unusable.
    worst: Option<String>,
}

impl Problems {
    /// A problem that makes the object unusable.
    pub(crate) fn add(&mut self, path: &FieldPath<'_>, message: &str) {
        let text = format!("{path}: {message}");
        self.worst.get_or_insert_with(|| first_line(&text).to_owned());
        self.found.push(text);
    }

    /// A problem for which the specification has a rule; the object stays usable.
    pub(crate) fn note(&mut self, path: &FieldPath<'_>, message: &str) {
        self.found.push(format!("{path}: {message}"));
    }

    /// How many problems there are.
    pub(crate) fn len(&self) -> usize {
        self.found.len()
    }

    /// The first problem that makes the object unusable, as one line.
    pub(crate) fn worst(&self) -> Option<Arc<str>> {
        self.worst.as_deref().map(Arc::from)
    }

    /// Each problem with the path of its field, without the name of the object.
    pub(crate) fn found_texts(&self) -> Vec<Arc<str>> {
        self.found.iter().map(|text| text.as_str().into()).collect()
    }

    /// Each problem with the name of the object before it.
    pub(crate) fn of(self, object: &dyn fmt::Display) -> Vec<String> {
        self.found.iter().map(|text| format!("{object}: {text}")).collect()
    }

    /// The value, or `None` when it is absent or malformed.
    pub(crate) fn read<T>(&mut self, field: LenientField<T>, path: &FieldPath<'_>) -> Option<T> {
        match field {
            LenientField::Good(value) => Some(value),
            LenientField::Absent => None,
            LenientField::Bad(message) => {
                self.add(path, &message);
                None
            }
        }
    }

    pub(crate) fn or_default<T: Default>(
        &mut self,
        field: LenientField<T>,
        path: &FieldPath<'_>,
    ) -> T {
        self.read(field, path).unwrap_or_default()
    }

    /// A text; absent is empty.
    pub(crate) fn text(&mut self, field: LenientField<Arc<str>>, path: &FieldPath<'_>) -> Arc<str> {
        self.read(field, path).unwrap_or_default()
    }

    /// A text that reaches messages and logs, and of which nothing but equality matters: a name that
    /// the API server does not check. What cannot be shown is escaped; as no object has such a name,
    /// the escaped one names nothing either.
    pub(crate) fn name(&mut self, field: LenientField<Arc<str>>, path: &FieldPath<'_>) -> Arc<str> {
        shown(self.text(field, path))
    }

    /// The elements of a list made by `make`; malformed ones are left out.
    pub(crate) fn list<T, R>(
        &mut self,
        field: LenientList<T>,
        path: &FieldPath<'_>,
        mut make: impl FnMut(&mut Self, T, &FieldPath<'_>) -> R,
    ) -> Vec<R> {
        let items = self.or_default(field, path);
        let mut made = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let path = path.index(index);
            if let Some(item) = self.read(item, &path) {
                made.push(make(self, item, &path));
            }
        }
        made
    }

    /// A list of texts.
    pub(crate) fn texts(
        &mut self,
        field: LenientList<Arc<str>>,
        path: &FieldPath<'_>,
    ) -> Vec<Arc<str>> {
        self.list(field, path, |_, text, _| text)
    }

    /// The entries of a map; a `null` value is the type's default, as in Go.
    pub(crate) fn map<T: Default>(
        &mut self,
        field: LenientField<LenientMap<T>>,
        path: &FieldPath<'_>,
    ) -> Vec<(Arc<str>, T)> {
        let LenientMap(entries) = self.or_default(field, path);
        let mut read = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let value = match value {
                LenientField::Absent => Some(T::default()),
                value => self.read(value, &path.key(&key)),
            };
            read.extend(value.map(|value| (key, value)));
        }
        read
    }

    /// Labels, annotations or another map of texts.
    pub(crate) fn labels(
        &mut self,
        field: LenientField<LenientMap<Arc<str>>>,
        path: &FieldPath<'_>,
    ) -> Labels {
        let LenientMap(entries) = self.or_default(field, path);
        let mut labels = Labels::new();
        for (key, value) in entries {
            let value = match value {
                LenientField::Absent => Some(Arc::default()),
                value => self.read(value, &path.key(&key)),
            };
            labels.extend(value.map(|value| (key, value)));
        }
        labels
    }

    /// A Kubernetes resource list. Amounts below zero count as 0, and are noted.
    pub(crate) fn resources(
        &mut self,
        field: LenientField<LenientMap<Quantity>>,
        path: &FieldPath<'_>,
    ) -> ResourceList {
        let mut amounts = self.map(field, path);
        for (name, amount) in amounts.iter_mut().filter(|(_, amount)| amount.is_negative()) {
            let text = amount.text(name);
            self.note(&path.key(name), &format!("is below zero, it counts as 0: {text}"));
            *amount = Quantity::default();
        }
        amounts
    }
}

/// The text with what cannot be shown escaped.
pub(crate) fn shown(text: Arc<str>) -> Arc<str> {
    match escape(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(escaped) => escaped.into(),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_as_people_write_it() {
        let spec = FieldPath::root("spec");
        let containers = spec.field("containers");
        let first = containers.index(0);
        let requests = first.field("requests");
        assert_eq!(requests.key("cpu").to_string(), "spec.containers[0].requests.cpu");
        let gpu = requests.key("nvidia.com/gpu");
        assert_eq!(gpu.to_string(), "spec.containers[0].requests[nvidia.com/gpu]");
    }
}
