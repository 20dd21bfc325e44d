//! The shipped manifests on an empty cluster, and once more on the same.

use serde_json::{Value, json};

use crate::api::{Api, code};
use crate::cluster::{Cluster, install, manifests};
use crate::objects::{condition, name};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applied_again_the_manifests_change_nothing() {
    let cluster = Cluster::take("install", 0).await;
    let first = install(&cluster.api).await;
    let second = install(&cluster.api).await;
    assert_eq!(first.len(), manifests().len());
    for (before, after) in first.iter().zip(&second) {
        let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
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

/// Group and version, collection, kind.
type Served = (&'static str, &'static str, &'static str);
const GROUP: Served = ("scheduling.volcano.sh/v1beta1", "namespaces/default/podgroups", "PodGroup");
const QUEUE: Served = ("scheduling.volcano.sh/v1beta1", "queues", "Queue");
const HYPER_NODE: Served = ("topology.volcano.sh/v1alpha1", "hypernodes", "HyperNode");
const NUMA: Served = ("nodeinfo.volcano.sh/v1alpha1", "numatopologies", "Numatopology");
const SHARD: Served = ("shard.volcano.sh/v1alpha1", "nodeshards", "NodeShard");

/// What would be stored.
async fn stored(api: &Api, (version, plural, kind): Served, spec: &Value) -> kube::Result<Value> {
    let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "tried"},
        "spec": spec});
    let path = format!("/apis/{version}/{plural}?dryRun=All");
    api.post(&path, &object).await.map(|answer| answer["spec"].clone())
}

/// Fields, defaults and ranges of core.md 3.9.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_schemas_default_and_keep() {
    let cluster = Cluster::take("schemas", 0).await;
    let api = &cluster.api;
    let policy = json!({"name": "p", "networkTopology": {}});
    let full = json!({"name": "p", "networkTopology": {"mode": "hard"}, "subGroupSize": 1,
        "minSubGroups": 0});
    let member = json!({"type": "Node", "selector": {"exactMatch": {"name": "n"}}});
    let numa = json!({"numares": {"cpu": {"allocatable": "0-3,8", "capacity": 5}},
        "podAllocations": [{"uid": "u", "containerAllocations": [{"allocations": {"cpu": "0"}}]}]});
    let cases = [
        (
            GROUP,
            json!({"minMember": 2, "ofTheFuture": {"a": 1}}),
            json!({"minMember": 2, "queue": "default", "ofTheFuture": {"a": 1}}),
        ),
        (
            GROUP,
            json!({"networkTopology": {"highestTierAllowed": 0}}),
            json!({"queue": "default", "networkTopology": {"mode": "hard", "highestTierAllowed": 0}}),
        ),
        (
            GROUP,
            json!({"queue": "q", "subGroupPolicy": [policy]}),
            json!({"queue": "q", "subGroupPolicy": [full]}),
        ),
        (QUEUE, json!({}), json!({"weight": 1, "dequeueStrategy": "traverse"})),
        (
            QUEUE,
            json!({"weight": 65535, "reclaimable": false, "ofTheFuture": 1}),
            json!({"weight": 65535, "dequeueStrategy": "traverse", "reclaimable": false,
                "ofTheFuture": 1}),
        ),
        (
            HYPER_NODE,
            json!({"tier": 0, "members": [member]}),
            json!({"tier": 0, "members": [member]}),
        ),
        (NUMA, numa.clone(), numa),
        (
            SHARD,
            json!({"nodesDesired": ["a"], "ofTheFuture": 1}),
            json!({"nodesDesired": ["a"], "ofTheFuture": 1}),
        ),
    ];
    for (served, spec, expected) in cases {
        assert_eq!(stored(api, served, &spec).await.unwrap(), expected, "{spec}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_schemas_refuse_what_is_out_of_range() {
    let cluster = Cluster::take("ranges", 0).await;
    let either = json!({"exactMatch": {"name": "n"}, "regexMatch": {"pattern": "n"}});
    let cases = [
        (GROUP, json!({"minMember": -1})),
        (GROUP, json!({"minResources": {"cpu": "much"}})),
        (GROUP, json!({"networkTopology": {"mode": "strict"}})),
        (GROUP, json!({"networkTopology": {"highestTierAllowed": -1}})),
        (GROUP, json!({"subGroupPolicy": [{"name": "p", "minSubGroups": -1}]})),
        (QUEUE, json!({"weight": 0})),
        (QUEUE, json!({"weight": 65536})),
        (QUEUE, json!({"priority": -1})),
        (QUEUE, json!({"dequeueStrategy": "lifo"})),
        (QUEUE, json!({"capability": {"cpu": "much"}})),
        (HYPER_NODE, json!({})),
        (HYPER_NODE, json!({"tier": -1})),
        (HYPER_NODE, json!({"tier": 1, "members": [{"type": "Rack"}]})),
        (HYPER_NODE, json!({"tier": 1, "members": [{"type": "Node", "selector": {}}]})),
        (HYPER_NODE, json!({"tier": 1, "members": [{"type": "Node", "selector": either}]})),
        (SHARD, json!({"nodesDesired": "a"})),
    ];
    for (served, spec) in cases {
        let refused = stored(&cluster.api, served, &spec).await;
        let refused = refused.expect_err(&format!("{}: {spec}", served.2));
        assert_eq!(code(&refused), 422, "{spec}: {refused}");
    }
}
