//! Changes to suppose, as documents, objects and flags: what a user writes becomes a question.
//! Specification: answers.md 9, 13, 16.

mod applied;
pub mod flags;
mod outside;
mod parse;

use std::sync::Arc;

use serde_json::{Value, json};
use vc_answers::{Change, WhatIf};

use crate::field::{set_default, text};
use crate::input::{Input, InputObject, Source, is_what_if};
use crate::live::LiveObjects;
use crate::scope::is_namespaced;
use applied::applied;
use outside::check_namespace;
use parse::{ParsedChange, ParsedQuestion, parse};

/// Longest document, in bytes.
pub const MOST_BYTES: usize = 1 << 20;

/// What a user wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WhatIfTexts {
    /// A document `WhatIf`, with what is written before its errors.
    pub document: Option<(String, InputObject)>,
    /// Objects to apply.
    pub objects: Vec<InputObject>,
    /// Changes of flags, each with the flag as it was written.
    pub flags: Vec<(String, Value)>,
    /// Jobs and objects of the document without a namespace are of this one; absent: `default`.
    pub namespace: Option<String>,
    /// True if only objects of that namespace may change.
    pub is_confined: bool,
}

impl WhatIfTexts {
    /// Returns the kinds of the changes and objects, for the log. Their contents are not part of it: a
    /// configuration, or the environment of a container, may hold secrets.
    pub fn kinds(&self) -> String {
        let document = self.document.iter().map(|(_, object)| &object.value);
        let changes = document.filter_map(|value| value["spec"]["changes"].as_array()).flatten();
        let changes = changes.chain(self.flags.iter().map(|(_, change)| change));
        let names = changes.filter_map(Value::as_object).flat_map(|change| change.keys());
        let objects = self.objects.iter().map(|object| object.value["kind"].as_str());
        let kinds: Vec<&str> =
            names.map(String::as_str).chain(objects.map(|kind| kind.unwrap_or("?"))).collect();
        format!("what-if: {}", kinds.join(", "))
    }
}

/// A question that was understood.
#[derive(Debug, Default)]
pub struct WhatIfAsked {
    /// The question.
    pub question: WhatIf,
    /// What stands before errors of each of its changes.
    pub places: Vec<String>,
    /// What the answer does not take into account.
    pub warnings: Vec<String>,
}

/// Why a question was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WhatIfMistake {
    /// A field is wrong; the text names it.
    #[error("{0}")]
    Wrong(String),
    /// A change is none of objects of the namespace; the text names its field.
    #[error("{0}")]
    Outside(String),
}

/// Tells the document `WhatIf` from objects to apply.
///
/// # Errors
/// There are several documents; the text names the second one.
pub fn split(objects: Vec<InputObject>) -> Result<(Option<InputObject>, Vec<InputObject>), String> {
    let (mut documents, objects): (Vec<_>, Vec<_>) =
        objects.into_iter().partition(|object| is_what_if(&object.value));
    match &documents[..] {
        [_, second, ..] => {
            Err(format!("{}: one WhatIf wanted, {} given", second.source, documents.len()))
        }
        _ => Ok((documents.pop(), objects)),
    }
}

/// Understands what a user wrote, beside the objects that exist.
///
/// # Errors
/// A change is wrong.
pub fn understand(
    texts: WhatIfTexts,
    live: &dyn LiveObjects,
) -> Result<WhatIfAsked, WhatIfMistake> {
    let WhatIfTexts { document, objects, flags, namespace, is_confined } = texts;
    let namespace = namespace.as_deref().unwrap_or("default");
    let asked = WhatIfAsked::default();
    let mut reader = Reader { live, namespace, is_confined, n_new_pods: 0, asked };
    if let Some((place, InputObject { value, source })) = document {
        let question = reader.parse(&value, &place)?;
        let asked = &mut reader.asked.question;
        (asked.cycles, asked.kubelet) = (question.cycles, question.kubelet);
        reader.take(question, (&place, &source))?;
    }
    if !objects.is_empty() {
        let change = reader.applied(objects)?;
        reader.add(String::new(), change);
    }
    for (flag, change) in flags {
        let document = json!({ "spec": { "changes": [change] } });
        let place = format!("{flag}: ");
        let question = reader.parse(&document, &place)?;
        let source = Source { file: flag.as_str().into(), line: 1 };
        reader.take(question, (&place, &source))?;
    }
    Ok(reader.asked)
}

