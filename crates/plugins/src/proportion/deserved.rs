//! Water-filling: what each queue deserves of the cluster, by weight, bounded by what it may have and what it
//! asks for, at least its guarantee. Specification: plugins-jobs-queues.md 5.2, D12.

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

/// Passes of the specification's loop, which halves the rest or better in ordinary clusters. Where weights
/// differ by thousands it would take as many passes; then the limit is computed directly.
const MAX_PASSES: usize = 200;

/// Fills `deserved` of every claim.
pub(super) fn divide(total: &Fractional, claims: &mut [Claim]) {
    let rest = fill(total, claims);
    for dim in rest.names() {
        pour(rest.get(dim), dim, claims);
    }
    shrink_to_total(total, claims);
}

/// The loop of 5.2. What it leaves unfinished, which is nothing if it came to its own end, is returned.
fn fill(total: &Fractional, claims: &mut [Claim]) -> Fractional {
    let mut remaining = total.clone();
    for _ in 0..MAX_PASSES {
        let weights: f64 = claims.iter().filter(|claim| !claim.met).map(|claim| claim.weight).sum();
        if weights == 0.0 {
            return Fractional::default();
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
            return Fractional::default();
        }
    }
    remaining
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

    /// How much more the queue could take.
    fn room(&self, dim: Dim) -> f64 {
        let bound = if self.bound.has(dim) { self.bound.get(dim) } else { f64::MAX };
        let ceiling = self.request.get(dim).min(bound).max(self.guarantee.get(dim));
        ceiling - self.deserved.get(dim)
    }
}

/// The limit of the loop from here on: after the first pass every dimension goes its own way.
fn pour(mut rest: f64, dim: Dim, claims: &mut [Claim]) {
    let thirsty = |claim: &&mut Claim| !claim.met && 0.0 < claim.room(dim);
    loop {
        let mut open: Vec<&mut Claim> = claims.iter_mut().filter(thirsty).collect();
        let weights: f64 = open.iter().map(|claim| claim.weight).sum();
        if weights == 0.0 {
            return;
        }
        let part = |claim: &Claim| rest * (claim.weight / weights);
        let none_fills_up = open.iter().all(|claim| part(claim) < claim.room(dim));
        let mut taken = 0.0;
        for claim in &mut open {
            let (part, room) = (part(claim), claim.room(dim));
            if none_fills_up || room <= part {
                let amount = part.min(room);
                claim.raise(dim, amount);
                taken += amount;
            }
        }
        if none_fills_up {
            return;
        }
        rest -= taken;
    }
}

impl Claim {
    /// A full queue is exactly full, so that it takes no part in the next round.
    fn raise(&mut self, dim: Dim, amount: f64) {
        let full = self.deserved.get(dim) + self.room(dim);
        let raised = self.deserved.get(dim) + amount;
        self.deserved.set(dim, if self.room(dim) <= amount { full } else { raised });
    }
}

/// Guarantees above the weighted amounts can hand out more than there is; then the part above the guarantees
/// shrinks (D12).
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
