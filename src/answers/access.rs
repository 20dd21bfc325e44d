//! Who asks and what he may: the API server is asked, or its front proxy says who. Specification: answers.md 12.

use axum::http::HeaderMap;
use vc_http::PeerCertificates;
use vc_kube::{CallError, ReviewedRight, ReviewedUser, Reviewer};
use vc_page::{Access, GROUP, Right, User, UserSource};

use super::front_proxy::FrontProxy;
use crate::review_warning::ReviewWarning;

/// Token reviews and access reviews.
pub(super) struct ReviewedAccess {
    reviewer: Reviewer,
    /// `None`: no connection is believed who asks.
    front_proxy: Option<FrontProxy>,
    warning: ReviewWarning,
}

impl ReviewedAccess {
    pub(super) fn new(reviewer: Reviewer, front_proxy: Option<FrontProxy>) -> Self {
        Self { reviewer, front_proxy, warning: ReviewWarning::default() }
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
    fn user_source(&self, peer: Option<&PeerCertificates>, headers: &HeaderMap) -> UserSource {
        let proxy = self.front_proxy.as_ref();
        proxy.map_or(UserSource::Token, |proxy| proxy.user_source(peer, headers))
    }

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
