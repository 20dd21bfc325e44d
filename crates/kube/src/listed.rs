//! The objects of a cluster that a scheduler watches, listed once by a user. Each page is written down before the next
//! one is asked for, as all objects of a large cluster take gigabytes of memory. Specification: answers.md 13
//! (ANS-91, ANS-92).

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::api::ListParams;
use kube::core::Request as PageRequest;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::answers_client::{AnswersAccess, AnswersError, in_words};
use crate::connection_flags::in_time;
use crate::kinds::{KindCollection, KindSet, collections};

/// Objects of one answer of a list.
const PAGE: u32 = 500;
/// Annotation or label of a pod without a PodGroup: the name of its queue.
const QUEUE_NAME: &str = "scheduling.volcano.sh/queue-name";

/// What a user may read of a cluster, beside the objects themselves.
#[derive(Debug, Default)]
pub struct ListedObjects {
    /// A line for each kind of which objects are missing: what follows for an answer, and the words of the API server.
    pub gaps: Vec<String>,
    /// Namespace of the question.
    pub namespace: String,
    /// Kinds of which nothing could be listed.
    unlisted: BTreeSet<&'static str>,
    /// Names of queues that other objects name. Empty if queues could be listed.
    queues: BTreeSet<String>,
    /// Volumes that claims name, each as JSON. Empty if volumes could be listed.
    volumes: Vec<String>,
}

/// The lists of one user.
struct ListSource {
    client: Client,
    /// How long each page may take. `None`: there is no limit.
    limit: Option<Duration>,
    /// Namespace whose objects are listed where those of all namespaces may not be.
    namespace: String,
}

/// One answer of a list.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Page {
    api_version: String,
    metadata: PageMetadata,
    /// The objects, unread. `None`: there are none.
    items: Option<Vec<Box<RawValue>>>,
}

/// `metadata` of a list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PageMetadata {
    /// Token of the next page. Absent or empty: this is the last one.
    r#continue: Option<String>,
}

impl ListedObjects {
    /// Lists the objects with the rights of the kubeconfig, and writes them to `out`: one in each line as JSON, with its
    /// version and kind, and without `managedFields`. Of a kind that may not be listed in all namespaces the objects of
    /// `namespace` are listed; `None` stands for that of the context. Also reads the first ConfigMap of `places` that
    /// can be read, each given as namespace and name. Returns its values, or why the last one cannot be read. Must be
    /// called inside a runtime.
    ///
    /// # Errors
    /// The kubeconfig cannot be used, the API server does not answer, nodes may not be listed, or pods or PodGroups
    /// may not be listed even in the namespace. The objects cannot be written.
    pub async fn read(
        access: &AnswersAccess,
        namespace: Option<&str>,
        places: &[(String, String)],
        out: &mut dyn Write,
    ) -> Result<(Self, Result<Value, String>), AnswersError> {
        let config = access.config().await?;
        let namespace = namespace.unwrap_or(&config.default_namespace).to_owned();
        let client = Client::try_from(config).map_err(AnswersError::Build)?;
        let limit = access.flags.request_timeout;
        let source = ListSource { client, limit, namespace: namespace.clone() };
        let mut listed = Self { namespace, ..Self::default() };
        for kind in collections() {
            // Controllers of pods would become pods once more. Shards count by a flag of the scheduler.
            if !matches!(kind.set, KindSet::Controllers | KindSet::NodeShards) {
                listed.list(&source, &kind, out).await?;
            }
        }
        listed.write_supposed(out).map_err(AnswersError::TemporaryFile)?;
        let mut values = Err("no name is given".to_owned());
        for place in places {
            values = source.config_map(place).await;
            if values.is_ok() {
                break;
            }
        }
        Ok((listed, values))
    }

    /// Writes the objects of a kind: all of them, or those of the namespace if no others may be listed.
    async fn list(
        &mut self,
        source: &ListSource,
        kind: &KindCollection,
        out: &mut dyn Write,
    ) -> Result<(), AnswersError> {
        let (name, namespace) = (kind.name, &source.namespace);
        let refusal = match source.page(&kind.path, None).await {
            Ok(page) => {
                return self.write_pages(source, (name, kind.path.as_str()), page, out).await;
            }
            Err(error) => error,
        };
        let follows = without_others(name).filter(|_| has_code(&refusal, 403));
        let Some(follows) = follows else { return self.refuse(kind, &refusal) };
        let path = path_in(&kind.path, namespace);
        match source.page(&path, None).await {
            Ok(page) => {
                let words = in_words(&refusal);
                self.add_gap(
                    name,
                    format!("{name} of namespace {namespace} alone: {follows} ({words})"),
                );
                self.write_pages(source, (name, path.as_str()), page, out).await
            }
            Err(error) => self.refuse(kind, &error),
        }
    }

