//! Names of a scenario or a bundle replaced by numbers, so that it can be shown to others.
//! Specification: answers.md 15 (ANS-102).
//!
//! A text is cut at everything that is no letter or digit. What is left are words, which are replaced
//! one by one, the same word by the same number everywhere. Exact because of what a scheduler makes of
//! names:
//! - It compares them. The numbers have the order of the words, also between words that stay.
//! - It reads the index behind the last dash. Numbers stay, and a number at the beginning of a word.
//! - It knows some: words of Kubernetes, of resources and of the configuration stay.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use vc_model::NodePattern;

/// Fields whose text is one of a list of the API, or a time.
const KEPT_FIELDS: &[&str] = &[
    "apiVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "dequeueStrategy",
    "effect",
    "kind",
    "lastTransitionTime",
    "mode",
    "nodeAffinityPolicy",
    "nodeTaintsPolicy",
    "operator",
    "phase",
    "preemptionPolicy",
    "protocol",
    "reason",
    "schedulerName",
    "startTime",
    "state",
    "status",
    "type",
    "whenUnsatisfiable",
];

/// Fields with amounts by resource. The names of resources stay.
const AMOUNTS: &[&str] = &[
    "allocatable",
    "allocated",
    "capability",
    "capacity",
    "deserved",
    "hard",
    "limits",
    "minResources",
    "requests",
    "resource",
    "used",
];

/// Fields with texts by names of users, both of which are replaced.
const NAMED: &[&str] =
    &["annotations", "disruptedPods", "labels", "matchLabels", "minTaskMember", "nodeSelector"];

/// Words of well-known names: of namespaces, queues, PriorityClasses, nodes and domains.
pub(crate) const WORDS: &[&str] = &[
    "cluster", "com", "critical", "default", "false", "io", "kube", "lease", "main", "node",
    "public", "root", "system", "true", "volcano",
];

/// Domains of labels and annotations whose keys stay.
pub(crate) const DOMAINS: &[&str] = &["kubernetes.io", "k8s.io", "volcano.sh", "nvidia.com"];

/// Beginnings of labels and annotations whose values are numbers, durations, or words of a list. A name
/// in them is one that other objects have, too.
const SETTINGS: &[&str] = &[
    "cohort.volcano.sh/",
    "kueue.x-k8s.io/max-exec-time-seconds",
    "reservation.volcano.sh/runtime",
    "scheduling.volcano.sh/queue-allocation-gate",
    "sla-waiting-time",
    "volcano.sh/cooldown-time",
    "volcano.sh/jdb-max-unavailable",
    "volcano.sh/jdb-min-available",
    "volcano.sh/nodegroup-resource-limits",
    "volcano.sh/numa-topology-policy",
    "volcano.sh/offline-job-evicting",
    "volcano.sh/oversubscription",
    "volcano.sh/preemptable",
    "volcano.sh/resource-strategy-scoring-type",
    "volcano.sh/resource-strategy-weight",
    "volcano.sh/revocable-zone",
    "volcano.sh/sla-waiting-time",
    "volcano.sh/task-priority",
];

/// The meaning of a text in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextKind {
    /// A name of something.
    Name,
    /// The value of a setting.
    Setting,
}

/// What is done with a text. It returns what comes in its place.
type Each<'a> = &'a mut dyn FnMut(&str, TextKind) -> Option<String>;

/// Replaces names.
pub(crate) struct NameMap {
    /// By word.
    numbers: BTreeMap<String, String>,
}

impl NameMap {
    /// Collects the names of the objects. The words of the plugins and arguments of a configuration stay.
    pub(super) fn of(objects: &[Value], conf_words: &BTreeSet<String>) -> Self {
        let objects = &without_patterns(objects)[..];
        let (mut seen, mut settings) = (BTreeSet::new(), BTreeSet::new());
        for object in objects {
            visit(object, &mut |text, kind| {
                if kind == TextKind::Name {
                    seen.append(&mut words_of(text));
                } else {
                    let [mut kept, mut names] = setting_words(text);
                    settings.append(&mut kept);
                    seen.append(&mut names);
                }
                None
            });
        }
        let mut resources = BTreeSet::new();
        objects.iter().for_each(|object| resource_words(object, &mut resources));
        let is_kept = |word: &String| {
            let is_in = |words: &BTreeSet<String>| words.contains(word);
            WORDS.contains(&&**word) || is_in(conf_words) || is_in(&resources) || is_in(&settings)
        };
        Self { numbers: numbered(&seen, is_kept) }
    }

