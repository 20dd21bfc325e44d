//! What is wrong with the cluster, or with how the scheduler was started, is told, and the work goes
//! on. Issue "Bad input".

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::api::{code, until};
use crate::cluster::{Cluster, LEASES, install};
use crate::objects::{gang, name, refusal};
use crate::process::Scheduler;
use crate::volumes::{bound_claim, storage};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const QUEUES: &str = "/apis/scheduling.volcano.sh/v1beta1/queues";

/// Waits for a text in the log of the test's schedulers.
pub(crate) async fn logged(cluster: &Cluster, text: &str) {
    let log = cluster.scheduler_log();
    until(&format!("{text:?} in the log"), async || {
        fs::read_to_string(&log).unwrap_or_default().contains(text).then_some(())
    })
    .await;
}

/// A definition that accepts anything, as an older installation may have it.
async fn without_schema(cluster: &Cluster, plural: &str) {
    let path = format!("{DEFINITIONS}/{plural}.scheduling.volcano.sh");
    let stored = cluster.api.get(&path).await.unwrap();
    let mut versions = stored["spec"]["versions"].clone();
    for version in versions.as_array_mut().unwrap() {
        version["schema"] = json!({"openAPIV3Schema": {"type": "object",
            "x-kubernetes-preserve-unknown-fields": true}});
    }
    cluster.api.merge(&path, &json!({"spec": {"versions": versions}})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_custom_objects_are_told_and_stop_nothing() {
    let cluster = Cluster::take("malformed", 1).await;
    without_schema(&cluster, "podgroups").await;
    without_schema(&cluster, "queues").await;
    let mut group = gang(cluster.namespace, "odd", 1, "1").remove(0);
    group["spec"] = json!({"minMember": {"a": 1}, "queue": ["default"], "minResources": 7});
    let queue = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {"name": "odd"}, "spec": {"weight": "heavy", "capability": {"cpu": "much"}}});
    for object in [&group, &queue] {
        until("the definitions accept anything", async || cluster.api.create(object).await.ok())
            .await;
    }
    let _scheduler = Scheduler::start(&cluster).await;
    cluster.submit("train", 2, "1").await;
    cluster.running("train", 2).await;
    logged(&cluster, "malformed/odd").await;
    logged(&cluster, "odd").await;

    // The next test finds what is shipped.
    cluster.api.delete(&format!("{QUEUES}/odd")).await.unwrap();
    cluster.api.delete(&cluster.path("podgroups/odd")).await.unwrap();
    install(&cluster.api).await;
    let collections = [(group, cluster.path("podgroups")), (queue, QUEUES.to_owned())];
    for (mut object, collection) in collections {
        object["metadata"]["name"] = json!("again");
        until("the schemas are in force again", async || match cluster.api.create(&object).await {
            Err(error) => (code(&error) == 422).then_some(()),
            Ok(_) => {
                drop(cluster.api.delete(&format!("{collection}/again")).await);
                None
            }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn core_17_kinds_of_newer_releases_may_be_missing() {
    let cluster = Cluster::take("old-cluster", 1).await;
    let optional = ["hypernodes.topology", "numatopologies.nodeinfo", "nodeshards.shard"]
        .map(|kind| format!("{DEFINITIONS}/{kind}.volcano.sh"));
    for path in &optional {
        cluster.api.delete(path).await.unwrap();
        until("the kind is gone", async || {
            cluster.api.get(path).await.err().filter(|error| code(error) == 404)
        })
        .await;
    }
    let args =
        ["--leader-elect=false", "--schedule-period=100ms", "--scheduler-sharding-mode=soft"];
    let _scheduler = Scheduler::start_with(&cluster, &args).await;
    cluster.submit("train", 2, "1").await;
    cluster.running("train", 2).await;
    install(&cluster.api).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_schedulers_without_election_bind_no_pod_twice_and_are_told() {
    let cluster = Cluster::take("two-alone", 2).await;
    for index in 0..3 {
        cluster.submit(&format!("gang-{index}"), 4, "1").await;
    }
    let slow = ["--leader-elect=false", "--kube-api-qps=1", "--kube-api-burst=20"];
    let first = Scheduler::start_with(&cluster, &slow).await;
    crate::restarts::bound(&cluster, 1).await;
    // It has decided about all of them, and sends the rest when the other one has bound them.
    first.signal("STOP").await;
    crate::restarts::something_waits(&cluster).await;
    let _second = Scheduler::start(&cluster).await;
    for index in 0..3 {
        cluster.running(&format!("gang-{index}"), 4).await;
    }
    first.signal("CONT").await;
    logged(&cluster, "bound by somebody else").await;
    logged(&cluster, "--leader-elect=true").await;
    for index in 0..3 {
        let pods = cluster.pods(&format!("gang-{index}")).await;
        cluster.audit.bound_once(pods.iter().map(name)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_of_somebody_else_is_told_and_respected() {
    let cluster = Cluster::take("foreign-lease", 1).await;
    let now = "2020-01-01T00:00:00.000000Z";
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "volcano", "namespace": "volcano-system"},
        "spec": {"holderIdentity": "go-binary_1", "leaseDurationSeconds": 600,
            "acquireTime": now, "renewTime": now, "leaseTransitions": 3}});
    cluster.api.create(&lease).await.unwrap();
    let args = ["--schedule-period=100ms", "--leader-elect-retry-period=100ms"];
    let _standby = Scheduler::start_with(&cluster, &args).await;
    // The holder's clock may be years behind: only what we see ourselves counts.
    logged(&cluster, "leader of volcano-system/volcano: go-binary_1").await;
    cluster.submit("train", 1, "1").await;
    let looks = |asked: &crate::audit::Asked| asked.is("get", "leases");
    let before = cluster.audit.count(looks);
    until("five more looks at the Lease", async || {
        (before + 5 <= cluster.audit.count(looks)).then_some(())
    })
    .await;
    assert!(cluster.audit.binds().is_empty());
    let released = json!({"spec": {"holderIdentity": ""}});
    cluster.api.merge(&format!("{LEASES}/volcano"), &released).await.unwrap();
    cluster.running("train", 1).await;
    let lease: Value = cluster.api.get(&format!("{LEASES}/volcano")).await.unwrap();
    assert_eq!(lease["spec"]["leaseTransitions"], 4);
}

/// A token of a file, as a pod has it: the kubelet writes a new one before the old one expires, and
/// the client reads the file once a minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_token_is_told_and_a_new_one_is_read() {
    let mut cluster = Cluster::take("token", 1).await;
    let file = cluster.dir().join("token");
    // The server tolerates a minute, and believes a token that was good for ten seconds more. What
    // is left must do for the start.
    fs::write(&file, cluster.token("-30s")).unwrap();
    let config = cluster.kubeconfig_with(&json!({"tokenFile": file}));
    let kubeconfig = format!("--kubeconfig={}", config.display());
    let args = ["--leader-elect=false", "--schedule-period=100ms", kubeconfig.as_str()];
    let _scheduler = Scheduler::start_with(&cluster, &args).await;
    cluster.submit("before", 1, "1").await;
    cluster.running("before", 1).await;
    let mut n_probes = 0;
    until("the token has expired", async || {
        // A binding a second: a node holds a hundred pods.
        sleep(Duration::from_secs(1)).await;
        n_probes += 1;
        cluster.submit(&format!("probe-{n_probes}"), 1, "1m").await;
        let log = fs::read_to_string(cluster.scheduler_log()).unwrap();
        log.contains("Unauthorized").then_some(())
    })
    .await;
    fs::write(&file, cluster.token("1h")).unwrap();
    cluster.submit("after", 1, "1").await;
    crate::api::until_within(300, "the new token is read", async || {
        let pods = cluster.pods("after").await;
        pods.iter().all(|pod| crate::objects::phase(pod) == "Running").then_some(())
    })
    .await;
    cluster.audit.bound_once(["before-0", "after-0"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_without_its_claim_says_so_and_runs_when_the_claim_is_there() {
    let cluster = Cluster::take("no-claim", 1).await;
    storage(&cluster.api, 1).await;
    let _scheduler = Scheduler::start(&cluster).await;
    let mut lonely = gang(cluster.namespace, "lonely", 1, "1");
    let source = json!({"claimName": "nowhere"});
    lonely[1]["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": source}]);
    for object in &lonely {
        cluster.api.create(object).await.unwrap();
    }
    let reported = cluster.pod("lonely-0", |pod| refusal(pod).is_some()).await;
    let (reason, message) = refusal(&reported).unwrap();
    assert_eq!(reason, "Unschedulable");
    assert!(message.contains("persistentvolumeclaim \"nowhere\" not found"), "{message}");
    cluster.submit("other", 1, "1").await;
    cluster.running("other", 1).await;

    bound_claim(&cluster, "nowhere").await;
    cluster.running("lonely", 1).await;
}
