//! Who asks and what he may: the API server is asked. Specification: answers.md 12.

use vc_kube::{CallError, ReviewedRight, ReviewedUser, Reviewer};
use vc_page::{Access, GROUP, Right, User};

use crate::review_warning::ReviewWarning;

/// Token reviews and access reviews.
pub(super) struct ReviewedAccess {
    reviewer: Reviewer,
    warning: ReviewWarning,
}

impl ReviewedAccess {
    pub(super) fn new(reviewer: Reviewer) -> Self {
        Self { reviewer, warning: ReviewWarning::default() }
    }

    /// Logs once in a while that nobody can be let in. Returns what the client is told.
    fn failure(&self, resource: &str, error: &CallError) -> String {
        self.warning.log("nobody gets answers", error);
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