    /// Numbers the words that are not kept, in the order of all words.
    pub(crate) fn of_words(words: &BTreeSet<String>, is_kept: impl Fn(&String) -> bool) -> Self {
        Self { numbers: numbered(words, is_kept) }
    }

    /// Returns a text with its names replaced. Keys of well-known domains stay.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (before, word, after) = next_word(rest);
            out.push_str(before);
            out.push_str(self.numbers.get(word).map_or(word, |number| number));
            rest = after;
        }
        out
    }

    /// Replaces the names of objects.
    pub(super) fn objects(&self, objects: &[Value]) -> Vec<Value> {
        let replaced = |object: &Value| {
            let changed = visit(object, &mut |text, _| Some(self.text(text)));
            changed.unwrap_or(Value::Null)
        };
        without_patterns(objects).iter().map(replaced).collect()
    }
}

/// Pattern that compiles nowhere. It comes in the place of one that does not compile.
const BAD_PATTERN: &str = "(";

/// Returns the objects with the nodes that a pattern of a HyperNode selects in its place: a pattern for
/// names is none for their numbers.
fn without_patterns(objects: &[Value]) -> Vec<Value> {
    let is_node = |object: &&Value| object["kind"] == "Node";
    let nodes = objects.iter().filter(is_node).filter_map(|node| node["metadata"]["name"].as_str());
    let nodes: Vec<&str> = nodes.collect();
    let mut objects = objects.to_vec();
    for object in objects.iter_mut().filter(|object| object["kind"] == "HyperNode") {
        let members = object["spec"]["members"].as_array_mut();
        let Some(members) = members else { continue };
        *members = members.drain(..).flat_map(|member| select_by_name(member, &nodes)).collect();
    }
    objects
}

/// Returns a member by name for each node that the pattern of this member selects. A member without a
/// pattern stays.
fn select_by_name(mut member: Value, nodes: &[&str]) -> Vec<Value> {
    let Some(pattern) = member["selector"]["regexMatch"]["pattern"].as_str() else {
        return vec![member];
    };
    let Ok(pattern) = NodePattern::new(pattern) else {
        member["selector"]["regexMatch"]["pattern"] = BAD_PATTERN.into();
        return vec![member];
    };
    let by_name = |node: &&str| json!({"type": "Node", "selector": {"exactMatch": {"name": node}}});
    nodes.iter().filter(|node| pattern.matches(node)).map(by_name).collect()
}

/// Collects the words of the names of resources.
fn resource_words(value: &Value, words: &mut BTreeSet<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|value| resource_words(value, words)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_object().filter(|_| AMOUNTS.contains(&&**name)) {
                    Some(amounts) => amounts.keys().for_each(|name| words.extend(words_of(name))),
                    None => resource_words(value, words),
                }
            }
        }
        _ => {}
    }
}

/// Numbers the words that are not kept, in their order, each behind the kept word that comes before it.
fn numbered(
    words: &BTreeSet<String>,
    is_kept: impl Fn(&String) -> bool,
) -> BTreeMap<String, String> {
    let mut numbers = BTreeMap::new();
    // Equally many digits everywhere: numbers are compared as texts.
    let width = words.len().to_string().len().max(6);
    let mut last_kept = "";
    for word in words {
        if is_kept(word) {
            last_kept = word;
            continue;
        }
        let first = if word.starts_with(|c: char| c.is_ascii_uppercase()) { "A" } else { "a" };
        let before = last_kept.max(first);
        let number = numbers.len() + 1;
        numbers.insert(word.clone(), format!("{before}0{number:0width$}"));
    }
    numbers
}

