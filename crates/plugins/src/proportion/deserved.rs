//! Water-filling: computes the deserved amount of each queue by weight. It is bounded by the real
//! capability and the request, and at least the guarantee.
//! Specification: plugins-jobs-queues.md 5.2, D12.

use vc_resource::{Absent, Dim, EPS, Fractional};

/// The input and the result of the division for one queue.
#[derive(Clone, Debug, Default)]
pub(super) struct DivisionClaim {
    pub(super) weight: f64,
    /// Weights by dimension in place of `weight`, by past usage (fair-share.md 6). `None`: `weight`
    /// counts in all dimensions.
    pub(super) usage_weights: Option<Fractional>,
    /// The real capability. A missing scalar is unlimited.
    pub(super) bound: Fractional,
    pub(super) request: Fractional,
    pub(super) guarantee: Fractional,
    /// The result of the division.
    pub(super) deserved: Fractional,
    /// True if the queue has all that it requests, or cannot get more.
    pub(super) met: bool,
}

/// Fills `deserved` of every claim.
pub(super) fn divide(total: &Fractional, claims: &mut [DivisionClaim]) -> LastDivision {
    for claim in claims.iter_mut() {
        claim.begin();
    }
    let weights = fill(total, claims);
    let shrinks = !excess_dims(total, claims).is_empty();
    if shrinks {
        shrink_to_total(total, claims);
    }
    LastDivision { of_own: weights.filter(|_| !shrinks) }
}

/// The course of the last division, which tells whether single claims can be updated.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastDivision {
    /// Sum of the weights, if one pass met every claim and nothing was shrunk. Each result then
    /// depends only on the queue's own weight, not on other requests. `None` otherwise, and with
    /// weights by usage.
    of_own: Option<f64>,
}

/// Updates the result of [`divide`] where only the requests of the claims at `changed` differ.
/// Total, weights and bounds must be unchanged. Returns false if [`divide`] must be called instead.
pub(super) fn divide_changed(
    last: LastDivision,
    total: &Fractional,
    claims: &mut [DivisionClaim],
    changed: &[usize],
) -> bool {
    let Some(weights) = last.of_own else { return changed.is_empty() };
    let mut met = |&place: &usize| {
        let claim = &mut claims[place];
        claim.begin();
        claim.take(total, &WeightSums { of_queues: weights, by_usage: None });
        claim.met
    };
    changed.iter().all(&mut met) && excess_dims(total, claims).is_empty()
}

/// Runs the loop of section 5.2. Returns the sum of weights if one pass met all claims. The loop
/// ends: the remainder shrinks in every pass until it is empty or unchanged. With weights by usage,
/// which may be far apart, a pass hands out all of a dimension or gives some claim all that it wants
/// of it, so that few passes follow.
fn fill(total: &Fractional, claims: &mut [DivisionClaim]) -> Option<f64> {
    let mut remaining = total.clone();
    let (mut is_first, mut of_own, mut n_met) = (true, None, 0);
    loop {
        let sums = WeightSums::of(claims.iter().filter(|claim| !claim.met));
        if sums.of_queues == 0.0 {
            return of_own;
        }
        let before = remaining.clone();
        let mut taken = Fractional::default();
        for claim in claims.iter_mut().filter(|claim| !claim.met) {
            let (increase, decrease) = claim.take(&before, &sums);
            taken.add(&increase);
            remaining.add(&decrease);
        }
        if std::mem::take(&mut is_first) && claims.iter().all(|claim| claim.met) {
            of_own = Some(sums.of_queues).filter(|_| sums.by_usage.is_none());
        }
        remaining = remaining.excess(&taken);
        let n_met_now = claims.iter().filter(|claim| claim.met).count();
        let is_stuck = match &sums.by_usage {
            None => remaining == before,
            Some(_) => taken.dims().all(|dim| taken.get(dim) == 0.0) && n_met_now == n_met,
        };
        if remaining.is_empty() || is_stuck {
            return of_own;
        }
        n_met = n_met_now;
    }
}

