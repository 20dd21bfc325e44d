//! DynamicResources: the devices that a pod's claims have or need must be available on the node.
//! Specification: plugins-nodes.md 6.

mod cache;
mod pools;
mod refusals;
mod result;
mod search;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use vc_model::{
    Allocation, ClaimPromise, ClaimSource, Code, Finding, FitErrors, InFlight, NodeId, ObjectKey,
    Reason, RequestKind, ResourceClaim, TaskId,
};

use crate::rule::{Pod, PreFilter, refused};
pub use cache::DeviceCache;
use pools::{PoolState, Pools};
use refusals::DeviceRefusals;
use search::{DeviceChoice, DeviceFailure, DeviceSearch};
use vc_model::node_selector::term_matches;

const IN_USE: &str = "resourceclaim in use";
const ELSEWHERE: &str = "resourceclaim not available on the node";
const NOTHING_FREE: &str = "cannot allocate all claims";
const INVALID_POOLS: &str = "invalid resource pools were encountered";
const TIMED_OUT: &str = "timed out trying to allocate devices";

/// Maximum length of `status.reservedFor`.
const MOST_CONSUMERS: usize = 256;

/// The resource claims of a pod in their current state.
pub struct PodDeviceClaims<'a> {
    pod: Pod<'a>,
    /// All claims, each once, in the order of the pod.
    claims: Vec<&'a ResourceClaim>,
    /// Claims that have no devices yet.
    open: Vec<&'a ResourceClaim>,
    /// The other claims with their allocations.
    allocated: Vec<(&'a ResourceClaim, &'a Arc<Allocation>)>,
    pools: Arc<Pools>,
    cache: &'a DeviceCache,
    /// Number of devices that one search may examine. `None` means no limit.
    steps: Option<u64>,
    /// Nodes on which the open claims are known to fail.
    refusals: OnceLock<Arc<DeviceRefusals>>,
}

/// True if some node was refused because of the allocation of a claim.
pub fn blames_claims(errors: &FitErrors) -> bool {
    errors.reasons.contains_key(&Reason::Text(ELSEWHERE))
}

/// True if the pod has no resource claims.
pub fn skips(pod: Pod<'_>) -> bool {
    pod.class.resource_claims.is_empty()
}

/// Runs the pre-filter. It refuses the pod if its claims cannot be satisfied on any node (section
/// 6.3).
pub fn pre_filter<'a>(pod: Pod<'a>, cache: &'a DeviceCache, steps: Option<u64>) -> PreFilter<'a> {
    if skips(pod) {
        return PreFilter::Skip;
    }
    match PodDeviceClaims::find(pod, cache, steps) {
        Ok(claims) if claims.claims.is_empty() => PreFilter::Skip,
        Ok(claims) => PreFilter::Ask(Box::new(move |node| claims.filter(node))),
        Err(text) => PreFilter::Refuse(refused(Code::Unresolvable, text)),
    }
}

impl<'a> PodDeviceClaims<'a> {
    /// Collects the claims of the pod.
    ///
    /// # Errors
    ///
    /// The reason why the pod fits on no node (sections 6.2, 6.3).
    pub fn find(pod: Pod<'a>, cache: &'a DeviceCache, steps: Option<u64>) -> Result<Self, String> {
        let pools = cache.pools(&pod.cluster.devices);
        let (claims, open, allocated) = (Vec::new(), Vec::new(), Vec::new());
        let refusals = OnceLock::new();
        let mut found = Self { pod, claims, open, allocated, pools, cache, steps, refusals };
        let mut seen = BTreeSet::new();
        for claim in named_claims(pod)? {
            if seen.insert(&claim.key) {
                found.add(claim)?;
            }
        }
        Ok(found)
    }

    fn add(&mut self, claim: &'a ResourceClaim) -> Result<(), String> {
        let promised = self.pod.cluster.devices.in_flight(&claim.key);
        if MOST_CONSUMERS <= self.n_others(claim, promised) {
            return Err(IN_USE.to_owned());
        }
        let chosen = promised.and_then(InFlight::chosen);
        match (&claim.allocation, chosen) {
            (Some(allocation), _) => self.allocated.push((claim, allocation)),
            // An allocation chosen by a task of the same gang is valid for its siblings (section
            // 2.6).
            (None, Some((task, allocation))) if self.is_sibling(task) => {
                self.allocated.push((claim, allocation));
            }
            (None, Some(_)) => {
                let key = &claim.key;
                return Err(format!("resource claim {key} is in the process of being allocated"));
            }
            (None, None) => {
                check_requests(self.pod, claim)?;
                self.open.push(claim);
            }
        }
        self.claims.push(claim);
        Ok(())
    }

