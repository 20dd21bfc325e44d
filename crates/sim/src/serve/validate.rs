//! What an object must look like to be stored. A real API server decodes built-in kinds into types,
//! so its clients never see a mistyped one; this table does the same for the fields that schedulers
//! and kubelets read. Custom resources are checked in their metadata only.

use serde_json::{Map, Value};
use vc_resource::Quantity;

use super::{
    kinds::ServedKind,
    object::{name, text},
    refused::Refused,
};

/// The longest name of most kinds, a DNS subdomain.
const NAME_LENGTH: usize = 253;
/// The longest name of a namespace or service, a DNS label.
const LABEL_LENGTH: usize = 63;

/// What a field must be. `null` counts as absent.
#[derive(Clone, Copy)]
enum FieldRule {
    Object,
    /// A list of objects.
    List,
    Text,
    Integer,
    Flag,
    /// A map of texts.
    Texts,
    /// A map of quantities; numbers become texts, as a typed server writes them.
    Amounts,
}
use FieldRule::{Amounts, Flag, Integer, List, Object, Text, Texts};

/// Paths with `*` for every element of a list.
type FieldRules = &'static [(&'static str, FieldRule)];

const ANY: FieldRules = &[
    ("metadata", Object),
    ("metadata/name", Text),
    ("metadata/namespace", Text),
    ("metadata/generateName", Text),
    ("metadata/uid", Text),
    ("metadata/resourceVersion", Text),
    ("metadata/labels", Texts),
    ("metadata/annotations", Texts),
    ("metadata/ownerReferences", List),
    ("metadata/ownerReferences/*/uid", Text),
    ("spec", Object),
    ("status", Object),
];

const POD: FieldRules = &[
    ("spec/containers", List),
    ("spec/initContainers", List),
    ("spec/nodeName", Text),
    ("spec/schedulerName", Text),
    ("spec/restartPolicy", Text),
    ("spec/priorityClassName", Text),
    ("spec/preemptionPolicy", Text),
    ("spec/priority", Integer),
    ("spec/terminationGracePeriodSeconds", Integer),
    ("spec/nodeSelector", Texts),
    ("spec/affinity", Object),
    ("spec/overhead", Amounts),
    ("spec/resources", Object),
    ("spec/resources/requests", Amounts),
    ("spec/resources/limits", Amounts),
    ("spec/volumes", List),
    ("spec/schedulingGates", List),
    ("spec/schedulingGates/*/name", Text),
    ("spec/topologySpreadConstraints", List),
    ("spec/tolerations", List),
    ("spec/tolerations/*/key", Text),
    ("spec/tolerations/*/operator", Text),
    ("spec/tolerations/*/value", Text),
    ("spec/tolerations/*/effect", Text),
    ("spec/tolerations/*/tolerationSeconds", Integer),
    ("status/phase", Text),
    ("status/conditions", List),
];

/// Under `spec/containers/*` and `spec/initContainers/*`.
const CONTAINER: FieldRules = &[
    ("name", Text),
    ("image", Text),
    ("restartPolicy", Text),
    ("resources", Object),
    ("resources/requests", Amounts),
    ("resources/limits", Amounts),
    ("ports", List),
    ("ports/*/containerPort", Integer),
    ("ports/*/hostPort", Integer),
    ("ports/*/protocol", Text),
];

const NODE: FieldRules = &[
    ("spec/unschedulable", Flag),
    ("spec/taints", List),
    ("spec/taints/*/key", Text),
    ("spec/taints/*/value", Text),
    ("spec/taints/*/effect", Text),
    ("status/capacity", Amounts),
    ("status/allocatable", Amounts),
    ("status/conditions", List),
];

const PRIORITY_CLASS: FieldRules =
    &[("value", Integer), ("globalDefault", Flag), ("preemptionPolicy", Text)];

const QUOTA: FieldRules =
    &[("spec/hard", Amounts), ("status/hard", Amounts), ("status/used", Amounts)];

const BUDGET: FieldRules = &[
    ("spec/selector", Object),
    ("spec/selector/matchLabels", Texts),
    ("spec/selector/matchExpressions", List),
    ("status/disruptionsAllowed", Integer),
    ("status/currentHealthy", Integer),
    ("status/disruptedPods", Texts),
];

