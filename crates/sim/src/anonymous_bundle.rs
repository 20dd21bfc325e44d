//! A bundle with numbers in place of names, which decides the same. Specification: answers.md 15
//! (ANS-102).
//!
//! Exact because
//! - texts are replaced word by word as in a scenario, the same word everywhere;
//! - a word that stays at one place stays at every place, so all words keep their order;
//! - [`Bundle::renamed`] decides both bundles and compares them.
//!
//! `objects.yaml` is made anew, from the last state in which the names are replaced.
//!
//! Texts that differ only in characters between their words, such as `:` and `_`, may change their
//! order. The comparison shows whether that changes a decision.

mod settings;

use std::cell::RefCell;
use std::collections::BTreeSet;

use vc_bundle::{Bundle, BundleError, Replay, TextPlace};
use vc_engine::Effect;
use vc_model::NodePattern;

use crate::bundle_objects::{add_objects, new_archive};
use crate::scenario::anonymous::{DOMAINS, NameMap, WORDS, for_words};

/// Fields with a word of a list of the API, a time, or an id of this scheduler.
const KEPT_FIELDS: &[&str] = &[
    "charge",
    "controller_kind",
    "cpu_manager_policy",
    "effect",
    "kind",
    "last_transition_time",
    "policy",
    "reason",
    "status",
    "topology_manager_policy",
    "transition_id",
];

/// Fields with amounts by resource. The names of resources stay.
const AMOUNTS: &[&str] = &[
    "allocatable",
    "allocated",
    "capability",
    "capacity",
    "deserved",
    "guarantee",
    "hard",
    "limits",
    "list",
    "min_resources",
    "overhead",
    "pod_limits",
    "pod_requests",
    "requests",
    "resource",
    "status_allocated",
    "used",
    "weights",
    "written_allocated",
];

/// Further domains of labels and annotations that the scheduler reads.
const MORE_DOMAINS: &[&str] =
    &["csi.aws.com", "csi.openstack.org", "gke.io", "hami.io", "huawei.com"];

/// Further words that the scheduler knows: of drivers, devices, images and fields, and those that
/// its messages and the annotations of its binds have most often.
const MORE_WORDS: &[&str] = &[
    "Ascend310P",
    "GPU",
    "NVIDIA",
    "UNSPECIFIED",
    "UUID",
    "allocating",
    "aws",
    "azure",
    "c",
    "cinder",
    "core",
    "csi",
    "disk",
    "disks",
    "dvpp",
    "ebs",
    "gke",
    "group",
    "hostpath",
    "job",
    "latest",
    "local",
    "memory",
    "metadata",
    "name",
    "ndvpp",
    "null",
    "of",
    "openstack",
    "org",
    "path",
    "pd",
    "pod",
    "pods",
    "projects",
    "queue",
    "rancher",
    "region",
    "regions",
    "storage",
    "task",
    "temp",
    "topology",
    "unbound",
    "unknown",
    "vir01",
    "vir02",
    "vir04",
    "vol",
    "volume",
    "zone",
    "zones",
];

/// Functions of CEL whose argument in quotes is no name, but an amount or a version.
const AMOUNT_CALLS: &[&str] = &["quantity(", "isQuantity(", "semver(", "isSemver("];

/// Pattern that selects no node.
const NO_NODE: &str = "^$";

/// The meaning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextMeaning {
    /// Names, and whatever else comes from users.
    Name,
    /// Words that stay.
    Word,
    /// A text that this scheduler has written for people.
    Message,
    /// A CEL expression. What is in quotes in it is a name.
    Expression,
    /// A text that is made anew.
    Unread,
}

/// The words of a bundle.
#[derive(Default)]
struct BundleWords {
    names: BTreeSet<String>,
    messages: BTreeSet<String>,
    kept: BTreeSet<String>,
    /// Names of nodes.
    nodes: BTreeSet<String>,
    /// The key of the next text. `None` if no words of its value are known.
    key: Option<String>,
}

