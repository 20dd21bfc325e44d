//! The usage that `fairshare` saves in stories that keep it: neither lost nor counted twice, whoever leads. Each text
//! that is saved is compared with the one that its writer began with or saved last. Specification: fair-share.md 11.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use vc_model::SavedUsage;
use vc_wire::read_usage;

use super::check::{cpu_milli, held_by_ours};
use super::world::found;
use crate::serve::{DeleteOptions, Key, Object, PODS, Refused, ServedKind, Store};

/// Namespace of the ConfigMap.
const NAMESPACE: &str = "volcano-system";
/// Name of the ConfigMap.
const NAME: &str = "fairshare-usage-state";
/// A key of somebody else in the ConfigMap.
const NOTE: &str = "note";
/// Half-life of usage in microseconds, as in the configuration of these stories.
const HALF_LIFE_MICROS: f64 = 3_600e6;
/// A leader may charge a pod for so long after its end, because it has not seen that.
const UNSEEN_MICROS: i64 = 180_000_000;
/// A clock may go forward by so much between two cycles.
const CLOCK_STEP_MICROS: i64 = 1_800_000_000;
/// Least difference that counts, in cpu times seconds.
const LEAST: f64 = 0.1;

/// Usage by queue and account, in milli cpu times seconds.
type Amounts = BTreeMap<(Arc<str>, Arc<str>), f64>;

/// A saved text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct UsageText {
    time_micros: i64,
    amounts: Amounts,
    /// Key of somebody else. `None`: it is not there.
    note: Option<String>,
}

/// When a pod was there, and what it asks for.
struct PodLife {
    cpu_milli: f64,
    since_micros: i64,
    /// `None`: it is still there.
    until_micros: Option<i64>,
}

/// Looks at what is saved.
pub(super) struct UsageWitness {
    /// Of each life of a process: the text that it has begun with or saved last.
    known: BTreeMap<Arc<str>, UsageText>,
    /// Lives that have read the ConfigMap, or saved.
    readers: BTreeSet<Arc<str>>,
    /// By uid.
    pods: BTreeMap<String, PodLife>,
    /// The clocks of all processes are right.
    has_true_clocks: bool,
    /// What somebody else has written into the ConfigMap. `None`: nothing that must still be there.
    note: Option<String>,
    /// Who has saved last. `None`: nobody has, or somebody else has deleted it.
    saver: Option<Arc<str>>,
    violations: Vec<String>,
}

/// Returns the kind of a ConfigMap.
fn config_maps() -> &'static ServedKind {
    ServedKind::of("v1", "ConfigMap").expect("the server has config maps")
}

/// True for the path of the ConfigMap, or of a new one.
pub(super) fn is_path(path: &str) -> bool {
    path.contains("/configmaps") && path.contains(NAMESPACE)
}

/// Returns the text that is stored.
pub(super) fn stored(store: &Store) -> UsageText {
    let map = store.get(config_maps(), NAMESPACE, NAME);
    map.map(|map| UsageText::of(&map.value)).unwrap_or_default()
}

/// Returns what a process reads that begins to lead now.
pub(super) fn to_read(store: &Store) -> Option<Arc<SavedUsage>> {
    let map = store.get(config_maps(), NAMESPACE, NAME)?;
    read_usage(&texts(&map.value)).usage.map(Arc::new)
}

/// Returns a text if what is saved at rest is not what pods hold. `None`: the last change was saved.
pub(super) fn unsaved(store: &Store) -> Option<String> {
    let saved = to_read(store);
    let rates = saved.iter().flat_map(|usage| &usage.accounts).map(|account| account.rate);
    let (saved, held) = (rates.sum::<i128>(), held_by_ours(store));
    (saved != held)
        .then(|| format!("I5: the usage that is saved grows by {saved}m cpu, not {held}m"))
}

/// Returns the texts of a ConfigMap by key.
fn texts(map: &Value) -> BTreeMap<String, String> {
    let data = map["data"].as_object().into_iter().flatten();
    data.filter_map(|(key, text)| Some((key.clone(), text.as_str()?.to_owned()))).collect()
}

impl UsageText {
    fn of(map: &Value) -> Self {
        let data = texts(map);
        let note = data.get(NOTE).cloned();
        // The text of Volcano says what has been used; the exact one is checked by its reader.
        let exact = data.get("exact.json").cloned().unwrap_or_default();
        let state = data.into_iter().filter(|(key, _)| key == "state.json").collect();
        let time = read_usage(&[("exact.json".to_owned(), exact)].into()).usage;
        let usage = read_usage(&state).usage.unwrap_or_default();
        let amount = |it: &vc_model::SavedAccount| {
            ((it.queue.clone(), it.account.clone()), it.decayed_micros as f64 / 1e6)
        };
        Self {
            time_micros: time.map_or(usage.time_micros, |it| it.time_micros),
            amounts: usage.accounts.iter().map(amount).collect(),
            note,
        }
    }

