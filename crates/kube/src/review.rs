//! Reviews of the API server about those who read metrics or ask questions: whose a token is
//! (TokenReview), and whether its owner has a right (SubjectAccessReview). Specification: core.md 1.8 (metrics),
//! answers.md 12.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::call::{CallError, call};

/// How long an answer is used again.
const GRANTED: Duration = Duration::from_secs(60);
const REFUSED: Duration = Duration::from_secs(10);
/// Answers that are remembered; beyond it all are forgotten.
const ANSWERS: usize = 256;
/// Questions at once: whoever invents tokens must not take the API server's time from the scheduler.
const QUESTIONS: usize = 2;

/// What a client may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessDecision {
    Granted,
    /// Nobody knows the token.
    Unauthenticated,
    /// The name of a user who lacks the right.
    Forbidden(String),
}

/// The owner of a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReviewedUser {
    pub name: String,
    pub uid: Option<String>,
    pub groups: Vec<String>,
    /// What else authorisers read.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl From<UserInfo> for ReviewedUser {
    fn from(user: UserInfo) -> Self {
        Self {
            name: user.username.unwrap_or_default(),
            uid: user.uid,
            groups: user.groups.unwrap_or_default(),
            extra: user.extra.unwrap_or_default(),
        }
    }
}

/// A right to objects. Absent: any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReviewedRight<'a> {
    pub group: &'a str,
    pub verb: &'a str,
    pub resource: &'a str,
    pub namespace: Option<&'a str>,
    pub name: Option<&'a str>,
}

/// Asks the API server about tokens.
pub struct Reviewer {
    client: Client,
    questions: Semaphore,
    /// By token and path: the answer, and until when it holds.
    answers: Mutex<HashMap<(String, String), (AccessDecision, Instant)>>,
}

impl Reviewer {
    pub fn new(client: Client) -> Self {
        let questions = Semaphore::new(QUESTIONS);
        Self { client, questions, answers: Mutex::default() }
    }

    /// Whether the owner of `token` may GET `path`.
    ///
    /// # Errors
    /// The API server cannot be asked, or refuses the question: without the right to create
    /// `tokenreviews` and `subjectaccessreviews` nobody can be let in.
    pub async fn review(&self, token: &str, path: &str) -> Result<AccessDecision, CallError> {
        let key = (token.to_owned(), path.to_owned());
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        let _place = self.questions.acquire().await;
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        let verdict = self.ask(token, path).await?;
        let lasts = if verdict == AccessDecision::Granted { GRANTED } else { REFUSED };
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if ANSWERS <= answers.len() {
            answers.clear();
        }
        answers.insert(key, (verdict.clone(), Instant::now() + lasts));
        Ok(verdict)
    }

    fn known(&self, key: &(String, String)) -> Option<AccessDecision> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let (verdict, until) = answers.get(key)?;
        (Instant::now() < *until).then(|| verdict.clone())
    }

    async fn ask(&self, token: &str, path: &str) -> Result<AccessDecision, CallError> {
        let Some(user) = self.owner(token).await? else {
            return Ok(AccessDecision::Unauthenticated);
        };
        let name = user.name.clone();
        let verb = Some("get".to_owned());
        let path = NonResourceAttributes { path: Some(path.to_owned()), verb };
        let spec = SubjectAccessReviewSpec {
            non_resource_attributes: Some(path),
            ..SubjectAccessReviewSpec::default()
        };
        Ok(match self.is_allowed(user, spec).await? {
            true => AccessDecision::Granted,
            false => AccessDecision::Forbidden(name),
        })
    }

    /// The owner of `token`; `None`: nobody knows it. The answer is not remembered.
    ///
    /// # Errors
    /// As for [`Reviewer::review`].
    pub async fn user(&self, token: &str) -> Result<Option<ReviewedUser>, CallError> {
        let _place = self.questions.acquire().await;
        self.owner(token).await
    }

    /// Whether `user` has the right. The answer is not remembered.
    ///
    /// # Errors
    /// As for [`Reviewer::review`].
    pub async fn may(
        &self,
        user: ReviewedUser,
        right: ReviewedRight<'_>,
    ) -> Result<bool, CallError> {
        let _place = self.questions.acquire().await;
        let text = |text: &str| Some(text.to_owned());
        let attributes = ResourceAttributes {
            group: text(right.group),
            verb: text(right.verb),
            resource: text(right.resource),
            namespace: right.namespace.map(str::to_owned),
            name: right.name.map(str::to_owned),
            ..ResourceAttributes::default()
        };
        let spec = SubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        self.is_allowed(user, spec).await
    }

    async fn owner(&self, token: &str) -> Result<Option<ReviewedUser>, CallError> {
        let spec = TokenReviewSpec { token: token.to_owned(), ..Default::default() };
        let review = TokenReview { spec, ..Default::default() };
        let reviews = Api::<TokenReview>::all(self.client.clone());
        let review = call(reviews.create(&PostParams::default(), &review)).await?;
        let status = review.status.unwrap_or_default();
        let user = status.user.filter(|_| status.authenticated == Some(true));
        Ok(user.map(ReviewedUser::from))
    }

    /// Whether the user has the right of `spec`.
    async fn is_allowed(
        &self,
        user: ReviewedUser,
        spec: SubjectAccessReviewSpec,
    ) -> Result<bool, CallError> {
        let spec = SubjectAccessReviewSpec {
            user: Some(user.name),
            uid: user.uid,
            groups: Some(user.groups),
            extra: Some(user.extra),
            ..spec
        };
        let reviews = Api::<SubjectAccessReview>::all(self.client.clone());
        let review = SubjectAccessReview { spec, ..Default::default() };
        let review = call(reviews.create(&PostParams::default(), &review)).await?;
        Ok(review.status.is_some_and(|status| status.allowed))
    }
}
