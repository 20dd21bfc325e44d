//! The search for devices on one node: depth first over claims, requests and devices, the first
//! solution wins. Specification: plugins-nodes.md 6.5 (Search, Constraints).

use std::sync::Arc;

use vc_model::{
    AllocationMode, Attribute, Device, DeviceConstraint, DeviceId, DeviceRequest, DeviceTaint,
    Devices, ExactRequest, RequestKind, ResourceClaim, SliceNodes,
};

use super::cache::DeviceCache;
use super::pools::{NodePool, PoolState};

/// `devices.results` of a claim holds no more.
const MOST_RESULTS: usize = 32;

/// A device that the node can use.
pub(super) struct DeviceCandidate<'a> {
    pub(super) id: DeviceId,
    pub(super) device: &'a Arc<Device>,
    pub(super) nodes: &'a SliceNodes,
}

/// A device that was chosen.
#[derive(Clone, Debug)]
pub(super) struct DeviceChoice {
    /// Position among the candidates.
    pub(super) candidate: usize,
    pub(super) claim: usize,
    pub(super) request: usize,
    /// Which alternative of `firstAvailable`; `None`: the request has none.
    pub(super) alternative: Option<usize>,
}

/// Why no devices were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DeviceFailure {
    /// There is no solution.
    None,
    /// The budget of steps is used up.
    TooLong,
    /// Something is wrong; the text says what.
    Wrong(String),
}

pub(super) struct DeviceSearch<'a> {
    pub(super) devices: &'a Devices,
    pub(super) cache: &'a DeviceCache,
    pub(super) claims: &'a [&'a ResourceClaim],
    pub(super) pools: &'a [NodePool<'a>],
    pub(super) candidates: Vec<DeviceCandidate<'a>>,
    /// Devices that may still be looked at; `None`: without limit.
    pub(super) steps: Option<u64>,
    chosen: Vec<DeviceChoice>,
}

/// One way to satisfy a request.
#[derive(Clone, Copy)]
struct RequestAlternative<'a> {
    claim: usize,
    request: usize,
    alternative: Option<usize>,
    exact: &'a ExactRequest,
}

