//! Who was evicted by whom in the cycles that were run. Specification: answers.md 8 (ANS-46).

use serde::Serialize;
use serde_json::{Value, json};

use super::names::OwnerNames;
use crate::input::ANSWERS;
use crate::run::CertificateOutput;

/// A pod that had to go.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EvictionRow {
    pod: String,
    pod_group: String,
    action: String,
    /// The PodGroup that gets the room. `None` if a plugin chose the pod.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    for_group: Option<String>,
    plugins: Vec<String>,
}

impl EvictionRow {
    /// Returns the pods of all certificates.
    pub(super) fn all(certificates: &[CertificateOutput]) -> Vec<Self> {
        let rows = certificates.iter().flat_map(|certificate| {
            certificate.victims.iter().map(|victim| Self {
                pod: victim.pod.clone(),
                pod_group: victim.pod_group.clone(),
                action: certificate.action.clone(),
                for_group: certificate.pod_group.clone(),
                plugins: victim.rule.iter().flat_map(|rule| rule.plugins.clone()).collect(),
            })
        });
        rows.collect()
    }

    /// True if the PodGroup has lost the pod, or gets its room.
    pub(super) fn is_about(&self, group: &str) -> bool {
        self.pod_group == group || self.for_group.as_deref() == Some(group)
    }

    /// True if `[pod/]NAME` means the pod, in this namespace or in any.
    pub(super) fn is_named(&self, namespace: Option<&str>, asked: &str) -> bool {
        let name = asked.strip_prefix("pod/").or(asked.strip_prefix("po/")).unwrap_or(asked);
        let own = self.pod.split_once('/').unwrap_or(("", &self.pod));
        own.1 == name && namespace.is_none_or(|namespace| own.0 == namespace)
    }

    /// Returns the eviction in one line, after the name of the pod.
    fn how(&self, owners: &OwnerNames) -> String {
        let mut text = format!("by {}", self.action);
        if let Some(group) = self.for_group.as_deref().and_then(|group| group.split_once('/')) {
            let key = vc_model::ObjectKey::new(group.0, group.1);
            text.push_str(&format!(" for {}", owners.name(&key)));
        }
        if !self.plugins.is_empty() {
            text.push_str(&format!(", granted by {}", self.plugins.join(", ")));
        }
        text
    }

    /// Returns the eviction in one line.
    pub(super) fn text(&self, owners: &OwnerNames) -> String {
        format!("{} {}", self.pod, self.how(owners))
    }

    /// Returns the answer about a pod that is gone, for people.
    pub(super) fn gone_text(&self, owners: &OwnerNames) -> String {
        let how = self.how(owners);
        let head = format!("{} (pod, PodGroup {}) is gone", self.pod, self.pod_group);
        format!("{head}\nWHY      Gone: evicted {how}\n")
    }

    /// Returns the answer about a pod that is gone, for programs.
    pub(super) fn gone_json(&self, owners: &OwnerNames) -> Value {
        let (namespace, name) = self.pod.split_once('/').unwrap_or(("", &self.pod));
        json!({
            "apiVersion": ANSWERS, "kind": "Explanation",
            "subject": { "kind": "Pod", "namespace": namespace, "name": name },
            "verdict": {
                "stage": "ours", "code": "Gone", "also": [],
                "text": format!("evicted {}", self.how(owners)),
            },
            "evictions": [self],
        })
    }
}
