//! How objects come in: a create through the API, which admission may change or refuse, and the
//! load of a dump, which keeps what the objects already are (status, uid, node of a pod).

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    clock, defaults,
    expand::{self, is_workload},
    kinds::{EVENTS, NAMESPACES, NODES, PODS, PRIORITY_CLASSES, ServedKind},
    managed_fields::{self, FieldManager},
    object::{Key, Object, items, name, namespace, text},
    refused::Refused,
    store::{Store, StoreState},
    validate,
};

/// Where a new object comes from.
#[derive(Clone, Copy, PartialEq)]
enum ObjectOrigin {
    /// A request: it starts its life now.
    Client,
    /// A dump: it has lived elsewhere.
    Dump,
}

impl Store {
    /// Creates an object as a POST does: defaults, admission, a new identity. A workload is then
    /// expanded. Without a namespace it goes to `default`.
    ///
    /// # Errors
    /// What is wrong with it, that its namespace does not exist, or that its name is taken.
    pub fn create(&self, kind: &'static ServedKind, value: &Value) -> Result<Arc<Object>, Refused> {
        let object = self.insert(kind, value.clone(), ObjectOrigin::Client)?;
        self.expand(kind, &object);
        Ok(object)
    }

    /// Takes in objects of files or of a running cluster, in any order: uid, status and node are
    /// kept, missing namespaces are made, and workloads that no other object names as its owner
    /// are expanded. Returns one line for each object that was refused.
    pub fn load(&self, mut objects: Vec<Value>) -> Vec<String> {
        let mut refused = Vec::new();
        let mut workloads = Vec::new();
        objects.sort_by_key(load_order);
        for object in objects {
            let (kind, key) = (text(&object, "/kind").to_owned(), Key::of(&object));
            match self.load_one(object) {
                Ok((kind, object)) if is_workload(kind) => workloads.push((kind, object)),
                Ok(_) => {}
                Err(error) => refused.push(describe(&kind, &key, &error)),
            }
        }
        for (kind, workload) in workloads {
            if self.lock().dependents(workload.uid()).is_empty() {
                self.expand(kind, &workload);
            }
        }
        refused
    }

    fn load_one(&self, object: Value) -> Result<(&'static ServedKind, Arc<Object>), Refused> {
        let (version, kind) = (text(&object, "/apiVersion"), text(&object, "/kind"));
        let unknown = || Refused::BadRequest(format!("kind is not served: {kind} of {version}"));
        let kind = ServedKind::of(version, kind).ok_or_else(unknown)?;
        let space = namespace(&object);
        if kind.is_namespaced() && !space.is_empty() && self.get(&NAMESPACES, "", space).is_none() {
            let made = json!({ "metadata": { "name": space } });
            self.insert(&NAMESPACES, made, ObjectOrigin::Client)?;
        }
        Ok((kind, self.insert(kind, object, ObjectOrigin::Dump)?))
    }

    fn insert(
        &self,
        kind: &'static ServedKind,
        mut value: Value,
        origin: ObjectOrigin,
    ) -> Result<Arc<Object>, Refused> {
        identify(kind, &mut value)?;
        validate::check_shape(kind, &mut value)?;
        validate::check_new(kind, &value)?;
        let manager = FieldManager::taken_from(&mut value, None);
        start_life(kind, &mut value, origin)?;
        defaults::apply(kind, &mut value);
        if *kind == PODS {
            self.admit_priority(&mut value, origin)?;
        }
        let space = namespace(&value);
        if kind.is_namespaced() && self.get(&NAMESPACES, "", space).is_none() {
            return Err(Refused::NotFound { kind: &NAMESPACES, name: space.to_owned() });
        }
        let mut state = self.lock();
        let key = state.free_key(kind, &value)?;
        state.give_identity(&key, &mut value);
        if state.tracks_managers {
            managed_fields::track(None, &mut value, &manager);
        }
        Ok(state.commit(kind, &key, value))
    }

    /// Priority admission: the class says the number, the client may not.
    fn admit_priority(&self, pod: &mut Value, origin: ObjectOrigin) -> Result<(), Refused> {
        let given = pod["spec"]["priority"].clone();
        if origin == ObjectOrigin::Dump && !given.is_null() {
            return Ok(());
        }
        let forbidden = |pod: &Value, why: String| {
            let name = name(pod).to_owned();
            Refused::Forbidden { kind: &PODS, name, why }
        };
        let class = match text(pod, "/spec/priorityClassName") {
            "" => self.default_priority_class(),
            wanted => match self.get(&PRIORITY_CLASSES, "", wanted) {
                None if origin == ObjectOrigin::Client => {
                    return Err(forbidden(
                        pod,
                        format!("no PriorityClass with name {wanted} found"),
                    ));
                }
                // A dump need not be complete.
                class => class,
            },
        };
        defaults::set_priority(pod, class.as_ref().map(|class| &class.value));
        let computed = &pod["spec"]["priority"];
        if !given.is_null() && given != *computed {
            let why = format!("spec.priority is {given} but its PriorityClass says {computed}");
            return Err(forbidden(pod, why));
        }
        Ok(())
    }

    fn default_priority_class(&self) -> Option<Arc<Object>> {
        let classes = self.list(&PRIORITY_CLASSES, None).objects;
        classes.into_iter().find(|class| class.value["globalDefault"] == json!(true))
    }

