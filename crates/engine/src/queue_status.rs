//! `status.allocated` of queues: the resources that their jobs hold, summed into all ancestors.
//! Specification: core.md 7.7, C-31.

mod devices;

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_framework::{Effect, Session, SessionState};
use vc_model::{JobId, QueueId};
use vc_resource::{Quantity, Resource};

use crate::engine::EngineMemory;

const ROOT: &str = "root";

/// The statuses as last recorded, and the versions that they depend on. While the versions stay,
/// only queues whose jobs hold other amounts are updated, with their ancestors.
///
/// Exact because
/// - sums are of integers,
/// - tests compare with a full computation in every cycle.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct QueueStatuses {
    /// Versions of the queues and of their statuses. `None` if all queues must be visited.
    basis: Option<(u64, u64)>,
    /// Amounts that the jobs of a queue hold. A queue without jobs has no entry.
    own: BTreeMap<QueueId, Resource>,
    /// Amounts that the jobs of a queue and of its descendants hold.
    sums: BTreeMap<QueueId, Resource>,
    reported: BTreeMap<QueueId, ReportedStatus>,
}

/// The status of a queue with its inputs. Most queues hold the same amounts as in the last cycle;
/// their texts and quantities are reused.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ReportedStatus {
    allocated: Resource,
    devices: Vec<(String, String)>,
    value: Vec<(Arc<str>, Quantity)>,
}

/// Writes the status of the queues whose amounts differ from those in the API.
pub(crate) fn record(session: &mut Session<'_>, memory: &mut EngineMemory) {
    let basis = (session.queue_version(), session.queue_status_version());
    let corrections = session.plugins().device_corrections();
    let has_devices = session.devices.claims().next().is_some() || !corrections.is_empty();
    let changed = changed(session).filter(|_| !has_devices);
    match changed.filter(|_| memory.statuses.basis == Some(basis)) {
        Some(changed) => record_changed(session, memory, &changed),
        None => record_all(session, memory, &corrections),
    }
    // Devices are counted again in each cycle.
    memory.statuses.basis = (!has_devices).then_some(basis);
}

/// `corrections` are amounts of shared devices that jobs have beyond their requests.
fn record_all(
    session: &mut Session<'_>,
    memory: &mut EngineMemory,
    corrections: &[(JobId, Resource)],
) {
    let mut own = own_sums(session);
    for (job, amounts) in corrections {
        let Some(job) = session.jobs.get(*job) else { continue };
        own.entry(job.queue).or_default().add(amounts);
    }
    memory.statuses.own.clear();
    let queues = session.info().queues.clone();
    let chains = chains(session, memory, &queues, &own);
    let sums = sums(&own, &chains);
    let devices = devices::counts(session, &chains);
    // Entries of queues that are gone are dropped.
    let earlier = std::mem::take(&mut memory.statuses.reported);
    memory.statuses = QueueStatuses { basis: None, own, sums, reported: earlier };
    memory.statuses.reported.retain(|&queue, _| session.queues[queue].present);
    for queue in queues {
        let devices = devices.get(&queue).map_or(&[][..], Vec::as_slice);
        memory.statuses.state(session, queue, devices);
    }
    // A queue that appears or disappears increases the version on which the statuses depend.
    let exists = |name: &Arc<str>| session.queue(name).is_some_and(|id| session.queues[id].present);
    memory.orphan_queues.retain(exists);
}

/// Returns the queues whose jobs hold other amounts than when the last session began, by name.
/// Returns `None` if they are not known.
fn changed(session: &SessionState<'_>) -> Option<Vec<QueueId>> {
    let info = session.info();
    let at_open = info.active_jobs.changed_queues()?.iter().copied();
    let has_moved = |job: &&JobId| {
        let at_open = info.active_jobs.allocated_at_open(**job).map(|amounts| &**amounts);
        at_open != Some(&session.jobs[**job].allocated)
    };
    let moved = info.to_close.iter().filter(has_moved).map(|&job| session.jobs[job].queue);
    let changed: BTreeSet<QueueId> = at_open.chain(moved).collect();
    Some(by_name(session, changed))
}

