//! Jobs by the names of their controllers of any kind. Specification: answers.md 2 (ANS-5), 9
//! (ANS-48), cases 48 and 84.

use std::sync::Mutex;

use serde_json::{Value, json};

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
