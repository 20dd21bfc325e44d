//! The API server refuses what the scheduler asks for, for a while: each time the work is done in
//! the end, and nothing is done twice.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::api::{Api, until};
use crate::audit::Asked;
use crate::bad_input::logged;
use crate::cluster::{Cluster, POD_GROUPS, install};
use crate::objects::{LABEL, name, refusal};
use crate::process::Scheduler;
use crate::served;
use crate::webhook::Webhook;

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const ROLE_BINDING: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/vc-scheduler";

fn admission(kind: &str, name: &str, fields: Value) -> Value {
    let mut object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": name}});
    object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    object
}

fn bindings() -> Value {
    json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["pods/binding"]}])
}

/// A webhook that does not answer: 500 for everything that it should have been asked about.
pub(crate) fn dead_webhook() -> Value {
    webhook("dead", &json!({"url": "https://127.0.0.1:1/"}))
}

fn webhook(name: &str, client: &Value) -> Value {
    let hook = json!({"name": format!("{name}.test.io"), "clientConfig": client,
        "rules": bindings(), "failurePolicy": "Fail", "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "timeoutSeconds": 30});
    admission("ValidatingWebhookConfiguration", name, json!({"webhooks": [hook]}))
}

/// A policy that denies: 403, as a webhook's refusal.
fn policy() -> [Value; 2] {
    let rule = json!({"expression": "false", "message": "not today", "reason": "Forbidden"});
    let policy = json!({"spec": {"failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": bindings()}, "validations": [rule]}});
    let use_it = json!({"spec": {"policyName": "closed", "validationActions": ["Deny"]}});
    [
        admission("ValidatingAdmissionPolicy", "closed", policy),
        admission("ValidatingAdmissionPolicyBinding", "closed", use_it),
    ]
}

/// Waits until bindings are refused, with a pod that nobody schedules and nothing that stays.
pub(crate) async fn refused(cluster: &Cluster) {
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "probe", "namespace": cluster.namespace},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "x"}]}});
    drop(cluster.api.create(&pod).await);
    let path = cluster.path("pods/probe/binding?dryRun=All");
    let bind = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "probe"},
        "target": {"kind": "Node", "name": "node-0"}});
    until("bindings are refused", async || cluster.api.post(&path, &bind).await.err()).await;
}

