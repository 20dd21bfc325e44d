//! Plugin `pdb`: evictions respect PodDisruptionBudgets. The plugin is a victim filter; it does not
//! vote. Each budget is spent once, over all nodes, actions and cycles.
//! Specification: plugins-jobs-queues.md 10, D1-D3, D21, D22.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_framework::{
    CacheKeys, Clock, Depends, EarlierMemory, Inputs, Outbox, Plugin, PluginEntry, PluginMemory,
    Points, Records, SessionView, VictimFilter,
};
use vc_model::{Budget, Cluster, ObjectKey, TaskId, TaskStatus};

pub(crate) const ENTRY: PluginEntry = PluginEntry::new("pdb", |_, _| Box::<Pdb>::default());

const POINTS: Points = Points::PREEMPTABLE
    .and(Points::RECLAIMABLE)
    .and(Points::UNIFIED_EVICTABLE)
    .and(Points::VICTIM_TASKS)
    .and(Points::EVENT_HANDLERS);

/// Microseconds after which an eviction no longer counts, even if no status has shown it. The pod
/// was unhealthy before, or was replaced at once. Kubernetes waits as long for pods that its
/// eviction API was asked to remove.
const FORGOTTEN_MICROS: i64 = 120_000_000;

#[derive(Default)]
struct Pdb {
    /// Tasks that were evicted in this session and not restored.
    evicted: BTreeSet<TaskId>,
    /// Number of tasks in `evicted` that count against each budget.
    spent: BTreeMap<ObjectKey, i64>,
    /// Evictions of earlier sessions by budget.
    ledgers: BTreeMap<ObjectKey, BudgetLedger>,
    /// True if `ledgers` contains the evictions that this process has sent.
    opened: bool,
}

/// Evictions that were sent and are not yet counted in the status of a budget.
#[derive(Clone, Serialize, Deserialize)]
struct BudgetLedger {
    /// Value of [`Budget::fallen`] at the last comparison. Each further increase accounts for one
    /// charge.
    fallen: u64,
    /// The charges, oldest first.
    charges: Vec<BudgetCharge>,
}

#[derive(Clone, Serialize, Deserialize)]
struct BudgetCharge {
    uid: Arc<str>,
    pod: Arc<str>,
    sent_micros: i64,
}

/// The state that each extension point reads.
const READS: &[(Points, Inputs)] = &[
    (Points::PREEMPTABLE, VICTIMS),
    (Points::RECLAIMABLE, VICTIMS),
    (Points::UNIFIED_EVICTABLE, VICTIMS),
    (Points::VICTIM_TASKS, VICTIMS),
    (Points::EVENT_HANDLERS, Inputs::NONE),
];

/// The clock is read because charges expire.
const VICTIMS: Inputs = Inputs::CANDIDATE_ROW.and(Inputs::BUDGETS).and(Inputs::CLOCK);

impl Plugin for Pdb {
    fn points(&self) -> Points {
        POINTS
    }

    fn depends(&self) -> Depends {
        Depends::of(READS)
    }

    fn as_cache_keys(&self) -> Option<&dyn CacheKeys> {
        Some(self)
    }

    fn as_victim_filter(&self) -> Option<&dyn VictimFilter> {
        Some(self)
    }

    /// Returns what evictions of this process have spent.
    fn memory(&self) -> Option<Box<dyn PluginMemory>> {
        self.opened.then(|| Box::new(self.ledgers.clone()) as Box<dyn PluginMemory>)
    }

    fn take_over(&mut self, memory: EarlierMemory) {
        if let Some(ledgers) = memory.read() {
            (self.ledgers, self.opened) = (ledgers, true);
        }
    }

    fn open(&mut self, view: SessionView<'_>) {
        self.evicted.clear();
        self.spent.clear();
        if !std::mem::replace(&mut self.opened, true) {
            // The plugin is new in the configuration, so evictions in progress are charged now.
            let tasks = view.cluster.tasks.iter();
            tasks.filter(|(_, task)| task.evicting).for_each(|(id, _)| self.charge(view, id));
        }
        let now_micros = view.now_micros();
        self.ledgers.retain(|key, ledger| {
            let budget = view.cluster.budgets.get(key);
            budget.is_some_and(|budget| ledger.is_open(budget, view.cluster, now_micros))
        });
    }

    fn close(&mut self, view: SessionView<'_>, _records: &Records, _out: &mut Outbox) {
        for task in std::mem::take(&mut self.evicted) {
            self.charge(view, task);
        }
    }

