//! Clusters of plugins that few configurations name: half the nodes may be used by marked pods only
//! (tdm), budgets for the pods that run (pdb).

use vc_engine::Engine;
use vc_model::{BudgetRecord, ClusterEvent, Covers, LabelSelector, ObjectKey, PodGroupPhase};

use crate::cases::{Case, apply, base, load_full, pending_gangs};
use crate::objects::Shape;
use crate::tiers::{conf, tier};

/// The chart's tiers with tdm.
pub(crate) const ZONES: &str = conf!("enqueue, allocate, backfill", tier!(zones));

/// The chart's tiers with preempt and pdb.
pub(crate) const BUDGETS: &str = conf!("enqueue, allocate, preempt, backfill", tier!(budgets));

const ZONE: &str = "volcano.sh/revocable-zone";

/// Nothing runs; gangs of 16 shapes wait, every second of which is marked.
pub(crate) fn load_zones(case: &Case, engine: &mut Engine) {
    let shape = |number: u64| Shape {
        cpu_milli: [500, 1000, 2000, 4000][(number % 4) as usize],
        memory_gi: [1, 2, 4, 8][(number / 4 % 4) as usize],
    };
    let gangs = pending_gangs(case, PodGroupPhase::Pending, shape);
    let events = base(case).chain(gangs).map(|mut event| {
        match &mut event {
            ClusterEvent::NodeApplied(node) if is_odd(&node.name) => {
                node.labels.insert(ZONE.into(), "rz1".into());
            }
            ClusterEvent::PodApplied(pod) => {
                let is_marked =
                    pod.labels.get("volcano.sh/job-name").is_some_and(|job| is_odd(job));
                pod.annotations.extend(is_marked.then(|| (ZONE.into(), "*".into())));
            }
            _ => {}
        }
        event
    });
    apply(engine, events);
}

fn is_odd(name: &str) -> bool {
    name.bytes().last().is_some_and(|last| last % 2 == 1)
}

/// Gangs starve in a full cluster; a budget covers the first of the gangs that run.
pub(crate) fn load_budgets(case: &Case, engine: &mut Engine) {
    let match_labels = [("volcano.sh/job-name".into(), "job-000000".into())].into();
    let selector = LabelSelector { match_labels, ..LabelSelector::default() };
    let budget = BudgetRecord {
        key: ObjectKey::new("bench", "budget"),
        covers: Covers::Matching(selector),
        ..BudgetRecord::default()
    };
    apply(engine, std::iter::once(ClusterEvent::BudgetApplied(Box::new(budget))));
    load_full(case, engine);
}
