//! Why a request is refused, and its form on the wire: a `metav1.Status` with the code and reason
//! that clients of a real API server match on. The texts are those that such clients show.

use serde_json::{Value, json};

use super::kinds::ServedKind;

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// 404: no object of that name.
    #[error("{} \"{name}\" not found", kind.qualified())]
    NotFound {
        /// The kind asked for.
        kind: &'static ServedKind,
        /// The name asked for.
        name: String,
    },
    /// 404: no such path.
    #[error("the server could not find the requested resource")]
    NoSuchResource,
    /// 405: the path exists, the verb does not.
    #[error("the server does not allow this method on the requested resource")]
    MethodNotAllowed,
    /// 409: a create of a name that exists.
    #[error("{} \"{name}\" already exists", kind.qualified())]
    AlreadyExists {
        /// The kind of the object.
        kind: &'static ServedKind,
        /// The name in use.
        name: String,
    },
    /// 409: a version, uid or state that is not as the client believes.
    #[error("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.qualified())]
    Conflict {
        /// The kind of the object.
        kind: &'static ServedKind,
        /// Its name.
        name: String,
        /// What differs.
        why: String,
    },
    /// 422: a field has a value that the kind does not allow.
    #[error("{} \"{name}\" is invalid: {field}: {why}", kind.kind)]
    Invalid {
        /// The kind of the object.
        kind: &'static ServedKind,
        /// Its name, empty when that is what is missing.
        name: String,
        /// Path of the field.
        field: String,
        /// What is wrong with it.
        why: String,
    },
    /// 403: admission says no.
    #[error("{} \"{name}\" is forbidden: {why}", kind.qualified())]
    Forbidden {
        /// The kind of the object.
        kind: &'static ServedKind,
        /// Its name.
        name: String,
        /// The rule that says no.
        why: String,
    },
    /// 403: the request was sent to a name that is not the server's.
    #[error(
        "Host {0:?} is not a name of this server\n\
         hint: address it as localhost or by its IP address, or start it with --allow-remote"
    )]
    ForeignHost(String),
    /// 408: the body of the request did not come in time.
    #[error("the request body did not come within {0} s")]
    SlowBody(u64),
    /// 400: the request cannot be read.
    #[error("{0}")]
    BadRequest(String),
    /// 415: a body in a form that is not accepted.
    #[error("{0}")]
    UnsupportedMediaType(String),
    /// 413: a body that is too long.
    #[error("the request body is larger than {0} bytes")]
    TooLarge(usize),
    /// 410: the log no longer reaches back to that version.
    #[error("too old resource version: {asked} (oldest: {oldest})")]
    Expired {
        /// The version asked for.
        asked: u64,
        /// The oldest one that the log still covers.
        oldest: u64,
    },
}

impl Refused {
    /// The HTTP status code.
    pub fn code(&self) -> u16 {
        self.code_and_reason().0
    }

    /// The `metav1.Status` that says so.
    pub fn status(&self) -> Value {
        let (code, reason) = self.code_and_reason();
        let mut status = json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
            "message": self.to_string(), "reason": reason, "code": code,
        });
        if let Some(details) = self.details() {
            status["details"] = details;
        }
        status
    }

    fn code_and_reason(&self) -> (u16, &'static str) {
        match self {
            Refused::NotFound { .. } | Refused::NoSuchResource => (404, "NotFound"),
            Refused::MethodNotAllowed => (405, "MethodNotAllowed"),
            Refused::AlreadyExists { .. } => (409, "AlreadyExists"),
            Refused::Conflict { .. } => (409, "Conflict"),
            Refused::Invalid { .. } => (422, "Invalid"),
            Refused::Forbidden { .. } | Refused::ForeignHost(_) => (403, "Forbidden"),
            Refused::SlowBody(_) => (408, "Timeout"),
            Refused::BadRequest(_) => (400, "BadRequest"),
            Refused::UnsupportedMediaType(_) => (415, "UnsupportedMediaType"),
            Refused::TooLarge(_) => (413, "RequestEntityTooLarge"),
            Refused::Expired { .. } => (410, "Expired"),
        }
    }

    fn details(&self) -> Option<Value> {
        match self {
            Refused::NotFound { kind, name }
            | Refused::AlreadyExists { kind, name }
            | Refused::Conflict { kind, name, .. }
            | Refused::Forbidden { kind, name, .. } => {
                Some(json!({ "name": name, "group": kind.group, "kind": kind.plural }))
            }
            Refused::Invalid { kind, name, field, why } => Some(json!({
                "name": name, "group": kind.group, "kind": kind.kind,
                "causes": [{ "reason": "FieldValueInvalid", "message": why, "field": field }],
            })),
            _ => None,
        }
    }
}

/// The `metav1.Status` of a success that has no object to return.
pub(super) fn success(code: u16) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success", "code": code,
    })
}
