//! Which claims a pod has, and whether they can be had (6.2-6.4, 6.7).

use std::sync::Arc;

use vc_model::{
    Allocation, ClaimSource, Consumer, NodeSelectorTerm, Operator, PodResourceClaim, RequestKind,
    Requirement,
};

use crate::support::{DeviceFixture, claim, exactly, refused, simple, slice};

fn from_template(source: ClaimSource) -> Vec<PodResourceClaim> {
    vec![PodResourceClaim { name: "gpu".into(), source }]
}

#[test]
fn nodes_65_a_claim_that_is_not_there_yet() {
    let mut bed = DeviceFixture::new();
    bed.pod_with("j", "p", from_template(ClaimSource::NotMade));
    assert_eq!(bed.ask("p", "n1"), refused("pod \"default/p\": ResourceClaim not created yet"));
    bed.pod_with("j", "q", from_template(ClaimSource::Unset));
    let text =
        "pod \"default/q\", spec.resourceClaim \"gpu\": none of the supported fields are set";
    assert_eq!(bed.ask("q", "n1"), refused(text));
    bed.pod_with("j", "r", from_template(ClaimSource::NotNeeded));
    assert_eq!(bed.ask("r", "n1"), Ok(()));
    bed.pod("s", &["gone"]);
    let text = "could not find ResourceClaim \"default/gone\"";
    assert_eq!(bed.ask("s", "n1"), refused(text));
}

#[test]
fn a_claim_from_a_template_belongs_to_its_pod() {
    let mut bed = DeviceFixture::new();
    bed.slice(slice("n1", &["a"]));
    bed.claim(simple("made", 1));
    bed.pod_with("j", "p", from_template(ClaimSource::Made("made".into())));
    let text = "ResourceClaim default/made was not created for Pod default/p (Pod is not owner)";
    assert_eq!(bed.ask("p", "n1"), refused(text));
    let mut owned = simple("made", 1);
    owned.controller = "uid-p".into();
    bed.claim(owned.clone());
    assert_eq!(bed.ask("p", "n1"), Ok(()));
    owned.deleting = true;
    bed.claim(owned);
    assert_eq!(bed.ask("p", "n1"), refused("resourceclaim \"made\" is being deleted"));
}

#[test]
fn nodes_66_a_class_that_does_not_exist() {
    let mut bed = DeviceFixture::new();
    let mut asked = exactly(1);
    asked.class = "c".into();
    bed.claim(claim("c1", vec![("r", RequestKind::Exactly(asked.clone()))]));
    bed.claim(claim("c2", vec![("r", RequestKind::FirstAvailable(vec![("s".into(), asked)]))]));
    bed.claim(claim("c3", vec![("r", RequestKind::Unknown)]));
    bed.pod("p1", &["c1"]);
    bed.pod("p2", &["c2"]);
    bed.pod("p3", &["c3"]);
    assert_eq!(bed.ask("p1", "n1"), refused("request r: device class c does not exist"));
    assert_eq!(bed.ask("p2", "n1"), refused("request r/s: device class c does not exist"));
    let text = "resource claim default/c3, request r: unknown request type";
    assert_eq!(bed.ask("p3", "n1"), refused(text));
}

#[test]
fn nodes_77_a_gang_shares_an_unallocated_claim() {
    let mut bed = DeviceFixture::new();
    bed.slice(slice("n1", &["a", "b"]));
    bed.claim(simple("shared", 1));
    for pod in ["p", "q"] {
        bed.pod(pod, &["shared"]);
    }
    bed.pod_of("k", "stranger", &["shared"]);
    bed.place("p", "n1");
    assert_eq!(bed.ask("q", "n1"), Ok(()), "it has what its sibling chose");
    assert_eq!(bed.ask("q", "n2"), refused("resourceclaim not available on the node"));
    let text = "resource claim default/shared is in the process of being allocated";
    assert_eq!(bed.ask("stranger", "n1"), refused(text));
    let chosen =
        |bed: &DeviceFixture, pod: &str| bed.promise(pod, "n1").unwrap()[0].allocation.clone();
    let shared = chosen(&bed, "p");
    assert!(shared.is_some() && shared == chosen(&bed, "q"), "one allocation for both");
    bed.place("q", "n1");
    bed.undo("p");
    assert_eq!(bed.ask("stranger", "n1"), refused(text), "one of them relies on it");
    assert_eq!(chosen(&bed, "p"), shared);
    bed.undo("q");
    assert_eq!(bed.ask("stranger", "n1"), Ok(()), "undone without a trace");
}

#[test]
fn nodes_78_a_claim_has_at_most_256_consumers() {
    let mut bed = DeviceFixture::new();
    bed.slice(slice("n1", &["a"]));
    let consumers =
        |n: usize| (0..n).map(|i| Consumer { name: "p".into(), uid: format!("{i}").into() });
    let mut full = simple("c", 1);
    full.allocation = Some(Arc::new(Allocation::default()));
    full.reserved_for = consumers(255).collect();
    bed.claim(full.clone());
    bed.pod("p", &["c"]);
    bed.pod("q", &["c"]);
    assert_eq!(bed.ask("p", "n1"), Ok(()));
    bed.place("p", "n1");
    assert_eq!(bed.ask("q", "n1"), refused("resourceclaim in use"), "promised ones count");
    bed.undo("p");
    full.reserved_for = consumers(256).collect();
    bed.claim(full.clone());
    assert_eq!(bed.ask("q", "n1"), refused("resourceclaim in use"));
    full.reserved_for[7].uid = "uid-q".into();
    bed.claim(full);
    assert_eq!(bed.ask("q", "n1"), Ok(()), "it is one of them");
}

#[test]
fn what_a_claim_has_decides_about_nodes() {
    let mut bed = DeviceFixture::new();
    let on = |node: &str| {
        let name = Requirement {
            key: "metadata.name".into(),
            operator: Operator::In,
            values: vec![node.into()],
        };
        NodeSelectorTerm { match_fields: vec![name], ..NodeSelectorTerm::default() }
    };
    let mut pinned = simple("c", 1);
    let node_selector = Some(vec![on("n2")]);
    pinned.allocation = Some(Arc::new(Allocation { node_selector, ..Allocation::default() }));
    bed.claim(pinned);
    bed.pod("p", &["c"]);
    assert_eq!(bed.ask("p", "n1"), refused("resourceclaim not available on the node"));
    assert_eq!(bed.ask("p", "n2"), Ok(()));
}

#[test]
fn nodes_79_only_claims_that_get_devices_are_scored() {
    let mut bed = DeviceFixture::new();
    bed.slice(slice("n1", &["a", "b"]));
    let mut has = simple("has", 1);
    has.allocation = Some(Arc::new(Allocation::default()));
    bed.claim(has);
    let alternatives = vec![("s".into(), exactly(3)), ("t".into(), exactly(1))];
    bed.claim(claim("wants", vec![("r", RequestKind::FirstAvailable(alternatives))]));
    bed.pod("p", &["has", "wants"]);
    assert_eq!(bed.ask("p", "n1"), Ok(()));
    assert_eq!(bed.score("p", "n1"), 7, "the second alternative of the one that is open");
}
