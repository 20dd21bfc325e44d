//! What a request asks for: the kind and name in its path, its query, the form of the answer and
//! its body.

use std::time::Duration;

use axum::{
    body::{Body, Bytes, to_bytes},
    http::{HeaderMap, header},
};
use serde_json::Value;
use tokio::time::timeout;

use super::{kinds::ServedKind, object::Key, protobuf, refused::Refused};

/// As long as a body may be, as in a real API server.
const BODY_LIMIT_BYTES: usize = 3 * 1024 * 1024;
/// How long a body may take to come.
const BODY_LIMIT_SECONDS: u64 = 30;

/// What a path names.
#[derive(Debug, PartialEq)]
pub(super) struct Target {
    pub(super) kind: &'static ServedKind,
    /// Absent: all namespaces, or cluster scope.
    pub(super) namespace: Option<String>,
    /// Absent: the collection.
    pub(super) name: Option<String>,
    /// `status`, `binding`, ...
    pub(super) subresource: Option<String>,
}

impl Target {
    /// Reads a path such as `/api/v1/namespaces/default/pods/web/status`.
    pub(super) fn parse(path: &str) -> Option<Target> {
        let steps: Vec<String> = path.trim_matches('/').split('/').map(decode).collect();
        let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
        let (group, version, rest) = match steps.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        if let ["namespaces", namespace, plural, rest @ ..] = rest
            && let Some(kind) = ServedKind::find(group, version, plural)
        {
            return Target::new(kind, Some(*namespace), rest);
        }
        let (plural, rest) = rest.split_first()?;
        Target::new(ServedKind::find(group, version, plural)?, None, rest)
    }

    fn new(kind: &'static ServedKind, namespace: Option<&str>, rest: &[&str]) -> Option<Target> {
        let (name, subresource) = match rest {
            [] => (None, None),
            [name] => (Some(*name), None),
            [name, subresource] => (Some(*name), Some(*subresource)),
            _ => return None,
        };
        let one_of_many = kind.is_namespaced() && namespace.is_none() && name.is_some();
        let misplaced = !kind.is_namespaced() && namespace.is_some();
        let own = |text: Option<&str>| text.map(str::to_owned);
        let target = Target {
            kind,
            namespace: own(namespace),
            name: own(name),
            subresource: own(subresource),
        };
        (!one_of_many && !misplaced).then_some(target)
    }

    /// The key of the named object; the name is empty for a collection.
    pub(super) fn key(&self) -> Key {
        let part = |text: &Option<String>| text.clone().unwrap_or_default();
        Key { namespace: part(&self.namespace), name: part(&self.name) }
    }
}

/// The query of a request.
#[derive(Debug)]
pub(super) struct Params(Vec<(String, String)>);

impl Params {
    pub(super) fn parse(query: &str) -> Params {
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key), decode(&value.replace('+', " ")))
        });
        Params(pairs.collect())
    }

    /// The value of a parameter, empty when it is absent.
    pub(super) fn get(&self, key: &str) -> &str {
        let found = self.0.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    pub(super) fn is_set(&self, key: &str) -> bool {
        matches!(self.get(key), "true" | "1")
    }

    /// A number; absent when the parameter is absent or empty.
    pub(super) fn number(&self, key: &str) -> Result<Option<u64>, Refused> {
        match self.get(key) {
            "" => Ok(None),
            text => match text.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(Refused::BadRequest(format!("{key} is not a number: {text:?}"))),
            },
        }
    }
}

/// The form of the answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AnswerFormat {
    Json,
    Table(RowObject),
}

/// What a row of a table carries of its object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RowObject {
    Nothing,
    Metadata,
    Whole,
}

impl AnswerFormat {
    /// The first form in `Accept` that is served.
    pub(super) fn negotiate(headers: &HeaderMap, params: &Params) -> AnswerFormat {
        let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
        for form in accept.unwrap_or_default().split(',').map(str::trim) {
            let is_v1_table = form.contains("as=Table") && form.contains("v=v1;");
            if is_v1_table && form.contains("g=meta.k8s.io") {
                return AnswerFormat::Table(match params.get("includeObject") {
                    "None" => RowObject::Nothing,
                    "Object" => RowObject::Whole,
                    _ => RowObject::Metadata,
                });
            }
            if form == "application/json" {
                break;
            }
        }
        AnswerFormat::Json
    }
}

