//! DynamicResources as this plugin runs it: its switch, its time limit, reservations, scores of
//! alternatives, and the release of useless claims.
//! Specification: plugins-nodes.md 2.1, 2.6, 2.10, 6.

use vc_conf::{Argument, Arguments, StructuredInt, Warning};
use vc_filters::dynamic_resources::{self, DeviceCache, PodDeviceClaims};
use vc_filters::normalize::{Best, normalize};
use vc_filters::{NodeFilter, Pod, PreFilter};
use vc_framework::{ClassField, Effect, NodeColumnRule, NodeTest, Outbox, Records};
use vc_model::{ClaimPromise, Cluster, NodeId, TaskId};

/// Name of the filter in messages (section 2.2).
pub(super) const NAME: &str = "DynamicResources";

pub(super) const SWITCH: Argument<bool> =
    Argument::new("predicate.DynamicResourceAllocationEnable", true, "filter DynamicResources")
        .shown_as("true if the cluster serves `resource.k8s.io/v1`");
pub(super) const TIMEOUT: Argument<StructuredInt> = Argument::new(
    "dynamicresources.filterTimeoutSeconds",
    StructuredInt(10),
    "longest time of one filter call; 0: no limit",
);

/// Devices that a search may examine for each second of its time limit. The limit is counted in
/// steps, so it needs no clock and is the same on every machine.
const STEPS_PER_SECOND: u64 = 500_000;

/// The arguments `dynamicresources.*`, and the cache that all pods share.
pub(super) struct DynamicResources {
    /// The switch of the configuration. `None` if it is not given: the filter is on where the API
    /// server serves claims.
    explicit: Option<bool>,
    steps: Option<u64>,
    cache: DeviceCache,
}

/// The tests that [`DynamicResources::tests`] returns.
pub(super) struct DeviceTests<'a> {
    /// Fails nodes without devices. It is cached, because most nodes never have any.
    pub(super) has_devices: Option<NodeTest<'a>>,
    /// The whole filter, which reads more than the node.
    pub(super) cluster_scoped: NodeFilter<'a>,
}

impl DynamicResources {
    pub(super) fn new(arguments: &Arguments, warnings: &mut Vec<Warning>) -> Self {
        let is_given = arguments.get(SWITCH.key).is_some();
        let on = SWITCH.read(arguments, warnings);
        let seconds = TIMEOUT.read(arguments, warnings);
        let seconds = u64::try_from(seconds).unwrap_or(10);
        Self {
            explicit: is_given.then_some(on),
            steps: (seconds != 0).then(|| seconds.saturating_mul(STEPS_PER_SECOND)),
            cache: DeviceCache::default(),
        }
    }

    /// True if the pod has claims and the filter is on.
    pub(super) fn judges(&self, pod: Pod<'_>) -> bool {
        !dynamic_resources::skips(pod) && self.is_on(pod.cluster)
    }

    fn is_on(&self, cluster: &Cluster) -> bool {
        self.explicit.unwrap_or(cluster.settings.dynamic_resources)
    }

    /// Returns the tests of nodes for a pod with claims. Returns `None` if its claims cannot be
    /// resolved.
    pub(super) fn tests<'a>(&'a self, pod: Pod<'a>) -> Option<DeviceTests<'a>> {
        let claims = PodDeviceClaims::find(pod, &self.cache, self.steps).ok()?;
        let has_devices = claims.need_devices().then(|| {
            let claims = PodDeviceClaims::find(pod, &self.cache, self.steps).ok()?;
            Some(NodeTest::Object(NodeColumnRule {
                name: NAME,
                part: ClassField::Nothing,
                version: pod.cluster.devices.version(),
                value: Box::new(move |node| i64::from(claims.may_look_at(node))),
            }))
        });
        let cluster_scoped: NodeFilter<'a> = Box::new(move |node| claims.filter(node));
        Some(DeviceTests { has_devices: has_devices.flatten(), cluster_scoped })
    }

    /// True if the score of a node may depend on its devices.
    pub(super) fn scores(&self, pod: Pod<'_>) -> bool {
        let claims = || PodDeviceClaims::find(pod, &self.cache, self.steps);
        self.judges(pod) && claims().map_or(true, |claims| claims.has_alternatives())
    }

    pub(super) fn pre_filter<'a>(&'a self, pod: Pod<'a>) -> PreFilter<'a> {
        match self.is_on(pod.cluster) {
            true => dynamic_resources::pre_filter(pod, &self.cache, self.steps),
            false => PreFilter::Skip,
        }
    }

    pub(super) fn reserve(&self, pod: Pod<'_>, node: NodeId) -> Result<Vec<ClaimPromise>, String> {
        match self.judges(pod) {
            true => PodDeviceClaims::find(pod, &self.cache, self.steps)?.reserve(node),
            false => Ok(Vec::new()),
        }
    }

    /// Adds the normalized scores of the nodes for a pod whose claims have alternatives (section
    /// 6.8).
    pub(super) fn score(&self, pod: Pod<'_>, nodes: &[NodeId], out: &mut [f64]) {
        if !self.judges(pod) {
            return;
        }
        let Ok(claims) = PodDeviceClaims::find(pod, &self.cache, self.steps) else { return };
        if !claims.has_alternatives() {
            return;
        }
        let mut scores: Vec<i64> = nodes.iter().map(|&node| claims.score(node)).collect();
        normalize(&mut scores, Best::Highest);
        for (sum, score) in out.iter_mut().zip(scores) {
            *sum += score as f64;
        }
    }

    /// Deallocates a claim whose devices keep its only consumer off every node, one claim of a pod
    /// per cycle (deviation of 6.4).
    pub(super) fn release_useless(&self, cluster: &Cluster, records: &Records, out: &mut Outbox) {
        if cluster.devices.claims().next().is_none() {
            return;
        }
        let failed = records.fit_errors.iter();
        let blocked = failed.filter(|(_, errors)| dynamic_resources::blames_claims(errors));
        let mut tasks: Vec<TaskId> = blocked.map(|(task, _)| task).collect();
        tasks.sort_by_key(|&task| &cluster.tasks[task].key);
        for task in tasks {
            let pod = Pod::new(cluster, task);
            if !self.judges(pod) {
                continue;
            }
            let Ok(claims) = PodDeviceClaims::find(pod, &self.cache, self.steps) else { continue };
            if let Some(found) = claims.useless()
                && let Some(allocation) = found.allocation.clone()
            {
                let (claim, uid) = (found.key.clone(), found.uid.clone());
                let consumer = cluster.tasks[task].uid.clone();
                out.effects.push(Effect::DeallocateClaim { claim, uid, allocation, consumer });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nodes_13_the_time_limit_of_a_search() {
        let steps = |value: Option<serde_json::Value>| {
            let arguments = value.map(|value| ("dynamicresources.filterTimeoutSeconds", value));
            let mut warnings = Vec::new();
            let built = DynamicResources::new(&arguments.into_iter().collect(), &mut warnings);
            assert_eq!(warnings, []);
            built.steps
        };
        assert_eq!(steps(Some(json!(3))), Some(3 * STEPS_PER_SECOND));
        assert_eq!(steps(Some(json!(-5))), Some(10 * STEPS_PER_SECOND));
        assert_eq!(steps(None), Some(10 * STEPS_PER_SECOND));
        assert_eq!(steps(Some(json!(0))), None, "without limit");
    }
}
