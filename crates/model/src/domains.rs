//! Counts of pods by topology domain, for pod affinity and topology spread. Events and tentative
//! operations update the counts. An update costs as much as there are terms that select the pod.
//! The files in `domains/` are the parts of this module.
//!
//! Exact because
//! - every pod that enters or leaves a node changes the same counters with opposite signs,
//! - `check.rs` counts again from the tasks after each event of `tests/laws.rs`, and compares.
//!
//! Specification: plugins-nodes.md 4.5, 4.8, 7.7, 7.8, 17.

mod check;
mod classes;
mod counters;
mod counts;
mod inclusion;
mod keys;
mod matchers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::class::{Class, Classes};
use crate::copy_on_write::copy_on_write_members;
use crate::default_spread::{SelectorKind, ServiceSelectors};
use crate::ids::{ClassId, KeyId, MatcherId, NodeId, SpreadId, Table, TermId, ValueId};
use crate::node::Node;
use crate::pod_affinity::{PodAffinity, PreferredPodTerm, SpreadConstraint, Unsatisfiable};
use crate::reads::{self, Read};
use crate::record::ObjectKey;
use crate::selector::{LabelSelector, Labels};

use classes::{ClassIndex, ClassPlace};
use counters::Counters;
use inclusion::InclusionRule;
use serde::{Deserialize, Serialize};

pub use classes::{Links, Spreading, Wants};
pub use counts::{Spread, Term, TermCount};
pub use keys::NodeDomains;

/// The label by which each node is a domain of its own (plugins-nodes.md 7.8).
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The counts, and for each class the counters that it reads and changes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Domains {
    classes: ClassIndex,
    counters: Counters,
}

copy_on_write_members! { Domains: shared classes, counters; }

/// The tables from which new counters are filled.
#[derive(Clone, Copy)]
pub(crate) struct CounterSources<'a> {
    pub(crate) nodes: &'a Table<NodeId, Node>,
    pub(crate) classes: &'a Classes,
    pub(crate) namespaces: &'a BTreeMap<Arc<str>, Labels>,
    pub(crate) selectors: &'a ServiceSelectors,
}

impl Domains {
    /// Returns the terms and constraints of the pods of a class. Returns `None` if the class has
    /// none.
    pub fn wants(&self, class: ClassId) -> Option<&Wants> {
        self.classes[class].wants.as_deref()
    }

    /// True if pods of the class have no term or constraint, and no term of any pod selects them.
    pub fn is_alone(&self, class: ClassId) -> bool {
        let Links { meant_by, wants, .. } = &self.classes[class];
        wants.is_none() && meant_by.is_empty()
    }

    /// Returns a term in use.
    pub fn term(&self, id: TermId) -> &Term {
        reads::note(Read::OtherPods);
        &self.counters.terms[id]
    }

    /// True if the term selects pods of the class. A required affinity selects a pod only if all of
    /// its terms select it.
    pub fn means(&self, term: TermId, class: ClassId) -> bool {
        self.classes[class].is_meant_by(self.term(term).matcher)
    }

    /// Returns every term of any pod that selects pods of the class.
    pub fn terms_meaning(&self, class: ClassId) -> impl Iterator<Item = &Term> {
        let matchers = self.classes[class].meant_by.iter();
        let terms = matchers.flat_map(|&matcher| &self.counters.matchers.rows[matcher].terms);
        terms.map(|&term| self.term(term))
    }

    /// Returns a spread counter in use.
    pub fn spread(&self, id: SpreadId) -> &Spread {
        reads::note(Read::OtherPods);
        &self.counters.spreads[id]
    }

    /// Returns the global minimum of a constraint: the lowest count of a domain, or 0 with fewer
    /// than `min_domains` domains (plugins-nodes.md 4.8).
    pub fn least(&self, spreading: &Spreading) -> i32 {
        let spread = self.spread(spreading.spread);
        let inclusion = &self.counters.inclusions.rows[spread.inclusion];
        let n_domains = inclusion.n_domains(spread.key);
        match i64::try_from(n_domains).is_ok_and(|n| n < i64::from(spreading.min_domains)) {
            true => 0,
            false => spread.least(n_domains),
        }
    }

