//! Who may read the metrics: the API server is asked whose token it is (TokenReview), and whether
//! its owner may GET the path (SubjectAccessReview). Specification: core.md 1.8 (metrics).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
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
        let spec = TokenReviewSpec { token: token.to_owned(), ..Default::default() };
        let review = TokenReview { spec, ..Default::default() };
        let reviews = Api::<TokenReview>::all(self.client.clone());
        let review = call(reviews.create(&PostParams::default(), &review)).await?;
        let status = review.status.unwrap_or_default();
        let user = match (status.authenticated, status.user) {
            (Some(true), Some(user)) => user,
            _ => return Ok(AccessDecision::Unauthenticated),
        };
        let name = user.username.clone().unwrap_or_default();
        let reviews = Api::<SubjectAccessReview>::all(self.client.clone());
        let review = access(user, path);
        let review = call(reviews.create(&PostParams::default(), &review)).await?;
        Ok(match review.status.is_some_and(|status| status.allowed) {
            true => AccessDecision::Granted,
            false => AccessDecision::Forbidden(name),
        })
    }
}

/// The question whether `user` may GET `path`.
fn access(user: UserInfo, path: &str) -> SubjectAccessReview {
    let attributes =
        NonResourceAttributes { path: Some(path.to_owned()), verb: Some("get".to_owned()) };
    let spec = SubjectAccessReviewSpec {
        user: user.username,
        uid: user.uid,
        groups: user.groups,
        extra: user.extra,
        non_resource_attributes: Some(attributes),
        resource_attributes: None,
    };
    SubjectAccessReview { spec, ..Default::default() }
}
