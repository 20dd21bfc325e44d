//! Containers of a pod: requests, ports, amounts in place. Specification: core.md 3.5,
//! plugins-nodes.md 4.3.

use std::sync::Arc;

use serde::Deserialize;
use vc_model::{ContainerRecord, HostPort, InPlace, Protocol, ResourceList};
use vc_resource::Quantity;

use crate::brief::ShortText;
use crate::problems::{FieldPath, Problems};
use crate::soft::{LenientField, LenientList, LenientMap, object};

/// A container or init container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimContainer {
    pub name: LenientField<Arc<str>>,
    pub image: LenientField<Arc<str>>,
    pub resources: LenientField<SlimResources>,
    pub restart_policy: LenientField<ShortText>,
    pub ports: LenientList<SlimPort>,
}

/// `resources` of a container, its status, or a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimResources {
    pub requests: LenientField<LenientMap<Quantity>>,
    pub limits: LenientField<LenientMap<Quantity>>,
}

/// A port of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimPort {
    pub host_port: LenientField<i32>,
    #[serde(rename = "hostIP")]
    pub host_ip: LenientField<Arc<str>>,
    pub protocol: LenientField<ShortText>,
}

/// The status of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimContainerStatus {
    pub name: LenientField<ShortText>,
    pub resources: LenientField<SlimResources>,
    pub allocated_resources: LenientField<LenientMap<Quantity>>,
}

object!(
    SlimContainer {
        "name" => name,
        "image" => image,
        "resources" => resources,
        "restartPolicy" => restart_policy,
        "ports" => ports,
    },
    SlimResources { "requests" => requests, "limits" => limits },
    SlimPort { "hostPort" => host_port, "hostIP" => host_ip, "protocol" => protocol },
    SlimContainerStatus {
        "name" => name,
        "resources" => resources,
        "allocatedResources" => allocated_resources,
    },
);

pub(crate) fn all(
    slim: LenientList<SlimContainer>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Vec<ContainerRecord> {
    problems.list(slim, path, |problems, slim, path| {
        let policy = problems.or_default(slim.restart_policy, &path.field("restartPolicy"));
        let (requests, limits) = amounts(slim.resources, &path.field("resources"), problems);
        ContainerRecord {
            is_guaranteed: is_guaranteed(&requests, &limits),
            name: problems.text(slim.name, &path.field("name")),
            image: problems.text(slim.image, &path.field("image")),
            requests,
            limits,
            restartable: &*policy == "Always",
            host_ports: host_ports(slim.ports, &path.field("ports"), problems),
            in_place: None,
        }
    })
}

/// True if the limits of cpu and memory are given, above 0 and equal to the requests.
fn is_guaranteed(requests: &ResourceList, limits: &ResourceList) -> bool {
    ["cpu", "memory"].iter().all(|resource| {
        let of = |list: &ResourceList| {
            let found = list.iter().find(|(name, _)| &**name == *resource);
            found.map(|(_, quantity)| quantity.milli()).filter(|milli| 0 < *milli)
        };
        of(limits).is_some_and(|limit| of(requests) == Some(limit))
    })
}

/// The requests, and the limits of cpu and memory.
pub(crate) fn amounts(
    slim: LenientField<SlimResources>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> (ResourceList, ResourceList) {
    let slim = problems.or_default(slim, path);
    let limits = limits(slim.limits, &path.field("limits"), problems);
    (problems.resources(slim.requests, &path.field("requests")), limits)
}

/// The limits of cpu and memory. A limit decides no more than how a pod is scored, so one that cannot
/// be read is noted and left out.
fn limits(
    slim: LenientField<LenientMap<Quantity>>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> ResourceList {
    let LenientMap(entries) = match slim {
        LenientField::Good(entries) => entries,
        LenientField::Absent => return ResourceList::new(),
        LenientField::Bad(message) => {
            problems.note(path, &message);
            return ResourceList::new();
        }
    };
    let mut limits = ResourceList::new();
    for (name, limit) in entries.into_iter().filter(|(name, _)| matches!(&**name, "cpu" | "memory"))
    {
        match limit {
            LenientField::Good(limit) if !limit.is_negative() => limits.push((name, limit)),
            LenientField::Good(limit) => {
                let text = limit.text(&name);
                problems.note(&path.key(&name), &format!("is below zero, it is ignored: {text}"));
            }
            LenientField::Absent => {}
            LenientField::Bad(message) => problems.note(&path.key(&name), &message),
        }
    }
    limits
}

fn host_ports(
    slim: LenientList<SlimPort>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Vec<HostPort> {
    let ports = problems.list(slim, path, |problems, slim, path| {
        let port_path = path.field("hostPort");
        let number = problems.or_default(slim.host_port, &port_path);
        let Ok(port) = u16::try_from(number) else {
            problems.add(&port_path, &format!("must be between 0 and 65535: {number}"));
            return None;
        };
        let protocol = protocol(slim.protocol, &path.field("protocol"), problems)?;
        let ip = problems.text(slim.host_ip, &path.field("hostIP"));
        let ip = if ip.is_empty() { "0.0.0.0".into() } else { ip };
        (port != 0).then_some(HostPort { port, protocol, ip })
    });
    ports.into_iter().flatten().collect()
}

fn protocol(
    slim: LenientField<ShortText>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<Protocol> {
    match &*problems.or_default(slim, path) {
        "" | "TCP" => Some(Protocol::Tcp),
        "UDP" => Some(Protocol::Udp),
        "SCTP" => Some(Protocol::Sctp),
        other => {
            problems.add(path, &format!("must be TCP, UDP or SCTP: {other:?}"));
            None
        }
    }
}

/// Enters the amounts in place of those containers whose status states resources.
pub(crate) fn in_place(
    containers: &mut [ContainerRecord],
    slim: LenientList<SlimContainerStatus>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) {
    problems.list(slim, path, |problems, slim, path| {
        let resources = path.field("resources");
        let Some(held) = problems.read(slim.resources, &resources) else {
            return;
        };
        let allocated = path.field("allocatedResources");
        let amounts = InPlace {
            requests: problems.resources(held.requests, &resources.field("requests")),
            allocated: problems.resources(slim.allocated_resources, &allocated),
        };
        let name = problems.or_default(slim.name, &path.field("name"));
        if let Some(container) = containers.iter_mut().find(|container| *container.name == *name) {
            container.in_place = Some(amounts);
        }
    });
}
