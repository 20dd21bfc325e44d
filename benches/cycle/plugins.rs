//! Clusters of plugins that few configurations name: half the nodes may be used by marked pods only
//! (tdm), budgets for the pods that run (pdb), pods that share GPUs (deviceshare). And the
//! configuration with every plugin.

use vc_engine::Engine;
use vc_model::{
    BudgetRecord, ClusterEvent, Covers, LabelSelector, NodeRecord, ObjectKey, PodGroupPhase,
    PodRecord, ResourceList,
};
use vc_resource::Quantity;

use crate::cases::Case;
use crate::load::{apply, base, load_full, pending_gangs};
use crate::objects::Shape;
use crate::tiers::{conf, tier};

/// The chart's tiers with tdm.
pub(crate) const ZONES: &str = conf!("enqueue, allocate, backfill", tier!(zones));

/// The chart's tiers with preempt and pdb.
pub(crate) const BUDGETS: &str = conf!("enqueue, allocate, preempt, backfill", tier!(budgets));

/// The chart's tiers with every other plugin but cohort, which stands alone.
pub(crate) const ALL: &str = conf!("enqueue, allocate, backfill", tier!(all));

/// The chart's tiers with fairshare by account.
pub(crate) const ACCOUNTS: &str = conf!("enqueue, allocate, backfill", tier!(accounts));

/// The chart's tiers with vGPUs.
pub(crate) const SHARES: &str = conf!("enqueue, allocate, backfill", tier!(shares));

const NUMBER: &str = "volcano.sh/vgpu-number";
const MEMORY: &str = "volcano.sh/vgpu-memory";
const CORES: &str = "volcano.sh/vgpu-cores";
/// GPUs of a node, and what each has: users at most, MiB, percent of its cores.
const N_CARDS: i64 = 8;
const CARD: [i64; 3] = [10, 32_768, 100];

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

/// Nothing runs; gangs wait whose pods get a quarter of a GPU each.
pub(crate) fn load_shares(case: &Case, engine: &mut Engine) {
    let shape = |_| Shape { cpu_milli: 500, memory_gi: 1 };
    let gangs = pending_gangs(case, PodGroupPhase::Pending, shape);
    let events = base(case).chain(gangs).map(|mut event| {
        match &mut event {
            ClusterEvent::NodeApplied(node) => add_cards(node),
            ClusterEvent::PodApplied(pod) => add_share(pod),
            _ => {}
        }
        event
    });
    apply(engine, events);
}

/// Gangs of a thousand teams, whose usage `fairshare` compares at each turn.
pub(crate) fn load_accounts(case: &Case, engine: &mut Engine) {
    const N_TEAMS: u64 = 1_000;
    let shape = |number: u64| Shape {
        cpu_milli: [500, 1000, 2000, 4000][(number % 4) as usize],
        memory_gi: [1, 2, 4, 8][(number / 4 % 4) as usize],
    };
    let mut number = 0;
    let gangs = pending_gangs(case, PodGroupPhase::Pending, shape).map(|mut event| {
        if let ClusterEvent::PodGroupApplied(group) = &mut event {
            group.labels.insert("team".into(), format!("team-{}", number % N_TEAMS).into());
            number += 1;
        }
        event
    });
    apply(engine, base(case).chain(gangs));
}

/// The cards as the device plugin registers them.
fn add_cards(node: &mut NodeRecord) {
    let [most_users, memory, cores] = CARD;
    let amounts = devices([most_users, memory, cores].map(|amount| amount * N_CARDS));
    node.allocatable.extend(amounts.clone());
    node.capacity.extend(amounts);
    let name = &node.name;
    let card = |at| format!("GPU-{name}-{at},{most_users},{memory},NVIDIA-V100,true,hami-core:");
    let cards: String = (0..N_CARDS).map(card).collect();
    node.annotations.insert("volcano.sh/node-vgpu-register".into(), cards.into());
}

fn add_share(pod: &mut PodRecord) {
    let [_, memory, cores] = CARD;
    let amounts = devices([1, memory / 4, cores / 4]);
    pod.containers.iter_mut().for_each(|it| it.requests.extend(amounts.clone()));
}

/// Number, memory and cores as resources.
fn devices(amounts: [i64; 3]) -> ResourceList {
    let names = [NUMBER, MEMORY, CORES].into_iter().zip(amounts);
    names.map(|(name, amount)| (name.into(), Quantity::from_value(amount))).collect()
}
