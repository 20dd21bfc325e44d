//! What the ClusterRole of Volcano's scheduler grants in its releases, and which definitions of custom
//! resources they bring. The rights are facts of those releases; the table is ours.

use serde_json::{Value, json};

use crate::api::text;
use crate::cluster::manifests;
use crate::objects::name;

/// API groups, resources and verbs of a rule, separated by spaces; `core` is the group without a name.
pub(crate) type Right = (&'static str, &'static str, &'static str);

/// A release of Volcano.
pub(crate) struct Release {
    pub(crate) version: &'static str,
    /// Beside those of every release.
    rights: &'static [Right],
    /// NodeShards, sub-groups and names of tiers came with 1.14.
    has_sub_groups: bool,
    /// Verb and resource of what the role refuses to us.
    pub(crate) refused: &'static [(&'static str, &'static str)],
    /// What the log warns of, each once.
    pub(crate) warnings: &'static [&'static str],
}

/// What every release from 1.12.0 on grants.
const COMMON: &[Right] = &[
    ("apiextensions.k8s.io", "customresourcedefinitions", "create get list watch delete"),
    ("batch.volcano.sh", "jobs", "get list watch update delete"),
    ("batch.volcano.sh", "jobs/status", "update patch"),
    ("core", "events", "create list watch update patch"),
    ("core", "pods", "get list watch patch delete"),
    ("core", "pods/status", "update"),
    ("core", "pods/binding", "create"),
    ("core", "persistentvolumeclaims persistentvolumes", "list watch update"),
    ("core", "namespaces services replicationcontrollers", "list watch get"),
    ("core", "resourcequotas", "list watch"),
    ("core", "nodes", "get list watch update patch"),
    ("core", "configmaps", "get create delete update"),
    ("storage.k8s.io", "storageclasses csinodes csidrivers csistoragecapacities", "list watch"),
    ("policy", "poddisruptionbudgets", "list watch"),
    ("scheduling.k8s.io", "priorityclasses", "get list watch"),
    (
        "scheduling.incubator.k8s.io scheduling.volcano.sh",
        "queues",
        "get list watch create delete update",
    ),
    ("scheduling.incubator.k8s.io scheduling.volcano.sh", "podgroups", "list watch update"),
    ("nodeinfo.volcano.sh", "numatopologies", "get list watch delete"),
    ("topology.volcano.sh", "hypernodes hypernodes/status", "get list watch"),
    ("apps", "daemonsets replicasets statefulsets", "list watch get"),
    ("coordination.k8s.io", "leases", "get create update watch"),
    ("resource.k8s.io", "resourceclaims", "get list watch create update patch"),
    ("resource.k8s.io", "resourceclaims/status", "update"),
    ("resource.k8s.io", "deviceclasses resourceslices", "get list watch create"),
];

/// 1.12.0 writes the status of queues with server-side apply.
const QUEUE_STATUS_PATCH: Right =
    ("scheduling.incubator.k8s.io scheduling.volcano.sh", "queues/status", "patch");
const QUEUE_STATUS: Right =
    ("scheduling.incubator.k8s.io scheduling.volcano.sh", "queues/status", "update");
const ATTACHMENTS: Right = ("storage.k8s.io", "volumeattachments", "list watch");
const TAINT_RULES: Right = ("resource.k8s.io", "devicetaintrules", "get list watch");
const CONFIG_MAPS: Right = ("core", "configmaps", "list watch");
const SHARDS: Right = ("shard.volcano.sh", "nodeshards", "list watch get");
const SHARD_STATUS: Right = ("shard.volcano.sh", "nodeshards/status", "update");
/// Asked for by Kubernetes from 1.36 on.
const CLAIM_BINDING: Right = ("resource.k8s.io", "resourceclaims/binding", "update patch");

const NO_ATTACHMENTS: &str = "VolumeAttachments cannot be read: no right to watch volumeattachments \
    in API group storage.k8s.io (403). They count as none";
const NO_QUEUE_STATUS: &str = "the status of queues cannot be written: no right to update \
    queues/status in API group scheduling.volcano.sh (403)";

pub(crate) const RELEASES: &[Release] = &[
    Release {
        version: "1.12.0",
        rights: &[QUEUE_STATUS_PATCH],
        has_sub_groups: false,
        refused: &[("update", "queues/status"), ("watch", "volumeattachments")],
        warnings: &[NO_ATTACHMENTS, NO_QUEUE_STATUS],
    },
    Release {
        version: "1.12.2",
        rights: &[QUEUE_STATUS],
        has_sub_groups: false,
        refused: &[("watch", "volumeattachments")],
        warnings: &[NO_ATTACHMENTS],
    },
    Release {
        version: "1.13.3",
        rights: &[QUEUE_STATUS, ATTACHMENTS, TAINT_RULES],
        has_sub_groups: false,
        refused: &[],
        warnings: &[],
    },
    Release {
        version: "1.14.4",
        rights: &[QUEUE_STATUS, ATTACHMENTS, TAINT_RULES, CONFIG_MAPS, SHARDS, SHARD_STATUS],
        has_sub_groups: true,
        refused: &[],
        warnings: &[],
    },
    Release {
        version: "1.15.1",
        rights: &[
            QUEUE_STATUS,
            ATTACHMENTS,
            TAINT_RULES,
            CONFIG_MAPS,
            SHARDS,
            SHARD_STATUS,
            CLAIM_BINDING,
        ],
        has_sub_groups: true,
        refused: &[],
        warnings: &[],
    },
];

