//! Writes that the API server refuses: how often they are repeated, what the engine hears and what
//! the log says (core.md 7.2, C-50; 4.7, C-51).

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use vc_engine::{About, Effect, EvictReason, Nomination};
use vc_kube::{Clients, Election, EngineMessage, KindSet, follow, inbox, write};
use vc_model::{ClusterEvent, ObjectKey, PodGroupPhase, ReadAfter};

use crate::fake::{
    self, Seen, added, end_of_list, json_answer, list, not_found, pod, refusal, watch, watch_then,
};
use crate::log_lines::Lines;
use crate::statuses::{pod_group, pod_group_status};
use crate::writer::{EVENTS, Edge, bind, condition, edge, key, observed, uid};

const NO_RIGHT: &str = "podgroups \"pg\" is forbidden: User \"x\" cannot update it";

/// PodGroups can be read, nothing can be written.
fn without_rights() -> Edge {
    edge(|seen| match seen.line.starts_with("GET") {
        true => list(&[pod_group("Pending", "7")]),
        false => refusal(403, "Forbidden", NO_RIGHT),
    })
}

/// Sends the same decision again and again, as an engine does that compares in every cycle. Answers
/// the seconds of the writes.
async fn insist(edge: &mut Edge, effect: Effect, line: &str, for_time: Duration) -> Vec<u64> {
    let (start, mut seconds) = (Instant::now(), Vec::new());
    while start.elapsed() < for_time {
        edge.send(effect.clone()).await;
        let before = edge.log.of(line).len();
        sleep(Duration::from_millis(250)).await;
        while edge.outcomes.try_recv().is_ok() {}
        seconds.extend((before < edge.log.of(line).len()).then(|| start.elapsed().as_secs()));
    }
    seconds
}

