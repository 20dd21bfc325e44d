//! Claims for devices after a bind: given back when it failed, and kept when it did not
//! (plugins-nodes.md 6.7).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use vc_engine::Effect;
use vc_model::{Allocation, DeviceResult, ObjectKey};

use crate::fake::{json_answer, list, not_found, pod, refusal};
use crate::writer::{POD, edge, key, uid};

const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims";

fn claim(status: Value) -> Value {
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "ns", "uid": "uid-c", "resourceVersion": "3"},
        "spec": {}, "status": status})
}

fn reserved() -> Value {
    json!({"allocation": {"devices": {"results": []}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "uid-p"}]})
}

fn unreserve() -> Effect {
    Effect::UnreserveClaims { pod: key(), uid: uid(), claims: vec!["c".into()] }
}

/// The answer to a bind may be lost: whether the pod needs its claims is what the server says.
#[tokio::test(start_paused = true)]
async fn claims_of_a_pod_that_is_bound_after_all_stay_reserved() {
    for (node, n_puts) in [(Value::Null, 1), (json!("n1"), 0)] {
        let (log, outcomes) = edge(move |seen| match seen.line.as_str() {
            line if line.ends_with("/pods/p") => {
                let mut stored = pod("p");
                stored["spec"]["nodeName"] = node.clone();
                json_answer(200, stored)
            }
            line if line.starts_with("PUT") => json_answer(200, seen.body.clone()),
            _ => list(&[claim(reserved())]),
        })
        .run(vec![unreserve()])
        .await;
        let puts = log.of(&format!("PUT {CLAIMS}/c/status"));
        assert_eq!((puts.len(), outcomes.len()), (n_puts, 0));
        assert!(puts.iter().all(|put| put.body["status"]["reservedFor"] == json!([])));
    }
}

#[tokio::test(start_paused = true)]
async fn claims_are_given_back_however_often_that_fails() {
    let edge = edge(|seen| match (seen.line.as_str(), seen.before) {
        (line, 0) if line.ends_with("/pods/p") => refusal(500, "InternalError", "etcd"),
        (line, _) if line.ends_with("/pods/p") => not_found(),
        (line, 0..2) if line.starts_with("PUT") => refusal(503, "ServiceUnavailable", "busy"),
        (line, _) if line.starts_with("PUT") => json_answer(200, seen.body.clone()),
        _ => list(&[claim(reserved())]),
    });
    edge.send(unreserve()).await;
    // Of the paused clock, which runs on only while nobody has anything to do: all attempts are over.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(edge.log.of(&format!("GET {POD}")).len(), 4);
    assert_eq!(edge.log.of(&format!("PUT {CLAIMS}/c/status")).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn only_the_devices_that_were_decided_about_are_taken_away() {
    let deallocate = || {
        let chosen = DeviceResult { request: "r".into(), ..DeviceResult::default() };
        let allocation = Allocation { results: vec![chosen], ..Allocation::default() };
        Effect::DeallocateClaim {
            claim: ObjectKey::new("ns", "c"),
            uid: "uid-c".into(),
            allocation: Arc::new(allocation),
            consumer: uid(),
        }
    };
    let result =
        |device: &str| json!([{"request": "r", "driver": "", "pool": "", "device": device}]);
    for (device, n_puts) in [("", 1), ("other", 0)] {
        let mut status = reserved();
        status["allocation"]["devices"]["results"] = result(device);
        let (log, _) = edge(move |seen| match seen.line.starts_with("PUT") {
            true => json_answer(200, seen.body.clone()),
            false => list(&[claim(status.clone())]),
        })
        .run(vec![deallocate()])
        .await;
        assert_eq!(log.of("PUT").len(), n_puts, "{device:?}");
    }
}
