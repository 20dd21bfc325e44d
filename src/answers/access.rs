//! Who asks and what he may: the API server is asked. Specification: answers.md 12.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use vc_kube::{CallError, ReviewedRight, ReviewedUser, Reviewer};
use vc_page::{Access, GROUP, Right, User};

/// Pause between two warnings that the API server cannot be asked.
const WARNING_PAUSE: Duration = Duration::from_secs(60);

/// Token reviews and access reviews.
pub(super) struct ReviewedAccess {
    reviewer: Reviewer,
    /// When the last warning was logged.
    warned: Mutex<Option<Instant>>,
}

impl ReviewedAccess {
    pub(super) fn new(reviewer: Reviewer) -> Self {
        Self { reviewer, warned: Mutex::default() }
    }

    /// Logs once in a while that nobody can be let in. Returns what the client is told.
    fn failure(&self, resource: &str, error: &CallError) -> String {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.is_none_or(|at| WARNING_PAUSE <= at.elapsed()) {
            *warned = Some(Instant::now());
            tracing::warn!(
                "nobody gets answers, because the API server cannot be asked who asks: {error}\n\
                 hint: grant create of tokenreviews (authentication.k8s.io) and \
                 subjectaccessreviews (authorization.k8s.io)"
            );
        }
        match error.code() {
            403 => format!("the scheduler may not create {resource}"),
            _ => "the scheduler's log says why".to_owned(),
        }
    }
}

impl Access for ReviewedAccess {
    async fn user(&self, token: &str) -> Result<Option<User>, String> {
        let user = self.reviewer.user(token).await;
        let user = user.map_err(|error| self.failure("tokenreviews", &error))?;
        Ok(user.map(|ReviewedUser { name, uid, groups, extra }| User { name, uid, groups, extra }))
    }

    async fn may(&self, user: &User, right: &Right) -> Result<bool, String> {
        let User { name, uid, groups, extra } = user.clone();
        let user = ReviewedUser { name, uid, groups, extra };
        let right = ReviewedRight {
            group: GROUP,
            verb: right.verb,
            resource: right.resource,
            namespace: right.namespace.as_deref(),
            name: right.name.as_deref(),
        };
        let may = self.reviewer.may(user, right).await;
        may.map_err(|error| self.failure("subjectaccessreviews", &error))
    }
}
