//! The filters by their names: which of them refuse a pod or a node, all of them where the filters
//! themselves name the first alone. Specification: answers.md 4.1, ANS-11.

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_filters::inter_pod_affinity::{self, AffinityRefusal};
use vc_filters::node_unschedulable::CORDON;
use vc_filters::{Pod, PreFilter, node_affinity, node_unschedulable, taint_toleration};
use vc_framework::{Atom, RefusalRule};
use vc_model::{Node, NodeId, Taint};
use vc_resource::Dim;

use super::{Predicates, WrappedFilter, devices};

/// Appends the atoms by which a filter refuses a node.
type FilterRule<'a> = Box<dyn Fn(NodeId, &mut BTreeSet<Atom>) + 'a>;

/// Name of the need for claims and volumes that exist.
const VOLUMES: &str = "Volumes";

impl Predicates {
    /// Returns the filters that refuse the pod before any node is looked at.
    pub(super) fn unmet_needs_of(&self, pod: Pod<'_>) -> Vec<Atom> {
        let refuses = |wrapped: &&&WrappedFilter| {
            wrapped.may_refuse && matches!((wrapped.pre_filter)(pod), PreFilter::Refuse(_))
        };
        let refusing = self.filters.iter().filter(refuses);
        let mut needs: Vec<Atom> = refusing.map(|wrapped| need(wrapped.name)).collect();
        if matches!(self.devices.pre_filter(pod), PreFilter::Refuse(_)) {
            needs.push(need(devices::NAME));
        }
        needs.dedup();
        needs
    }

    /// Returns all rules by which the filters and the pod limit refuse nodes.
    pub(super) fn refusals_of<'a>(&'a self, pod: Pod<'a>) -> RefusalRule<'a> {
        // Of volumes that do not exist nothing else can be said.
        let lacks_volumes = self.unmet_needs_of(pod).contains(&Atom::Need(VOLUMES));
        let judges = |wrapped: &&&WrappedFilter| !lacks_volumes || !is_about_volumes(wrapped.name);
        let judging = self.filters.iter().filter(judges);
        let rules = judging.filter_map(|it| Some((it.name, refusals_by(it, pod)?)));
        let of_devices = rule_of(devices::NAME, self.devices.pre_filter(pod));
        let rules: Vec<(&str, FilterRule<'a>)> =
            rules.chain(of_devices.map(|rule| (devices::NAME, rule))).collect();
        let reads_taints_alone =
            rules.iter().all(|(name, _)| ["NodeUnschedulable", "TaintToleration"].contains(name));
        let row = move |node: NodeId| &pod.cluster.nodes[node];
        let rule = RefusalRule::new(move |node, atoms| {
            atoms.extend(pods_lacking(row(node)));
            rules.iter().for_each(|(_, rule)| rule(node, atoms));
        });
        if !reads_taints_alone {
            return rule;
        }
        rule.with_equality(move |l, r| {
            let (l, r) = (row(l), row(r));
            // Neighbours with equal taints mostly share them.
            let has_same_taints = || Arc::ptr_eq(&l.taints, &r.taints) || l.taints == r.taints;
            l.unschedulable == r.unschedulable && pod_slots(l) == pod_slots(r) && has_same_taints()
        })
    }
}

fn refusals_by<'a>(wrapped: &WrappedFilter, pod: Pod<'a>) -> Option<FilterRule<'a>> {
    let row = move |node: NodeId| &pod.cluster.nodes[node];
    match wrapped.name {
        "NodeUnschedulable" => Some(Box::new(move |node, atoms| {
            if node_unschedulable::filter(pod.class, row(node)).is_some() {
                atoms.insert(Atom::Cordon);
            }
        })),
        "TaintToleration" => Some(Box::new(move |node, atoms| {
            atoms.extend(taint_toleration::refusing(pod.class, row(node)).map(taint));
        })),
        "NodeAffinity" if node_affinity::skips_filter(pod.class) => None,
        "NodeAffinity" => Some(Box::new(move |node, atoms| {
            atoms.extend(labels(pod, row(node)));
        })),
        "InterPodAffinity" => {
            let refusals = inter_pod_affinity::refusals(pod)?;
            Some(Box::new(move |node, atoms| {
                atoms.extend(refusals(node).into_iter().map(affinity));
            }))
        }
        name => rule_of(name, (wrapped.pre_filter)(pod)),
    }
}