    /// Writes the objects of a page and of all pages after it. A page that fails is an error for every kind, as part of
    /// its objects is written already.
    async fn write_pages(
        &mut self,
        source: &ListSource,
        (kind, path): (&str, &str),
        mut page: Page,
        out: &mut dyn Write,
    ) -> Result<(), AnswersError> {
        loop {
            self.write_page(kind, &page, out)?;
            let Some(next) = page.next() else { return Ok(()) };
            let read = source.page(path, Some(next)).await;
            page = read.map_err(|error| cannot_list(kind, &error))?;
        }
    }

    /// Writes the objects of one page.
    fn write_page(
        &mut self,
        kind: &str,
        page: &Page,
        out: &mut dyn Write,
    ) -> Result<(), AnswersError> {
        for item in page.items.iter().flatten() {
            let object = page.object(kind, item).map_err(kube::Error::SerdeError);
            let object = object.map_err(|error| cannot_list(kind, &error))?;
            self.note_names(&object);
            write_line(out, &object).map_err(AnswersError::TemporaryFile)?;
        }
        Ok(())
    }

    /// Takes note of a queue or volume that an object names, if there is no list of them. Queues and volumes are listed
    /// before what names them.
    fn note_names(&mut self, object: &Value) {
        if self.unlisted.contains("Queue") {
            self.queues.extend(named_queue(object).map(str::to_owned));
        }
        if self.unlisted.contains("PersistentVolume") {
            self.volumes.extend(supposed_volume(object).map(|volume| volume.to_string()));
        }
    }

    /// Takes in that no object of a kind can be listed.
    fn refuse(&mut self, kind: &KindCollection, error: &kube::Error) -> Result<(), AnswersError> {
        let name = kind.name;
        let is_refused = has_code(error, 403) || has_code(error, 404);
        if let Some(follows) = without_all(kind).filter(|_| is_refused) {
            self.unlisted.insert(name);
            self.add_gap(name, format!("without {name}: {follows} ({})", in_words(error)));
            return Ok(());
        }
        Err(cannot_list(name, error))
    }

    /// Adds a line about a kind. Kinds that every answer reads stand first.
    fn add_gap(&mut self, kind: &str, line: String) {
        let place = match kind {
            "Queue" | "PodGroup" | "Pod" => 0,
            _ => self.gaps.len(),
        };
        self.gaps.insert(place, line);
    }

    /// Writes queues and volumes that other objects name, if they could not be listed.
    fn write_supposed(&self, out: &mut dyn Write) -> io::Result<()> {
        for name in &self.queues {
            write_line(out, &supposed_queue(name))?;
        }
        for volume in &self.volumes {
            writeln!(out, "{volume}")?;
        }
        Ok(())
    }
}

impl ListSource {
    /// Returns a page of the objects at a path: the one of this token, or the first one.
    async fn page(&self, path: &str, token: Option<&str>) -> Result<Page, kube::Error> {
        let mut range = ListParams::default().limit(PAGE);
        if let Some(token) = token {
            range = range.continue_token(token);
        }
        let request = PageRequest::new(path).list(&range).map_err(kube::Error::BuildRequest)?;
        in_time(self.limit, self.client.request::<Page>(request)).await
    }

    /// Returns the values of a ConfigMap, given by namespace and name, or why it cannot be read in the time of the
    /// limit.
    async fn config_map(&self, (namespace, name): &(String, String)) -> Result<Value, String> {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
        let request = Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
        let values = in_time(self.limit, self.client.request::<Value>(request)).await;
        values.map(|mut map| map["data"].take()).map_err(|error| in_words(&error))
    }
}

impl Page {
    /// Returns the token of the next page. Returns `None` if there is none.
    fn next(&self) -> Option<&str> {
        self.metadata.r#continue.as_deref().filter(|next| !next.is_empty())
    }

    /// Returns an item as an object.
    fn object(&self, kind: &str, item: &RawValue) -> serde_json::Result<Value> {
        let mut object: Map<String, Value> = serde_json::from_str(item.get())?;
        // Items of a list do not say what they are.
        object.insert("apiVersion".to_owned(), self.api_version.as_str().into());
        object.insert("kind".to_owned(), kind.into());
        // Who has written which field is half of many objects, and no scheduler reads it.
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.remove("managedFields");
        }
        Ok(Value::Object(object))
    }
}

