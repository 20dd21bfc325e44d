//! Who may ask: a token belongs to a user, and a user has a right or not. Both are answered by
//! somebody else and kept for a while. Specification: answers.md 12 (ANS-77, ANS-78, ANS-80, ANS-81).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use axum::http::HeaderMap;
use ring::digest::{SHA256, digest};
use tokio::sync::OnceCell;
use tokio::time::Instant;
use vc_http::PeerCertificates;

use crate::limits::{TokenBucket, UserLimits};

/// API group of the rights.
pub const GROUP: &str = "answers.volcano.sh";

/// How long a known user is kept, and how long a token that nobody knows.
const USER: Duration = Duration::from_secs(120);
const NO_USER: Duration = Duration::from_secs(10);
/// How long a right is kept, and how long a refusal.
const GRANTED: Duration = Duration::from_secs(30);
const REFUSED: Duration = Duration::from_secs(5);
/// Answers that are kept; beyond it all are forgotten.
const MOST_KEPT: usize = 4_096;
/// Reviews of tokens in a second: whoever invents tokens must not take the API server's time.
const TOKEN_REVIEWS: u32 = 10;

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct User {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: Option<String>,
    /// Groups.
    pub groups: Vec<String>,
    /// What else authorisers read.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// What somebody may do: verb and resource of [`GROUP`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Right {
    /// `get`, `list`.
    pub verb: &'static str,
    /// Plural name.
    pub resource: &'static str,
    /// Namespace. `None`: all.
    pub namespace: Option<String>,
    /// Name of the object. `None`: any.
    pub name: Option<String>,
}

/// What says who sends a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserSource {
    /// A bearer token. Headers that name a user are not believed.
    Token,
    /// The front proxy of the API server, which has sent the request. `None`: it names no user.
    FrontProxy(Option<User>),
}

/// Who is asked about tokens and rights.
pub trait Access: Send + Sync + 'static {
    /// Returns true if nobody has to say who he is: all may all.
    fn is_open(&self) -> bool {
        false
    }

    /// Returns what says who sends a request: its headers are believed only if the certificates of its connection
    /// are those of the front proxy.
    fn user_source(&self, _peer: Option<&PeerCertificates>, _headers: &HeaderMap) -> UserSource {
        UserSource::Token
    }

    /// Returns the user of a token. Returns `None` if nobody knows it.
    ///
    /// # Errors
    /// It cannot be found out; the text says why.
    fn user(&self, token: &str) -> impl Future<Output = Result<Option<User>, String>> + Send;

    /// Returns true if the user has the right.
    ///
    /// # Errors
    /// It cannot be found out; the text says why.
    fn may(&self, user: &User, right: &Right) -> impl Future<Output = Result<bool, String>> + Send;
}

/// An [`Access`] that grants everything to everybody, for a server that only listens to its own machine.
#[derive(Clone, Copy, Debug)]
pub struct Everybody;

impl Access for Everybody {
    fn is_open(&self) -> bool {
        true
    }

    async fn user(&self, _token: &str) -> Result<Option<User>, String> {
        Ok(Some(User::default()))
    }

    async fn may(&self, _user: &User, _right: &Right) -> Result<bool, String> {
        Ok(true)
    }
}

/// Why a request is refused before its right is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AccessError {
    /// Too many tokens are asked about, or too many rights of one user.
    Busy,
    /// It cannot be found out.
    Unknown(String),
}

/// A review that is asked now. All who need its answer share it.
type SharedReview<V> = OnceCell<Result<V, AccessError>>;

/// Answers with the time until which they hold, and the reviews that are asked now.
struct CachedAnswers<K, V> {
    kept: Mutex<BTreeMap<K, (V, Instant)>>,
    /// Kept alive by those who wait.
    in_flight: Mutex<BTreeMap<K, Weak<SharedReview<V>>>>,
}

impl<K: Clone + Ord, V: Clone> CachedAnswers<K, V> {
    fn new() -> Self {
        Self { kept: Mutex::default(), in_flight: Mutex::default() }
    }

