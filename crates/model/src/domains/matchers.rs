//! Sets of pod selectors, shared by all pods that have equal ones. An index finds the sets that
//! select a class without a test of all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::copy_on_write::{CopyOnWrite, copy_on_write_members};
use crate::ids::{MatcherId, SpreadId, Table, TermId};
use crate::pod_affinity::PodSelector;
use crate::selector::{LabelSelector, Labels, Operator};

/// Matchers by the names and values of labels.
type MatchersByLabel = FxHashMap<Arc<str>, FxHashMap<Arc<str>, Vec<MatcherId>>>;

/// The matchers, by content and by anchor.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Matchers {
    pub(super) rows: Table<MatcherId, Matcher>,
    by_content: CopyOnWrite<FxHashMap<Vec<PodSelector>, MatcherId>>,
    by_label: CopyOnWrite<MatchersByLabel>,
    by_namespace: CopyOnWrite<FxHashMap<Arc<str>, Vec<MatcherId>>>,
    anywhere: Vec<MatcherId>,
    /// Number of matchers that read labels of namespaces.
    pub(super) n_by_namespace_labels: u32,
}

// Few matchers select everywhere, and their numbers are copied at once.
copy_on_write_members! { Matchers:
    shared by_content, by_label, by_namespace, rows;
    copied anywhere, n_by_namespace_labels;
}

/// A set of selectors; it selects the pods that all of them select.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Matcher {
    /// Selectors, sorted and without duplicates.
    pub(super) selectors: Vec<PodSelector>,
    /// Number of terms and spreads that use the matcher.
    pub(super) n_users: u32,
    pub(super) anchor: Anchor,
    pub(super) terms: Vec<TermId>,
    pub(super) spreads: Vec<SpreadId>,
}

/// A condition that every selected class meets, by which matchers are indexed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Anchor {
    /// The class has the label with one of these values.
    Label(Arc<str>, Vec<Arc<str>>),
    /// The class is in one of these namespaces.
    Namespaces(Vec<Arc<str>>),
    /// There is no such condition.
    Anywhere,
}

impl Matchers {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
            && self.by_content.get().is_empty()
            && self.by_label.get().is_empty()
            && self.by_namespace.get().is_empty()
            && self.anywhere.is_empty()
            && self.n_by_namespace_labels == 0
    }

    pub(super) fn get(&self, selectors: &[PodSelector]) -> Option<MatcherId> {
        self.by_content.get().get(selectors).copied()
    }

    pub(super) fn insert(&mut self, selectors: Vec<PodSelector>, anchor: Anchor) -> MatcherId {
        let by_namespace_labels = reads_namespace_labels(&selectors);
        let id = self.rows.insert(Matcher {
            selectors: selectors.clone(),
            n_users: 0,
            anchor: anchor.clone(),
            terms: Vec::new(),
            spreads: Vec::new(),
        });
        self.by_content.get_mut().insert(selectors, id);
        self.n_by_namespace_labels += u32::from(by_namespace_labels);
        self.each_list(&anchor, |list| list.push(id));
        id
    }

    pub(super) fn remove(&mut self, id: MatcherId) {
        let Some(row) = self.rows.remove(id) else { return };
        self.by_content.get_mut().remove(&row.selectors);
        self.n_by_namespace_labels -= u32::from(reads_namespace_labels(&row.selectors));
        self.each_list(&row.anchor, |list| list.retain(|&other| other != id));
        if let Anchor::Label(key, values) = &row.anchor
            && let Some(by_value) = self.by_label.get_mut().get_mut(key)
        {
            for value in values {
                if by_value.get(value).is_some_and(Vec::is_empty) {
                    by_value.remove(value);
                }
            }
            if by_value.is_empty() {
                self.by_label.get_mut().remove(key);
            }
        }
        if let Anchor::Namespaces(names) = &row.anchor {
            for name in names {
                if self.by_namespace.get().get(name).is_some_and(Vec::is_empty) {
                    self.by_namespace.get_mut().remove(name);
                }
            }
        }
    }

    fn each_list(&mut self, anchor: &Anchor, mut change: impl FnMut(&mut Vec<MatcherId>)) {
        match anchor {
            Anchor::Label(key, values) => {
                let by_value = self.by_label.get_mut().entry(key.clone()).or_default();
                values.iter().for_each(|value| change(by_value.entry(value.clone()).or_default()));
            }
            Anchor::Namespaces(names) => {
                for name in names {
                    change(self.by_namespace.get_mut().entry(name.clone()).or_default());
                }
            }
            Anchor::Anywhere => change(&mut self.anywhere),
        }
    }

    /// Returns the number of matchers that are indexed by this label and one of the values.
    pub(super) fn n_at(&self, key: &Arc<str>, values: &[Arc<str>]) -> usize {
        let by_value = self.by_label.get().get(key);
        let of_value = |value| by_value.and_then(|by_value| by_value.get(value));
        values.iter().filter_map(of_value).map(Vec::len).sum()
    }

    /// Returns the matchers that select the class, by id.
    pub(super) fn matching(
        &self,
        class: &Class,
        namespaces: &BTreeMap<Arc<str>, Labels>,
    ) -> Vec<MatcherId> {
        let by_label = class.labels.iter().filter_map(|(key, value)| {
            self.by_label.get().get(key).and_then(|by_value| by_value.get(value))
        });
        let by_namespace = self.by_namespace.get().get(&class.namespace);
        let lists = by_label.chain(by_namespace).chain([&self.anywhere]);
        let means = |id: &MatcherId| self.rows[*id].means(class, namespaces);
        let mut found: Vec<MatcherId> = lists.flatten().copied().filter(means).collect();
        found.sort_unstable();
        found
    }
}

impl Matcher {
    /// True if all selectors select the class.
    pub(super) fn means(&self, class: &Class, namespaces: &BTreeMap<Arc<str>, Labels>) -> bool {
        let none = Labels::new();
        let labels = namespaces.get(&class.namespace).unwrap_or(&none);
        let means =
            |selector: &PodSelector| selector.matches(&class.namespace, labels, &class.labels);
        self.selectors.iter().all(means)
    }
}

fn reads_namespace_labels(selectors: &[PodSelector]) -> bool {
    selectors.iter().any(|selector| selector.namespace_selector.is_some())
}

/// Returns labels with their values; every selected class has one of the values for each label.
pub(super) fn anchor_labels(
    selectors: &[PodSelector],
) -> impl Iterator<Item = (&Arc<str>, Vec<Arc<str>>)> {
    selectors.iter().filter_map(|selector| selector.labels.as_ref()).flat_map(of_selector)
}

fn of_selector(selector: &LabelSelector) -> impl Iterator<Item = (&Arc<str>, Vec<Arc<str>>)> {
    let exact = selector.match_labels.iter().map(|(key, value)| (key, vec![value.clone()]));
    let lists = selector.match_expressions.iter().filter(|rule| rule.operator == Operator::In);
    exact.chain(lists.map(|rule| {
        let mut values = rule.values.clone();
        values.sort_unstable();
        values.dedup();
        (&rule.key, values)
    }))
}

/// Returns the namespaces that selected classes must be in. Returns `None` if no selector has a
/// closed list.
pub(super) fn anchor_namespaces(selectors: &[PodSelector]) -> Option<&[Arc<str>]> {
    let closed = selectors.iter().find(|selector| selector.namespace_selector.is_none());
    closed.map(|selector| selector.namespaces.as_slice())
}
