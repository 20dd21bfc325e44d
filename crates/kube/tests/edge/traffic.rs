//! Many writes at once: events give way to decisions, and threads rest while the server has enough to
//! do (core.md 7.9, 11).

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::mpsc;
use vc_engine::{About, Effect};
use vc_kube::{Clients, inbox, write};
use vc_model::ObjectKey;

use crate::fake::{self, not_found};
use crate::writer::{EVENTS, POD, bind, condition_event, edge, key, success, uid};

#[tokio::test(start_paused = true)]
async fn a_repeated_event_raises_its_count() {
    let (log, _) = edge(|_| success()).run(vec![condition_event(); 3]).await;
    let created = &log.of(EVENTS)[0].body;
    assert_eq!(created["source"]["component"], "volcano");
    assert_eq!(created["involvedObject"]["apiVersion"], "scheduling.volcano.sh/v1beta1");
    assert_eq!(created["count"], 1);
    assert_eq!(log.of(EVENTS).len(), 1);
    let name = created["metadata"]["name"].as_str().unwrap();
    let patches = log.of(&format!("PATCH /api/v1/namespaces/ns/events/{name}"));
    let counts: Vec<&Value> = patches.iter().map(|seen| &seen.body["count"]).collect();
    assert_eq!(counts, [2, 3]);
}

#[tokio::test(start_paused = true)]
async fn eco_16_a_flood_of_events_delays_no_bind() {
    let (client, log) = fake::client(|seen| match seen.line.contains("/events") {
        true => None,
        false => success(),
    });
    let (sender, _outcomes) = inbox();
    let (effects, batches) = mpsc::channel(4);
    let writer =
        write(Clients::shared(client), "volcano".into(), sender, batches, fake::unobserved());
    let writer = tokio::spawn(writer);
    let flood = (0..10_000).map(|index| {
        let about = About::Pod { key: key(), uid: uid() };
        let message = format!("m{index}").into();
        Effect::Event { about, warning: false, reason: "Test", message }
    });
    effects.send(flood.chain([bind()]).collect::<Vec<_>>().into()).await.unwrap();
    while log.of(&format!("POST {POD}/binding")).is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(log.of(EVENTS).len() <= 1);
    writer.abort();
}

#[tokio::test(start_paused = true)]
async fn events_yield_while_decisions_are_written() {
    let silent = edge(|_| None);
    let events = vec![condition_event(); 3];
    silent.effects.send([vec![bind()], events].concat().into()).await.unwrap();
    // Of the paused clock: one and a half times as long as an event yields.
    tokio::time::sleep(Duration::from_millis(75)).await;
    // One at its slow pace, the others wait for the answer that does not come.
    assert_eq!(silent.log.of("POST /api/v1/namespaces/ns/events").len(), 1);
    assert_eq!(silent.log.of("PATCH").len(), 0);
    silent.writer.abort();
    let (log, _) = edge(|_| success()).run(vec![bind(), condition_event()]).await;
    assert_eq!(log.of("POST /api/v1/namespaces/ns/events").len(), 2);
}

/// So many effects of their own objects.
fn binds(count: usize) -> Vec<Effect> {
    let bind = |index| {
        let (pod, uid) = (ObjectKey::new("ns", &format!("p{index}")), format!("u{index}").into());
        Effect::Bind { pod, uid, node: "n1".into(), annotations: Vec::new(), node_lock: None }
    };
    (0..count).map(bind).collect()
}

fn tales(count: usize) -> Vec<Effect> {
    let event = |index| {
        let (key, uid) = (ObjectKey::new("ns", &format!("p{index}")), format!("u{index}").into());
        let about = About::Pod { key, uid };
        Effect::Event { about, warning: false, reason: "Test", message: "m".into() }
    };
    (0..count).map(event).collect()
}

#[tokio::test(start_paused = true)]
async fn threads_rest_only_while_more_waits_than_may_be_in_flight() {
    let cases = [
        (binds(10), 10, false),
        (binds(200), 96, true),
        (tales(10), 10, false),
        (tales(200), 32, true),
    ];
    for (effects, n_in_flight, rests) in cases {
        let (client, log) = fake::client(|seen| match seen.line.starts_with("POST") {
            true => None,
            false => not_found(),
        });
        let clients = Clients::shared(client);
        let backlog = clients.backlog.clone();
        let (sender, _outcomes) = inbox();
        let (decisions, batches) = mpsc::channel(4);
        let writer = write(clients, "volcano".into(), sender, batches, fake::unobserved());
        let writer = tokio::spawn(writer);
        decisions.send(effects.into()).await.unwrap();
        while log.of("POST").len() < n_in_flight {
            tokio::task::yield_now().await;
        }
        // Whatever else would be sent without an answer is sent now.
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(log.of("POST").len(), n_in_flight);
        assert_eq!(backlog.rest(Instant::now()).is_some(), rests, "{n_in_flight}");
        // No call is answered, so that all end by their time.
        drop(decisions);
        writer.await.unwrap();
        assert_eq!(backlog.rest(Instant::now()), None);
    }
}
