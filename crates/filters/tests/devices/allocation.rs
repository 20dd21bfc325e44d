//! The devices that are chosen, and what is said when there are none (6.5, 6.6, 6.8).

use std::sync::Arc;

use vc_model::{
    AllocationMode, Attribute, Device, DeviceConfig, DeviceConstraint, DeviceObject, DeviceTaint,
    DeviceToleration, ExactRequest, RequestKind, ResourceSlice, SliceNodes,
};

use crate::support::{
    DRIVER, DeviceFixture, broken, claim, class, device, exactly, refused, simple, slice, slice_of,
};

const NONE: &str = "cannot allocate all claims";

fn all() -> ExactRequest {
    ExactRequest { mode: AllocationMode::All, ..exactly(1) }
}

fn selecting(expression: &str) -> ExactRequest {
    ExactRequest { selectors: vec![expression.into()], ..exactly(1) }
}

#[test]
fn nodes_67_more_devices_than_the_node_has() {
    let mut bed = DeviceFixture::new();
    bed.slice(slice("n1", &["a", "b"]));
    bed.claim(simple("two", 2));
    bed.claim(simple("three", 3));
    bed.pod("p", &["two"]);
    bed.pod("q", &["three"]);
    assert_eq!(bed.ask("p", "n1"), Ok(()));
    assert_eq!(bed.devices("p", "n1"), "r=a r=b");
    assert_eq!(bed.ask("p", "n2"), refused(NONE));
    assert_eq!(bed.ask("q", "n1"), refused(NONE), "eviction is not considered");
}

#[test]
fn devices_that_are_promised_are_taken_until_it_is_undone() {
    let mut bed = DeviceFixture::new();
    bed.slice(slice("n1", &["a", "b"]));
    bed.claim(simple("c1", 1));
    bed.claim(simple("c2", 2));
    bed.pod("p", &["c1"]);
    bed.pod("q", &["c2"]);
    bed.place("p", "n1");
    assert_eq!(bed.ask("q", "n1"), refused(NONE));
    bed.undo("p");
    assert_eq!(bed.ask("q", "n1"), Ok(()));
}

#[test]
fn nodes_68_all_devices_must_be_free() {
    let mut bed = DeviceFixture::new();
    bed.slice(slice("n1", &["a", "b"]));
    bed.claim(simple("one", 1));
    bed.claim(claim("all", vec![("r", RequestKind::Exactly(all()))]));
    bed.pod("p", &["one"]);
    bed.pod("q", &["all"]);
    assert_eq!(bed.devices("q", "n1"), "r=a r=b");
    assert_eq!(bed.ask("q", "n2"), refused(NONE), "at least one is needed");
    bed.place("p", "n1");
    assert_eq!(bed.ask("q", "n1"), refused(NONE));
}

#[test]
fn nodes_69_a_pool_that_is_being_updated() {
    let mut bed = DeviceFixture::new();
    bed.slice(ResourceSlice { n_slices: 2, ..slice("n1", &["a"]) });
    bed.claim(simple("one", 1));
    bed.claim(claim("all", vec![("r", RequestKind::Exactly(all()))]));
    bed.pod("p", &["one"]);
    bed.pod("q", &["all"]);
    assert_eq!(bed.ask("p", "n1"), refused(NONE), "its devices are not used");
    let text = "claim default/all, request r: asks for all devices, but resource pool \
                gpu.example.com/n1 is currently being updated";
    assert_eq!(bed.ask("q", "n1"), broken(text));
    let second = ResourceSlice { name: "second".into(), n_slices: 2, ..slice("n1", &["b"]) };
    bed.slice(second);
    assert_eq!(bed.devices("q", "n1"), "r=b r=a", "by name of the slice");
}

#[test]
fn a_pool_with_two_devices_of_one_name_is_invalid() {
    let mut bed = DeviceFixture::new();
    bed.slice(slice("n1", &["a", "a"]));
    bed.claim(simple("one", 1));
    bed.pod("p", &["one"]);
    assert_eq!(bed.ask("p", "n1"), refused("invalid resource pools were encountered"));
}

#[test]
fn nodes_70_only_the_highest_generation_counts() {
    let mut bed = DeviceFixture::new();
    bed.slice(slice("n1", &["old"]));
    bed.claim(simple("one", 1));
    bed.pod("p", &["one"]);
    assert_eq!(bed.devices("p", "n1"), "r=old");
    let newer = ResourceSlice { name: "newer".into(), generation: 2, ..slice("n1", &["new"]) };
    bed.slice(newer);
    assert_eq!(bed.devices("p", "n1"), "r=new");
    let elsewhere = ResourceSlice {
        name: "newest".into(),
        generation: 3,
        nodes: SliceNodes::Named("n2".into()),
        ..slice("n1", &["x"])
    };
    bed.slice(elsewhere);
    assert_eq!(bed.ask("p", "n1"), refused(NONE), "obsolete here");
}

