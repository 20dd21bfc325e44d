//! Jobs that hold nodes, the history of a job, and labels of nodes, over HTTP. Specification: answers.md 7 (ANS-114),
//! 8 (ANS-115), 11.

use std::sync::Mutex;

use serde_json::{Value, json};
use vc_page::{AskedJob, Document, Question, why_wide_text};

use crate::support::{CLUSTER, Page, Source, view};

/// A job of each namespace beside those of the usual cluster, the first with a stated end.
const RUNNING: &str = "job ml/timed queue=research min=1 running
    task a cpu=1 @c1 running started=600 annotation.reservation.volcano.sh/runtime=2h
    job prod/hard queue=small min=1 running
    task a cpu=1 @c1 running started=0 deadline=9000";

fn page() -> Page {
    Page::of(Source(Ok(Mutex::new(view(&format!("{CLUSTER}\n{RUNNING}"))))))
}

/// Returns the names of the jobs of a list.
fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|it| it["job"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn ans_114_jobs_that_run_are_listed_with_their_ends() {
    let page = page();
    let list = page.get("admin", "runs").await.json();
    assert_eq!((&list["kind"], &list["total"]), (&"RunList".into(), &4.into()));
    assert_eq!(names(&list), ["ml/timed", "prod/hard", "ml/on-g1", "prod/on-g2"]);
    let expected = json!({
        "job": "ml/timed", "namespace": "ml", "queue": "research", "pods": 1,
        "start": "2026-01-01T00:10:00Z", "end": "2026-01-01T02:10:00Z", "source": "stated",
    });
    assert_eq!(list["items"][0], expected);
    assert_eq!(list["items"][1]["source"], "deadline");
    let open = &list["items"][2];
    assert!(open.get("end").is_none() && open.get("source").is_none(), "{open}");
    for (path, expected) in [
        ("namespaces/ml/runs", &["ml/timed", "ml/on-g1"][..]),
        ("runs?queue=small", &["prod/hard"]),
        ("runs?offset=1&limit=1", &["prod/hard"]),
        ("namespaces/other/runs", &[]),
    ] {
        assert_eq!(names(&page.get("admin", path).await.json()), expected, "{path}");
    }
    assert_eq!(page.get("admin", "runs?code=NoRoom").await.code, 400);
}

#[tokio::test]
async fn ans_79_jobs_that_run_are_hidden_as_those_that_wait() {
    let page = page();
    assert_eq!(page.get("viewer", "runs").await.code, 403);
    assert_eq!(page.get("jo", "namespaces/ml/runs").await.code, 200);
    assert_eq!(page.get("jo", "runs").await.code, 403);
    let list = page.get("lister", "runs").await;
    let first = &list.json()["items"][0];
    assert_eq!((&first["job"], &first["hidden"]), (&"other-1".into(), &true.into()), "{first}");
    assert_eq!((first.get("namespace"), &first["source"]), (None, &"stated".into()), "{first}");
    assert!(!list.text.contains("prod") && !list.text.contains("timed"), "{}", list.text);
}

#[tokio::test]
async fn ans_115_an_explanation_has_the_history_of_its_job() {
    let page = page();
    let path = "namespaces/ml/explanations/timed";
    let history = page.get("admin", path).await.json()["history"].clone();
    let expected = json!({
        "created": "2026-01-01T00:00:00Z", "firstBind": "2026-01-01T00:10:00Z",
        "onNodes": 1, "ended": 0, "evicted": 0,
    });
    assert_eq!(history, expected);
    let waits = page.get("admin", "namespaces/ml/explanations/train").await.json();
    let history = &waits["history"];
    assert_eq!((history.get("firstBind"), &history["onNodes"]), (None, &0.into()), "{history}");
    let list = page.get("admin", "explanations").await.json();
    assert!(list["items"][0].get("history").is_none(), "lists have none");
}

#[test]
fn ans_115_the_history_is_a_line_of_a_wide_text() {
    let (engine, mut view, timeline) = view(&format!("{CLUSTER}\n{RUNNING}"));
    let (namespace, name) = ("ml".to_owned(), "timed".to_owned());
    let asked = Question::Explanation(AskedJob { namespace, name, ..AskedJob::default() });
    let Document::Explanation(one) = view.answer(&engine, &timeline, &asked).unwrap() else {
        panic!("no explanation")
    };
    let text = why_wide_text(&one);
    let lines: Vec<&str> = text.lines().collect();
    let expected =
        "HISTORY  created 2026-01-01T00:00:00Z, first bind 2026-01-01T00:10:00Z, 1 pod on nodes";
    assert_eq!(lines[lines.len() - 2], expected, "{text}");
    assert!(lines[lines.len() - 1].starts_with("as of "), "{text}");
}

#[tokio::test]
async fn ans_11_nodes_are_listed_with_one_label() {
    let cluster = "node a cpu=1 zone=z1 disk=ssd\nnode b cpu=1 zone=z2\nnode c cpu=1 zone=z1";
    let page = Page::of(Source(Ok(Mutex::new(view(cluster)))));
    let labels = |list: &Value| -> Vec<Value> {
        list["items"].as_array().unwrap().iter().map(|it| it["labels"].clone()).collect()
    };
    let list = page.get("admin", "nodes?labels=zone").await.json();
    assert_eq!(
        labels(&list),
        [json!({"zone": "z1"}), json!({"zone": "z2"}), json!({"zone": "z1"})]
    );
    let list = page.get("admin", "nodes?labels=disk").await.json();
    assert_eq!(labels(&list), [json!({"disk": "ssd"}), Value::Null, Value::Null]);
    let list = page.get("admin", "nodes").await.json();
    assert_eq!(labels(&list), [Value::Null, Value::Null, Value::Null]);
    let keys = page.get("admin", "nodelabels").await.json();
    assert_eq!(keys["kind"], "NodeLabelList");
    let of = |key: &str| {
        let found = keys["items"].as_array().unwrap().iter().find(|it| it["key"] == key);
        found.map(|it| (it["values"].clone(), it["nodes"].clone()))
    };
    assert_eq!(of("zone"), Some((2.into(), 3.into())));
    assert_eq!(of("disk"), Some((1.into(), 1.into())));
    assert_eq!(page.get("jo", "nodelabels").await.code, 403);
}
