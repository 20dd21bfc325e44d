//! The shipped manifests on an empty cluster, and once more on the same.

use serde_json::json;

use crate::api::code;
use crate::cluster::{Cluster, install, manifests};
use crate::objects::{condition, gang, name};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applied_again_the_manifests_change_nothing() {
    let cluster = Cluster::take("install", 0).await;
    let first = install(&cluster.api).await;
    let second = install(&cluster.api).await;
    assert_eq!(first.len(), manifests().len());
    for (before, after) in first.iter().zip(&second) {
        let version = |object: &serde_json::Value| object["metadata"]["resourceVersion"].clone();
        assert_eq!(version(before), version(after), "{}", name(before));
    }
    let definitions = second.iter().filter(|object| object["kind"] == "CustomResourceDefinition");
    for definition in definitions {
        for kind in ["Established", "NamesAccepted"] {
            let found = condition(definition, kind).unwrap();
            assert_eq!(found["status"], "True", "{}: {found}", name(definition));
        }
        // A schema that is not structural is accepted, and then nothing is pruned or defaulted.
        assert!(condition(definition, "NonStructuralSchema").is_none(), "{}", name(definition));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_schemas_refuse_default_and_keep() {
    let cluster = Cluster::take("schemas", 0).await;
    let mut group = gang("schemas", "train", 1, "1").remove(0);
    group["spec"] = json!({"minMember": 2, "ofTheFuture": {"a": 1}});
    let stored = cluster.api.create(&group).await.unwrap();
    assert_eq!(
        stored["spec"],
        json!({"minMember": 2, "queue": "default", "ofTheFuture": {"a": 1}})
    );
    for (field, bad) in [("minMember", json!(-1)), ("minResources", json!({"cpu": "much"}))] {
        group["metadata"]["name"] = json!("bad");
        group["spec"] = json!({field: bad});
        let error = cluster.api.create(&group).await.unwrap_err();
        assert_eq!(code(&error), 422, "{error}");
    }
}