/// Cuts a text into what is before its first word, that word, and what is behind it. A word begins with
/// a letter.
fn next_word(text: &str) -> (&str, &str, &str) {
    let start = text.find(char::is_alphabetic).unwrap_or(text.len());
    let (before, rest) = text.split_at(start);
    let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    (before, word, after)
}

pub(crate) fn for_words(text: &str, mut each: impl FnMut(&str)) {
    let mut rest = text;
    while !rest.is_empty() {
        let (_, word, after) = next_word(rest);
        if !word.is_empty() {
            each(word);
        }
        rest = after;
    }
}

/// Returns the words of a text.
pub(crate) fn words_of(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for_words(text, |word| {
        words.insert(word.to_owned());
    });
    words
}

/// True for a key whose value is a number, a duration, or a word of a list.
pub(crate) fn is_setting_key(key: &str) -> bool {
    SETTINGS.iter().any(|setting| key.starts_with(setting))
}

/// Returns the words of the value of a setting: those that stay, and names. The keys of an object
/// in JSON are names: of groups of nodes, or of resources.
pub(crate) fn setting_words(text: &str) -> [BTreeSet<String>; 2] {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => {
            let kept = fields.values().flat_map(|value| words_of(&value.to_string())).collect();
            [kept, fields.keys().flat_map(|key| words_of(key)).collect()]
        }
        _ => [words_of(text), BTreeSet::new()],
    }
}

/// Shows every name of an object to `each`. Returns the object with what `each` returned in place of the
/// names. Returns `None` if it returned nothing.
fn visit(object: &Value, each: Each<'_>) -> Option<Value> {
    match object {
        Value::String(text) => each(text, TextKind::Name).map(Value::from),
        Value::Array(list) => {
            list.iter().map(|it| visit(it, each)).collect::<Option<Vec<_>>>().map(Value::from)
        }
        Value::Object(fields) => visit_fields(fields, each).map(Value::Object),
        other => Some(other.clone()),
    }
}

fn visit_fields(fields: &Map<String, Value>, each: Each<'_>) -> Option<Map<String, Value>> {
    let mut changed = Map::new();
    let mut is_whole = true;
    for (name, value) in fields {
        let is_text = value.is_string();
        let value = match &**name {
            // Messages are written anew, and nothing is decided by them.
            "message" => continue,
            name if is_text && KEPT_FIELDS.contains(&name) => Some(value.clone()),
            name if AMOUNTS.contains(&name) => Some(value.clone()),
            name if NAMED.contains(&name) => visit_named(value, each),
            "key" | "topologyKey" => visit_key(value, each),
            "matchLabelKeys" => {
                let keys = value.as_array().into_iter().flatten();
                keys.map(|key| visit_key(key, each)).collect::<Option<Vec<_>>>().map(Value::from)
            }
            _ => visit(value, each),
        };
        match value {
            Some(value) => drop(changed.insert(name.clone(), value)),
            None => is_whole = false,
        }
    }
    is_whole.then_some(changed)
}

/// A map whose keys are names, too.
fn visit_named(map: &Value, each: Each<'_>) -> Option<Value> {
    let mut changed = Map::new();
    let mut is_whole = true;
    for (key, value) in map.as_object().into_iter().flatten() {
        let is_setting = is_setting_key(key);
        let value = match value {
            Value::String(text) if is_setting => each(text, TextKind::Setting).map(Value::from),
            value => visit(value, each),
        };
        let key = visit_key(&Value::from(&**key), each);
        match (key, value) {
            (Some(Value::String(key)), Some(value)) => drop(changed.insert(key, value)),
            _ => is_whole = false,
        }
    }
    is_whole.then_some(Value::Object(changed))
}