/// Returns the rule of a filter that is one atom. Returns `None` if it has nothing against any
/// node.
fn rule_of<'a>(name: &'static str, answer: PreFilter<'a>) -> Option<FilterRule<'a>> {
    match answer {
        PreFilter::Skip => None,
        PreFilter::Refuse(_) => Some(Box::new(move |_, atoms| {
            atoms.insert(need(name));
        })),
        PreFilter::Ask(filter) => Some(Box::new(move |node, atoms| {
            if filter(node).is_some() {
                atoms.insert(Atom::Filter(rule_name(name)));
            }
        })),
    }
}

/// Slots for pods on a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PodSlots {
    /// The node takes no pods.
    None,
    Full,
    Free,
}

/// The pod limit counts pods that ended in this session, which amounts do not.
fn pod_slots(node: &Node) -> PodSlots {
    let most = node.allocatable.get(Dim::PODS);
    match most <= i64::from(node.view.n_pods) {
        true if most <= 0 => PodSlots::None,
        true => PodSlots::Full,
        false => PodSlots::Free,
    }
}

fn pods_lacking(node: &Node) -> Option<Atom> {
    match pod_slots(node) {
        PodSlots::None => Some(Atom::Lacks(Dim::PODS)),
        PodSlots::Full => Some(Atom::Room(Dim::PODS)),
        PodSlots::Free => None,
    }
}

/// A taint that stands for a cordon is the cordon: one toleration lifts both.
fn taint(taint: &Taint) -> Atom {
    match (&*taint.key, &*taint.value, taint.effect) == CORDON {
        true => Atom::Cordon,
        false => Atom::Taint(taint.key.clone(), taint.value.clone(), taint.effect),
    }
}

/// Terms without a requirement that a label could meet are a filter of their own.
fn labels(pod: Pod<'_>, node: &Node) -> BTreeSet<Atom> {
    match node_affinity::failing_keys(pod.class, node) {
        None => BTreeSet::new(),
        Some(keys) if keys.is_empty() => BTreeSet::from([Atom::Filter("NodeAffinity")]),
        Some(keys) => keys.into_iter().map(Atom::Label).collect(),
    }
}

fn affinity(refusal: AffinityRefusal) -> Atom {
    Atom::Filter(match refusal {
        AffinityRefusal::Affinity => "PodAffinity",
        AffinityRefusal::AntiAffinity => "PodAntiAffinity",
        AffinityRefusal::ExistingAntiAffinity => "AntiAffinityOfOthers",
    })
}

fn is_about_volumes(filter: &str) -> bool {
    matches!(filter, "NodeVolumeLimits" | "VolumeZone" | "VolumeBinding" | "VolumeRestrictions")
}

/// Contradicting names of nodes are a matter of the key `metadata.name`.
fn need(filter: &'static str) -> Atom {
    match filter {
        "NodeAffinity" => Atom::Label("metadata.name".into()),
        name if is_about_volumes(name) => Atom::Need(VOLUMES),
        name => Atom::Need(rule_name(name)),
    }
}

/// Returns the name of a filter in answers.
fn rule_name(filter: &'static str) -> &'static str {
    match filter {
        "InterPodAffinity" => "PodAffinity",
        "NodeVolumeLimits" => "VolumeLimits",
        "PodTopologySpread" => "TopologySpread",
        devices::NAME => "Devices",
        name => name,
    }
}
