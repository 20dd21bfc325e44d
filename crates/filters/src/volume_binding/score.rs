//! Scores how full the storage of a node is with the pod's volumes, behind the feature gate
//! StorageCapacityScoring.
//! Specification: plugins-nodes.md 5.9.

use std::collections::BTreeMap;

use vc_model::NodeId;

use super::PodVolumeClaims;
use super::provision::offers;
use crate::rule::Pod;

/// A point of the score curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapePoint {
    /// Per cent of the capacity.
    pub utilization: i64,
    /// Score from 0 to 10.
    pub score: i64,
}

/// Returns the score of each node, from 0 to 100. Returns `None` if the pod's volumes do not affect
/// the score.
///
/// # Errors
///
/// The reason why a claim is not usable.
pub fn score(
    pod: Pod<'_>,
    nodes: &[NodeId],
    shape: &[ShapePoint],
) -> Result<Option<Vec<i64>>, String> {
    let text = |finding: vc_model::Finding| finding.reason.text(&pod.cluster.dims);
    let Some(claims) = PodVolumeClaims::of(pod).map_err(text)? else { return Ok(None) };
    let of_node = |&node: &NodeId| Ok(claims.usage(node)?.map_or(0, |usage| rate(&usage, shape)));
    nodes.iter().map(of_node).collect::<Result<_, _>>().map(Some)
}

/// Requested and offered bytes of each storage class.
type VolumeUsage<'a> = BTreeMap<&'a str, (i64, i64)>;

impl<'a> PodVolumeClaims<'a> {
    /// Returns the usage of each storage class on the node. Returns `None` if the node does not
    /// fit.
    fn usage(&self, node: NodeId) -> Result<Option<VolumeUsage<'a>>, String> {
        let Ok(fit) = self.fit(node)? else { return Ok(None) };
        let mut usage = VolumeUsage::new();
        for (claim, volume) in &fit.bindings {
            let sum = usage.entry(&claim.class).or_default();
            sum.0 = sum.0.saturating_add(claim.request_bytes.unwrap_or(0));
            sum.1 = sum.1.saturating_add(volume.capacity_bytes);
        }
        if !fit.bindings.is_empty() {
            return Ok(Some(usage));
        }
        let row = &self.pod.cluster.nodes[node];
        for (claim, class) in &fit.provisions {
            let Some(request) = claim.request_bytes else { continue };
            let mut rows = self.pod.cluster.volumes.capacities(&class.name);
            if let Some(capacity) = rows.find(|capacity| offers(capacity, request, row)) {
                let sum = usage.entry(&class.name).or_default();
                sum.0 = sum.0.saturating_add(request);
                sum.1 = capacity.capacity_bytes.unwrap_or(0);
            }
        }
        Ok(Some(usage))
    }
}

fn rate(usage: &VolumeUsage<'_>, shape: &[ShapePoint]) -> i64 {
    if usage.is_empty() {
        return 0;
    }
    let of_class = |&(requested, capacity): &(i64, i64)| {
        let full = capacity == 0 || capacity < requested;
        let wide = || i128::from(requested) * 100 / i128::from(capacity);
        along(shape, if full { 100 } else { i64::try_from(wide()).unwrap_or(100) })
    };
    let sum: i64 = usage.values().map(of_class).sum();
    (sum as f64 / usage.len() as f64).round() as i64
}

/// Returns the value of the piecewise linear curve at this utilization, scaled to 0..100.
fn along(shape: &[ShapePoint], utilization: i64) -> i64 {
    for (place, point) in shape.iter().enumerate() {
        if point.utilization < utilization {
            continue;
        }
        let high = point.score * 10;
        let Some(low) = place.checked_sub(1).map(|place| shape[place]) else { return high };
        let (run, rise) = (point.utilization - low.utilization, high - low.score * 10);
        return low.score * 10 + rise * (utilization - low.utilization) / run;
    }
    shape.last().map_or(0, |point| point.score * 10)
}
