//! Who was evicted by whom in the cycles that were run. Specification: answers.md 8 (ANS-46).

use vc_model::ObjectKey;
use vc_page::{EvictedPodJson, EvictionGrant, how_evicted};

use super::names::OwnerNames;
use crate::run::CertificateOutput;

/// A pod that had to go.
#[derive(Clone, Debug)]
pub(super) struct EvictionRow {
    pod: String,
    pod_group: String,
    action: String,
    /// The PodGroup that gets the room. `None` if a plugin chose the pod.
    for_group: Option<String>,
    plugins: Vec<String>,
    /// Their tier. `None` if no tier voted.
    tier: Option<usize>,
    /// Of the pods that went with it each of these was needed. `None` if that is not stated.
    minimal: Option<String>,
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
                tier: victim.rule.as_ref().and_then(|rule| rule.tier),
                minimal: certificate.minimal.clone(),
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

    /// Returns the eviction for programs.
    pub(super) fn json(&self, owners: &OwnerNames) -> EvictedPodJson {
        let for_job = self.for_group.as_deref().and_then(|group| group.split_once('/'));
        let for_job =
            for_job.map(|(namespace, name)| owners.name(&ObjectKey::new(namespace, name)));
        let (tier, minimal) = (self.tier, self.minimal.as_deref());
        let grant = EvictionGrant { plugins: &self.plugins, tier, minimal };
        let how = how_evicted(&self.action, for_job.as_deref(), grant);
        EvictedPodJson {
            pod: self.pod.clone(),
            pod_group: self.pod_group.clone(),
            action: self.action.clone(),
            r#for: self.for_group.clone(),
            plugins: self.plugins.clone(),
            tier,
            minimal: self.minimal.clone(),
            text: format!("{} {how}", self.pod),
        }
    }
}
