//! `vcsim run` with the plugin fairshare: what each account has used. Specification: fair-share.md 13.

use serde_json::{Value, json};

use crate::common::{Called, file, vcsim};

const CONF: &str = "actions: \"enqueue, allocate\"
tiers:
- plugins:
  - {name: gang}
  - name: fairshare
    arguments: {fairshare.resourceKey: cpu, fairshare.weights: {red: 3}}
- plugins: [{name: predicates}]
";

/// A pod that has run for an hour, one that begins, and one that has no room.
const OBJECTS: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 6, memory: 64Gi, pods: 110}}
---
apiVersion: v1
kind: Pod
metadata: {name: old, namespace: red}
spec:
  schedulerName: volcano
  nodeName: n1
  containers: [{name: main, image: busybox, resources: {requests: {cpu: 2}}}]
status: {phase: Running, startTime: START}
---
apiVersion: v1
kind: Pod
metadata: {name: new, namespace: blue}
spec:
  schedulerName: volcano
  containers: [{name: main, image: busybox, resources: {requests: {cpu: 3}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: red}
spec:
  schedulerName: volcano
  containers: [{name: main, image: busybox, resources: {requests: {cpu: 3}}}]
";

fn run(test: &str, arguments: &[&str]) -> Called {
    let conf = file(&format!("{test}-conf"), "fairshare.conf", CONF);
    let objects = file(test, "objects.yaml", &OBJECTS.replace("START", "2020-01-01T00:00:00Z"));
    let mut all = vec!["run", "--scheduler-conf", &conf, &objects];
    all.extend(arguments);
    vcsim(&all)
}

#[test]
fn accounts_are_listed_with_what_they_have_used() {
    let result = run("usage", &["-o", "json"]).json();
    let usages: Vec<Value> = result["usages"].as_array().unwrap().clone();
    let shown = |usage: &Value| {
        json!([usage["account"], usage["running"], usage["weight"], usage["waitingJobs"]])
    };
    let shown: Vec<Value> = usages.iter().map(shown).collect();
    assert_eq!(shown, [json!(["blue", 3.0, 1.0, 0]), json!(["red", 2.0, 3.0, 1])]);
    // A pod that has always run has used its cpus for half-life / ln 2.
    let used = usages[1]["usedHours"].as_f64().unwrap();
    assert!((used - 2.0 * 4.0 / 2_f64.ln()).abs() < 0.01, "{used}");
    let table = run("usage-table", &[]).stdout;
    let section = table.split("USAGE\n").nth(1).unwrap();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let head = "QUEUE ACCOUNT CHARGED RUNNING USED PROJECTED WEIGHT LEVEL WAITING";
    assert_eq!(words(section.lines().next().unwrap()), words(head));
    assert!(section.contains("11.54 h"), "{table}");
}
