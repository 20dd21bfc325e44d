//! Live counts of pods by topology domain, for pod affinity and topology spread: kept by each event
//! and each tentative operation, at the cost of the terms that mean the pod, and exact when undone:
//! `check.rs` makes every count again from the tasks, after each event of `tests/laws.rs`. The files
//! below are its parts. Specification: plugins-nodes.md 4.5, 4.8, 7.7, 7.8, 17.

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
use crate::default_spread::{SelectorKind, Selectors};
use crate::ids::{ClassId, KeyId, MatcherId, NodeId, SpreadId, Table, TermId, ValueId};
use crate::node::Node;
use crate::pod_affinity::{PodAffinity, PreferredPodTerm, SpreadConstraint, Unsatisfiable};
use crate::record::ObjectKey;
use crate::selector::{LabelSelector, Labels};

use classes::{ClassIndex, Place};
use counters::Counters;
use inclusion::Rule;

pub use classes::{Links, Spreading, Wants};
pub use counts::{Spread, Term, TermCount};
pub use keys::Values;

/// The label by which each node is a domain of its own (7.8).
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The counts, and what each class has to do with them.
#[derive(Clone, Debug, Default)]
pub struct Domains {
    classes: ClassIndex,
    counters: Counters,
}

/// What new counters are filled from.
#[derive(Clone, Copy)]
pub(crate) struct World<'a> {
    pub(crate) nodes: &'a Table<NodeId, Node>,
    pub(crate) classes: &'a Classes,
    pub(crate) namespaces: &'a BTreeMap<Arc<str>, Labels>,
    pub(crate) selectors: &'a Selectors,
}

impl Domains {
    /// What the pods of a class want.
    pub fn wants(&self, class: ClassId) -> Option<&Wants> {
        self.classes[class].wants.as_deref()
    }

    /// Whether pods of the class want nothing of others, and no term of any pod means them.
    pub fn is_alone(&self, class: ClassId) -> bool {
        let Links { meant_by, wants, .. } = &self.classes[class];
        wants.is_none() && meant_by.is_empty()
    }

    /// A term in use.
    pub fn term(&self, id: TermId) -> &Term {
        &self.counters.terms[id]
    }

    /// Whether the term means pods of the class; in a required affinity, whether all of its terms
    /// do.
    pub fn means(&self, term: TermId, class: ClassId) -> bool {
        self.classes[class].is_meant_by(self.term(term).matcher)
    }

    /// Every term of any pod that means pods of the class.
    pub fn terms_meaning(&self, class: ClassId) -> impl Iterator<Item = &Term> {
        let matchers = self.classes[class].meant_by.iter();
        let terms = matchers.flat_map(|&matcher| &self.counters.matchers.rows[matcher].terms);
        terms.map(|&term| self.term(term))
    }

    /// A spread counter in use.
    pub fn spread(&self, id: SpreadId) -> &Spread {
        &self.counters.spreads[id]
    }

    /// The global minimum of a constraint (4.8).
    pub fn least(&self, spreading: &Spreading) -> i32 {
        let spread = self.spread(spreading.spread);
        let inclusion = &self.counters.inclusions.rows[spread.inclusion];
        let n_domains = inclusion.n_domains(spread.key);
        match i64::try_from(n_domains).is_ok_and(|n| n < i64::from(spreading.min_domains)) {
            true => 0,
            false => spread.least(n_domains),
        }
    }

    /// The domain of a node; `None`: it lacks the key.
    pub fn value(&self, key: KeyId, node: NodeId) -> Option<ValueId> {
        self.counters.keys.value(key, node)
    }

    /// The domains of all nodes by a key.
    pub fn values(&self, key: KeyId) -> Values<'_> {
        self.counters.keys.values(key)
    }

    /// A class that has no pods yet.
    pub(crate) fn add_class(&mut self, id: ClassId, world: World<'_>) {
        let class = &world.classes[id];
        let wants = self.resolve(class, world).map(Box::new);
        let meant_by = self.counters.matchers.matching(class, world.namespaces);
        self.classes.insert(id, class, Links { meant_by, wants, ..Links::default() });
    }

    /// A class that has no pods any more; `class` is its content.
    pub(crate) fn remove_class(&mut self, id: ClassId, class: &Class) {
        let links = self.classes.remove(id, class);
        if let Some(wants) = links.wants {
            self.counters.release(&wants, &mut self.classes);
        }
    }

    fn resolve(&mut self, class: &Class, world: World<'_>) -> Option<Wants> {
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

    fn resolve_defaults(&mut self, class: &Class, world: World<'_>) -> Vec<Spreading> {
        let constraints = world.selectors.constraints(class);
        constraints.iter().map(|one| self.resolve_spread(class, one, world)).collect()
    }

    fn resolve_affinity(&mut self, affinity: &PodAffinity, world: World<'_>, wants: &mut Wants) {
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
        world: World<'_>,
    ) -> Spreading {
        let alike = class.spread.iter().filter(|other| other.when == constraint.when);
        let mut keys: Vec<Arc<str>> = alike.map(|other| other.topology_key.clone()).collect();
        // A default constraint is none of the pod's.
        keys.push(constraint.topology_key.clone());
        keys.sort_unstable();
        keys.dedup();
        let by_host = constraint.when == Unsatisfiable::ScheduleAnyway
            && &*constraint.topology_key == HOSTNAME;
        // The score asks the node itself, whether or not it counts (7.8).
        let rule = match by_host {
            true => Rule::default(),
            false => Rule::new(class, constraint, &keys),
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

    /// A pod of the class is on the node now; `live`: it is not terminating.
    pub(crate) fn enter(&mut self, class: ClassId, node: NodeId, live: bool) {
        self.count(class, Place { node, n_pods: 1, n_live: i32::from(live) });
    }

    /// Reverses [`Domains::enter`].
    pub(crate) fn leave(&mut self, class: ClassId, node: NodeId, live: bool) {
        self.count(class, Place { node, n_pods: -1, n_live: -i32::from(live) });
    }

    fn count(&mut self, class: ClassId, place: Place) {
        let links = &mut self.classes[class];
        links.move_pods(place);
        links.meant_by.iter().for_each(|&matcher| self.counters.count_meant(matcher, place));
        if let Some(wants) = &links.wants {
            self.counters.count_wants(wants, place);
        }
    }

    /// Takes over labels and taints of a node on which no pod is counted now.
    pub(crate) fn set_node(&mut self, id: NodeId, node: &Node) {
        let Counters { keys, inclusions, .. } = &mut self.counters;
        inclusions.leave(id, keys);
        keys.set_node(id, &node.labels);
        inclusions.enter(id, node, keys);
    }

    /// Lets the labels of a namespace decide anew whom namespace selectors mean.
    pub(crate) fn namespace_changed(&mut self, name: &str, world: World<'_>) {
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

    /// An object selects other pods than before: the default constraints of both are made again.
    pub(crate) fn selector_changed(
        &mut self,
        kind: SelectorKind,
        key: &ObjectKey,
        selectors: [Option<LabelSelector>; 2],
        world: World<'_>,
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

    /// Lets freed rows be used again.
    pub(crate) fn recycle(&mut self) {
        self.counters.recycle();
    }
}