/// A reader of changes, with the question that it has read so far.
struct Reader<'a> {
    live: &'a dyn LiveObjects,
    namespace: &'a str,
    is_confined: bool,
    /// Pods of the changes so far.
    n_new_pods: usize,
    asked: WhatIfAsked,
}

impl Reader<'_> {
    fn parse(&self, document: &Value, place: &str) -> Result<ParsedQuestion, WhatIfMistake> {
        let question = parse(document, self.namespace);
        let question = question.map_err(|text| WhatIfMistake::Wrong(format!("{place}{text}")))?;
        if self.is_confined {
            for (path, change) in &question.changes {
                let checked = check_namespace(change, self.namespace);
                checked.map_err(|text| WhatIfMistake::Outside(format!("{place}{path}.{text}")))?;
            }
        }
        Ok(question)
    }

    fn add(&mut self, place: String, change: Change) {
        self.asked.places.push(place);
        self.asked.question.changes.push(change);
    }

    fn applied(&mut self, objects: Vec<InputObject>) -> Result<Change, WhatIfMistake> {
        let made = applied(objects, self.live, self.n_new_pods).map_err(WhatIfMistake::Wrong)?;
        self.n_new_pods += made.n_pods;
        self.asked.warnings.extend(made.warnings);
        Ok(Change::Apply(made.events))
    }

    /// Adds the changes of a document.
    fn take(
        &mut self,
        question: ParsedQuestion,
        (place, source): (&str, &Source),
    ) -> Result<(), WhatIfMistake> {
        self.asked.warnings.extend(question.warnings);
        let is_flag = source.file.starts_with("--");
        for (path, change) in question.changes {
            let change = match change {
                ParsedChange::Made(change) => change,
                ParsedChange::Apply(objects) => {
                    let mut input = Input::default();
                    let file: Arc<str> = format!("{}: {path}.apply", source.file).into();
                    for mut value in objects {
                        if is_namespaced(text(&value, "/apiVersion"), text(&value, "/kind")) {
                            set_default(&mut value, &["metadata"], "namespace", self.namespace);
                        }
                        input.add_object(&file, source.line, value);
                    }
                    if let Some(unreadable) = input.unreadable.first() {
                        return Err(WhatIfMistake::Wrong(unreadable.to_string()));
                    }
                    self.applied(input.objects)?
                }
            };
            let place = if is_flag { place.to_owned() } else { format!("{place}{path}.") };
            self.add(place, change);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use vc_model::{Cluster, ClusterEvent, NodeGroupAffinity, Settings};

    use super::*;
    use crate::ClusterObjects;

    /// Understands changes that apply one Deployment each, with so many pods.
    fn deployed(replicas: &[usize]) -> Result<usize, String> {
        let change = |(number, replicas): (usize, &usize)| {
            let container = json!({ "name": "c", "resources": { "requests": { "cpu": "1" } } });
            let pod = json!({ "schedulerName": "volcano", "containers": [container] });
            let deployment = json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": { "name": format!("d{number}"), "namespace": "ml" },
                "spec": { "replicas": replicas, "template": { "spec": pod } },
            });
            json!({ "apply": [deployment] })
        };
        let changes: Vec<Value> = replicas.iter().enumerate().map(change).collect();
        let value = json!({ "spec": { "changes": changes } });
        let object = InputObject { value, source: Source { file: "-".into(), line: 1 } };
        let document = Some((String::new(), object));
        let cluster = Cluster::new(Settings::default());
        let texts = WhatIfTexts { document, ..WhatIfTexts::default() };
        let asked = understand(texts, &ClusterObjects::new(&cluster, 0));
        let is_pod = |event: &&ClusterEvent| matches!(event, ClusterEvent::PodApplied(_));
        let n_pods = |change: &Change| match change {
            Change::Apply(events) => events.iter().filter(is_pod).count(),
            _ => 0,
        };
        let asked = asked.map_err(|error| error.to_string())?;
        Ok(asked.question.changes.iter().map(n_pods).sum())
    }

    #[test]
    fn ans_52_new_pods_are_limited_in_all() {
        assert_eq!(deployed(&[1, 19_999]), Ok(20_000));
        let refused = deployed(&[1, 20_000]).unwrap_err();
        let expected = "deployment ml/d1: 20000 new pods at most in all changes";
        assert!(refused.ends_with(expected), "{refused}");
    }

    #[test]
    fn ans_52_new_nodes_are_limited_in_all() {
        let added = |counts: &[u64]| {
            let change = |count: &u64| json!({ "addNodes": { "like": "n", "count": count } });
            let changes: Vec<Value> = counts.iter().map(change).collect();
            parse(&json!({ "spec": { "changes": changes } }), "ml").map(|it| it.changes.len())
        };
        assert_eq!(added(&[1, 9_999]), Ok(2));
        for (counts, place) in [(&[10_001][..], 0), (&[1, 10_000][..], 1)] {
            let expected = format!("spec.changes[{place}]: 10000 new nodes at most, 10001 given");
            assert_eq!(added(counts), Err(expected));
        }
    }

    /// Reads a change of a queue, and returns its node groups.
    fn node_groups(affinity: Value) -> Result<Option<NodeGroupAffinity>, String> {
        let changes = json!([{ "setQueue": { "name": "q", "affinity": affinity } }]);
        let parsed = parse(&json!({ "spec": { "changes": changes } }), "ml")?;
        match &parsed.changes[..] {
            [(_, ParsedChange::Made(Change::SetQueue(_, change)))] => Ok(change.affinity.clone()),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn ans_48_the_node_groups_of_a_queue_are_replaced() {
        let (required, preferred) = (
            "requiredDuringSchedulingIgnoredDuringExecution",
            "preferredDuringSchedulingIgnoredDuringExecution",
        );
        let expected = NodeGroupAffinity {
            required: vec!["a".into()],
            anti_preferred: vec!["b".into()],
            ..NodeGroupAffinity::default()
        };
        let given = json!({
            "nodeGroupAffinity": { required: ["a"] }, "nodeGroupAntiAffinity": { preferred: ["b"] },
        });
        assert_eq!(node_groups(given), Ok(Some(expected)));
        assert_eq!(node_groups(json!({})), Ok(Some(NodeGroupAffinity::default())));
        assert_eq!(node_groups(Value::Null), Ok(None), "it stays as it is");
        for (wrong, field, problem) in [
            (json!("a"), "", "must be an object: \"a\""),
            (
                json!({ "nodeGroupAfinity": {} }),
                ".nodeGroupAfinity",
                "unknown; did you mean nodeGroupAffinity?",
            ),
            (
                json!({ "nodeGroupAffinity": { "required": [] } }),
                ".nodeGroupAffinity.required",
                "unknown",
            ),
        ] {
            let expected = format!("spec.changes[0].setQueue.affinity{field}: {problem}");
            assert_eq!(node_groups(wrong), Err(expected));
        }
    }

    #[test]
    fn ans_102_the_log_has_kinds_of_changes_and_nothing_of_their_contents() {
        let source = Source { file: "-".into(), line: 1 };
        let object = |value| InputObject { value, source: source.clone() };
        let spec = json!({ "changes": [{ "setConfiguration": { "text": "token: hunter2" } }] });
        let pod = json!({ "kind": "Pod", "spec": { "containers": [{ "env": ["hunter2"] }] } });
        let texts = WhatIfTexts {
            document: Some(("file: ".to_owned(), object(json!({ "spec": spec })))),
            objects: vec![object(pod), object(json!({ "name": "hunter2" }))],
            flags: vec![("--drain".to_owned(), json!({ "removeNodes": { "names": ["n1"] } }))],
            ..WhatIfTexts::default()
        };
        assert_eq!(texts.kinds(), "what-if: setConfiguration, removeNodes, Pod, ?");
    }
}