#[tokio::test(start_paused = true)]
async fn a_refused_status_is_written_again_after_growing_pauses() {
    let (lines, _guard) = Lines::collect();
    let mut edge = without_rights();
    let minutes = Duration::from_secs(200);
    let seconds = insist(&mut edge, pod_group_status(), "PUT", minutes).await;
    // Each pause begins when the answer has come; the first write was sent at once.
    assert_eq!(seconds, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
    let all = lines.all();
    assert_eq!(all.len(), 4, "one line a minute: {all:#?}");
    let wanted = format!("pod group status not written: ns/pg: {NO_RIGHT}");
    assert_eq!(all[0], wanted);
    assert_eq!(all[1], format!("{wanted} (and 4 more like it since the last line)"));
}

#[tokio::test(start_paused = true)]
async fn another_decision_is_written_at_once() {
    let mut edge = without_rights();
    let time = Duration::from_secs(8);
    assert_eq!(insist(&mut edge, pod_group_status(), "PUT", time).await, [0, 1, 3, 7]);
    let Effect::PodGroupStatus { pod_group, uid, mut status, phase_changed } = pod_group_status()
    else {
        panic!()
    };
    status.phase = PodGroupPhase::Running;
    let other = Effect::PodGroupStatus { pod_group, uid, status, phase_changed };
    let time = Duration::from_secs(4);
    assert_eq!(insist(&mut edge, other, "PUT", time).await, [0, 1, 3], "counted anew");
}

/// The watch of PodGroups shows another version eight seconds later.
#[tokio::test(start_paused = true)]
async fn a_pod_group_that_changes_is_written_at_once() {
    let (client, log) = fake::client(|seen| {
        let changed = Duration::from_secs(8);
        match seen.line.starts_with("GET") {
            true if seen.is_watch() && seen.line.ends_with("/podgroups") => {
                let group = added(&pod_group("Pending", "8"));
                watch_then(vec![end_of_list("7")], changed, vec![group])
            }
            true if seen.is_watch() => watch(vec![end_of_list("7")]),
            true => list(&[pod_group("Pending", "7")]),
            false => refusal(403, "Forbidden", NO_RIGHT),
        }
    });
    let (clients, (sender, mut outcomes)) = (Clients::shared(client), inbox());
    let (effects, batches) = mpsc::channel(4);
    let _feeds = follow(&clients, &[KindSet::PriorityClasses], &sender, &fake::unobserved());
    let writer = write(clients, "volcano".into(), sender, batches, fake::unobserved());
    let _writer = tokio::spawn(writer);
    tokio::spawn(async move { while outcomes.recv().await.is_some() {} });
    let start = Instant::now();
    let mut seconds = Vec::new();
    while start.elapsed() < Duration::from_secs(14) {
        effects.send(vec![pod_group_status()].into()).await.unwrap();
        let before = log.of("PUT").len();
        sleep(Duration::from_millis(250)).await;
        seconds.extend((before < log.of("PUT").len()).then(|| start.elapsed().as_secs()));
    }
    assert_eq!(seconds, [0, 1, 3, 7, 8, 9, 11]);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_does_not_pause_and_a_refused_reason_does_not_hold_back_a_bind() {
    let mut conflict = edge(|seen| match seen.line.starts_with("GET") {
        true => list(&[pod_group("Pending", "7")]),
        false => refusal(409, "Conflict", "changed"),
    });
    let time = Duration::from_secs(2);
    assert_eq!(insist(&mut conflict, pod_group_status(), "PUT", time).await.len(), 8);

    let mut edge = edge(|seen| match seen.line.as_str() {
        "PUT /api/v1/namespaces/ns/pods/p/status" => refusal(403, "Forbidden", "no right"),
        _ => json_answer(200, pod("p")),
    });
    let reason = condition(Nomination::Set("n1".into()));
    insist(&mut edge, reason.clone(), "PUT", Duration::from_secs(6)).await;
    edge.send(reason).await;
    edge.send(bind()).await;
    sleep(Duration::from_millis(100)).await;
    assert_eq!(edge.log.of("POST /api/v1/namespaces/ns/pods/p/binding").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refused_eviction_is_told_before_the_pod_is_read_again() {
    for (code, pauses) in [(403, true), (409, false)] {
        let mut edge = edge(move |seen| match seen.line.starts_with("DELETE") {
            true => refusal(code, "Forbidden", "no"),
            false => json_answer(200, pod("p")),
        });
        let reason = EvictReason::Preempt;
        let (pod_group, for_pod, for_pod_group, message) = (None, None, None, None);
        let (pod, uid) = (key(), uid());
        edge.send(Effect::Evict { pod, uid, pod_group, reason, for_pod, for_pod_group, message })
            .await;
        if pauses {
            let ClusterEvent::EvictFailed { error, .. } = edge.outcome().await else { panic!() };
            assert_eq!(error, "no");
        }
        assert!(matches!(
            edge.outcome().await,
            ClusterEvent::PodRead { after: ReadAfter::Eviction, .. }
        ));
    }
}

/// As many binds as a burst of gangs has, while the server is away.
#[tokio::test(start_paused = true)]
async fn a_server_that_goes_away_is_a_line_a_minute_and_no_flood() {
    let (lines, _guard) = Lines::collect();
    let away = |_: &Seen| refusal(503, "ServiceUnavailable", "connection refused");
    let mut edge = observed(away, fake::unobserved());
    let binds = (0..500).map(|number| {
        let name = format!("p{number}");
        Effect::Bind {
            pod: ObjectKey::new("ns", &name),
            uid: name.as_str().into(),
            node: "n1".into(),
            annotations: Vec::new(),
            node_lock: None,
        }
    });
    edge.effects.send(binds.collect::<Vec<_>>().into()).await.unwrap();
    let mut n_failed = 0;
    while let Ok(Some(EngineMessage::Event(event))) =
        timeout(Duration::from_secs(50), edge.outcomes.recv()).await
    {
        n_failed += usize::from(matches!(event, ClusterEvent::BindFailed { pauses: true, .. }));
    }
    assert_eq!(n_failed, 500);
    let all = lines.all();
    // Pods not bound, and pods not read again.
    assert_eq!(all.len(), 2, "{all:#?}");
    sleep(Duration::from_secs(60)).await;
    let all = lines.all();
    assert!(all.len() <= 6, "{all:#?}");
    assert!(all.iter().any(|line| line.contains("(and 498 more like it")), "{all:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_group_that_is_gone_is_no_warning() {
    for is_listed in [false, true] {
        let (lines, _guard) = Lines::collect();
        let (_, outcomes) = edge(move |seen| match seen.line.starts_with("GET") && is_listed {
            true => list(&[pod_group("Pending", "7")]),
            false if seen.line.starts_with("GET") => list(&[]),
            false => not_found(),
        })
        .run(vec![pod_group_status()])
        .await;
        assert!(matches!(outcomes[..], [ClusterEvent::PodGroupFailed { .. }]), "{outcomes:?}");
        assert_eq!(lines.all(), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_was_deleted_is_made_again_until_it_is_there() {
    const QUEUES: &str = "POST /apis/scheduling.volcano.sh/v1beta1/queues";
    let (lines, _guard) = Lines::collect();
    let edge = edge(|seen| match seen.before {
        0..3 => refusal(403, "Forbidden", "no right"),
        3 => refusal(409, "AlreadyExists", "exists"),
        _ => json_answer(201, seen.body.clone()),
    });
    let create = |reclaimable| Effect::CreateQueue { queue: "default".into(), reclaimable };
    edge.send(create(true)).await;
    sleep(Duration::from_secs(20)).await;
    assert_eq!(edge.log.of(QUEUES).len(), 4, "after 0, 1, 3 and 7 seconds");
    let body = &edge.log.of(QUEUES)[0].body;
    assert_eq!(body["metadata"]["name"], "default");
    assert_eq!(body["spec"], json!({"weight": 1, "reclaimable": true}));
    let wanted = [
        "queue default was deleted by somebody: it is made again",
        "queue not created: default: no right",
    ];
    assert_eq!(lines.all(), wanted);
}

#[tokio::test(start_paused = true)]
async fn events_about_an_object_are_left_out_after_one_was_refused() {
    let edge = observed(
        |seen| match seen.line.starts_with("POST") {
            true => refusal(403, "Forbidden", "the namespace is being terminated"),
            false => json_answer(200, pod("p")),
        },
        fake::unobserved(),
    );
    for number in 0..100 {
        let about = About::Pod { key: key(), uid: uid() };
        let message = Arc::from(number.to_string());
        edge.send(Effect::Event { about, warning: true, reason: "X", message }).await;
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(edge.log.of(EVENTS).len(), 4, "in ten seconds");
}

#[tokio::test(start_paused = true)]
async fn a_lease_says_how_long_it_was_waited_for() {
    let (lines, _guard) = Lines::collect();
    let (client, _) = fake::client(|_| None);
    let election = Election {
        namespace: "volcano-system".into(),
        name: "volcano".into(),
        identity: "me".into(),
        component: "volcano".into(),
        lease: Duration::from_secs(15),
        renew: Duration::from_secs(10),
        retry: Duration::from_secs(2),
    };
    let clients = Clients::shared(client);
    let won = election.win(&clients, |_| {});
    assert!(timeout(Duration::from_secs(11), won).await.is_err());
    let all = lines.all();
    let wanted = "leader lease not acquired: volcano-system/volcano: no answer within 10 s\nhint:";
    assert!(all.len() == 1 && all[0].starts_with(wanted), "{all:?}");
}
