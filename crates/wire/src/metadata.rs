//! Object metadata. Without a readable identity there is no record. Specification: core.md 3.2, 3.9.

use std::sync::Arc;

use serde::Deserialize;
use vc_model::{Controller, Labels, ObjectKey, SelectorKind};

use crate::annotations::{Annotations, KeptAnnotations};
use crate::brief::{OwnKey, ShortText};
use crate::problems::{FieldPath, Problems, shown};
use crate::soft::{LenientField, LenientList, LenientMap, object};
use crate::time::Micros;
use crate::word::word;
use crate::{Kind, WireError};

/// `metadata` as it is decoded; `managedFields` and the rest are skipped. `A` says which annotations
/// are kept.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, bound = "A: KeptAnnotations")]
pub struct SlimMetadata<A = Annotations> {
    pub name: LenientField<OwnKey>,
    pub namespace: LenientField<Arc<str>>,
    pub uid: LenientField<Arc<str>>,
    pub resource_version: LenientField<ShortText>,
    pub creation_timestamp: LenientField<Micros>,
    pub deletion_timestamp: LenientField<Micros>,
    pub labels: LenientField<LenientMap<Arc<str>>>,
    pub annotations: LenientField<A>,
    pub owner_references: LenientList<SlimOwner>,
}

/// An owner.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SlimOwner {
    pub api_version: LenientField<ShortText>,
    pub kind: LenientField<ShortText>,
    pub name: LenientField<Arc<str>>,
    pub uid: LenientField<Arc<str>>,
    pub controller: LenientField<bool>,
}

object!(
    #[A: KeptAnnotations] SlimMetadata<A> {
        "name" => name,
        "namespace" => namespace,
        "uid" => uid,
        "resourceVersion" => resource_version,
        "creationTimestamp" => creation_timestamp,
        "deletionTimestamp" => deletion_timestamp,
        "labels" => labels,
        "annotations" => annotations,
        "ownerReferences" => owner_references,
    },
    SlimOwner {
        "apiVersion" => api_version,
        "kind" => kind,
        "name" => name,
        "uid" => uid,
        "controller" => controller,
    },
);

/// Metadata that is known to be usable.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    /// Empty for kinds of cluster scope.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    /// May be empty for other kinds than pods.
    pub uid: Arc<str>,
    pub resource_version: Arc<str>,
    /// Microseconds since 1970.
    pub created_micros: i64,
    /// A deletionTimestamp is set.
    pub deleting: bool,
    /// The deletionTimestamp, in microseconds since 1970; `None`: it is absent or unreadable.
    pub deletion_micros: Option<i64>,
    pub labels: Labels,
    /// Those of [`crate::is_read_annotation`]; of a PodGroup those of [`crate::GroupAnnotations`].
    pub annotations: Labels,
    /// Of the first owner; `None`: there is none.
    pub owner_name: Option<Arc<str>>,
    /// Uid of the owner with `controller: true`; `None`: there is none.
    pub controller_uid: Option<Arc<str>>,
    /// Kind of that owner, if it is the first one. `None` otherwise, and for objects that are no
    /// PodGroups.
    pub controller_kind: Option<Arc<str>>,
    /// That owner, if it is of a kind that selects pods.
    pub controller: Option<Controller>,
}

impl Metadata {
    /// Namespace and name.
    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey { namespace: self.namespace.clone(), name: self.name.clone() }
    }
}

/// Longest name that the API server accepts for any kind.
const MAX_NAME: usize = 253;

