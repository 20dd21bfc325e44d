//! The counters in use. Classes that need the same counter share it, and each pod that comes or
//! goes updates the counters.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::copy_on_write::{CopyOnWrite, copy_on_write_members};
use crate::domains::CounterSources;
use crate::domains::classes::{ClassIndex, ClassPlace, Wants};
use crate::domains::counts::{Spread, Term, TermCount};
use crate::domains::inclusion::{InclusionRule, Inclusions};
use crate::domains::keys::TopologyKeys;
use crate::domains::matchers::Matchers;
use crate::ids::{ClassId, InclusionId, KeyId, MatcherId, NodeId, SpreadId, Table, TermId};
use crate::pod_affinity::PodSelector;

/// Topology keys, matchers and inclusions, and the counters that are built from them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Counters {
    pub(super) keys: TopologyKeys,
    pub(super) matchers: Matchers,
    pub(super) inclusions: Inclusions,
    pub(super) terms: Table<TermId, Term>,
    term_ids: CopyOnWrite<FxHashMap<(MatcherId, KeyId), TermId>>,
    pub(super) spreads: Table<SpreadId, Spread>,
    spread_ids: CopyOnWrite<FxHashMap<(MatcherId, InclusionId, KeyId), SpreadId>>,
}

copy_on_write_members! { Counters:
    shared term_ids, spread_ids, keys, matchers, inclusions, terms, spreads;
}

impl Counters {
    /// Returns the matcher of these selectors, and counts one more user. A new matcher is entered
    /// in the classes that it selects.
    fn acquire_matcher(
        &mut self,
        mut selectors: Vec<PodSelector>,
        classes: &mut ClassIndex,
        world: CounterSources<'_>,
    ) -> MatcherId {
        selectors.sort_unstable();
        selectors.dedup();
        let id = self.matchers.get(&selectors).unwrap_or_else(|| {
            let n_matchers = |key: &_, values: &[_]| self.matchers.n_at(key, values);
            let anchor = classes.best_anchor(&selectors, n_matchers);
            let candidates = classes.at(&anchor);
            let id = self.matchers.insert(selectors, anchor);
            let row = &self.matchers.rows[id];
            for class in candidates {
                if row.means(&world.classes[class], world.namespaces) {
                    classes[class].note_meant(id);
                }
            }
            id
        });
        self.matchers.rows[id].n_users += 1;
        id
    }

    fn release_matcher(&mut self, id: MatcherId, classes: &mut ClassIndex) {
        self.matchers.rows[id].n_users -= 1;
        if self.matchers.rows[id].n_users == 0 {
            for class in classes.at(&self.matchers.rows[id].anchor) {
                classes[class].forget_meant(id);
            }
            self.matchers.remove(id);
        }
    }

    /// Returns the counter of the pods that all selectors select, by this key. It counts one more
    /// user.
    pub(super) fn acquire_term(
        &mut self,
        selectors: Vec<PodSelector>,
        key: &std::sync::Arc<str>,
        classes: &mut ClassIndex,
        world: CounterSources<'_>,
    ) -> TermId {
        let matcher = self.acquire_matcher(selectors, classes, world);
        let key = self.keys.acquire(key, world.nodes);
        if let Some(&id) = self.term_ids.get().get(&(matcher, key)) {
            self.terms[id].n_users += 1;
            self.release_matcher(matcher, classes);
            self.keys.release(key);
            return id;
        }
        let mut term = Term::new(matcher, key);
        for place in self.places(matcher, classes) {
            if let Some(value) = self.keys.value(key, place.node) {
                let meant = place.n_pods;
                term.add(value, TermCount { meant, ..TermCount::default() });
            }
        }
        let id = self.terms.insert(term);
        self.term_ids.get_mut().insert((matcher, key), id);
        self.matchers.rows[matcher].terms.push(id);
        id
    }

    fn release_term(&mut self, id: TermId, classes: &mut ClassIndex) {
        self.terms[id].n_users -= 1;
        if self.terms[id].n_users == 0
            && let Some(term) = self.terms.remove(id)
        {
            self.term_ids.get_mut().remove(&(term.matcher, term.key));
            self.matchers.rows[term.matcher].terms.retain(|&other| other != id);
            self.release_matcher(term.matcher, classes);
            self.keys.release(term.key);
        }
    }