/// Checks the fields of `value`, and writes amounts as texts.
///
/// # Errors
/// `BadRequest` with the path of the first field that is not what the kind says.
pub(super) fn check_shape(kind: &ServedKind, value: &mut Value) -> Result<(), Refused> {
    if !value.is_object() {
        return Err(Refused::BadRequest("the body is not a JSON object".to_owned()));
    }
    for (path, shape) in ANY.iter().chain(shapes_of(kind)) {
        check(kind, value, path, path, *shape)?;
    }
    if (kind.group, kind.plural) == ("", "pods") {
        for list in ["containers", "initContainers"] {
            for (path, shape) in CONTAINER {
                let path = format!("spec/{list}/*/{path}");
                check(kind, value, &path, &path, *shape)?;
            }
        }
    }
    Ok(())
}

fn shapes_of(kind: &ServedKind) -> FieldRules {
    match (kind.group, kind.plural) {
        ("", "pods") => POD,
        ("", "nodes") => NODE,
        ("", "resourcequotas") => QUOTA,
        ("policy", "poddisruptionbudgets") => BUDGET,
        ("scheduling.k8s.io", "priorityclasses") => PRIORITY_CLASS,
        _ => &[],
    }
}

/// Follows the rest of `path` from `value` and checks what is there.
fn check(
    kind: &ServedKind,
    value: &mut Value,
    path: &str,
    rest: &str,
    shape: FieldRule,
) -> Result<(), Refused> {
    let (step, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let visit = |found: &mut Value| match rest {
        _ if found.is_null() => Ok(()),
        "" => fits(found, shape).map_err(|why| mistyped(kind, path, &why)),
        rest => check(kind, found, path, rest, shape),
    };
    match (step, value) {
        ("*", Value::Array(list)) => list.iter_mut().try_for_each(visit),
        (step, Value::Object(fields)) => fields.get_mut(step).map_or(Ok(()), visit),
        // Its own entry of the table has said that this is not an object.
        _ => Ok(()),
    }
}

fn fits(value: &mut Value, shape: FieldRule) -> Result<(), String> {
    let wanted = match shape {
        Object if !value.is_object() => "an object",
        Text if !value.is_string() => "a string",
        Integer if !value.is_i64() => "an integer",
        Flag if !value.is_boolean() => "true or false",
        List if !all_elements(value, Value::is_object) => "a list of objects",
        Texts if !all_values(value, |v| v.is_string() || v.is_null()) => "a map of strings",
        Amounts => {
            return value.as_object_mut().map_or(Err("must be a map".into()), amounts);
        }
        _ => return Ok(()),
    };
    Err(format!("must be {wanted}"))
}

fn all_elements(value: &Value, test: impl Fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(test))
}

fn all_values(value: &Value, test: impl Fn(&Value) -> bool) -> bool {
    value.as_object().is_some_and(|map| map.values().all(test))
}

fn amounts(map: &mut Map<String, Value>) -> Result<(), String> {
    for (resource, amount) in map {
        if let Value::Number(number) = amount {
            *amount = Value::String(number.to_string());
        }
        let Some(text) = amount.as_str() else {
            return Err(format!("{resource}: must be a quantity"));
        };
        text.parse::<Quantity>().map_err(|error| format!("{resource}: {error}"))?;
    }
    Ok(())
}

fn mistyped(kind: &ServedKind, path: &str, why: &str) -> Refused {
    let (kind, field) = (kind.kind, path.replace("/*", "[]").replace('/', "."));
    Refused::BadRequest(format!("{kind} cannot be read: {field}: {why}"))
}

/// Why a new object is refused, field first; `None`: it is not.
pub(crate) fn refusal_of_new(kind: &'static ServedKind, value: &Value) -> Option<String> {
    match check_new(kind, value) {
        Err(Refused::Invalid { field, why, .. }) => Some(format!("{field}: {why}")),
        Err(other) => Some(other.to_string()),
        Ok(()) => None,
    }
}

/// Checks the name that a new object will have, and what a new pod cannot do without.
///
/// # Errors
/// `Invalid`.
pub(super) fn check_new(kind: &'static ServedKind, value: &Value) -> Result<(), Refused> {
    let invalid = |field: &str, why: String| {
        let name = name(value).to_owned();
        Err(Refused::Invalid { kind, name, field: field.to_owned(), why })
    };
    let (given, prefix) = (name(value), text(value, "/metadata/generateName"));
    if given.is_empty() && prefix.is_empty() {
        return invalid("metadata.name", "name or generateName is required".to_owned());
    }
    // A generated name is the prefix, which may end in a dash or dot, and letters and digits.
    let tried = if given.is_empty() { format!("{prefix}x") } else { given.to_owned() };
    if let Err(why) = check_name(kind, &tried) {
        return invalid("metadata.name", format!("Invalid value: {tried:?}: {why}"));
    }
    let containers = value.pointer("/spec/containers").and_then(Value::as_array);
    if (kind.group, kind.plural) == ("", "pods") && containers.is_none_or(Vec::is_empty) {
        return invalid("spec.containers", "Required value".to_owned());
    }
    Ok(())
}

