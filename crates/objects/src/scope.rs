//! Which kinds live in a namespace.

/// Kinds that live in a namespace, as `apiVersion` and `kind`.
const NAMESPACED: &[(&str, &[&str])] = &[
    (
        "v1",
        &[
            "Pod",
            "ConfigMap",
            "Secret",
            "Service",
            "ServiceAccount",
            "Event",
            "PersistentVolumeClaim",
            "ResourceQuota",
            "LimitRange",
            "ReplicationController",
            "Binding",
        ],
    ),
    ("apps/v1", &["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"]),
    ("batch/v1", &["Job", "CronJob"]),
    ("policy/v1", &["PodDisruptionBudget"]),
    ("storage.k8s.io/v1", &["CSIStorageCapacity"]),
    ("coordination.k8s.io/v1", &["Lease"]),
    ("events.k8s.io/v1", &["Event"]),
    ("rbac.authorization.k8s.io/v1", &["Role", "RoleBinding"]),
    ("resource.k8s.io/v1", &["ResourceClaim", "ResourceClaimTemplate"]),
    ("scheduling.volcano.sh/v1beta1", &["PodGroup"]),
    ("batch.volcano.sh/v1alpha1", &["Job"]),
    ("bus.volcano.sh/v1alpha1", &["Command"]),
];

/// Returns true if objects of this kind live in a namespace. Kinds that nobody here knows do not.
pub fn is_namespaced(api_version: &str, kind: &str) -> bool {
    let of_version = NAMESPACED.iter().find(|(version, _)| *version == api_version);
    of_version.is_some_and(|(_, kinds)| kinds.contains(&kind))
}
