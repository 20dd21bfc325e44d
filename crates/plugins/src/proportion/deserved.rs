//! Water-filling: what each queue deserves of the cluster, by weight, bounded by what it may have
//! and what it asks for, at least its guarantee. Specification: plugins-jobs-queues.md 5.2, D12.

use std::collections::BTreeSet;

use vc_resource::{Absent, Dim, EPS, Fractional};

/// A queue in the division.
#[derive(Clone, Debug, Default)]
pub(super) struct Claim {
    pub(super) weight: f64,
    /// The real capability; a scalar that is missing is unlimited.
    pub(super) bound: Fractional,
    pub(super) request: Fractional,
    pub(super) guarantee: Fractional,
    /// The result.
    pub(super) deserved: Fractional,
    /// It has all that it asks for, or cannot get more.
    pub(super) met: bool,
}

/// Fills `deserved` of every claim.
pub(super) fn divide(total: &Fractional, claims: &mut [Claim]) {
    fill(total, claims);
    shrink_to_total(total, claims);
}

/// The loop of 5.2. It ends: what remains shrinks in every pass until it is empty or no longer
/// changes.
fn fill(total: &Fractional, claims: &mut [Claim]) {
    let mut remaining = total.clone();
    loop {
        let weights: f64 = claims.iter().filter(|claim| !claim.met).map(|claim| claim.weight).sum();
        if weights == 0.0 {
            return;
        }
        let before = remaining.clone();
        let mut taken = Fractional::default();
        for claim in claims.iter_mut().filter(|claim| !claim.met) {
            let (increase, decrease) = claim.take(&before, weights);
            taken.add(&increase);
            remaining.add(&decrease);
        }
        remaining = remaining.excess(&taken);
        if remaining.is_empty() || remaining == before {
            return;
        }
    }
}

impl Claim {
    /// One pass for one queue: by how much `deserved` grew and shrank.
    fn take(&mut self, remaining: &Fractional, weights: f64) -> (Fractional, Fractional) {
        let mut deserved = self.deserved.clone();
        deserved.add(&remaining.multi(self.weight / weights));
        let deserved = deserved
            .min_dim(&self.bound, Absent::Infinity)
            .min_dim(&self.request, Absent::Zero)
            .max_dim(&self.guarantee);
        let old = std::mem::replace(&mut self.deserved, deserved);
        self.met = self.request.less_equal(&self.deserved, Absent::Zero) || self.deserved == old;
        (self.deserved.excess(&old), old.excess(&self.deserved))
    }
}

/// Guarantees above the weighted amounts can hand out more than there is; then the part above the
/// guarantees shrinks (D12).
fn shrink_to_total(total: &Fractional, claims: &mut [Claim]) {
    let dims: BTreeSet<Dim> = claims.iter().flat_map(|claim| claim.deserved.dims()).collect();
    for dim in dims {
        let sum = |of: fn(&Claim) -> &Fractional| -> f64 {
            claims.iter().map(|claim| of(claim).get(dim)).sum()
        };
        let (deserved, guaranteed) = (sum(|claim| &claim.deserved), sum(|claim| &claim.guarantee));
        let total = total.get(dim);
        if deserved <= total + EPS || total < guaranteed {
            continue;
        }
        let factor = (total - guaranteed) / (deserved - guaranteed);
        for claim in claims.iter_mut() {
            let guarantee = claim.guarantee.get(dim);
            let above = claim.deserved.get(dim) - guarantee;
            claim.deserved.set(dim, guarantee + above * factor);
        }
    }
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

    fn claim(weight: f64, request: Fractional, guarantee: Fractional) -> Claim {
        let bound = amount(f64::MAX, f64::MAX);
        Claim { weight, bound, request, guarantee, ..Claim::default() }
    }

    fn cpus(claims: &[Claim]) -> Vec<f64> {
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
}