/// Returns an archive of a bundle as an archive without names.
///
/// # Errors
/// It is no bundle, or it is decided otherwise without names; the text says why.
pub fn anonymous_archive(contents: &[u8]) -> Result<Vec<u8>, String> {
    new_archive(|| anonymous_bundle(&Bundle::read(contents)?))
}

/// Returns the archive of a bundle without names.
///
/// # Errors
/// The bundle cannot be read, or it is decided otherwise without names.
pub fn anonymous_bundle(bundle: &Bundle) -> Result<Vec<u8>, BundleError> {
    let words = BundleWords::of(bundle)?;
    let names = words.numbers();
    let change = |place: TextPlace, text: &str| -> Option<String> {
        let is_pattern = (place.owner, place.field) == ("HyperNodeMember", "Pattern");
        Some(if is_pattern { words.pattern(text, &names) } else { names.text(text) })
    };
    let mut renamed = bundle.renamed(&change, &|name: &str| names.text(name))?;
    add_objects(&mut renamed)?;
    let mut archive = Vec::new();
    renamed.write(&mut archive)?;
    Ok(archive)
}

impl BundleWords {
    fn of(bundle: &Bundle) -> Result<Self, BundleError> {
        let words = RefCell::new(Self::default());
        bundle.show_texts(&|place: TextPlace, text: &str| words.borrow_mut().note(place, text))?;
        let mut words = words.into_inner();
        words.keep_vocabulary(bundle)?;
        Ok(words)
    }

    fn note(&mut self, place: TextPlace, text: &str) {
        let key = self.key.take().filter(|_| !place.is_key);
        if place.is_key {
            self.note_key(text);
        }
        let meaning = meaning(place);
        if meaning != TextMeaning::Unread {
            self.keep_known(text);
        }
        match meaning {
            TextMeaning::Name => match key {
                Some(key) => {
                    let [mut kept, mut names] = settings::words_of_value(&key, text);
                    self.kept.append(&mut kept);
                    self.names.append(&mut names);
                }
                None => add_words(text, &mut self.names),
            },
            TextMeaning::Word => add_words(text, &mut self.kept),
            TextMeaning::Message => add_words(text, &mut self.messages),
            TextMeaning::Expression => self.note_expression(text),
            TextMeaning::Unread => {}
        }
        if matches!((place.owner, place.field), ("Node" | "NodeRecord", "name")) {
            self.nodes.insert(text.to_owned());
        }
    }

    fn note_key(&mut self, key: &str) {
        if settings::is_known_key(key) {
            add_words(key, &mut self.kept);
        }
        self.key = settings::has_known_words(key).then(|| key.to_owned());
    }

    /// What is in quotes is a name, unless a function reads it as an amount or a version.
    fn note_expression(&mut self, text: &str) {
        let mut before = "";
        for (index, part) in text.split(['"', '\'']).enumerate() {
            let is_amount = AMOUNT_CALLS.iter().any(|call| before.trim_end().ends_with(call));
            let is_name = index % 2 == 1 && !is_amount;
            add_words(part, if is_name { &mut self.names } else { &mut self.kept });
            before = part;
        }
    }

