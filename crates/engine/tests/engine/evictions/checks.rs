//! What must hold after every cycle of a random cluster: invariants 1, 3 and 4 of "never useless,
//! never endless". Certificates and sums are checked by the world itself.

use std::collections::{BTreeMap, BTreeSet};

use vc_conf::Config;
use vc_engine::{Certificate, Effect, EvictReason};
use vc_framework::Room;
use vc_model::{Cluster, JobBudget, JobId, TaskId, TaskStatus};
use vc_resource::Dim;

use super::world::COVERED;
use crate::support::*;

/// What runs counts for its gang: by job, how many ready members.
pub(super) fn ready(cluster: &Cluster) -> BTreeMap<JobId, i64> {
    let row = |(job, row): (JobId, &vc_model::Job)| (job, i64::from(row.counts.ready()));
    cluster.jobs.iter().map(row).collect()
}

/// Pods that are bound, with their nodes.
pub(super) fn bound(cycle: &Cycle) -> BTreeMap<String, String> {
    let name = |effect: &Effect| match effect {
        Effect::Bind { pod, node, .. } => Some((pod.name.to_string(), node.to_string())),
        _ => None,
    };
    cycle.effects.iter().filter_map(name).collect()
}

fn job_of(cluster: &Cluster, pod: &str) -> JobId {
    cluster.tasks[task(cluster, pod)].job.expect("every pod of the test has one")
}

/// Invariant 1: every pod that evictions were made for has its place in the same cycle, and so has
/// its gang; every eviction is one of a certificate.
pub(super) fn check_useful(cluster: &Cluster, cycle: &Cycle) -> Result<(), String> {
    let mut placed = bound(cycle);
    let waits = || cycle.report.pipelined.iter();
    placed.extend(waits().map(|task| (task.pod.name.to_string(), task.node.to_string())));
    let n_victims: usize = cycle.report.certificates.iter().map(|it| it.victims.len()).sum();
    if n_victims != cycle.report.n_evictions {
        return Err("an eviction without certificate".to_owned());
    }
    for (index, certificate) in cycle.report.certificates.iter().enumerate() {
        for it in &certificate.placements {
            // Backfill gives a best-effort pod another chance.
            let moves = cluster.tasks[task(cluster, &it.pod.name)].best_effort;
            if !moves && placed.get(&*it.pod.name).map(String::as_str) != Some(&*it.node) {
                return Err(format!("evictions for {}, which has no place on {}", it.pod, it.node));
            }
        }
        let Some(it) = certificate.placements.first() else {
            match certificate.action {
                EvictReason::Shuffle => continue,
                _ => return Err("evictions for nobody".to_owned()),
            }
        };
        if is_inside_job(certificate) {
            continue;
        }
        let job = job_of(cluster, &it.pod.name);
        let row = &cluster.jobs[job];
        let n_waiting = n_waiting(cluster, cycle, job);
        let n_free = i64::from(row.counts.ready() + row.counts.pending_best_effort);
        // Shuffle asks nobody for whom a pod is of use, also not the gang that has just become complete.
        let later = cycle.report.certificates[index + 1..].iter();
        let shuffled = later.filter(|it| it.action == EvictReason::Shuffle);
        let lost = shuffled.flat_map(|it| &it.victims);
        let n_lost = lost.filter(|it| job_of(cluster, &it.pod.name) == job).count();
        if n_free + ((n_waiting + n_lost) as i64) < i64::from(row.min_available) {
            return Err(format!("evictions for {}, whose gang is not complete", it.pod));
        }
    }
    Ok(())
}

/// Members of the job that have a place and are not bound. The report names those that wait for
/// room; those on idle nodes wait for the others, as their conditions say.
fn n_waiting(cluster: &Cluster, cycle: &Cycle, job: JobId) -> usize {
    let row = &cluster.jobs[job];
    let waits = |task: &&TaskId| {
        let row = &cluster.tasks[**task];
        let message = row.condition.as_ref().map_or("", |reported| &*reported.message);
        let is_tentative = message.contains("can possibly be assigned to") && !row.best_effort;
        let is_pipelined = cycle.report.pipelined.iter().any(|it| it.pod == row.key);
        row.status == TaskStatus::Pending && (is_tentative || is_pipelined)
    };
    row.tasks.iter().filter(waits).count()
}

fn is_inside_job(certificate: &Certificate) -> bool {
    certificate.victims.iter().all(|it| Some(&it.pod_group) == certificate.pod_group.as_ref())
}

