//! JSON of the objects that the plugin `extender` sends, against the lists of fields in
//! plugins-jobs-queues.md 15.3, and answers of every shape.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use vc_model::{Cluster, TaskStatus, fixture};
use vc_wire::{
    ExtenderAnswerFields, ExtenderFields, extender_job, extender_node, extender_queue,
    extender_session, extender_task, read_extender_answer,
};

const SPEC: &str = include_str!("../../../docs/spec/plugins-jobs-queues.md");

fn cluster() -> Cluster {
    fixture::cluster(
        "node n1 cpu=4 memory=8Gi gpu=2 zone=a taint=x:NoSchedule
         queue q weight=2 cap.cpu=4
         quota limits hard.cpu=2 used.cpu=1
         job j queue=q min=2 minres.cpu=2
           task a cpu=1500m gpu=1 @n1 running label.app=train
           task b cpu=1",
    )
}

/// Returns the names that the specification lists for an object: words that begin with a capital
/// before the next full stop that ends the list.
fn listed(object: &str) -> BTreeSet<String> {
    let from = SPEC.find("### 15.3").expect("the section");
    let section = &SPEC[from..];
    let section = &section[section.find(&format!("**{object}**: ")).expect("the object")..];
    let list = &section[section.find('`').expect("names")..];
    let list = list.split("`.").next().expect("an end");
    let list = list.split(". **").next().expect("an end").replace('`', "");
    let mut names = BTreeSet::new();
    let (mut depth, mut name) = (0, String::new());
    for letter in list.chars().chain([',']) {
        match letter {
            '{' | '(' => depth += 1,
            '}' | ')' => depth -= 1,
            ',' if depth == 0 => {
                let first = name.split_whitespace().next().unwrap_or_default().to_owned();
                names.insert(first);
                name.clear();
            }
            _ if depth == 0 => name.push(letter),
            _ => {}
        }
    }
    names
}

fn names(value: &Value) -> BTreeSet<String> {
    value.as_object().expect("an object").keys().cloned().collect()
}

#[test]
fn objects_have_the_fields_of_the_specification() {
    let cluster = cluster();
    let task = extender_task(&cluster, fixture::task(&cluster, "j/a"), None);
    let node = extender_node(&cluster, fixture::node(&cluster, "n1"));
    let job = extender_job(&cluster, fixture::job(&cluster, "j"));
    let queue = extender_queue(&cluster, fixture::queue(&cluster, "q"));
    assert_eq!(names(&task), listed("Task"));
    assert_eq!(names(&node), listed("Node"));
    assert_eq!(names(&job), listed("Job"));
    assert_eq!(names(&queue), listed("Queue"));
}

#[test]
fn a_task() {
    let cluster = cluster();
    let task = extender_task(&cluster, fixture::task(&cluster, "j/a"), None);
    assert_eq!((&task["Name"], &task["Job"]), (&json!("j-a"), &json!("default/j")));
    assert_eq!((&task["Status"], &task["NodeName"]), (&json!(32), &json!("n1")));
    assert_eq!(task["Resreq"]["MilliCPU"], 1500.0);
    assert_eq!(task["Resreq"]["ScalarResources"]["nvidia.com/gpu"], 1000.0);
    assert_eq!(task["Pod"]["metadata"]["labels"]["app"], "train");
    let requests = &task["Pod"]["spec"]["containers"][0]["resources"]["requests"];
    assert_eq!(requests, &json!({"cpu": "1500m", "memory": "0", "nvidia.com/gpu": "1"}));
    // The place that the task is about to get.
    let (b, n1) = (fixture::task(&cluster, "j/b"), fixture::node(&cluster, "n1"));
    assert_eq!(extender_task(&cluster, b, None)["Status"], 1);
    let placed = extender_task(&cluster, b, Some((TaskStatus::Allocated, n1)));
    assert_eq!((&placed["Status"], &placed["NodeName"]), (&json!(2), &json!("n1")));
    assert_eq!(placed["Pod"]["spec"]["nodeName"], "n1");
}

