//! Label selectors (equality and set based) and field selectors of list, watch and delete requests.

use serde_json::Value;

use super::{
    kinds::ServedKind,
    object::{self, Key},
    refused::Refused,
};

/// What a request selects within a kind.
#[derive(Debug, Default)]
pub(super) struct ObjectFilter {
    /// Absent: all namespaces, or cluster scope.
    pub(super) namespace: Option<String>,
    labels: Vec<LabelRequirement>,
    fields: Vec<FieldRequirement>,
}

impl ObjectFilter {
    /// Everything in a namespace.
    pub(super) fn namespace(namespace: Option<&str>) -> ObjectFilter {
        ObjectFilter { namespace: namespace.map(str::to_owned), ..ObjectFilter::default() }
    }

    /// Reads the two selectors of a request.
    pub(super) fn parse(
        kind: &ServedKind,
        namespace: Option<String>,
        labels: &str,
        fields: &str,
    ) -> Result<ObjectFilter, Refused> {
        let unreadable = |text: &str| {
            Refused::BadRequest(format!("unable to parse requirement of a selector: {text:?}"))
        };
        let labels = split(labels)
            .map(|text| LabelRequirement::parse(text).ok_or_else(|| unreadable(text)))
            .collect::<Result<_, _>>()?;
        let fields = split(fields)
            .map(|text| FieldRequirement::parse(text).ok_or_else(|| unreadable(text)))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(field) = fields.iter().find(|field| !is_selectable(kind, &field.path)) {
            let path = &field.path;
            return Err(Refused::BadRequest(format!("field label not supported: {path}")));
        }
        Ok(ObjectFilter { namespace, labels, fields })
    }

    /// The one name that can match, if the field selector says so.
    pub(super) fn name(&self) -> Option<&str> {
        let field = self.fields.iter().find(|f| f.path == "metadata.name" && f.equal)?;
        Some(&field.value)
    }

    /// Whether keys from this one on, in order, can still match.
    pub(super) fn may_follow(&self, key: &Key) -> bool {
        let Some(namespace) = &self.namespace else {
            return true;
        };
        *namespace == key.namespace && self.name().is_none_or(|name| name == key.name)
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| namespace == object::namespace(object))
            && self.labels.iter().all(|label| label.matches(&object["metadata"]["labels"]))
            && self.fields.iter().all(|field| field.matches(object))
    }
}

/// One requirement on a label.
#[derive(Debug, PartialEq)]
struct LabelRequirement {
    key: String,
    rule: LabelRule,
}

#[derive(Debug, PartialEq)]
enum LabelRule {
    Exists,
    Missing,
    In(Vec<String>),
    /// A label that does not exist satisfies this too.
    NotIn(Vec<String>),
}

impl LabelRequirement {
    fn parse(text: &str) -> Option<LabelRequirement> {
        let with = |key: &str, rule| {
            let valid = !key.is_empty() && !key.contains(|c: char| c.is_whitespace() || c == '(');
            valid.then(|| LabelRequirement { key: key.to_owned(), rule })
        };
        if let Some(key) = text.strip_prefix('!') {
            return with(key.trim(), LabelRule::Missing);
        }
        if let Some((left, right)) = text.split_once('(') {
            let values = right.strip_suffix(')')?.split(',').map(|v| v.trim().to_owned()).collect();
            let (key, operator) = left.trim().rsplit_once(char::is_whitespace)?;
            return match operator {
                "in" => with(key.trim(), LabelRule::In(values)),
                "notin" => with(key.trim(), LabelRule::NotIn(values)),
                _ => None,
            };
        }
        match equality(text) {
            Some((key, value, true)) => with(key, LabelRule::In(vec![value.to_owned()])),
            Some((key, value, false)) => with(key, LabelRule::NotIn(vec![value.to_owned()])),
            None => with(text, LabelRule::Exists),
        }
    }

    fn matches(&self, labels: &Value) -> bool {
        let value = labels.get(&self.key).and_then(Value::as_str);
        match &self.rule {
            LabelRule::Exists => value.is_some(),
            LabelRule::Missing => value.is_none(),
            LabelRule::In(values) => value.is_some_and(|value| values.iter().any(|v| v == value)),
            LabelRule::NotIn(values) => value.is_none_or(|value| values.iter().all(|v| v != value)),
        }
    }
}

/// One requirement on a field; a field that does not exist is empty.
#[derive(Debug)]
struct FieldRequirement {
    path: String,
    equal: bool,
    value: String,
}

