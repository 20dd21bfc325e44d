//! Writes that fail inside: the handler of the fake server runs in them, and panics. Specification:
//! core.md 4.5 (resync), 9, 11.

use std::sync::{Arc, Mutex};

use vc_engine::{Effect, Nomination};
use vc_kube::Observer;
use vc_model::{ClusterEvent, ObjectKey, PodGroupStatus, ReadAfter};

use crate::fake::{Answer, Seen, json_answer, pod};
use crate::writer::{
    EVENTS, Edge, POD, bind, condition, condition_event, key, observed, success, uid,
};

/// What cannot happen and has happened.
#[derive(Default)]
struct ObservedTexts(Mutex<Vec<&'static str>>);

impl Observer for ObservedTexts {
    fn internal_error(&self, kind: &'static str) {
        self.0.lock().unwrap().push(kind);
    }
}

/// The first request of these lines panics; the pod is there.
fn edge(lines: &'static [&'static str]) -> (Edge, Arc<ObservedTexts>) {
    let reported = Arc::new(ObservedTexts::default());
    let handle = move |seen: &Seen| -> Option<Answer> {
        let is_broken = lines.iter().any(|line| seen.line.starts_with(line));
        assert!(seen.before != 0 || !is_broken, "injected: {}", seen.line);
        match seen.line.starts_with("GET") {
            true => json_answer(200, pod("p")),
            false => success(),
        }
    };
    (observed(handle, reported.clone()), reported)
}

#[tokio::test(start_paused = true)]
async fn a_bind_that_fails_inside_has_failed_and_its_pod_is_looked_at_until_it_is_seen() {
    let binding = format!("POST {POD}/binding");
    for (lines, kinds) in [
        (&["POST /api/v1/namespaces/ns/pods/"][..], &["write"][..]),
        (&["POST /api/v1/namespaces/ns/pods/", "GET"], &["write", "resync"]),
    ] {
        let (mut edge, reported) = edge(lines);
        edge.send(bind()).await;
        let ClusterEvent::BindFailed { uid: failed, node, error, .. } = edge.outcome().await else {
            panic!("the bind has failed")
        };
        assert_eq!((failed, &*node), (uid(), "n1"));
        assert_eq!(error, "the scheduler has failed inside, its log says where");
        assert!(matches!(
            edge.outcome().await,
            ClusterEvent::PodRead { after: ReadAfter::Bind, .. }
        ));
        assert_eq!(*reported.0.lock().unwrap(), kinds);
        // The pod is free for the next write.
        let (log, outcomes) = edge.run(vec![bind()]).await;
        assert_eq!((log.of(&binding).len(), outcomes.len()), (2, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_fails_inside_is_answered_as_if_it_were_refused() {
    let (pod, pod_group) = (key(), ObjectKey::new("ns", "pg"));
    let cases = [
        (condition(Nomination::Keep), "PodStatusFailed", false),
        (condition(Nomination::Clear), "PodStatusFailed", true),
        (Effect::ClearNomination { pod: pod.clone(), uid: uid() }, "PodStatusFailed", true),
        (Effect::RemoveGate { pod, uid: uid() }, "PodStatusFailed", false),
        (
            Effect::PodGroupStatus {
                pod_group,
                uid: "uid-pg".into(),
                status: PodGroupStatus::default(),
                phase_changed: true,
            },
            "PodGroupFailed",
            false,
        ),
        (Effect::QueueStatus { queue: "q".into(), allocated: Vec::new() }, "QueueFailed", false),
    ];
    for (effect, event, is_read_again) in cases {
        let text = format!("{effect:?}");
        let (mut edge, reported) =
            edge(&["PUT", "PATCH", "GET /apis", "GET /api/v1/namespaces/ns/pods/p"]);
        edge.send(effect).await;
        let failed = format!("{:?}", edge.outcome().await);
        assert!(failed.starts_with(event), "{text}: {failed}");
        if is_read_again {
            assert!(
                matches!(
                    edge.outcome().await,
                    ClusterEvent::PodRead { after: ReadAfter::Nomination, .. }
                ),
                "{text}"
            );
        }
        let (_, outcomes) = edge.run(Vec::new()).await;
        assert!(outcomes.is_empty(), "{text}: {outcomes:?}");
        assert_eq!(reported.0.lock().unwrap()[0], "write", "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_fails_inside_is_lost_and_no_other_one() {
    let (edge, reported) = edge(&[EVENTS]);
    let (log, _) = edge.run(vec![condition_event(), bind()]).await;
    assert_eq!(log.of(EVENTS).len(), 2);
    assert_eq!(*reported.0.lock().unwrap(), ["event"]);
}