#[test]
fn nodes_71_a_missing_attribute_fails_the_node() {
    let mut bed = DeviceFixture::new();
    let a100 = [("model", Attribute::Text("a100".into()))];
    bed.slice(slice_of("n1", vec![device("a", &[]), device("b", &a100)]));
    bed.slice(slice_of("n2", vec![device("c", &a100)]));
    let wanted = selecting("device.attributes['gpu.example.com'].model == 'a100'");
    bed.claim(claim("c", vec![("r", RequestKind::Exactly(wanted))]));
    bed.pod("p", &["c"]);
    let error = bed.ask("p", "n1").unwrap_err().1;
    let head = "claim default/c: selector #0: CEL runtime error: ";
    assert!(error.starts_with(head) && error.contains("model"), "{error}");
    assert_eq!(bed.ask("p", "n2"), Ok(()));
    let mut picky = class("gpu");
    picky.selectors = vec!["device.driver ==".into()];
    bed.put(DeviceObject::Class(picky));
    let error = bed.ask("p", "n2").unwrap_err().1;
    assert!(error.starts_with("class gpu: selector #0: CEL compile error: "), "{error}");
}

#[test]
fn nodes_72_devices_of_several_requests_match() {
    let mut bed = DeviceFixture::new();
    let numa = |name: &str, value: Attribute| device(name, &[("numa", value)]);
    bed.slice(slice_of(
        "n1",
        vec![
            numa("a", Attribute::Int(0)),
            numa("b", Attribute::Int(1)),
            numa("c", Attribute::Text("1".into())),
            numa("d", Attribute::Int(1)),
        ],
    ));
    let both =
        vec![("x", RequestKind::Exactly(exactly(1))), ("y", RequestKind::Exactly(exactly(1)))];
    let mut matching = claim("c", both);
    let rule = |requests: &[&str], name: &str| DeviceConstraint {
        requests: requests.iter().map(|&name| name.into()).collect(),
        match_attribute: Some(name.into()),
    };
    matching.constraints = vec![rule(&["x", "y"], &format!("{DRIVER}/numa"))];
    bed.claim(matching.clone());
    bed.pod("p", &["c"]);
    assert_eq!(bed.devices("p", "n1"), "x=b y=d");
    matching.constraints = vec![rule(&[], "other.example.com/numa")];
    bed.claim(matching.clone());
    assert_eq!(bed.ask("p", "n1"), refused(NONE), "no device has it");
    matching.constraints = vec![DeviceConstraint::default()];
    bed.claim(matching);
    let text = "claim default/c, constraint #0: empty constraint (unsupported constraint type?)";
    assert_eq!(bed.ask("p", "n1"), broken(text));
}

#[test]
fn nodes_73_the_first_alternative_that_is_there() {
    let mut bed = DeviceFixture::new();
    let size = |name: &str| [("size", Attribute::Text(name.into()))];
    bed.slice(slice_of("n1", vec![device("s", &size("small")), device("b", &size("big"))]));
    bed.slice(slice_of("n2", vec![device("t", &size("small"))]));
    let of = |name: &str| selecting(&format!("device.attributes['{DRIVER}'].size == '{name}'"));
    let alternatives = vec![("big".into(), of("big")), ("small".into(), of("small"))];
    bed.claim(claim("c", vec![("r", RequestKind::FirstAvailable(alternatives))]));
    bed.pod("p", &["c"]);
    assert_eq!(bed.devices("p", "n1"), "r/big=b");
    assert_eq!(bed.devices("p", "n2"), "r/small=t");
    assert_eq!((bed.score("p", "n1"), bed.score("p", "n2")), (8, 7));
}

#[test]
fn nodes_74_admin_access_takes_nothing_away() {
    let mut bed = DeviceFixture::new();
    bed.slice(slice("n1", &["a", "b"]));
    let admin = || RequestKind::Exactly(ExactRequest { admin_access: true, ..exactly(1) });
    bed.claim(simple("both", 2));
    bed.claim(claim("watch", vec![("x", admin()), ("y", admin())]));
    bed.pod("p", &["both"]);
    bed.pod("q", &["watch"]);
    bed.place("p", "n1");
    assert_eq!(bed.devices("q", "n1"), "x=a y=b", "in use, and different ones");
    bed.undo("p");
    bed.place("q", "n1");
    assert_eq!(bed.ask("p", "n1"), Ok(()), "still free for others");
}