    /// Returns what a usage in this text has decayed to at a later time.
    fn faded(&self, amount: f64, time_micros: i64, slack_micros: i64) -> f64 {
        let passed = (time_micros - self.time_micros).max(0) + slack_micros;
        amount * (-passed as f64 / HALF_LIFE_MICROS).exp2()
    }

    fn sum(&self) -> f64 {
        self.amounts.values().sum()
    }
}

impl UsageWitness {
    pub(super) fn new() -> Self {
        Self {
            known: BTreeMap::new(),
            readers: BTreeSet::new(),
            pods: BTreeMap::new(),
            has_true_clocks: true,
            note: None,
            saver: None,
            violations: Vec::new(),
        }
    }

    /// A life of a process begins to lead.
    pub(super) fn begins_with(&mut self, process: &Arc<str>, text: UsageText) {
        self.known.entry(process.clone()).or_insert(text);
    }

    /// A life of a process has read the ConfigMap, perhaps before it begins to lead.
    pub(super) fn read(&mut self, process: &Arc<str>, text: UsageText) {
        self.begins_with(process, text);
        self.readers.insert(process.clone());
    }

    /// The clock of a process is set.
    pub(super) fn clock_is_set(&mut self) {
        self.has_true_clocks = false;
    }

    /// The server has begun anew. What is saved next may be newer than what is stored, and is not compared.
    pub(super) fn restored(&mut self) {
        self.known.clear();
        self.note = None;
        self.saver = None;
    }

    /// Somebody else has written this note into the ConfigMap, or has deleted it. Who could not read it before cannot
    /// know what it said.
    pub(super) fn others_wrote(&mut self, note: Option<&str>) {
        if note.is_none() {
            let unread = self.known.iter_mut().filter(|(life, _)| !self.readers.contains(*life));
            unread.for_each(|(_, text)| *text = UsageText::default());
        }
        self.note = note.map(str::to_owned);
        self.saver = self.saver.take().filter(|_| note.is_some());
    }

    /// Returns the violations so far, and forgets them.
    pub(super) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.violations)
    }

    /// Takes note of all pods that there are.
    pub(super) fn note_pods(&mut self, store: &Store, now_micros: i64) {
        for pod in self.pods.values_mut() {
            pod.until_micros.get_or_insert(now_micros);
        }
        for pod in store.list(&PODS, None).objects {
            self.note_pod(&pod, now_micros, false);
        }
    }

    /// Takes note of a pod.
    pub(super) fn note_pod(&mut self, pod: &Object, now_micros: i64, is_gone: bool) {
        let life = self.pods.entry(pod.uid().to_owned()).or_insert_with(|| PodLife {
            cpu_milli: cpu_milli(&pod.value) as f64,
            since_micros: now_micros,
            until_micros: None,
        });
        life.until_micros = is_gone.then_some(now_micros);
    }

    /// True if this process has saved last. What it saves after its begin is all that it has charged since.
    pub(super) fn is_saver(&self, process: &str) -> bool {
        self.saver.as_deref() == Some(process)
    }

    /// Looks at a text that a process has saved.
    pub(super) fn saved(&mut self, process: &Arc<str>, text: UsageText) {
        if self.note.is_some() && self.note != text.note {
            let note = &text.note;
            self.violations.push(format!("I10: {process} leaves {note:?} of a key of others"));
        }
        self.saver = Some(process.clone());
        self.readers.insert(process.clone());
        let before = self.known.insert(process.clone(), text.clone());
        let Some(before) = before else { return };
        self.violations.extend(self.lost(process, &before, &text));
        self.violations.extend(self.counted_twice(process, &before, &text));
    }

    fn lost(&self, process: &str, before: &UsageText, text: &UsageText) -> Vec<String> {
        let slack = if self.has_true_clocks { 0 } else { CLOCK_STEP_MICROS };
        let lost = |((queue, account), amount): (&(Arc<str>, Arc<str>), &f64)| {
            let least = before.faded(*amount, text.time_micros, slack);
            let key = (queue.clone(), account.clone());
            let saved = text.amounts.get(&key).copied().unwrap_or(0.0);
            (saved + LEAST < least).then(|| {
                format!(
                    "I5: {process} saves {saved:.1} as usage of {account} in queue {queue}, of {least:.1} \
                     that was saved before"
                )
            })
        };
        before.amounts.iter().filter_map(lost).collect()
    }

    fn counted_twice(&self, process: &str, before: &UsageText, text: &UsageText) -> Option<String> {
        let (since, until) = (before.time_micros, text.time_micros);
        // Without a text of before, running pods are charged from their start.
        let used: f64 = self.pods.values().map(|pod| pod.used(since, until)).sum();
        let most = before.faded(before.sum(), until, 0) + used;
        let saved = text.sum();
        (self.has_true_clocks && most + LEAST < saved).then(|| {
            let before = before.sum();
            format!(
                "I5: {process} saves usage {saved:.1}, after {before:.1}, to which pods can have added \
                 {used:.1}"
            )
        })
    }
}

