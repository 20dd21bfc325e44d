//! BalancedAllocation: scores how evenly cpu, memory and GPUs of the node would be used. Requests
//! count without the scoring defaults.
//! Specification: plugins-nodes.md 7.4.

use vc_model::{Class, Node};
use vc_resource::Dim;

use crate::normalize::MAX_SCORE;

/// The scalar resource that is scored besides cpu and memory.
pub const GPU: &str = "nvidia.com/gpu";

/// What the score measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BalanceMode {
    /// How the pod changes the balance, 50..100; unchanged is 75 (Kubernetes 1.36).
    #[default]
    Delta,
    /// The balance with the pod, 0..100 (Kubernetes up to 1.35).
    Absolute,
}

/// True if the pod requests no scored resource. `gpu` is the dimension of [`GPU`], if any object of
/// the cluster names it.
pub fn skips_score(class: &Class, gpu: Option<Dim>) -> bool {
    scored(gpu).all(|dim| class.request.is_zero(dim))
}

/// Returns the score of the node, from 0 to 100.
pub fn score(class: &Class, node: &Node, gpu: Option<Dim>, mode: BalanceMode) -> i64 {
    let mut shares = UsedShares::default();
    for dim in counted(class, gpu) {
        let requested = class.request.get(dim);
        shares.add(node.allocatable.get(dim), node.view.requested.get(dim), requested);
    }
    shares.score(mode)
}

/// Returns the resources that are scored for the class. GPUs are scored only if the class requests
/// them.
pub fn counted(class: &Class, gpu: Option<Dim>) -> impl Iterator<Item = Dim> {
    scored(gpu).filter(move |dim| Some(*dim) != gpu || !class.request.is_zero(*dim))
}

/// Used fractions of the resources of a node, with the pod and without it.
#[derive(Default)]
pub struct UsedShares {
    with: Fractions,
    without: Fractions,
}

impl UsedShares {
    /// Adds a resource, of at most three. A resource that the node does not have is left out.
    #[inline]
    pub fn add(&mut self, allocatable: i64, held: i64, requested: i64) {
        if 0 < allocatable {
            self.with.push(held.saturating_add(requested), allocatable);
            self.without.push(held, allocatable);
        }
    }

    /// Returns the score of the added resources.
    #[inline]
    pub fn score(&self, mode: BalanceMode) -> i64 {
        match mode {
            BalanceMode::Absolute => self.with.balance(),
            BalanceMode::Delta => delta(self.with.balance(), self.without.balance()),
        }
    }
}

/// The amounts of one resource on a range of nodes.
#[derive(Clone, Copy)]
pub struct NodeAmounts<'a> {
    /// Allocatable amount of each node.
    pub allocatable: &'a [i64],
    /// Sum of the requests of each node's pods.
    pub held: &'a [i64],
    /// Request of the pod.
    pub requested: i64,
}

impl<'a> NodeAmounts<'a> {
    fn each(&self) -> impl Iterator<Item = (i64, i64)> + 'a {
        self.allocatable.iter().copied().zip(self.held.iter().copied())
    }
}