    fn on_allocate(&mut self, view: SessionView<'_>, task: TaskId) {
        if self.evicted.remove(&task) {
            self.spend(view, task, -1);
        }
    }

    fn on_deallocate(&mut self, view: SessionView<'_>, task: TaskId) {
        let is_eviction = view.cluster.tasks[task].status == TaskStatus::Releasing;
        if is_eviction && self.evicted.insert(task) {
            self.spend(view, task, 1);
        }
    }
}

impl CacheKeys for Pdb {
    fn clock(&self, _view: SessionView<'_>) -> Clock {
        if self.ledgers.is_empty() { Clock::Ignores } else { Clock::Reads }
    }

    /// True if a budget covers the pod. Other pods may be evicted freely.
    fn concerns(&self, view: SessionView<'_>, candidate: TaskId) -> bool {
        counting(view.cluster, candidate).next().is_some()
    }
}

impl VictimFilter for Pdb {
    fn within_budget(&self, view: SessionView<'_>, candidates: &[TaskId]) -> Vec<TaskId> {
        let mut left: BTreeMap<ObjectKey, i64> = BTreeMap::new();
        // Every budget of a pod is charged, even if the pod stays (section 10).
        let mut may_go = |&task: &TaskId| {
            let mut violates = false;
            for (key, budget) in counting(view.cluster, task) {
                let left = left.entry(key.clone()).or_insert_with(|| self.left(&key, budget));
                *left -= 1;
                violates |= *left < 0;
            }
            !violates
        };
        candidates.iter().copied().filter(|task| may_go(task)).collect()
    }
}

impl Pdb {
    fn left(&self, key: &ObjectKey, budget: &Budget) -> i64 {
        let spent = self.spent.get(key).copied().unwrap_or(0);
        let sent = self.ledgers.get(key).map_or(0, |ledger| ledger.charges.len());
        budget.left() - spent - i64::try_from(sent).unwrap_or(i64::MAX)
    }

    fn spend(&mut self, view: SessionView<'_>, task: TaskId, amount: i64) {
        for (key, _) in counting(view.cluster, task) {
            *self.spent.entry(key).or_default() += amount;
        }
    }

    /// Charges an eviction to the ledgers, which outlive the session.
    fn charge(&mut self, view: SessionView<'_>, task: TaskId) {
        let row = &view.cluster.tasks[task];
        for (key, budget) in counting(view.cluster, task) {
            let new = || BudgetLedger { fallen: budget.fallen, charges: Vec::new() };
            self.ledgers.entry(key).or_insert_with(new).charges.push(BudgetCharge {
                uid: row.uid.clone(),
                pod: row.key.name.clone(),
                sent_micros: view.now_micros(),
            });
        }
    }
}

impl BudgetLedger {
    /// Removes the charges that the budget and the pods account for. Returns true if charges
    /// remain.
    fn is_open(&mut self, budget: &Budget, cluster: &Cluster, now_micros: i64) -> bool {
        let n_counted = budget.fallen.saturating_sub(self.fallen);
        let n_counted = usize::try_from(n_counted).unwrap_or(usize::MAX);
        self.fallen = budget.fallen;
        self.charges.drain(..n_counted.min(self.charges.len()));
        self.charges.retain(|charge| {
            charge.holds(cluster, now_micros) && !budget.disrupted.contains(&charge.pod)
        });
        !self.charges.is_empty()
    }
}

impl BudgetCharge {
    /// True if the pod is not running on, and the eviction is in progress or recent.
    fn holds(&self, cluster: &Cluster, now_micros: i64) -> bool {
        let task = cluster.task(&self.uid).map(|task| &cluster.tasks[task]);
        let on_its_way = task.is_some_and(|task| task.evicting);
        let spared = task.is_some_and(|task| task.status.is_allocated());
        let recent = now_micros < self.sent_micros.saturating_add(FORGOTTEN_MICROS);
        !spared && (on_its_way || recent)
    }
}

/// Returns the budgets against which the eviction of a pod counts.
fn counting(cluster: &Cluster, task: TaskId) -> impl Iterator<Item = (ObjectKey, &Budget)> {
    let (key, class) = (&cluster.tasks[task].key, cluster.class(task));
    let of_namespace = cluster.budgets.of(&key.namespace);
    let counting = of_namespace.filter(|(_, budget)| budget.counts(&key.name, &class.labels));
    counting.map(|(name, budget)| {
        (ObjectKey { namespace: key.namespace.clone(), name: name.clone() }, budget)
    })
}