impl FieldRequirement {
    fn parse(text: &str) -> Option<FieldRequirement> {
        let (path, value, equal) = equality(text)?;
        Some(FieldRequirement { path: path.to_owned(), equal, value: value.to_owned() })
    }

    fn matches(&self, object: &Value) -> bool {
        let found = self.path.split('.').try_fold(object, |at, step| at.get(step));
        let same = match found {
            None | Some(Value::Null) => {
                self.value.is_empty() || self.value == "false" && is_flag(&self.path)
            }
            Some(Value::String(text)) => *text == self.value,
            Some(Value::Bool(flag)) => (if *flag { "true" } else { "false" }) == self.value,
            // No field that can be selected by is a number, list or object.
            Some(_) => false,
        };
        same == self.equal
    }
}

fn is_flag(path: &str) -> bool {
    matches!(path, "spec.unschedulable" | "spec.hostNetwork")
}

/// The fields a real API server selects by; others are refused rather than silently not matched.
fn is_selectable(kind: &ServedKind, path: &str) -> bool {
    if path == "metadata.name" || path == "metadata.namespace" && kind.is_namespaced() {
        return true;
    }
    match (kind.group, kind.plural) {
        ("", "pods") => matches!(
            path,
            "spec.nodeName"
                | "spec.schedulerName"
                | "spec.restartPolicy"
                | "spec.serviceAccountName"
                | "spec.hostNetwork"
                | "status.phase"
                | "status.podIP"
                | "status.nominatedNodeName"
        ),
        ("", "nodes") => path == "spec.unschedulable",
        ("", "namespaces") => path == "status.phase",
        ("", "secrets") => path == "type",
        ("", "events") => {
            path.starts_with("involvedObject.")
                || matches!(path, "reason" | "type" | "reportingComponent" | "source")
        }
        _ => false,
    }
}

/// `a=b`, `a==b`, `a!=b`; the flag says whether they shall be equal.
fn equality(text: &str) -> Option<(&str, &str, bool)> {
    let (left, right) = text.split_once('=')?;
    let (key, equal) = match left.strip_suffix('!') {
        Some(key) => (key, false),
        None => (left, true),
    };
    let value = if equal { right.strip_prefix('=').unwrap_or(right) } else { right };
    Some((key.trim(), value.trim(), equal))
}

/// The requirements of a selector: split at commas outside parentheses.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::kinds::{EVENTS, NODES, PODS, QUEUES},
        *,
    };

    #[test]
    fn label_selectors() {
        let pod = json!({ "metadata": { "labels": { "app": "web", "tier": "2" } } });
        let cases = [
            ("app=web", true),
            ("app == web, tier!=3", true),
            ("app!=web", false),
            ("zone!=a", true),
            ("app in (db, web),tier notin (1,3)", true),
            ("tier notin (2)", false),
            ("app,!zone", true),
            ("zone", false),
            ("!app", false),
            ("", true),
        ];
        for (text, expected) in cases {
            let filter = ObjectFilter::parse(&PODS, None, text, "").unwrap();
            assert_eq!(filter.matches(&pod), expected, "{text}");
        }
        for text in ["app in web", "app in (web", "=web", "a b", "app near (x)"] {
            assert!(ObjectFilter::parse(&PODS, None, text, "").is_err(), "{text}");
        }
    }

    #[test]
    fn field_selectors() {
        let pod = json!({
            "metadata": { "name": "p", "namespace": "n" },
            "spec": { "nodeName": "n1", "unschedulable": true },
            "involvedObject": { "uid": "u" },
        });
        let cases = [
            (&PODS, "metadata.name=p,spec.nodeName=n1", true),
            (&PODS, "status.phase!=Failed", true),
            (&PODS, "status.phase=", true),
            (&PODS, "spec.hostNetwork=false", true),
            (&PODS, "spec.nodeName!=n1", false),
            (&NODES, "spec.unschedulable=true", true),
            (&EVENTS, "involvedObject.uid==u", true),
        ];
        for (kind, text, expected) in cases {
            let filter = ObjectFilter::parse(kind, None, "", text).unwrap();
            assert_eq!(filter.matches(&pod), expected, "{text}");
        }
        let error = ObjectFilter::parse(&QUEUES, None, "", "spec.weight=1").unwrap_err();
        assert_eq!(error.to_string(), "field label not supported: spec.weight");
    }
}