/// Reads a body of JSON; an empty one is `null`.
pub(super) async fn read_json(headers: &HeaderMap, body: Body) -> Result<Value, Refused> {
    let bytes = read(body).await?;
    match media_type(headers) {
        _ if bytes.is_empty() => Ok(Value::Null),
        "" | "application/json" => parse_json(&bytes),
        "application/vnd.kubernetes.protobuf" => protobuf::decode(&bytes),
        other => Err(Refused::UnsupportedMediaType(format!(
            "the body of the request is in an unsupported form: {other}\n\
             hint: send application/json"
        ))),
    }
}

pub(super) async fn read(body: Body) -> Result<Bytes, Refused> {
    let limit = Duration::from_secs(BODY_LIMIT_SECONDS);
    let read = timeout(limit, to_bytes(body, BODY_LIMIT_BYTES)).await;
    let bytes = read.map_err(|_| Refused::SlowBody(BODY_LIMIT_SECONDS))?;
    bytes.map_err(|_| Refused::TooLarge(BODY_LIMIT_BYTES))
}

pub(super) fn parse_json(bytes: &[u8]) -> Result<Value, Refused> {
    let unreadable = |error| Refused::BadRequest(format!("the body is not JSON: {error}"));
    serde_json::from_slice(bytes).map_err(unreadable)
}

/// The content type without its parameters.
pub(super) fn media_type(headers: &HeaderMap) -> &str {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let (media_type, _) = given.map(|g| g.split_once(';').unwrap_or((g, ""))).unwrap_or_default();
    media_type.trim()
}

/// Undoes percent encoding; what is not an encoding stays as it is.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = (byte == b'%').then(|| after.get(..2)).flatten();
        let decoded = code.and_then(|c| u8::from_str_radix(std::str::from_utf8(c).ok()?, 16).ok());
        bytes.push(decoded.unwrap_or(byte));
        rest = if decoded.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{
        super::kinds::{NAMESPACES, NODES, POD_GROUPS, PODS},
        *,
    };

    #[test]
    fn paths() {
        let cases = [
            ("/api/v1/pods", Some((&PODS, None, None, None))),
            ("/api/v1/namespaces/a/pods", Some((&PODS, Some("a"), None, None))),
            ("/api/v1/namespaces/a/pods/b/", Some((&PODS, Some("a"), Some("b"), None))),
            (
                "/api/v1/namespaces/a/pods/b/binding",
                Some((&PODS, Some("a"), Some("b"), Some("binding"))),
            ),
            ("/api/v1/namespaces/a", Some((&NAMESPACES, None, Some("a"), None))),
            ("/api/v1/namespaces/a/status", Some((&NAMESPACES, None, Some("a"), Some("status")))),
            ("/api/v1/nodes/x%3Ay", Some((&NODES, None, Some("x:y"), None))),
            (
                "/apis/scheduling.volcano.sh/v1beta1/podgroups",
                Some((&POD_GROUPS, None, None, None)),
            ),
            ("/api/v1/pods/b", None),
            ("/api/v1/namespaces/a/nodes", None),
            ("/api/v1/namespaces/a/pods/b/c/d", None),
            ("/apis/scheduling.volcano.sh/v1/podgroups", None),
            ("/metrics", None),
        ];
        for (path, expected) in cases {
            let found = Target::parse(path);
            let own = |text: Option<&str>| text.map(str::to_owned);
            let expected = expected.map(|(kind, namespace, name, subresource)| Target {
                kind,
                namespace: own(namespace),
                name: own(name),
                subresource: own(subresource),
            });
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn queries() {
        let params = Params::parse("labelSelector=a%20in%20%28b%2Cc%29&limit=5&watch=1&x=%zz+%&&y");
        assert_eq!(params.get("labelSelector"), "a in (b,c)");
        assert_eq!(params.number("limit").unwrap(), Some(5));
        assert_eq!(params.number("y").unwrap(), None);
        assert!(params.number("x").is_err());
        assert!(params.is_set("watch") && !params.is_set("y"));
        assert_eq!(params.get("x"), "%zz %");
    }
}
