//! Who is asked where no place is given. Specification: answers.md 13 (ANS-88, ANS-91), cases 79, 82.

use serde_json::{Value, json};

use crate::front::{Front, serve, status};
use crate::{call, explanation, text};

const FIRST: &str = "no answer from Service volcano-system/vc-scheduler-answers: services \
    \"vc-scheduler-answers\" not found\n";

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_the_cluster_is_listed_where_no_scheduler_answers() {
    let folder = tempfile::tempdir().unwrap();
    let config = serve(folder.path(), Front::default()).await;
    let printed = |words: &[&str]| {
        let called = call(words, &config);
        (text(&called.stdout), text(&called.stderr))
    };
    let (out, said) = printed(&["why", "big", "-n", "default"]);
    assert!(out.starts_with("default/big (PodGroup, queue default, "), "{out}{said}");
    assert!(said.starts_with(&format!("{FIRST}asked without the scheduler: ")), "{said}");
    let (_, said) = printed(&["why", "big", "-n", "default", "-v"]);
    let expected = format!(
        "the API server: it has no group answers.volcano.sh\n\
         Service volcano-system/vc-scheduler-answers: {FIRST}\
         no answer from pods of namespace volcano-system: none is ready and has the label of the leader\n\
         asked without the scheduler: "
    );
    assert!(said.starts_with(&expected), "{said}");
    // What a scheduler remembers is in no list, and whoever names a place wants that one.
    for words in [
        &["cycles"][..],
        &["bundle"],
        &["ui"],
        &["why", "big", "--service", "volcano-system/vc-scheduler-answers"],
        &["why", "big", "--watch"],
        &["what-if", "-f", "-", "-n", "default"],
        &["what-if", "-f", "/dev/stdin", "-n", "default"],
    ] {
        let (out, said) = printed(words);
        assert!(out.is_empty(), "{words:?}: {out}");
        assert!(said.starts_with(&format!("error: {FIRST}hint: ")), "{words:?}: {said}");
    }
    let (out, said) = printed(&["why", "big", "--server", "http://127.0.0.1:1"]);
    let unreached = "error: no answer from http://127.0.0.1:1: ";
    assert!(out.is_empty() && said.starts_with(unreached), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_a_service_of_another_name_is_asked_in_its_own_namespace_alone() {
    let folder = tempfile::tempdir().unwrap();
    let front = |namespace| Front {
        labelled: vec![(namespace, "ask")],
        other: Some((200, explanation())),
        ..Front::default()
    };
    let ours = front("volcano-system");
    let config = serve(folder.path(), ours).await;
    let called = call(&["why", "job/train"], &config);
    let (out, said) = (text(&called.stdout), text(&called.stderr));
    assert!(out.starts_with("ml/train (job, "), "{out}{said}");
    assert_eq!(said, "asked Service volcano-system/ask\n");
    // Whoever may create Services elsewhere must not get the token.
    let foreign = front("tenant");
    let asked = foreign.asked.clone();
    let config = serve(folder.path(), foreign).await;
    let called = call(&["why", "job/train"], &config);
    assert_eq!(called.status.code(), Some(1), "{}", text(&called.stdout));
    assert_eq!(asked.take(), ["Service volcano-system/vc-scheduler-answers"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_whoever_is_there_is_believed() {
    let folder = tempfile::tempdir().unwrap();
    let unknown = "no job, PodGroup or pod services \"x\" reach service";
    let away = "no endpoints available for service \"https:vc-scheduler-answers:answers\"";
    let hint = "hint: no scheduler answers there now: try again in some seconds";
    let of_away = format!(
        "error: no answer from Service volcano-system/vc-scheduler-answers: {away}\n{hint}"
    );
    let cases = [(404, unknown, format!("error: {unknown}\n")), (503, away, of_away)];
    for (code, message, expected) in cases {
        let default = Some(status(code, message));
        let labelled = vec![("volcano-system", "ask")];
        let other = Some((200, explanation()));
        let front = Front { labelled, other, default, ..Front::default() };
        let asked = front.asked.clone();
        let config = serve(folder.path(), front).await;
        let called = call(&["why", "job/train"], &config);
        let said = text(&called.stderr);
        assert!(said.starts_with(&expected), "{said}");
        assert_eq!((called.status.code(), asked.take().len()), (Some(1), 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_91_a_kind_that_may_not_be_listed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let forbidden = Some("/apis/policy/v1/poddisruptionbudgets");
    let config = serve(folder.path(), Front { forbidden, ..Front::default() }).await;
    let called = call(&["why", "big", "-n", "default", "--local"], &config);
    let (out, said) = (text(&called.stdout), text(&called.stderr));
    assert!(out.starts_with("default/big (PodGroup, queue default, "), "{out}{said}");
    let named = "PodDisruptionBudget of namespace default alone: the plugin pdb protects no pod of another namespace \
                 (the user may not list them)";
    assert!(said.lines().any(|line| line == named), "{said}");
    let first = said.lines().next().unwrap();
    assert!(first.starts_with("asked without the scheduler: not known are its flags, "), "{said}");
    for remembered in ["room that it holds", "learned run times", "the timeline", "usage", "load"] {
        assert!(first.contains(remembered), "{remembered}: {first}");
    }
    // Without nodes nothing can be said.
    let front = Front { forbidden: Some("/api/v1/nodes"), ..Front::default() };
    let config = serve(folder.path(), front).await;
    let called = call(&["why", "big", "-n", "default", "--local"], &config);
    let expected =
        "error: cannot list Node: the user may not list them\nhint: an answer is about nodes: ";
    assert!(text(&called.stderr).starts_with(expected), "{}", text(&called.stderr));
    assert_eq!((called.status.code(), called.stdout.is_empty()), (Some(1), true));
}

/// A job of one pod in namespace default, in a queue of its own, with a claim that is bound.
fn job_with_a_volume() -> Vec<Value> {
    let in_default = |name: &str| json!({"name": name, "namespace": "default"});
    let container = json!({"name": "main", "image": "busybox",
        "resources": {"requests": {"cpu": "1"}}});
    let group = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": in_default("small"), "spec": {"minMember": 1, "queue": "team"}});
    let mut claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": in_default("data"), "status": {"phase": "Bound"},
        "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": "disk",
            "resources": {"requests": {"storage": "1Gi"}}}});
    claim["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": in_default("small-0"),
        "spec": {"schedulerName": "volcano", "containers": [container],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}});
    pod["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": "small"});
    vec![group, claim, pod]
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_91_a_user_of_one_namespace_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let objects = job_with_a_volume();
    let front = Front { only_in: Some("default"), objects, ..Front::default() };
    let config = serve(folder.path(), front).await;
    let called = call(&["why", "small", "-n", "default", "-o", "json"], &config);
    let (out, said) = (text(&called.stdout), text(&called.stderr));
    // Neither its queue nor its volume may be listed: both are supposed.
    let answer: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{said}"));
    let code = answer["verdict"]["code"].as_str().unwrap();
    assert!(matches!(code, "Placed" | "Binding" | "NextCycle"), "{out}{said}");
    assert_eq!(answer["asOf"]["source"], "local");
    let lines: Vec<&str> = said.lines().collect();
    let away = "no answer from Service volcano-system/vc-scheduler-answers: ";
    assert!(lines[0].starts_with(away), "{said}");
    assert!(lines[1].starts_with("asked without the scheduler: "), "{said}");
    let words = "(the user may not list them)";
    let follows = [
        "Pod of namespace default alone: pods of other namespaces do not count, so nodes and queues have more \
         room in the answer than they really have",
        "PodGroup of namespace default alone: jobs of other namespaces have no place in a line, and starts are \
         told as if they were not there",
        "without Queue: the queues that jobs name are supposed to be open, without limits",
    ];
    for (line, expected) in lines[2..].iter().zip(follows) {
        assert_eq!(*line, format!("{expected} {words}"), "{said}");
    }
    for line in [
        "without PersistentVolume: every node is supposed to reach the volumes of bound claims",
        "PersistentVolumeClaim of namespace default alone: volumes of other namespaces do not count against \
         the limits of nodes",
        "without PriorityClass: jobs that name one have priority 0",
    ] {
        assert!(lines.contains(&&*format!("{line} {words}")), "{line}: {said}");
    }
    let list = call(&["why", "-A", "-n", "default", "--local"], &config);
    assert!(text(&list.stdout).contains("default/big"), "{}", text(&list.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_91_pods_that_may_not_be_listed_take_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let busy = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "busy", "namespace": "other"},
        "spec": {"nodeName": "node-0", "containers": [{"name": "main", "image": "busybox",
            "resources": {"requests": {"cpu": "7"}}}]}});
    for (only_in, used) in [(None, json!("7")), (Some("default"), Value::Null)] {
        let front = Front { only_in, objects: vec![busy.clone()], ..Front::default() };
        let config = serve(folder.path(), front).await;
        let words = ["nodes", "node-0", "-n", "default", "--local", "-o", "json"];
        let called = call(&words, &config);
        let (out, said) = (text(&called.stdout), text(&called.stderr));
        let node: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{said}"));
        let found = node["used"]["cpu"].clone();
        assert!(found == used || (found == "0" && used.is_null()), "{only_in:?}: {node}{said}");
        assert_eq!(said.contains("Pod of namespace default alone: "), only_in.is_some(), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_91_without_pods_of_the_namespace_there_is_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let front = Front { only_in: Some("ml"), ..Front::default() };
    let config = serve(folder.path(), front).await;
    let called = call(&["why", "big", "-n", "default", "--local"], &config);
    let expected =
        "error: cannot list PodGroup: the user may not list them\nhint: name a namespace ";
    assert!(text(&called.stderr).starts_with(expected), "{}", text(&called.stderr));
    assert_eq!((called.status.code(), called.stdout.is_empty()), (Some(1), true));
}
