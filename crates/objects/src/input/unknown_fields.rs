//! Fields of pods and pod templates that Kubernetes does not know. An API server drops them or refuses
//! the object; here they would be ignored without a word, as a misspelt `resources` is.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use super::InputObject;
use crate::field::title_of;

/// Type and its fields (Kubernetes 1.36). `field:Type` is looked into, be it an object or a list.
const TYPES: &[(&str, &str)] = &[
    ("Pod", "apiVersion kind metadata:Metadata spec:PodSpec status"),
    ("Template", "apiVersion kind metadata:Metadata spec:PodSpec"),
    (
        "Metadata",
        "annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers \
         generateName generation labels managedFields name namespace ownerReferences resourceVersion \
         selfLink uid",
    ),
    (
        "PodSpec",
        "activeDeadlineSeconds affinity:Affinity automountServiceAccountToken containers:Container \
         dnsConfig dnsPolicy enableServiceLinks ephemeralContainers hostAliases hostIPC hostNetwork \
         hostPID hostUsers hostname hostnameOverride imagePullSecrets initContainers:Container nodeName \
         nodeSelector os overhead preemptionPolicy priority priorityClassName readinessGates \
         resourceClaims:ResourceClaim resources:Resources restartPolicy runtimeClassName schedulerName \
         schedulingGates schedulingGroup securityContext serviceAccount serviceAccountName \
         setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds \
         tolerations:Toleration topologySpreadConstraints:Spread volumes:Volume workloadRef",
    ),
    (
        "Container",
        "args command env envFrom image imagePullPolicy lifecycle livenessProbe name \
         ports:ContainerPort readinessProbe resizePolicy resources:Resources restartPolicy \
         restartPolicyRules securityContext startupProbe stdin stdinOnce terminationMessagePath \
         terminationMessagePolicy tty volumeDevices volumeMounts workingDir",
    ),
    ("ContainerPort", "containerPort hostIP hostPort name protocol"),
    ("Resources", "claims limits requests"),
    ("ResourceClaim", "name resourceClaimName resourceClaimTemplateName source"),
    ("Affinity", "nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAffinity"),
    (
        "NodeAffinity",
        "preferredDuringSchedulingIgnoredDuringExecution:PreferredTerm \
         requiredDuringSchedulingIgnoredDuringExecution:NodeSelector",
    ),
    ("PreferredTerm", "preference:NodeTerm weight"),
    ("NodeSelector", "nodeSelectorTerms:NodeTerm"),
    ("NodeTerm", "matchExpressions:Requirement matchFields:Requirement"),
    ("Requirement", "key operator values"),
    (
        "PodAffinity",
        "preferredDuringSchedulingIgnoredDuringExecution:WeightedTerm \
         requiredDuringSchedulingIgnoredDuringExecution:PodTerm",
    ),
    ("WeightedTerm", "podAffinityTerm:PodTerm weight"),
    (
        "PodTerm",
        "labelSelector:LabelSelector matchLabelKeys mismatchLabelKeys \
         namespaceSelector:LabelSelector namespaces topologyKey",
    ),
    ("LabelSelector", "matchExpressions:Requirement matchLabels"),
    ("Toleration", "effect key operator tolerationSeconds value"),
    (
        "Spread",
        "labelSelector:LabelSelector matchLabelKeys maxSkew minDomains nodeAffinityPolicy \
         nodeTaintsPolicy topologyKey whenUnsatisfiable",
    ),
    (
        "Volume",
        "awsElasticBlockStore azureDisk azureFile cephfs cinder configMap csi downwardAPI emptyDir \
         ephemeral fc flexVolume flocker gcePersistentDisk gitRepo glusterfs hostPath image iscsi name \
         nfs persistentVolumeClaim photonPersistentDisk portworxVolume projected quobyte rbd scaleIO \
         secret storageos vsphereVolume",
    ),
];

/// Field to its type, which is empty where nothing is looked into.
type KnownFields = BTreeMap<&'static str, &'static str>;

fn fields_of(name: &str) -> &'static KnownFields {
    static READ: OnceLock<BTreeMap<&str, KnownFields>> = OnceLock::new();
    let types = READ.get_or_init(|| {
        let field = |word: &'static str| word.split_once(':').unwrap_or((word, ""));
        let fields = |text: &'static str| text.split_whitespace().map(field).collect();
        TYPES.iter().map(|(name, text)| (*name, fields(text))).collect()
    });
    types.get(name).expect("every type that a field names is in the table")
}

/// One warning a field and file, with the first object that has it. The same field at another place
/// of a list is the same.
pub fn unknown_fields(objects: &[InputObject]) -> Vec<String> {
    let mut found = FoundFields::default();
    for object in objects {
        for (path, template, name) in templates(&object.value) {
            found.look(object, path, template, name);
        }
    }
    found.0.into_values().map(|unknown| unknown.text()).collect()
}