/// The metadata; an error when the object cannot be identified.
pub(crate) fn read<A: KeptAnnotations>(
    kind: Kind,
    slim: LenientField<SlimMetadata<A>>,
    problems: &mut Problems,
) -> Result<Metadata, WireError> {
    let path = FieldPath::root("metadata");
    let slim = identity(kind, slim, &path)?.unwrap_or_default();
    let OwnKey(name) = identity(kind, slim.name, &path.field("name"))?.unwrap_or_default();
    let namespace = identity(kind, slim.namespace, &path.field("namespace"))?.unwrap_or_default();
    let uid = identity(kind, slim.uid, &path.field("uid"))?.unwrap_or_default();
    let missing = |field: &'static str| WireError::Identity {
        kind,
        problem: format!("{}: is missing", path.field(field)),
    };
    if name.is_empty() {
        return Err(missing("name"));
    }
    if MAX_NAME < name.len() {
        let problem = format!("metadata.name: is longer than {MAX_NAME} characters: {name:?}");
        return Err(WireError::Identity { kind, problem });
    }
    if kind.is_namespaced() && namespace.is_empty() {
        return Err(missing("namespace"));
    }
    if kind == Kind::Pod && uid.is_empty() {
        return Err(missing("uid"));
    }
    let labels = problems.labels(slim.labels, &path.field("labels"));
    let annotations = annotations(slim.annotations, &path, problems);
    let version = path.field("resourceVersion");
    let created = path.field("creationTimestamp");
    let controller = controller(&slim.owner_references);
    let controller_uid = controller.and_then(|owner| good(&owner.uid));
    let controller = controller.and_then(selecting);
    let controller_kind = match kind {
        Kind::PodGroup => controller_kind(&slim.owner_references),
        _ => None,
    };
    let deleting = !matches!(slim.deletion_timestamp, LenientField::Absent);
    let deletion = problems.read(slim.deletion_timestamp, &path.field("deletionTimestamp"));
    Ok(Metadata {
        namespace: if kind.is_namespaced() { namespace } else { Arc::default() },
        name,
        uid,
        resource_version: (&*problems.or_default(slim.resource_version, &version)).into(),
        created_micros: problems.or_default(slim.creation_timestamp, &created).0,
        deleting,
        deletion_micros: deletion.map(|Micros(micros)| micros),
        controller_uid,
        controller_kind,
        controller,
        labels,
        annotations,
        owner_name: first_owner(slim.owner_references, &path.field("ownerReferences"), problems),
    })
}

/// It only divides work (core.md 4.4): what cannot be read is said and does no harm.
fn first_owner(
    owners: LenientList<SlimOwner>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Option<Arc<str>> {
    let name = match owners {
        LenientField::Absent => return None,
        LenientField::Good(owners) => match owners.into_iter().next()? {
            LenientField::Good(owner) => owner.name,
            LenientField::Absent => LenientField::Absent,
            LenientField::Bad(problem) => LenientField::Bad(problem),
        },
        LenientField::Bad(problem) => LenientField::Bad(problem),
    };
    match name {
        LenientField::Good(name) => Some(name).filter(|name| !name.is_empty()),
        LenientField::Absent => None,
        LenientField::Bad(problem) => {
            problems.note(path, &problem);
            None
        }
    }
}

fn controller(owners: &LenientList<SlimOwner>) -> Option<&SlimOwner> {
    let LenientField::Good(owners) = owners else { return None };
    owners.iter().find_map(|owner| match owner {
        LenientField::Good(owner) if matches!(owner.controller, LenientField::Good(true)) => {
            Some(owner)
        }
        _ => None,
    })
}

/// Returns the kind of the first owner if it has `controller: true`.
fn controller_kind(owners: &LenientList<SlimOwner>) -> Option<Arc<str>> {
    let LenientField::Good(owners) = owners else { return None };
    let Some(LenientField::Good(first)) = owners.first() else { return None };
    match (&first.kind, &first.controller) {
        (LenientField::Good(kind), LenientField::Good(true)) if !kind.is_empty() => {
            Some(shown(word(kind)))
        }
        _ => None,
    }
}

/// Kind and name of an owner that selects pods.
fn selecting(owner: &SlimOwner) -> Option<Controller> {
    let (LenientField::Good(api_version), LenientField::Good(kind)) =
        (&owner.api_version, &owner.kind)
    else {
        return None;
    };
    let kind = match (&**api_version, &**kind) {
        ("v1", "ReplicationController") => SelectorKind::ReplicationController,
        ("apps/v1", "ReplicaSet") => SelectorKind::ReplicaSet,
        ("apps/v1", "StatefulSet") => SelectorKind::StatefulSet,
        _ => return None,
    };
    Some((kind, good(&owner.name)?))
}

fn good(text: &LenientField<Arc<str>>) -> Option<Arc<str>> {
    match text {
        LenientField::Good(text) => Some(text.clone()),
        LenientField::Absent | LenientField::Bad(_) => None,
    }
}

fn annotations<A: KeptAnnotations>(
    slim: LenientField<A>,
    path: &FieldPath<'_>,
    problems: &mut Problems,
) -> Labels {
    let path = path.field("annotations");
    let mut kept = problems.or_default(slim, &path).into_map();
    let names = kept.0.iter_mut().filter(|(key, _)| A::is_name(key));
    for (_, value) in names {
        if let LenientField::Good(name) = value {
            *name = shown(std::mem::take(name));
        }
    }
    problems.labels(LenientField::Good(kept), &path)
}

fn identity<T>(
    kind: Kind,
    field: LenientField<T>,
    path: &FieldPath<'_>,
) -> Result<Option<T>, WireError> {
    match field {
        LenientField::Absent => Ok(None),
        LenientField::Good(value) => Ok(Some(value)),
        LenientField::Bad(problem) => {
            Err(WireError::Identity { kind, problem: format!("{path}: {problem}") })
        }
    }
}
