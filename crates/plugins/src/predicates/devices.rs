//! DynamicResources as this plugin runs it: whether it is on, its limit, what a task is promised,
//! the score of alternatives, and claims that nobody can use any more. Specification:
//! plugins-nodes.md 2.1, 2.6, 2.10, 6.

use vc_conf::{Arguments, Warning};
use vc_filters::dynamic_resources::{self, DeviceCache, PodClaims};
use vc_filters::normalize::{Best, normalize};
use vc_filters::{NodeFilter, Pod, PreFilter};
use vc_framework::{Effect, ObjectRule, Outbox, Part, Records, Test};
use vc_model::{ClaimPromise, Cluster, NodeId, TaskId};

/// In messages (2.2).
pub(super) const NAME: &str = "DynamicResources";

const SWITCH: &str = "predicate.DynamicResourceAllocationEnable";

/// Devices that a search may look at for each second of its time limit: without a clock the limit
/// is one of steps, and the same on every machine.
const STEPS_PER_SECOND: u64 = 500_000;

/// `dynamicresources.*` and what is worked out once for all pods.
pub(super) struct DynamicResources {
    /// What the configuration says; `None`: on where the API server serves claims.
    explicit: Option<bool>,
    steps: Option<u64>,
    cache: DeviceCache,
}

/// See [`DynamicResources::tests`].
pub(super) struct DeviceTests<'a> {
    /// Most nodes have no devices, and keep having none.
    pub(super) has_devices: Option<Test<'a>>,
    /// Everything.
    pub(super) wide: NodeFilter<'a>,
}

impl DynamicResources {
    pub(super) fn new(arguments: &Arguments, warnings: &mut Vec<Warning>) -> Self {
        let is_given = arguments.get(SWITCH).is_some();
        let on = arguments.bool(SWITCH, true, warnings);
        let seconds = arguments.structured_int("dynamicresources.filterTimeoutSeconds", 10);
        let seconds = u64::try_from(seconds).unwrap_or(10);
        Self {
            explicit: is_given.then_some(on),
            steps: (seconds != 0).then(|| seconds.saturating_mul(STEPS_PER_SECOND)),
            cache: DeviceCache::default(),
        }
    }

    /// Whether the claims of the pod are looked at.
    pub(super) fn judges(&self, pod: Pod<'_>) -> bool {
        !dynamic_resources::skips(pod) && self.is_on(pod.cluster)
    }

    fn is_on(&self, cluster: &Cluster) -> bool {
        self.explicit.unwrap_or(cluster.settings.dynamic_resources)
    }

    /// What the claims of a pod that has some ask of nodes, in the form in which it is remembered.
    /// `None`: that cannot be said.
    pub(super) fn tests<'a>(&'a self, pod: Pod<'a>) -> Option<DeviceTests<'a>> {
        let claims = PodClaims::find(pod, &self.cache, self.steps).ok()?;
        let has_devices = claims.need_devices().then(|| {
            let claims = PodClaims::find(pod, &self.cache, self.steps).ok()?;
            Some(Test::Object(ObjectRule {
                name: NAME,
                part: Part::Nothing,
                version: pod.cluster.devices.version(),
                ask: Box::new(move |node| i64::from(claims.may_look_at(node))),
            }))
        });
        let wide: NodeFilter<'a> = Box::new(move |node| claims.filter(node));
        Some(DeviceTests { has_devices: has_devices.flatten(), wide })
    }

    /// Whether the score of a node depends on its devices.
    pub(super) fn scores(&self, pod: Pod<'_>) -> bool {
        let claims = || PodClaims::find(pod, &self.cache, self.steps);
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
            true => PodClaims::find(pod, &self.cache, self.steps)?.reserve(node),
            false => Ok(Vec::new()),
        }
    }

    /// Adds the scores: of pods with alternatives, and for the claims that get devices (6.8).
    pub(super) fn score(&self, pod: Pod<'_>, nodes: &[NodeId], out: &mut [f64]) {
        if !self.judges(pod) {
            return;
        }
        let Ok(claims) = PodClaims::find(pod, &self.cache, self.steps) else { return };
        if !claims.has_alternatives() {
            return;
        }
        let mut scores: Vec<i64> = nodes.iter().map(|&node| claims.score(node)).collect();
        normalize(&mut scores, Best::Highest);
        for (sum, score) in out.iter_mut().zip(scores) {
            *sum += score as f64;
        }
    }

    /// Takes the devices of a claim away that keep its only consumer off every node: one claim of a
    /// pod per cycle (deviation of 6.4).
    pub(super) fn release_useless(&self, cluster: &Cluster, records: &Records, out: &mut Outbox) {
        let failed = records.fit_errors.iter();
        let blocked = failed.filter(|(_, errors)| dynamic_resources::blames_claims(errors));
        let mut tasks: Vec<TaskId> = blocked.map(|(&task, _)| task).collect();
        tasks.sort_by_key(|&task| &cluster.tasks[task].key);
        for task in tasks {
            let pod = Pod::new(cluster, task);
            if !self.judges(pod) {
                continue;
            }
            let Ok(claims) = PodClaims::find(pod, &self.cache, self.steps) else { continue };
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
