//! `status.allocated` of queues: what their jobs hold, summed into their ancestors. Specification:
//! core.md 7.7, C-31.

mod devices;

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::Arc;

use vc_framework::{Effect, Session};
use vc_model::QueueId;
use vc_resource::{Quantity, Resource};

use crate::engine::Memory;

const ROOT: &str = "root";

/// What the status of a queue says, with what it was made of. Most queues hold what they held in
/// the last cycle, and then neither texts nor quantities are made again.
#[derive(Debug)]
pub(crate) struct Stated {
    allocated: Resource,
    devices: Vec<(String, String)>,
    value: Vec<(Arc<str>, Quantity)>,
}

/// Writes the queues whose amounts differ from what the API holds.
pub(crate) fn record(session: &mut Session<'_>, memory: &mut Memory) {
    let own = own_sums(session);
    let chains = chains(session, memory, &own);
    let sums = sums(own, &chains);
    let devices = devices::counts(session, &chains);
    let nothing = Resource::default();
    // Of queues that are gone nothing is kept.
    let mut earlier = std::mem::take(&mut memory.stated);
    for queue in session.facts().queues.clone() {
        let allocated = sums.get(&queue).unwrap_or(&nothing);
        let devices = devices.get(&queue).map_or(&[][..], Vec::as_slice);
        let known = earlier.remove(&queue).filter(|known| known.is_of(allocated, devices));
        let stated = known.unwrap_or_else(|| Stated::of(session, allocated, devices));
        // The row may have been written by somebody else since.
        let written = session.queues[queue].written_allocated.as_ref();
        if !written.is_some_and(|written| same(written, &stated.value)) {
            let name = session.queues[queue].name.clone();
            let list = to_list(session, allocated, devices);
            session.out.effects.push(Effect::QueueStatus { queue: name, allocated: list });
            session.cluster_mut().queues[queue].written_allocated = Some(stated.value.clone());
        }
        memory.stated.insert(queue, stated);
    }
    let exists = |name: &Arc<str>| session.queue(name).is_some_and(|id| session.queues[id].present);
    memory.orphan_queues.retain(exists);
}

impl Stated {
    fn of(session: &Session<'_>, allocated: &Resource, devices: &[(String, String)]) -> Self {
        let value = parsed(&to_list(session, allocated, devices));
        Self { allocated: allocated.clone(), devices: devices.to_vec(), value }
    }

    /// A name keeps its dimension for good, so that equal amounts are equal texts.
    fn is_of(&self, allocated: &Resource, devices: &[(String, String)]) -> bool {
        self.allocated == *allocated && self.devices == devices
    }
}

/// What the jobs of each queue hold now, without those of its children.
pub(crate) fn own_sums(session: &Session<'_>) -> BTreeMap<QueueId, Resource> {
    let facts = session.facts();
    let of_queue = |&queue: &QueueId| (queue, facts.roster.sums(queue).allocated.clone());
    let with_jobs = facts.queues.iter().filter(|&&queue| 0 < facts.roster.sums(queue).n_jobs);
    let mut own: BTreeMap<QueueId, Resource> = with_jobs.map(of_queue).collect();
    for &job in &facts.to_close {
        let row = &session.jobs[job];
        let at_open = facts.roster.allocated_at_open(job).map(|amounts| &**amounts);
        if let Some(sum) = own.get_mut(&row.queue).filter(|_| at_open != Some(&row.allocated)) {
            at_open.into_iter().for_each(|amount| sum.sub(amount));
            sum.add(&row.allocated);
        }
    }
    own
}

/// The ancestors of each queue that has jobs; none if there is no root.
fn chains(
    session: &mut Session<'_>,
    memory: &mut Memory,
    own: &BTreeMap<QueueId, Resource>,
) -> BTreeMap<QueueId, Vec<QueueId>> {
    let mut chains = BTreeMap::new();
    if session.queue(ROOT).is_some_and(|root| session.queues[root].present) {
        // By name, so that the warnings are in an order that does not depend on arrival.
        for queue in session.facts().queues.clone() {
            if own.contains_key(&queue) {
                chains.insert(queue, ancestors(session, memory, queue));
            }
        }
    }
    chains
}

/// The same with every amount added to all ancestors.
fn sums(
    own: BTreeMap<QueueId, Resource>,
    chains: &BTreeMap<QueueId, Vec<QueueId>>,
) -> BTreeMap<QueueId, Resource> {
    let mut sums = own.clone();
    for (queue, chain) in chains {
        let Some(amount) = own.get(queue) else { continue };
        chain.iter().for_each(|&ancestor| sums.entry(ancestor).or_default().add(amount));
    }
    sums
}

/// The queues above this one up to root. A missing parent ends the chain, a cycle too, with one
/// warning each.
fn ancestors(session: &mut Session<'_>, memory: &mut Memory, queue: QueueId) -> Vec<QueueId> {
    let mut chain = Vec::new();
    let mut seen = BTreeSet::from([queue]);
    let mut at = queue;
    while &*session.queues[at].name != ROOT {
        let row = &session.queues[at];
        let parent_name: Arc<str> =
            if row.parent.is_empty() { ROOT.into() } else { row.parent.clone() };
        let name = row.name.clone();
        let parent = session.queue(&parent_name).filter(|&id| session.queues[id].present);
        let problem = match parent {
            None => format!("queue {name}: parent queue {parent_name} does not exist"),
            Some(parent) if !seen.insert(parent) => {
                format!("queue {name}: its parents form a cycle through queue {parent_name}")
            }
            Some(parent) => {
                chain.push(parent);
                at = parent;
                continue;
            }
        };
        if memory.orphan_queues.insert(name) {
            session.out.warnings.push(problem);
        }
        break;
    }
    chain
}

/// Names and quantities; cpu and memory always, others only with an amount, and then devices.
fn to_list(
    session: &Session<'_>,
    allocated: &Resource,
    devices: &[(String, String)],
) -> Vec<(String, String)> {
    let zero = |name: &str| session.dims.get(name).is_none_or(|dim| allocated.get(dim) == 0);
    let list = allocated.to_quantities(&session.dims).into_iter();
    let list = list.filter(|(name, _)| name == "cpu" || name == "memory" || !zero(name));
    list.chain(devices.iter().cloned()).collect()
}

fn parsed(list: &[(String, String)]) -> Vec<(Arc<str>, Quantity)> {
    let entry = |(name, text): &(String, String)| {
        Some((name.as_str().into(), Quantity::from_str(text).ok()?))
    };
    list.iter().filter_map(entry).collect()
}

/// Equal by value, in any order.
fn same(l: &[(Arc<str>, Quantity)], r: &[(Arc<str>, Quantity)]) -> bool {
    l.len() == r.len() && l.iter().all(|entry| r.contains(entry))
}