/// Writes an object in a line of its own.
fn write_line(out: &mut dyn Write, object: &Value) -> io::Result<()> {
    serde_json::to_writer(&mut *out, object)?;
    out.write_all(b"\n")
}

/// Returns the error that there is no answer without a kind, with what the user can do.
fn cannot_list(kind: &str, error: &kube::Error) -> AnswersError {
    let hint = match has_code(error, 403) {
        true => format!("\nhint: {}", remedy(kind)),
        false => String::new(),
    };
    AnswersError::Refused(format!("cannot list {kind}: {}{hint}", in_words(error)))
}

/// True if the API server has answered with this code.
fn has_code(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

/// Returns the path of the objects of one namespace, by that of the objects of all.
fn path_in(path: &str, namespace: &str) -> String {
    let (version, plural) = path.rsplit_once('/').unwrap_or(("", path));
    format!("{version}/namespaces/{namespace}/{plural}")
}

/// Returns what follows for an answer if of a kind only the objects of one namespace are known. Returns `None` for
/// kinds without namespaces, and for those that no user has in a namespace of its own.
fn without_others(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "Pod" => {
            "pods of other namespaces do not count, so nodes and queues have more room in the answer than they \
             really have"
        }
        "PodGroup" => {
            "jobs of other namespaces have no place in a line, and starts are told as if they were not there"
        }
        "PersistentVolumeClaim" => {
            "volumes of other namespaces do not count against the limits of nodes"
        }
        "ResourceClaim" => "devices that pods of other namespaces hold count as free",
        "ResourceQuota" => "the plugin resourcequota refuses no job of another namespace",
        "PodDisruptionBudget" => "the plugin pdb protects no pod of another namespace",
        "Service" => "the default topology spread of pods of other namespaces ignores them",
        _ => return None,
    })
}

/// Returns what follows for an answer if no object of a kind is known. Returns `None` if there is no answer.
fn without_all(kind: &KindCollection) -> Option<&'static str> {
    let without = match kind.name {
        "Queue" => "the queues that jobs name are supposed to be open, without limits",
        "Namespace" => "terms of pod affinity that select namespaces by labels select none",
        "PriorityClass" => "jobs that name one have priority 0",
        "PersistentVolume" => "every node is supposed to reach the volumes of bound claims",
        "PersistentVolumeClaim" => "pods with claims wait",
        _ => return kind.without,
    };
    Some(without)
}

/// Returns what a user can do who may not list a kind without which there is no answer.
fn remedy(kind: &str) -> &'static str {
    match kind {
        "Node" => {
            "an answer is about nodes: ask for the right to list them, or for a scheduler that answers \
             (answers.enabled of the chart)"
        }
        _ => "name a namespace in which you may list them with -n",
    }
}

/// Returns the queue that a PodGroup names, or a pod by annotation, else by label. Returns `None` if there is none.
fn named_queue(object: &Value) -> Option<&str> {
    match object["kind"].as_str() {
        Some("PodGroup") => name_in(&object["spec"]["queue"]),
        Some("Pod") => {
            let places = ["annotations", "labels"];
            places.into_iter().find_map(|place| name_in(&object["metadata"][place][QUEUE_NAME]))
        }
        _ => None,
    }
}

/// Returns the name in a field. Returns `None` if there is none.
fn name_in(field: &Value) -> Option<&str> {
    field.as_str().filter(|name| !name.is_empty())
}

/// Returns a queue without limits.
fn supposed_queue(name: &str) -> Value {
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": { "name": name, "uid": name },
        "spec": { "weight": 1 }, "status": { "state": "Open" },
    })
}

