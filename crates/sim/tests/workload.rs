//! What the controllers make of a workload, field by field.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use vc_sim::Controllers;
use vc_sim::serve::Expander;

fn made(object: Value) -> (Vec<Value>, Vec<Value>) {
    let objects = Controllers.expand(&object);
    let between = |object: &Value| object["kind"] != "ReplicaSet";
    objects.into_iter().filter(between).partition(|object| object["kind"] == "PodGroup")
}

fn volcano_job() -> Value {
    let task = |name: &str, replicas: i32, cpu: &str| {
        json!({
            "name": name, "replicas": replicas,
            "template": {
                "metadata": {"labels": {"app": "x"}, "annotations": {"note": "y"}},
                "spec": {"containers": [
                    {"name": "c", "resources": {"requests": {"cpu": cpu}, "limits": {"memory": "1Gi"}}},
                ]},
            },
        })
    };
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": {
            "name": "train", "namespace": "ns", "uid": "1234",
            "labels": {"volcano.sh/preemptable": "true", "team": "a"},
            "annotations": {"volcano.sh/revocable-zone": "*"},
        },
        "spec": {
            "minAvailable": 2, "queue": "q", "priorityClassName": "high",
            "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
            "tasks": [task("ps", 1, "2"), task("worker", 2, "1")],
        },
    })
}

#[test]
fn the_pod_group_of_a_volcano_job() {
    let (groups, pods) = made(volcano_job());
    assert_eq!((groups.len(), pods.len()), (1, 3));
    let group = &groups[0];
    assert_eq!(group["metadata"]["name"], "train-1234");
    assert_eq!(group["metadata"]["namespace"], "ns");
    assert_eq!(group["metadata"]["labels"]["team"], "a");
    assert_eq!(group["metadata"]["ownerReferences"][0]["uid"], "1234");
    let spec = json!({
        "minMember": 2, "minTaskMember": {"ps": 1, "worker": 2}, "queue": "q",
        "priorityClassName": "high",
        // The job needs fewer than its tasks together: the first two pods count.
        "minResources": {"cpu": "3", "memory": "2Gi", "pods": "2"},
        "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
    });
    assert_eq!(group["spec"], spec);
    assert_eq!(group["status"]["phase"], "Pending");
}

#[test]
fn min_resources_of_a_job_that_needs_more_than_its_tasks() {
    let mut job = volcano_job();
    job["spec"]["minAvailable"] = json!(3);
    job["spec"]["tasks"][0]["minAvailable"] = json!(0);
    job["spec"]["tasks"][1]["minAvailable"] = json!(2);
    let (groups, _) = made(job);
    let resources = json!({"cpu": "4", "memory": "3Gi", "pods": "3"});
    assert_eq!(groups[0]["spec"]["minResources"], resources);
}

#[test]
fn the_pods_of_a_volcano_job() {
    let (_, pods) = made(volcano_job());
    let names: Vec<&Value> = pods.iter().map(|pod| &pod["metadata"]["name"]).collect();
    assert_eq!(names, ["train-ps-0", "train-worker-0", "train-worker-1"]);
    let pod = &pods[2];
    let annotations = json!({
        "note": "y",
        "scheduling.k8s.io/group-name": "train-1234",
        "volcano.sh/task-spec": "worker",
        "volcano.sh/task-index": "1",
        "volcano.sh/job-name": "train",
        "volcano.sh/queue-name": "q",
        "volcano.sh/job-version": "0",
        "volcano.sh/template-uid": "train-worker",
        "volcano.sh/revocable-zone": "*",
    });
    assert_eq!(pod["metadata"]["annotations"], annotations);
    let labels = json!({
        "app": "x",
        "volcano.sh/task-spec": "worker",
        "volcano.sh/task-index": "1",
        "volcano.sh/job-name": "train",
        "volcano.sh/job-namespace": "ns",
        "volcano.sh/queue-name": "q",
        "volcano.sh/preemptable": "true",
    });
    assert_eq!(pod["metadata"]["labels"], labels);
    assert_eq!(pod["spec"]["schedulerName"], "volcano");
    assert_eq!(pod["spec"]["containers"][0]["resources"]["requests"]["memory"], "1Gi");
    let owner = &pod["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["controller"]), (&json!("Job"), &json!(true)));
}

#[test]
fn the_pod_group_of_a_deployment_takes_what_its_owner_says() {
    let (groups, pods) = made(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "ns", "uid": "7",
            "annotations": {"scheduling.volcano.sh/group-min-member": "2"},
        },
        "spec": {"replicas": 3, "template": {
            "metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "q"}},
            "spec": {
                "schedulerName": "volcano", "priorityClassName": "high",
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}],
            },
        }},
    }));
    assert_eq!((groups.len(), pods.len()), (1, 3));
    let spec = json!({
        "minMember": 2, "minResources": {"cpu": "1", "memory": "0", "pods": "2"}, "queue": "q",
        "priorityClassName": "high",
    });
    assert_eq!(groups[0]["spec"], spec);
    let group = &groups[0]["metadata"]["name"];
    assert!(group.as_str().unwrap().starts_with("podgroup-7-"), "{group}");
    for pod in &pods {
        assert_eq!(&pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"], group);
    }
}

#[test]
fn other_objects_stand_for_nothing() {
    assert!(Controllers.expand(&json!({"apiVersion": "v1", "kind": "ConfigMap"})).is_empty());
}
