//! The status of a claim for devices as it is written: allocation, consumers, and both taken back.
//! Specification: plugins-nodes.md 6.5 (result), 6.7.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use vc_model::{
    Allocation, ClaimPromise, DeviceConfig, DeviceResult, NodeSelectorTerm, Operator, Requirement,
};

/// The finalizer of a claim that has devices.
pub const DELETE_PROTECTION: &str = "resource.kubernetes.io/delete-protection";

/// Why a claim cannot be had any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimLost {
    /// It is being deleted, or another one has its name.
    #[error("got deleted in the meantime")]
    Deleted,
    /// Somebody else chose devices for it, or took them away.
    #[error("got allocated elsewhere in the meantime")]
    Elsewhere,
}

/// Whether the claim is still the one that was promised.
///
/// # Errors
/// It is not.
pub fn check_claim(claim: &Value, promise: &ClaimPromise) -> Result<(), ClaimLost> {
    let metadata = &claim["metadata"];
    if metadata["uid"].as_str() != Some(&*promise.uid) || !metadata["deletionTimestamp"].is_null() {
        return Err(ClaimLost::Deleted);
    }
    let stored = &claim["status"]["allocation"];
    match (&promise.allocation, stored.is_null()) {
        (None, true) => Err(ClaimLost::Elsewhere),
        (Some(chosen), false) if !same_devices(stored, chosen) => Err(ClaimLost::Elsewhere),
        _ => Ok(()),
    }
}

fn same_devices(stored: &Value, chosen: &Allocation) -> bool {
    let none = Vec::new();
    let stored = stored["devices"]["results"].as_array().unwrap_or(&none);
    let same = |(stored, chosen): (&Value, &DeviceResult)| {
        let text = |field: &str| stored[field].as_str().unwrap_or_default();
        let id = &chosen.device;
        (text("request"), text("driver"), text("pool"), text("device"))
            == (&*chosen.request, &*id.driver, &*id.pool, &*id.device)
    };
    stored.len() == chosen.results.len() && stored.iter().zip(&chosen.results).all(same)
}

/// Whether the claim gets devices and lacks the finalizer; then it has it.
pub fn protect_claim(claim: &mut Value, promise: &ClaimPromise) -> bool {
    if promise.allocation.is_none() || !claim["status"]["allocation"].is_null() {
        return false;
    }
    let finalizers = list(&mut claim["metadata"], "finalizers");
    let missing = !finalizers.iter().any(|name| name.as_str() == Some(DELETE_PROTECTION));
    if missing {
        finalizers.push(DELETE_PROTECTION.into());
    }
    missing
}

/// Writes the allocation, unless it is there, and the pod as a consumer. Whether anything changed.
pub fn reserve_claim(claim: &mut Value, promise: &ClaimPromise, pod: &str, uid: &str) -> bool {
    let status = field(claim, "status");
    let mut changed = false;
    if let Some(allocation) = promise.allocation.as_ref().filter(|_| status["allocation"].is_null())
    {
        status["allocation"] = allocation_json(allocation);
        changed = true;
    }
    let consumers = list(status, "reservedFor");
    if !consumers.iter().any(|consumer| consumer["uid"].as_str() == Some(uid)) {
        consumers.push(json!({ "resource": "pods", "name": pod, "uid": uid }));
        changed = true;
    }
    changed
}

/// Takes a consumer out; the allocation stays. Whether it was there.
pub fn unreserve_claim(claim: &mut Value, uid: &str) -> bool {
    let consumers = list(field(claim, "status"), "reservedFor");
    let before = consumers.len();
    consumers.retain(|consumer| consumer["uid"].as_str() != Some(uid));
    consumers.len() != before
}

/// Takes these devices and the consumer away, unless the claim has got others meanwhile, or another
/// consumer. Whether it did.
pub fn deallocate_claim(claim: &mut Value, allocation: &Allocation, consumer: &str) -> bool {
    let Some(status) = field(claim, "status").as_object_mut() else { return false };
    let is_it = status.get("allocation").is_some_and(|stored| same_devices(stored, allocation));
    let consumers = status.get("reservedFor").and_then(Value::as_array);
    let mut others = consumers.into_iter().flatten().map(|found| found["uid"].as_str());
    if !is_it || others.any(|uid| uid != Some(consumer)) {
        return false;
    }
    for part in ["allocation", "devices", "reservedFor"] {
        status.remove(part);
    }
    true
}

