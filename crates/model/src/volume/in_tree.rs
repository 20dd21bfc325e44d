//! In-tree volume types that CSI drivers serve now: their names, volume handles and zones.
//! Specification: plugins-nodes.md 4.6 ("Migration"), 5.3.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::selector::{Labels, NodeSelectorTerm, Operator, Requirement};
use crate::volume::{PersistentVolume, VolumeSource};

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
/// The labels that `ZONE` and `REGION` replaced.
const OLD_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const OLD_REGION: &str = "failure-domain.beta.kubernetes.io/region";
/// Separates the zones in a label value.
const DELIMITER: &str = "__";

/// An in-tree volume type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum InTree {
    /// `awsElasticBlockStore`.
    AwsEbs,
    /// `gcePersistentDisk`.
    GcePd,
    /// `azureDisk`.
    AzureDisk,
    /// `cinder`.
    Cinder,
}

impl InTree {
    const ALL: [Self; 4] = [Self::AwsEbs, Self::GcePd, Self::AzureDisk, Self::Cinder];

    /// Returns the name of the type in provisioners and CSINodes.
    pub fn plugin(self) -> &'static str {
        match self {
            Self::AwsEbs => "kubernetes.io/aws-ebs",
            Self::GcePd => "kubernetes.io/gce-pd",
            Self::AzureDisk => "kubernetes.io/azure-disk",
            Self::Cinder => "kubernetes.io/cinder",
        }
    }

    /// Returns the name of the CSI driver.
    pub fn driver(self) -> &'static str {
        match self {
            Self::AwsEbs => "ebs.csi.aws.com",
            Self::GcePd => "pd.csi.storage.gke.io",
            Self::AzureDisk => "disk.csi.azure.com",
            Self::Cinder => "cinder.csi.openstack.org",
        }
    }

    /// Returns the zone label of the driver. Returns `None` if the driver uses the node affinity as
    /// it is.
    fn zone_label(self) -> Option<&'static str> {
        match self {
            Self::AwsEbs => Some("topology.ebs.csi.aws.com/zone"),
            Self::GcePd => Some("topology.gke.io/zone"),
            Self::AzureDisk => None,
            Self::Cinder => Some("topology.cinder.csi.openstack.org/zone"),
        }
    }

    /// Returns the type with this plugin name.
    pub(crate) fn of_plugin(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.plugin() == name)
    }
}

/// Returns an AWS EBS volume, by its own identifier or as `aws://<zone>/<identifier>`.
pub fn aws_ebs(id: &Arc<str>) -> VolumeSource {
    let of = InTree::AwsEbs;
    let Some(path) = id.strip_prefix("aws://") else {
        return VolumeSource::Migrated { of, handle: id.clone() };
    };
    let (_zone, path) = path.split_once('/').unwrap_or((path, ""));
    let name = path.trim_matches('/');
    match name.starts_with("vol-") && !name.contains('/') {
        true => VolumeSource::Migrated { of, handle: name.into() },
        false => untranslatable(of, format!("Invalid format for AWS volume ({id})")),
    }
}

/// Returns a GCE persistent disk. The labels of its volume give the zone or the region.
pub fn gce_pd(name: &str, labels: &Labels) -> VolumeSource {
    let of = InTree::GcePd;
    let old = labels.get(OLD_ZONE).filter(|zones| !zones.is_empty());
    let zones = old.or_else(|| labels.get(ZONE)).map_or("", |zones| zones);
    let place = match zones.split(DELIMITER).collect::<Vec<_>>()[..] {
        [""] => Ok("zones/UNSPECIFIED".to_owned()),
        [zone] => Ok(format!("zones/{zone}")),
        ref zones => region(zones).map(|region| format!("regions/{region}")),
    };
    match place {
        Ok(place) => {
            let handle = format!("projects/UNSPECIFIED/{place}/disks/{name}").into();
            VolumeSource::Migrated { of, handle }
        }
        Err(problem) => untranslatable(of, problem),
    }
}

fn untranslatable(of: InTree, problem: String) -> VolumeSource {
    VolumeSource::Untranslatable { of, problem: problem.into() }
}

/// Returns the common region of zones named `<area>-<region>-<zone>`.
fn region(zones: &[&str]) -> Result<String, String> {
    let mut regions = BTreeSet::new();
    for zone in zones {
        let [area, region, _] = zone.split('-').collect::<Vec<_>>()[..] else {
            return Err(format!("failed to get region from zones: {zone:?} is not of three parts"));
        };
        regions.insert(format!("{area}-{region}"));
    }
    match regions.pop_first() {
        Some(region) if regions.is_empty() => Ok(region),
        _ => Err(format!("failed to get region from zones: {zones:?} are of several regions")),
    }
}

impl PersistentVolume {
    /// Returns the node affinity as the CSI driver of type `of` has it. Zones are under the
    /// driver's label. If the affinity names no zone, they come from the labels of the volume.
    /// Returns `None` if every node can access the volume.
    pub fn affinity_of_driver(&self, of: InTree) -> Option<Vec<NodeSelectorTerm>> {
        let mut terms = self.node_affinity.clone();
        let Some(label) = of.zone_label() else { return terms };
        let zone = self.zone_key();
        if has_values(terms.as_deref(), zone) {
            rename(&mut terms, zone, label);
        } else if let Some(zones) = self.labels.get(zone) {
            require_zone(&mut terms, label, zones);
        }
        if zone == OLD_ZONE {
            rename(&mut terms, OLD_REGION, REGION);
        }
        terms
    }

    /// Returns the label that names the zones. The affinity precedes the labels, and the newer
    /// label precedes the older one.
    fn zone_key(&self) -> &'static str {
        let in_affinity = |label: &&str| {
            self.node_affinity.iter().flatten().any(|term| rules(term, label).next().is_some())
        };
        let in_labels = |label: &&str| self.labels.contains_key(*label);
        let found = [ZONE, OLD_ZONE].into_iter().find(in_affinity);
        found.or_else(|| [ZONE, OLD_ZONE].into_iter().find(in_labels)).unwrap_or(ZONE)
    }
}

fn rules<'a>(term: &'a NodeSelectorTerm, label: &str) -> impl Iterator<Item = &'a Requirement> {
    term.match_expressions.iter().filter(move |rule| *rule.key == *label)
}

fn has_values(terms: Option<&[NodeSelectorTerm]>, label: &str) -> bool {
    let mut rules = terms.into_iter().flatten().flat_map(|term| rules(term, label));
    rules.any(|rule| !rule.values.is_empty())
}

fn rename(terms: &mut Option<Vec<NodeSelectorTerm>>, from: &str, to: &str) {
    let rules = terms.iter_mut().flatten().flat_map(|term| &mut term.match_expressions);
    rules.filter(|rule| *rule.key == *from).for_each(|rule| rule.key = to.into());
}

/// Adds a zone requirement to every term. A term is added if there is none.
fn require_zone(terms: &mut Option<Vec<NodeSelectorTerm>>, label: &str, zones: &str) {
    let zones = zones.split(DELIMITER).map(str::trim).filter(|zone| !zone.is_empty());
    let zones: BTreeSet<Arc<str>> = zones.map(Arc::from).collect();
    if zones.is_empty() {
        return;
    }
    let values = zones.into_iter().collect();
    let rule = Requirement { key: label.into(), operator: Operator::In, values };
    let terms = terms.get_or_insert_default();
    if terms.is_empty() {
        terms.push(NodeSelectorTerm { match_expressions: Vec::new(), match_fields: Vec::new() });
    }
    terms.iter_mut().for_each(|term| term.match_expressions.push(rule.clone()));
}
