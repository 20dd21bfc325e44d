//! Questions that find nobody who could answer them now. Specification: answers.md 16.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::join_all;
use vc_page::{
    Access, AnswerSource, Answered, Problem, Question, Right, RouteOptions, Uncounted, User, routes,
};

use crate::support::{CLUSTER, Page, Source, Table, USERS, view};

/// A source that never answers.
struct Silent;

impl AnswerSource for Silent {
    fn revision(&self) -> Result<String, Problem> {
        Ok("1-2".to_owned())
    }

    async fn ask(&self, _question: Question) -> Result<Answered, Problem> {
        std::future::pending().await
    }
}

fn silent() -> Page {
    let options = RouteOptions { has_page: true };
    Page::from(routes(Table(USERS), Silent, Arc::new(Uncounted), options))
}

#[tokio::test(start_paused = true)]
async fn ans_16_nobody_waits_longer_than_ten_seconds() {
    let page = silent();
    for (path, seconds) in [("summary", 10), ("bundles/now", 60)] {
        let start = tokio::time::Instant::now();
        let reply = page.get("admin", path).await;
        assert_eq!(reply.message(), format!("no answer within {seconds} s"));
        assert_eq!((reply.code, start.elapsed().as_secs()), (503, seconds));
        assert!(reply.headers.contains_key("retry-after"));
    }
}

/// Of 40 questions 32 wait for their answer, and the others are told so at once.
#[tokio::test(start_paused = true)]
async fn ans_16_no_more_than_32_questions_wait() {
    let page = silent();
    let replies = join_all((0..40).map(|_| page.get("admin", "summary"))).await;
    let told = |code: u16, text: &str| {
        { replies.iter() }.filter(|it| it.code == code && it.message().starts_with(text)).count()
    };
    assert_eq!(told(429, "busy: 32 questions wait"), 8);
    assert_eq!(told(503, "no answer within 10 s"), 32);
    let refused = replies.iter().filter(|it| it.code == 429);
    assert!({ refused }.all(|it| it.headers.contains_key("retry-after")));
}

/// Nobody says what the user may.
struct Unreviewed;

impl Access for Unreviewed {
    async fn user(&self, token: &str) -> Result<Option<User>, String> {
        Ok(Some(User { name: token.to_owned(), ..User::default() }))
    }

    async fn may(&self, _user: &User, _right: &Right) -> Result<bool, String> {
        Err("connection refused".to_owned())
    }
}

#[tokio::test]
async fn ans_16_nothing_is_let_through_without_a_review_of_the_right() {
    let source = Source(Ok(Mutex::new(view(CLUSTER))));
    let options = RouteOptions { has_page: true };
    let page = Page::from(routes(Unreviewed, source, Arc::new(Uncounted), options));
    for path in ["summary", "namespaces/ml/explanations/train", "nodes"] {
        let reply = page.get("jo", path).await;
        let text = "the API server did not review the right: connection refused";
        assert_eq!((reply.code, reply.message()), (503, text.to_owned()), "{path}");
    }
}

/// Everybody may everything, and reviews take a while. They are counted.
struct CountedReviews(Arc<AtomicUsize>);

impl CountedReviews {
    async fn review(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
    }
}

impl Access for CountedReviews {
    async fn user(&self, token: &str) -> Result<Option<User>, String> {
        self.review().await;
        Ok(Some(User { name: token.to_owned(), ..User::default() }))
    }

    async fn may(&self, _user: &User, _right: &Right) -> Result<bool, String> {
        self.review().await;
        Ok(true)
    }
}

#[tokio::test]
async fn ans_78_equal_questions_at_once_need_the_reviews_of_one() {
    let reviews_of = async |n_questions: usize| {
        let n_reviews = Arc::new(AtomicUsize::new(0));
        let source = Source(Ok(Mutex::new(view(CLUSTER))));
        let options = RouteOptions { has_page: true };
        let access = CountedReviews(n_reviews.clone());
        let page = Page::from(routes(access, source, Arc::new(Uncounted), options));
        let path = "namespaces/ml/explanations/train";
        let replies = join_all((0..n_questions).map(|_| page.get("jo", path))).await;
        assert!(replies.iter().all(|reply| reply.code == 200));
        n_reviews.load(Ordering::Relaxed)
    };
    let of_one = reviews_of(1).await;
    assert!(3 <= of_one, "the token, the right of the route and that to nodes: {of_one}");
    assert_eq!(reviews_of(30).await, of_one);
}