fn field<'a>(object: &'a mut Value, name: &str) -> &'a mut Value {
    let field = &mut object[name];
    if !field.is_object() {
        *field = Value::Object(Map::new());
    }
    field
}

fn list<'a>(object: &'a mut Value, name: &str) -> &'a mut Vec<Value> {
    if !object[name].is_array() {
        object[name] = Value::Array(Vec::new());
    }
    object[name].as_array_mut().expect("just made an array")
}

/// `status.allocation`.
pub fn allocation_json(allocation: &Allocation) -> Value {
    let results: Vec<Value> = allocation.results.iter().map(result).collect();
    let mut devices = json!({ "results": results });
    if !allocation.config.is_empty() {
        devices["config"] = allocation.config.iter().map(config).collect();
    }
    let mut value = json!({ "devices": devices });
    if let Some(terms) = &allocation.node_selector {
        let terms: Vec<Value> = terms.iter().map(term).collect();
        value["nodeSelector"] = json!({ "nodeSelectorTerms": terms });
    }
    value
}

fn result(result: &DeviceResult) -> Value {
    let id = &result.device;
    let mut value = json!({
        "request": *result.request, "driver": *id.driver, "pool": *id.pool, "device": *id.device,
    });
    if result.admin_access {
        value["adminAccess"] = true.into();
    }
    if let Ok(tolerations @ Value::Array(_)) = serde_json::from_str(&result.tolerations_json) {
        value["tolerations"] = tolerations;
    }
    value
}

fn config(config: &DeviceConfig) -> Value {
    let mut value = serde_json::from_str(&config.body).unwrap_or_else(|_| json!({}));
    value["source"] = if config.from_class { "FromClass" } else { "FromClaim" }.into();
    if !config.requests.is_empty() {
        value["requests"] = config.requests.iter().map(|name| Value::from(&**name)).collect();
    }
    value
}

fn term(term: &NodeSelectorTerm) -> Value {
    let mut value = json!({});
    for (name, requirements) in
        [("matchExpressions", &term.match_expressions), ("matchFields", &term.match_fields)]
    {
        if !requirements.is_empty() {
            value[name] = requirements.iter().map(requirement).collect();
        }
    }
    value
}

fn requirement(requirement: &Requirement) -> Value {
    let operator = match requirement.operator {
        Operator::In => "In",
        Operator::NotIn => "NotIn",
        Operator::Exists => "Exists",
        Operator::DoesNotExist => "DoesNotExist",
        Operator::Gt => "Gt",
        Operator::Lt => "Lt",
        Operator::Unknown => "",
    };
    let values: Vec<&str> = requirement.values.iter().map(|value: &Arc<str>| &**value).collect();
    let mut value = json!({ "key": *requirement.key, "operator": operator });
    if !values.is_empty() {
        value["values"] = values.into();
    }
    value
}

#[cfg(test)]
mod tests {
    use vc_model::{DeviceId, ObjectKey};

    use super::*;

    fn promise(device: Option<&str>) -> ClaimPromise {
        let result = |device: &str| DeviceResult {
            request: "gpu".into(),
            device: DeviceId { driver: "d".into(), pool: "p".into(), device: device.into() },
            ..DeviceResult::default()
        };
        let allocation = device.map(|device| {
            Arc::new(Allocation { results: vec![result(device)], ..Allocation::default() })
        });
        ClaimPromise { key: ObjectKey::new("ns", "c"), uid: "u".into(), allocation }
    }

    fn claim(status: Value) -> Value {
        json!({ "metadata": { "name": "c", "uid": "u" }, "status": status })
    }

    #[test]
    fn nodes_81_the_finalizer_comes_before_the_status() {
        let mut object = claim(json!({}));
        let promise = promise(Some("gpu-0"));
        assert_eq!(check_claim(&object, &promise), Ok(()));
        assert!(protect_claim(&mut object, &promise));
        assert_eq!(object["metadata"]["finalizers"], json!([DELETE_PROTECTION]));
        assert!(!protect_claim(&mut object, &promise), "once");
        assert!(reserve_claim(&mut object, &promise, "p", "pod-uid"));
        let devices = &object["status"]["allocation"]["devices"]["results"];
        assert_eq!(devices[0]["device"], "gpu-0");
        let consumer = json!({ "resource": "pods", "name": "p", "uid": "pod-uid" });
        assert_eq!(object["status"]["reservedFor"], json!([consumer]));
        assert_eq!(check_claim(&object, &promise), Ok(()), "our own allocation");
        assert!(!reserve_claim(&mut object, &promise, "p", "pod-uid"), "nothing is left to write");
        assert!(!protect_claim(&mut object, &promise));
    }