/// A key of labels or annotations. It stays if it is one of a setting or of a well-known domain.
fn visit_key(key: &Value, each: Each<'_>) -> Option<Value> {
    let text = key.as_str().unwrap_or_default();
    let domain = text.split_once('/').map_or("", |(domain, _)| domain);
    let is_known = |known: &str| domain == known || domain.ends_with(&format!(".{known}"));
    if is_setting_key(text) || DOMAINS.iter().any(|known| is_known(known)) {
        return Some(key.clone());
    }
    each(text, TextKind::Name).map(Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_102_nodes_come_in_the_place_of_patterns() {
        let node = |name: &str| json!({"kind": "Node", "metadata": {"name": name}});
        let member = |pattern: &str| json!({"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}});
        let rack = json!({"kind": "HyperNode", "metadata": {"name": "rack"},
            "spec": {"tier": 1, "members": [member("^a\\d$"), member("[")]}});
        let objects = [node("a1"), node("a2"), node("b1"), rack];
        let names = NameMap::of(&objects, &BTreeSet::new());
        let written = names.objects(&objects);
        let members = &written[3]["spec"]["members"];
        for (place, node) in written[..2].iter().enumerate() {
            let selected = &members[place]["selector"]["exactMatch"]["name"];
            assert_eq!(*selected, node["metadata"]["name"], "{members}");
        }
        assert_eq!(members[2]["selector"]["regexMatch"]["pattern"], "(");
        assert_eq!(members.as_array().map(Vec::len), Some(3));
    }

    #[test]
    fn ans_102_words_are_numbered_in_their_order_and_numbers_stay() {
        let pod = |name: &str, labels: Value| {
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name,
                "namespace": "default", "labels": labels}})
        };
        let labels = json!({"acme.com/team": "vision", "kubernetes.io/arch": "amd64"});
        let objects = [pod("zoo-worker-3", labels), pod("alpha-0", json!({}))];
        let names = NameMap::of(&objects, &BTreeSet::new());
        let texts = ["alpha-0", "default", "zoo-worker-3", "3d4-5", "acme.com/team"];
        let texts = texts.map(|text| names.text(text));
        assert_eq!(texts[0], "a0000002-0");
        assert_eq!(texts[1], "default", "a word of Kubernetes");
        assert_eq!(texts[2], "default0000007-default0000006-3");
        assert_eq!(texts[3], "3d4-5", "not a name of these objects");
        assert!(texts.is_sorted_by(|l, r| l <= r || r.starts_with('3') || r.starts_with('a')));
        let written = names.objects(&objects);
        let team = "a0000001.com/default0000004";
        assert_eq!(written[0]["metadata"]["labels"][team], "default0000005");
        assert_eq!(written[0]["metadata"]["labels"]["kubernetes.io/arch"], "a0000003");
        assert_eq!(written[1]["kind"], "Pod");
    }

    #[test]
    fn ans_102_settings_stay_and_other_values_of_their_domains_do_not() {
        let group = |name: &str, annotations: Value| {
            let metadata = json!({"name": name, "annotations": annotations});
            json!({"kind": "PodGroup", "metadata": metadata})
        };
        let limits = r#"{"apollo": {"cpu": "4", "memory": "8Gi"}}"#;
        let settings = json!({"sla-waiting-time": "10m", "kueue.x-k8s.io/queue-name": "apollo-llm",
            "kueue.x-k8s.io/max-exec-time-seconds": "60",
            "volcano.sh/nodegroup-resource-limits": limits});
        // Names with the words of settings.
        let objects = [group("bert-m", settings), group("Gi", json!({}))];
        let names = NameMap::of(&objects, &BTreeSet::new());
        let written = names.objects(&objects);
        let annotations = &written[0]["metadata"]["annotations"];
        assert_eq!(annotations["sla-waiting-time"], "10m", "{annotations}");
        assert_eq!(annotations["kueue.x-k8s.io/max-exec-time-seconds"], "60");
        let limits = annotations["volcano.sh/nodegroup-resource-limits"].as_str().unwrap();
        assert!(limits.ends_with(r#""8Gi"}}"#), "{limits}");
        for name in ["apollo", "llm", "bert"] {
            assert!(!written[0].to_string().contains(name), "{name} in {}", written[0]);
        }
        assert_eq!(written[1]["metadata"]["name"], "Gi");
    }
}