/// The pod's condition and events tell it, and it is tried again.
async fn reported(cluster: &Cluster, pod: &str, words: &str) {
    let says = |pod: &Value| refusal(pod).is_some_and(|(_, message)| message.contains(words));
    let found = cluster.pod(pod, says).await;
    let (reason, message) = refusal(&found).unwrap();
    assert_eq!(reason, "SchedulerError");
    assert!(message.starts_with("failed to bind to node node-0: "), "{message}");
    assert!(message.contains(". It is tried again after "), "{message}");
    cluster.event(pod, ("Warning", "FailedScheduling", message)).await;
    let tried = |asked: &Asked| asked.is_binding() && asked.name == pod;
    let again = async || (2 <= cluster.audit.count(tried)).then_some(());
    until("a second attempt", again).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn core_79_a_refused_binding_is_told_and_tried_again() {
    let cluster = Cluster::take("refused-bindings", 1).await;
    let _scheduler = Scheduler::start(&cluster).await;
    for object in policy() {
        cluster.api.create(&object).await.unwrap();
    }
    refused(&cluster).await;
    cluster.submit("policy", 1, "1").await;
    reported(&cluster, "policy-0", "not today").await;
    let path = format!("{ADMISSION}/validatingadmissionpolicybindings/closed");
    cluster.api.delete(&path).await.unwrap();
    cluster.running("policy", 1).await;

    cluster.api.create(&dead_webhook()).await.unwrap();
    refused(&cluster).await;
    cluster.submit("dead", 1, "1").await;
    reported(&cluster, "dead-0", "failed calling webhook").await;
    let path = format!("{ADMISSION}/validatingwebhookconfigurations/dead");
    cluster.api.delete(&path).await.unwrap();
    cluster.running("dead", 1).await;

    let hook = Webhook::start(&cluster.dir(), "the auditor says no").await;
    cluster.api.create(&webhook("live", &hook.client)).await.unwrap();
    refused(&cluster).await;
    cluster.submit("live", 1, "1").await;
    reported(&cluster, "live-0", "the auditor says no").await;
    assert!(2 <= hook.n_refused());
    let path = format!("{ADMISSION}/validatingwebhookconfigurations/live");
    cluster.api.delete(&path).await.unwrap();
    cluster.running("live", 1).await;
    cluster.audit.bound_once(["policy-0", "dead-0", "live-0"]).await;
}

/// No namespace controller runs here, so that the namespace stays Terminating: the API server refuses to
/// create anything in it, bindings and events among it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn core_7_2_binds_into_a_namespace_that_is_being_deleted_pause() {
    let cluster = Cluster::take("terminating", 1).await;
    cluster.submit("late", 1, "1").await;
    let namespace = format!("/api/v1/namespaces/{}", cluster.namespace);
    cluster.api.delete(&namespace).await.unwrap();
    until("the namespace is being deleted", async || {
        let found = cluster.api.get(&namespace).await.ok()?;
        (found["status"]["phase"] == "Terminating").then_some(())
    })
    .await;
    let start = std::time::Instant::now();
    let _scheduler = Scheduler::start(&cluster).await;
    let tried = |asked: &Asked| asked.is_binding() && asked.name == "late-0" && asked.code == 403;
    until("a third attempt", async || (3 <= cluster.audit.count(tried)).then_some(())).await;
    assert_eq!(cluster.audit.count(tried), 3);
    // Pauses of 1 s and 2 s.
    assert!(Duration::from_secs(3) <= start.elapsed(), "{:?}", start.elapsed());
    let says = |pod: &Value| {
        refusal(pod).is_some_and(|(reason, message)| {
            reason == "SchedulerError"
                && message.contains("because it is being terminated")
                && message.contains(". It is tried again after ")
        })
    };
    cluster.pod("late-0", says).await;
    let log = std::fs::read_to_string(cluster.scheduler_log()).unwrap();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("being terminated")).collect();
    assert!(lines.len() <= 2, "one line of binds, one of events: {lines:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_that_somebody_deletes_are_made_again() {
    let cluster = Cluster::take("deleted-queues", 1).await;
    let _scheduler = Scheduler::start(&cluster).await;
    logged(&cluster, "cycles start").await;
    for (queue, reclaimable) in [("default", true), ("root", false)] {
        let path = format!("/apis/scheduling.volcano.sh/v1beta1/queues/{queue}");
        cluster.api.delete(&path).await.unwrap();
        let made = until("the queue is there again", async || cluster.api.get(&path).await.ok());
        assert_eq!(made.await["spec"]["reclaimable"], reclaimable);
        logged(&cluster, &format!("queue {queue} was deleted by somebody")).await;
    }
    cluster.submit("after", 1, "1").await;
    cluster.running("after", 1).await;
}

/// They see other nodes, and so another reason why the same pod waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_schedulers_notice_that_they_overwrite_each_others_conditions() {
    let cluster = Cluster::take("two-schedulers", 1).await;
    let alone = ["--leader-elect=false", "--schedule-period=100ms"];
    let _first = Scheduler::start_with(&cluster, &alone).await;
    let other = [&alone[..], &["--node-selector=nowhere:nothing"]].concat();
    let _second = Scheduler::start_with(&cluster, &other).await;
    cluster.submit("big", 2, "99").await;
    logged(&cluster, "somebody else overwrites its condition: ").await;
    let of_pod = |asked: &Asked| asked.is("update", "pods/status") && asked.name == "big-0";
    let n_writes = cluster.audit.count(of_pod);
    assert!(n_writes < 10, "{n_writes} writes");
}

