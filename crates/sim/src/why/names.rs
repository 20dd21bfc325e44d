//! Names of jobs as users know them: those of the controllers of PodGroups. Specification:
//! answers.md 2 (ANS-5), 16.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use vc_answers::{SharedNames, Subject, SubjectError, SubjectKind, SubjectQuery, find_subject};
use vc_model::{Cluster, ControllerName, ObjectKey};
use vc_page::Owner;
use vc_wire::Kind;

use super::WhyError;
use crate::simulation::Simulation;
use vc_objects::field::text;
use vc_objects::workload::SCHEDULER;

/// The controllers of PodGroups.
pub(crate) struct OwnerNames {
    controllers: BTreeMap<ObjectKey, Controller>,
    shared: SharedNames,
}

/// A controller.
struct Controller {
    /// In lower case.
    kind: String,
    name: String,
    uid: String,
}

impl OwnerNames {
    pub(crate) fn of(simulation: &Simulation) -> Self {
        let owner = |group: &Value| {
            let namespace = text(group, "/metadata/namespace");
            (ObjectKey::new(namespace, text(group, "/metadata/name")), controller(group))
        };
        let groups: BTreeMap<ObjectKey, Option<Controller>> =
            simulation.objects(Kind::PodGroup).map(|group| owner(&group)).collect();
        let named = groups.iter().map(|(group, owner)| {
            let name = owner.as_ref().map(|owner| owner.name.as_str());
            (group, name)
        });
        let shared = SharedNames::new(named);
        let controllers = groups.into_iter().filter_map(|(group, owner)| Some((group, owner?)));
        Self { controllers: controllers.collect(), shared }
    }

    /// Returns the controller of a PodGroup. Returns `None` if it has none.
    pub(crate) fn get(&self, group: &ObjectKey) -> Option<Owner> {
        let it = self.controllers.get(group)?;
        let is_unique = !self.shared.contains(group);
        Some(Owner { kind: it.kind.clone(), name: it.name.clone(), is_unique })
    }

    /// Returns the controllers of all PodGroups that have one.
    pub(crate) fn all(&self) -> BTreeMap<ObjectKey, Owner> {
        let owner = |group: &ObjectKey| Some((group.clone(), self.get(group)?));
        self.controllers.keys().filter_map(owner).collect()
    }

    /// Returns the name of a job as users know it: that of its controller if no other job is meant by
    /// it, else that of its PodGroup.
    pub(crate) fn name(&self, group: &ObjectKey) -> String {
        match self.get(group).filter(|owner| owner.is_unique) {
            Some(owner) => format!("{}/{}", group.namespace, owner.name),
            None => group.to_string(),
        }
    }
}

/// Returns the controller of an object, or its first owner if nobody controls it. Returns `None` if it
/// has none, or a name is missing.
fn controller(object: &Value) -> Option<Controller> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let controls = |owner: &&Value| owner["controller"] == true;
    let owner = owners.iter().find(controls).or(owners.first())?;
    let field = |name: &str| owner[name].as_str().unwrap_or_default().to_owned();
    let (kind, name, uid) = (field("kind").to_lowercase(), field("name"), field("uid"));
    (!name.is_empty()).then_some(Controller { kind, name, uid })
}

/// What a name stands for.
pub(super) enum Found {
    Ours(Subject),
    NotOurs { pod: ObjectKey, scheduler: String },
}

/// Finds what `[KIND/]NAME` means in a namespace, or in any.
pub(super) fn find(
    simulation: &Simulation,
    cluster: &Cluster,
    (namespace, asked): (Option<&str>, &str),
) -> Result<Found, WhyError> {
    let (kind, name) = match asked.split_once('/') {
        Some((kind, name)) => (SubjectKind::of(Some(kind)), name),
        None => (SubjectKind::Any, asked),
    };
    let namespaces: BTreeSet<String> = match namespace {
        Some(namespace) => BTreeSet::from([namespace.to_owned()]),
        None => namespaces(simulation),
    };
    let (mut found, mut several, mut close) = (Vec::new(), Vec::new(), Vec::new());
    let mut unambiguous = "the PodGroup";
    for namespace in &namespaces {
        for uid in uids(simulation, namespace, (kind, name)) {
            let query = SubjectQuery { namespace, name, controller_uid: uid.as_deref(), kind };
            match find_subject(cluster, query) {
                Ok(subject) if found.iter().all(|(other, _)| *other != subject) => {
                    found.push((subject, namespace));
                }
                Ok(_) => {}
                Err(SubjectError::Several(names)) => several.extend(names),
                Err(SubjectError::SeveralPods(names)) => {
                    several.extend(names);
                    unambiguous = "one pod";
                }
                Err(SubjectError::Unknown(names)) => close.extend(names),
            }
        }
    }
    if let [(subject, _)] = found[..]
        && several.is_empty()
    {
        return Ok(Found::Ours(subject));
    }
    let n_of = |namespace: &str| found.iter().filter(|(_, other)| *other == namespace).count();
    let meant = |&(subject, namespace): &(Subject, &String)| match subject.job {
        Some(job) if 1 < n_of(namespace) => cluster.jobs[job].key.to_string(),
        _ => format!("{namespace}/{name}"),
    };
    several.extend(found.iter().map(meant));
    match several.is_empty() {
        true => {
            not_ours(simulation, &namespaces, name).ok_or_else(|| unknown(asked, namespace, close))
        }
        false => Err(is_several(name, several, unambiguous)),
    }
}