#[test]
fn nodes_75_where_the_devices_can_be_used() {
    let mut bed = DeviceFixture::new();
    bed.slice(slice("n1", &["a"]));
    bed.claim(simple("c", 1));
    bed.pod("p", &["c"]);
    let selector = |bed: &DeviceFixture, node: &str| {
        let promises = bed.promise("p", node).unwrap();
        promises[0].allocation.as_ref().unwrap().node_selector.clone()
    };
    let local = selector(&bed, "n1").unwrap();
    assert_eq!(*local[0].match_fields[0].key, *"metadata.name");
    assert_eq!(local[0].match_fields[0].values, ["n1".into()]);
    bed.slice(ResourceSlice { nodes: SliceNodes::All, ..slice("n1", &["a"]) });
    assert_eq!(selector(&bed, "n2"), None);
}

#[test]
fn nodes_76_configuration_of_a_class_names_all_its_requests() {
    let mut bed = DeviceFixture::new();
    bed.slice(slice("n1", &["a", "b"]));
    let mut configured = class("gpu");
    configured.config = vec!["{\"opaque\":1}".into()];
    bed.put(DeviceObject::Class(configured));
    let both =
        vec![("x", RequestKind::Exactly(exactly(1))), ("y", RequestKind::Exactly(exactly(1)))];
    let mut asked = claim("c", both);
    let own = |name: &str| (vec![Arc::from(name)], Arc::from("{}"));
    asked.config = vec![own("y"), own("z"), (Vec::new(), "{\"all\":1}".into())];
    bed.claim(asked);
    bed.pod("p", &["c"]);
    let promises = bed.promise("p", "n1").unwrap();
    let config = &promises[0].allocation.as_ref().unwrap().config;
    let entry = |from_class, requests: &[&str], body: &str| DeviceConfig {
        from_class,
        requests: requests.iter().map(|&name| name.into()).collect(),
        body: body.into(),
    };
    let expected = [
        entry(true, &["x", "y"], "{\"opaque\":1}"),
        entry(false, &["y"], "{}"),
        entry(false, &[], "{\"all\":1}"),
    ];
    assert_eq!(*config, expected);
}

#[test]
fn nodes_82_a_tainted_device_must_be_tolerated() {
    let mut bed = DeviceFixture::new();
    let taint =
        |effect: &str| DeviceTaint { key: "k".into(), value: "v".into(), effect: effect.into() };
    let tainted = |effect: &str| Device { taints: vec![taint(effect)], ..device("a", &[]) };
    bed.slice(slice_of("n1", vec![tainted("NoSchedule")]));
    bed.slice(slice_of("n2", vec![tainted("None")]));
    bed.claim(simple("plain", 1));
    let tolerating = |toleration: DeviceToleration| {
        let exact = ExactRequest { tolerations: vec![toleration], ..exactly(1) };
        claim("tolerant", vec![("r", RequestKind::Exactly(exact))])
    };
    bed.claim(tolerating(DeviceToleration { exists: true, ..DeviceToleration::default() }));
    bed.pod("p", &["plain"]);
    bed.pod("q", &["tolerant"]);
    assert_eq!(bed.ask("p", "n1"), refused(NONE));
    assert_eq!(bed.ask("p", "n2"), Ok(()), "an effect that does not matter");
    assert_eq!(bed.ask("q", "n1"), Ok(()));
    let other =
        DeviceToleration { key: "k".into(), value: "w".into(), ..DeviceToleration::default() };
    bed.claim(tolerating(other));
    assert_eq!(bed.ask("q", "n1"), refused(NONE));
}

#[test]
fn what_is_not_judged_fails_closed() {
    let mut bed = DeviceFixture::new();
    bed.slice(slice_of("n1", vec![Device { unjudged: true, ..device("a", &[]) }]));
    bed.slice(ResourceSlice { nodes: SliceNodes::Unjudged, ..slice("n2", &["b"]) });
    bed.claim(simple("c", 1));
    bed.pod("p", &["c"]);
    assert_eq!(bed.ask("p", "n1"), refused(NONE));
    assert_eq!(bed.ask("p", "n2"), refused(NONE));
    let capacity = ExactRequest { has_capacity: true, ..exactly(1) };
    bed.claim(claim("d", vec![("r", RequestKind::Exactly(capacity))]));
    bed.pod("q", &["d"]);
    let text = "claim default/d, request r: capacity requirements are not supported";
    assert_eq!(bed.ask("q", "n1"), broken(text));
}

#[test]
fn searches_are_bounded() {
    let mut bed = DeviceFixture::new();
    let names: Vec<String> = (0..24).map(|index| format!("d{index:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    bed.slice(slice("n1", &names));
    bed.claim(simple("many", 33));
    bed.pod("p", &["many"]);
    let text = "claim default/many: number of requested devices 33 exceeds the claim limit of 32";
    assert_eq!(bed.ask("p", "n1"), broken(text));
    bed.claim(simple("hard", 25));
    bed.pod("q", &["hard"]);
    let text = "timed out trying to allocate devices";
    assert_eq!(bed.ask_within("q", "n1", Some(1000)), refused(text));
}
