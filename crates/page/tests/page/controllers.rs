//! Jobs by the names of their controllers of any kind. Specification: answers.md 2 (ANS-5), 9
//! (ANS-48), cases 48 and 84.

use std::collections::BTreeSet;
use std::sync::Mutex;

use serde_json::{Value, json};
use vc_engine::CycleTime;
use vc_model::fixture::events_of;
use vc_model::{ClusterEvent, SelectorKind};
use vc_page::{AnswerView, StateSource};

use crate::support::{CLUSTER, Page, Source, view};

/// PodGroups as Volcano's controller makes them for the pods of other controllers.
const OWNED: &str = "job ml/podgroup-11aa owner=web-5d9f7c kind=ReplicaSet queue=research\n task a gpu=9
    job ml/podgroup-22bb owner=etl kind=Job queue=research\n task a gpu=9
    job ml/podgroup-33cc owner=db kind=StatefulSet queue=research min=1 running\n task a cpu=1 @c1 running
    job ml/podgroup-44dd owner=api-77b8cd kind=ReplicaSet queue=research\n task a gpu=9
    job ml/podgroup-55ee owner=api-5d9f7c kind=ReplicaSet queue=research\n task a gpu=9
    job ml/podgroup-66ff owner=tune kind=MPIJob queue=research\n task a gpu=9";

fn page() -> Page {
    Page::of(Source(Ok(Mutex::new(view(&format!("{CLUSTER}\n{OWNED}"))))))
}

fn whatif(changes: &str) -> String {
    format!("apiVersion: answers.volcano.sh/v1\nkind: WhatIf\nspec:\n  changes: {changes}\n")
}

#[tokio::test]
async fn ans_84_jobs_of_all_controllers_are_found_by_kind_and_name() {
    let page = page();
    for (question, group, job, kind) in [
        ("web?kind=deployment", "podgroup-11aa", "web-5d9f7c", "replicaset"),
        ("web?kind=Deploy", "podgroup-11aa", "web-5d9f7c", "replicaset"),
        ("web?kind=deployments.apps", "podgroup-11aa", "web-5d9f7c", "replicaset"),
        ("web", "podgroup-11aa", "web-5d9f7c", "replicaset"),
        ("web-5d9f7c?kind=rs", "podgroup-11aa", "web-5d9f7c", "replicaset"),
        ("etl?kind=job", "podgroup-22bb", "etl", "job"),
        ("db?kind=statefulset", "podgroup-33cc", "db", "statefulset"),
        ("tune?kind=mpijobs", "podgroup-66ff", "tune", "mpijob"),
        ("tune", "podgroup-66ff", "tune", "mpijob"),
    ] {
        let reply = page.get("jo", &format!("namespaces/ml/explanations/{question}")).await;
        assert_eq!(reply.code, 200, "{question}: {}", reply.text);
        let subject = reply.json()["subject"].clone();
        let found = ["kind", "name", "job", "jobKind"].map(|field| subject[field].clone());
        assert_eq!(found, ["PodGroup", group, job, kind].map(Value::from), "{question}");
    }
    // A PodGroup without a controller is called a job, too.
    let plain = page.get("jo", "namespaces/ml/explanations/train?kind=job").await.json();
    assert_eq!(plain["subject"]["name"], "train");
}

#[tokio::test]
async fn ans_16_controllers_that_are_unknown_or_several() {
    let page = page();
    let known = "hint: pods of other schedulers are not known here";
    let several = "api means several: ml/podgroup-44dd, ml/podgroup-55ee";
    for (question, code, text, hint) in [
        ("nothing?kind=statefulset", 404, "no statefulset ml/nothing", known),
        ("nothing?kind=pg", 404, "no PodGroup ml/nothing", known),
        (
            "train?kind=deployment",
            404,
            "no deployment ml/train",
            "hint: did you mean podgroup/train?",
        ),
        ("etl?kind=deploy", 404, "no deployment ml/etl", "hint: did you mean job/etl?"),
        ("etl?kind=pod", 404, "no pod ml/etl", "hint: did you mean etl?"),
        ("api?kind=deployment", 409, several, "hint: give the name of the PodGroup"),
    ] {
        let reply = page.get("jo", &format!("namespaces/ml/explanations/{question}")).await;
        assert_eq!(reply.code, code, "{question}: {}", reply.text);
        let message = reply.message();
        let (first, second) = message.split_once('\n').unwrap();
        assert_eq!(first, text, "{question}");
        assert!(second.starts_with(hint), "{question}: {second}");
    }
}