/// Invariant 3: no gang loses members that it needs, unless a gang action breaks it (A42).
pub(super) fn check_gangs(
    cluster: &Cluster,
    cycle: &Cycle,
    before: &BTreeMap<JobId, i64>,
) -> Result<(), String> {
    let mut left = before.clone();
    for pod in bound(cycle).keys() {
        *left.entry(job_of(cluster, pod)).or_default() += 1;
    }
    let (mut losers, mut broken) = (BTreeSet::new(), BTreeSet::new());
    let shuffled = |it: &&Certificate| it.action == EvictReason::Shuffle;
    for certificate in cycle.report.certificates.iter().filter(|it| !shuffled(it)) {
        let in_bundles =
            matches!(certificate.action, EvictReason::GangPreempt | EvictReason::GangReclaim);
        for victim in &certificate.victims {
            let job = job_of(cluster, &victim.pod.name);
            *left.entry(job).or_default() -= 1;
            if in_bundles {
                broken.insert(job);
            }
            losers.insert(job);
        }
    }
    for &job in losers.difference(&broken) {
        let row = &cluster.jobs[job];
        if left[&job] < i64::from(row.min_available) {
            return Err(format!("{} is left with {}", row.key, left[&job]));
        }
    }
    Ok(())
}

/// By pod: the node that was planned for it, and since when.
type Owed = BTreeMap<String, (String, u32)>;

/// Invariant 4: who was promised which node.
#[derive(Default)]
pub(super) struct Promises {
    owed: Owed,
    /// The owed places, and those of members that waited for room before the evictions (2.11).
    planned: Owed,
    served: BTreeSet<String>,
}

impl Promises {
    /// Takes a cycle of this number in; the places must be there after `lag` cycles, and nobody is
    /// evicted twice for the same pod, unless its queue has no room for it any more when the cycle
    /// begins.
    pub(super) fn check(
        &mut self,
        cluster: &Cluster,
        cycle: &Cycle,
        before: &PreviousAttempt<'_>,
        (number, lag): (u32, u32),
    ) -> Result<(), String> {
        for certificate in &cycle.report.certificates {
            for it in &certificate.placements {
                let (pod, node) = (it.pod.name.to_string(), it.node.to_string());
                if !self.served.insert(pod.clone()) && !before.is_refused(&self.planned, &pod) {
                    return Err(format!("{pod} has more evicted than was enough"));
                }
                self.owed.insert(pod, (node, number));
            }
        }
        let planned_before = self.planned.clone();
        self.plan(cluster, cycle, number);
        for (pod, node) in bound(cycle) {
            self.planned.remove(&pod);
            let moves = cluster.tasks[task(cluster, &pod)].best_effort;
            let planned = self.owed.remove(&pod).map(|(planned, _)| planned);
            if let Some(planned) = planned.filter(|planned| !moves && *planned != node) {
                return Err(format!("{pod} was to get {planned}, it got {node}"));
            }
        }
        self.forget_displaced(cycle, before, &planned_before);
        self.forget_refused(cluster);
        self.forget_broken(cluster, cycle);
        match self.owed.iter().find(|(_, (_, since))| since + lag < number) {
            Some((pod, _)) => Err(format!("{pod} did not get the place")),
            None => Ok(()),
        }
    }

    /// Adds the places that this cycle has made or kept for members of jobs for which pods went.
    fn plan(&mut self, cluster: &Cluster, cycle: &Cycle, number: u32) {
        let owed = self.owed.iter().map(|(pod, place)| (pod.clone(), place.clone()));
        self.planned.extend(owed);
        let jobs: BTreeSet<JobId> = self.owed.keys().map(|pod| job_of(cluster, pod)).collect();
        for it in &cycle.report.pipelined {
            if jobs.contains(&job_of(cluster, &it.pod.name)) {
                self.planned.insert(it.pod.name.to_string(), (it.node.to_string(), number));
            }
        }
    }

    /// Nothing is owed to a pod that has no place or another one because its queue had no room for it as
    /// the cycle began, even if evictions of the cycle have made room in the queue again: its hold has
    /// ended (2.11).
    fn forget_displaced(&mut self, cycle: &Cycle, before: &PreviousAttempt<'_>, planned: &Owed) {
        let keeps_place = |pod: &str, node: &str| {
            let mut placed = cycle.report.pipelined.iter();
            placed.any(|it| *it.pod.name == *pod && *it.node == *node)
        };
        let displaced = self.owed.iter().filter(|(pod, (node, _))| !keeps_place(pod, node));
        let displaced = displaced.map(|(pod, _)| pod.clone());
        let refused: BTreeSet<String> =
            displaced.filter(|pod| before.is_refused(planned, pod)).collect();
        self.forget(|pod| refused.contains(pod));
    }

