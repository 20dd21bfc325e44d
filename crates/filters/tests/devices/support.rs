//! A cluster with two nodes, devices on them, and pods with claims.

use std::sync::Arc;

use vc_filters::dynamic_resources::{DeviceCache, PodDeviceClaims, pre_filter};
use vc_filters::{Pod, PreFilter};
use vc_model::{
    Attribute, ClaimPromise, ClaimSource, Cluster, ClusterEvent, Code, Device, DeviceClass,
    DeviceObject, DeviceRequest, ExactRequest, ObjectKey, PodRecord, PodResourceClaim, RequestKind,
    Reservation, ResourceClaim, ResourceSlice, SliceNodes, TaskStatus, fixture,
};

pub(crate) const DRIVER: &str = "gpu.example.com";

pub(crate) struct DeviceFixture {
    pub(crate) cluster: Cluster,
    cache: DeviceCache,
}

/// `Ok`: it fits; an error is the finding about the node, or about the pod as a whole.
pub(crate) type Answer = Result<(), (Code, String)>;

impl DeviceFixture {
    /// Nodes n1 and n2, the class `gpu` of all devices, and the job `j` of the pods.
    pub(crate) fn new() -> Self {
        let text = "node n1 cpu=8\nnode n2 cpu=8\njob j min=1\njob k min=1";
        let mut bed = Self { cluster: fixture::cluster(text), cache: DeviceCache::default() };
        bed.put(DeviceObject::Class(class("gpu")));
        bed
    }

    pub(crate) fn put(&mut self, object: DeviceObject) {
        self.cluster.apply(ClusterEvent::DeviceApplied(Box::new(object)));
        assert_eq!(self.cluster.check(), Ok(()));
    }

    pub(crate) fn slice(&mut self, slice: ResourceSlice) {
        self.put(DeviceObject::Slice(slice));
    }

    pub(crate) fn claim(&mut self, claim: ResourceClaim) {
        self.put(DeviceObject::Claim(claim));
    }

    /// A pod of job `j` with these claims.
    pub(crate) fn pod(&mut self, name: &str, claims: &[&str]) {
        self.pod_of("j", name, claims);
    }

    pub(crate) fn pod_of(&mut self, job: &str, name: &str, claims: &[&str]) {
        let claim = |claim: &&str| PodResourceClaim {
            name: (*claim).into(),
            source: ClaimSource::Named((*claim).into()),
        };
        self.pod_with(job, name, claims.iter().map(claim).collect());
    }

    pub(crate) fn pod_with(&mut self, job: &str, name: &str, claims: Vec<PodResourceClaim>) {
        let group = ("scheduling.k8s.io/group-name".into(), job.into());
        let pod = PodRecord {
            key: ObjectKey::new("default", name),
            uid: format!("uid-{name}").into(),
            scheduler_name: "volcano".into(),
            annotations: [group].into(),
            resource_claims: claims,
            ..PodRecord::default()
        };
        self.cluster.apply(ClusterEvent::PodApplied(Box::new(pod)));
    }

