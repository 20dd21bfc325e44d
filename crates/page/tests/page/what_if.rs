//! Changes to suppose over HTTP. Specification: answers.md 9, 12, 16, cases 48 to 55.

use std::sync::Mutex;

use serde_json::{Value, json};
use vc_page::what_if_text;

use crate::support::{Page, Source, view};

/// A gang of two pods that find no place together on g1 and g2, but on g4 with this toleration.
fn gang(name: &str, tolerates: bool) -> String {
    let tolerations = if tolerates { "tolerations: [{key: team, operator: Exists}], " } else { "" };
    format!(
        "apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: {name}, namespace: ml}}
spec:
  schedulerName: volcano
  minAvailable: 2
  queue: research
  tasks:
  - name: a
    replicas: 2
    template: {{spec: {{{tolerations}containers: [{{name: x, resources: {{requests: {{\"nvidia.com/gpu\": 4}}}}}}]}}}}
"
    )
}

fn document(changes: &str) -> String {
    format!("apiVersion: answers.volcano.sh/v1\nkind: WhatIf\nspec:\n  changes: {changes}\n")
}

fn list(value: &Value, of: &str, field: &str) -> Vec<String> {
    let rows = value[of].as_array().unwrap().iter();
    rows.map(|row| row[field].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn ans_51_a_manifest_is_tried_without_being_submitted() {
    let page = Page::new();
    let reply = page.post("admin", "whatifs", &gang("more", true)).await;
    assert_eq!(reply.code, 200, "{}", reply.text);
    let result = reply.json();
    assert_eq!(result["kind"], "WhatIfResult");
    assert_eq!(list(&result, "placed", "pod"), ["ml/more-a-0", "ml/more-a-1"]);
    assert_eq!(list(&result, "placed", "node"), ["g4", "g4"]);
    assert_eq!(result["unplaced"], json!([]));
    assert!(reply.headers.get("etag").is_none());

    let reply = page.post("admin", "whatifs", &gang("more", false)).await.json();
    assert_eq!(reply["unplaced"], json!(["ml/more-a-0", "ml/more-a-1"]));
    assert_eq!(list(&reply, "waiting", "job"), ["ml/more"]);
    // Nothing of it is left.
    let missing = page.get("admin", "namespaces/ml/explanations/more").await;
    assert_eq!(missing.code, 404);
}

#[tokio::test]
async fn ans_48_changes_name_what_exists() {
    let page = Page::new();
    let body =
        document("[{addNodes: {like: g1, count: 2}}, {setQueue: {name: research, weight: 4}}]");
    let result = page.post("admin", "whatifs", &body).await.json();
    let placed = list(&result, "placed", "pod");
    assert!(placed.iter().any(|pod| pod.starts_with("ml/train")), "{placed:?}");
    assert_eq!(result["asOf"]["source"], "daemon");

    let reply =
        page.post("admin", "whatifs", &document("[{removeNodes: {names: [g1, g9]}}]")).await;
    assert_eq!(reply.code, 400);
    assert_eq!(reply.message(), "spec.changes[0].removeNodes.names[1]: no node g9");
    let field = &reply.json()["details"]["causes"][0]["field"];
    assert_eq!(field, "spec.changes[0].removeNodes.names[1]");

    // A job is named after its controller or its PodGroup; one that is applied twice stays.
    let body = document("[{setPods: {job: train, tolerations: [{key: team, operator: Exists}]}}]");
    let result = page.post("admin", "whatifs?namespace=ml", &body).await.json();
    assert_eq!(list(&result, "placed", "pod").len(), 2, "{result}");
}

#[tokio::test]
async fn ans_32_changes_of_remedies_are_sent_as_they_are() {
    let cluster = "node n1 cpu=8 zone=a\nqueue small cap.cpu=2
        job ml/away\n task a cpu=2 selector.zone=b\njob ml/held queue=small\n task a cpu=3
        job ml/lost queue=none\n task a cpu=1";
    let page = Page::of(Source(Ok(Mutex::new(view(cluster)))));
    let raised = json!({ "setQueue": { "name": "small", "capability": { "cpu": "3" } } });
    let selected = json!({ "setPods": { "job": "ml/away", "nodeSelector": {} } });
    let version = "scheduling.volcano.sh/v1beta1";
    let queue = json!({ "apiVersion": version, "kind": "Queue", "metadata": { "name": "none" } });
    let created = json!({ "apply": [queue] });
    for (name, kind, expected) in [
        ("away", "selector", selected),
        ("held", "raiseQuota", raised),
        ("lost", "createQueue", created),
    ] {
        let path = format!("namespaces/ml/explanations/{name}");
        let why = page.get("admin", &path).await.json();
        let remedies = why["unblock"].as_array().unwrap();
        let remedy = remedies.iter().find(|remedy| remedy["kind"] == kind).unwrap();
        assert_eq!(remedy["change"], expected, "{why}");
        let body = document(&format!("[{expected}]"));
        let result = page.post("admin", "whatifs", &body).await.json();
        assert_eq!(list(&result, "placed", "pod"), [format!("ml/{name}-a")], "{result}");
    }
}

/// One pod ends in each minute, and one more than a what-if lets end.
#[tokio::test]
async fn ans_55_what_is_left_out_is_named_with_its_bound() {
    let runtime = "annotation.reservation.volcano.sh/runtime";
    // The time of the last cycle is minute 90, so that no pod has ended by then.
    let pod = |number: usize| {
        format!(" task a{number} cpu=1 @n1 running started=0 {runtime}={}m\n", 91 + number)
    };
    let pods: String = (0..501).map(pod).collect();
    let cluster = format!("node n1 cpu=501 pods=600\njob run min=1 running\n{pods}");
    let page = Page::of(Source(Ok(Mutex::new(view(&cluster)))));
    let body = |minutes: usize| {
        let changes = format!("[{{advance: {minutes}m}}]");
        format!("{}  kubelet: none\n", document(&changes))
    };
    let cut = page.post("admin", "whatifs", &body(501)).await.json();
    assert_eq!(cut["complete"], false, "{cut}");
    assert_eq!(cut["leftOut"], json!([{ "what": "ends", "most": 500 }]));
    let text = what_if_text(&serde_json::from_value(cut).unwrap());
    assert!(text.ends_with("; ends after the first 500 were left out)\n"), "{text}");
    let whole = page.post("admin", "whatifs", &body(500)).await.json();
    assert_eq!((&whole["complete"], whole.get("leftOut")), (&json!(true), None), "{whole}");
}

#[tokio::test]
async fn ans_53_whoever_has_rights_in_one_namespace_changes_objects_of_it() {
    let page = Page::new();
    let own = "namespaces/ml/whatifs";
    let refused = page.post("jo", "whatifs", &gang("more", true)).await;
    assert_eq!(refused.code, 403);
    let text = refused.message();
    assert!(text.starts_with("user jo may not create whatifs.answers.volcano.sh\n"), "{text}");

    let result = page.post("jo", own, &gang("more", true)).await.json();
    assert_eq!(list(&result, "placed", "pod"), ["ml/more-a-0", "ml/more-a-1"]);
    assert_eq!(list(&result, "placed", "node"), ["hidden", "hidden"]);
    assert_eq!(result["queues"], json!([]), "numbers of queues are for those who may get them");

    let refusals = [
        ("[{setQueue: {name: research, weight: 4}}]", "spec.changes[0].setQueue: "),
        ("[{addNodes: {like: g1}}]", "spec.changes[0].addNodes: "),
        ("[{finish: {jobs: [prod/on-g2]}}]", "spec.changes[0].finish: prod/on-g2 is not in"),
        ("[{delete: [{kind: Node, name: g1}]}]", "spec.changes[0].delete: "),
        ("[{advance: 1h}]", "spec.changes[0].advance: "),
        (
            "[{apply: [{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: prod}}]}]",
            "spec.changes[0].apply: pod prod/p is not in namespace ml",
        ),
        (
            "[{apply: [{apiVersion: v1, kind: Node, metadata: {name: n}}]}]",
            "spec.changes[0].apply: node n is not an object of namespace ml",
        ),
    ];
    for (at, (changes, expected)) in refusals.into_iter().enumerate() {
        // A user may ask five times at once.
        let page = if at == 0 { &page } else { &Page::new() };
        let reply = page.post("jo", own, &document(changes)).await;
        assert_eq!(reply.code, 403, "{changes}: {}", reply.text);
        assert!(reply.message().starts_with(expected), "{}", reply.message());
    }
}

#[tokio::test]
async fn ans_79_effects_on_hidden_jobs_are_counts() {
    let page = Page::new();
    let body = document("[{removeNodes: {names: [g1, g2]}}]");
    let all = page.post("admin", "whatifs", &body).await.json();
    assert_eq!(list(&all, "evicted", "pod").len(), 2, "{all}");
    let hidden = page.post("guest", "whatifs", &body).await;
    assert_eq!(hidden.code, 200);
    assert_eq!(list(&hidden.json(), "evicted", "pod").len(), 2);
    for name in ["on-g1", "on-g2", "prod", "ml/", "g4"] {
        assert!(!hidden.text.contains(name), "{name}: {}", hidden.text);
    }
}

#[tokio::test]
async fn ans_16_a_wrong_body_is_told() {
    let cases = [
        ("", 400, "the body is empty"),
        ("{", 400, "body:1:1: EOF while parsing an object"),
        ("{\n  \"kind\": x}", 400, "body:2:11: expected value"),
        ("kind: [", 400, "body:1:"),
        ("kind: WhatIf", 400, "body:1: not a kubernetes object: apiVersion is missing"),
        (
            &document("[{addNode: {}}]"),
            400,
            "spec.changes[0].addNode: unknown; did you mean addNodes?",
        ),
        (
            &document("[{cordon: {names: [g1]}, advance: 1h}]"),
            400,
            "spec.changes[0]: one of addNodes",
        ),
        (
            &document("[{addNodes: {like: g1, count: 0}}]"),
            400,
            "spec.changes[0].addNodes.count: must be 1",
        ),
        (&document("[{advance: soon}]"), 400, "spec.changes[0].advance: must be a duration"),
        (
            &document("[{addNodes: {like: g1, count: 10001}}]"),
            400,
            "spec.changes[0]: 10000 new nodes",
        ),
        (&document("[{conf: 'actions: [x'}]"), 400, "spec.changes[0].conf"),
        (
            &format!("{}---\n{}", document("[]"), document("[]")),
            400,
            "body:6: one WhatIf wanted, 2 given",
        ),
    ];
    for (body, code, expected) in cases {
        let reply = Page::new().post("admin", "whatifs", body).await;
        assert_eq!(reply.code, code, "{body}: {}", reply.text);
        assert!(reply.message().starts_with(expected), "{body}: {}", reply.message());
    }
    let unreadable = Page::new().post("admin", "whatifs", "kind: [").await.message();
    let column = unreadable.split(':').nth(2).and_then(|column| column.parse::<u32>().ok());
    assert!(column > Some(0), "{unreadable}");
    let page = Page::new();
    let large = "#".repeat(1_100_000);
    let reply = page.post("admin", "whatifs", &large).await;
    assert_eq!((reply.code, &*reply.message()), (413, "1 MiB at most"));
    let reply = page.get("admin", "whatifs").await;
    assert_eq!(reply.code, 405);
    assert!(reply.message().contains("hint: whatifs are sent with POST"));
}

#[tokio::test]
async fn ans_74_what_ifs_have_a_limit_of_their_own() {
    let page = Page::new();
    let body = document("[]");
    for _ in 0..5 {
        assert_eq!(page.post("admin", "whatifs", &body).await.code, 200);
    }
    let reply = page.post("admin", "whatifs", &body).await;
    assert_eq!(reply.code, 429);
    assert!(reply.headers.get("retry-after").is_some());
    assert_eq!(page.get("admin", "summary").await.code, 200);
}