/// Writes [`UsedShares::score`] for a range of nodes, where exactly two resources are scored.
pub fn score_each([first, second]: [NodeAmounts<'_>; 2], mode: BalanceMode, scores: &mut [i64]) {
    let score = |[one, two]: [(i64, i64); 2]| {
        let has_both = 0 < one.0 && 0 < two.0;
        let balance = |held: i64, other: i64| {
            let apart = (fraction(held, one.0) - fraction(other, two.0)).abs();
            balance(if has_both { apart / 2.0 } else { 0.0 })
        };
        let with = |held: i64, amounts: &NodeAmounts<'_>| held.saturating_add(amounts.requested);
        let after = balance(with(one.1, &first), with(two.1, &second));
        match mode {
            BalanceMode::Absolute => after,
            BalanceMode::Delta => delta(after, balance(one.1, two.1)),
        }
    };
    let rows = first.each().zip(second.each()).map(|(one, two)| [one, two]);
    scores.iter_mut().zip(rows).for_each(|(filled, row)| *filled = score(row));
}

fn delta(with: i64, without: i64) -> i64 {
    50 + (50 + with - without) / 2
}

#[inline]
fn fraction(requested: i64, allocatable: i64) -> f64 {
    (requested as f64 / allocatable as f64).min(1.0)
}

/// Returns the balance, which is 100 without deviation.
#[inline]
fn balance(deviation: f64) -> i64 {
    // The conversion rounds towards 0.
    ((1.0 - deviation) * MAX_SCORE as f64) as i64
}

fn scored(gpu: Option<Dim>) -> impl Iterator<Item = Dim> {
    [Dim::CPU, Dim::MEMORY].into_iter().chain(gpu)
}

/// The used fraction of each resource.
#[derive(Default)]
struct Fractions {
    values: [f64; 3],
    n_values: usize,
}

impl Fractions {
    #[inline]
    fn push(&mut self, requested: i64, allocatable: i64) {
        self.values[self.n_values] = fraction(requested, allocatable);
        self.n_values += 1;
    }

    /// Returns 100 if all fractions are equal, and less the larger their deviation.
    fn balance(&self) -> i64 {
        balance(self.deviation())
    }

    fn deviation(&self) -> f64 {
        match &self.values[..self.n_values] {
            [] | [_] => 0.0,
            // The formula below for two values, in fewer steps. The specification prescribes the
            // rounding of this one.
            [first, second] => (first - second).abs() / 2.0,
            values => {
                let n_values = values.len() as f64;
                let mean = values.iter().sum::<f64>() / n_values;
                let squares = values.iter().map(|value| (value - mean) * (value - mean));
                (squares.sum::<f64>() / n_values).sqrt()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use vc_model::Shape;
    use vc_resource::Dims;

    use super::*;
    use crate::testing::{amounts, asking, sized};

    const GI: i64 = 1 << 30;

    fn scores(class: &Class, node: &Node) -> (i64, i64) {
        let of = |mode| score(class, node, None, mode);
        (of(BalanceMode::Delta), of(BalanceMode::Absolute))
    }

    #[test]
    fn nodes_85_the_node_that_ends_up_even_wins() {
        let pod = asking(1000, GI);
        assert_eq!(scores(&pod, &sized(2000, 2 * GI)), (75, 100));
        assert_eq!(scores(&pod, &sized(4000, 2 * GI)), (68, 87));
    }

    #[test]
    fn nodes_86_both_rules() {
        let node = sized(4000, 4 * GI);
        assert_eq!(scores(&asking(2000, 2 * GI), &node), (75, 100));
        assert_eq!(scores(&asking(2000, 0), &node), (62, 75));
    }

    #[test]
    fn a_pod_that_restores_the_balance_scores_above_75() {
        let mut node = sized(4000, 4 * GI);
        node.view.requested = amounts(2000, 0, None);
        assert_eq!(scores(&asking(0, 2 * GI), &node), (50 + (50 + 100 - 75) / 2, 100));
    }

    #[test]
    fn gpus_count_where_the_pod_asks_for_them() {
        let gpu = Dims::new().intern(GPU);
        let pair = |amount| gpu.map(|dim| (dim, amount));
        let mut node = sized(4000, 4 * GI);
        node.allocatable = amounts(4000, 4 * GI, pair(4000));
        let pod = asking(1000, GI);
        assert_eq!(score(&pod, &node, gpu, BalanceMode::Absolute), 100, "not asked for");
        let request = amounts(1000, GI, pair(4000));
        let pod = Class::from(Shape { request, ..Shape::clone(&pod) });
        // 0.25, 0.25, 1: the deviation is 0.3535...
        assert_eq!(score(&pod, &node, gpu, BalanceMode::Absolute), 64);
        assert_eq!(score(&pod, &node, gpu, BalanceMode::Delta), 50 + (50 + 64 - 100) / 2);
        assert_eq!(score(&pod, &sized(4000, 4 * GI), gpu, BalanceMode::Absolute), 100, "not there");
    }

    proptest! {
        #[test]
        fn nodes_in_a_row_score_as_each_by_itself(
            nodes in prop::collection::vec((-1..9i64, -1..9i64, -9..40i64, 0..40i64), 0..20),
            scale in prop_oneof![Just(1), Just(1000), Just(i64::MAX / 50)],
            requested: (u8, u8),
        ) {
            let column = |of: fn(&(i64, i64, i64, i64)) -> i64| -> Vec<i64> {
                nodes.iter().map(|node| of(node) * scale).collect()
            };
            let columns = [column(|n| n.0), column(|n| n.1), column(|n| n.2), column(|n| n.3)];
            let amounts = |allocatable, held, requested: u8| NodeAmounts {
                allocatable,
                held,
                requested: i64::from(requested) * (scale / 16),
            };
            let first = amounts(&columns[0], &columns[2], requested.0);
            let second = amounts(&columns[1], &columns[3], requested.1);
            for mode in [BalanceMode::Delta, BalanceMode::Absolute] {
                let mut scores = vec![-1; nodes.len()];
                score_each([first, second], mode, &mut scores);
                for (at, &score) in scores.iter().enumerate() {
                    let mut shares = UsedShares::default();
                    for of in [first, second] {
                        shares.add(of.allocatable[at], of.held[at], of.requested);
                    }
                    prop_assert_eq!(score, shares.score(mode));
                }
            }
        }
    }

    #[test]
    fn more_than_there_is_counts_as_full() {
        assert_eq!(scores(&asking(9000, 4 * GI), &sized(4000, 4 * GI)), (75, 100));
    }

    #[test]
    fn a_pod_without_requests_is_skipped() {
        let gpu = Dims::new().intern(GPU);
        assert!(skips_score(&asking(0, 0), gpu));
        assert!(!skips_score(&asking(0, 1), None));
        let request = amounts(0, 0, gpu.map(|dim| (dim, 1000)));
        let only_gpu = Class::from(Shape { request, ..Shape::default() });
        assert!(!skips_score(&only_gpu, gpu));
        assert!(skips_score(&only_gpu, None));
    }
}
