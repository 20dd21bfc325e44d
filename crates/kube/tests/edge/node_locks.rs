//! Locks of nodes around binds (plugins-nodes.md 16.8): written before the bind, respected where
//! somebody else has one, and removed when the bind is refused.

use serde_json::{Value, json};
use vc_engine::{Effect, NodeLock};
use vc_model::ClusterEvent;

use crate::fake::{Answer, Log, Seen, json_answer, refusal};
use crate::writer::{POD, bind, edge, success};

const NODE: &str = "/api/v1/nodes/n1";
/// 2026-01-01T00:10:00Z.
const NOW_MICROS: i64 = 1_767_226_200_000_000;

fn locked_bind() -> Effect {
    let Effect::Bind { pod, uid, node, annotations, .. } = bind() else { panic!("not a bind") };
    let lock = NodeLock { annotation: "hamivgpu".into(), now_micros: NOW_MICROS };
    Effect::Bind { pod, uid, node, annotations, node_lock: Some(Box::new(lock)) }
}

fn node(annotations: &Value) -> Option<Answer> {
    let metadata = json!({"name": "n1", "resourceVersion": "7", "annotations": annotations});
    json_answer(200, json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata}))
}

/// Binds while the node has these annotations. The answer to the bind is `bound`.
async fn run(annotations: Value, bound: fn() -> Option<Answer>) -> (Log, Vec<ClusterEvent>) {
    edge(move |seen: &Seen| match &*seen.line {
        line if line == format!("GET {NODE}") => node(&annotations),
        line if line == format!("PUT {NODE}") => json_answer(200, seen.body.clone()),
        line if line.ends_with("/binding") => bound(),
        _ => json_answer(200, crate::fake::pod("p")),
    })
    .run(vec![locked_bind()])
    .await
}

/// Values of the lock that were written, `null` where it was removed.
fn written(log: &Log) -> Vec<Value> {
    let locks = log.of(&format!("PUT {NODE}"));
    locks.iter().map(|seen| seen.body["metadata"]["annotations"]["hamivgpu"].clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_node_is_locked_before_the_bind() {
    let old = json!({"hamivgpu": "2026-01-01T00:05:00Z", "other": "x"});
    for annotations in [json!({}), old, json!({"hamivgpu": "not a time"})] {
        let (log, outcomes) = run(annotations, success).await;
        assert!(outcomes.is_empty(), "{outcomes:?}");
        assert_eq!(written(&log), [json!("2026-01-01T00:10:00Z")]);
        assert_eq!(log.of(&format!("POST {POD}/binding")).len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_somebody_has_locked_takes_no_bind() {
    let (log, outcomes) = run(json!({"hamivgpu": "2026-01-01T00:05:01Z"}), success).await;
    assert_eq!(written(&log), [] as [Value; 0]);
    assert_eq!(log.of(&format!("POST {POD}/binding")).len(), 0);
    let ClusterEvent::BindFailed { error, pauses, .. } = &outcomes[0] else { panic!() };
    assert_eq!(error, "the node has been locked within 5 minutes");
    assert!(!pauses, "the lock ends soon");
}

#[tokio::test(start_paused = true)]
async fn a_refused_bind_removes_its_lock_and_no_other() {
    let refused = || refusal(403, "Forbidden", "no");
    let edge = edge(move |seen: &Seen| match &*seen.line {
        // The second read sees what the first write has left.
        line if line == format!("GET {NODE}") && seen.before == 0 => node(&json!({})),
        line if line == format!("GET {NODE}") => node(&json!({"hamivgpu": "2026-01-01T00:10:00Z"})),
        line if line == format!("PUT {NODE}") => json_answer(200, seen.body.clone()),
        line if line.ends_with("/binding") => refused(),
        _ => json_answer(200, crate::fake::pod("p")),
    });
    let (log, outcomes) = edge.run(vec![locked_bind()]).await;
    assert!(matches!(outcomes[0], ClusterEvent::BindFailed { .. }), "{outcomes:?}");
    assert_eq!(written(&log), [json!("2026-01-01T00:10:00Z"), json!(null)]);
    let (log, _) = run(json!({}), refused).await;
    assert_eq!(written(&log).len(), 1, "the lock is not there any more");
}