    /// Makes what a workload's controllers would. What cannot be made becomes an event.
    fn expand(&self, kind: &'static ServedKind, workload: &Object) {
        let Some(expander) = &self.expander else {
            return;
        };
        let owned = !items(&workload.value, "/metadata/ownerReferences").is_empty();
        if !is_workload(kind) || owned {
            return;
        }
        for mut child in expander.expand(&workload.value) {
            expand::adopt(&mut child, &workload.value);
            let (version, kind) = (text(&child, "/apiVersion"), text(&child, "/kind"));
            let made = match ServedKind::of(version, kind) {
                Some(kind) => self.insert(kind, child, ObjectOrigin::Client),
                None => Err(Refused::BadRequest(format!("kind is not served: {kind}"))),
            };
            if let Err(error) = made {
                let message = format!("Error creating: {error}");
                let event = expand::failed_create(&workload.value, &message, &clock::timestamp());
                // Without its namespace there is nobody left to read the event.
                let _unread = self.insert(&EVENTS, event, ObjectOrigin::Client);
            }
        }
    }
}

impl StoreState {
    /// The key of a new object; a generated name is tried until it is free.
    fn free_key(&mut self, kind: &'static ServedKind, value: &Value) -> Result<Key, Refused> {
        let mut key = Key::of(value);
        let generated = key.name.is_empty();
        loop {
            if generated {
                let suffix = self.identities().suffix();
                key.name = format!("{}{suffix}", text(value, "/metadata/generateName"));
            }
            match self.find(kind, &key) {
                None => return Ok(key),
                Some(_) if generated => {}
                Some(_) => {
                    return Err(Refused::AlreadyExists { kind, name: key.name });
                }
            }
        }
    }

    fn give_identity(&mut self, key: &Key, value: &mut Value) {
        let metadata = &mut value["metadata"];
        metadata["name"] = key.name.as_str().into();
        if metadata["uid"].is_null() {
            metadata["uid"] = self.identities().uid().into();
        }
        if metadata["creationTimestamp"].is_null() {
            metadata["creationTimestamp"] = clock::timestamp().into();
        }
        if metadata["generation"].is_null() {
            metadata["generation"] = json!(1);
        }
    }
}

/// Fills in what the URL or the kind says already and refuses what contradicts it.
fn identify(kind: &ServedKind, value: &mut Value) -> Result<(), Refused> {
    let Some(fields) = value.as_object_mut() else {
        return Err(Refused::BadRequest("the body is not a JSON object".to_owned()));
    };
    for (field, wanted) in [("apiVersion", kind.api_version()), ("kind", kind.kind.to_owned())] {
        let given = fields.entry(field).or_insert(Value::Null);
        match given.as_str() {
            None | Some("") => *given = wanted.into(),
            Some(given) if given == wanted => {}
            Some(given) => {
                let why = format!("{field} is not what the URL says: {given}, not {wanted}");
                return Err(Refused::BadRequest(why));
            }
        }
    }
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    let Some(metadata) = metadata.as_object_mut() else {
        return Err(Refused::BadRequest("metadata is not an object".to_owned()));
    };
    match (kind.is_namespaced(), metadata.get("namespace").and_then(Value::as_str)) {
        (true, None | Some("")) => {
            metadata.insert("namespace".to_owned(), "default".into());
        }
        (true, Some(_)) => {}
        (false, _) => {
            metadata.remove("namespace");
        }
    }
    Ok(())
}

/// Removes what only the server may say about an object that is new to it.
fn start_life(kind: &ServedKind, value: &mut Value, origin: ObjectOrigin) -> Result<(), Refused> {
    let fields = value.as_object_mut().expect("identify has seen an object");
    let metadata = fields["metadata"].as_object_mut().expect("identify has seen an object");
    let version = metadata.remove("resourceVersion");
    if origin == ObjectOrigin::Client {
        if version.is_some_and(|version| version.as_str().is_some_and(|text| !text.is_empty())) {
            let why = "resourceVersion should not be set on objects to be created";
            return Err(Refused::BadRequest(why.to_owned()));
        }
        const SERVER_OWNED: [&str; 5] = [
            "uid",
            "creationTimestamp",
            "generation",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ];
        SERVER_OWNED.iter().for_each(|field| drop(metadata.remove(*field)));
        // Nodes and volumes register with their status.
        if kind.has_status() && *kind != NODES {
            fields.remove("status");
        }
    }
    if !kind.is_custom() {
        prune_nulls(value);
    }
    Ok(())
}

/// A typed server does not keep `null`.
pub(super) fn prune_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(prune_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(prune_nulls),
        _ => {}
    }
}

/// What others refer to goes first.
fn load_order(object: &Value) -> u8 {
    match text(object, "/kind") {
        "Namespace" => 0,
        "Node" | "PriorityClass" => 1,
        _ => 2,
    }
}

fn describe(kind: &str, key: &Key, error: &Refused) -> String {
    let kind = match kind {
        "" => "object without a kind",
        kind => kind,
    };
    match key.namespace.as_str() {
        "" => format!("{kind} {}: {error}", key.name),
        namespace => format!("{kind} {namespace}/{}: {error}", key.name),
    }
}