/// What is a pod or makes pods: path, value, type.
fn templates(object: &Value) -> Vec<(String, &Value, &'static str)> {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let spec = &object["spec"];
    let one = |path: &str, value| vec![(path.to_owned(), value, "Template")];
    match (group, object["kind"].as_str().unwrap_or_default()) {
        ("", "Pod") => vec![(String::new(), object, "Pod")],
        ("batch", "Job") | ("apps", _) | ("", "ReplicationController") => {
            one("spec.template", &spec["template"])
        }
        ("batch", "CronJob") => {
            one("spec.jobTemplate.spec.template", &spec["jobTemplate"]["spec"]["template"])
        }
        ("batch.volcano.sh", "Job") => {
            let tasks = spec["tasks"].as_array().into_iter().flatten().enumerate();
            let path = |at| format!("spec.tasks[{at}].template");
            tasks.map(|(at, task)| (path(at), &task["template"], "Template")).collect()
        }
        _ => Vec::new(),
    }
}

/// A field that nobody knows.
struct UnknownField {
    /// Place and name of the first object, with the field's path.
    first: String,
    /// The nearest field that is known.
    near: Option<&'static str>,
    /// Objects that have it too.
    n_more: usize,
    /// The object that was counted last.
    last: *const InputObject,
}

impl UnknownField {
    fn text(&self) -> String {
        let more = match self.n_more {
            0 => String::new(),
            1 => " (and in 1 more object)".to_owned(),
            n => format!(" (and in {n} more objects)"),
        };
        let hint = match self.near {
            Some(near) => format!("did you mean {near}?"),
            None => "remove it; kubectl explain pod.spec lists what is known".to_owned(),
        };
        format!("{}: unknown field, it is ignored{more}\nhint: {hint}", self.first)
    }
}

/// By file and path without numbers.
#[derive(Default)]
struct FoundFields<'a>(BTreeMap<(&'a str, String), UnknownField>);

impl<'a> FoundFields<'a> {
    fn look(&mut self, object: &'a InputObject, path: String, value: &Value, name: &str) {
        match value {
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.look(object, format!("{path}[{at}]"), item, name);
                }
            }
            Value::Object(map) => {
                let fields = fields_of(name);
                for (key, value) in map {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    match fields.get(key.as_str()) {
                        None => {
                            self.note(object, path, vc_conf::nearest(key, fields.keys().copied()))
                        }
                        Some(name) if !name.is_empty() => self.look(object, path, value, name),
                        Some(_) => {}
                    }
                }
            }
            // The reader of the object says what is wrong with the type.
            _ => {}
        }
    }

    fn note(&mut self, object: &'a InputObject, path: String, near: Option<&'static str>) {
        let general = path.chars().filter(|letter| !letter.is_ascii_digit()).collect();
        let this = std::ptr::from_ref(object);
        let entry = self.0.entry((&object.source.file, general));
        let unknown = entry.or_insert_with(|| {
            let first = format!("{}: {}: {path}", object.source, title_of(&object.value));
            UnknownField { first, near, n_more: 0, last: this }
        });
        if !std::ptr::eq(unknown.last, this) {
            unknown.n_more += 1;
            unknown.last = this;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::input::Source;

    #[test]
    fn every_type_that_is_named_is_in_the_table() {
        for (_, text) in TYPES {
            let named = text.split_whitespace().filter_map(|word| word.split_once(':'));
            assert!(named.map(|(_, name)| fields_of(name)).all(|fields| !fields.is_empty()));
        }
    }

    fn warnings(values: &[Value]) -> Vec<String> {
        let object = |(at, value): (usize, &Value)| InputObject {
            value: value.clone(),
            source: Source { file: "f".into(), line: at + 1 },
        };
        let objects: Vec<InputObject> = values.iter().enumerate().map(object).collect();
        unknown_fields(&objects)
    }

    #[test]
    fn fields_are_named_with_their_path_and_the_nearest_one() {
        let pod = |name: &str, container: Value| {
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "a"},
                "spec": {"containers": [{"name": "c"}, container]}, "status": {"anything": 1}})
        };
        let wrong = || json!({"resorces": {"requests": {"cpu": 1}}});
        let reported =
            warnings(&[pod("p", wrong()), pod("q", wrong()), pod("r", json!({"image": "x"}))]);
        let expected = "f:1: pod a/p: spec.containers[1].resorces: unknown field, it is ignored (and in \
            1 more object)\nhint: did you mean resources?";
        assert_eq!(reported, [expected]);
    }

    #[test]
    fn templates_of_workloads_are_looked_into() {
        let template = json!({"spec": {"containers": [], "nodeSelectors": {}, "zzz": 1}});
        let of = |api_version: &str, kind: &str, spec: Value| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec});
        for (object, path) in [
            (of("batch/v1", "Job", json!({"template": template, "x": 1})), "spec.template"),
            (of("apps/v1", "Deployment", json!({"template": template})), "spec.template"),
            (
                of("batch.volcano.sh/v1alpha1", "Job", json!({"tasks": [{"template": template}]})),
                "spec.tasks[0].template",
            ),
        ] {
            let reported = warnings(&[object]);
            assert_eq!(reported.len(), 2, "{reported:?}");
            assert!(
                reported[0].contains(&format!("{path}.spec.nodeSelectors: unknown")),
                "{reported:?}"
            );
            assert!(
                reported[0].ends_with("did you mean nodeSelector?") && reported[1].contains("zzz")
            );
        }
        assert_eq!(warnings(&[of("v1", "Service", json!({"containers": 1}))]), [""; 0]);
    }
}
