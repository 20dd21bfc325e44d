//! The closed table of kinds that the embedded API server stores: group, version, plural, scope and
//! whether `status` is a subresource. Everything else in `serve` is generic over a row of it.
//! core.md 1.9 (what a scheduler reads and writes), 3.9 (custom resources).

use Scope::{Cluster, Namespaced};
use Status::{Plain, Subresource};

/// Whether the objects of a kind live in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// One object per name.
    Cluster,
    /// One object per namespace and name.
    Namespaced,
}

/// How `status` of a kind is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// With the object itself.
    Plain,
    /// Only through `.../status`.
    Subresource,
}

/// One served kind.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServedKind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// The plural name in URLs.
    pub plural: &'static str,
    /// The one served version.
    pub version: &'static str,
    /// The name in the `kind` field.
    pub kind: &'static str,
    /// Cluster or namespace scope.
    pub scope: Scope,
    /// How `status` is written.
    pub status: Status,
    /// What `kubectl` accepts instead of the plural.
    pub short_names: &'static [&'static str],
}

impl ServedKind {
    /// The row for a URL's group, version and plural.
    pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static ServedKind> {
        let same = |k: &&ServedKind| k.group == group && k.version == version && k.plural == plural;
        KINDS.iter().find(same)
    }

    /// The row for an object's `apiVersion` and `kind`.
    pub fn of(api_version: &str, kind: &str) -> Option<&'static ServedKind> {
        KINDS.iter().find(|k| k.kind == kind && k.api_version() == api_version)
    }

    /// `v1` or `group/version`.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The name in messages: `pods`, `podgroups.scheduling.volcano.sh`.
    pub fn qualified(&self) -> String {
        match self.group {
            "" => self.plural.to_owned(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// Whether objects live in a namespace.
    pub fn is_namespaced(&self) -> bool {
        self.scope == Namespaced
    }

    /// Whether `.../status` exists.
    pub fn has_status(&self) -> bool {
        self.status == Subresource
    }

    /// Custom resources differ: no strategic merge, `status` writes leave the metadata alone.
    pub(super) fn is_custom(&self) -> bool {
        self.group.ends_with(".volcano.sh")
    }
}

/// core/v1 pods.
pub const PODS: ServedKind = core("pods", "Pod", Namespaced, Subresource, &["po"]);
/// core/v1 nodes.
pub const NODES: ServedKind = core("nodes", "Node", Cluster, Subresource, &["no"]);
/// core/v1 namespaces.
pub const NAMESPACES: ServedKind = core("namespaces", "Namespace", Cluster, Subresource, &["ns"]);
/// core/v1 events.
pub const EVENTS: ServedKind = core("events", "Event", Namespaced, Plain, &["ev"]);
/// core/v1 bindings: nothing is stored, a POST binds the pod of that name.
pub const BINDINGS: ServedKind = core("bindings", "Binding", Namespaced, Plain, &[]);
/// scheduling.k8s.io/v1 priority classes.
pub const PRIORITY_CLASSES: ServedKind =
    row("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", Cluster, Plain, &["pc"]);
/// Volcano PodGroups; their status is part of the object (core.md 3.9).
pub const POD_GROUPS: ServedKind =
    row(VOLCANO, "v1beta1", "podgroups", "PodGroup", Namespaced, Plain, &["pg"]);
/// HyperNodes, the domains of the network topology.
pub const HYPER_NODES: ServedKind = row(
    "topology.volcano.sh",
    "v1alpha1",
    "hypernodes",
    "HyperNode",
    Cluster,
    Subresource,
    &["hn"],
);
/// Volcano Queues.
pub const QUEUES: ServedKind =
    row(VOLCANO, "v1beta1", "queues", "Queue", Cluster, Subresource, &["q"]);
/// core/v1 persistent volumes.
pub const VOLUMES: ServedKind =
    core("persistentvolumes", "PersistentVolume", Cluster, Subresource, &["pv"]);
/// core/v1 persistent volume claims.
pub const CLAIMS: ServedKind =
    core("persistentvolumeclaims", "PersistentVolumeClaim", Namespaced, Subresource, &["pvc"]);
/// storage.k8s.io/v1 storage classes.
pub const STORAGE_CLASSES: ServedKind =
    row(STORAGE, "v1", "storageclasses", "StorageClass", Cluster, Plain, &["sc"]);
/// Leases, for leader election.
pub const LEASES: ServedKind =
    row("coordination.k8s.io", "v1", "leases", "Lease", Namespaced, Plain, &[]);

const VOLCANO: &str = "scheduling.volcano.sh";
const STORAGE: &str = "storage.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const DRA: &str = "resource.k8s.io";
const EXTENSIONS: &str = "apiextensions.k8s.io";

/// Every served kind. Where two share a plural, `kubectl` takes the one that stands first.
#[rustfmt::skip] // a table is read by its rows
pub static KINDS: &[ServedKind] = &[
    PODS,
    NODES,
    NAMESPACES,
    core("configmaps", "ConfigMap", Namespaced, Plain, &["cm"]),
    core("secrets", "Secret", Namespaced, Plain, &[]),
    core("services", "Service", Namespaced, Subresource, &["svc"]),
    core("serviceaccounts", "ServiceAccount", Namespaced, Plain, &["sa"]),
    EVENTS,
    VOLUMES,
    CLAIMS,
    core("resourcequotas", "ResourceQuota", Namespaced, Subresource, &["quota"]),
    core("limitranges", "LimitRange", Namespaced, Plain, &["limits"]),
    core("replicationcontrollers", "ReplicationController", Namespaced, Subresource, &["rc"]),
    BINDINGS,
    row("apps", "v1", "deployments", "Deployment", Namespaced, Subresource, &["deploy"]),
    row("apps", "v1", "replicasets", "ReplicaSet", Namespaced, Subresource, &["rs"]),
    row("apps", "v1", "statefulsets", "StatefulSet", Namespaced, Subresource, &["sts"]),
    row("apps", "v1", "daemonsets", "DaemonSet", Namespaced, Subresource, &["ds"]),
    row("batch", "v1", "jobs", "Job", Namespaced, Subresource, &[]),
    row("batch", "v1", "cronjobs", "CronJob", Namespaced, Subresource, &["cj"]),
    PRIORITY_CLASSES,
    row("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", Namespaced, Subresource,
        &["pdb"]),
    STORAGE_CLASSES,
    row(STORAGE, "v1", "csinodes", "CSINode", Cluster, Plain, &[]),
    row(STORAGE, "v1", "csidrivers", "CSIDriver", Cluster, Plain, &[]),
    row(STORAGE, "v1", "csistoragecapacities", "CSIStorageCapacity", Namespaced, Plain, &[]),
    row(STORAGE, "v1", "volumeattachments", "VolumeAttachment", Cluster, Subresource, &[]),
    LEASES,
    row("events.k8s.io", "v1", "events", "Event", Namespaced, Plain, &[]),
    row(RBAC, "v1", "roles", "Role", Namespaced, Plain, &[]),
    row(RBAC, "v1", "clusterroles", "ClusterRole", Cluster, Plain, &[]),
    row(RBAC, "v1", "rolebindings", "RoleBinding", Namespaced, Plain, &[]),
    row(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", Cluster, Plain, &[]),
    row(EXTENSIONS, "v1", "customresourcedefinitions", "CustomResourceDefinition", Cluster,
        Subresource, &["crd"]),
    row(DRA, "v1", "resourceclaims", "ResourceClaim", Namespaced, Subresource, &[]),
    row(DRA, "v1", "resourceclaimtemplates", "ResourceClaimTemplate", Namespaced, Plain, &[]),
    row(DRA, "v1", "resourceslices", "ResourceSlice", Cluster, Plain, &[]),
    row(DRA, "v1", "deviceclasses", "DeviceClass", Cluster, Plain, &[]),
    POD_GROUPS,
    QUEUES,
    row("batch.volcano.sh", "v1alpha1", "jobs", "Job", Namespaced, Subresource, &["vcjob", "vj"]),
    HYPER_NODES,
    row("nodeinfo.volcano.sh", "v1alpha1", "numatopologies", "Numatopology", Cluster, Plain,
        &["numatopo"]),
    row("shard.volcano.sh", "v1alpha1", "nodeshards", "NodeShard", Cluster, Subresource, &[]),
    row("bus.volcano.sh", "v1alpha1", "commands", "Command", Namespaced, Plain, &[]),
];

const fn core(
    plural: &'static str,
    kind: &'static str,
    scope: Scope,
    status: Status,
    short_names: &'static [&'static str],
) -> ServedKind {
    row("", "v1", plural, kind, scope, status, short_names)
}

const fn row(
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
    scope: Scope,
    status: Status,
    short_names: &'static [&'static str],
) -> ServedKind {
    ServedKind { group, plural, version, kind, scope, status, short_names }
}

#[cfg(test)]
mod tests {
    use super::KINDS;

    #[test]
    fn objects_of_files_have_the_scope_that_is_served() {
        for kind in KINDS {
            let is_namespaced = vc_objects::is_namespaced(&kind.api_version(), kind.kind);
            assert_eq!(is_namespaced, kind.is_namespaced(), "{}", kind.qualified());
        }
    }
}