/// Returns the volume that a claim names, without an affinity to nodes. Returns `None` if there is none.
fn supposed_volume(object: &Value) -> Option<Value> {
    if object["kind"] != "PersistentVolumeClaim" {
        return None;
    }
    let name = name_in(&object["spec"]["volumeName"])?;
    let [namespace, claim, uid] =
        ["namespace", "name", "uid"].map(|field| &object["metadata"][field]);
    Some(json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name },
        "spec": { "claimRef": { "namespace": namespace, "name": claim, "uid": uid } },
        "status": { "phase": "Bound" },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_91_each_kind_tells_what_follows_without_it() {
        let kinds = collections();
        let needed: Vec<&str> =
            kinds.iter().filter(|kind| without_all(kind).is_none()).map(|kind| kind.name).collect();
        assert_eq!(needed, ["Node", "PodGroup", "Pod"]);
        for kind in needed {
            assert_eq!(without_others(kind).is_none(), kind == "Node", "{kind}");
        }
    }

    #[test]
    fn ans_91_objects_of_one_namespace_have_a_path() {
        let cases = [
            ("/api/v1/pods", "/api/v1/namespaces/ml/pods"),
            ("/apis/policy/v1/budgets", "/apis/policy/v1/namespaces/ml/budgets"),
        ];
        for (path, expected) in cases {
            assert_eq!(path_in(path, "ml"), expected);
        }
    }

    /// Returns the objects of lines.
    fn read(lines: Vec<u8>) -> Vec<Value> {
        let text = String::from_utf8(lines).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn ans_91_queues_and_volumes_that_are_named_are_supposed() {
        let objects = [
            json!({"kind": "PodGroup", "spec": {"queue": "team"}}),
            json!({"kind": "PodGroup", "spec": {}}),
            json!({"kind": "Pod", "metadata": {"labels": {(QUEUE_NAME): "own"}}}),
            json!({"kind": "Pod", "metadata": {"annotations": {(QUEUE_NAME): "team"}}}),
            json!({"kind": "Pod", "metadata": {}}),
            json!({"kind": "PersistentVolumeClaim", "spec": {"volumeName": "disk"},
                "metadata": {"namespace": "ml", "name": "data", "uid": "7"}}),
            json!({"kind": "PersistentVolumeClaim", "spec": {}, "metadata": {"name": "unbound"}}),
        ];
        let supposed = |unlisted: &[&'static str]| {
            let unlisted = unlisted.iter().copied().collect();
            let mut listed = ListedObjects { unlisted, ..ListedObjects::default() };
            objects.iter().for_each(|object| listed.note_names(object));
            let mut out = Vec::<u8>::new();
            listed.write_supposed(&mut out).unwrap();
            read(out)
        };
        let names = |objects: &[Value]| -> Vec<String> {
            objects.iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(&supposed(&["Queue"])), ["own", "team"]);
        let volumes = supposed(&["PersistentVolume"]);
        let claim = json!({"namespace": "ml", "name": "data", "uid": "7"});
        assert_eq!(volumes[0]["spec"]["claimRef"], claim);
        assert_eq!(names(&volumes), ["disk"]);
        assert_eq!(names(&supposed(&["Queue", "PersistentVolume"])), ["own", "team", "disk"]);
        assert_eq!(names(&supposed(&[])), [""; 0]);
    }

    #[test]
    fn ans_92_what_is_named_is_listed_before_what_names_it() {
        let kinds = collections();
        let place = |name: &str| kinds.iter().position(|kind| kind.name == name).unwrap();
        assert!(place("Queue") < place("PodGroup").min(place("Pod")));
        assert!(place("PersistentVolume") < place("PersistentVolumeClaim"));
    }

    #[test]
    fn ans_92_pages_are_written_in_their_order_without_managed_fields() {
        let (mut listed, mut out) = (ListedObjects::default(), Vec::<u8>::new());
        let pages = [
            r#"{"kind": "PodList", "apiVersion": "v1", "metadata": {"continue": "next"}, "items": [
                {"metadata": {"name": "b", "managedFields": [{"manager": "kubelet"}]}},
                {"metadata": {"name": "a"},
                 "spec": {"text": "two\nlines"}}]}"#,
            r#"{"apiVersion": "v1", "metadata": {"continue": ""}, "items": [{"metadata": {}}]}"#,
            r#"{"apiVersion": "v1", "metadata": {}, "items": null}"#,
        ];
        let pages = pages.map(|text| serde_json::from_str::<Page>(text).unwrap());
        assert_eq!(pages.each_ref().map(Page::next), [Some("next"), None, None]);
        for page in &pages {
            listed.write_page("Pod", page, &mut out).unwrap();
        }
        let expected = [
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
                "spec": {"text": "two\nlines"}}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}}),
        ];
        assert_eq!(read(out), expected);
        let broken: Page = serde_json::from_str(r#"{"items": [7]}"#).unwrap();
        let error = listed.write_page("Pod", &broken, &mut io::sink()).unwrap_err().to_string();
        assert!(error.starts_with("cannot list Pod: "), "{error}");
    }
}
