//! Random trees, groups and demands for the laws: small, so that everything can be tried.

use proptest::prelude::*;
use vc_cohort::{
    AllowAll, AssignmentMode, BorrowWithin, EvictionTarget, Forest, Group, GroupId, Groups, Policy,
    PreemptionStrategies, QueueSpec, QuotaAmount, QuotaDemand, QuotaForest, QuotaNode,
    QuotaPreemptor, ReclaimWithin, SearchOptions, SearchRefusal, Slot, TreeRules, WithinQueue,
    build,
};

use crate::notation::slots;

pub(crate) const FAIR: SearchOptions =
    SearchOptions { fair_sharing: Some(PreemptionStrategies::Both), own: true, others: true };

pub(crate) fn policies() -> impl Strategy<Value = Policy> {
    let within = prop::sample::select(vec![
        WithinQueue::Never,
        WithinQueue::LowerPriority,
        WithinQueue::LowerOrNewerEqualPriority,
    ]);
    let reclaim = prop::sample::select(vec![
        ReclaimWithin::Never,
        ReclaimWithin::LowerPriority,
        ReclaimWithin::Any,
        ReclaimWithin::Any,
    ]);
    let borrow = prop::sample::select(vec![
        BorrowWithin::Never,
        BorrowWithin::LowerPriority { max_priority: None },
        BorrowWithin::LowerPriority { max_priority: Some(0) },
    ]);
    (within, reclaim, borrow).prop_map(|(within_queue, reclaim_within, borrow_within)| Policy {
        within_queue,
        reclaim_within,
        borrow_within,
    })
}

/// Deserved and guaranteed cpu and memory, what the capability has more, policy, weight, parent.
pub(crate) type QueueRow = ([Option<i64>; 2], [Option<i64>; 2], Option<i64>, Policy, f64, usize);

/// What stands under root, or under the first queue: the names order them.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) queues: Vec<QueueSpec>,
}

pub(crate) fn shapes(deep: bool) -> impl Strategy<Value = Shape> {
    let amount = || prop::option::of(0_i64..6);
    let queue = (
        [amount(), amount()],
        [prop::option::weighted(0.3, 0_i64..3), prop::option::weighted(0.3, 0_i64..3)],
        prop::option::weighted(0.3, 0_i64..6),
        policies(),
        prop::sample::select(vec![1.0, 1.0, 2.0, 0.5, 0.0]),
        0_usize..6,
    );
    prop::collection::vec(queue, 2..6).prop_map(move |rows| {
        let row = |(at, row): (usize, QueueRow)| {
            let ([cpu, memory], [kept_cpu, kept_memory], extra, policy, weight, parent) = row;
            let capability = extra.map(|extra| cpu.unwrap_or(0) + extra + 1);
            // A queue may stand below an earlier one.
            let above = deep && parent < at;
            QueueSpec {
                name: format!("q{at}").into(),
                parent: if above { format!("q{parent}").into() } else { "".into() },
                deserved: vec![cpu, memory, None],
                capability: vec![capability, None, None],
                guarantee: vec![kept_cpu, kept_memory, None],
                weight,
                priority: 0,
                policy,
            }
        };
        Shape { queues: rows.into_iter().enumerate().map(row).collect() }
    })
}

impl Shape {
    pub(crate) fn built(&self) -> QuotaForest {
        build(slots().0, &self.queues, &TreeRules::default()).expect("queues make no fault")
    }

    /// Queues without children.
    pub(crate) fn leaves(&self, built: &QuotaForest) -> Vec<QuotaNode> {
        let is_parent = |name: &str| self.queues.iter().any(|queue| &*queue.parent == name);
        let leaves = self.queues.iter().filter(|queue| !is_parent(&queue.name));
        leaves.map(|queue| built.by_name[&queue.name]).collect()
    }
}

/// Queue, priority, cpu, memory, age.
pub(crate) type Row = (usize, i32, i64, i64, i64);

pub(crate) fn rows(n: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Row>> {
    prop::collection::vec((0_usize..6, -1_i32..3, 1_i64..4, 0_i64..3, 0_i64..4), n)
}

pub(crate) fn demand(cpu: i64, memory: i64) -> QuotaDemand {
    let [first, second, _] = slots().1;
    QuotaDemand::new([(first, cpu), (second, memory)])
}

pub(crate) fn group(leaves: &[QuotaNode], at: usize, row: &Row) -> Group {
    let &(queue, priority, cpu, memory, age) = row;
    Group {
        queue: leaves[queue % leaves.len()],
        priority,
        created_micros: age,
        admitted_micros: at as i64,
        uid: format!("g{at}").into(),
        evicting: false,
        holds: demand(cpu, memory),
    }
}

pub(crate) fn preemptor(group: &Group) -> QuotaPreemptor {
    QuotaPreemptor {
        queue: group.queue,
        priority: group.priority,
        created_micros: group.created_micros,
        demand: group.holds.clone(),
    }
}

pub(crate) fn uses(forest: &Forest) -> Vec<QuotaAmount> {
    let of = |node| slots().1.map(|slot| forest.usage(node, slot));
    forest.nodes().flat_map(of).collect()
}

/// Groups that are admitted one after the other as far as they fit.
pub(crate) fn admitted(shape: &Shape, rows: &[Row], only_fitting: bool) -> (Groups, Vec<GroupId>) {
    let built = shape.built();
    let leaves = shape.leaves(&built);
    let mut groups = Groups::new(built.forest.clone());
    let mut ids = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let group = group(&leaves, at, row);
        let class = groups.forest().classify(group.queue, &group.holds, false);
        if !only_fitting || class.mode == AssignmentMode::Fit {
            ids.push(groups.insert(group));
        }
    }
    (groups, ids)
}

/// Runs a search; what it needs, and what it says.
pub(crate) fn decide(
    groups: &mut Groups,
    preemptor: &QuotaPreemptor,
    how: &SearchOptions,
) -> (AssignmentMode, Vec<Slot>, Result<Vec<EvictionTarget>, SearchRefusal>) {
    let fair = how.fair_sharing.is_some();
    let class = groups.forest().classify(preemptor.queue, &preemptor.demand, fair);
    let found = match class.mode {
        AssignmentMode::Preempt => how.run(groups, preemptor, &class.need, &mut AllowAll),
        AssignmentMode::Fit | AssignmentMode::NoFit => Err(SearchRefusal::NoCandidates),
    };
    (class.mode, class.need, found)
}
