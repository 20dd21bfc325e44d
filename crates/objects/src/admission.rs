//! What an API server, its admission and the controllers of a cluster would add to objects before
//! a scheduler sees them, for `vcsim run`. Specification: core.md 3.9, 4.2.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use vc_model::PriorityClassRecord;
use vc_wire::{format_time, parse_time};

use crate::field::{object_mut, set_default, text, title_of};
use crate::input::{Input, InputObject, Source, Unreadable};
use crate::live::LiveObjects;
use crate::scope::is_namespaced;
use crate::workload::{self, PodLimit, WorkloadContext, is_workload, join_group};

/// The clock when no object has a time stamp: 2026-06-01T00:00:00Z.
pub const NOON_MICROS: i64 = 1_780_272_000_000_000;

/// Objects as a scheduler would see them.
#[derive(Debug, Default)]
pub struct AdmittedObjects {
    pub objects: Vec<InputObject>,
    pub unreadable: Vec<Unreadable>,
    /// The latest time stamp among the objects, in microseconds since 1970.
    pub now_micros: i64,
}

/// Fills in what is missing and expands workloads.
pub fn admit(input: Input) -> AdmittedObjects {
    let now_micros = latest(&input.objects).unwrap_or(NOON_MICROS);
    let mut admitted =
        AdmittedObjects { objects: Vec::new(), unreadable: input.unreadable, now_micros };
    admitted.take(input.objects);
    let mut context = WorkloadContext::default();
    admitted.objects.iter().for_each(|object| context.add(&object.value));
    admitted.finish(context, &[]);
    admitted
}

/// Fills in what is missing and expands workloads, beside objects that exist already. A workload that makes more pods
/// than the limit is unreadable.
pub fn admit_beside(
    objects: Vec<InputObject>,
    live: &dyn LiveObjects,
    limit: PodLimit,
) -> AdmittedObjects {
    let now_micros = live.now_micros();
    let mut admitted = AdmittedObjects { now_micros, ..AdmittedObjects::default() };
    admitted.take(objects);
    let mut context = live.context();
    context.limit_pods(limit);
    admitted.objects.iter().for_each(|object| context.add(&object.value));
    admitted.finish(context, &live.priority_classes());
    admitted
}

/// Completes the objects of a cluster one by one, as an API server and controllers would, with what it has read of all
/// of them before. None of them is a workload: their pods and PodGroups are there.
#[derive(Debug)]
pub struct Admission {
    /// The latest creation time, in microseconds since 1970. `None`: no object has one.
    latest_micros: Option<i64>,
    priorities: PriorityClasses,
}

impl Default for Admission {
    fn default() -> Self {
        Self { latest_micros: None, priorities: PriorityClasses::of(&[]) }
    }
}

impl Admission {
    /// Takes note of an object.
    pub fn note(&mut self, object: &Value) {
        self.latest_micros = self.latest_micros.max(created_micros(object));
        self.priorities.add(object);
    }

    /// Returns the latest time stamp among the objects, in microseconds since 1970.
    pub fn now_micros(&self) -> i64 {
        self.latest_micros.unwrap_or(NOON_MICROS)
    }

    /// Fills in what is missing in an object, and puts one of our pods into a PodGroup. Returns the PodGroup if the
    /// context does not have it yet.
    pub fn complete(
        &self,
        object: &mut InputObject,
        context: &mut WorkloadContext,
    ) -> Option<InputObject> {
        identify(&mut object.value, 0, self.now_micros());
        complete(&mut object.value, &self.priorities);
        if !is_pod(&object.value) {
            return None;
        }
        let group = join_group(&mut object.value, None, context)?;
        context.add(&group);
        Some(child(group, object, self.now_micros()))
    }
}

