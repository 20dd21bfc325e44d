//! The two patch forms that are served: JSON merge patch (RFC 7386) and strategic merge patch, in
//! which lists of some names are merged by a key and directives (`$patch`, `$retainKeys`,
//! `$setElementOrder/...`, `$deleteFromPrimitiveList/...`) say what merging cannot.

use serde_json::{Map, Value};

use super::refused::Refused;

/// Applies a JSON merge patch: objects merge, `null` removes, the rest replaces.
pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    let target = object(target);
    for (field, value) in fields {
        match value {
            Value::Null => drop(target.remove(field)),
            value => merge(target.entry(field).or_insert(Value::Null), value),
        }
    }
}

/// Applies a strategic merge patch to an object.
///
/// # Errors
/// `BadRequest` for a directive that cannot be read and an element without its merge key.
pub(super) fn strategic(target: &mut Value, patch: &Value) -> Result<(), Refused> {
    let Some(patch) = patch.as_object() else {
        return Err(bad("a patch must be an object"));
    };
    match directive(patch)? {
        Some(Directive::Delete) => {
            *target = Value::Null;
            return Ok(());
        }
        Some(Directive::Replace) => *target = Value::Null,
        None => {}
    }
    let target = object(target);
    if let Some(kept) = patch.get("$retainKeys").and_then(Value::as_array) {
        target.retain(|field, _| kept.iter().any(|key| key == field));
    }
    for (field, value) in patch {
        strategic_field(target, field, value)?;
    }
    Ok(())
}

fn strategic_field(
    target: &mut Map<String, Value>,
    field: &str,
    value: &Value,
) -> Result<(), Refused> {
    if let Some(field) = field.strip_prefix("$deleteFromPrimitiveList/") {
        let gone = value.as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(list) = target.get_mut(field).and_then(Value::as_array_mut) {
            list.retain(|element| !gone.contains(element));
        }
        return Ok(());
    }
    if field.starts_with('$') {
        // The order of merged lists has no meaning here; the other two are read by the caller.
        return Ok(());
    }
    match value {
        Value::Null => {
            target.remove(field);
            Ok(())
        }
        Value::Object(_) => {
            let inner = target.entry(field).or_insert(Value::Null);
            strategic(inner, value)?;
            if inner.is_null() {
                target.remove(field);
            }
            Ok(())
        }
        Value::Array(elements) => {
            let list = target.entry(field).or_insert(Value::Null);
            strategic_list(list, field, elements)
        }
        scalar => {
            target.insert(field.to_owned(), scalar.clone());
            Ok(())
        }
    }
}

fn strategic_list(target: &mut Value, field: &str, elements: &[Value]) -> Result<(), Refused> {
    if !target.is_array() {
        *target = Value::Array(Vec::new());
    }
    let list = target.as_array_mut().expect("just made an array");
    if field == "finalizers" {
        let added: Vec<Value> = elements.iter().filter(|e| !list.contains(e)).cloned().collect();
        list.extend(added);
        return Ok(());
    }
    let Some(key) = merge_key(field, elements) else {
        *list = elements.to_vec();
        return Ok(());
    };
    let maps: Vec<&Map<String, Value>> = elements.iter().filter_map(Value::as_object).collect();
    if maps.iter().any(|map| map.len() == 1 && map.get("$patch") == Some(&"replace".into())) {
        list.clear();
    }
    for element in maps {
        merge_element(list, key, element)?;
    }
    Ok(())
}

fn merge_element(
    list: &mut Vec<Value>,
    key: &str,
    element: &Map<String, Value>,
) -> Result<(), Refused> {
    let directive = directive(element)?;
    let Some(wanted) = element.get(key) else {
        return match directive {
            Some(Directive::Replace) => Ok(()),
            _ => Err(bad(&format!("an element of a merged list lacks its key: {key}"))),
        };
    };
    let position = list.iter().position(|old| old.get(key) == Some(wanted));
    match (directive, position) {
        (Some(Directive::Delete), Some(position)) => drop(list.remove(position)),
        (Some(Directive::Delete), None) => {}
        (_, Some(position)) => {
            strategic(&mut list[position], &Value::Object(element.clone()))?;
        }
        (_, None) => {
            let mut added = Value::Null;
            strategic(&mut added, &Value::Object(element.clone()))?;
            list.push(added);
        }
    }
    Ok(())
}

