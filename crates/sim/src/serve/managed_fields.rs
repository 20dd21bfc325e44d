//! Who wrote which field of an object last: `metadata.managedFields`, as kube-apiserver keeps it for creations and
//! updates. A list is one field here, whoever wrote an item of it. Kept only by stores that are told to; there is no
//! server-side apply.

use serde_json::{Map, Value, json};

use super::{clock, object::text, revise::SERVER_OWNED};

/// Who sends a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldManager {
    pub(super) name: String,
    /// `status`, or empty.
    pub(super) subresource: String,
}

/// Who writes without a request: kubelets, controllers and users of the simulation.
const WITHOUT_REQUEST: &str = "vcsim";
/// Fields of `metadata` that nobody manages, beside those of the server.
const UNMANAGED: [&str; 2] = ["generateName", "managedFields"];

impl FieldManager {
    /// The name that a request gives itself, else the program of its user agent.
    pub(super) fn of(given: &str, user_agent: &str) -> Self {
        let program = user_agent.split('/').next().unwrap_or_default();
        let name = [given, program, "unknown"].into_iter().find(|name| !name.is_empty());
        Self { name: name.unwrap_or_default().to_owned(), subresource: String::new() }
    }

    /// Notes in an object that is about to be written who writes it. [`FieldManager::taken_from`] takes the note out.
    pub(super) fn note(&self, object: &mut Value) {
        if object.is_object() && object["metadata"].is_null() {
            object["metadata"] = json!({});
        }
        if object["metadata"].is_object() {
            let note = json!({ "noted": self.name, "subresource": self.subresource });
            object["metadata"]["managedFields"] = json!([note]);
        }
    }

    /// Takes the note out of an object; its entries are those of the object before.
    pub(super) fn taken_from(object: &mut Value, before: Option<&Value>) -> Self {
        let of_note = |name: &str| {
            let note = object["metadata"]["managedFields"].get(0);
            note.and_then(|note| note[name].as_str()).unwrap_or_default().to_owned()
        };
        let (noted, subresource) = (of_note("noted"), of_note("subresource"));
        if let Some(metadata) = object["metadata"].as_object_mut() {
            match before.and_then(|before| before["metadata"].get("managedFields")) {
                Some(entries) => drop(metadata.insert("managedFields".to_owned(), entries.clone())),
                None => drop(metadata.remove("managedFields")),
            }
        }
        let name = if noted.is_empty() { WITHOUT_REQUEST.to_owned() } else { noted };
        Self { name, subresource }
    }
}

/// Gives the fields that a write has changed to its manager, and takes those that are changed or gone from the others.
/// Returns both, as in `fieldsV1`.
pub(super) fn track(
    before: Option<&Value>,
    object: &mut Value,
    manager: &FieldManager,
) -> [Value; 2] {
    let nothing = json!({});
    let (mut set, mut lost) = (Map::new(), Map::new());
    compare(before.unwrap_or(&nothing), object, &mut (&mut set, &mut lost), true);
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let is_own = |entry: &Value| {
        entry["manager"] == manager.name && text(entry, "/subresource") == manager.subresource
    };
    let (own, others): (Vec<Value>, Vec<Value>) = entries.into_iter().partition(is_own);
    let mut kept = Vec::new();
    for mut entry in others {
        let fields = entry["fieldsV1"].as_object_mut();
        let is_left = fields.is_some_and(|fields| {
            subtract(fields, &set);
            subtract(fields, &lost);
            !fields.is_empty()
        });
        if is_left {
            kept.push(entry);
        }
    }
    let mut fields =
        own.first().and_then(|entry| entry["fieldsV1"].as_object().cloned()).unwrap_or_default();
    subtract(&mut fields, &lost);
    add(&mut fields, &set);
    if !fields.is_empty() {
        let mut entry = json!({
            "manager": manager.name, "operation": "Update", "apiVersion": object["apiVersion"],
            "time": clock::timestamp(), "fieldsType": "FieldsV1", "fieldsV1": fields,
        });
        if !manager.subresource.is_empty() {
            entry["subresource"] = manager.subresource.as_str().into();
        }
        kept.push(entry);
    }
    object["metadata"]["managedFields"] = kept.into();
    [set.into(), lost.into()]
}

