//! `vcsim run` with the sample configuration of two cohorts: what each queue has, uses, borrows and
//! lends (cohort.md B.2).

use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Called, file, vcsim};

/// Ten cpus in a queue that has none of its own.
const WORKLOAD: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 64, memory: 256Gi, pods: 110}}
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: crawl}
spec:
  minAvailable: 10
  schedulerName: volcano
  queue: batch
  tasks:
  - replicas: 10
    name: worker
    template:
      spec:
        containers: [{name: main, image: busybox, resources: {requests: {cpu: 1}}}]
";

fn run(test: &str, arguments: &[&str]) -> Called {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config");
    let shipped = |name: &str| config.join(name).to_str().unwrap().to_owned();
    let (conf, queues) = (shipped("volcano-scheduler-cohort.conf"), shipped("cohort-queues.yaml"));
    let workload = file(test, "workload.yaml", WORKLOAD);
    let mut all = vec!["run", "--scheduler-conf", &conf, &queues, &workload];
    all.extend(arguments);
    let called = vcsim(&all);
    assert_eq!((called.code, &*called.stderr), (0, ""));
    called
}

/// Nominal, used, borrowed, lent, available cpus.
fn cpus(result: &Value, path: &str) -> Value {
    let quotas = result["quotas"].as_array().unwrap();
    let quota = quotas.iter().find(|quota| quota["path"] == path).unwrap();
    let resources = quota["resources"].as_array().unwrap();
    let cpu = resources.iter().find(|row| row["resource"] == "cpu").unwrap();
    json!([cpu["nominal"], cpu["used"], cpu["borrowed"], cpu["lent"], cpu["available"]])
}

#[test]
fn two_cohorts_show_what_is_borrowed_and_lent() {
    let result = run("quota", &["-o", "json"]).json();
    assert_eq!(result["warnings"], json!([]));
    assert_eq!(result["binds"].as_array().unwrap().len(), 10);
    let shown = [
        ("/product", json!(["64", "10", "0", "0", "54"])),
        ("/product/batch", json!(["0", "10", "10", "0", "54"])),
        ("/product/search", json!(["64", "0", "0", "10", "54"])),
        // The other cohort has nothing to do with it.
        ("/research", json!(["96", "0", "0", "0", "88"])),
        ("/research/nlp", json!(["48", "0", "0", "0", "96"])),
        ("/research/vision", json!(["32", "0", "0", "0", "48"])),
    ];
    for (path, expected) in shown {
        assert_eq!(cpus(&result, path), expected, "{path}");
    }
}

#[test]
fn the_table_has_a_row_for_each_queue_and_resource() {
    let table = run("quota-table", &[]).stdout;
    let section = table.split("QUOTA\n").nth(1).unwrap();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = section.lines().map(words).collect();
    let head = "QUEUE RESOURCE NOMINAL USED BORROWED LENT AVAILABLE SHARE";
    assert_eq!(rows[0], words(head));
    assert!(rows.contains(&words("/product/search cpu 64 0 0 10 54 -")), "{table}");
}

/// Of what the queue deserves (B.8): what has nothing of its own and uses something is full.
#[test]
fn the_table_of_queues_has_deserved_and_share() {
    let table = run("queue-table", &[]).stdout;
    let section = table.split("QUEUES\n").nth(1).unwrap();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let row = |queue: &str| {
        let mut rows = section.lines().map(words);
        rows.find(|row| row.first().is_some_and(|name| name == queue)).unwrap()
    };
    let search = row("search");
    assert!(search.contains(&"cpu=64".to_owned()), "{table}");
    assert_eq!(search.last().unwrap(), "0%");
    assert_eq!(row("batch").last().unwrap(), "100%");
    assert_eq!(row("product").last().unwrap(), "16%");
}