#[tokio::test]
async fn ans_48_changes_name_controllers_of_all_kinds() {
    let own = "namespaces/ml/whatifs";
    let page = page();
    let delete =
        whatif("[{delete: [{kind: StatefulSet, name: db}, {kind: Deployment, name: api}]}]");
    let reply = page.post("jo", own, &delete).await;
    assert_eq!(reply.code, 200, "{}", reply.text);
    let finish = whatif("[{finish: {jobs: [db]}}, {setJob: {job: web, minMember: 1}}]");
    let reply = page.post("jo", own, &finish).await;
    assert_eq!(reply.code, 200, "{}", reply.text);
    let waiting = reply.json()["waiting"].clone();
    let is_named =
        |row: &Value| row["job"] == "ml/web-5d9f7c" && row["podGroup"] == "ml/podgroup-11aa";
    assert!(waiting.as_array().unwrap().iter().any(is_named), "{waiting}");
    for (changes, code, text) in [
        (
            "[{delete: [{kind: StatefulSet, name: web}]}]",
            400,
            "spec.changes[0].delete[0].name: no StatefulSet ml/web controls pods",
        ),
        (
            "[{delete: [{kind: Deployment, namespace: prod, name: web}]}]",
            403,
            "spec.changes[0].delete: prod/web is not in namespace ml",
        ),
        (
            "[{setPods: {job: api, nodeSelector: {a: b}}}]",
            400,
            "spec.changes[0].setPods.job: ml/api means several jobs: give the name of one PodGroup",
        ),
    ] {
        let reply = page.post("jo", own, &whatif(changes)).await;
        assert_eq!((reply.code, &*reply.message()), (code, text), "{changes}");
    }
    assert_eq!(
        page.get("jo", "namespaces/ml/explanations/db").await.json()["verdict"]["code"],
        json!("Placed")
    );
}

#[tokio::test]
async fn ans_48_a_kind_in_lower_case_deletes_what_it_says() {
    let own = "namespaces/ml/whatifs";
    for (kind, name, text) in [
        ("pod", "db", "no pod ml/db"),
        ("po", "etl", "no pod ml/etl"),
        ("pods", "podgroup-22bb-a", ""),
        ("pg", "podgroup-22bb", ""),
        ("podgroup", "podgroup-22bb-a", "no job ml/podgroup-22bb-a"),
        ("job", "db", "no job ml/db controls pods"),
        ("sts", "db", ""),
    ] {
        let changes = format!("[{{delete: [{{kind: {kind}, name: {name}}}]}}]");
        // A user may ask five times at once.
        let reply = page().post("jo", own, &whatif(&changes)).await;
        if text.is_empty() {
            assert_eq!(reply.code, 200, "{kind}: {}", reply.text);
        } else {
            let expected = format!("spec.changes[0].delete[0].name: {text}");
            assert_eq!((reply.code, &*reply.message()), (400, &*expected), "{kind}");
        }
    }
}

#[tokio::test]
async fn ans_16_pods_of_a_controller_without_a_group_are_named() {
    let (mut engine, _view, timeline) = view(CLUSTER);
    let mut events = events_of("pod ml/new-0 cpu=1\npod ml/new-1 cpu=1");
    for event in &mut events {
        if let ClusterEvent::PodApplied(pod) = event {
            pod.controller = Some((SelectorKind::StatefulSet, "new".into()));
        }
    }
    let now = CycleTime { unix_micros: engine.last_micros() + 1_000_000 };
    let (_effects, report) = engine.cycle(events, now);
    let view = AnswerView::new(&engine, &report, StateSource::Daemon { behind_millis: 7 });
    let page = Page::of(Source(Ok(Mutex::new((engine, view, timeline)))));
    let reply = page.get("jo", "namespaces/ml/explanations/new?kind=statefulset").await;
    let several = "new means several: ml/new-0, ml/new-1\nhint: give the name of one pod";
    assert_eq!((reply.code, &*reply.message()), (409, several));
    assert_eq!(page.get("jo", "namespaces/ml/explanations/new-0").await.code, 200);
}

/// Controllers of one name, a PodGroup of the name of a controller, and one of another namespace.
const SAME_NAMES: &str = "job ml/podgroup-1 owner=db kind=StatefulSet queue=research\n task a gpu=9
    job ml/podgroup-2 owner=db kind=Job queue=research\n task a gpu=9
    job ml/etl queue=research\n task a gpu=9
    job ml/podgroup-3 owner=etl kind=Job queue=research\n task a gpu=9
    job ml/podgroup-4 owner=alone kind=Job queue=research\n task a gpu=9
    job prod/podgroup-5 owner=alone kind=Job queue=research\n task a gpu=9
    job ml/podgroup-6 owner=run kind=StatefulSet queue=research min=1 running\n task a cpu=1 @c1 running
    job ml/podgroup-7 owner=run kind=Job queue=research min=1 running\n task a cpu=1 @c1 running";