/// Collects the fields that are set anew or otherwise, and those that are gone.
fn compare(
    before: &Value,
    after: &Value,
    found: &mut (&mut Map<String, Value>, &mut Map<String, Value>),
    is_top: bool,
) {
    let none = Map::new();
    let (old, new) = (before.as_object().unwrap_or(&none), after.as_object().unwrap_or(&none));
    let is_of_server = |name: &str| is_top && ["apiVersion", "kind"].contains(&name);
    for (name, value) in new.iter().filter(|(name, _)| !is_of_server(name)) {
        let earlier = old.get(name).unwrap_or(&Value::Null);
        if earlier == value {
            continue;
        }
        let (mut set, mut lost) = (Map::new(), Map::new());
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                compare(earlier, value, &mut (&mut set, &mut lost), false);
            }
            _ => {}
        }
        let is_metadata = is_top && name == "metadata";
        for fields in [&mut set, &mut lost].into_iter().filter(|_| is_metadata) {
            SERVER_OWNED
                .iter()
                .chain(&UNMANAGED)
                .for_each(|name| drop(fields.remove(&field(name))));
        }
        let is_leaf = !matches!(value, Value::Object(fields) if !fields.is_empty());
        if is_leaf || !set.is_empty() {
            found.0.insert(field(name), set.into());
        }
        if !lost.is_empty() {
            found.1.insert(field(name), lost.into());
        }
    }
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        found.1.insert(field(name), json!({}));
    }
}

/// The name of a field in `fieldsV1`.
fn field(name: &str) -> String {
    format!("f:{name}")
}

/// Takes fields out, with all that is below them.
fn subtract(fields: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (name, below) in other {
        let Some(own) = fields.get_mut(name) else { continue };
        let below = below.as_object().filter(|below| !below.is_empty());
        let is_empty = match (own.as_object_mut(), below) {
            (Some(own), Some(below)) if !own.is_empty() => {
                subtract(own, below);
                own.is_empty()
            }
            _ => true,
        };
        if is_empty {
            fields.remove(name);
        }
    }
}