    /// Returns the domain of a node. Returns `None` if the node lacks the key.
    pub fn value(&self, key: KeyId, node: NodeId) -> Option<ValueId> {
        self.counters.keys.value(key, node)
    }

    /// Returns the domains of all nodes by a key.
    pub fn values(&self, key: KeyId) -> NodeDomains<'_> {
        self.counters.keys.values(key)
    }

    /// Adds a class that has no pods yet.
    pub(crate) fn add_class(&mut self, id: ClassId, world: CounterSources<'_>) {
        let class = &world.classes[id];
        let wants = self.resolve(class, world).map(Box::new);
        let meant_by = self.counters.matchers.matching(class, world.namespaces);
        self.classes.insert(id, class, Links { meant_by, wants, ..Links::default() });
    }

    /// Removes a class that has no pods any more. `class` is its content.
    pub(crate) fn remove_class(&mut self, id: ClassId, class: &Class) {
        let links = self.classes.remove(id, class);
        if let Some(wants) = links.wants {
            self.counters.release(&wants, &mut self.classes);
        }
    }

    fn resolve(&mut self, class: &Class, world: CounterSources<'_>) -> Option<Wants> {
        let mut wants = Wants::default();
        if let Some(affinity) = &class.pod_affinity {
            self.resolve_affinity(affinity, world, &mut wants);
        }
        for constraint in &class.spread {
            let spreading = self.resolve_spread(class, constraint, world);
            match constraint.when {
                Unsatisfiable::DoNotSchedule => wants.hard.push(spreading),
                Unsatisfiable::ScheduleAnyway => wants.soft.push(spreading),
            }
        }
        if class.spread.is_empty() {
            wants.soft = self.resolve_defaults(class, world);
        }
        (wants != Wants::default()).then_some(wants)
    }

    fn resolve_defaults(&mut self, class: &Class, world: CounterSources<'_>) -> Vec<Spreading> {
        let constraints = world.selectors.constraints(class);
        constraints.iter().map(|one| self.resolve_spread(class, one, world)).collect()
    }

    fn resolve_affinity(
        &mut self,
        affinity: &PodAffinity,
        world: CounterSources<'_>,
        wants: &mut Wants,
    ) {
        let Self { classes, counters } = self;
        let mut term = |pods, key| counters.acquire_term(pods, key, classes, world);
        let all = || affinity.required.iter().map(|term| term.pods.clone()).collect();
        let near = affinity.required.iter().map(|near| term(all(), &near.topology_key));
        wants.near = near.collect();
        let away = affinity.anti_required.iter();
        wants.away = away.map(|away| term(vec![away.pods.clone()], &away.topology_key)).collect();
        let signs = [(&affinity.preferred, 1), (&affinity.anti_preferred, -1)];
        for (preferred, sign) in signs {
            for PreferredPodTerm { weight, term: wanted } in preferred {
                let id = term(vec![wanted.pods.clone()], &wanted.topology_key);
                wants.preferred.push((id, sign * i64::from(*weight)));
            }
        }
    }

    fn resolve_spread(
        &mut self,
        class: &Class,
        constraint: &SpreadConstraint,
        world: CounterSources<'_>,
    ) -> Spreading {
        let alike = class.spread.iter().filter(|other| other.when == constraint.when);
        let mut keys: Vec<Arc<str>> = alike.map(|other| other.topology_key.clone()).collect();
        // A default constraint is not among the constraints of the pod.
        keys.push(constraint.topology_key.clone());
        keys.sort_unstable();
        keys.dedup();
        let by_host = constraint.when == Unsatisfiable::ScheduleAnyway
            && &*constraint.topology_key == HOSTNAME;
        // The score reads the count of the node itself, whether or not the node is included
        // (plugins-nodes.md 7.8).
        let rule = match by_host {
            true => InclusionRule::default(),
            false => InclusionRule::new(class, constraint, &keys),
        };
        let counted = constraint.counted(&class.namespace);
        let Self { classes, counters } = self;
        let key = &constraint.topology_key;
        let spread = counters.acquire_spread(counted, rule, key, classes, world);
        Spreading {
            spread,
            key: self.spread(spread).key,
            max_skew: constraint.max_skew,
            min_domains: constraint.min_domains,
            selects_self: constraint.selects(&class.labels),
            by_host,
        }
    }

    /// Counts a pod of the class on the node. `live` is true if the pod is not terminating.
    pub(crate) fn enter(&mut self, class: ClassId, node: NodeId, live: bool) {
        self.count(class, ClassPlace { node, n_pods: 1, n_live: i32::from(live) });
    }

    /// Reverses [`Domains::enter`].
    pub(crate) fn leave(&mut self, class: ClassId, node: NodeId, live: bool) {
        self.count(class, ClassPlace { node, n_pods: -1, n_live: -i32::from(live) });
    }

    fn count(&mut self, class: ClassId, place: ClassPlace) {
        let links = &mut self.classes[class];
        links.move_pods(place);
        links.meant_by.iter().for_each(|&matcher| self.counters.count_meant(matcher, place));
        if let Some(wants) = &links.wants {
            self.counters.count_wants(wants, place);
        }
    }

    /// Updates labels and taints of a node. No pod may be counted on the node at that time.
    pub(crate) fn set_node(&mut self, id: NodeId, node: &Node) {
        let Counters { keys, inclusions, .. } = &mut self.counters;
        inclusions.leave(id, keys);
        keys.set_node(id, &node.labels);
        inclusions.enter(id, node, keys);
    }

    /// Matches the pods of a namespace against namespace selectors again, after its labels changed.
    pub(crate) fn namespace_changed(&mut self, name: &str, world: CounterSources<'_>) {
        if self.counters.matchers.n_by_namespace_labels == 0 {
            return;
        }
        for class in self.classes.of_namespace(name) {
            let now = self.counters.matchers.matching(&world.classes[class], world.namespaces);
            let links = &mut self.classes[class];
            let before = std::mem::replace(&mut links.meant_by, now);
            let (now, places) = (&links.meant_by, &links.places);
            let differ = |those: &[MatcherId], others: &[MatcherId]| -> Vec<MatcherId> {
                those.iter().copied().filter(|id| others.binary_search(id).is_err()).collect()
            };
            for place in places {
                for matcher in differ(&before, now) {
                    self.counters.count_meant(matcher, place.negated());
                }
                for matcher in differ(now, &before) {
                    self.counters.count_meant(matcher, *place);
                }
            }
        }
    }

    /// Renews the default constraints of the pods that an object selects, or selected before its
    /// change.
    pub(crate) fn selector_changed(
        &mut self,
        kind: SelectorKind,
        key: &ObjectKey,
        selectors: [Option<LabelSelector>; 2],
        world: CounterSources<'_>,
    ) {
        let affected: BTreeSet<ClassId> = match kind {
            SelectorKind::Service => {
                let selectors = selectors.into_iter().flatten();
                selectors.flat_map(|labels| self.classes.selected(&key.namespace, labels)).collect()
            }
            _ => self.classes.controlled_by(kind, key).into_iter().collect(),
        };
        for id in affected {
            let class = &world.classes[id];
            if !class.spread.is_empty() {
                continue;
            }
            let soft = self.resolve_defaults(class, world);
            let mut wants = self.classes[id].wants.take().unwrap_or_default();
            let soft = std::mem::replace(&mut wants.soft, soft);
            self.classes[id].wants = (*wants != Wants::default()).then_some(wants);
            let old = Wants { soft, ..Wants::default() };
            self.counters.release(&old, &mut self.classes);
        }
    }

    /// Makes freed rows reusable.
    pub(crate) fn recycle(&mut self) {
        self.counters.recycle();
    }
}