    /// Returns the answer that is kept, or that of the review. Whoever needs the same answer meanwhile waits
    /// for it, and nobody asks twice. If the one who asks gives up, one of those who wait asks.
    ///
    /// # Errors
    /// The review fails, for all who wait for it. Its failure is not kept.
    async fn get_or_review(
        &self,
        key: K,
        review: impl Future<Output = Result<(V, Duration), AccessError>>,
    ) -> Result<V, AccessError> {
        if let Some(known) = self.get(&key) {
            return Ok(known);
        }
        let shared = self.shared_review(&key);
        let ask = async {
            // Another review may have ended since the answer was looked for.
            let answer = match self.get(&key) {
                Some(known) => Ok(known),
                None => review.await.map(|(answer, lasts)| {
                    self.put(key.clone(), answer.clone(), lasts);
                    answer
                }),
            };
            lock(&self.in_flight).remove(&key);
            answer
        };
        shared.get_or_init(|| ask).await.clone()
    }

    /// Returns the review that is asked now for this key, or a new one.
    fn shared_review(&self, key: &K) -> Arc<SharedReview<V>> {
        let mut in_flight = lock(&self.in_flight);
        if let Some(asked) = in_flight.get(key).and_then(Weak::upgrade) {
            return asked;
        }
        // Reviews on which everybody gave up have left their entries.
        in_flight.retain(|_, review| 0 < review.strong_count());
        let review = Arc::new(OnceCell::new());
        in_flight.insert(key.clone(), Arc::downgrade(&review));
        review
    }

    fn get(&self, key: &K) -> Option<V> {
        let kept = lock(&self.kept);
        let (value, until) = kept.get(key)?;
        (Instant::now() < *until).then(|| value.clone())
    }