/// Sums of the weights of all claims that are not met.
struct WeightSums {
    of_queues: f64,
    /// `None` without weights by usage.
    by_usage: Option<UsageSums>,
}

/// Sums over the claims that want more of a dimension, by dimension.
#[derive(Default)]
struct UsageSums {
    /// Sums of the weights by usage.
    of_usage: Fractional,
    /// Sums of the weights of the queues, which count where all weights by usage are 0.
    of_queues: Fractional,
}

impl WeightSums {
    fn of<'a>(claims: impl Iterator<Item = &'a DivisionClaim> + Clone) -> Self {
        let of_queues = claims.clone().map(|claim| claim.weight).sum();
        let is_by_usage = claims.clone().any(|claim| claim.usage_weights.is_some());
        Self { of_queues, by_usage: is_by_usage.then(|| UsageSums::of(claims)) }
    }
}

impl UsageSums {
    fn of<'a>(claims: impl Iterator<Item = &'a DivisionClaim>) -> Self {
        let mut sums = Self::default();
        for claim in claims {
            for dim in claim.request.dims().filter(|&dim| claim.wants(dim)) {
                let by_usage = claim.usage_weights.as_ref().map_or(0.0, |weights| weights.get(dim));
                sums.of_usage.set(dim, sums.of_usage.get(dim) + by_usage);
                sums.of_queues.set(dim, sums.of_queues.get(dim) + claim.weight);
            }
        }
        sums
    }
}

impl DivisionClaim {
    fn begin(&mut self) {
        self.deserved = Fractional::default();
        self.met = false;
    }

    /// Returns the part of `remaining` that the weight of the queue gives it.
    fn part(&self, remaining: &Fractional, sums: &WeightSums) -> Fractional {
        match (&self.usage_weights, &sums.by_usage) {
            (Some(weights), Some(sums)) => self.part_by_usage(remaining, weights, sums),
            _ => remaining.multi(self.weight / sums.of_queues),
        }
    }

    /// The same by usage, of the dimensions of which the queue wants more. Where all weights by usage
    /// are 0, the weights of the queues count.
    fn part_by_usage(
        &self,
        remaining: &Fractional,
        weights: &Fractional,
        sums: &UsageSums,
    ) -> Fractional {
        let mut part = Fractional::default();
        for dim in remaining.dims() {
            let (weight, sum) = match sums.of_usage.get(dim) {
                sum if 0.0 < sum => (weights.get(dim), sum),
                _ => (self.weight, sums.of_queues.get(dim)),
            };
            let takes_part = self.wants(dim) && 0.0 < sum;
            part.set(dim, if takes_part { remaining.get(dim) * (weight / sum) } else { 0.0 });
        }
        part
    }

    /// True if the queue wants, and may get, more of a dimension.
    fn wants(&self, dim: Dim) -> bool {
        let deserved = self.deserved.get(dim);
        let is_bound = self.bound.has(dim) && self.bound.get(dim) <= deserved;
        deserved < self.request.get(dim) && !is_bound
    }

    /// True if the weight by usage is 0 in a dimension of which the queue wants more: it gets what the
    /// queues with a weight leave.
    fn waits_for_others(&self, sums: &WeightSums) -> bool {
        let (Some(weights), Some(sums)) = (&self.usage_weights, &sums.by_usage) else {
            return false;
        };
        let others_come_first = |dim| weights.get(dim) == 0.0 && 0.0 < sums.of_usage.get(dim);
        self.request.dims().any(|dim| others_come_first(dim) && self.wants(dim))
    }

    /// Runs one pass for one queue. Returns by how much `deserved` grew and by how much it shrank.
    fn take(&mut self, remaining: &Fractional, sums: &WeightSums) -> (Fractional, Fractional) {
        let mut deserved = self.deserved.clone();
        deserved.add(&self.part(remaining, sums));
        let deserved = deserved
            .min_dim(&self.bound, Absent::Infinity)
            .min_dim(&self.request, Absent::Zero)
            .max_dim(&self.guarantee);
        let old = std::mem::replace(&mut self.deserved, deserved);
        let grows_no_more = self.deserved == old && !self.waits_for_others(sums);
        self.met = self.request.less_equal(&self.deserved, Absent::Zero) || grows_no_more;
        (self.deserved.excess(&old), old.excess(&self.deserved))
    }
}