/// Adds fields.
fn add(fields: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (name, below) in other {
        let own = fields.entry(name.clone()).or_insert_with(|| json!({}));
        if let (Some(own), Some(below)) = (own.as_object_mut(), below.as_object()) {
            add(own, below);
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use tower::ServiceExt;

    use super::*;
    use crate::serve::{PODS, in_process};

    fn written(before: Option<&Value>, mut object: Value, name: &str, subresource: &str) -> Value {
        let manager = FieldManager { name: name.to_owned(), subresource: subresource.to_owned() };
        manager.note(&mut object);
        let manager = FieldManager::taken_from(&mut object, before);
        track(before, &mut object, &manager);
        object
    }

    fn entries(object: &Value) -> Vec<(String, Value)> {
        let entries = object["metadata"]["managedFields"].as_array().unwrap();
        let entry = |entry: &Value| (text(entry, "/manager").to_owned(), entry["fieldsV1"].clone());
        entries.iter().map(entry).collect()
    }

    #[test]
    fn each_field_belongs_to_who_wrote_it_last() {
        let made = written(
            None,
            json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "labels": { "a": "1", "b": "1" } },
                "spec": { "containers": [{ "name": "c" }], "priority": 0 } }),
            "kubectl",
            "",
        );
        let labels = |names: &[&str]| -> Value {
            names.iter().map(|name| (field(name), json!({}))).collect::<Map<_, _>>().into()
        };
        let all = json!({ "f:metadata": { "f:labels": labels(&["a", "b"]) },
            "f:spec": { "f:containers": {}, "f:priority": {} } });
        assert_eq!(entries(&made), [("kubectl".to_owned(), all)]);
        let mut wanted = made.clone();
        wanted["metadata"]["labels"] = json!({ "b": "2", "c": "1" });
        let changed = written(Some(&made), wanted, "other", "");
        let left = json!({ "f:spec": { "f:containers": {}, "f:priority": {} } });
        let taken = json!({ "f:metadata": { "f:labels": labels(&["b", "c"]) } });
        assert_eq!(
            entries(&changed),
            [("kubectl".to_owned(), left.clone()), ("other".to_owned(), taken.clone())]
        );
        let mut wanted = changed.clone();
        wanted["status"] = json!({ "phase": "Running" });
        let status = written(Some(&changed), wanted, "other", "status");
        let of_status = json!({ "f:status": { "f:phase": {} } });
        assert_eq!(
            entries(&status),
            [
                ("kubectl".to_owned(), left),
                ("other".to_owned(), taken),
                ("other".to_owned(), of_status)
            ]
        );
        assert_eq!(status["metadata"]["managedFields"][2]["subresource"], "status");
    }

    #[test]
    fn what_a_client_says_about_managers_does_not_count() {
        let object = json!({ "metadata": { "name": "p", "managedFields": [{ "manager": "me" }] }, "spec": { "a": 1 } });
        let mut sent = object.clone();
        let manager = FieldManager::taken_from(&mut sent, None);
        assert_eq!(
            (manager.name.as_str(), sent["metadata"].get("managedFields")),
            (WITHOUT_REQUEST, None)
        );
    }

    #[test]
    fn a_request_names_its_manager() {
        for (given, agent, expected) in
            [("me", "kubectl/v1", "me"), ("", "kubectl/v1 (linux)", "kubectl"), ("", "", "unknown")]
        {
            assert_eq!(FieldManager::of(given, agent).name, expected);
        }
    }

    #[tokio::test]
    async fn requests_are_tracked_with_the_program_that_sends_them() {
        let (router, store) = in_process(1, |_| 100);
        store.track_managers();
        let send = async |method: &str, path: &str, agent: &str, content: &str, body: Value| {
            let request = Request::builder().method(method).uri(path);
            let request = request.header("user-agent", agent).header("content-type", content);
            let request = request.body(Body::from(body.to_string())).unwrap();
            let answer = router.clone().oneshot(request).await.unwrap();
            assert!(answer.status().is_success(), "{method} {path}: {}", answer.status());
        };
        let (pods, json_type) = ("/api/v1/namespaces/default/pods", "application/json");
        let pod = json!({ "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
        send("POST", pods, "kubectl/v1", json_type, pod).await;
        let merge = "application/merge-patch+json";
        let labels = json!({ "metadata": { "labels": { "a": "b" } } });
        send("PATCH", &format!("{pods}/p?fieldManager=me"), "x/1", merge, labels).await;
        let status = json!({ "status": { "nominatedNodeName": "n" } });
        send("PATCH", &format!("{pods}/p/status"), "vc-scheduler/1", merge, status).await;
        let binding = json!({ "metadata": { "name": "p" }, "target": { "name": "n" } });
        send("POST", &format!("{pods}/p/binding"), "vc-scheduler/1", json_type, binding).await;
        let updates: Vec<(String, Value)> =
            store.take_tracked().into_iter().map(|it| (it.manager, it.fields[0].clone())).collect();
        let nothing = json!({});
        assert_eq!(
            updates[0],
            ("me".to_owned(), json!({ "f:metadata": { "f:labels": { "f:a": nothing } } }))
        );
        let nominated = json!({ "f:status": { "f:nominatedNodeName": nothing } });
        assert_eq!(updates[1], ("vc-scheduler".to_owned(), nominated));
        assert_eq!(updates[2].0, "vc-scheduler");
        assert_eq!(updates[2].1["f:spec"], json!({ "f:nodeName": nothing }));
        let pod = store.get(&PODS, "default", "p").unwrap();
        let managers = entries(&pod.value);
        let names: Vec<&str> = managers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["kubectl", "me", "vc-scheduler", "vc-scheduler"]);
    }
}