/// The field by which the elements of a list are told apart; absent: the list is replaced.
fn merge_key(field: &str, elements: &[Value]) -> Option<&'static str> {
    let has = |key: &str| elements.iter().any(|element| element.get(key).is_some());
    match field {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "volumes"
        | "env"
        | "secrets"
        | "imagePullSecrets"
        | "schedulingGates"
        | "resourceClaims"
        | "resourceClaimStatuses" => Some("name"),
        "conditions" | "addresses" => Some("type"),
        "ports" if has("containerPort") => Some("containerPort"),
        "ports" if has("port") => Some("port"),
        "volumeMounts" => Some("mountPath"),
        "volumeDevices" => Some("devicePath"),
        "ownerReferences" => Some("uid"),
        "topologySpreadConstraints" => Some("topologyKey"),
        "hostAliases" | "podIPs" | "hostIPs" => Some("ip"),
        _ => None,
    }
}

enum Directive {
    Delete,
    Replace,
}

fn directive(patch: &Map<String, Value>) -> Result<Option<Directive>, Refused> {
    match patch.get("$patch").map(|directive| directive.as_str().unwrap_or_default()) {
        None | Some("merge") => Ok(None),
        Some("delete") => Ok(Some(Directive::Delete)),
        Some("replace") => Ok(Some(Directive::Replace)),
        Some(other) => Err(bad(&format!("unknown $patch directive: {other:?}"))),
    }
}

fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("just made an object")
}

fn bad(why: &str) -> Refused {
    Refused::BadRequest(why.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn merge_patches() {
        let cases = [
            (json!({ "a": 1, "b": { "c": 2 } }), json!({ "b": { "c": null, "d": 3 } })),
            (json!({ "a": [1, 2] }), json!({ "a": [3] })),
            (json!({ "a": "x" }), json!({ "a": { "b": null, "c": 1 } })),
        ];
        let results =
            [json!({ "a": 1, "b": { "d": 3 } }), json!({ "a": [3] }), json!({ "a": { "c": 1 } })];
        for ((mut target, patch), result) in cases.into_iter().zip(results) {
            merge(&mut target, &patch);
            assert_eq!(target, result);
        }
    }

    #[track_caller]
    fn check(mut target: Value, patch: Value, result: Value) {
        strategic(&mut target, &patch).unwrap();
        assert_eq!(target, result);
    }

    #[test]
    fn strategic_lists_merge_by_key() {
        check(
            json!({ "conditions": [{ "type": "Ready", "status": "False", "reason": "x" }] }),
            json!({ "conditions": [
                { "type": "Ready", "status": "True", "reason": null },
                { "type": "PodScheduled", "status": "True" },
            ] }),
            json!({ "conditions": [
                { "type": "Ready", "status": "True" },
                { "type": "PodScheduled", "status": "True" },
            ] }),
        );
        check(
            json!({ "containers": [{ "name": "a", "env": [{ "name": "X", "value": "1" }] }] }),
            json!({
                "$setElementOrder/containers": [{ "name": "a" }],
                "containers": [{ "name": "a", "env": [{ "name": "Y", "value": "2" }] }],
            }),
            json!({ "containers": [{ "name": "a", "env": [
                { "name": "X", "value": "1" }, { "name": "Y", "value": "2" },
            ] }] }),
        );
        check(
            json!({ "schedulingGates": [{ "name": "a" }, { "name": "b" }] }),
            json!({ "schedulingGates": [
                { "name": "a", "$patch": "delete" }, { "name": "gone", "$patch": "delete" },
            ] }),
            json!({ "schedulingGates": [{ "name": "b" }] }),
        );
        check(
            json!({ "env": [{ "name": "X" }] }),
            json!({ "env": [{ "$patch": "replace" }, { "name": "Y" }] }),
            json!({ "env": [{ "name": "Y" }] }),
        );
    }

    #[test]
    fn strategic_directives_and_plain_lists() {
        check(
            json!({ "tolerations": [{ "key": "a" }], "finalizers": ["x", "y"] }),
            json!({
                "tolerations": [{ "key": "b" }],
                "finalizers": ["z"],
                "$deleteFromPrimitiveList/finalizers": ["x"],
            }),
            json!({ "tolerations": [{ "key": "b" }], "finalizers": ["y", "z"] }),
        );
        check(
            json!({ "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } } }),
            json!({ "strategy": { "$retainKeys": ["type"], "type": "Recreate" } }),
            json!({ "strategy": { "type": "Recreate" } }),
        );
        check(json!({ "a": { "b": 1 } }), json!({ "a": { "$patch": "delete" } }), json!({}));
        check(
            json!({ "a": { "b": 1 } }),
            json!({ "a": { "$patch": "replace", "c": 2 } }),
            json!({ "a": { "c": 2 } }),
        );
        let mut pod = json!({});
        assert!(strategic(&mut pod, &json!({ "containers": [{ "image": "x" }] })).is_err());
        assert!(strategic(&mut pod, &json!({ "$patch": "explode" })).is_err());
        assert!(strategic(&mut pod, &json!([])).is_err());
    }
}