impl AdmittedObjects {
    /// Objects with their identity complete; the first of two with the same identity counts.
    fn take(&mut self, objects: Vec<InputObject>) {
        let mut seen: BTreeMap<(String, String), Source> = BTreeMap::new();
        for (number, mut object) in objects.into_iter().enumerate() {
            identify(&mut object.value, number, self.now_micros);
            let group = workload::group_of(&object.value);
            let identity = (group.to_owned(), title_of(&object.value));
            match seen.get(&identity) {
                None => {
                    seen.insert(identity, object.source.clone());
                    self.objects.push(object);
                }
                Some(first) => {
                    let message = format!("{}: is given twice, first in {first}", identity.1);
                    self.unreadable.push(Unreadable::of_object(object.source, message));
                }
            }
        }
    }

    /// Expands workloads, completes objects and puts pods into groups. `live` are PriorityClasses that
    /// exist already.
    fn finish(&mut self, context: WorkloadContext, live: &[PriorityClassRecord]) {
        self.expand(&context);
        let mut priorities = PriorityClasses::of(live);
        self.objects.iter().for_each(|object| priorities.add(&object.value));
        for object in &mut self.objects {
            complete(&mut object.value, &priorities);
        }
        self.group(context);
    }

    fn expand(&mut self, context: &WorkloadContext) {
        let mut made = Vec::new();
        for workload in self.objects.iter().filter(|object| is_workload(&object.value)) {
            match workload::expand(&workload.value, context) {
                Ok(children) => {
                    let of = |value| child(value, workload, self.now_micros);
                    made.extend(children.into_iter().map(of));
                }
                Err(problem) => {
                    let message = format!("{}: {problem}", title_of(&workload.value));
                    let source = workload.source.clone();
                    self.unreadable.push(Unreadable::of_object(source, message));
                }
            }
        }
        self.objects.extend(made);
    }

    /// PodGroups for those of our pods that have none.
    fn group(&mut self, mut context: WorkloadContext) {
        let owners: BTreeMap<String, Value> = self
            .objects
            .iter()
            .filter(|object| is_workload(&object.value))
            .map(|object| (text(&object.value, "/metadata/uid").to_owned(), object.value.clone()))
            .collect();
        let mut groups = Vec::new();
        for pod in self.objects.iter_mut().filter(|object| is_pod(&object.value)) {
            let owner = text(&pod.value, "/metadata/ownerReferences/0/uid").to_owned();
            let group = join_group(&mut pod.value, owners.get(&owner), &context);
            if let Some(group) = group {
                context.add(&group);
                groups.push(child(group, pod, self.now_micros));
            }
        }
        self.objects.extend(groups);
    }
}

/// An object that a controller made: as old as what it was made for.
fn child(mut value: Value, parent: &InputObject, now_micros: i64) -> InputObject {
    let created = text(&parent.value, "/metadata/creationTimestamp").to_owned();
    set_default(&mut value, &["metadata"], "creationTimestamp", created);
    identify(&mut value, 0, now_micros);
    InputObject { value, source: parent.source.clone() }
}

/// Name, namespace, uid and time stamp.
fn identify(value: &mut Value, number: usize, now_micros: i64) {
    let generated = text(value, "/metadata/generateName").to_owned();
    set_default(value, &["metadata"], "name", format!("{generated}{number:05}"));
    if is_namespaced(text(value, "/apiVersion"), text(value, "/kind")) {
        set_default(value, &["metadata"], "namespace", "default");
    }
    set_default(value, &["metadata"], "creationTimestamp", format_time(now_micros));
    let uid = default_uid(value);
    set_default(value, &["metadata"], "uid", uid);
}

/// Longest default uid; names of PodGroups contain it.
const MAX_UID: usize = 128;

/// `<namespace>-<name>`; with the kind before it for controllers whose PodGroups are named after
/// their uid.
fn default_uid(value: &Value) -> String {
    let mut uid = match (text(value, "/metadata/namespace"), text(value, "/metadata/name")) {
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}-{name}"),
    };
    if matches!(workload::group_of(value), "apps" | "batch") {
        uid = format!("{}-{uid}", text(value, "/kind").to_lowercase());
    }
    if uid.len() <= MAX_UID { uid } else { format!("{:016x}", fnv1a(uid.as_bytes())) }
}