impl<'a> DeviceSearch<'a> {
    pub(super) fn new(
        devices: &'a Devices,
        cache: &'a DeviceCache,
        claims: &'a [&'a ResourceClaim],
        pools: &'a [NodePool<'a>],
        steps: Option<u64>,
    ) -> Self {
        let usable = pools.iter().filter(|pool| pool.state == PoolState::Usable);
        let candidates = usable.flat_map(|pool| {
            pool.slices.iter().flat_map(move |slice| {
                slice.devices.iter().map(move |device| DeviceCandidate {
                    id: DeviceId {
                        driver: pool.driver.clone(),
                        pool: pool.name.clone(),
                        device: device.name.clone(),
                    },
                    device,
                    nodes: &slice.nodes,
                })
            })
        });
        let candidates = candidates.collect();
        Self { devices, cache, claims, pools, candidates, steps, chosen: Vec::new() }
    }

    /// The devices, in the order in which they were chosen.
    pub(super) fn run(
        mut self,
    ) -> Result<(Vec<DeviceChoice>, Vec<DeviceCandidate<'a>>), DeviceFailure> {
        for claim in self.claims {
            check_size(claim)?;
            check_constraints(claim)?;
        }
        match self.request(0, 0)? {
            true => Ok((self.chosen, self.candidates)),
            false => Err(DeviceFailure::None),
        }
    }

    /// This request and all after it.
    fn request(&mut self, claim: usize, request: usize) -> Result<bool, DeviceFailure> {
        let Some(row) = self.claims.get(claim).copied() else { return Ok(true) };
        let Some(asked) = row.requests.get(request) else { return self.request(claim + 1, 0) };
        match &asked.kind {
            RequestKind::Exactly(exact) => {
                self.way(RequestAlternative { claim, request, alternative: None, exact })
            }
            RequestKind::FirstAvailable(alternatives) => {
                for (index, (_, exact)) in alternatives.iter().enumerate() {
                    let alternative = Some(index);
                    if self.way(RequestAlternative { claim, request, alternative, exact })? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            RequestKind::Unknown => Ok(false),
        }
    }

    fn way(&mut self, way: RequestAlternative<'a>) -> Result<bool, DeviceFailure> {
        let place = || format!("claim {}, request {}", self.claims[way.claim].key, self.name(way));
        if way.exact.has_capacity {
            let text = format!("{}: capacity requirements are not supported", place());
            return Err(DeviceFailure::Wrong(text));
        }
        match way.exact.mode {
            AllocationMode::Count(n_devices) => self.some(way, n_devices, 0),
            AllocationMode::All => {
                let place = place();
                self.all(way, &place)
            }
            AllocationMode::Unknown => {
                Err(DeviceFailure::Wrong(format!("{}: unsupported count mode", place())))
            }
        }
    }

    /// So many devices behind a position, then the next request.
    fn some(
        &mut self,
        way: RequestAlternative<'a>,
        n_devices: u32,
        from: usize,
    ) -> Result<bool, DeviceFailure> {
        if n_devices == 0 {
            return self.request(way.claim, way.request + 1);
        }
        for candidate in from..self.candidates.len() {
            self.step()?;
            if !self.may_take(way, candidate)? || !self.is_selected(way, candidate)? {
                continue;
            }
            if !self.keeps_constraints(way, candidate) {
                continue;
            }
            self.take(way, candidate);
            if self.some(way, n_devices - 1, candidate + 1)? {
                return Ok(true);
            }
            self.chosen.pop();
        }
        Ok(false)
    }

    /// Every device that is selected; each must be free.
    fn all(&mut self, way: RequestAlternative<'a>, place: &str) -> Result<bool, DeviceFailure> {
        for pool in self.pools {
            let problem = match pool.state {
                PoolState::Usable => continue,
                PoolState::Incomplete => "currently being updated",
                PoolState::Invalid => "currently invalid",
            };
            return Err(DeviceFailure::Wrong(format!(
                "{place}: asks for all devices, but resource pool {}/{} is {problem}",
                pool.driver, pool.name
            )));
        }
        let before = self.chosen.len();
        for candidate in 0..self.candidates.len() {
            self.step()?;
            if !self.is_selected(way, candidate)? {
                continue;
            }
            if !self.may_take(way, candidate)? {
                self.chosen.truncate(before);
                return Ok(false);
            }
            if !self.keeps_constraints(way, candidate) {
                let device = &self.candidates[candidate].id;
                return Err(DeviceFailure::Wrong(format!(
                    "{place}: cannot add device {device} because a claim constraint would not be \
                     satisfied"
                )));
            }
            self.take(way, candidate);
        }
        if self.chosen.len() != before && self.request(way.claim, way.request + 1)? {
            return Ok(true);
        }
        self.chosen.truncate(before);
        Ok(false)
    }

    fn step(&mut self) -> Result<(), DeviceFailure> {
        match &mut self.steps {
            Some(0) => Err(DeviceFailure::TooLong),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn take(&mut self, way: RequestAlternative<'a>, candidate: usize) {
        let RequestAlternative { claim, request, alternative, .. } = way;
        self.chosen.push(DeviceChoice { candidate, claim, request, alternative });
    }

    /// Free, tolerated, and room for one more result.
    fn may_take(
        &self,
        way: RequestAlternative<'a>,
        candidate: usize,
    ) -> Result<bool, DeviceFailure> {
        let of = &self.candidates[candidate];
        let admin = way.exact.admin_access;
        let here = |choice: &&DeviceChoice| choice.candidate == candidate;
        let mut others = self.chosen.iter().filter(here);
        let blocked = match admin {
            // It may be in use, but not chosen before for the same claim.
            true => others.any(|choice| choice.claim == way.claim),
            false => self.devices.is_taken(&of.id) || others.any(|choice| !self.is_admin(choice)),
        };
        let n_results = self.chosen.iter().filter(|choice| choice.claim == way.claim).count();
        let tolerated = of.device.taints.iter().all(|taint| tolerates(way.exact, taint));
        Ok(!blocked && tolerated && !of.device.unjudged && n_results < MOST_RESULTS)
    }

    fn is_admin(&self, choice: &DeviceChoice) -> bool {
        self.exact(choice).is_some_and(|exact| exact.admin_access)
    }

    fn exact(&self, choice: &DeviceChoice) -> Option<&'a ExactRequest> {
        exact(&self.claims[choice.claim].requests[choice.request], choice.alternative)
    }

    /// The selectors of the class, then those of the request.
    fn is_selected(
        &self,
        way: RequestAlternative<'a>,
        candidate: usize,
    ) -> Result<bool, DeviceFailure> {
        let of = &self.candidates[candidate];
        let claim = self.claims[way.claim];
        let name = &way.exact.class;
        let Some(class) = self.devices.class(name) else {
            let text = format!("could not find device class {name}");
            return Err(DeviceFailure::Wrong(text));
        };
        let class_place = || format!("class {name}");
        let claim_place = || format!("claim {}", claim.key);
        Ok(self.select(&class.selectors, of, class_place)?
            && self.select(&way.exact.selectors, of, claim_place)?)
    }

    fn select(
        &self,
        selectors: &[Arc<str>],
        of: &DeviceCandidate<'_>,
        place: impl Fn() -> String,
    ) -> Result<bool, DeviceFailure> {
        for (index, selector) in selectors.iter().enumerate() {
            let selected = self.cache.matches(selector, &of.id.driver, of.device);
            let wrong =
                |error| DeviceFailure::Wrong(format!("{}: selector #{index}: {error}", place()));
            if !selected.map_err(wrong)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Every chosen device of a constraint's requests has the attribute with the same value.
    fn keeps_constraints(&self, way: RequestAlternative<'a>, candidate: usize) -> bool {
        let claim = self.claims[way.claim];
        let request = &claim.requests[way.request];
        claim.constraints.iter().filter(|rule| covers(rule, request, way.alternative)).all(|rule| {
            let Some(name) = &rule.match_attribute else { return false };
            let of = &self.candidates[candidate];
            let Some(value) = attribute(of, name) else { return false };
            let of_rule = |choice: &&DeviceChoice| {
                choice.claim == way.claim
                    && covers(rule, &claim.requests[choice.request], choice.alternative)
            };
            let mut chosen = self.chosen.iter().filter(of_rule);
            chosen.all(|choice| attribute(&self.candidates[choice.candidate], name) == Some(value))
        })
    }

    fn name(&self, way: RequestAlternative<'_>) -> String {
        request_name(&self.claims[way.claim].requests[way.request], way.alternative)
    }
}

/// The alternative of a request, or the request itself.
pub(super) fn exact(request: &DeviceRequest, alternative: Option<usize>) -> Option<&ExactRequest> {
    match (&request.kind, alternative) {
        (RequestKind::Exactly(exact), None) => Some(exact),
        (RequestKind::FirstAvailable(all), Some(index)) => all.get(index).map(|(_, exact)| exact),
        _ => None,
    }
}

/// `<request>`, or `<request>/<subrequest>`.
pub(super) fn request_name(request: &DeviceRequest, alternative: Option<usize>) -> String {
    match (&request.kind, alternative) {
        (RequestKind::FirstAvailable(all), Some(index)) if index < all.len() => {
            format!("{}/{}", request.name, all[index].0)
        }
        _ => request.name.to_string(),
    }
}

/// A listed request covers its alternatives; one of these may be listed, too.
fn covers(rule: &DeviceConstraint, request: &DeviceRequest, alternative: Option<usize>) -> bool {
    let full = request_name(request, alternative);
    let listed = |name: &Arc<str>| *name == request.name || **name == *full;
    rule.requests.is_empty() || rule.requests.iter().any(listed)
}

/// A name without domain on the device belongs to the domain of the driver.
fn attribute<'a>(of: &DeviceCandidate<'a>, name: &str) -> Option<&'a Attribute> {
    let attributes = &of.device.attributes;
    attributes.get(name).or_else(|| match name.split_once('/') {
        Some((domain, id)) if *domain == *of.id.driver => attributes.get(id),
        _ => None,
    })
}

fn tolerates(exact: &ExactRequest, taint: &DeviceTaint) -> bool {
    if !matches!(&*taint.effect, "NoSchedule" | "NoExecute") {
        return true;
    }
    exact.tolerations.iter().any(|toleration| {
        (toleration.effect.is_empty() || toleration.effect == taint.effect)
            && (toleration.key.is_empty() || toleration.key == taint.key)
            && (toleration.exists || toleration.value == taint.value)
    })
}

/// The fewest devices that the claim can do with.
fn check_size(claim: &ResourceClaim) -> Result<(), DeviceFailure> {
    let least = |exact: &ExactRequest| match exact.mode {
        AllocationMode::Count(n_devices) => n_devices as usize,
        AllocationMode::All | AllocationMode::Unknown => 1,
    };
    let of_request = |request: &DeviceRequest| match &request.kind {
        RequestKind::Exactly(exact) => least(exact),
        RequestKind::FirstAvailable(all) => all.iter().map(|(_, e)| least(e)).min().unwrap_or(0),
        RequestKind::Unknown => 0,
    };
    let n_devices: usize = claim.requests.iter().map(of_request).sum();
    match n_devices <= MOST_RESULTS {
        true => Ok(()),
        false => Err(DeviceFailure::Wrong(format!(
            "claim {}: number of requested devices {n_devices} exceeds the claim limit of \
             {MOST_RESULTS}",
            claim.key
        ))),
    }
}

/// A constraint of a kind that is not known fails closed.
fn check_constraints(claim: &ResourceClaim) -> Result<(), DeviceFailure> {
    match claim.constraints.iter().position(|rule| rule.match_attribute.is_none()) {
        None => Ok(()),
        Some(index) => Err(DeviceFailure::Wrong(format!(
            "claim {}, constraint #{index}: empty constraint (unsupported constraint type?)",
            claim.key
        ))),
    }
}
