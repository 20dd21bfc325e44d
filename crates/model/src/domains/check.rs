//! Recomputes every count and index from the tasks, and compares. Used by tests and by the
//! watchdog.

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::cluster::Cluster;
use crate::domains::classes::Links;
use crate::domains::{ClassPlace, Domains};
use crate::ids::{ClassId, InclusionId, KeyId, MatcherId};
use crate::task::Task;

impl Domains {
    /// Compares all counts and indexes with tasks, nodes and namespaces.
    pub(crate) fn check(&self, cluster: &Cluster) -> Result<(), String> {
        self.check_keys(cluster)?;
        self.check_inclusions(cluster)?;
        self.check_users()?;
        let mut links: BTreeMap<ClassId, Links> = BTreeMap::new();
        let mut counters = self.counters.afresh();
        for (_, task) in cluster.tasks.iter() {
            let links = links.entry(task.class).or_default();
            let Some(place) = place_of(task) else { continue };
            links.move_pods(place);
            let held = &self.classes[task.class];
            held.meant_by.iter().for_each(|&matcher| counters.count_meant(matcher, place));
            if let Some(wants) = &held.wants {
                counters.count_wants(wants, place);
            }
        }
        for (id, fresh) in &links {
            let held = &self.classes[*id];
            same("places of a class", &held.places, &fresh.places)?;
            same("matchers of a class", &held.meant_by, &self.meant_by(cluster, *id))?;
            self.check_defaults(cluster, *id)?;
        }
        for (id, term) in self.counters.terms.iter() {
            same("term", term, &counters.terms[id])?;
        }
        for (id, spread) in self.counters.spreads.iter() {
            same("spread", spread, &counters.spreads[id])?;
        }
        Ok(())
    }

    /// Checks that a class without constraints has the default ones, by maximum skew and pods that
    /// count.
    fn check_defaults(&self, cluster: &Cluster, id: ClassId) -> Result<(), String> {
        let class = &cluster.classes[id];
        if !class.spread.is_empty() {
            return Ok(());
        }
        let constraints = cluster.selectors.constraints(class);
        let fresh: Vec<_> = constraints
            .iter()
            .map(|one| (one.max_skew, vec![one.counted(&class.namespace)]))
            .collect();
        let held = self.classes[id].wants.iter().flat_map(|wants| &wants.soft).map(|soft| {
            let matcher = self.spread(soft.spread).matcher;
            (soft.max_skew, self.counters.matchers.rows[matcher].selectors.clone())
        });
        same("default constraints of a class", &held.collect(), &fresh)
    }

    /// Returns the matchers that select the class, found without indexes.
    fn meant_by(&self, cluster: &Cluster, class: ClassId) -> Vec<MatcherId> {
        let class = &cluster.classes[class];
        let rows = self.counters.matchers.rows.iter();
        let meaning = rows.filter(|(_, row)| row.means(class, cluster.namespaces.get()));
        meaning.map(|(id, _)| id).collect()
    }

    fn check_keys(&self, cluster: &Cluster) -> Result<(), String> {
        for (_, key) in self.counters.keys.rows.iter() {
            let right = cluster.nodes.iter().filter(|(id, node)| key.is_right(*id, node));
            same("nodes of a key", &right.count(), &cluster.nodes.len())?;
            let with_value = cluster.nodes.iter().filter(|(_, node)| key.is_on(node)).count();
            same("values of a key", &(key.n_nodes() as usize), &with_value)?;
        }
        Ok(())
    }

    fn check_inclusions(&self, cluster: &Cluster) -> Result<(), String> {
        for (_, row) in self.counters.inclusions.rows.iter() {
            let fresh = row.afresh(&self.counters.keys, &cluster.nodes);
            same("domains", &row.domains, &fresh.domains)?;
            for id in cluster.nodes.ids() {
                same("included nodes", &row.includes(id), &fresh.includes(id))?;
            }
        }
        Ok(())
    }

    fn check_users(&self) -> Result<(), String> {
        let counters = &self.counters;
        let mut keys: BTreeMap<KeyId, u32> = BTreeMap::new();
        let mut matchers: BTreeMap<MatcherId, u32> = BTreeMap::new();
        let mut inclusions: BTreeMap<InclusionId, u32> = BTreeMap::new();
        for (_, term) in counters.terms.iter() {
            *keys.entry(term.key).or_default() += 1;
            *matchers.entry(term.matcher).or_default() += 1;
        }
        for (_, spread) in counters.spreads.iter() {
            *keys.entry(spread.key).or_default() += 1;
            *matchers.entry(spread.matcher).or_default() += 1;
            *inclusions.entry(spread.inclusion).or_default() += 1;
        }
        for (_, inclusion) in counters.inclusions.rows.iter() {
            inclusion.domains.iter().for_each(|(key, _)| *keys.entry(*key).or_default() += 1);
        }
        let held = counters.keys.rows.iter().map(|(id, row)| (id, row.n_users));
        same("users of keys", &held.collect(), &keys)?;
        let held = counters.matchers.rows.iter().map(|(id, row)| (id, row.n_users));
        same("users of matchers", &held.collect(), &matchers)?;
        let held = counters.inclusions.rows.iter().map(|(id, row)| (id, row.n_users));
        same("users of inclusions", &held.collect(), &inclusions)
    }

    /// True if nothing is stored.
    pub(crate) fn is_empty(&self) -> bool {
        let counters = &self.counters;
        counters.keys.rows.is_empty()
            && counters.matchers.is_empty()
            && counters.inclusions.rows.is_empty()
            && counters.terms.is_empty()
            && counters.spreads.is_empty()
            && self.classes.is_empty()
    }
}

fn place_of(task: &Task) -> Option<ClassPlace> {
    let node = task.node.filter(|_| task.is_in_view())?;
    Some(ClassPlace { node, n_pods: 1, n_live: i32::from(task.is_live()) })
}

fn same<T: PartialEq + Debug>(what: &str, held: &T, fresh: &T) -> Result<(), String> {
    match held == fresh {
        true => Ok(()),
        false => Err(format!("domains: {what}: is {held:?}, should be {fresh:?}")),
    }
}
