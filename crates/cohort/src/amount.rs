//! Amounts of quota, what can be counted, and what a group asks for. Specification: cohort.md A.1,
//! B.10.

use vc_resource::Dim;

/// An amount in the smallest unit. Wide, so that sums of whatever users write stay exact and every
/// change can be taken back.
pub type QuotaAmount = i128;

/// So large that adding or taking bounded amounts leaves it unlimited, and small enough that the
/// sum over all queues of a cluster does not overflow.
pub const UNLIMITED: QuotaAmount = 1 << 100;

/// Whether the amount is unlimited.
pub fn is_unlimited(amount: QuotaAmount) -> bool {
    UNLIMITED / 2 < amount
}

/// An amount as it is stored elsewhere; the largest one means unlimited.
pub fn widen(amount: i64) -> QuotaAmount {
    if amount == i64::MAX { UNLIMITED } else { QuotaAmount::from(amount) }
}

/// A set of nodes that has a quota of its own. There is one so far (B.10, stage 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flavor(pub u16);

/// What quotas are given for: a resource of a flavor, by its place in [`Slots`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(u16);

impl Slot {
    /// Position in every list with one entry per slot.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The resources of all flavors that quotas are given for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    all: Vec<(Flavor, Dim)>,
    /// The slots of each resource.
    resources: Vec<Vec<Slot>>,
}

impl Slots {
    /// The slot of a resource, made when it is new; `None`: there are too many.
    pub fn intern(&mut self, flavor: Flavor, dim: Dim) -> Option<Slot> {
        if let Some(slot) = self.get(flavor, dim) {
            return Some(slot);
        }
        let slot = Slot(u16::try_from(self.all.len()).ok()?);
        let same = self.resources.iter_mut().find(|slots| self.all[slots[0].index()].1 == dim);
        match same {
            Some(slots) => slots.push(slot),
            None => self.resources.push(vec![slot]),
        }
        self.all.push((flavor, dim));
        Some(slot)
    }

    /// The slot of a resource, if there is one.
    pub fn get(&self, flavor: Flavor, dim: Dim) -> Option<Slot> {
        let position = self.all.iter().position(|&other| other == (flavor, dim))?;
        u16::try_from(position).ok().map(Slot)
    }

    /// The resource of a slot.
    pub fn dim(&self, slot: Slot) -> Dim {
        self.all[slot.index()].1
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..self.all.len() as u16).map(Slot)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The slots of each resource: one per flavor.
    pub(crate) fn by_resource(&self) -> &[Vec<Slot>] {
        &self.resources
    }
}

/// What a group asks for, or holds. What it asks nothing of is left out: it never blocks and never
/// makes a resource contested (A.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaDemand(Vec<(Slot, QuotaAmount)>);

impl QuotaDemand {
    /// Of amounts above 0; those of one slot are added up.
    pub fn new<A: Into<QuotaAmount>>(amounts: impl IntoIterator<Item = (Slot, A)>) -> Self {
        let mut demand: Vec<(Slot, QuotaAmount)> = Vec::new();
        for (slot, amount) in amounts {
            let amount = amount.into().max(0);
            match demand.binary_search_by_key(&slot, |entry| entry.0) {
                Ok(at) => demand[at].1 += amount,
                Err(at) => demand.insert(at, (slot, amount)),
            }
        }
        demand.retain(|&(_, amount)| 0 < amount);
        Self(demand)
    }

    /// Asks for that, too.
    pub(crate) fn add(&mut self, other: &Self) {
        for (slot, amount) in other.iter() {
            match self.0.binary_search_by_key(&slot, |entry| entry.0) {
                Ok(at) => self.0[at].1 += amount,
                Err(at) => self.0.insert(at, (slot, amount)),
            }
        }
    }

    /// Slots with their amounts, by slot.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, QuotaAmount)> + '_ {
        self.0.iter().copied()
    }

    /// The slots that are asked for.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.0.iter().map(|entry| entry.0)
    }

    /// The amount of a slot.
    pub fn get(&self, slot: Slot) -> QuotaAmount {
        let at = self.0.binary_search_by_key(&slot, |entry| entry.0);
        at.map_or(0, |at| self.0[at].1)
    }

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of these slots is asked for.
    pub fn uses_any(&self, slots: &[Slot]) -> bool {
        slots.iter().any(|&slot| 0 < self.get(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlimited_stays_unlimited_beside_bounded_amounts() {
        let largest = QuotaAmount::from(i64::MAX);
        assert!(is_unlimited(widen(i64::MAX)) && !is_unlimited(widen(i64::MAX - 1)));
        assert!(is_unlimited(UNLIMITED - 1_000_000 * largest));
        assert!(is_unlimited(UNLIMITED + 1_000_000 * UNLIMITED));
        assert_eq!(UNLIMITED - UNLIMITED, 0);
    }

    #[test]
    fn a_demand_has_no_zeros() {
        let mut slots = Slots::default();
        let cpu = slots.intern(Flavor::default(), Dim::CPU).unwrap();
        let memory = slots.intern(Flavor::default(), Dim::MEMORY).unwrap();
        assert_eq!(slots.intern(Flavor::default(), Dim::CPU), Some(cpu));
        let demand = QuotaDemand::new([(memory, 0), (cpu, 2), (cpu, 1), (memory, -5)]);
        assert_eq!(demand.iter().collect::<Vec<_>>(), [(cpu, 3)]);
        assert!(demand.uses_any(&[memory, cpu]) && !demand.uses_any(&[memory]));
    }
}