    /// Nothing is owed once the limit of the queue is lower than it was (11.2): who replaces a
    /// victim asks for the share of its queue again. A gang that needs the refused member waits as
    /// a whole.
    fn forget_refused(&mut self, cluster: &Cluster) {
        let refused = self.owed.keys().filter(|pod| is_refused_by_queue(cluster, pod));
        let refused: Vec<String> = refused.cloned().collect();
        for pod in refused {
            let job = job_of(cluster, &pod);
            let row = &cluster.jobs[job];
            let waits = i64::from(row.counts.ready()) < i64::from(row.min_available);
            self.forget(|other| other == pod || waits && job_of(cluster, other) == job);
        }
    }

    /// Nothing is owed to a gang that gang actions broke: whoever replaces its members waits beside the
    /// others, and they are placed together, wherever there is room (11.2).
    fn forget_broken(&mut self, cluster: &Cluster, cycle: &Cycle) {
        let victims = cycle.report.certificates.iter().flat_map(|it| &it.victims);
        let losers: BTreeSet<JobId> = victims.map(|it| job_of(cluster, &it.pod.name)).collect();
        self.forget(|pod| {
            let job = job_of(cluster, pod);
            let row = &cluster.jobs[job];
            losers.contains(&job) && i64::from(row.counts.ready()) < i64::from(row.min_available)
        });
    }

    fn forget(&mut self, is_gone: impl Fn(&str) -> bool) {
        let gone: Vec<String> = self.owed.keys().filter(|pod| is_gone(pod)).cloned().collect();
        for pod in gone {
            self.owed.remove(&pod);
            self.planned.remove(&pod);
            self.served.remove(&pod);
        }
    }
}

/// Invariant 5: nobody goes who is protected.
pub(super) struct Protected {
    /// Covered pods that may go yet; `None`: there is no budget.
    left: Option<i64>,
    /// cpu of the quota; `None`: there is none.
    hard: Option<i64>,
}

/// What is known before a cycle.
pub(super) struct PreviousAttempt<'a> {
    config: &'a Config,
    cluster: Cluster,
    now_micros: i64,
    /// By job: how many run.
    running: BTreeMap<JobId, i64>,
    /// Pods that have begun.
    begun: BTreeSet<TaskId>,
    /// Jobs that are not admitted.
    outside: BTreeSet<JobId>,
}

impl<'a> PreviousAttempt<'a> {
    pub(super) fn of(cluster: &Cluster, config: &'a Config, now_micros: i64) -> Self {
        let running = |(job, row): (JobId, &vc_model::Job)| {
            (job, i64::from(row.counts.of(TaskStatus::Running)))
        };
        let begun = cluster.tasks.iter().filter(|(_, row)| row.status == TaskStatus::Running);
        let outside = cluster.jobs.iter().filter(|(_, row)| row.is_pending());
        Self {
            config,
            cluster: cluster.clone(),
            now_micros,
            running: cluster.jobs.iter().map(running).collect(),
            begun: begun.map(|(task, _)| task).collect(),
            outside: outside.map(|(job, _)| job).collect(),
        }
    }

    /// Whether the limit of its queue is so low that the planned places of all no longer fit, and
    /// some member of its job is left out (11.2). The action decides which member that is.
    fn is_refused(&self, owed: &Owed, pod: &str) -> bool {
        let own = job_of(&self.cluster, pod);
        let mut refused = false;
        Stage::at(self.cluster.clone(), self.config).session(|session| {
            let mut statement = session.statement();
            for (name, (planned, _)) in owed {
                let waiting = task(&statement, name);
                let Some(job) = statement.tasks[waiting].job else { continue };
                let queue = statement.jobs[job].queue;
                let planned = node(&statement, planned);
                match statement.plugins().allocatable(statement.view(), queue, waiting) {
                    Ok(()) => _ = statement.pipeline(waiting, planned, Room::Releasing),
                    Err(_) => refused |= job == own,
                }
            }
            statement.discard();
        });
        refused
    }
}

impl Protected {
    pub(super) fn of(text: &str) -> Self {
        let number = |key: &str| {
            let found = text.split_whitespace().find_map(|word| word.strip_prefix(key));
            found.and_then(|number| number.parse().ok())
        };
        Self { left: number("allowed="), hard: number("hard.cpu=") }
    }

    pub(super) fn check(
        &mut self,
        cluster: &Cluster,
        cycle: &Cycle,
        before: &PreviousAttempt<'_>,
        rules: Rules,
    ) -> Result<(), String> {
        for victim in cycle.report.certificates.iter().flat_map(|it| &it.victims) {
            let id = task(cluster, &victim.pod.name);
            let row = &cluster.tasks[id];
            if rules.conformance && &*row.priority_class_name == "system-node-critical" {
                return Err(format!("{} is critical", victim.pod));
            }
            let cools = row.cooling_until_micros.is_some_and(|until| before.now_micros < until);
            if rules.cooldown && cools && before.begun.contains(&id) {
                return Err(format!("{} cools down", victim.pod));
            }
        }
        self.check_budget(cluster, cycle)?;
        if rules.zones {
            check_job_budgets(cluster, cycle, before)?;
        }
        if rules.guarantees {
            check_guarantees(cluster, cycle)?;
        }
        self.check_quota(cluster, before)
    }

