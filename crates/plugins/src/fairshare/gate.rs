//! The vote of the enqueue gate, with the numbers on which it turns.
//! Specification: fair-share.md 7, FS-60; answers.md 3 (ANS-14).

use std::sync::Arc;

use vc_framework::{FactOwner, LimitFact, SessionView};
use vc_model::JobId;
use vc_model::reads::{self, Read};
use vc_resource::{Quantity, quantity_text};

use super::Fairshare;
use super::charge::ChargeRule;
use super::division::{self, AccountPart};
use crate::rules::min_resources;

/// An account that holds its part of a queue, so that its jobs are rejected.
pub(super) struct FullAccount<'a> {
    queue: &'a Arc<str>,
    name: &'a Arc<str>,
    /// What an account is, for messages.
    noun: &'a str,
    rule: &'a ChargeRule,
    part: AccountPart,
}

/// Returns the account for which the job is rejected. Returns `None` if it is not rejected.
pub(super) fn full_account<'a>(
    fairshare: &'a Fairshare,
    view: SessionView<'a>,
    job: JobId,
) -> Option<FullAccount<'a>> {
    let row = &view.cluster.jobs[job];
    reads::note(Read::QueueUsage(row.queue));
    let arguments = &fairshare.arguments;
    let parts = fairshare.division.as_ref()?.get(&row.queue)?;
    let name = arguments.account.of(row);
    let part = *parts.get(name)?;
    let queue = &view.cluster.queues[row.queue].name;
    let rule = arguments.charge(queue);
    let asked = min_resources(row).map_or(0, |asked| rule.of(view.cluster, asked));
    let is_full = 0 < asked && part.part <= part.charge;
    is_full.then(|| FullAccount { queue, name, noun: arguments.account.noun(), rule, part })
}

impl FullAccount<'_> {
    pub(super) fn message(&self) -> String {
        let Self { queue, name, noun, rule, part } = self;
        let [charge, of] = [part.charge, part.part].map(|charge| division::amount(charge, rule));
        format!("{noun} {name} has its share of queue {queue} ({charge} of {of} {})", rule.name())
    }

    /// Returns the numbers of the vote. An account below its part may have jobs of any size, so the
    /// vote asks for room for the smallest amount.
    pub(super) fn fact(&self) -> LimitFact {
        let AccountPart { charge, part, .. } = self.part;
        let text = |charge: i128| charge_text(charge, self.rule);
        LimitFact {
            owner: FactOwner::Account {
                queue: self.queue.clone(),
                noun: self.noun.to_owned(),
                name: self.name.clone(),
            },
            resource: self.rule.name().to_owned(),
            limit: "share",
            amount: text(part),
            used: text(charge),
            asked: text(1),
            short: text(charge + 1 - part),
        }
    }
}

/// Returns a charge as quantity text. A charge beyond 64 bits is shown as the nearest amount.
fn charge_text(charge: i128, rule: &ChargeRule) -> String {
    let nearest = i64::try_from(charge).unwrap_or(if charge < 0 { i64::MIN } else { i64::MAX });
    match rule {
        ChargeRule::Resource(name) => quantity_text(nearest, name),
        ChargeRule::Weighted(_) => {
            let millionths = format!("{nearest}u");
            let quantity = millionths.parse::<Quantity>();
            quantity.map_or(millionths, |quantity| quantity.text(rule.name()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::charge::WeightedCharge;
    use super::*;

    #[test]
    fn ans_14_charges_are_quantities() {
        let of = |name: &str| ChargeRule::Resource(name.to_owned());
        let weighted = ChargeRule::Weighted(WeightedCharge { weights: Vec::new(), is_max: false });
        for (charge, rule, expected) in [
            (4_000, of("nvidia.com/gpu"), "4"),
            (1, of("nvidia.com/gpu"), "1m"),
            (1 << 30, of("memory"), "1Gi"),
            (2_500_000, weighted.clone(), "2500m"),
            (1, weighted, "1u"),
        ] {
            assert_eq!(charge_text(charge, &rule), expected);
        }
    }
}
