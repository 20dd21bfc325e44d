//! The ConfigMap with the usage of fairshare: what is read of it, and what stays when it is written.
//! Specification: fair-share.md 11, whose cases the tests are named after.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use vc_engine::Effect;
use vc_kube::{Clients, EngineMessage, inbox, read_saved_usage, read_saved_usage_once, write};
use vc_model::{ClusterEvent, ObjectKey, SavedAccount, SavedUsage, UsageScale};

use crate::fake::{self, Answer, Log, Seen, json_answer, not_found, refusal, unobserved};

const MAPS: &str = "/api/v1/namespaces/ns/configmaps";

fn key() -> ObjectKey {
    ObjectKey::new("ns", "usage")
}

fn save(closed: i128) -> Effect {
    let account = SavedAccount {
        queue: "q".into(),
        account: "a".into(),
        closed,
        rate: 0,
        decayed_micros: 1_500_000,
    };
    let scale = UsageScale { half_life_micros: 60, origin_micros: 0, charge: "cpu".into() };
    let accounts = vec![account];
    let usage = SavedUsage { time_micros: 9, scale: Some(scale), accounts, shares: Vec::new() };
    Effect::SaveUsage { config_map: key(), usage: Arc::new(usage) }
}

fn stored(version: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": "usage", "namespace": "ns", "resourceVersion": version,
            "labels": {"app": "volcano-scheduler"}}})
}

/// Reads the ConfigMap first if `reads`, performs the effects one after the other, and returns the
/// requests and what the engine hears.
async fn perform(
    reads: bool,
    effects: Vec<Effect>,
    handle: impl Fn(&Seen) -> Option<Answer> + Send + Sync + 'static,
) -> (Log, Vec<ClusterEvent>) {
    let (client, log) = fake::client(handle);
    let clients = Clients::shared(client);
    if reads {
        read_saved_usage(&clients, &key()).await.unwrap();
    }
    let mut events = Vec::new();
    for effect in effects {
        let ((sender, mut outcomes), (effects, batches)) = (inbox(), mpsc::channel(1));
        effects.send(vec![effect].into()).await.unwrap();
        drop(effects);
        write(clients.clone(), "volcano".into(), sender, batches, unobserved()).await;
        while let Some(EngineMessage::Event(event)) = outcomes.recv().await {
            events.push(event);
        }
    }
    (log, events)
}

/// FS-80: other keys, labels and the version stay.
#[tokio::test(start_paused = true)]
async fn fs_state_foreign_keys() {
    let handle = |seen: &Seen| match seen.line.split(' ').next() {
        Some("GET") => json_answer(200, stored("7", json!({"note": "kept"}))),
        _ => json_answer(200, stored("8", json!({"note": "kept"}))),
    };
    let (log, heard) = perform(true, vec![save(5), save(6)], handle).await;
    let map = format!("{MAPS}/usage");
    let lines = ["GET", "PUT", "PUT"].map(|verb| format!("{verb} {map}"));
    assert_eq!(log.lines(), lines);
    let written: Vec<Value> = log.of("PUT").iter().map(|seen| seen.body.clone()).collect();
    for (body, version, closed) in [(&written[0], "7", "\"5\""), (&written[1], "8", "\"6\"")] {
        assert_eq!(body["metadata"]["resourceVersion"], version);
        assert_eq!(body["metadata"]["labels"]["app"], "volcano-scheduler");
        assert_eq!(body["data"]["note"], "kept");
        let state = r#"{"lastCycle":"1970-01-01T00:00:00.000009Z","queues":{"q":{"a":1.5}}}"#;
        assert_eq!(body["data"]["state.json"], state);
        assert!(body["data"]["exact.json"].as_str().unwrap().contains(closed));
    }
    assert!(heard.is_empty());
}

/// FS-82: a ConfigMap that does not exist is empty, and is created.
#[tokio::test(start_paused = true)]
async fn fs_state_missing() {
    let handle = |seen: &Seen| match seen.line.split(' ').next() {
        Some("GET") => not_found(),
        _ => json_answer(201, stored("1", json!({}))),
    };
    let (log, heard) = perform(true, vec![save(5)], handle).await;
    let map = format!("GET {MAPS}/usage");
    assert_eq!(log.lines(), [map.clone(), map, format!("POST {MAPS}")]);
    assert_eq!(log.of("POST")[0].body["metadata"]["name"], "usage");
    assert!(heard.is_empty());
}

/// FS-82: a text that cannot be read is kept under another key.
#[tokio::test(start_paused = true)]
async fn fs_state_corrupt() {
    for reads in [true, false] {
        let handle = |_: &Seen| json_answer(200, stored("7", json!({"state.json": "{"})));
        let (log, _) = perform(reads, vec![save(5)], handle).await;
        let body = &log.of("PUT")[0].body;
        assert_eq!(body["data"]["state.json.bad"], "{");
    }
}

/// FS-85: a write that meets a newer version is dropped; the next one is based on what is there.
#[tokio::test(start_paused = true)]
async fn fs_state_conflict() {
    let handle = |seen: &Seen| match (seen.line.split(' ').next(), seen.before) {
        (Some("GET"), n) => json_answer(200, stored(&format!("{}", 7 + n), json!({}))),
        (_, 0) => refusal(409, "Conflict", "the object has been modified"),
        _ => json_answer(200, stored("9", json!({}))),
    };
    let (log, heard) = perform(true, vec![save(5), save(6)], handle).await;
    let map = format!("{MAPS}/usage");
    let lines = ["GET", "PUT", "GET", "PUT"].map(|verb| format!("{verb} {map}"));
    assert_eq!(log.lines(), lines);
    assert!(matches!(heard[..], [ClusterEvent::UsageNotSaved]), "{heard:?}");
    assert_eq!(log.of("PUT")[1].body["metadata"]["resourceVersion"], "8");
}

/// FS-82: a refusal is told at once; another failure is repeated for a minute.
#[tokio::test(start_paused = true)]
async fn fs_82_what_cannot_be_read() {
    for (code, asks_once) in [(403, true), (500, false)] {
        let (client, log) = fake::client(move |_| refusal(code, "No", "no"));
        let error = read_saved_usage(&Clients::shared(client), &key()).await.unwrap_err();
        assert_eq!(error.to_string(), "no");
        assert_eq!(log.lines().len() == 1, asks_once, "{code}");
    }
    // A later attempt is one question.
    let (client, log) = fake::client(|_| refusal(500, "No", "no"));
    assert!(read_saved_usage_once(&Clients::shared(client), &key()).await.is_err());
    assert_eq!(log.lines().len(), 1);
    let handle = |_: &Seen| refusal(403, "Forbidden", "no");
    let (_, heard) = perform(false, vec![save(5)], handle).await;
    assert!(matches!(heard[..], [ClusterEvent::UsageNotSaved]), "{heard:?}");
}
