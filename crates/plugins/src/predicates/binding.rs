//! VolumeBinding beyond its filter: its arguments, the reservation of a task, and the score of the
//! storage.
//! Specification: plugins-nodes.md 2.1, 2.10, 5.6, 5.9.

use vc_conf::{Argument, ArgumentShape, Arguments, StructuredInt};
use vc_filters::Pod;
use vc_filters::volume_binding::{self, ShapePoint};
use vc_model::{NodeId, Reservation};

pub(super) const TIMEOUT: Argument<StructuredInt> = Argument::new(
    "volumebinding.bindTimeoutSeconds",
    StructuredInt(600),
    "wait for volumes before a bind",
);
pub(super) const WEIGHT: Argument<StructuredInt> =
    Argument::new("volumebinding.weight", StructuredInt(1), "weight of the volume capacity score");
pub(super) const SHAPE: Argument<ArgumentShape> = Argument::new(
    "volumebinding.shape",
    ArgumentShape::List(&ArgumentShape::Record(&[
        ("utilization", ArgumentShape::Int),
        ("score", ArgumentShape::Int),
    ])),
    "curve of the volume capacity score",
)
.shown_as("0 to 10, 100 to 0");

const MICROS: i64 = 1_000_000;

/// The arguments `volumebinding.*`. `vc_conf` refuses values of another shape.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct VolumeBinding {
    pub(super) timeout_micros: i64,
    pub(super) weight: i64,
    pub(super) shape: Vec<ShapePoint>,
}

impl VolumeBinding {
    pub(super) fn new(arguments: &Arguments) -> Self {
        // Structured arguments were checked when the file was loaded.
        let mut warnings = Vec::new();
        let timeout = TIMEOUT.read(arguments, &mut warnings);
        let pairs = arguments.structured_pairs(SHAPE.key, ["utilization", "score"]);
        let point = |(utilization, score)| ShapePoint { utilization, score };
        let shape = pairs.map(|pairs| pairs.into_iter().map(point).collect());
        let default = || {
            let point = |utilization, score| ShapePoint { utilization, score };
            vec![point(0, 10), point(100, 0)]
        };
        Self {
            timeout_micros: timeout.saturating_mul(MICROS),
            weight: WEIGHT.read(arguments, &mut warnings),
            shape: shape.filter(|shape: &Vec<_>| is_curve(shape)).unwrap_or_else(default),
        }
    }

    pub(super) fn reserve(
        &self,
        pod: Pod<'_>,
        node: NodeId,
    ) -> Result<Option<Reservation>, String> {
        let reservation = volume_binding::reserve(pod, node)?;
        let timeout_micros = self.timeout_micros;
        Ok(reservation.map(|reservation| Reservation { timeout_micros, ..reservation }))
    }

    /// True if the feature gate is on and the pod has volumes.
    pub(super) fn scores(pod: Pod<'_>) -> bool {
        pod.cluster.settings.storage_capacity_scoring && !pod.class.volumes.is_empty()
    }

    /// Adds the weighted scores of the nodes to `out`.
    pub(super) fn score(
        &self,
        pod: Pod<'_>,
        nodes: &[NodeId],
        out: &mut [f64],
    ) -> Result<(), String> {
        if !Self::scores(pod) {
            return Ok(());
        }
        let failed = |error| format!("pre-score plugin VolumeBinding failed: {error}");
        if let Some(scores) = volume_binding::score(pod, nodes, &self.shape).map_err(failed)? {
            for (sum, score) in out.iter_mut().zip(scores) {
                *sum += score as f64 * self.weight as f64;
            }
        }
        Ok(())
    }
}

/// True if the points are sorted by utilization from 0 to 100, with scores from 0 to 10 (section
/// 5.9).
fn is_curve(points: &[ShapePoint]) -> bool {
    let in_bounds = |point: &ShapePoint| {
        (0..=100).contains(&point.utilization) && (0..=10).contains(&point.score)
    };
    !points.is_empty()
        && points.iter().all(in_bounds)
        && points.is_sorted_by(|l, r| l.utilization < r.utilization)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn built(key: &'static str, value: Value) -> VolumeBinding {
        VolumeBinding::new(&[(key, value)].into_iter().collect())
    }

    #[test]
    fn nodes_64_arguments_are_those_of_the_configuration_each_time() {
        let plain = VolumeBinding::new(&Arguments::default());
        assert_eq!((plain.timeout_micros, plain.weight), (600 * MICROS, 1));
        let point = |utilization, score| ShapePoint { utilization, score };
        assert_eq!(plain.shape, [point(0, 10), point(100, 0)]);
        assert_eq!(built("volumebinding.weight", json!(5)).weight, 5);
        assert_eq!(
            built("volumebinding.bindTimeoutSeconds", json!(2.9)).timeout_micros,
            2 * MICROS
        );
        let curve = json!([{"Utilization": 0}, {"utilization": 80, "score": 10}]);
        assert_eq!(built("volumebinding.shape", curve).shape, [point(0, 0), point(80, 10)]);
    }

    #[test]
    fn a_shape_that_is_no_curve_leaves_the_default() {
        let default = VolumeBinding::new(&Arguments::default());
        for shape in [
            json!([]),
            json!([{"utilization": 50}, {"utilization": 20}]),
            json!([{"utilization": 101}]),
            json!([{"score": 11}]),
        ] {
            assert_eq!(built("volumebinding.shape", shape), default);
        }
    }
}
