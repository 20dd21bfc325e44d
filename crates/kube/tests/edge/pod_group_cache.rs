//! A PodGroup that its watch has brought is written without being read again (ARCHITECTURE.md).

use serde_json::{Value, json};
use tokio::sync::mpsc;
use vc_engine::Effect;
use vc_kube::{Clients, EngineMessage, KindSet, follow, inbox, write};
use vc_model::{ObjectKey, PodGroupPhase, PodGroupStatus};
use vc_wire::Kind;

use crate::fake::{self, end_of_list, json_answer, list, refusal, unobserved, watch, watch_texts};

const ALL: &str = "GET /apis/scheduling.volcano.sh/v1beta1/podgroups";
const OURS: &str = "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups";

fn group(phase: &str, version: &str) -> Value {
    json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "pg", "namespace": "ns", "uid": "uid-pg", "resourceVersion": version,
            "labels": {"a": "b"}, "managedFields": [{"manager": "kubectl"}]},
        "spec": {"minMember": 2, "novelty": true}, "status": {"phase": phase}})
}

fn status() -> Effect {
    let status = PodGroupStatus { phase: PodGroupPhase::Inqueue, ..PodGroupStatus::default() };
    let pod_group = ObjectKey::new("ns", "pg");
    Effect::PodGroupStatus { pod_group, uid: "uid-pg".into(), status, phase_changed: true }
}

/// Follows the kinds until the PodGroups are there, then writes one status.
async fn written(phase: &'static str, refused: bool) -> fake::Log {
    let (client, log) = fake::client(move |seen| match seen.line.as_str() {
        ALL => watch_texts(vec![
            // In the order of API servers.
            format!(r#"{{"type":"ADDED","object":{}}}"#, group(phase, "7")),
            end_of_list("7").to_string(),
        ]),
        line if line.starts_with("PUT") && refused && seen.before == 0 => {
            refusal(409, "Conflict", "changed")
        }
        line if line.starts_with("PUT") => json_answer(200, group("Inqueue", "9")),
        line if line.ends_with(OURS) => list(&[group(phase, "8")]),
        _ => watch(vec![end_of_list("1")]),
    });
    let clients = Clients::shared(client);
    let (sender, mut receiver) = inbox();
    let feeds = follow(&clients, &[KindSet::PriorityClasses], &sender, &unobserved());
    while !matches!(receiver.recv().await, Some(EngineMessage::Synced(Kind::PodGroup))) {}
    drop(feeds);
    let (effects, batches) = mpsc::channel(1);
    effects.send(vec![status()].into()).await.unwrap();
    drop(effects);
    write(clients, "volcano".into(), sender, batches, unobserved()).await;
    log
}

#[tokio::test(start_paused = true)]
async fn a_pod_group_that_was_seen_needs_no_list() {
    let cases = [("Pending", false, 0, &["7"][..]), ("Running", false, 1, &["8"])];
    let conflict = [("Pending", true, 1, &["7", "8"][..])];
    for (phase, refused, n_lists, versions) in cases.into_iter().chain(conflict) {
        let log = written(phase, refused).await;
        assert_eq!(log.of(&format!("GET {OURS}")).len(), n_lists, "{phase}");
        let puts = log.of(&format!("PUT {OURS}/pg"));
        let based: Vec<_> =
            puts.iter().map(|put| put.body["metadata"]["resourceVersion"].clone()).collect();
        assert_eq!(based, versions);
        for put in puts {
            let mut wanted =
                group("Inqueue", put.body["metadata"]["resourceVersion"].as_str().unwrap());
            wanted["metadata"].as_object_mut().unwrap().remove("managedFields");
            assert_eq!(put.body, wanted);
        }
    }
}
