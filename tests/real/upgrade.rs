//! The scheduler in place of Volcano's own: with the ClusterRole and the definitions that a release of
//! Volcano has installed, gangs are bound, and what its role lacks is logged once. Specification:
//! core.md 1.9, C-06; docs/upgrade-from-volcano.md.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::api::{Api, code, until};
use crate::audit::{Asked, Audit};
use crate::bad_input::logged;
use crate::cluster::{Cluster, install};
use crate::process::Scheduler;
use crate::roles::{RELEASES, Release, cluster_role, shipped_rules_without};
use crate::served;

const NODE_SHARDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/\
    nodeshards.shard.volcano.sh";
/// The shipped Role of the Lease; Volcano's ClusterRole grants it.
const LEASE_RIGHTS: &str =
    "/apis/rbac.authorization.k8s.io/v1/namespaces/volcano-system/rolebindings/vc-scheduler";
/// Arguments of Volcano's Deployment beside those that the shipped one has as well; the periods are
/// the test's.
const ARGS: [&str; 6] = [
    "--logtostderr",
    "--kube-api-qps=2000",
    "--kube-api-burst=2000",
    "--node-worker-threads=20",
    "--schedule-period=100ms",
    "--leader-elect-retry-period=100ms",
];

/// Gives the scheduler these rights, and waits until they are in force.
async fn grant(api: &Api, rules: Vec<Value>, version: &str) {
    let (role, marker) = cluster_role(rules, version);
    api.apply(&role).await.unwrap();
    served::review(api, &marker, true).await;
}

/// Makes the cluster what the release has installed.
async fn install_release(api: &Api, release: &Release) {
    grant(api, release.rules(), release.version).await;
    drop(api.delete(LEASE_RIGHTS).await);
    for definition in release.definitions() {
        api.apply(&definition).await.unwrap();
    }
    if !release.has_node_shards() {
        drop(api.delete(NODE_SHARDS).await);
        until("no NodeShards are defined", async || {
            api.get(NODE_SHARDS).await.err().filter(|error| code(error) == 404)
        })
        .await;
    }
    let (sent, stored) = release.sample_spec();
    until("the definitions are in force", async || {
        (sample(api, &sent).await? == stored).then_some(())
    })
    .await;
}

/// What would be stored of the spec of a PodGroup.
async fn sample(api: &Api, spec: &Value) -> Option<Value> {
    let path = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups?dryRun=All";
    let group = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "sample"}, "spec": spec});
    api.post(path, &group).await.ok().map(|answer| answer["spec"].clone())
}

/// Warnings and errors of a log of klog's format, without what changes from line to line.
fn warnings(log: &str) -> Vec<&str> {
    let lines = log.lines().filter(|line| {
        let mut letters = line.chars();
        letters.next().is_some_and(|level| "WEF".contains(level))
            && letters.take(4).all(|letter| letter.is_ascii_digit())
    });
    lines.map(|line| line.split_once("] ").map_or(line, |(_, message)| message)).collect()
}

fn refused(audit: &Audit) -> BTreeSet<(String, String)> {
    let all = audit.all().into_iter().filter(|asked| asked.code == 403);
    all.map(|asked| (asked.verb, asked.resource)).collect()
}

/// Two gangs, one after the other: the second is served when everything of the first is written.
/// Each release asks for another amount of cpu, or the status of the queue would stay as it is.
async fn run_gangs(cluster: &Cluster, (release, cpu): (&Release, &str), audit: &Audit) {
    let version = release.version.replace('.', "-");
    for part in ["a", "b"] {
        let gang = format!("v{version}-{part}");
        cluster.submit(&gang, 3, cpu).await;
        let pods = cluster.running(&gang, 3).await;
        audit.bound_once(pods.iter().map(crate::objects::name)).await;
    }
    for (verb, resource) in release.refused {
        // One more write of a queue comes with the second gang.
        let n_times = if *verb == "update" { 2 } else { 1 };
        let like = |asked: &Asked| asked.is(verb, resource) && asked.code == 403;
        until(&format!("{verb} {resource} is refused"), async || {
            (n_times <= audit.count(like)).then_some(())
        })
        .await;
    }
    let has_queue_status = release.refused.iter().all(|(_, resource)| *resource != "queues/status");
    until("the status of the queue is written, unless it is refused", async || {
        let is_written = |asked: &Asked| asked.is("update", "queues/status") && asked.is_done();
        (!has_queue_status || 0 < audit.count(is_written)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_image_swap_works_with_the_role_and_the_kinds_of_each_release() {
    let cluster = Cluster::take("upgrade", 2).await;
    let log = cluster.scheduler_log();
    for (index, release) in RELEASES.iter().enumerate() {
        let version = release.version;
        if release.has_node_shards() {
            // Definitions that an earlier release lacks.
            install(&cluster.api).await;
        }
        install_release(&cluster.api, release).await;
        let (audit, before) = (cluster.audit_from_now(), fs::metadata(&log).map_or(0, |f| f.len()));
        let scheduler = Scheduler::start_with(&cluster, &ARGS).await;
        run_gangs(&cluster, (release, &format!("{}m", 100 * (index + 1))), &audit).await;
        assert!(scheduler.terminate().await.success(), "{version}");
        let text = fs::read_to_string(&log).unwrap();
        let mut found = warnings(&text[usize::try_from(before).unwrap()..]);
        found.sort_unstable();
        assert_eq!(found.len(), release.warnings.len(), "{version}: {found:#?}");
        for (found, wanted) in found.iter().zip(release.warnings) {
            assert!(found.starts_with(wanted), "{version}: {found}");
        }
        let wanted = release.refused.iter().map(|(verb, of)| ((*verb).into(), (*of).into()));
        assert_eq!(refused(&audit), wanted.collect(), "{version}");
        cluster.api.delete(&cluster.path("pods")).await.unwrap();
        cluster.api.delete(&cluster.path("podgroups")).await.unwrap();
    }
    // The next test finds what is shipped.
    install(&cluster.api).await;
    let kept = json!({"queue": "default", "ofTheFuture": 1});
    until("the shipped definitions are in force", async || {
        (sample(&cluster.api, &kept).await? == kept).then_some(())
    })
    .await;
}

/// The answer of the scheduler's `/readyz`.
async fn readyz(cluster: &Cluster) -> String {
    let log = fs::read_to_string(cluster.scheduler_log()).unwrap();
    let address = log.split("serving health on ").nth(1).unwrap().split_whitespace().next();
    let mut stream = TcpStream::connect(address.unwrap()).await.unwrap();
    stream.write_all(b"GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_required_right_that_is_missing_is_named_and_used_once_it_is_granted() {
    let cluster = Cluster::take("no-right", 1).await;
    grant(&cluster.api, shipped_rules_without("podgroups"), "no-podgroups").await;
    let _scheduler = Scheduler::start(&cluster).await;
    let cause = "no right to watch podgroups in API group scheduling.volcano.sh (403)";
    logged(&cluster, &format!("PodGroups cannot be read: {cause}")).await;
    let answer = readyz(&cluster).await;
    assert!(answer.contains(" 503 ") && answer.contains(cause), "{answer}");
    cluster.submit("train", 2, "1").await;
    install(&cluster.api).await;
    cluster.running("train", 2).await;
    logged(&cluster, "PodGroups can be read from now on").await;
    let answer = readyz(&cluster).await;
    assert!(answer.contains(" 200 "), "{answer}");
}