fn by_name(session: &SessionState<'_>, queues: BTreeSet<QueueId>) -> Vec<QueueId> {
    let present = queues.into_iter().filter(|&queue| session.queues[queue].present);
    let mut queues: Vec<QueueId> = present.collect();
    queues.sort_by(|&l, &r| session.queues[l].name.cmp(&session.queues[r].name));
    queues
}

fn record_changed(session: &mut Session<'_>, memory: &mut EngineMemory, changed: &[QueueId]) {
    let mut own = sums_of(session, changed);
    let above = chains(session, memory, changed, &own);
    let mut touched = BTreeSet::new();
    let nothing = Resource::default();
    for &queue in changed {
        let now = own.remove(&queue);
        let statuses = &mut memory.statuses;
        let before = match &now {
            Some(now) => statuses.own.insert(queue, now.clone()),
            None => statuses.own.remove(&queue),
        };
        let (before, now) = (before.as_ref().unwrap_or(&nothing), now.as_ref().unwrap_or(&nothing));
        let chain = above.get(&queue).into_iter().flatten();
        for &queue in std::iter::once(&queue).chain(chain) {
            let sum = statuses.sums.entry(queue).or_default();
            sum.add(now);
            sum.sub(before);
            touched.insert(queue);
        }
    }
    for queue in by_name(session, touched) {
        memory.statuses.state(session, queue, &[]);
    }
    check(session, memory);
}

/// Compares with a full computation, in builds with debug assertions and few queues.
fn check(session: &mut Session<'_>, memory: &mut EngineMemory) {
    if cfg!(debug_assertions) && session.info().queues.len() < 64 {
        let own = own_sums(session);
        let queues = session.info().queues.clone();
        let chains = chains(session, memory, &queues, &own);
        let anew = sums(&own, &chains);
        let nothing = Resource::default();
        for queue in queues {
            let kept = memory.statuses.sums.get(&queue).unwrap_or(&nothing);
            let fresh = anew.get(&queue).unwrap_or(&nothing);
            let [kept, fresh] = [kept, fresh].map(|sum| to_list(session, sum, &[]));
            debug_assert_eq!(kept, fresh, "queue {}", session.queues[queue].name);
        }
    }
}

impl QueueStatuses {
    /// Writes the status of one queue if the API has another one.
    fn state(&mut self, session: &mut Session<'_>, queue: QueueId, devices: &[(String, String)]) {
        let nothing = Resource::default();
        let allocated = self.sums.get(&queue).unwrap_or(&nothing);
        let known = self.reported.remove(&queue).filter(|known| known.is_of(allocated, devices));
        let reported = known.unwrap_or_else(|| ReportedStatus::of(session, allocated, devices));
        // Another writer may have changed the row since.
        let written = session.queues[queue].written_allocated.as_ref();
        if !written.is_some_and(|written| same(written, &reported.value)) {
            let name = session.queues[queue].name.clone();
            let list = to_list(session, allocated, devices);
            session.outcome.out.effects.push(Effect::QueueStatus { queue: name, allocated: list });
            session.cluster_mut().queues[queue].written_allocated = Some(reported.value.clone());
        }
        self.reported.insert(queue, reported);
    }
}

impl ReportedStatus {
    fn of(session: &SessionState<'_>, allocated: &Resource, devices: &[(String, String)]) -> Self {
        let value = parsed(&to_list(session, allocated, devices));
        Self { allocated: allocated.clone(), devices: devices.to_vec(), value }
    }

    /// True if the status was made from these inputs. A name keeps its dimension for ever, so equal
    /// amounts have equal texts.
    fn is_of(&self, allocated: &Resource, devices: &[(String, String)]) -> bool {
        self.allocated == *allocated && self.devices == devices
    }
}

/// Returns the amounts that the jobs of each queue hold, without descendants.
fn own_sums(session: &SessionState<'_>) -> BTreeMap<QueueId, Resource> {
    sums_of(session, &session.info().queues)
}

