//! What happens before the first cycle: version and queues (core.md 1.3, 4.7).

use serde_json::json;
use tokio::time::Instant;
use vc_kube::{
    Clients, DeviceApi, KindRefusal, ServerVersion, Unobserved, devices, devices_appear,
};
use vc_kube::{ensure_queues, server_version};

use crate::fake::{self, json_answer, list, not_found, refusal};

const QUEUES: &str = "/apis/scheduling.volcano.sh/v1beta1/queues";

#[tokio::test(start_paused = true)]
async fn core_62_missing_queues_are_created() {
    let (client, log) = fake::client(|seen| match seen.line.starts_with("GET") {
        true => not_found(),
        false => json_answer(201, seen.body.clone()),
    });
    ensure_queues(&client, "team").await.unwrap();
    let posts = log.of("POST");
    assert_eq!(posts[0].line, format!("POST {QUEUES}"));
    assert_eq!(posts[0].body["kind"], "Queue");
    assert_eq!(posts[0].body["metadata"]["name"], "root");
    assert_eq!(posts[0].body["spec"], json!({"weight": 1, "reclaimable": false}));
    assert_eq!(posts[1].body["metadata"]["name"], "team");
    assert_eq!(posts[1].body["spec"], json!({"weight": 1, "reclaimable": true}));
    assert_eq!(posts.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn core_62_two_replicas_at_once() {
    let (client, log) = fake::client(|seen| match seen.line.starts_with("GET") {
        true => not_found(),
        false => refusal(409, "AlreadyExists", "queues \"root\" already exists"),
    });
    ensure_queues(&client, "default").await.unwrap();
    assert_eq!(log.of("POST").len(), 2);
}

/// Seed 622390 of the simulation: nobody tried again, and the pods of the queue waited for ever.
#[tokio::test(start_paused = true)]
async fn a_conflict_does_not_say_that_the_queue_exists() {
    let (client, log) = fake::client(|seen| match (seen.line.starts_with("GET"), seen.before) {
        (true, _) => not_found(),
        (false, 0..2) => refusal(409, "Conflict", "the quota was changed"),
        (false, _) => json_answer(201, seen.body.clone()),
    });
    ensure_queues(&client, "team").await.unwrap();
    let posts = log.of("POST");
    let names: Vec<&str> =
        posts.iter().filter_map(|post| post.body["metadata"]["name"].as_str()).collect();
    assert_eq!(names, ["root", "root", "root", "team"]);
}

#[tokio::test(start_paused = true)]
async fn existing_queues_are_left_alone() {
    let (client, log) = fake::client(|_| {
        json_answer(200, json!({"kind": "Queue", "metadata": {"name": "root"}, "spec": {}}))
    });
    ensure_queues(&client, "default").await.unwrap();
    let wanted = [format!("GET {QUEUES}/root"), format!("GET {QUEUES}/default")];
    assert_eq!(log.lines(), wanted);
}

#[tokio::test(start_paused = true)]
async fn queues_are_tried_for_a_minute() {
    let (client, log) = fake::client(|_| not_found());
    let start = Instant::now();
    let error = ensure_queues(&client, "default").await.unwrap_err().to_string();
    assert!(error.starts_with("queue root: not found\nhint: are Volcano's CRDs"), "{error}");
    assert_eq!(log.of("POST").len(), 60);
    assert_eq!(start.elapsed().as_secs(), 59);
}

#[tokio::test(start_paused = true)]
async fn the_version_is_asked_again_until_a_minute_has_passed() {
    let info = json!({"major": "1", "minor": "36+", "gitVersion": "v1.36.1", "gitCommit": "",
        "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": ""});
    let (client, log) = fake::client(move |seen| match seen.before {
        0..3 => refusal(503, "ServiceUnavailable", "starting"),
        _ => json_answer(200, info.clone()),
    });
    let wanted = ServerVersion { major: 1, minor: 36 };
    assert_eq!(server_version(&client).await.unwrap(), wanted);
    assert_eq!(log.lines().len(), 4);
    let (client, _) = fake::client(|_| refusal(503, "ServiceUnavailable", "starting"));
    let start = Instant::now();
    assert_eq!(server_version(&client).await.unwrap_err().to_string(), "starting");
    assert!(start.elapsed().as_secs() <= 60);
}

const CLAIMS: &str = "GET /apis/resource.k8s.io/v1/resourceclaims";

#[tokio::test(start_paused = true)]
async fn only_a_clear_answer_tells_whether_there_are_claims_for_devices() {
    let forbidden = KindRefusal {
        group: "resource.k8s.io",
        resource: "deviceclasses",
        verb: "list",
        code: 403,
        is_required: false,
    };
    let cases = [
        (200, DeviceApi::Served),
        (404, DeviceApi::Absent),
        (403, DeviceApi::Forbidden(forbidden)),
    ];
    for (code, wanted) in cases {
        let (client, log) = fake::client(move |seen| match (seen.line.as_str(), seen.before) {
            (CLAIMS, 0..2) => refusal(429, "TooManyRequests", "storage is initializing"),
            (line, _) if line.ends_with("deviceclasses") && code != 200 => {
                refusal(code, "Refused", "deviceclasses is forbidden")
            }
            _ => list(&[]),
        });
        assert_eq!(devices(&Clients::shared(client), &Unobserved).await.unwrap(), wanted);
        assert_eq!(log.of(CLAIMS).len(), 3);
    }
    let (client, _) = fake::client(|_| refusal(500, "InternalError", "etcd"));
    let error = devices(&Clients::shared(client), &Unobserved).await.unwrap_err();
    assert_eq!(error.to_string(), "etcd");
}

#[tokio::test(start_paused = true)]
async fn c06_claims_for_devices_are_looked_for_again() {
    let (client, log) = fake::client(|seen| match (seen.line.as_str(), seen.before) {
        (CLAIMS, 0) => refusal(500, "InternalError", "etcd"),
        (CLAIMS, 1) => not_found(),
        _ => list(&[]),
    });
    let start = Instant::now();
    devices_appear(&Clients::shared(client), DeviceApi::Absent, &Unobserved).await;
    assert_eq!((start.elapsed().as_secs(), log.of(CLAIMS).len()), (180, 3));
}