impl PodLife {
    /// Returns the most that the pod can have used between these times, in milli cpu times seconds.
    fn used(&self, since: i64, until: i64) -> f64 {
        let end = self.until_micros.map_or(until, |it| it.saturating_add(UNSEEN_MICROS).min(until));
        let micros = (end - self.since_micros.max(since)).max(0);
        self.cpu_milli * micros as f64 / 1e6
    }
}

/// Somebody else writes a key of his own into the ConfigMap. Returns false if there is none.
///
/// # Errors
/// The object is refused, which is a fault of this module.
pub(super) fn write_note(store: &Store, text: &str) -> Result<bool, Refused> {
    if store.get(config_maps(), NAMESPACE, NAME).is_none() {
        return Ok(false);
    }
    let written = store.update(config_maps(), &Key::new(NAMESPACE, NAME), |map| {
        map["data"][NOTE] = json!(text);
        Ok(())
    });
    found(written.map(drop)).map(|()| true)
}

/// Somebody else deletes the ConfigMap.
///
/// # Errors
/// The object is refused, which is a fault of this module.
pub(super) fn delete(store: &Store) -> Result<(), Refused> {
    let key = Key::new(NAMESPACE, NAME);
    found(store.delete(config_maps(), &key, &DeleteOptions::default()).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::{LOG_CAPACITY, in_process};

    /// A minute in microseconds.
    const MINUTE: i64 = 60_000_000;

    fn text(minutes: i64, amount: f64) -> UsageText {
        let amounts = Amounts::from([(("default".into(), "ns".into()), amount)]);
        UsageText { time_micros: minutes * MINUTE, amounts, note: None }
    }

    /// Returns what is found when a process saves the second text after the first one, while a pod of one cpu runs.
    fn found(before: UsageText, after: UsageText, has_true_clocks: bool) -> Vec<String> {
        let mut witness = UsageWitness { has_true_clocks, ..UsageWitness::new() };
        let pod = PodLife { cpu_milli: 1_000.0, since_micros: 0, until_micros: None };
        witness.pods.insert("uid".to_owned(), pod);
        let process: Arc<str> = "a".into();
        witness.begins_with(&process, before);
        witness.saved(&process, after);
        witness.take()
    }

    #[test]
    fn usage_that_is_lost_or_counted_twice_is_found() {
        let faded = (-1.0_f64 / 60.0).exp2();
        let (least, most) = (9_000.0 * faded, 9_000.0 * faded + 60_000.0);
        for (amount, expected) in [
            (least - 1.0, Some("I5: a saves ")),
            (least, None),
            (most, None),
            (most + 1.0, Some("I5: a saves usage ")),
        ] {
            let found = found(text(1, 9_000.0), text(2, amount), true);
            let is_expected = |text: &String| expected.is_some_and(|it| text.starts_with(it));
            assert_eq!(found.len(), usize::from(expected.is_some()), "{amount}: {found:?}");
            assert!(found.iter().all(is_expected), "{amount}: {found:?}");
        }
        assert_eq!(found(text(1, 9_000.0), text(2, most + 1.0), false), [""; 0]);
        assert_eq!(found(text(1, 9_000.0), text(2, 9_000.0 / 2.0), false).len(), 1);
    }

    #[test]
    fn what_others_delete_before_it_was_read_is_not_lost() {
        for (reads, n_lost) in [(false, 0), (true, 1)] {
            let mut witness = UsageWitness::new();
            let process: Arc<str> = "a".into();
            witness.begins_with(&process, text(1, 9_000.0));
            if reads {
                witness.read(&process, text(1, 9_000.0));
            }
            witness.others_wrote(None);
            witness.saved(&process, text(2, 0.0));
            assert_eq!(witness.take().len(), n_lost, "{reads}");
        }
    }

    #[test]
    fn a_note_of_others_must_stay() {
        let mut witness = UsageWitness::new();
        witness.others_wrote(Some("x"));
        let with_note = |note: &str| UsageText { note: Some(note.to_owned()), ..text(1, 1.0) };
        witness.saved(&"a".into(), with_note("x"));
        assert_eq!(witness.take(), [""; 0]);
        witness.saved(&"a".into(), text(1, 1.0));
        assert_eq!(witness.take(), ["I10: a leaves None of a key of others"]);
        witness.others_wrote(None);
        witness.saved(&"a".into(), text(1, 1.0));
        assert_eq!(witness.take(), [""; 0]);
    }

    #[tokio::test]
    async fn what_is_stored_is_read() {
        let (_router, store) = in_process(1, |_| LOG_CAPACITY);
        assert_eq!((stored(&store), to_read(&store)), (UsageText::default(), None));
        let state = r#"{"lastCycle":"1970-01-01T00:01:00Z","queues":{"default":{"ns":7.5}}}"#;
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": NAME, "namespace": NAMESPACE }, "data": { "state.json": state },
        });
        store.create(config_maps(), &map).unwrap();
        assert_eq!(stored(&store), text(1, 7.5));
        assert!(write_note(&store, "x").unwrap());
        assert_eq!(stored(&store).note.as_deref(), Some("x"));
        delete(&store).unwrap();
        assert!(!write_note(&store, "x").unwrap());
    }
}