fn check_name(kind: &ServedKind, name: &str) -> Result<(), String> {
    if kind.group == "rbac.authorization.k8s.io" {
        let one_step = name != "." && name != ".." && !name.contains(['/', '%']);
        return if one_step { Ok(()) } else { Err("must be a single path segment".to_owned()) };
    }
    let label = kind.group.is_empty() && matches!(kind.plural, "namespaces" | "services");
    let longest = if label { LABEL_LENGTH } else { NAME_LENGTH };
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let part_is_valid = |part: &str| {
        part.starts_with(plain)
            && part.ends_with(plain)
            && part.chars().all(|c| plain(c) || c == '-')
    };
    match () {
        () if longest < name.len() => Err(format!("must be no more than {longest} characters")),
        () if label && !part_is_valid(name) || !name.split('.').all(part_is_valid) => {
            Err("must consist of lower case letters, digits, '-' or '.', and start and end with a \
                 letter or digit"
                .to_owned())
        }
        () => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::kinds::{NAMESPACES, NODES, POD_GROUPS, PODS},
        *,
    };

    #[test]
    fn mistyped_fields_are_named() {
        let cases = [
            (json!({ "metadata": 1 }), "Pod cannot be read: metadata: must be an object"),
            (
                json!({ "metadata": { "labels": { "a": 1 } } }),
                "Pod cannot be read: metadata.labels: must be a map of strings",
            ),
            (
                json!({ "spec": { "priority": "high" } }),
                "Pod cannot be read: spec.priority: must be an integer",
            ),
            (
                json!({ "spec": { "containers": [{ "ports": [{ "hostPort": "x" }] }] } }),
                "Pod cannot be read: spec.containers[].ports[].hostPort: must be an integer",
            ),
            (
                json!({ "spec": { "tolerations": ["all"] } }),
                "Pod cannot be read: spec.tolerations: must be a list of objects",
            ),
        ];
        for (mut pod, message) in cases {
            assert_eq!(check_shape(&PODS, &mut pod).unwrap_err().to_string(), message);
        }
        let mut pod = json!({
            "spec": { "containers": [{ "resources": { "requests": { "cpu": "many" } } }] },
        });
        let error = check_shape(&PODS, &mut pod).unwrap_err().to_string();
        assert!(
            error.starts_with("Pod cannot be read: spec.containers[].resources.requests: cpu: ")
        );
        assert!(check_shape(&PODS, &mut json!([])).is_err());
    }

    #[test]
    fn numbers_become_quantities_and_custom_specs_are_free() {
        let mut node = json!({ "status": { "allocatable": { "cpu": 4, "memory": "8Gi" } } });
        check_shape(&NODES, &mut node).unwrap();
        assert_eq!(node["status"]["allocatable"]["cpu"], "4");
        let mut group = json!({ "spec": { "minMember": "three" }, "status": null });
        check_shape(&POD_GROUPS, &mut group).unwrap();
    }

    #[test]
    fn names() {
        let long = "a".repeat(253);
        let cases = [
            (&POD_GROUPS, long.as_str(), true),
            (&POD_GROUPS, "a.b-c.9", true),
            (&POD_GROUPS, "Upper", false),
            (&POD_GROUPS, "-a", false),
            (&POD_GROUPS, "a..b", false),
            (&NAMESPACES, "a.b", false),
            (&NAMESPACES, "team-a", true),
            (&NAMESPACES, &long[..64], false),
        ];
        for (kind, name, valid) in cases {
            let object = json!({ "metadata": { "name": name } });
            assert_eq!(check_new(kind, &object).is_ok(), valid, "{name}");
        }
        let too_long = json!({ "metadata": { "name": format!("{long}a") } });
        let error = check_new(&POD_GROUPS, &too_long).unwrap_err().to_string();
        assert!(error.ends_with("must be no more than 253 characters"), "{error}");
        let pod = json!({ "metadata": { "generateName": "web-" }, "spec": { "containers": [] } });
        let error = check_new(&PODS, &pod).unwrap_err().to_string();
        assert_eq!(error, "Pod \"\" is invalid: spec.containers: Required value");
    }
}