    #[test]
    fn a_claim_that_somebody_else_decided_about_is_lost() {
        let stored = |device: &str| {
            let id = json!({ "request": "gpu", "driver": "d", "pool": "p", "device": device });
            claim(json!({ "allocation": { "devices": { "results": [id] } } }))
        };
        let mine = promise(Some("gpu-0"));
        assert_eq!(check_claim(&stored("gpu-1"), &mine), Err(ClaimLost::Elsewhere));
        assert_eq!(check_claim(&claim(json!({})), &promise(None)), Err(ClaimLost::Elsewhere));
        let mut going = claim(json!({}));
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(check_claim(&going, &mine), Err(ClaimLost::Deleted));
        let mut other = claim(json!({}));
        other["metadata"]["uid"] = "v".into();
        assert_eq!(check_claim(&other, &mine), Err(ClaimLost::Deleted));
    }

    #[test]
    fn nodes_82_unreserving_keeps_the_allocation() {
        let mut object = claim(json!({}));
        reserve_claim(&mut object, &promise(Some("gpu-0")), "p", "a");
        reserve_claim(&mut object, &promise(Some("gpu-0")), "q", "b");
        assert!(unreserve_claim(&mut object, "a"));
        assert!(!unreserve_claim(&mut object, "a"));
        assert_eq!(object["status"]["reservedFor"][0]["uid"], "b");
        assert!(object["status"]["allocation"].is_object());
    }

    #[test]
    fn only_the_devices_that_were_useless_are_taken_away() {
        let [mine, others] = ["gpu-0", "gpu-1"].map(|device| promise(Some(device)));
        let chosen = mine.allocation.clone().unwrap();
        let mut object = claim(json!({}));
        assert!(!deallocate_claim(&mut object, &chosen, "a"), "it has none any more");
        reserve_claim(&mut object, &others, "p", "a");
        assert!(!deallocate_claim(&mut object, &chosen, "a"), "it has got others");
        let mut object = claim(json!({}));
        reserve_claim(&mut object, &mine, "p", "a");
        reserve_claim(&mut object, &mine, "q", "b");
        assert!(!deallocate_claim(&mut object, &chosen, "a"), "somebody else needs them");
        assert!(unreserve_claim(&mut object, "b"));
        assert!(deallocate_claim(&mut object, &chosen, "a"));
        assert_eq!(object["status"], json!({}));
    }

    #[test]
    fn an_allocation_is_written_with_all_that_it_says() {
        let name = Requirement {
            key: "metadata.name".into(),
            operator: Operator::In,
            values: vec!["n1".into()],
        };
        let config = DeviceConfig {
            from_class: true,
            requests: vec!["gpu".into()],
            body: r#"{"opaque": {"driver": "d"}}"#.into(),
        };
        let mut allocation = (**promise(Some("gpu-0")).allocation.as_ref().unwrap()).clone();
        allocation.config = vec![config];
        allocation.node_selector = Some(vec![NodeSelectorTerm {
            match_fields: vec![name],
            ..NodeSelectorTerm::default()
        }]);
        allocation.results[0].admin_access = true;
        allocation.results[0].tolerations_json = r#"[{"key":"k"}]"#.into();
        let expected = json!({
            "devices": {
                "results": [{ "request": "gpu", "driver": "d", "pool": "p", "device": "gpu-0",
                    "adminAccess": true, "tolerations": [{ "key": "k" }] }],
                "config": [{ "opaque": { "driver": "d" }, "source": "FromClass", "requests": ["gpu"] }],
            },
            "nodeSelector": { "nodeSelectorTerms": [{ "matchFields": [
                { "key": "metadata.name", "operator": "In", "values": ["n1"] }] }] },
        });
        assert_eq!(allocation_json(&allocation), expected);
    }
}