    /// Keeps labels and annotations of well-known domains.
    fn keep_known(&mut self, text: &str) {
        if !text.contains('/') {
            return;
        }
        let is_end = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '.' | '_' | '/');
        for key in text.split(is_end) {
            if key.split_once('/').is_some_and(|(domain, _)| is_known(domain)) {
                add_words(key, &mut self.kept);
            }
        }
    }

    /// Keeps the words that the engine writes and no name has, so that messages of the state are
    /// those that are written again.
    fn keep_vocabulary(&mut self, bundle: &Bundle) -> Result<(), BundleError> {
        // Without its messages a bundle has those alone that the engine writes once more.
        let silence = |place: TextPlace, _: &str| -> Option<String> {
            (meaning(place) == TextMeaning::Message).then(String::new)
        };
        let silent = bundle.renamed(&silence, &|name: &str| name.to_owned())?;
        let mut replay = Replay::new(&silent, None)?;
        let mut words = BTreeSet::new();
        while let Some(step) = replay.step() {
            step.effects.iter().for_each(|effect| add_message(effect, &mut words));
        }
        words.retain(|word| !self.names.contains(word));
        self.kept.append(&mut words);
        Ok(())
    }

    fn numbers(&self) -> NameMap {
        let all = self.names.iter().chain(&self.messages).chain(&self.kept);
        let all: BTreeSet<String> = all.cloned().collect();
        NameMap::of_words(&all, |word| {
            let is_in = |list: &[&str]| list.contains(&word.as_str());
            is_in(WORDS) || is_in(MORE_WORDS) || self.kept.contains(word)
        })
    }

    /// Returns a pattern that selects the numbers of the nodes that this pattern selects.
    fn pattern(&self, text: &str, names: &NameMap) -> String {
        let Ok(pattern) = NodePattern::new(text) else { return NO_NODE.to_owned() };
        let selected = self.nodes.iter().filter(|node| pattern.matches(node));
        let selected: Vec<String> =
            selected.map(|node| names.text(node).replace('.', "\\.")).collect();
        match selected.is_empty() {
            true => NO_NODE.to_owned(),
            false => format!("^(?:{})$", selected.join("|")),
        }
    }
}

fn add_message(effect: &Effect, into: &mut BTreeSet<String>) {
    match effect {
        Effect::PodCondition { condition, .. } => add_words(&condition.message, into),
        Effect::PodGroupStatus { status, .. } => {
            status.conditions.iter().for_each(|condition| add_words(&condition.message, into));
        }
        Effect::Event { message, .. } => add_words(message, into),
        _ => {}
    }
}

fn add_words(text: &str, into: &mut BTreeSet<String>) {
    for_words(text, |word| {
        if !into.contains(word) {
            into.insert(word.to_owned());
        }
    });
}