/// Returns the PodGroup of a controller of this kind and name. Returns `None` if no controller, or
/// several, have one, and without a kind also if a PodGroup has the name itself.
pub(crate) fn group_named(
    simulation: &Simulation,
    kind: Option<&str>,
    key: &ObjectKey,
) -> Option<ObjectKey> {
    let ObjectKey { namespace, name } = key;
    if kind.is_none() && simulation.object(Kind::PodGroup, namespace, name).is_some() {
        return None;
    }
    let is_meant = |owner: Controller| {
        let is_kind = kind.is_none_or(|kind| owner.kind.eq_ignore_ascii_case(kind));
        is_kind && owner.name == *key.name
    };
    let is_named = |group: &Cow<'_, Value>| {
        text(group, "/metadata/namespace") == &*key.namespace
            && controller(group).is_some_and(is_meant)
    };
    let mut groups = simulation.objects(Kind::PodGroup).filter(is_named);
    let group = groups.next()?;
    let name = text(&group, "/metadata/name");
    groups.next().is_none().then(|| ObjectKey::new(&key.namespace, name))
}

/// Returns the uids of controllers of this name that have a PodGroup, or one `None` if there are
/// none. What the name of a Deployment may mean is left to the rows of the cluster.
fn uids(
    simulation: &Simulation,
    namespace: &str,
    (kind, name): (SubjectKind<'_>, &str),
) -> Vec<Option<String>> {
    let kind = match kind {
        SubjectKind::Pod | SubjectKind::Group => return vec![None],
        SubjectKind::Any => None,
        SubjectKind::Controller(kind) => Some(kind),
    };
    let is_named = |owner: &Controller| {
        ControllerName { kind: &owner.kind, name: &owner.name }.is_meant_by(kind, name)
    };
    let groups = simulation.objects(Kind::PodGroup);
    let groups = groups.filter(|group| text(group, "/metadata/namespace") == namespace);
    let owners = groups.filter_map(|group| controller(&group)).filter(is_named);
    let uids: BTreeSet<String> = owners.map(|owner| owner.uid).collect();
    match uids.is_empty() {
        true => vec![None],
        false => uids.into_iter().map(Some).collect(),
    }
}

fn namespaces(simulation: &Simulation) -> BTreeSet<String> {
    let of_groups = simulation.namespaces(Kind::PodGroup);
    of_groups.chain(simulation.namespaces(Kind::Pod)).map(str::to_owned).collect()
}

fn not_ours(simulation: &Simulation, namespaces: &BTreeSet<String>, name: &str) -> Option<Found> {
    namespaces.iter().find_map(|namespace| {
        let pod = simulation.object(Kind::Pod, namespace, name)?;
        let scheduler = text(&pod, "/spec/schedulerName");
        let scheduler = if scheduler.is_empty() { "default-scheduler" } else { scheduler };
        let is_other = scheduler != SCHEDULER;
        let scheduler = scheduler.to_owned();
        let pod = ObjectKey { namespace: namespace.as_str().into(), name: name.into() };
        is_other.then_some(Found::NotOurs { pod, scheduler })
    })
}

fn is_several(name: &str, mut meant: Vec<String>, unambiguous: &str) -> WhyError {
    meant.sort();
    meant.dedup();
    let hint = format!("hint: give -n NAMESPACE, or the name of {unambiguous}");
    WhyError::Several(format!("{name} means several: {}\n{hint}", meant.join(", ")))
}

fn unknown(asked: &str, namespace: Option<&str>, mut close: Vec<String>) -> WhyError {
    let place = namespace.map_or_else(String::new, |namespace| format!("{namespace}/"));
    let mut text = format!("no job, PodGroup or pod {place}{asked}");
    close.sort();
    close.dedup();
    if !close.is_empty() {
        text.push_str(&format!("\nhint: did you mean {}?", close.join(", ")));
    }
    WhyError::Unknown(text)
}