#[test]
fn a_session() {
    let cluster = cluster();
    let jobs: Vec<_> = cluster.jobs_by_key().collect();
    let queues: Vec<_> = cluster.queues_by_name().collect();
    let session = extender_session(&cluster, cluster.nodes_by_name(), &jobs, &queues);
    let quota = &session["NamespaceInfo"]["default"]["QuotaStatus"]["limits"];
    assert_eq!(quota, &json!({"hard": {"cpu": "2"}, "used": {"cpu": "1"}}));
    assert_eq!(session["Queues"]["q"]["Queue"]["spec"]["capability"]["cpu"], "4");
    let node = &session["Nodes"]["n1"];
    assert_eq!(node["Idle"]["MilliCPU"], 2500.0);
    assert_eq!(node["Tasks"]["default/j-a"]["Name"], "j-a");
    assert_eq!(node["Node"]["spec"]["taints"][0]["key"], "x");
    let job = &session["Jobs"]["default/j"];
    assert_eq!((&job["MinAvailable"], &job["Queue"]), (&json!(2), &json!("q")));
    assert_eq!(job["TaskStatusIndex"]["32"].as_object().map(|tasks| tasks.len()), Some(1));
    assert_eq!((&session["RevocableNodes"], &session["NodeList"]), (&json!({}), &Value::Null));
}

#[test]
fn answers_of_every_hook() {
    let read = |fields, body: &str| {
        read_extender_answer(body.as_bytes(), fields).map_err(|error| error.to_string())
    };
    let zero = ExtenderAnswerFields::default;
    let message = |text: &str| ExtenderAnswerFields { message: text.to_owned(), ..zero() };
    let victims = |uids: &[&str]| uids.iter().map(|uid| (*uid).to_owned()).collect();
    use ExtenderFields::*;
    for (fields, body, expected) in [
        (
            Predicate,
            r#"{"status":"no","code":3}"#,
            ExtenderAnswerFields { code: 3, ..message("no") },
        ),
        (Predicate, r#"{"STATUS":"no"}"#, message("no")),
        (
            Prioritize,
            r#"{"nodeScore":{"a":1.5,"b":-2,"c":null}}"#,
            ExtenderAnswerFields {
                scores: vec![("a".into(), 1.5), ("b".into(), -2.0), ("c".into(), 0.0)],
                ..zero()
            },
        ),
        (Prioritize, r#"{"errorMessage":"x"}"#, message("x")),
        (
            Victims,
            r#"{"status":1,"victims":[{"UID":"u1","Pod":{}},{"uid":"u2"},{},null]}"#,
            ExtenderAnswerFields { code: 1, victims: victims(&["u1", "u2", "", ""]), ..zero() },
        ),
        (Vote, r#"{"status":-1}"#, ExtenderAnswerFields { code: -1, ..zero() }),
        (Overused, r#"{"overused":true}"#, ExtenderAnswerFields { is_true: true, ..zero() }),
        (Ready, r#"{"status":true}"#, ExtenderAnswerFields { is_true: true, ..zero() }),
        (Event, r#"{"errorMessage":"x"}"#, message("x")),
        (Nothing, r#"{"status":[]}"#, zero()),
    ] {
        assert_eq!(read(fields, body), Ok(expected), "{body}");
    }
    for (fields, body, expected) in [
        (Predicate, r#"{"status":5}"#, "field status of the answer is no text"),
        (Predicate, r#"{"code":1.5}"#, "field code of the answer is no integer"),
        (Vote, r#"{"status":99999999999999999999}"#, "field status of the answer is no integer"),
        (Prioritize, r#"{"nodeScore":{"a":1e400}}"#, "the answer is no JSON: number out of range"),
        (Prioritize, r#"{"nodeScore":[1]}"#, "field nodeScore of the answer is no map of numbers"),
        (Victims, r#"{"victims":{}}"#, "field victims of the answer is no list of tasks"),
        (Victims, r#"{"victims":["u1"]}"#, "field victims of the answer is no object"),
        (Victims, r#"{"victims":[{"UID":7}]}"#, "field UID of the answer is no text"),
        (Nothing, "", "the answer is empty"),
        (Nothing, " \n", "the answer is empty"),
        (Nothing, "{", "the answer is no JSON"),
    ] {
        let error = read(fields, body).expect_err(body);
        assert!(error.starts_with(expected), "{body}: {error}");
    }
}
