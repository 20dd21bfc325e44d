//! What the leader must know at rest (I6): the nodes, where each pod is, and the phase of each PodGroup.

use std::collections::BTreeMap;

use serde_json::Value;
use vc_model::Cluster;

use super::controllers::OTHER_SCHEDULER;
use crate::serve::{NODES, POD_GROUPS, PODS, Store};

/// Texts about objects, by kind and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KnownObjects(BTreeMap<String, String>);

impl KnownObjects {
    fn add(&mut self, kind: &str, namespace: &str, name: &str, text: &str) {
        self.0.insert(format!("{kind} {namespace}/{name}"), text.to_owned());
    }

    /// Returns how the other one differs, one text each.
    pub(super) fn differences(&self, known: &Self) -> Vec<String> {
        let mut texts = Vec::new();
        for (object, text) in &self.0 {
            match known.0.get(object) {
                Some(other) if other == text => {}
                Some(other) => texts.push(format!("I6: {object} is {text:?}, known as {other:?}")),
                None => texts.push(format!("I6: {object} is not known")),
            }
        }
        let gone = known.0.keys().filter(|object| !self.0.contains_key(*object));
        texts.extend(gone.map(|object| format!("I6: {object} is known, and does not exist")));
        texts
    }
}

/// Returns what an engine knows.
pub(super) fn of_cluster(cluster: &Cluster) -> KnownObjects {
    let mut known = KnownObjects::default();
    for (_, node) in cluster.nodes.iter().filter(|(_, node)| node.present) {
        known.add("node", "", &node.name, "");
    }
    for (_, task) in cluster.tasks.iter() {
        let node = task.node.map_or("", |node| &cluster.nodes[node].name);
        known.add("pod", &task.key.namespace, &task.key.name, node);
    }
    for (_, job) in cluster.jobs.iter() {
        if let Some(group) = &job.pod_group {
            let phase = group.status.phase.as_str();
            known.add("PodGroup", &job.key.namespace, &job.key.name, phase);
        }
    }
    known
}

/// Returns what there is.
pub(super) fn of_store(store: &Store) -> KnownObjects {
    let mut there = KnownObjects::default();
    for (kind, name, field) in [
        (&NODES, "node", "/none"),
        (&PODS, "pod", "/spec/nodeName"),
        (&POD_GROUPS, "PodGroup", "/status/phase"),
    ] {
        let objects = store.list(kind, None).objects;
        // Pods of others are of no concern until they have a node.
        let is_unseen = |pod: &Value| {
            pod["spec"]["schedulerName"] == OTHER_SCHEDULER && pod["spec"]["nodeName"].is_null()
        };
        for object in objects.iter().filter(|object| !is_unseen(&object.value)) {
            let text = object.value.pointer(field).and_then(|text| text.as_str());
            let text = text.unwrap_or_default();
            there.add(name, object.namespace(), object.name(), text);
        }
    }
    there
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_missing_or_too_much_is_named() {
        let of = |texts: &[(&str, &str)]| {
            let mut objects = KnownObjects::default();
            texts.iter().for_each(|(name, text)| objects.add("pod", "ns", name, text));
            objects
        };
        let (there, known) = (of(&[("a", "n0"), ("b", "")]), of(&[("a", "n1"), ("c", "")]));
        assert_eq!(there.differences(&there), [""; 0]);
        let expected = [
            "I6: pod ns/a is \"n0\", known as \"n1\"",
            "I6: pod ns/b is not known",
            "I6: pod ns/c is known, and does not exist",
        ];
        assert_eq!(there.differences(&known), expected);
    }
}