/// Returns the amounts that the jobs of some queues hold, without descendants. A queue without jobs
/// has no entry.
fn sums_of(session: &SessionState<'_>, queues: &[QueueId]) -> BTreeMap<QueueId, Resource> {
    let info = session.info();
    let of_queue = |&queue: &QueueId| (queue, info.active_jobs.sums(queue).allocated.clone());
    let with_jobs = queues.iter().filter(|&&queue| 0 < info.active_jobs.sums(queue).n_jobs);
    let mut own: BTreeMap<QueueId, Resource> = with_jobs.map(of_queue).collect();
    for &job in &info.to_close {
        let row = &session.jobs[job];
        let at_open = info.active_jobs.allocated_at_open(job).map(|amounts| &**amounts);
        if let Some(sum) = own.get_mut(&row.queue).filter(|_| at_open != Some(&row.allocated)) {
            at_open.into_iter().for_each(|amount| sum.sub(amount));
            sum.add(&row.allocated);
        }
    }
    own
}

/// Returns the amounts that the jobs of each queue and of all queues below it hold, as in
/// `status.allocated`, without corrections of shared devices.
pub(crate) fn sums_with_descendants(session: &SessionState<'_>) -> BTreeMap<QueueId, Resource> {
    let own = own_sums(session);
    let chain = |&queue: &QueueId| (queue, ancestors(session, queue).0);
    let chains = match has_root(session) {
        true => own.keys().map(chain).collect(),
        false => BTreeMap::new(),
    };
    sums(&own, &chains)
}

fn has_root(session: &SessionState<'_>) -> bool {
    session.queue(ROOT).is_some_and(|root| session.queues[root].present)
}

/// Returns the ancestors of the queues that have jobs or had some, and warns of problems with them. The map
/// is empty if there is no root.
fn chains(
    session: &mut Session<'_>,
    memory: &mut EngineMemory,
    queues: &[QueueId],
    own: &BTreeMap<QueueId, Resource>,
) -> BTreeMap<QueueId, Vec<QueueId>> {
    let mut chains = BTreeMap::new();
    if !has_root(session) {
        return chains;
    }
    // Visited by name, so that the order of warnings does not depend on arrival.
    for &queue in queues {
        if own.contains_key(&queue) || memory.statuses.own.contains_key(&queue) {
            let (chain, problem) = ancestors(session, queue);
            chains.insert(queue, chain);
            if let Some(OrphanQueue { name, problem }) = problem
                && memory.orphan_queues.insert(name)
            {
                session.outcome.out.warnings.push(problem);
            }
        }
    }
    chains
}

/// Returns the sums of all queues: each amount is added to all ancestors.
fn sums(
    own: &BTreeMap<QueueId, Resource>,
    chains: &BTreeMap<QueueId, Vec<QueueId>>,
) -> BTreeMap<QueueId, Resource> {
    let mut sums = own.clone();
    for (queue, chain) in chains {
        let Some(amount) = own.get(queue) else { continue };
        chain.iter().for_each(|&ancestor| sums.entry(ancestor).or_default().add(amount));
    }
    sums
}

/// A queue without a way up to root.
struct OrphanQueue {
    name: Arc<str>,
    problem: String,
}

/// Returns the ancestors of a queue up to root. A missing parent or a cycle ends the list.
fn ancestors(session: &SessionState<'_>, queue: QueueId) -> (Vec<QueueId>, Option<OrphanQueue>) {
    let mut chain = Vec::new();
    let mut seen = BTreeSet::from([queue]);
    let mut at = queue;
    while &*session.queues[at].name != ROOT {
        let row = &session.queues[at];
        let name = &row.name;
        let parent_name = if row.parent.is_empty() { ROOT } else { &*row.parent };
        let parent = session.queue(parent_name).filter(|&id| session.queues[id].present);
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
        return (chain, Some(OrphanQueue { name: name.clone(), problem }));
    }
    (chain, None)
}

/// Returns names with quantities, then devices. cpu and memory are always listed, other resources
/// only with an amount.
fn to_list(
    session: &SessionState<'_>,
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

/// True if both lists have equal values, in any order.
fn same(l: &[(Arc<str>, Quantity)], r: &[(Arc<str>, Quantity)]) -> bool {
    l.len() == r.len() && l.iter().all(|entry| r.contains(entry))
}