    fn put(&self, key: K, value: V, lasts: Duration) {
        let mut kept = lock(&self.kept);
        if MOST_KEPT <= kept.len() {
            kept.clear();
        }
        kept.insert(key, (value, Instant::now() + lasts));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks an [`Access`] and keeps its answers for a while. Tokens are kept as digests.
pub(crate) struct KeptAccess<A> {
    access: A,
    users: CachedAnswers<Vec<u8>, Option<User>>,
    rights: CachedAnswers<(User, Right), bool>,
    reviews: Mutex<TokenBucket>,
    limits: Arc<UserLimits>,
}

impl<A: Access> KeptAccess<A> {
    pub(crate) fn new(access: A, limits: Arc<UserLimits>) -> Self {
        Self {
            access,
            limits,
            users: CachedAnswers::new(),
            rights: CachedAnswers::new(),
            reviews: Mutex::new(TokenBucket::full(TOKEN_REVIEWS)),
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.access.is_open()
    }

    pub(crate) fn user_source(
        &self,
        peer: Option<&PeerCertificates>,
        headers: &HeaderMap,
    ) -> UserSource {
        self.access.user_source(peer, headers)
    }

    /// Returns the user of a token. Returns `None` if nobody knows it.
    pub(crate) async fn user(&self, token: &str) -> Result<Option<User>, AccessError> {
        let key = digest(&SHA256, token.as_bytes()).as_ref().to_vec();
        let review = async {
            if !lock(&self.reviews).take(Instant::now(), TOKEN_REVIEWS, TOKEN_REVIEWS) {
                return Err(AccessError::Busy);
            }
            let user = self.access.user(token).await.map_err(AccessError::Unknown)?;
            let lasts = if user.is_some() { USER } else { NO_USER };
            Ok((user, lasts))
        };
        self.users.get_or_review(key, review).await
    }

    /// Returns true if the user has the right.
    pub(crate) async fn may(&self, user: &User, right: &Right) -> Result<bool, AccessError> {
        let review = async {
            // With --answers-auth=off everybody has every right, and none is reviewed.
            if !self.is_open() && !self.limits.allow_review(&user.name) {
                return Err(AccessError::Busy);
            }
            let may = self.access.may(user, right).await.map_err(AccessError::Unknown)?;
            Ok((may, if may { GRANTED } else { REFUSED }))
        };
        self.rights.get_or_review((user.clone(), right.clone()), review).await
    }

    /// Returns what the user may see of an answer that names these namespaces and queues.
    pub(crate) async fn visible(
        &self,
        user: &User,
        namespaces: &BTreeSet<String>,
        queues: &BTreeSet<String>,
    ) -> Result<Visible, AccessError> {
        let get = |resource, namespace: Option<&String>, name: Option<&String>| Right {
            verb: "get",
            resource,
            namespace: namespace.cloned(),
            name: name.cloned(),
        };
        let list = Right { verb: "list", resource: "nodes", namespace: None, name: None };
        let mut visible = Visible { nodes: self.may(user, &list).await?, ..Visible::default() };
        if !namespaces.is_empty() {
            visible.all_namespaces = self.may(user, &get("explanations", None, None)).await?;
        }
        let asked = namespaces.iter().filter(|_| !visible.all_namespaces);
        for namespace in asked.take(MOST_NAMESPACES) {
            if self.may(user, &get("explanations", Some(namespace), None)).await? {
                visible.namespaces.insert(namespace.clone());
            }
        }
        let sees_all = !queues.is_empty() && self.may(user, &get("queues", None, None)).await?;
        if sees_all {
            visible.queues.clone_from(queues);
        }
        for queue in queues.iter().filter(|_| !sees_all).take(MOST_QUEUES) {
            if self.may(user, &get("queues", None, Some(queue))).await? {
                visible.queues.insert(queue.clone());
            }
        }
        Ok(visible)
    }
}

/// Namespaces and queues that are asked about for one answer; further ones are hidden. Thus one
/// answer needs fewer reviews than [`UserLimits::allow_review`] lets through at once.
const MOST_NAMESPACES: usize = 20;
const MOST_QUEUES: usize = 50;

/// What a user may see of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visible {
    /// True if the names of all jobs are shown.
    pub all_namespaces: bool,
    /// Namespaces in which the names of jobs are shown.
    pub namespaces: BTreeSet<String>,
    /// True if the names of nodes are shown.
    pub nodes: bool,
    /// Queues whose numbers are shown.
    pub queues: BTreeSet<String>,
}

impl Visible {
    /// True if the names of jobs in this namespace are shown.
    pub(crate) fn shows(&self, namespace: &str) -> bool {
        self.all_namespaces || self.namespaces.contains(namespace)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::{join, join_all};
    use tokio::sync::Semaphore;
    use tokio::task::{JoinHandle, yield_now};

    use super::*;

    #[derive(Default)]
    struct Counted {
        n_tokens: AtomicUsize,
        n_rights: AtomicUsize,
    }

    impl Access for Counted {
        async fn user(&self, token: &str) -> Result<Option<User>, String> {
            self.n_tokens.fetch_add(1, Ordering::Relaxed);
            match token {
                "down" => Err("refused".to_owned()),
                "jo" => Ok(Some(User { name: "jo".to_owned(), ..User::default() })),
                _ => Ok(None),
            }
        }

        async fn may(&self, _user: &User, right: &Right) -> Result<bool, String> {
            self.n_rights.fetch_add(1, Ordering::Relaxed);
            Ok(right.namespace.as_deref() == Some("ml"))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn ans_77_answers_about_tokens_are_kept_for_a_while() {
        let access = KeptAccess::new(Counted::default(), Arc::default());
        let n_asked = || access.access.n_tokens.load(Ordering::Relaxed);
        for (token, lasts) in [("jo", USER), ("nobody", NO_USER)] {
            let before = n_asked();
            for wait in [Duration::ZERO, lasts - Duration::from_millis(1)] {
                tokio::time::advance(wait).await;
                assert_eq!(access.user(token).await.unwrap().is_some(), token == "jo");
            }
            assert_eq!(n_asked(), before + 1, "{token}");
            tokio::time::advance(Duration::from_millis(1)).await;
            access.user(token).await.unwrap();
            assert_eq!(n_asked(), before + 2, "{token}");
        }
        for _ in 0..2 {
            assert_eq!(access.user("down").await, Err(AccessError::Unknown("refused".to_owned())));
        }
        assert_eq!(n_asked(), 6, "a failure is not kept");
    }

    #[tokio::test(start_paused = true)]
    async fn ans_77_invented_tokens_are_reviewed_ten_times_a_second() {
        let access = KeptAccess::new(Counted::default(), Arc::default());
        for number in 0..TOKEN_REVIEWS {
            assert_eq!(access.user(&number.to_string()).await, Ok(None));
        }
        assert_eq!(access.user("one more").await, Err(AccessError::Busy));
        assert_eq!(access.user("0").await, Ok(None), "what is known needs no review");
        tokio::time::advance(Duration::from_millis(100)).await;
        assert_eq!(access.user("one more").await, Ok(None));
    }

    #[tokio::test(start_paused = true)]
    async fn ans_78_rights_are_kept_shorter_and_refusals_shortest() {
        let access = KeptAccess::new(Counted::default(), Arc::default());
        let jo = User { name: "jo".to_owned(), ..User::default() };
        for (namespace, lasts) in [("ml", GRANTED), ("prod", REFUSED)] {
            let namespace = Some(namespace.to_owned());
            let right = Right { verb: "get", resource: "explanations", namespace, name: None };
            let before = access.access.n_rights.load(Ordering::Relaxed);
            for wait in [Duration::ZERO, lasts - Duration::from_millis(1), Duration::from_millis(1)]
            {
                tokio::time::advance(wait).await;
                access.may(&jo, &right).await.unwrap();
            }
            assert_eq!(access.access.n_rights.load(Ordering::Relaxed), before + 2);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn ans_78_rights_of_one_user_are_reviewed_forty_times_a_second() {
        let access = KeptAccess::new(Counted::default(), Arc::default());
        let user = |name: &str| User { name: name.to_owned(), ..User::default() };
        let right = |number: usize| Right {
            verb: "get",
            resource: "explanations",
            namespace: Some(format!("n{number}")),
            name: None,
        };
        let (jo, ann) = (user("jo"), user("ann"));
        for number in 0..200 {
            assert_eq!(access.may(&jo, &right(number)).await, Ok(false), "{number}");
        }
        assert_eq!(access.may(&jo, &right(200)).await, Err(AccessError::Busy));
        assert_eq!(access.may(&jo, &right(0)).await, Ok(false), "what is known needs no review");
        assert_eq!(access.may(&ann, &right(200)).await, Ok(false), "each user has a bucket");
        tokio::time::advance(Duration::from_secs(1)).await;
        let mut n_reviewed = 0;
        for number in 200..300 {
            n_reviewed += usize::from(access.may(&jo, &right(number)).await.is_ok());
        }
        assert_eq!(n_reviewed, 40);
        let open = KeptAccess::new(Everybody, Arc::default());
        for number in 0..200 {
            assert_eq!(open.may(&jo, &right(number)).await, Ok(true), "nobody is asked");
        }
    }

    /// Each review waits for a permit, and fails once the permits are closed.
    struct SlowReviews {
        n_asked: AtomicUsize,
        permits: Semaphore,
    }

    impl SlowReviews {
        async fn review(&self) -> Result<(), String> {
            self.n_asked.fetch_add(1, Ordering::Relaxed);
            self.permits.acquire().await.map_err(|_| "closed".to_owned())?.forget();
            Ok(())
        }
    }

    impl Access for SlowReviews {
        async fn user(&self, token: &str) -> Result<Option<User>, String> {
            self.review().await?;
            Ok(Some(User { name: token.to_owned(), ..User::default() }))
        }

        async fn may(&self, _user: &User, _right: &Right) -> Result<bool, String> {
            self.review().await.map(|()| true)
        }
    }

    static LIST_NODES: Right =
        Right { verb: "list", resource: "nodes", namespace: None, name: None };

    fn slow() -> Arc<KeptAccess<SlowReviews>> {
        let reviews = SlowReviews { n_asked: AtomicUsize::new(0), permits: Semaphore::new(0) };
        Arc::new(KeptAccess::new(reviews, Arc::default()))
    }

    /// Asks in a task of its own, which has asked or waits when this returns.
    async fn asked(access: &Arc<KeptAccess<SlowReviews>>) -> JoinHandle<Result<bool, AccessError>> {
        let access = access.clone();
        let question = async move { access.may(&User::default(), &LIST_NODES).await };
        let task = tokio::spawn(question);
        yield_now().await;
        task
    }

    /// More questions at once than one user, and than all tokens, have reviews.
    #[tokio::test]
    async fn ans_78_equal_reviews_at_the_same_time_are_one() {
        let access = slow();
        let jo = User { name: "jo".to_owned(), ..User::default() };
        let rights = join_all((0..300).map(|_| access.may(&jo, &LIST_NODES)));
        let permit = async || access.access.permits.add_permits(1);
        let (answers, ()) = join(rights, permit()).await;
        assert!(answers.iter().all(|answer| *answer == Ok(true)), "{answers:?}");
        let users = join_all((0..300).map(|_| access.user("jo")));
        let (answers, ()) = join(users, permit()).await;
        assert!(answers.iter().all(|answer| *answer == Ok(Some(jo.clone()))), "{answers:?}");
        assert_eq!(access.access.n_asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn ans_78_if_who_asks_gives_up_the_next_one_asks() {
        let access = slow();
        let n_asked = || access.access.n_asked.load(Ordering::Relaxed);
        let (first, second, third) =
            (asked(&access).await, asked(&access).await, asked(&access).await);
        assert_eq!(n_asked(), 1);
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        access.access.permits.add_permits(1);
        assert_eq!((second.await.unwrap(), third.await.unwrap()), (Ok(true), Ok(true)));
        assert_eq!(n_asked(), 2, "the second one has asked again");
    }

    #[tokio::test]
    async fn ans_78_a_review_on_which_all_gave_up_is_asked_anew() {
        let access = slow();
        let alone = asked(&access).await;
        alone.abort();
        assert!(alone.await.unwrap_err().is_cancelled());
        access.access.permits.add_permits(1);
        assert_eq!(access.may(&User::default(), &LIST_NODES).await, Ok(true));
        assert_eq!(access.access.n_asked.load(Ordering::Relaxed), 2);
        assert!(lock(&access.rights.in_flight).is_empty());
    }

    #[tokio::test]
    async fn ans_78_a_review_that_fails_fails_for_all_who_wait_for_it() {
        let access = slow();
        let (first, second) = (asked(&access).await, asked(&access).await);
        access.access.permits.close();
        let closed = || Err(AccessError::Unknown("closed".to_owned()));
        assert_eq!((first.await.unwrap(), second.await.unwrap()), (closed(), closed()));
        assert_eq!(access.access.n_asked.load(Ordering::Relaxed), 1);
        assert_eq!(access.may(&User::default(), &LIST_NODES).await, closed());
        assert_eq!(access.access.n_asked.load(Ordering::Relaxed), 2, "a failure is not kept");
    }

    #[tokio::test(start_paused = true)]
    async fn ans_79_one_review_for_all_queues_then_fifty() {
        let access = KeptAccess::new(Counted::default(), Arc::default());
        let queues: BTreeSet<String> = (0..60).map(|number| format!("q{number:02}")).collect();
        let jo = User { name: "jo".to_owned(), ..User::default() };
        let visible = access.visible(&jo, &BTreeSet::new(), &queues).await.unwrap();
        assert!(visible.queues.is_empty(), "{visible:?}");
        assert_eq!(access.access.n_rights.load(Ordering::Relaxed), 1 + 1 + MOST_QUEUES);
        let open = KeptAccess::new(Everybody, Arc::default());
        let visible = open.visible(&jo, &BTreeSet::new(), &queues).await.unwrap();
        assert_eq!(visible.queues, queues);
    }

    #[tokio::test(start_paused = true)]
    async fn ans_79_one_review_for_all_namespaces_then_twenty() {
        let access = KeptAccess::new(Counted::default(), Arc::default());
        let names = |from: usize| -> BTreeSet<String> {
            let many = (from..40).map(|number| format!("a{number:02}"));
            many.chain(["ml".to_owned()]).collect()
        };
        let jo = User { name: "jo".to_owned(), ..User::default() };
        let visible = access.visible(&jo, &names(30), &BTreeSet::new()).await.unwrap();
        assert!(visible.shows("ml") && !visible.shows("a30") && !visible.nodes);
        let before = access.access.n_rights.load(Ordering::Relaxed);
        assert_eq!(before, 1 + 1 + 11);
        let jo = User { name: "jo2".to_owned(), ..User::default() };
        let visible = access.visible(&jo, &names(0), &BTreeSet::new()).await.unwrap();
        assert!(!visible.shows("ml"), "the twenty-first namespace is hidden");
        let after = access.access.n_rights.load(Ordering::Relaxed);
        assert_eq!(after - before, 1 + 1 + MOST_NAMESPACES);
    }
}
