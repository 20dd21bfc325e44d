//! Errors as Kubernetes `Status` objects, so that `kubectl get --raw` prints them. Specification:
//! answers.md 11 (ANS-73), 16.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// HTTP status code.
    pub code: u16,
    /// One sentence, and a hint in a second line.
    pub message: String,
    /// Seconds after which another attempt makes sense.
    pub retry_after: Option<u32>,
    /// The field of the body that is wrong. `None`: the message is not about one.
    pub field: Option<String>,
    /// The message for a reader who may not see other jobs of the namespace. `None`: the message names none.
    pub nameless: Option<String>,
}

impl Problem {
    pub(crate) fn new(code: u16, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after: None, field: None, nameless: None }
    }

    /// A value of the request cannot be used.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    /// A field of the body cannot be used, or may not be. The message begins with its path.
    pub(crate) fn of_field(code: u16, message: &str) -> Self {
        let field = message.split_once(": ").map(|(field, _)| field.to_owned());
        Self { field, ..Self::new(code, message) }
    }

    /// The path takes another method.
    pub(crate) fn wrong_method() -> Self {
        Self::new(405, "the path does not take this method")
    }

    /// The body is too large.
    pub(crate) fn too_large() -> Self {
        Self::new(413, "1 MiB at most")
    }

    /// Nobody knows who asks.
    pub(crate) fn unauthenticated(message: impl Into<String>) -> Self {
        Self::new(401, message)
    }

    /// The reader lacks a right.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, message)
    }

    /// Nothing has the name.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, message)
    }

    /// Several jobs have the name.
    pub(crate) fn several(message: impl Into<String>) -> Self {
        Self::new(409, message)
    }

    /// Too much is asked at once.
    pub(crate) fn too_many(message: impl Into<String>) -> Self {
        Self { retry_after: Some(1), ..Self::new(429, message) }
    }

    /// A question has failed: a fault of the program. The log has the same `id`.
    pub fn failed(id: u64) -> Self {
        Self::new(
            500,
            format!("the question failed, the log of the scheduler says why: answer {id}"),
        )
    }

    /// Nobody can answer now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { retry_after: Some(2), ..Self::new(503, message) }
    }

    /// Adds what to do.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl AsRef<str>) -> Self {
        self.message.push_str("\nhint: ");
        self.message.push_str(hint.as_ref());
        self
    }

    /// Adds the same problem without names of other jobs.
    #[must_use]
    pub(crate) fn or_nameless(self, nameless: Self) -> Self {
        Self { nameless: Some(nameless.message), ..self }
    }

    /// Returns the object.
    pub fn status(&self) -> StatusJson {
        let reason = match self.code {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            405 => "MethodNotAllowed",
            409 => "Conflict",
            413 => "RequestEntityTooLarge",
            429 => "TooManyRequests",
            503 => "ServiceUnavailable",
            504 => "Timeout",
            _ => "InternalError",
        };
        StatusJson {
            api_version: "v1".to_owned(),
            kind: "Status".to_owned(),
            status: "Failure".to_owned(),
            code: self.code,
            reason: reason.to_owned(),
            message: self.message.clone(),
            details: self.field.as_ref().map(|field| StatusDetailsJson {
                causes: vec![StatusCauseJson {
                    field: field.clone(),
                    message: self.message.clone(),
                }],
            }),
        }
    }
}

/// A Kubernetes `Status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusJson {
    /// `v1`.
    pub api_version: String,
    /// `Status`.
    pub kind: String,
    /// `Failure`.
    pub status: String,
    /// HTTP status code.
    pub code: u16,
    /// One word.
    pub reason: String,
    /// One sentence, and a hint in a second line.
    pub message: String,
    /// Which field is wrong.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub details: Option<StatusDetailsJson>,
}

/// Details of a `Status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusDetailsJson {
    /// What is wrong.
    pub causes: Vec<StatusCauseJson>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusCauseJson {
    /// Path of the field.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}
