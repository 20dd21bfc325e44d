//! Volumes, claims and storage, whole and malformed (plugins-nodes.md 3.5, 4.6, 5.1).

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use vc_model::{
    AccessModes, BindingMode, ClusterEvent, Disk, InTree, ObjectKey, PersistentVolume, PodClaim,
    PodVolume, StorageKind, StorageObject, VolumeMode, VolumePhase, VolumeSource,
};
use vc_wire::{Kind, decode, decode_deleted, kind_of};

fn storage(kind: Kind, object: &Value) -> StorageObject {
    match decode(kind, object).unwrap().event {
        ClusterEvent::StorageApplied(object) => *object,
        other => panic!("{other:?}"),
    }
}

fn volume(object: &Value) -> PersistentVolume {
    match storage(Kind::PersistentVolume, object) {
        StorageObject::Volume(volume) => volume,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_volume() {
    let object = json!({
        "metadata": {"name": "v", "resourceVersion": "7", "labels": {"a": "b"},
            "annotations": {"volume.beta.kubernetes.io/storage-class": ""}},
        "spec": {
            "storageClassName": "ignored", "capacity": {"storage": "1.5Gi"},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"], "volumeMode": "Block",
            "volumeAttributesClassName": "gold",
            "claimRef": {"namespace": "c1", "name": "c", "uid": "u"},
            "csi": {"driver": "d", "volumeHandle": "h"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}}},
        "status": {"phase": "Available"}});
    let volume = volume(&object);
    assert_eq!((&*volume.name, &*volume.resource_version, &*volume.class), ("v", "7", ""));
    assert_eq!((volume.capacity_bytes, volume.mode), (3 << 29, VolumeMode::Block));
    assert!(volume.access_modes.offer(AccessModes::READ_WRITE_MANY));
    assert!(!volume.access_modes.any(AccessModes::READ_WRITE_ONCE_POD));
    assert_eq!(volume.claim.unwrap().claim, ObjectKey::new("c1", "c"));
    let csi = VolumeSource::Csi { driver: "d".into(), handle: "h".into() };
    assert_eq!((volume.source, volume.phase), (csi, VolumePhase::Available));
    assert_eq!(volume.node_affinity.unwrap().len(), 1);
    assert_eq!((&*volume.attributes_class, &**volume.labels.get("a").unwrap()), ("gold", "b"));
}

#[test]
fn a_volume_of_an_old_type_belongs_to_its_driver() {
    let ebs = |id| json!({"awsElasticBlockStore": {"volumeID": id}});
    let gce = json!({"gcePersistentDisk": {"pdName": "x"}});
    let zones = |zones| json!({"topology.kubernetes.io/zone": zones});
    for (labels, spec, of, handle) in [
        (json!({}), ebs("vol-x"), InTree::AwsEbs, "vol-x"),
        (json!({}), ebs("aws://us-east-1a/vol-x"), InTree::AwsEbs, "vol-x"),
        (json!({}), ebs("aws:///vol-x"), InTree::AwsEbs, "vol-x"),
        (json!({}), json!({"azureDisk": {"diskURI": "x"}}), InTree::AzureDisk, "x"),
        (json!({}), json!({"cinder": {"volumeID": "x"}}), InTree::Cinder, "x"),
        (json!({}), gce.clone(), InTree::GcePd, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/x"),
        (
            zones("us-east1-b"),
            gce.clone(),
            InTree::GcePd,
            "projects/UNSPECIFIED/zones/us-east1-b/disks/x",
        ),
        (
            zones("us-east1-b__us-east1-c"),
            gce.clone(),
            InTree::GcePd,
            "projects/UNSPECIFIED/regions/us-east1/disks/x",
        ),
    ] {
        let object = json!({"metadata": {"name": "v", "labels": labels}, "spec": spec});
        let volume = volume(&object);
        assert_eq!(volume.source, VolumeSource::Migrated { of, handle: handle.into() }, "{spec}");
    }
}

#[test]
fn a_volume_that_its_driver_could_not_name_is_read_all_the_same() {
    let ebs = json!({"awsElasticBlockStore": {"volumeID": "aws://a/b"}});
    let gce = json!({"gcePersistentDisk": {"pdName": "x"}});
    for (zones, spec) in [("a", ebs), ("us-east1-b__us-west1-c", gce.clone()), ("a__b", gce)] {
        let labels = json!({"failure-domain.beta.kubernetes.io/zone": zones});
        let object = json!({"metadata": {"name": "v", "labels": labels}, "spec": spec});
        let source = volume(&object).source;
        assert!(matches!(source, VolumeSource::Untranslatable { .. }), "{source:?}");
    }
}

#[test]
fn a_claim() {
    let mut object = json!({
        "metadata": {"name": "c", "namespace": "c1", "uid": "u", "annotations": {
                "pv.kubernetes.io/bind-completed": "yes",
                "volume.kubernetes.io/selected-node": "n1"},
            "ownerReferences": [{"name": "x", "uid": "1"},
                {"name": "p", "uid": "2", "controller": true}]},
        "spec": {"storageClassName": "s", "volumeName": "v", "accessModes": ["ReadWriteOncePod"],
            "resources": {"requests": {"storage": "1"}},
            "selector": {"matchLabels": {"a": "b"}}},
        "status": {"phase": "Lost"}});
    let claim = |object: &Value| match storage(Kind::PersistentVolumeClaim, object) {
        StorageObject::Claim(claim) => claim,
        other => panic!("{other:?}"),
    };
    let read = claim(&object);
    assert_eq!((&*read.class, &*read.volume_name, read.request_bytes), ("s", "v", Some(1)));
    assert!(read.is_bound() && read.lost && read.has_annotations && read.selector.is_some());
    assert_eq!(read.controller_uid.as_deref(), Some("2"));
    assert_eq!(read.selected_node.as_deref(), Some("n1"));
    assert!(read.access_modes.any(AccessModes::READ_WRITE_ONCE_POD));
    object["metadata"].as_object_mut().unwrap().remove("annotations");
    let read = claim(&object);
    assert!(!read.is_bound() && !read.has_annotations);
}

#[test]
fn classes_drivers_limits_capacities_attachments() {
    let class = json!({"metadata": {"name": "s"}, "provisioner": "p",
        "volumeBindingMode": "WaitForFirstConsumer",
        "parameters": {"csi.storage.k8s.io/csi-driver-name": "d"},
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]});
    let StorageObject::Class(class) = storage(Kind::StorageClass, &class) else { panic!() };
    assert_eq!((&*class.provisioner, class.mode), ("p", BindingMode::Delayed));
    assert_eq!(class.driver.as_deref(), Some("d"));
    assert_eq!(class.allowed_topologies, [vec![("zone".into(), vec!["a".into()])]]);
    let plugins = json!({"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/cinder,x"});
    let node = json!({"metadata": {"name": "n", "annotations": plugins}, "spec": {"drivers": [
        {"name": "d", "allocatable": {"count": 3}}, {"name": "e"}]}});
    let StorageObject::CsiNode(node) = storage(Kind::CsiNode, &node) else { panic!() };
    assert_eq!(node.drivers, [("d".into(), Some(3)), ("e".into(), None)]);
    assert_eq!(node.migrated_plugins.len(), 2);
    let driver = json!({"metadata": {"name": "d"}, "spec": {"storageCapacity": true}});
    let StorageObject::CsiDriver(driver) = storage(Kind::CsiDriver, &driver) else { panic!() };
    assert!(driver.storage_capacity);
    let row = json!({"metadata": {"name": "k", "namespace": "ns"}, "storageClassName": "s",
        "capacity": "5Gi", "maximumVolumeSize": "1Gi", "nodeTopology": {}});
    let StorageObject::Capacity(row) = storage(Kind::StorageCapacity, &row) else { panic!() };
    assert_eq!((row.capacity_bytes, row.maximum_bytes), (Some(5 << 30), Some(1 << 30)));
    assert!(row.node_topology.is_some());
    let row = json!({"metadata": {"name": "a"}, "spec": {"attacher": "d", "nodeName": "n",
        "source": {"persistentVolumeName": "v"}}});
    let StorageObject::Attachment(row) = storage(Kind::VolumeAttachment, &row) else { panic!() };
    assert_eq!([&*row.attacher, &*row.node, &*row.volume], ["d", "n", "v"]);
}

#[test]
fn volumes_of_a_pod_that_something_judges() {
    let pod = |volumes: Value| {
        let object = json!({"metadata": {"name": "p", "namespace": "c1", "uid": "u"},
            "spec": {"volumes": volumes}});
        let decoded = decode(Kind::Pod, &object).unwrap();
        let ClusterEvent::PodApplied(pod) = decoded.event else { panic!() };
        (pod.volumes, pod.invalid)
    };
    let (volumes, invalid) = pod(json!([
        {"name": "token", "projected": {"sources": []}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        {"name": "disk", "gcePersistentDisk": {"pdName": "g", "readOnly": true}},
        {"name": "iscsi", "iscsi": {"iqn": "i"}},
        {"name": "rbd", "rbd": {"monitors": ["m"], "pool": "p", "image": "x"}},
    ]));
    let claim = |name: &str, ephemeral| PodVolume::Claim(PodClaim { name: name.into(), ephemeral });
    let disks = [
        Disk::GcePd { name: "g".into(), read_only: true },
        Disk::Iscsi { iqn: "i".into(), read_only: false },
        Disk::Rbd {
            monitors: vec!["m".into()],
            pool: "p".into(),
            image: "x".into(),
            read_only: false,
        },
    ];
    let mut expected = vec![claim("c", false), claim("p-scratch", true)];
    expected.extend(disks.map(PodVolume::Disk));
    assert_eq!((volumes, invalid), (expected, None));
    let (_, invalid) = pod(json!([{"name": "x", "persistentVolumeClaim": {"claimName": 7}}]));
    let text = "spec.volumes[0].persistentVolumeClaim.claimName: must be a string: 7";
    assert_eq!(invalid.as_deref(), Some(text), "such a pod is never placed");
}

#[test]
fn a_malformed_object_is_named_with_its_field() {
    let object = json!({"metadata": {"name": "c", "namespace": "c1"},
        "spec": {"resources": {"requests": {"storage": "5 Gi"}}}});
    let error = decode(Kind::PersistentVolumeClaim, &object).unwrap_err().to_string();
    let start = "persistentvolumeclaim c1/c: spec.resources.requests.storage: ";
    assert!(error.starts_with(start), "{error}");
}

#[test]
fn kinds_and_their_ends() {
    for (version, name, kind, storage) in [
        ("v1", "PersistentVolume", Kind::PersistentVolume, StorageKind::Volume),
        ("v1", "PersistentVolumeClaim", Kind::PersistentVolumeClaim, StorageKind::Claim),
        ("storage.k8s.io/v1", "StorageClass", Kind::StorageClass, StorageKind::Class),
        ("storage.k8s.io/v1", "CSINode", Kind::CsiNode, StorageKind::CsiNode),
        ("storage.k8s.io/v1", "CSIDriver", Kind::CsiDriver, StorageKind::CsiDriver),
        ("storage.k8s.io/v1", "CSIStorageCapacity", Kind::StorageCapacity, StorageKind::Capacity),
        ("storage.k8s.io/v1", "VolumeAttachment", Kind::VolumeAttachment, StorageKind::Attachment),
    ] {
        assert_eq!(kind_of(version, name), Some(kind));
        let object = json!({"metadata": {"name": "x", "namespace": "ns"}});
        let namespace = if kind.is_namespaced() { "ns" } else { "" };
        let expected = ObjectKey::new(namespace, "x");
        match decode_deleted(kind, &object).unwrap() {
            ClusterEvent::StorageDeleted { kind, key } => {
                assert_eq!((kind, key), (storage, expected));
            }
            other => panic!("{other:?}"),
        }
    }
}