fn same_names() -> Page {
    Page::of(Source(Ok(Mutex::new(view(&format!("{CLUSTER}\n{SAME_NAMES}"))))))
}

/// Returns a field of the rows of a list, sorted.
fn fields(list: &Value, field: &str) -> Vec<String> {
    let rows = list.as_array().unwrap().iter();
    let mut fields: Vec<String> = rows.map(|row| row[field].as_str().unwrap().to_owned()).collect();
    fields.sort();
    fields
}

#[tokio::test]
async fn ans_70_the_name_of_a_job_in_a_list_leads_to_that_very_job() {
    let page = same_names();
    let line = page.get("admin", "queues/research/line").await.json();
    let jobs = [
        "ml/alone",
        "ml/etl",
        "ml/podgroup-1",
        "ml/podgroup-2",
        "ml/podgroup-3",
        "ml/train",
        "prod/alone",
        "prod/serve",
    ];
    assert_eq!(fields(&line["items"], "job"), jobs, "{line}");
    for row in line["items"].as_array().unwrap() {
        let (namespace, name) = row["job"].as_str().unwrap().split_once('/').unwrap();
        let path = format!("namespaces/{namespace}/explanations/{name}");
        let reply = page.get("admin", &path).await;
        assert_eq!(reply.code, 200, "{path}: {}", reply.text);
        assert_eq!(reply.json()["line"]["inQueue"], row["place"], "{path}");
    }
    let both = page.get("admin", "namespaces/ml/explanations/db").await;
    assert_eq!(both.code, 409, "{}", both.text);
    // The controller is told all the same.
    let set = page.get("admin", "namespaces/ml/explanations/podgroup-1").await.json();
    assert_eq!(
        (&set["subject"]["job"], &set["subject"]["jobKind"]),
        (&json!("db"), &json!("statefulset"))
    );
    let running = ["ml/podgroup-6", "ml/podgroup-7"];
    let node = page.get("admin", "nodes/c1").await.json();
    assert_eq!(fields(&node["jobs"], "job"), running, "{node}");
    let timeline = page.get("admin", "timeline?namespace=ml").await.json();
    assert_eq!(fields(&timeline["jobs"], "job"), ["ml/on-g1", running[0], running[1]]);
    let named = "[{setJob: {job: podgroup-1, minMember: 1}}, {setJob: {job: alone, minMember: 1}}]";
    let result = page.post("admin", "whatifs?namespace=ml", &whatif(named)).await.json();
    assert_eq!(fields(&result["waiting"], "job"), ["ml/alone", "ml/podgroup-1"], "{result}");
}

#[tokio::test]
async fn ans_70_a_job_that_is_applied_has_a_name_of_its_own() {
    let group = |name: &str, job: &str| {
        format!(
            "{{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {{name: {name}, \
             ownerReferences: [{{apiVersion: batch/v1, kind: Job, name: {job}, uid: u-{name}, \
             controller: true}}]}}, spec: {{minMember: 1, queue: research}}}}"
        )
    };
    let pod = |name: &str, group: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, annotations: \
             {{scheduling.k8s.io/group-name: {group}}}}}, spec: {{schedulerName: volcano, containers: \
             [{{name: c, resources: {{requests: {{cpu: 99}}}}}}]}}}}"
        )
    };
    let objects =
        [group("g-8", "alone"), pod("p-8", "g-8"), group("g-9", "new"), pod("p-9", "g-9")];
    let changes = format!("[{{apply: [{}]}}]", objects.join(", "));
    let reply = same_names().post("admin", "whatifs?namespace=ml", &whatif(&changes)).await;
    assert_eq!(reply.code, 200, "{}", reply.text);
    let result = reply.json();
    assert_eq!(fields(&result["waiting"], "job"), ["ml/g-8", "ml/new"], "{result}");
}

#[tokio::test]
async fn ans_79_hidden_jobs_of_one_name_stay_different() {
    let line = same_names().get("viewer", "queues/research/line").await.json();
    let names = fields(&line["items"], "job");
    let different: BTreeSet<&String> = names.iter().collect();
    assert_eq!(different.len(), 8, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("other-")), "{names:?}");
    let node = same_names().get("viewer", "nodes/c1").await.json();
    assert_eq!(fields(&node["jobs"], "job"), ["other-1", "other-2"]);
}
