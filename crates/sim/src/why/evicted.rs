//! Who was evicted by whom in the cycles that were run. Specification: answers.md 8 (ANS-46).

use serde::Serialize;
use serde_json::{Value, json};
use vc_page::{API_VERSION, EvictedPodJson};

use super::names::OwnerNames;
use crate::run::CertificateOutput;

/// The answer about a pod that is gone.
#[derive(Serialize)]
pub(super) struct GoneAnswer {
    /// For people.
    #[serde(skip)]
    pub(super) text: String,
    /// For programs.
    #[serde(flatten)]
    json: Value,
}

/// A pod that had to go.
#[derive(Clone, Debug)]
pub(super) struct EvictionRow {
    pod: String,
    pod_group: String,
    action: String,
    /// The PodGroup that gets the room. `None` if a plugin chose the pod.
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

    /// Returns the eviction for programs.
    pub(super) fn json(&self, owners: &OwnerNames) -> EvictedPodJson {
        EvictedPodJson {
            pod: self.pod.clone(),
            pod_group: self.pod_group.clone(),
            action: self.action.clone(),
            r#for: self.for_group.clone(),
            plugins: self.plugins.clone(),
            text: format!("{} {}", self.pod, self.how(owners)),
        }
    }

    /// Returns the answer about the pod, which is gone.
    pub(super) fn gone(&self, owners: &OwnerNames) -> GoneAnswer {
        let how = self.how(owners);
        let head = format!("{} (pod, PodGroup {}) is gone", self.pod, self.pod_group);
        let (namespace, name) = self.pod.split_once('/').unwrap_or(("", &self.pod));
        let json = json!({
            "apiVersion": API_VERSION, "kind": "Explanation",
            "subject": { "kind": "Pod", "namespace": namespace, "name": name },
            "verdict": {
                "stage": "ours", "code": "Gone", "also": [], "text": format!("evicted {how}"),
            },
            "evictions": [self.json(owners)],
        });
        GoneAnswer { text: format!("{head}\nWHY      Gone: evicted {how}\n"), json }
    }
}
