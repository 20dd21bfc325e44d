//! The usage of fairshare over a restart of the process. Specification: fair-share.md 11.

use serde_json::Value;

use crate::cluster::{Replica, bound, client, count, create, folder, gang, no_fault, poll, serve};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CONF: &str = "actions: \"enqueue, allocate\"\ntiers:\n- plugins:\n  - name: gang\n  \
    - name: fairshare\n    arguments:\n      fairshare.resourceKey: cpu\n      \
    fairshare.persistState: \"true\"\n      fairshare.stateNamespace: default\n  \
    - name: predicates\n";

/// FS-81, FS-82: what has run is saved at the first change and at the end. The next leader reads it
/// once, before its first cycle.
#[tokio::test]
async fn fs_leader_change() {
    let path = folder("usages").join("volcano-scheduler.conf");
    std::fs::write(&path, CONF).unwrap();
    let server = serve(gang("one", 1, "1")).await;
    let file = format!("--scheduler-conf={}", path.display());
    let args = ["--leader-elect=false", &file];
    let map = format!("{MAPS}/fairshare-usage-state");
    let [get, put, post] = [format!("GET {map}"), format!("PUT {map}"), format!("POST {MAPS}")];
    let first = Replica::start(&server, &args, no_fault);
    bound(&server, "one-0").await;
    poll("the usage is saved", async || (0 < count(&first.log, &post)).then_some(())).await;
    // This change is saved at the end, before the interval is over.
    create(&server, gang("two", 1, "1")).await;
    bound(&server, "two-0").await;
    let log = first.log.clone();
    first.stop().await;
    assert_eq!((count(&log, &post), count(&log, &put)), (1, 1));
    let state = async |key: &str| {
        let api = client(&server.url(), Default::default(), no_fault);
        let request = http::Request::get(&map).body(Vec::new()).unwrap();
        let found: Value = api.request(request).await.unwrap();
        found["data"][key].as_str().unwrap().to_owned()
    };
    let exact = state("exact.json").await;
    assert!(exact.contains("\"charge\":\"cpu\"") && exact.contains("\"2000\"]"), "{exact}");
    assert!(state("state.json").await.contains("\"queues\":{\"default\":{\"default\":"));
    let second = Replica::start(&server, &args, no_fault);
    create(&server, gang("three", 1, "1")).await;
    bound(&server, "three-0").await;
    let log = second.log.clone();
    second.stop().await;
    assert_eq!((count(&log, &get), count(&log, &post)), (1, 0));
    assert!(state("exact.json").await.contains("\"3000\"]"));
    server.stop().await;
}

/// Without the argument nothing is read or written.
#[tokio::test]
async fn fs_84_no_config_map_without_the_argument() {
    let path = folder("no-usages").join("volcano-scheduler.conf");
    std::fs::write(&path, CONF.replace("\"true\"", "\"false\"")).unwrap();
    let server = serve(gang("one", 1, "1")).await;
    let file = format!("--scheduler-conf={}", path.display());
    let replica = Replica::start(&server, &["--leader-elect=false", &file], no_fault);
    bound(&server, "one-0").await;
    let log = replica.log.clone();
    replica.stop().await;
    let is_map = |line: &&String| line.contains("/configmaps");
    assert_eq!(log.lock().unwrap().iter().filter(is_map).count(), 0);
    server.stop().await;
}