fn rule(&(groups, resources, verbs): &Right) -> Value {
    let words = |text: &str| -> Value { text.split(' ').collect() };
    json!({"apiGroups": words(&groups.replace("core", "")), "resources": words(resources),
        "verbs": words(verbs)})
}

/// The shipped object of that kind and name.
fn shipped(kind: &str, wanted: &str) -> Value {
    let objects = manifests().into_iter();
    { objects }.find(|object| object["kind"] == kind && name(object) == wanted).unwrap()
}

/// The ClusterRole of the scheduler's ServiceAccount with these rules, and what tells that it is in
/// force: a right that no other version of it grants.
pub(crate) fn cluster_role(mut rules: Vec<Value>, version: &str) -> (Value, Value) {
    let (group, resource) = ("marker.vc-scheduler.test", version.replace('.', "-"));
    rules.push(json!({"apiGroups": [group], "resources": [resource], "verbs": ["get"]}));
    let mut role = shipped("ClusterRole", "vc-scheduler");
    role["rules"] = rules.into();
    (role, json!({"verb": "get", "group": group, "resource": resource}))
}

/// The rules of the shipped ClusterRole without those of a resource.
pub(crate) fn shipped_rules_without(resource: &str) -> Vec<Value> {
    let role = shipped("ClusterRole", "vc-scheduler");
    let rules = role["rules"].as_array().unwrap().iter();
    { rules }.filter(|rule| rule["resources"] != json!([resource])).cloned().collect()
}

impl Release {
    pub(crate) fn rules(&self) -> Vec<Value> {
        COMMON.iter().chain(self.rights).map(rule).collect()
    }

    /// PodGroup and Queue as the release defines them: what it does not know is pruned, where ours
    /// keep it.
    pub(crate) fn definitions(&self) -> [Value; 2] {
        let mut kinds = ["podgroups", "queues"].map(|plural| {
            let name = format!("{plural}.scheduling.volcano.sh");
            shipped("CustomResourceDefinition", &name)
        });
        for kind in &mut kinds {
            prune(kind);
        }
        let phases = ["Pending", "Running", "Unknown", "Inqueue", "Completed"];
        let [group, queue] = kinds.each_mut().map(|kind| {
            &mut kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        });
        group["status"]["properties"]["phase"]["enum"] = json!(phases);
        if !self.has_sub_groups {
            remove(&mut group["spec"]["properties"], "subGroupPolicy");
            let topology = &mut group["spec"]["properties"]["networkTopology"]["properties"];
            remove(topology, "highestTierName");
            topology["highestTierAllowed"]["default"] = json!(1);
            remove(&mut queue["spec"]["properties"], "dequeueStrategy");
        }
        kinds
    }

    /// Spec of a PodGroup, and what the release stores of it.
    pub(crate) fn sample_spec(&self) -> (Value, Value) {
        let policy = json!([{"name": "p", "subGroupSize": 1, "minSubGroups": 0}]);
        let sent = json!({"queue": "default", "ofTheFuture": 1, "subGroupPolicy": policy});
        let mut stored = json!({"queue": "default"});
        if self.has_sub_groups {
            stored["subGroupPolicy"] = policy;
        }
        (sent, stored)
    }

    pub(crate) fn has_node_shards(&self) -> bool {
        self.rights.iter().any(|(group, ..)| *group == SHARDS.0)
    }
}

fn remove(fields: &mut Value, field: &str) {
    fields.as_object_mut().unwrap().remove(field).unwrap();
}

/// Fields that a schema does not name are not kept.
fn prune(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.remove("x-kubernetes-preserve-unknown-fields");
            fields.values_mut().for_each(prune);
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}

#[test]
fn every_release_grants_what_no_scheduler_can_do_without() {
    for release in RELEASES {
        let rules = release.rules();
        for (resource, verb) in [
            ("pods", "watch"),
            ("pods/binding", "create"),
            ("nodes", "watch"),
            ("podgroups", "update"),
            ("queues", "get"),
            ("leases", "update"),
        ] {
            let grants = |rule: &&Value| {
                let has = |field: &str, wanted: &str| {
                    rule[field].as_array().unwrap().iter().any(|word| text(word) == wanted)
                };
                has("resources", resource) && has("verbs", verb)
            };
            let found = rules.iter().find(grants);
            assert!(found.is_some(), "{}: {verb} {resource}", release.version);
        }
    }
}
