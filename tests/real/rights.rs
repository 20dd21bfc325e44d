//! The shipped roles grant what the scheduler asks for, and nothing else. Specification: core.md
//! 1.9.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::api::{text, until};
use crate::audit::Asked;
use crate::cluster::{Cluster, manifests};
use crate::devices::{devices, submit as submit_with_devices};
use crate::evictions::{preempting, submit_important};
use crate::faults::{dead_webhook, refused};
use crate::objects::{LABEL, name};
use crate::options::{WITH_GATES, WITH_SHARDS, make_shard, submit_gated};
use crate::process::{Scheduler, shipped_conf};
use crate::volumes::{offer, storage, submit};

fn words(group: &str, resource: &str, verb: &str) -> String {
    match group {
        "" => format!("{verb} {resource}"),
        _ => format!("{verb} {group}/{resource}"),
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().unwrap().iter().map(text)
}

fn granted() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    // The other roles are for users.
    let is_role = |object: &&Value| {
        ["ClusterRole", "Role"].contains(&text(&object["kind"])) && name(object) == "vc-scheduler"
    };
    for role in manifests().iter().filter(is_role) {
        for rule in role["rules"].as_array().unwrap() {
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    all.extend(texts(&rule["verbs"]).map(|verb| words(group, resource, verb)));
                }
            }
        }
    }
    all
}

/// A list comes before a watch where the server has no streaming lists.
fn needed(asked: &[Asked]) -> BTreeSet<String> {
    let of = |asked: &Asked, verb: &str| words(&asked.group, &asked.resource, verb);
    let asked = asked.iter().filter(|asked| !asked.resource.is_empty());
    asked
        .flat_map(|asked| match asked.verb.as_str() {
            "watch" => vec![of(asked, "list"), of(asked, "watch")],
            // Admission asks for it, the audit log does not tell.
            verb if asked.resource == "resourceclaims/status" => {
                let binding = words(&asked.group, "resourceclaims/binding", verb);
                vec![of(asked, verb), binding]
            }
            verb => vec![of(asked, verb)],
        })
        .collect()
}

/// Waits until it has been asked for, or something was forbidden: then there is no use in waiting.
async fn reaches(cluster: &Cluster, verb: &str, resource: &str) {
    until(&format!("{verb} {resource}"), async || {
        let wanted = |asked: &Asked| asked.is(verb, resource) || asked.code == 403;
        (0 < cluster.audit.count(wanted)).then_some(())
    })
    .await;
}

/// What `default` uses is lent by another queue: fair sharing tells its share (cohort.md B.8).
async fn borrowed(cluster: &Cluster) {
    let lender = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {"name": "lender", "labels": {LABEL: ""}}, "spec": {"deserved": {"cpu": "8"}}});
    cluster.api.create(&lender).await.unwrap();
    let cohort = "cohort\n    arguments:\n      fairSharing.enable: true";
    let text = shipped_conf().replace("proportion", cohort);
    assert!(text.contains(cohort));
    let path = cluster.dir().join("fair-sharing.conf");
    fs::write(&path, text).unwrap();
    let conf = format!("--scheduler-conf={}", path.display());
    let args = ["--leader-elect=false", "--schedule-period=100ms", conf.as_str()];
    let scheduler = Scheduler::start_with(cluster, &args).await;
    reaches(cluster, "update", "queues").await;
    assert!(scheduler.terminate().await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_right_is_used_and_none_is_missing() {
    let cluster = Cluster::take("rights", 1).await;
    let conf = preempting(&cluster);
    let soon = ["--schedule-period=100ms", "--leader-elect-retry-period=100ms"];
    let args = [&soon[..], &[conf.as_str(), WITH_GATES, WITH_SHARDS]].concat();
    make_shard(&cluster, "volcano", &["node-0"]).await;
    // Before the start, so that it is known whenever its claims come.
    storage(&cluster.api, 1).await;
    offer(&cluster.api, "rights-volume").await;
    let scheduler = Scheduler::start_with(&cluster, &args).await;
    let controllers = ["replicationcontrollers", "replicasets", "statefulsets"];
    for kind in ["poddisruptionbudgets", "resourcequotas", "services"].iter().chain(&controllers) {
        reaches(&cluster, "watch", kind).await;
    }
    cluster.submit("low", 1, "7").await;
    reaches(&cluster, "create", "pods/binding").await;
    reaches(&cluster, "update", "podgroups").await;
    reaches(&cluster, "update", "queues/status").await;
    submit_important(&cluster, "high", "7").await;
    reaches(&cluster, "update", "pods/status").await;
    reaches(&cluster, "delete", "pods").await;
    reaches(&cluster, "update", "leases").await;
    reaches(&cluster, "update", "nodeshards/status").await;
    submit_gated(&cluster, "gated", &[]).await;
    reaches(&cluster, "patch", "pods").await;
    submit(&cluster, "stored", 2, "100m").await;
    reaches(&cluster, "update", "persistentvolumes").await;
    reaches(&cluster, "update", "persistentvolumeclaims").await;
    devices(&cluster, 1).await;
    submit_with_devices(&cluster, "computed", 1).await;
    reaches(&cluster, "update", "resourceclaims").await;
    reaches(&cluster, "update", "resourceclaims/status").await;
    cluster.api.create(&dead_webhook()).await.unwrap();
    refused(&cluster).await;
    cluster.submit("refused", 1, "500m").await;
    // The same refusal twice: the event is counted up.
    reaches(&cluster, "patch", "events").await;
    assert!(scheduler.terminate().await.success());
    borrowed(&cluster).await;
    let asked = cluster.audit.all();
    let forbidden = asked.iter().filter(|asked| asked.code == 403);
    let forbidden: BTreeSet<String> =
        forbidden.map(|asked| words(&asked.group, &asked.resource, &asked.verb)).collect();
    assert!(forbidden.is_empty(), "used, but not granted: {forbidden:?}");
    let (wanted, granted) = (needed(&asked), granted());
    let unused: Vec<&String> = granted.difference(&wanted).collect();
    assert!(unused.is_empty(), "granted, but not used: {unused:?}");
    let unnamed: Vec<&String> = wanted.difference(&granted).collect();
    assert!(unnamed.is_empty(), "granted by roles that are not ours: {unnamed:?}");
}
