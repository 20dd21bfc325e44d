//! Leader election by client-go's protocol (core.md 1.4, C-05; rust-ecosystem.md case 12), under a
//! clock of the tests.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};
use vc_kube::{Clients, Election, Leadership, follow, inbox};

use crate::fake::{self, Answer, Log, Seen, json_answer, not_found, refusal};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases/volcano";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases";
const EVENTS: &str = "POST /api/v1/namespaces/volcano-system/events";

/// The Lease as an API server stores it.
#[derive(Clone, Default)]
struct Stored(Arc<Mutex<(Option<Value>, u64)>>);

impl Stored {
    fn lease(&self) -> Value {
        self.0.lock().unwrap().0.clone().unwrap()
    }

    fn spec(&self, field: &str) -> Value {
        self.lease()["spec"][field].clone()
    }

    /// Somebody else has, or renews, the Lease.
    fn hold(&self, holder: &str, transitions: u32) {
        let (lease, version) = &mut *self.0.lock().unwrap();
        *version += 1;
        let metadata = json!({"name": "volcano", "namespace": "volcano-system",
            "uid": "uid-lease", "resourceVersion": version.to_string(),
            "labels": {"keep": "this"}});
        // A clock that has nothing to do with ours.
        let renewed = format!("2001-01-01T00:00:{:02}.000000Z", *version % 60);
        *lease = Some(json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": metadata, "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15,
                "acquireTime": "2001-01-01T00:00:00.000000Z", "renewTime": renewed,
                "leaseTransitions": transitions}}));
    }

    fn answer(&self, seen: &Seen) -> Option<Answer> {
        let lease = self.0.lock().unwrap().0.clone();
        match seen.line.split(' ').next().unwrap() {
            "GET" => lease.map_or_else(not_found, |lease| json_answer(200, lease)),
            "POST" if seen.line.ends_with("/events") => json_answer(201, seen.body.clone()),
            "POST" if lease.is_none() => self.store(seen.body.clone()),
            "PUT" if lease.is_some_and(|lease| version(&lease) == version(&seen.body)) => {
                self.store(seen.body.clone())
            }
            "PUT" => refusal(409, "Conflict", "the object has been modified"),
            _ => refusal(409, "AlreadyExists", "exists"),
        }
    }

    fn store(&self, mut object: Value) -> Option<Answer> {
        let (lease, version) = &mut *self.0.lock().unwrap();
        *version += 1;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        object["metadata"]["uid"] = json!("uid-lease");
        *lease = Some(object.clone());
        json_answer(200, object)
    }
}

fn version(lease: &Value) -> &Value {
    &lease["metadata"]["resourceVersion"]
}

fn election(identity: &str) -> Election {
    Election {
        namespace: "volcano-system".into(),
        name: "volcano".into(),
        identity: identity.into(),
        component: "volcano".into(),
        lease: Duration::from_secs(15),
        renew: Duration::from_secs(10),
        retry: Duration::from_secs(2),
    }
}

fn client(stored: &Stored) -> (Clients, Log) {
    let stored = stored.clone();
    let (client, log) = fake::client(move |seen| stored.answer(seen));
    (Clients::shared(client), log)
}

async fn win(clients: &Clients, identity: &str) -> Leadership {
    election(identity).win(clients, |_| {}).await
}

/// What never comes fails the test: the clock that nobody waits for runs on by itself.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(300), future).await.expect("it comes")
}