fn is_known(domain: &str) -> bool {
    let is_below = |known: &str| {
        domain.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    DOMAINS.iter().chain(MORE_DOMAINS).any(|known| is_below(known))
}

fn meaning(place: TextPlace) -> TextMeaning {
    let TextPlace { owner, field, is_key, is_conf } = place;
    match (owner, field) {
        _ if is_conf || is_resource(place) || KEPT_FIELDS.contains(&field) => TextMeaning::Word,
        ("HyperNodeMember", "Pattern") | ("RecordedInput", "effect_lines") => TextMeaning::Unread,
        ("DeviceClass" | "ExactRequest", "selectors") => TextMeaning::Expression,
        ("ReportThrottle", "sent") | ("Checkpoint", "not_written") if !is_key => {
            TextMeaning::Message
        }
        ("JobBudget" | "NodeGroupLimits", "Unreadable") => TextMeaning::Message,
        (
            _,
            "error" | "example" | "field_problems" | "invalid" | "known" | "message" | "problem",
        ) => TextMeaning::Message,
        _ => TextMeaning::Name,
    }
}

/// True for the name of a resource.
fn is_resource(place: TextPlace) -> bool {
    let TextPlace { owner, field, is_key, .. } = place;
    match owner {
        "Dims" | "ReportedStatus" => true,
        // Names of requests and of containers.
        "DeviceConfig" | "DeviceConstraint" | "NumaDemand" => false,
        "DeviceDemand" => matches!(field, "containers" | "init_containers"),
        "NodeGroupLimits" => field == "ByGroup" && !is_key,
        _ => AMOUNTS.contains(&field),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(owner: &'static str, field: &'static str, is_key: bool) -> TextPlace {
        TextPlace { owner, field, is_key, is_conf: false }
    }

    fn noted(texts: &[(TextPlace, &str)]) -> BundleWords {
        let mut words = BundleWords::default();
        texts.iter().for_each(|&(place, text)| words.note(place, text));
        words
    }

    #[test]
    fn ans_102_numbers_have_the_order_of_names_between_words_that_stay() {
        let name = place("ObjectKey", "name", false);
        let names = ["alpha-0", "beta-team", "default", "gamma", "job-2", "lambda.x", "zoo-10"];
        let mut texts = names.map(|text| (name, text)).to_vec();
        // The key and the resource stay wherever they are.
        texts.push((place("PodRecord", "labels", true), "kubernetes.io/gamma"));
        texts.push((place("Dims", "names", false), "acme.com/lambda"));
        let map = noted(&texts).numbers();
        let numbers = names.map(|text| map.text(text));
        assert!(numbers.is_sorted(), "{numbers:?}");
        let kept = [&numbers[2], &numbers[3], &map.text("acme.com/lambda")];
        assert_eq!(kept, ["default", "gamma", "acme.com/lambda"]);
        for (number, name) in [(&numbers[0], "alpha"), (&numbers[1], "team"), (&numbers[6], "zoo")]
        {
            assert!(!number.contains(name), "{number}");
        }
        assert!(numbers[0].ends_with("-0") && numbers[6].ends_with("-10"), "{numbers:?}");
        assert!(numbers[4].starts_with("job-2"), "{numbers:?}");
        assert_eq!(map.text("alpha"), map.text("alpha-0").trim_end_matches("-0"), "equal names");
    }

    #[test]
    fn ans_102_places_decide_which_texts_are_names() {
        let key = place("PodRecord", "annotations", true);
        let value = place("PodRecord", "annotations", false);
        let words = noted(&[
            (key, "sla-waiting-time"),
            (value, "10m"),
            (key, "acme.com/team"),
            (value, "vision"),
            (key, "kueue.x-k8s.io/queue-name"),
            (value, "apollo"),
            (place("ExactRequest", "selectors", false), "device.driver == 'gpu.acme.com'"),
            (place("DeviceClass", "selectors", false), "x.compareTo(quantity(\"40Gi\")) >= 0"),
            (place("PodCondition", "message", false), "3 nodes are full"),
            (place("ClusterEvent", "error", false), "admission denied"),
            (place("Checkpoint", "not_written", false), "webhook refused"),
            (place("Checkpoint", "not_written", true), "uid"),
            (place("JobBudget", "Unreadable", false), "half"),
            (place("NodeGroupLimits", "Unreadable", false), "JSON"),
            (place("HyperNodeRecord", "field_problems", false), "tier"),
            (place("PodCondition", "reason", false), "Unschedulable"),
            (place("ContainerRecord", "requests", false), "acme.com/npu"),
            (place("RecordedInput", "effect_lines", false), "bind ml/train to secret"),
        ]);
        for (word, is_name, is_kept) in [
            ("m", false, true),
            ("sla", true, true),
            ("apollo", true, false),
            ("Gi", false, true),
            ("vision", true, false),
            ("driver", false, true),
            ("gpu", true, false),
            ("full", false, false),
            ("denied", false, false),
            ("webhook", false, false),
            ("uid", true, false),
            ("half", false, false),
            ("JSON", false, false),
            ("tier", false, false),
            ("Unschedulable", false, true),
            ("npu", false, true),
            ("secret", false, false),
        ] {
            let found = (words.names.contains(word), words.kept.contains(word));
            assert_eq!(found, (is_name, is_kept), "{word}");
        }
        assert!(words.messages.contains("full"));
    }

    #[test]
    fn ans_102_a_pattern_selects_the_numbers_of_its_nodes() {
        let node = place("NodeRecord", "name", false);
        let words = noted(&[(node, "rack1.a"), (node, "rack2.a"), (node, "other")]);
        let names = words.numbers();
        let pattern = NodePattern::new(&words.pattern("^rack\\d", &names)).unwrap();
        for (name, is_selected) in [("rack1.a", true), ("rack2.a", true), ("other", false)] {
            assert_eq!(pattern.matches(&names.text(name)), is_selected, "{name}");
        }
        assert!(!pattern.matches(&format!("{}x", names.text("rack1.a"))));
        assert_eq!(words.pattern("^nothing", &names), NO_NODE);
    }
}
