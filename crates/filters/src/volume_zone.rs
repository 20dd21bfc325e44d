//! VolumeZone: bound volumes with zone or region labels are used only there. It reads the pod, four
//! labels of the node, and volumes, claims and classes.
//! Specification: plugins-nodes.md 4.7.

use std::collections::BTreeSet;

use vc_model::{BindingMode, Code, Finding, Node, PodClaim};

use crate::claims::{claim_not_found, claims, key, mode_not_set};
use crate::rule::{Pod, PreFilter, refused};

const REASON: &str = "node(s) had no available volume zone";

/// Pairs of a label and the label that replaces it.
const LABELS: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
];

/// Indices in [`LABELS`], each with the values that a node may have.
type WantedZones<'a> = Vec<(usize, BTreeSet<&'a str>)>;

/// Runs the pre-filter, which collects the topology of the bound volumes. A claim that is neither
/// bound nor delayed fits nowhere.
pub fn pre_filter(pod: Pod<'_>) -> PreFilter<'_> {
    let mut wanted = WantedZones::new();
    for claim in claims(pod).filter(|claim| !claim.ephemeral) {
        if let Err(problem) = collect(pod, claim, &mut wanted) {
            return PreFilter::Refuse(refused(Code::Unresolvable, problem));
        }
    }
    match wanted.is_empty() {
        true => PreFilter::Skip,
        false => PreFilter::Ask(Box::new(move |node| filter(&wanted, &pod.cluster.nodes[node]))),
    }
}

fn collect<'a>(pod: Pod<'a>, claim: &PodClaim, wanted: &mut WantedZones<'a>) -> Result<(), String> {
    let volumes = &pod.cluster.volumes;
    if claim.name.is_empty() {
        return Err("PersistentVolumeClaim had no name".to_owned());
    }
    let row = volumes.claim(&key(pod, claim)).ok_or_else(|| claim_not_found(&claim.name))?;
    if row.volume_name.is_empty() {
        if row.class.is_empty() {
            return Err("PersistentVolumeClaim had no pv name and storageClass name".to_owned());
        }
        let not_found = || format!("storageclass.storage.k8s.io {:?} not found", row.class);
        let class = volumes.class(&row.class).ok_or_else(not_found)?;
        return match class.mode {
            BindingMode::Absent => Err(mode_not_set(&class.name)),
            BindingMode::Delayed => Ok(()),
            BindingMode::Immediate => Err("PersistentVolume had no name".to_owned()),
        };
    }
    let not_found = || format!("persistentvolume {:?} not found", row.volume_name);
    let volume = volumes.volume(&row.volume_name).ok_or_else(not_found)?;
    for (place, (label, _)) in LABELS.iter().enumerate() {
        if let Some(value) = volume.labels.get(*label) {
            wanted.push((place, value.split("__").collect()));
        }
    }
    Ok(())
}

fn filter(wanted: &WantedZones<'_>, node: &Node) -> Option<Finding> {
    if !LABELS.iter().any(|(label, _)| node.labels.contains_key(*label)) {
        return None;
    }
    let fits = |(place, values): &(usize, BTreeSet<&str>)| {
        let (label, newer) = LABELS[*place];
        let value = node.labels.get(label).or_else(|| node.labels.get(newer));
        value.is_some_and(|value| values.contains(&**value))
    };
    (!wanted.iter().all(fits)).then(|| Finding::new(Code::Unresolvable, REASON))
}