    /// Returns the number of consumers other than the pod, stored and reserved.
    fn n_others(&self, claim: &ResourceClaim, promised: Option<&InFlight>) -> usize {
        let cluster = self.pod.cluster;
        let own = &cluster.tasks[self.pod.task].uid;
        let stored = claim.reserved_for.iter().map(|consumer| &consumer.uid);
        let promised = promised.into_iter().flat_map(|promised| promised.tasks.keys());
        let promised = promised.map(|&task| &cluster.tasks[task].uid);
        stored.chain(promised).filter(|&uid| uid != own).collect::<BTreeSet<_>>().len()
    }

    fn is_sibling(&self, task: TaskId) -> bool {
        let job = |task: TaskId| self.pod.cluster.tasks[task].job;
        job(task).is_some() && job(task) == job(self.pod.task)
    }

    /// True if the open claims fail on a node without devices.
    pub fn need_devices(&self) -> bool {
        let devices = &self.pod.cluster.devices;
        let search = || DeviceSearch::new(devices, self.cache, &self.open, &[], self.steps).run();
        !self.open.is_empty() && search().is_err()
    }

    /// True if the node has devices to examine. The answer changes only with
    /// [`vc_model::Devices::version`] or the node object.
    pub fn may_look_at(&self, node: NodeId) -> bool {
        !self.pools.of(&self.pod.cluster.nodes[node]).is_empty()
    }

    /// Returns the finding against the node. Returns `None` if it passes (section 6.4).
    pub fn filter(&self, node: NodeId) -> Option<Finding> {
        let unavailable = !self.is_available(node);
        if !self.open.is_empty()
            && let Err(failure) = self.search_once(node)
        {
            return Some(self.finding(node, failure));
        }
        unavailable.then(|| Finding::new(Code::Unresolvable, ELSEWHERE))
    }

    /// True if the existing allocations can be used on the node.
    fn is_available(&self, node: NodeId) -> bool {
        let row = &self.pod.cluster.nodes[node];
        self.allocated.iter().all(|(_, allocation)| match &allocation.node_selector {
            None => true,
            Some(terms) => terms.iter().any(|term| term_matches(term, row)),
        })
    }

    /// Searches for devices, unless equal requests are known to fail on the node.
    fn search_once(&self, node: NodeId) -> Result<(), DeviceFailure> {
        let make = || self.cache.refusals(self.pod.cluster, &self.open, self.steps);
        let refusals = self.refusals.get_or_init(make);
        if refusals.has(node) {
            return Err(DeviceFailure::None);
        }
        let found = self.search(node).map(drop);
        if found == Err(DeviceFailure::None) {
            refusals.add(node);
        }
        found
    }

    fn finding(&self, node: NodeId, failure: DeviceFailure) -> Finding {
        let any_invalid = || {
            let pools = self.pools.of(&self.pod.cluster.nodes[node]);
            pools.iter().any(|pool| pool.state == PoolState::Invalid)
        };
        match failure {
            DeviceFailure::TooLong => Finding::new(Code::Unresolvable, TIMED_OUT),
            DeviceFailure::None if self.pools.any_doubled() && any_invalid() => {
                Finding::new(Code::Unresolvable, INVALID_POOLS)
            }
            DeviceFailure::None => Finding::new(Code::Unresolvable, NOTHING_FREE),
            DeviceFailure::Wrong(text) => refused(Code::Error, text),
        }
    }

    /// Returns devices for every open claim, in the order of the claims.
    fn search(&self, node: NodeId) -> Result<Vec<(Vec<DeviceChoice>, Allocation)>, DeviceFailure> {
        let cluster = self.pod.cluster;
        let row = &cluster.nodes[node];
        let pools = self.pools.of(row);
        let search =
            DeviceSearch::new(&cluster.devices, self.cache, &self.open, &pools, self.steps);
        let (chosen, candidates) = search.run()?;
        let of_claim = |claim: usize| {
            let chosen = chosen.iter().filter(|choice| choice.claim == claim);
            let chosen: Vec<DeviceChoice> = chosen.cloned().collect();
            let of = result::ClaimChoice { claim: self.open[claim], choices: &chosen };
            let allocation = of.allocation(&cluster.devices, &candidates, &row.name)?;
            Ok((chosen, allocation))
        };
        (0..self.open.len()).map(of_claim).collect()
    }

    /// Returns what is reserved for the task on the node (section 6.7).
    ///
    /// # Errors
    ///
    /// The node no longer has the devices.
    pub fn reserve(&self, node: NodeId) -> Result<Vec<ClaimPromise>, String> {
        if !self.is_available(node) {
            return Err(ELSEWHERE.to_owned());
        }
        let found = self.search(node).map_err(|_| "claim allocation not found for node")?;
        let mut found = found.into_iter().map(|(_, allocation)| Arc::new(allocation));
        let chosen = |claim: &ResourceClaim| {
            let promised = self.pod.cluster.devices.in_flight(&claim.key)?;
            promised.chosen().map(|(_, chosen)| chosen.clone())
        };
        let promise = |claim: &&ResourceClaim| {
            let is_open = self.open.iter().any(|open| open.key == claim.key);
            // The first task that is written writes the allocation chosen for all (section 2.6).
            let allocation = match (is_open, &claim.allocation) {
                (true, _) => found.next(),
                (false, Some(_)) => None,
                (false, None) => chosen(claim),
            };
            ClaimPromise { key: claim.key.clone(), uid: claim.uid.clone(), allocation }
        };
        Ok(self.claims.iter().map(promise).collect())
    }