/// Shrinks the parts above the guarantees to fit the total. D12: guarantees above the weighted
/// amounts can hand out more than the cluster has.
fn shrink_to_total(total: &Fractional, claims: &mut [DivisionClaim]) {
    for (dim, factor) in excess_dims(total, claims) {
        for claim in claims.iter_mut() {
            let guarantee = claim.guarantee.get(dim);
            let above = claim.deserved.get(dim) - guarantee;
            claim.deserved.set(dim, guarantee + above * factor);
        }
    }
}

/// Returns the dimensions in which more was handed out than the cluster has. Each has the factor by
/// which the parts above the guarantees shrink.
fn excess_dims(total: &Fractional, claims: &[DivisionClaim]) -> Vec<(Dim, f64)> {
    let mut any = Fractional::default();
    claims.iter().for_each(|claim| any.add(&claim.deserved));
    let factor = |dim: Dim| {
        let sum = |of: fn(&DivisionClaim) -> &Fractional| -> f64 {
            claims.iter().map(|claim| of(claim).get(dim)).sum()
        };
        let (deserved, guaranteed) = (sum(|claim| &claim.deserved), sum(|claim| &claim.guarantee));
        let total = total.get(dim);
        let fits = deserved <= total + EPS || total < guaranteed;
        (!fits).then(|| (dim, (total - guaranteed) / (deserved - guaranteed)))
    };
    any.dims().filter_map(factor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(cpu: f64, memory: f64) -> Fractional {
        let mut amount = Fractional::default();
        amount.set(Dim::CPU, cpu);
        amount.set(Dim::MEMORY, memory);
        amount
    }

    fn claim(weight: f64, request: Fractional, guarantee: Fractional) -> DivisionClaim {
        let bound = amount(f64::MAX, f64::MAX);
        DivisionClaim { weight, bound, request, guarantee, ..DivisionClaim::default() }
    }

    fn cpus(claims: &[DivisionClaim]) -> Vec<f64> {
        claims.iter().map(|claim| claim.deserved.get(Dim::CPU)).collect()
    }

    #[test]
    fn jobs_22_d_the_loop_hands_out_too_much_and_the_correction_does_not() {
        let all = || amount(12.0, 12.0);
        let claims = || {
            let mut claims = vec![claim(1.0, all(), amount(6.0, 6.0))];
            claims
                .extend([claim(1.0, all(), amount(0.0, 0.0)), claim(1.0, all(), amount(0.0, 0.0))]);
            claims
        };
        let mut volcano = claims();
        fill(&all(), &mut volcano);
        assert_eq!(cpus(&volcano), [6.0, 4.0, 4.0]);
        let mut ours = claims();
        divide(&all(), &mut ours);
        assert_eq!(cpus(&ours), [6.0, 3.0, 3.0]);
    }

    /// fair-share.md, example E: who has used more deserves less, but never less than its guarantee, and
    /// what nobody else wants.
    #[test]
    fn fs_shares_k() {
        for (usage_weights, requests, guarantee, expected) in [
            ([0.4, 0.8], [12.0, 12.0], 0.0, [4.0, 8.0]),
            ([0.0, 1.3], [12.0, 12.0], 0.0, [0.0, 12.0]),
            ([0.0, 1.3], [12.0, 12.0], 3.0, [3.0, 9.0]),
            ([0.0, 1.3], [12.0, 2.0], 0.0, [10.0, 2.0]),
            ([0.0, 0.0], [12.0, 12.0], 0.0, [6.0, 6.0]),
        ] {
            let claims = usage_weights.iter().zip(requests).zip([guarantee, 0.0]);
            let claims = claims.map(|((&weight, request), guarantee)| DivisionClaim {
                usage_weights: Some(amount(weight, weight)),
                ..claim(1.0, amount(request, request), amount(guarantee, guarantee))
            });
            let mut claims: Vec<DivisionClaim> = claims.collect();
            divide(&amount(12.0, 12.0), &mut claims);
            for (found, expected) in cpus(&claims).iter().zip(expected) {
                assert!((found - expected).abs() < EPS, "{found} instead of {expected}");
            }
        }
    }

    /// Queues that have all that they want of one dimension leave it to the others at once, however
    /// small the weight of those is.
    #[test]
    fn fs_shares_far_apart() {
        let weights = |cpu, memory| Some(amount(cpu, memory));
        let mut claims = vec![
            DivisionClaim {
                usage_weights: weights(1.0, 1e-12),
                ..claim(1.0, amount(1e5, 1e12), amount(0.0, 0.0))
            },
            DivisionClaim {
                usage_weights: weights(1e-12, 1.0),
                ..claim(1.0, amount(1e6, 1e11), amount(0.0, 0.0))
            },
            DivisionClaim {
                usage_weights: weights(0.0, 0.0),
                ..claim(1.0, amount(1e6, 1e12), amount(0.0, 0.0))
            },
        ];
        divide(&amount(6e5, 8e11), &mut claims);
        for (found, expected) in cpus(&claims).iter().zip([1e5, 5e5, 0.0]) {
            assert!((found - expected).abs() < EPS, "{found} instead of {expected}");
        }
    }

    #[test]
    fn guarantees_above_the_total_are_left_as_they_are() {
        let mut claims = vec![claim(1.0, amount(9.0, 9.0), amount(8.0, 8.0)); 2];
        divide(&amount(10.0, 10.0), &mut claims);
        assert_eq!(cpus(&claims), [8.0, 8.0]);
    }

    #[test]
    fn weights_far_apart_come_to_an_end() {
        let none = || amount(0.0, 0.0);
        let mut claims = vec![
            claim(1.0, amount(9e5, 1e11), none()),
            claim(65_535.0, amount(1e5, 2e12), none()),
            claim(0.0, amount(9e5, 1e11), none()),
        ];
        divide(&amount(1e6, 1e12), &mut claims);
        for (found, expected) in cpus(&claims).iter().zip([9e5, 1e5, 0.0]) {
            assert!((found - expected).abs() < EPS, "{found} instead of {expected}");
        }
    }

    /// Numbers that look random (splitmix64).
    fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33
    }

    #[test]
    fn what_changed_claims_get_is_what_they_get_of_all_divided_again() {
        let (mut state, mut n_alone) = (1, 0);
        for _ in 0..200 {
            let n_claims = 1 + next(&mut state) as usize % 9;
            let largest = 10 + next(&mut state) % 60;
            let mut random = |least: u64| {
                let mut one = || (least + next(&mut state) % largest) as f64 / 3.0;
                amount(one(), one())
            };
            let total = random(60);
            let mut claims: Vec<DivisionClaim> = (0..n_claims)
                .map(|place| {
                    let guarantee = if place % 4 == 3 { random(0) } else { amount(0.0, 0.0) };
                    claim(1.0 + place as f64 / 7.0, random(0), guarantee)
                })
                .collect();
            let mut last = divide(&total, &mut claims);
            for _ in 0..20 {
                let place = next(&mut state) as usize % n_claims;
                let cpu = (next(&mut state) % largest) as f64 / 3.0;
                claims[place].request.set(Dim::CPU, cpu);
                let mut anew = claims.clone();
                let division = divide(&total, &mut anew);
                match divide_changed(last, &total, &mut claims, &[place]) {
                    true => n_alone += 1,
                    false => last = divide(&total, &mut claims),
                }
                for (found, expected) in claims.iter().zip(&anew) {
                    assert_eq!(found.deserved, expected.deserved);
                }
                assert_eq!(last.of_own, division.of_own);
            }
        }
        assert!((500..3_500).contains(&n_alone), "{n_alone} times one was divided alone");
    }
}
