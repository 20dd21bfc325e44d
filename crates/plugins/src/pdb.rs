//! PodDisruptionBudgets hold for evictions: a protective filter instead of a voter, which spends each
//! budget once, over all nodes, actions and cycles. Specification: plugins-jobs-queues.md 10, D1-D3,
//! D21, D22.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_framework::{Ask, Clock, Outbox, Plugin, PluginEntry, Points, Records};
use vc_model::{Budget, Cluster, ObjectKey, TaskId, TaskStatus};

pub(crate) const ENTRY: PluginEntry =
    PluginEntry { name: "pdb", build: |_, _| Box::<Pdb>::default() };

const POINTS: Points = Points::PREEMPTABLE
    .and(Points::RECLAIMABLE)
    .and(Points::UNIFIED_EVICTABLE)
    .and(Points::VICTIM_TASKS)
    .and(Points::EVENT_HANDLERS);

/// After this time an eviction no longer counts, even if no status has shown it: the pod was not
/// healthy before, or another one took its place at once. As long as Kubernetes waits for pods that
/// its eviction API was asked to remove.
const FORGOTTEN_MICROS: i64 = 120_000_000;

#[derive(Default)]
struct Pdb {
    /// Evicted in this session and not taken back.
    evicted: BTreeSet<TaskId>,
    /// How many of them count against each budget.
    spent: BTreeMap<ObjectKey, i64>,
    /// Evictions of earlier sessions, by budget.
    ledgers: BTreeMap<ObjectKey, Ledger>,
    /// It knows what this process has sent.
    opened: bool,
}

/// Evictions that were sent and that the status of a budget does not count yet.
struct Ledger {
    /// [`Budget::fallen`] when it was last compared: each further fall is one of the charges.
    fallen: u64,
    /// The oldest first.
    charges: Vec<Charge>,
}

struct Charge {
    uid: Arc<str>,
    pod: Arc<str>,
    sent_micros: i64,
}

impl Plugin for Pdb {
    fn points(&self) -> Points {
        POINTS
    }

    /// Evictions that no budget has counted are forgotten in time.
    fn eases_by_evictions(&self) -> bool {
        true
    }

    fn clock(&self, _ask: Ask<'_>) -> Clock {
        if self.ledgers.is_empty() { Clock::Ignores } else { Clock::Reads }
    }

    fn votes_for_any_class(&self, _ask: Ask<'_>) -> bool {
        true
    }

    fn knows_askers(&self, _ask: Ask<'_>, _task: TaskId) -> bool {
        true
    }

    fn is_victim_filter(&self) -> bool {
        true
    }

    fn hand_over(&mut self) -> Option<Box<dyn Any + Send>> {
        self.opened.then(|| Box::new(std::mem::take(&mut self.ledgers)) as Box<dyn Any + Send>)
    }

    fn take_over(&mut self, memory: Box<dyn Any + Send>) {
        if let Ok(ledgers) = memory.downcast() {
            (self.ledgers, self.opened) = (*ledgers, true);
        }
    }

    fn open(&mut self, ask: Ask<'_>) {
        self.evicted.clear();
        self.spent.clear();
        if !std::mem::replace(&mut self.opened, true) {
            // It is new in the configuration.
            let tasks = ask.cluster.tasks.iter();
            tasks.filter(|(_, task)| task.evicting).for_each(|(id, _)| self.charge(ask, id));
        }
        let now_micros = ask.facts.now_micros;
        self.ledgers.retain(|key, ledger| {
            let budget = ask.cluster.budgets.get(key);
            budget.is_some_and(|budget| ledger.is_open(budget, ask.cluster, now_micros))
        });
    }

    fn close(&mut self, ask: Ask<'_>, _records: &Records, _out: &mut Outbox) {
        for task in std::mem::take(&mut self.evicted) {
            self.charge(ask, task);
        }
    }

    fn on_allocate(&mut self, ask: Ask<'_>, task: TaskId) {
        if self.evicted.remove(&task) {
            self.spend(ask, task, -1);
        }
    }

    fn on_deallocate(&mut self, ask: Ask<'_>, task: TaskId) {
        let is_eviction = ask.cluster.tasks[task].status == TaskStatus::Releasing;
        if is_eviction && self.evicted.insert(task) {
            self.spend(ask, task, 1);
        }
    }

    /// A pod that no budget covers goes freely.
    fn concerns(&self, ask: Ask<'_>, candidate: TaskId) -> bool {
        counting(ask.cluster, candidate).next().is_some()
    }

    fn has_budgets(&self) -> bool {
        true
    }

    fn within_budget(&self, ask: Ask<'_>, candidates: &[TaskId]) -> Vec<TaskId> {
        let mut left: BTreeMap<ObjectKey, i64> = BTreeMap::new();
        // Every budget of a pod is charged, also when the pod stays (10).
        let mut may_go = |&task: &TaskId| {
            let mut violates = false;
            for (key, budget) in counting(ask.cluster, task) {
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

    fn spend(&mut self, ask: Ask<'_>, task: TaskId, amount: i64) {
        for (key, _) in counting(ask.cluster, task) {
            *self.spent.entry(key).or_default() += amount;
        }
    }

    /// Remembers an eviction beyond the session.
    fn charge(&mut self, ask: Ask<'_>, task: TaskId) {
        let row = &ask.cluster.tasks[task];
        for (key, budget) in counting(ask.cluster, task) {
            let new = || Ledger { fallen: budget.fallen, charges: Vec::new() };
            self.ledgers.entry(key).or_insert_with(new).charges.push(Charge {
                uid: row.uid.clone(),
                pod: row.key.name.clone(),
                sent_micros: ask.facts.now_micros,
            });
        }
    }
}

impl Ledger {
    /// Whether anything is left in it after what the budget and the pods show.
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

impl Charge {
    /// Whether the pod was not spared after all, and the eviction is not long ago.
    fn holds(&self, cluster: &Cluster, now_micros: i64) -> bool {
        let task = cluster.task(&self.uid).map(|task| &cluster.tasks[task]);
        let on_its_way = task.is_some_and(|task| task.evicting);
        let spared = task.is_some_and(|task| task.status.is_allocated());
        let recent = now_micros < self.sent_micros.saturating_add(FORGOTTEN_MICROS);
        !spared && (on_its_way || recent)
    }
}

/// The budgets against which the eviction of a pod counts.
fn counting(cluster: &Cluster, task: TaskId) -> impl Iterator<Item = (ObjectKey, &Budget)> {
    let (key, class) = (&cluster.tasks[task].key, cluster.class(task));
    let of_namespace = cluster.budgets.of(&key.namespace);
    let counting = of_namespace.filter(|(_, budget)| budget.counts(&key.name, &class.labels));
    counting.map(|(name, budget)| {
        (ObjectKey { namespace: key.namespace.clone(), name: name.clone() }, budget)
    })
}