    /// No more covered pods go than the budget allows.
    fn check_budget(&mut self, cluster: &Cluster, cycle: &Cycle) -> Result<(), String> {
        for victim in cycle.report.certificates.iter().flat_map(|it| &it.victims) {
            let labels = &cluster.class(task(cluster, &victim.pod.name)).labels;
            if labels.get("app").is_some_and(|label| &**label == COVERED) {
                self.left = self.left.map(|left| left - 1);
            }
        }
        match self.left.is_some_and(|left| left < 0) {
            true => Err("more go than the budget allows".to_owned()),
            false => Ok(()),
        }
    }

    /// What is admitted in one cycle fits into the quota.
    fn check_quota(&self, cluster: &Cluster, before: &PreviousAttempt<'_>) -> Result<(), String> {
        let admitted = before.outside.iter().map(|&job| &cluster.jobs[job]);
        let admitted = admitted.filter(|row| !row.is_pending());
        let group = |row: &vc_model::Job| row.pod_group.clone();
        let asked = admitted.filter_map(group).filter_map(|group| group.min_resources);
        let sum: i64 = asked.map(|asked| asked.amounts.get(Dim::CPU)).sum();
        match self.hard.is_some_and(|hard| hard * 1000 < sum) {
            true => Err(format!("{sum} milli cpu are admitted, the quota has less")),
            false => Ok(()),
        }
    }
}

/// Which plugins are in force.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) conformance: bool,
    pub(super) cooldown: bool,
    pub(super) zones: bool,
    pub(super) guarantees: bool,
}

/// Who loses pods keeps as many running, or as few out of work, as its annotation says; below that
/// it loses none.
fn check_job_budgets(
    cluster: &Cluster,
    cycle: &Cycle,
    before: &PreviousAttempt<'_>,
) -> Result<(), String> {
    let mut lost: BTreeMap<JobId, i64> = BTreeMap::new();
    // The plugin tdm has no part in what is reclaimed.
    let asked =
        |it: &&Certificate| matches!(it.action, EvictReason::Preempt | EvictReason::Shuffle);
    let certificates = cycle.report.certificates.iter().filter(asked);
    for victim in certificates.flat_map(|it| &it.victims) {
        *lost.entry(job_of(cluster, &victim.pod.name)).or_default() += 1;
    }
    for (job, lost) in lost {
        let row = &cluster.jobs[job];
        let Some(budget) = row.pod_group.as_ref().and_then(|group| group.budget.as_deref()) else {
            continue;
        };
        let (n_tasks, running) = (row.counts.total(), before.running[&job]);
        let may_lose = match budget {
            JobBudget::MinAvailable(portion) => running - portion.of(n_tasks),
            JobBudget::MaxUnavailable(portion) => {
                portion.of(n_tasks) - (i64::from(n_tasks) - running)
            }
            JobBudget::Unreadable(_) => 0,
        };
        if may_lose < lost {
            return Err(format!("{} loses {lost}, its budget is {may_lose}", row.key));
        }
    }
    Ok(())
}

/// A queue from which something was reclaimed still has what it is guaranteed.
fn check_guarantees(cluster: &Cluster, cycle: &Cycle) -> Result<(), String> {
    let reclaims =
        |it: &&Certificate| matches!(it.action, EvictReason::Reclaim | EvictReason::GangReclaim);
    let certificates = cycle.report.certificates.iter().filter(reclaims);
    for victim in certificates.flat_map(|it| &it.victims) {
        let queue = cluster.jobs[job_of(cluster, &victim.pod.name)].queue;
        let holds = |id: TaskId, row: &vc_model::Task| {
            let status = row.status.is_allocated() || row.status == TaskStatus::Pipelined;
            let planned = cycle.report.pipelined.iter().any(|it| it.pod == row.key);
            let ours = row.job.is_some_and(|job| cluster.jobs[job].queue == queue);
            let counts = ours && (status || planned);
            if counts { cluster.request(id).get(Dim::CPU) } else { 0 }
        };
        let held: i64 = cluster.tasks.iter().map(|(id, row)| holds(id, row)).sum();
        let guarantee = cluster.queues[queue].guarantee.get(Dim::CPU);
        if held < guarantee {
            let name = &cluster.queues[queue].name;
            return Err(format!("{name} has {held} left of {guarantee} milli cpu"));
        }
    }
    Ok(())
}