/// FNV-1a, for short names that differ when what they stand for does.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// What the API server fills in for a kind.
fn complete(value: &mut Value, priorities: &PriorityClasses) {
    match text(value, "/kind") {
        "Pod" if is_pod(value) => {
            set_default(value, &["spec"], "schedulerName", "default-scheduler");
            set_default(value, &["status"], "phase", "Pending");
            requests_from_limits(value);
            host_ports(value);
            priorities.apply(value);
        }
        "PodGroup" => set_default(value, &["spec"], "queue", "default"),
        _ => {}
    }
}

pub fn is_pod(value: &Value) -> bool {
    value["kind"] == "Pod" && value["apiVersion"] == "v1"
}

/// A container with a limit and no request requests its limit.
pub fn requests_from_limits(pod: &mut Value) {
    for list in ["containers", "initContainers"] {
        let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let limits = container.pointer("/resources/limits").and_then(Value::as_object).cloned();
            for (name, limit) in limits.into_iter().flatten() {
                if let Some(requests) = object_mut(container, &["resources", "requests"]) {
                    requests.entry(name).or_insert(limit);
                }
            }
        }
    }
}

/// On the network of the host every port of a container is one of the host (plugins-nodes.md 4.3).
fn host_ports(pod: &mut Value) {
    if pod["spec"]["hostNetwork"] != true {
        return;
    }
    for list in ["containers", "initContainers"] {
        let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
        let ports = |container| Value::get_mut(container, "ports").and_then(Value::as_array_mut);
        for port in containers.into_iter().flatten().filter_map(ports).flatten() {
            let number = port["containerPort"].clone();
            set_default(port, &[], "hostPort", number);
        }
    }
}

/// The PriorityClasses of a cluster, as its admission uses them.
#[derive(Debug, Default)]
struct PriorityClasses {
    values: BTreeMap<String, i64>,
    /// Name and value of the smallest class marked as global default (C-13).
    default: Option<(i64, String)>,
}

impl PriorityClasses {
    fn of(live: &[PriorityClassRecord]) -> Self {
        let mut priorities = Self::default();
        for (name, value) in
            [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)]
        {
            priorities.values.insert(name.to_owned(), value);
        }
        for PriorityClassRecord { name, value, global_default } in live {
            priorities.set(name, i64::from(*value), *global_default);
        }
        priorities
    }

    fn add(&mut self, class: &Value) {
        if class["kind"] != "PriorityClass" {
            return;
        }
        let value = class["value"].as_i64().unwrap_or(0);
        self.set(text(class, "/metadata/name"), value, class["globalDefault"] == true);
    }

    fn set(&mut self, name: &str, value: i64, is_default: bool) {
        if is_default {
            let candidate = (value, name.to_owned());
            let least = self.default.take().map_or(candidate.clone(), |old| old.min(candidate));
            self.default = Some(least);
        }
        self.values.insert(name.to_owned(), value);
    }

    /// Gives a pod without a priority that of its class, or of the default class.
    fn apply(&self, pod: &mut Value) {
        if !pod["spec"]["priority"].is_null() {
            return;
        }
        let value = match (text(pod, "/spec/priorityClassName"), &self.default) {
            ("", Some((value, _))) => Some(*value),
            ("", None) => None,
            (name, _) => self.values.get(name).copied(),
        };
        if let (Some(value), Some(spec)) = (value, object_mut(pod, &["spec"])) {
            spec.insert("priority".to_owned(), json!(value));
        }
    }
}

/// The latest creation time of the objects.
fn latest(objects: &[InputObject]) -> Option<i64> {
    objects.iter().filter_map(|object| created_micros(&object.value)).max()
}

/// Returns the creation time of an object, in microseconds since 1970. Returns `None` if it has none.
fn created_micros(object: &Value) -> Option<i64> {
    parse_time(text(object, "/metadata/creationTimestamp"))
}