    /// Returns the counter of the pods that the selector selects on nodes that the rule includes,
    /// by this key. It counts one more user.
    pub(super) fn acquire_spread(
        &mut self,
        selector: PodSelector,
        rule: InclusionRule,
        key: &std::sync::Arc<str>,
        classes: &mut ClassIndex,
        world: CounterSources<'_>,
    ) -> SpreadId {
        let matcher = self.acquire_matcher(vec![selector], classes, world);
        let inclusion = self.inclusions.acquire(rule, &mut self.keys, world.nodes);
        let key = self.keys.acquire(key, world.nodes);
        if let Some(&id) = self.spread_ids.get().get(&(matcher, inclusion, key)) {
            self.spreads[id].n_users += 1;
            self.release_matcher(matcher, classes);
            self.inclusions.release(inclusion, &mut self.keys);
            self.keys.release(key);
            return id;
        }
        let mut spread = Spread::new(matcher, inclusion, key);
        for place in self.places(matcher, classes) {
            let value = self.keys.value(key, place.node);
            if let Some(value) = value.filter(|_| self.includes(inclusion, place.node)) {
                spread.add(value, place.n_live);
            }
        }
        let id = self.spreads.insert(spread);
        self.spread_ids.get_mut().insert((matcher, inclusion, key), id);
        self.matchers.rows[matcher].spreads.push(id);
        id
    }

    fn release_spread(&mut self, id: SpreadId, classes: &mut ClassIndex) {
        self.spreads[id].n_users -= 1;
        if self.spreads[id].n_users == 0
            && let Some(spread) = self.spreads.remove(id)
        {
            self.spread_ids.get_mut().remove(&(spread.matcher, spread.inclusion, spread.key));
            self.matchers.rows[spread.matcher].spreads.retain(|&other| other != id);
            self.release_matcher(spread.matcher, classes);
            self.inclusions.release(spread.inclusion, &mut self.keys);
            self.keys.release(spread.key);
        }
    }

    /// Releases every counter of the terms and constraints.
    pub(super) fn release(&mut self, wants: &Wants, classes: &mut ClassIndex) {
        let preferred = wants.preferred.iter().map(|(term, _)| term);
        for &term in wants.near.iter().chain(&wants.away).chain(preferred) {
            self.release_term(term, classes);
        }
        for spreading in wants.hard.iter().chain(&wants.soft) {
            self.release_spread(spreading.spread, classes);
        }
    }

    /// Returns the nodes of the pods that a matcher selects, with their numbers.
    fn places(&self, matcher: MatcherId, classes: &ClassIndex) -> Vec<ClassPlace> {
        let candidates = classes.at(&self.matchers.rows[matcher].anchor);
        let meant = |class: &ClassId| classes[*class].is_meant_by(matcher);
        let places = candidates.iter().filter(|class| meant(class));
        places.flat_map(|&class| &classes[class].places).copied().collect()
    }

    pub(super) fn includes(&self, inclusion: InclusionId, node: NodeId) -> bool {
        self.inclusions.rows[inclusion].includes(node)
    }

    /// Counts pods that the matcher selects. Negative numbers mean that pods have left.
    pub(super) fn count_meant(&mut self, matcher: MatcherId, place: ClassPlace) {
        let matcher = &self.matchers.rows[matcher];
        for &id in &matcher.terms {
            let term = &mut self.terms[id];
            if let Some(value) = self.keys.value(term.key, place.node) {
                let meant = place.n_pods;
                term.add(value, TermCount { meant, ..TermCount::default() });
            }
        }
        for &id in &matcher.spreads {
            let spread = &mut self.spreads[id];
            let value = self.keys.value(spread.key, place.node);
            let included = self.inclusions.rows[spread.inclusion].includes(place.node);
            if let Some(value) = value.filter(|_| included) {
                spread.add(value, place.n_live);
            }
        }
    }

    /// Counts pods that have these terms. Negative numbers mean that pods have left.
    pub(super) fn count_wants(&mut self, wants: &Wants, place: ClassPlace) {
        let away = TermCount { away: place.n_pods, ..TermCount::default() };
        wants.away.iter().for_each(|&term| self.count_owner(term, place.node, away));
        for &(term, weight) in &wants.preferred {
            let weight = weight * i64::from(place.n_pods);
            let preferring = place.n_pods;
            let count = TermCount { preferring, weight, ..TermCount::default() };
            self.count_owner(term, place.node, count);
        }
    }

    fn count_owner(&mut self, term: TermId, node: NodeId, count: TermCount) {
        let term = &mut self.terms[term];
        if let Some(value) = self.keys.value(term.key, node) {
            term.add(value, count);
        }
    }

    pub(super) fn recycle(&mut self) {
        self.keys.rows.recycle();
        self.matchers.rows.recycle();
        self.inclusions.rows.recycle();
        self.terms.recycle();
        self.spreads.recycle();
    }

    /// Returns the same counters with all counts empty, for checks.
    pub(super) fn afresh(&self) -> Self {
        let mut fresh = self.clone();
        for id in self.terms.ids() {
            let term = &mut fresh.terms[id];
            (term.total, term.by_value) = Default::default();
        }
        for id in self.spreads.ids() {
            let spread = &mut fresh.spreads[id];
            (spread.by_value, spread.histogram) = Default::default();
        }
        fresh
    }
}
