//! LeastAllocated and MostAllocated: score how full cpu and memory of the node would be. Both
//! resources have equal weight in `nodeorder`, so the score is their mean.
//! Specification: plugins-nodes.md 7.3.

use vc_model::{Class, Node, NonZero};
use vc_resource::Dim;

use crate::normalize::MAX_SCORE;

/// The amounts of a node that these scorers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScorerAmounts {
    /// Allocatable millicores of the node.
    pub cpu_milli: i64,
    /// Allocatable bytes of the node.
    pub memory_bytes: i64,
    /// Sum of the requests of the node's pods, with the scoring defaults.
    pub held: NonZero,
}

impl ScorerAmounts {
    fn of(node: &Node) -> Self {
        let [cpu_milli, memory_bytes] =
            [Dim::CPU, Dim::MEMORY].map(|dim| node.allocatable.get(dim));
        Self { cpu_milli, memory_bytes, held: node.view.non_zero.nearest() }
    }

    /// Returns the mean score over the resources that the node has.
    #[inline]
    fn mean(&self, wanted: NonZero, score: impl Fn(i64, i64) -> i64) -> i64 {
        let resources = [
            (self.cpu_milli, self.held.cpu_milli.saturating_add(wanted.cpu_milli)),
            (self.memory_bytes, self.held.memory_bytes.saturating_add(wanted.memory_bytes)),
        ];
        let (mut sum, mut n_resources) = (0, 0);
        for (allocatable, requested) in resources {
            if 0 < allocatable {
                sum += score(requested, allocatable);
                n_resources += 1;
            }
        }
        match n_resources {
            0 => 0,
            1 => sum,
            _ => sum / 2,
        }
    }
}

/// Returns a score from 0 to 100 that is higher the emptier the node.
pub fn least_allocated(class: &Class, node: &Node) -> i64 {
    least(class.non_zero, ScorerAmounts::of(node))
}

/// Returns a score from 0 to 100 that is higher the fuller the node.
pub fn most_allocated(class: &Class, node: &Node) -> i64 {
    most(class.non_zero, ScorerAmounts::of(node))
}

/// Computes [`least_allocated`] from the amounts alone.
#[inline]
pub fn least(wanted: NonZero, room: ScorerAmounts) -> i64 {
    room.mean(wanted, |requested, allocatable| match allocatable < requested {
        true => 0,
        false => percent(allocatable.saturating_sub(requested), allocatable),
    })
}

/// Computes [`most_allocated`] from the amounts alone.
#[inline]
pub fn most(wanted: NonZero, room: ScorerAmounts) -> i64 {
    room.mean(wanted, |requested, allocatable| percent(requested.min(allocatable), allocatable))
}

/// Largest amount whose hundredfold is exact as `i64` and that is exact as `f64`.
const SMALL: u64 = 1 << 52;

/// Returns `part * 100 / whole`, exact also for amounts beyond 2^63 / 100. Amounts up to `SMALL`
/// are divided as `f64`, which is faster. That quotient may be off by one and is corrected.
#[inline]
fn percent(part: i64, whole: i64) -> i64 {
    if whole.cast_unsigned() < part.cast_unsigned() || SMALL < whole.cast_unsigned() {
        return wide_percent(part, whole);
    }
    let near = (part as f64 * MAX_SCORE as f64 / whole as f64) as i64;
    let rest = part * MAX_SCORE - near * whole;
    near + i64::from(whole <= rest) - i64::from(rest < 0)
}

#[cold]
fn wide_percent(part: i64, whole: i64) -> i64 {
    let wide = i128::from(part) * i128::from(MAX_SCORE) / i128::from(whole);
    i64::try_from(wide).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use vc_model::Shape;

    use super::*;
    use crate::testing::{asking, sized};

    const GI: i64 = 1 << 30;

    #[test]
    fn nodes_84_least_likes_the_larger_node_and_most_the_smaller() {
        let (pod, n1, n2) = (asking(1000, GI), sized(2000, 4 * GI), sized(4000, 8 * GI));
        let least = |node| least_allocated(&pod, node);
        assert_eq!((least(&n1), least(&n2)), ((50 + 75) / 2, (75 + 87) / 2));
        let most = |node| most_allocated(&pod, node);
        assert_eq!((most(&n1), most(&n2)), ((50 + 25) / 2, (25 + 12) / 2));
    }

    #[test]
    fn nodes_87_defaults_count_for_a_pod_without_requests() {
        let non_zero = NonZero { cpu_milli: 100, memory_bytes: 200 << 20 };
        let pod = Class::from(Shape { non_zero, ..Shape::clone(&asking(0, 0)) });
        assert_eq!(least_allocated(&pod, &sized(4000, 8 * GI)), 97);
    }

    #[test]
    fn what_is_on_the_node_counts_and_more_than_there_is_scores_nothing() {
        let mut node = sized(4000, 8 * GI);
        node.view.non_zero = NonZero { cpu_milli: 3500, memory_bytes: 4 * GI }.into();
        // Cpu: 4500 of 4000; memory: 6 of 8 GiB.
        let pod = asking(1000, 2 * GI);
        assert_eq!(least_allocated(&pod, &node), 25 / 2);
        assert_eq!(most_allocated(&pod, &node), (100 + 75) / 2);
    }

    #[test]
    fn a_resource_that_the_node_lacks_is_left_out() {
        let pod = asking(1000, GI);
        assert_eq!(least_allocated(&pod, &sized(4000, 0)), 75);
        assert_eq!(most_allocated(&pod, &sized(0, 4 * GI)), 25);
        assert_eq!(least_allocated(&pod, &sized(0, 0)), 0);
    }

    proptest! {
        #[test]
        fn percents_are_those_of_a_division(whole in 1..=SMALL as i64 + 9, part: u64, bits in 0..64u32) {
            let whole = (whole >> (bits % 52)).max(1);
            let part = (part % (whole as u64 + 1)) as i64;
            for part in [part, whole - part, whole / 100 * (part % 101), part / whole] {
                prop_assert_eq!(percent(part, whole), wide_percent(part, whole));
            }
        }
    }

    #[test]
    fn amounts_near_the_limit_do_not_overflow() {
        let huge = sized(4000, i64::MAX);
        assert_eq!(least_allocated(&asking(1000, i64::MAX / 2), &huge), (75 + 50) / 2);
        assert_eq!(most_allocated(&asking(4000, i64::MAX), &huge), 100);
    }
}
