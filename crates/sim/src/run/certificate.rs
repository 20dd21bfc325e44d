//! The proof of a transaction that evicts, as `vcsim run -o json` prints it.

use serde::Serialize;
use vc_engine::{CertifiedVictim, Unit};

/// For whom, who goes and why, where the room is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateOutput {
    pub action: String,
    /// `None`: for no one; a plugin chose the victims.
    pub pod_group: Option<String>,
    /// In the order of the evictions.
    pub victims: Vec<VictimOutput>,
    pub placements: Vec<PlacementOutput>,
    /// `pod` or `bundle`: none of these can be kept; `None`: not claimed.
    pub minimal: Option<String>,
}

/// A pod that goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VictimOutput {
    pub pod: String,
    pub pod_group: String,
    pub node: String,
    /// Seen from the PodGroup that gets the room.
    pub relation: String,
    /// What allowed it.
    pub rule: Option<RuleOutput>,
    /// The pod that gets the room; `None`: it goes for the whole PodGroup, or for no one.
    pub for_pod: Option<String>,
    /// How many of the placements were made before.
    pub before: usize,
    /// Victims of one bundle go together.
    pub bundle: usize,
}

/// What allowed an eviction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleOutput {
    /// From 1; `None`: no tier voted, only filters spoke.
    pub tier: Option<usize>,
    /// Plugins of the tier that granted it.
    pub plugins: Vec<String>,
    /// Protective filters that let it pass.
    pub filters: Vec<String>,
    /// Why a group goes as a whole for quota; `None`: pods were judged one by one.
    pub why: Option<String>,
}

/// A pod and the node on which it gets the room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlacementOutput {
    pub pod: String,
    pub node: String,
}

impl From<&vc_engine::Certificate> for CertificateOutput {
    fn from(certificate: &vc_engine::Certificate) -> Self {
        let placement = |it: &vc_engine::Placement| PlacementOutput {
            pod: it.pod.to_string(),
            node: it.node.to_string(),
        };
        Self {
            action: certificate.action.as_str().to_owned(),
            pod_group: certificate.pod_group.as_ref().map(ToString::to_string),
            victims: certificate.victims.iter().map(|it| victim(certificate, it)).collect(),
            placements: certificate.placements.iter().map(placement).collect(),
            minimal: certificate.minimal.map(Unit::as_str).map(str::to_owned),
        }
    }
}

fn victim(certificate: &vc_engine::Certificate, victim: &CertifiedVictim) -> VictimOutput {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let rule = |rule: &vc_engine::EvictionRule| RuleOutput {
        tier: rule.tier,
        plugins: names(&rule.plugins),
        filters: names(&rule.filters),
        why: rule.why.map(str::to_owned),
    };
    let placed = |it: &&vc_engine::Placement| Some(&it.uid) == victim.for_uid.as_ref();
    let for_pod = certificate.placements.iter().find(placed);
    VictimOutput {
        pod: victim.pod.to_string(),
        pod_group: victim.pod_group.to_string(),
        node: victim.node.to_string(),
        relation: victim.relation.as_str().to_owned(),
        rule: victim.rule.as_ref().map(rule),
        for_pod: for_pod.map(|it| it.pod.to_string()),
        before: victim.before,
        bundle: victim.bundle,
    }
}
