//! What goes wrong around the scheduler is counted and told, and nothing stops: malformed objects,
//! a second scheduler, an expired token. Issue "Bad input".

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use vc_engine::Effect;
use vc_kube::{Clients, EngineMessage, KindSet, Observer, follow, inbox, write};
use vc_model::{ClusterEvent, ObjectKey};

use crate::fake::{self, added, end_of_list, pod, refusal, watch};

const POD_GROUPS: &str = "GET /apis/scheduling.volcano.sh/v1beta1/podgroups";
const QUEUES: &str = "GET /apis/scheduling.volcano.sh/v1beta1/queues";

/// Writes down what is counted.
#[derive(Default)]
struct ObservedTexts(Mutex<Vec<String>>);

impl ObservedTexts {
    fn say(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    fn said(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl Observer for ObservedTexts {
    fn malformed(&self, kind: &'static str) {
        self.say(format!("malformed {kind}"));
    }

    fn foreign_bind(&self) {
        self.say("foreign bind".into());
    }

    fn watch_restart(&self, kind: &'static str) {
        self.say(format!("restart {kind}"));
    }
}

fn custom(kind: &str, name: &str, spec: Value) -> Value {
    json!({"kind": kind, "apiVersion": "scheduling.volcano.sh/v1beta1",
        "metadata": {"name": name, "uid": name, "resourceVersion": "3"}, "spec": spec})
}

#[tokio::test(start_paused = true)]
async fn malformed_custom_objects_are_counted_and_the_others_are_in_effect() {
    let (client, _log) = fake::client(|seen| {
        let (kind, bad) = match seen.line.as_str() {
            POD_GROUPS => ("PodGroup", json!({"minMember": {"a": 1}})),
            QUEUES => ("Queue", json!({"weight": "heavy"})),
            _ => return watch(vec![end_of_list("1")]),
        };
        let (bad, odd) = (custom(kind, "bad", bad), custom(kind, "odd", json!("none")));
        let good = custom(kind, "good", json!({}));
        watch(vec![added(&bad), added(&odd), added(&good), end_of_list("5")])
    });
    let (reported, (sender, mut receiver)) = (Arc::new(ObservedTexts::default()), inbox());
    let observer: Arc<dyn Observer> = reported.clone();
    let _feeds = follow(&Clients::shared(client), &[KindSet::PriorityClasses], &sender, &observer);
    let mut good = 0;
    while good < 2 {
        match receiver.recv().await.unwrap() {
            EngineMessage::Event(ClusterEvent::PodGroupApplied(group))
                if &*group.key.name == "good" =>
            {
                good += 1;
            }
            EngineMessage::Event(ClusterEvent::QueueApplied(queue)) if &*queue.name == "good" => {
                good += 1;
            }
            _ => {}
        }
    }
    let said = reported.said();
    for kind in ["podgroups", "queues"] {
        let count = said.iter().filter(|text| **text == format!("malformed {kind}")).count();
        assert!(0 < count, "{kind}: {said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_somebody_else_has_bound_is_counted() {
    let assigned = "Operation cannot be fulfilled on pods/binding \"p\": pod p is already \
        assigned to node \"n2\"";
    let (client, _log) = fake::client(move |seen| match seen.line.as_str() {
        "POST /api/v1/namespaces/ns/pods/p/binding" => refusal(409, "Conflict", assigned),
        "POST /api/v1/namespaces/ns/pods/q/binding" => refusal(409, "Conflict", "the uid differs"),
        _ => fake::json_answer(200, pod("p")),
    });
    let (reported, (sender, mut outcomes)) = (Arc::new(ObservedTexts::default()), inbox());
    let (effects, batches) = mpsc::channel(4);
    let bind = |name: &str| Effect::Bind {
        pod: ObjectKey::new("ns", name),
        uid: format!("uid-{name}").into(),
        node: "n1".into(),
        annotations: Vec::new(),
        node_lock: None,
    };
    effects.send(vec![bind("p"), bind("q")].into()).await.unwrap();
    drop(effects);
    write(Clients::shared(client), "volcano".into(), sender, batches, reported.clone()).await;
    assert_eq!(reported.said(), ["foreign bind"]);
    let mut n_failed = 0;
    while let Some(message) = outcomes.recv().await {
        let failed = matches!(message, EngineMessage::Event(ClusterEvent::BindFailed { .. }));
        n_failed += usize::from(failed);
    }
    assert_eq!(n_failed, 2);
}

/// A token that has expired, a server that is away: the watch is there again within a second.
#[tokio::test(start_paused = true)]
async fn a_watch_is_back_a_second_after_the_server_is() {
    const OUTAGE: usize = 12;
    let (client, log) = fake::client(|seen| match (seen.line.as_str(), seen.before) {
        (POD_GROUPS, 0..OUTAGE) => refusal(401, "Unauthorized", "Unauthorized"),
        _ => watch(vec![end_of_list("1")]),
    });
    let (reported, (sender, mut receiver)) = (Arc::new(ObservedTexts::default()), inbox());
    let observer: Arc<dyn Observer> = reported.clone();
    let start = tokio::time::Instant::now();
    let _feeds = follow(&Clients::shared(client), &[KindSet::PriorityClasses], &sender, &observer);
    loop {
        if let EngineMessage::Synced(vc_wire::Kind::PodGroup) = receiver.recv().await.unwrap() {
            break;
        }
    }
    assert_eq!(log.of(POD_GROUPS).len(), OUTAGE + 1);
    // 250 ms, 500 ms, then a second each.
    let wanted = Duration::from_millis(250 + 500 + 1000 * (OUTAGE as u64 - 2));
    let took = start.elapsed();
    assert!((wanted..wanted + Duration::from_millis(100)).contains(&took), "{took:?}");
    assert_eq!(reported.said(), ["restart podgroups"; OUTAGE]);
}