    fn at(&self, pod: &str) -> Pod<'_> {
        let task = self.cluster.task_named(&ObjectKey::new("default", pod)).unwrap();
        Pod::new(&self.cluster, task)
    }

    pub(crate) fn ask(&self, pod: &str, node: &str) -> Answer {
        self.ask_within(pod, node, None)
    }

    pub(crate) fn ask_within(&self, pod: &str, node: &str, steps: Option<u64>) -> Answer {
        let finding = match pre_filter(self.at(pod), &self.cache, steps) {
            PreFilter::Skip => None,
            PreFilter::Refuse(finding) => Some(finding),
            PreFilter::Ask(filter) => filter(fixture::node(&self.cluster, node)),
        };
        match finding {
            None => Ok(()),
            Some(finding) => Err((finding.code, finding.reason.text(&self.cluster.dims))),
        }
    }

    /// What the pod is promised on the node.
    pub(crate) fn promise(&self, pod: &str, node: &str) -> Result<Vec<ClaimPromise>, String> {
        let claims = PodDeviceClaims::find(self.at(pod), &self.cache, None)?;
        claims.reserve(fixture::node(&self.cluster, node))
    }

    /// `request=device` of a claim that the pod would get on the node.
    pub(crate) fn devices(&self, pod: &str, node: &str) -> String {
        let promises = self.promise(pod, node).unwrap();
        let chosen = promises.iter().flat_map(|promise| &promise.allocation);
        let results = chosen.flat_map(|allocation| &allocation.results);
        let words: Vec<String> =
            results.map(|result| format!("{}={}", result.request, result.device.device)).collect();
        words.join(" ")
    }

    /// Gives the pod the node and what goes with it.
    pub(crate) fn place(&mut self, pod: &str, node: &str) {
        let devices = self.promise(pod, node).unwrap();
        let (task, node) = (self.at(pod).task, fixture::node(&self.cluster, node));
        self.cluster.set_task(task, TaskStatus::Allocated, Some(node));
        self.cluster.reserve(task, Reservation { devices, ..Reservation::default() });
        assert_eq!(self.cluster.check(), Ok(()));
    }

    /// Takes it back.
    pub(crate) fn undo(&mut self, pod: &str) {
        let task = self.at(pod).task;
        self.cluster.set_task(task, TaskStatus::Pending, None);
        assert_eq!(self.cluster.check(), Ok(()));
    }

    pub(crate) fn score(&self, pod: &str, node: &str) -> i64 {
        let claims = PodDeviceClaims::find(self.at(pod), &self.cache, None).unwrap();
        claims.score(fixture::node(&self.cluster, node))
    }
}

pub(crate) fn refused(text: &str) -> Answer {
    Err((Code::Unresolvable, text.to_owned()))
}

pub(crate) fn broken(text: &str) -> Answer {
    Err((Code::Error, text.to_owned()))
}

pub(crate) fn class(name: &str) -> DeviceClass {
    DeviceClass { name: name.into(), ..DeviceClass::default() }
}

/// Devices that only the node has, in a pool of its name.
pub(crate) fn slice(node: &str, devices: &[&str]) -> ResourceSlice {
    let device = |name: &&str| device(name, &[]);
    slice_of(node, devices.iter().map(device).collect())
}

pub(crate) fn slice_of(node: &str, devices: Vec<Device>) -> ResourceSlice {
    ResourceSlice {
        name: format!("slice-{node}").into(),
        driver: DRIVER.into(),
        pool: node.into(),
        generation: 1,
        n_slices: 1,
        nodes: SliceNodes::Named(node.into()),
        devices: devices.into_iter().map(Arc::new).collect(),
    }
}

pub(crate) fn device(name: &str, attributes: &[(&str, Attribute)]) -> Device {
    let entry = |(name, value): &(&str, Attribute)| ((*name).into(), value.clone());
    Device {
        name: name.into(),
        attributes: attributes.iter().map(entry).collect(),
        ..Device::default()
    }
}

pub(crate) fn exactly(n_devices: u32) -> ExactRequest {
    let mode = vc_model::AllocationMode::Count(n_devices);
    ExactRequest { class: "gpu".into(), mode, ..ExactRequest::default() }
}

/// A claim with these requests.
pub(crate) fn claim(name: &str, requests: Vec<(&str, RequestKind)>) -> ResourceClaim {
    let request = |(name, kind): (&str, RequestKind)| DeviceRequest { name: name.into(), kind };
    ResourceClaim {
        key: ObjectKey::new("default", name),
        uid: format!("uid-{name}").into(),
        requests: requests.into_iter().map(request).collect(),
        ..ResourceClaim::default()
    }
}

/// A claim for so many devices, in one request `r`.
pub(crate) fn simple(name: &str, n_devices: u32) -> ResourceClaim {
    claim(name, vec![("r", RequestKind::Exactly(exactly(n_devices)))])
}