    /// Returns the first claim whose devices keep the pod off some node and that only this pod uses
    /// (deviation of 6.4). It is called when the pod fits on no node.
    pub fn useless(&self) -> Option<&ResourceClaim> {
        let cluster = self.pod.cluster;
        let own = &cluster.tasks[self.pod.task].uid;
        let unused = |claim: &ResourceClaim| {
            claim.reserved_for.iter().all(|consumer| consumer.uid == *own)
                && cluster.devices.in_flight(&claim.key).is_none()
        };
        let nodes = || cluster.nodes_by_name().iter().map(|&node| &cluster.nodes[node]);
        let is_narrow = |allocation: &Allocation| {
            let terms = allocation.node_selector.as_deref();
            terms.is_some_and(|terms| {
                nodes().any(|node| !terms.iter().any(|term| term_matches(term, node)))
            })
        };
        let mut stored = self.allocated.iter().filter(|(claim, _)| claim.allocation.is_some());
        let found = stored.find(|(claim, allocation)| is_narrow(allocation) && unused(claim));
        found.map(|(claim, _)| *claim)
    }

    /// True if a request has alternatives, so that nodes may score differently (section 6.8).
    pub fn has_alternatives(&self) -> bool {
        let mut requests = self.open.iter().flat_map(|claim| &claim.requests);
        requests.any(|request| matches!(request.kind, RequestKind::FirstAvailable(_)))
    }

    /// Returns the raw score of a node. It is higher the better the alternatives that the node
    /// serves.
    pub fn score(&self, node: NodeId) -> i64 {
        let Ok(found) = self.search(node) else { return 0 };
        let mut requests = BTreeSet::new();
        let mut sum = 0;
        for (index, (choices, _)) in found.iter().enumerate() {
            for choice in choices {
                if let Some(alternative) = choice.alternative
                    && requests.insert((index, choice.request))
                {
                    sum += 8 - i64::try_from(alternative).unwrap_or(8);
                }
            }
        }
        sum
    }
}

/// Returns the claims that the pod names, in its order (section 6.2).
fn named_claims(pod: Pod<'_>) -> Result<Vec<&ResourceClaim>, String> {
    let task = &pod.cluster.tasks[pod.task];
    let key = &task.key;
    let mut claims = Vec::new();
    for entry in &pod.class.resource_claims {
        let (name, is_made) = match &entry.source {
            ClaimSource::Named(name) => (name, false),
            ClaimSource::Made(name) => (name, true),
            ClaimSource::NotNeeded => continue,
            ClaimSource::NotMade => {
                return Err(format!("pod \"{key}\": ResourceClaim not created yet"));
            }
            ClaimSource::Unset => {
                let name = &entry.name;
                return Err(format!(
                    "pod \"{key}\", spec.resourceClaim \"{name}\": none of the supported fields \
                     are set"
                ));
            }
        };
        let namespace = key.namespace.clone();
        let claim_key = ObjectKey { namespace, name: name.clone() };
        let Some(claim) = pod.cluster.devices.claim(&claim_key) else {
            return Err(format!("could not find ResourceClaim \"{claim_key}\""));
        };
        if claim.deleting {
            return Err(format!("resourceclaim \"{name}\" is being deleted"));
        }
        if is_made && claim.controller != task.uid {
            return Err(format!(
                "ResourceClaim {claim_key} was not created for Pod {key} (Pod is not owner)"
            ));
        }
        claims.push(claim);
    }
    Ok(claims)
}

/// Checks that every request names a device class that exists.
fn check_requests(pod: Pod<'_>, claim: &ResourceClaim) -> Result<(), String> {
    let known = |place: &str, class: &Arc<str>| match pod.cluster.devices.class(class) {
        Some(_) => Ok(()),
        None => Err(format!("request {place}: device class {class} does not exist")),
    };
    claim.requests.iter().try_for_each(|request| match &request.kind {
        RequestKind::Exactly(exact) => known(&request.name, &exact.class),
        RequestKind::FirstAvailable(alternatives) => alternatives
            .iter()
            .try_for_each(|(name, exact)| known(&format!("{}/{name}", request.name), &exact.class)),
        RequestKind::Unknown => Err(format!(
            "resource claim {}, request {}: unknown request type",
            claim.key, request.name
        )),
    })
}