/// Somebody who changes objects all the time.
fn meddle(api: &Api, path: String) -> JoinHandle<()> {
    let api = api.clone();
    tokio::spawn(async move {
        for tick in 0.. {
            let change = json!({"metadata": {"annotations": {"tick": format!("{tick}")}}});
            drop(api.merge(&path, &change).await);
            sleep(Duration::from_millis(1)).await;
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn core_86_conflicts_lose_no_status() {
    let cluster = Cluster::take("conflicts", 1).await;
    let _scheduler = Scheduler::start(&cluster).await;
    let conflict = |audit: &crate::audit::Audit, resource: &str| {
        audit.count(|asked| asked.is("update", resource) && asked.code == 409)
    };
    let written = ["pods/status", "podgroups", "queues/status"];
    let mut n_rounds = 0;
    while written.iter().any(|resource| conflict(&cluster.audit, resource) == 0) {
        assert!(n_rounds < 60, "no conflict in {n_rounds} rounds");
        let (small, big) = (format!("small-{n_rounds}"), format!("big-{n_rounds}"));
        cluster.submit(&small, 1, "1m").await;
        cluster.submit(&big, 1, "9").await;
        let paths = [
            cluster.path(&format!("pods/{big}-0")),
            cluster.path(&format!("{POD_GROUPS}/{small}")),
            "/apis/scheduling.volcano.sh/v1beta1/queues/default".to_owned(),
        ];
        let meddlers = paths.map(|path| meddle(&cluster.api, path));
        cluster.running(&small, 1).await;
        cluster.pod(&format!("{big}-0"), |pod| refusal(pod).is_some()).await;
        meddlers.iter().for_each(JoinHandle::abort);
        n_rounds += 1;
    }
    cluster.allocated("default", &format!("{n_rounds}m")).await;
    for round in 0..n_rounds {
        cluster.in_phase(&format!("small-{round}"), "Running").await;
        cluster.in_phase(&format!("big-{round}"), "Inqueue").await;
        cluster.audit.bound_once([format!("small-{round}-0").as_str()]).await;
    }
}

/// Three bindings of ours at a time; the server refuses the fourth with 429.
fn narrow_lane() -> [Value; 2] {
    let metadata = json!({"name": "narrow", "labels": {LABEL: ""}});
    let group = "flowcontrol.apiserver.k8s.io/v1";
    let account = json!({"name": "vc-scheduler", "namespace": "volcano-system"});
    let rules = json!([{"subjects": [{"kind": "ServiceAccount", "serviceAccount": account}],
        "resourceRules": [{"verbs": ["create"], "apiGroups": [""], "namespaces": ["*"],
            "resources": ["pods/binding"]}]}]);
    let limited = json!({"nominalConcurrencyShares": 1, "borrowingLimitPercent": 0,
        "lendablePercent": 0, "limitResponse": {"type": "Reject"}});
    [
        json!({"apiVersion": group, "kind": "PriorityLevelConfiguration", "metadata": metadata,
            "spec": {"type": "Limited", "limited": limited}}),
        json!({"apiVersion": group, "kind": "FlowSchema", "metadata": metadata, "spec": {
            "priorityLevelConfiguration": {"name": "narrow"}, "matchingPrecedence": 100,
            "rules": rules}}),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_requests_lose_no_binding() {
    let cluster = Cluster::take("too-many", 2).await;
    for object in narrow_lane() {
        cluster.api.create(&object).await.unwrap();
    }
    let path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/narrow";
    until("the narrow lane is in force", async || {
        let schema = cluster.api.get(path).await.ok()?;
        (schema["status"]["conditions"][0]["status"] == "False").then_some(())
    })
    .await;
    for index in 0..5 {
        cluster.submit(&format!("gang-{index}"), 8, "100m").await;
    }
    let _scheduler = Scheduler::start(&cluster).await;
    for index in 0..5 {
        let gang = format!("gang-{index}");
        let pods = cluster.running(&gang, 8).await;
        cluster.audit.bound_once(pods.iter().map(name)).await;
    }
    let refused = |asked: &Asked| asked.is_binding() && asked.code == 429;
    assert!(0 < cluster.audit.count(refused), "nothing was refused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_right_stops_it_only_until_it_is_back() {
    let cluster = Cluster::take("lost-right", 1).await;
    let _scheduler = Scheduler::start(&cluster).await;
    cluster.submit("before", 1, "1").await;
    cluster.running("before", 1).await;
    cluster.api.delete(ROLE_BINDING).await.unwrap();
    served::no_rights(&cluster.api).await;
    cluster.submit("after", 2, "1").await;
    until("a binding is forbidden", async || {
        let forbidden = |asked: &Asked| asked.is_binding() && asked.code == 403;
        (0 < cluster.audit.count(forbidden)).then_some(())
    })
    .await;
    install(&cluster.api).await;
    cluster.running("after", 2).await;
    cluster.audit.bound_once(["after-0", "after-1"]).await;
}