#[tokio::test(start_paused = true)]
async fn a_missing_lease_is_created_and_the_event_told() {
    let stored = Stored::default();
    let (clients, log) = client(&stored);
    let _leadership = soon(win(&clients, "a")).await;
    assert_eq!(stored.spec("holderIdentity"), "a");
    assert_eq!(stored.spec("leaseDurationSeconds"), 15);
    assert_eq!(stored.spec("leaseTransitions"), 0);
    assert_eq!(stored.spec("acquireTime"), stored.spec("renewTime"));
    // Of the paused clock: nobody waits for the event, which is written by now.
    sleep(Duration::from_secs(1)).await;
    let events = log.of(EVENTS);
    let event = &events[0].body;
    assert_eq!(event["reason"], "LeaderElection");
    assert_eq!((&event["type"], &event["message"]), (&json!("Normal"), &json!("a became leader")));
    assert_eq!(event["source"]["component"], "volcano");
    let about = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "namespace": "volcano-system", "name": "volcano", "uid": "uid-lease"});
    assert_eq!(event["involvedObject"], about);
    assert_eq!(events.len(), 1);
    assert_eq!(log.of(&format!("POST {LEASES}")).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn eco_12_a_lease_changes_hands_only_when_it_is_not_renewed() {
    let stored = Stored::default();
    stored.hold("go", 3);
    let (clients, log) = client(&stored);
    let mut standby = std::pin::pin!(win(&clients, "b"));
    for _ in 0..5 {
        assert!(timeout(Duration::from_secs(10), &mut standby).await.is_err());
        stored.hold("go", 3);
    }
    assert!(log.of("PUT").is_empty());
    // From the last renewal that is seen it lasts 15 s; the Lease is read every two.
    let since = Instant::now();
    let _leader = soon(standby).await;
    let waited = since.elapsed().as_secs();
    assert!((15..=18).contains(&waited), "{waited}");
    assert_eq!(stored.spec("holderIdentity"), "b");
    assert_eq!(stored.spec("leaseTransitions"), 4);
    assert_eq!(stored.spec("acquireTime"), stored.spec("renewTime"));
    // What others have in the object stays.
    assert_eq!(stored.lease()["metadata"]["labels"]["keep"], "this");
}

#[tokio::test(start_paused = true)]
async fn a_leader_renews_and_keeps_when_it_began() {
    let stored = Stored::default();
    let (clients, log) = client(&stored);
    let mut leader = soon(win(&clients, "a")).await;
    let acquired = stored.spec("acquireTime");
    assert!(timeout(Duration::from_secs(60), leader.lost()).await.is_err());
    let renewals = log.of(&format!("PUT {LEASE}")).len();
    assert!((28..=30).contains(&renewals), "{renewals}");
    assert_eq!(stored.spec("acquireTime"), acquired);
    assert_eq!(stored.spec("leaseTransitions"), 0);
}

#[tokio::test(start_paused = true)]
async fn eco_12_of_two_that_read_the_same_version_one_leads() {
    let stored = Stored::default();
    stored.hold("", 7);
    let (clients, _) = client(&stored);
    let (a, b) = (win(&clients, "a"), win(&clients, "b"));
    let second = Duration::from_secs(1);
    let (a, b) = tokio::join!(timeout(second, a), timeout(second, b));
    assert_eq!([a.is_ok(), b.is_ok()].iter().filter(|won| **won).count(), 1);
    assert_eq!(stored.spec("leaseTransitions"), 8);
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_taken_stops_at_the_next_attempt() {
    let stored = Stored::default();
    let (clients, _) = client(&stored);
    let mut leader = soon(win(&clients, "a")).await;
    stored.hold("go", 1);
    let since = Instant::now();
    soon(leader.lost()).await;
    assert!(since.elapsed() <= Duration::from_secs(3), "{:?}", since.elapsed());
    assert_eq!(stored.spec("holderIdentity"), "go");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_at_the_deadline() {
    // A refusal, and no answer at all.
    for code in [Some(500), None] {
        let (stored, broken) = (Stored::default(), Arc::new(AtomicBool::new(false)));
        let (server, fails) = (stored.clone(), broken.clone());
        let (client, _) = fake::client(move |seen| match fails.load(Ordering::Relaxed) {
            true => code.and_then(|code| refusal(code, "InternalError", "broken")),
            false => server.answer(seen),
        });
        let clients = Clients::shared(client);
        let mut leader = soon(win(&clients, "a")).await;
        broken.store(true, Ordering::Relaxed);
        let since = Instant::now();
        soon(leader.lost()).await;
        let waited = since.elapsed().as_secs();
        assert!((9..=11).contains(&waited), "{waited}");
    }
}

#[tokio::test(start_paused = true)]
async fn core_14_a_released_lease_is_taken_at_once() {
    let stored = Stored::default();
    let (clients, _) = client(&stored);
    let leader = soon(win(&clients, "a")).await;
    let mut standby = std::pin::pin!(win(&clients, "b"));
    assert!(timeout(Duration::from_secs(20), &mut standby).await.is_err());
    soon(leader.release()).await;
    assert_eq!(stored.spec("holderIdentity"), "");
    assert_eq!(stored.spec("leaseDurationSeconds"), 1);
    assert_eq!(stored.spec("leaseTransitions"), 0);
    let since = Instant::now();
    let _leader = soon(standby).await;
    assert!(since.elapsed() < Duration::from_secs(3), "{:?}", since.elapsed());
    assert_eq!(stored.spec("holderIdentity"), "b");
    assert_eq!(stored.spec("leaseTransitions"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_else_holds_is_not_given_back() {
    let stored = Stored::default();
    let (clients, log) = client(&stored);
    let leader = soon(win(&clients, "a")).await;
    // It was taken since the last renewal.
    stored.hold("b", 1);
    let (before, n_writes) = (stored.lease(), log.of("PUT").len());
    leader.release().await;
    assert_eq!(stored.lease(), before);
    assert_eq!(log.of("PUT").len(), n_writes);
}

#[tokio::test(start_paused = true)]
async fn a_standby_knows_whether_it_is_connected() {
    let stored = Stored::default();
    stored.hold("go", 0);
    let server = stored.clone();
    let (client, _) = fake::client(move |seen| match seen.before {
        1 => refusal(403, "Forbidden", "leases is forbidden"),
        _ => server.answer(seen),
    });
    let reported = RefCell::new(Vec::new());
    let clients = Clients::shared(client);
    let standby = election("b").win(&clients, |news| reported.borrow_mut().push(news.connected));
    assert!(timeout(Duration::from_secs(5), standby).await.is_err());
    assert_eq!(*reported.borrow(), [true, false, true]);
}

/// No watch shows it: the server has given out later versions again.
#[tokio::test(start_paused = true)]
async fn a_lease_that_has_gone_back_has_all_kinds_listed_again() {
    const PODS: &str = "GET /api/v1/pods";
    let stored = Stored::default();
    stored.0.lock().unwrap().1 = 100;
    let of_lease = stored.clone();
    let (client, log) = fake::client(move |seen| {
        let is_ours = seen.line.contains("/leases") || seen.line.ends_with("/events");
        if is_ours { of_lease.answer(seen) } else { fake::watch(vec![fake::end_of_list("1")]) }
    });
    let clients = Clients::shared(client);
    let _leadership = soon(win(&clients, "a")).await;
    let (sender, _receiver) = inbox();
    let _feeds = follow(&clients, &[], &sender, &fake::unobserved());
    sleep(Duration::from_secs(10)).await;
    assert_eq!(log.of(PODS).len(), 1);
    stored.0.lock().unwrap().1 = 50;
    stored.hold("a", 0);
    sleep(Duration::from_secs(30)).await;
    let asked = log.of(PODS);
    assert_eq!(asked.len(), 2, "once");
    assert!(asked[1].is_streaming_list());
}
