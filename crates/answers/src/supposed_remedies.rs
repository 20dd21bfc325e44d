//! Remedies that need whole cycles: a higher priority, for which others are evicted, and several changes as one, with
//! which the job starts at once or after an end. Specification: answers.md 5.

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_engine::Engine;
use vc_model::{Cluster, JobId, ObjectKey, TaintEffect, TaskId};

use crate::amounts::count;
use crate::ends::ExpectedEnds;
use crate::explain::AnswerState;
use crate::explanation::{BlockingAtom, BlockingSet, Explanation, Remedy, RemedyKind, Responsible};
use crate::remedy_change::{RemedyChange, is_cordoned, selector_without};
use crate::stop::StopSignal;
use crate::what_if::changes::{ChangeNotes, make};
use crate::what_if::run::SupposedRun;
use crate::what_if::{Change, SupposedKubelet};
use crate::when::{AwaitedJob, awaited, plan, waiting_tasks};

/// PriorityClasses that are tried.
const MOST_TRIALS: usize = 6;
/// Cycles in which others are evicted and the job gets their room.
const CYCLES: u32 = 4;

/// The lowest PriorityClass above the job's for which the configured actions make room.
pub(crate) fn raise_priority(
    (engine, stop): (&Engine, &StopSignal),
    job: JobId,
    key: &ObjectKey,
) -> Option<Remedy> {
    let evicts = |action: &String| matches!(action.as_str(), "preempt" | "gangpreempt");
    if !engine.config().actions.iter().any(evicts) {
        return None;
    }
    let cluster = engine.cluster();
    let own = cluster.jobs[job].priority;
    let classes = cluster.priority_classes().filter(|class| own < class.value);
    // Users may not use the classes of the system.
    let classes = classes.filter(|class| !class.name.starts_with("system-"));
    let mut classes: Vec<(i32, Arc<str>)> =
        classes.map(|class| (class.value, class.name.clone())).collect();
    classes.sort_unstable();
    let waiting: BTreeSet<TaskId> = waiting_tasks(cluster, job).collect();
    let mut best = None;
    let (mut low, mut high) = (0, classes.len());
    for _ in 0..MOST_TRIALS {
        if high <= low {
            break;
        }
        let middle = low + (high - low) / 2;
        let class = &classes[middle].1;
        match evicted_for((engine, stop), (key, class), &waiting) {
            Some(victims) => (best, high) = (Some((class.clone(), victims)), middle),
            None => low = middle + 1,
        }
    }
    let (class, victims) = best?;
    let names = victims.iter().map(|(job, pods)| format!("{} of {job}", count(*pods, "pod")));
    let names: Vec<String> = names.take(3).collect();
    Some(Remedy {
        kind: RemedyKind::RaisePriority,
        who: Responsible::You,
        text: format!("priority class {class}, which evicts {}", names.join(", ")),
        nodes: Vec::new(),
        at_micros: None,
        change: Some(RemedyChange::Priority { job: key.clone(), class }),
    })
}

/// Returns the jobs of which pods are evicted, with their number, so that the job starts with this
/// class. Returns `None` if it does not.
fn evicted_for(
    of: (&Engine, &StopSignal),
    (key, class): (&ObjectKey, &Arc<str>),
    waiting: &BTreeSet<TaskId>,
) -> Option<Vec<(ObjectKey, usize)>> {
    let change = RemedyChange::Priority { job: key.clone(), class: class.clone() };
    let mut run = changed_run(of, ExpectedEnds::default(), &change.as_changes())?;
    run.settle(CYCLES);
    let is_for_it = |gone: &&crate::what_if::run::GonePod| gone.for_group.as_ref() == Some(key);
    let mut victims: Vec<(ObjectKey, usize)> = Vec::new();
    for gone in run.evicted.values().filter(is_for_it) {
        let job = gone.pod_group.clone().unwrap_or_default();
        match victims.iter_mut().find(|(other, _)| *other == job) {
            Some((_, pods)) => *pods += 1,
            None => victims.push((job, 1)),
        }
    }
    let starts = waiting.iter().any(|task| has_node(run.cluster(), *task));
    (starts && !victims.is_empty()).then_some(victims)
}

/// True if whole cycles start the job after this change. A job before it may take the room.
pub(crate) fn starts_after(of: (&Engine, &StopSignal), change: &RemedyChange, job: JobId) -> bool {
    let run = changed_run(of, ExpectedEnds::default(), &change.as_changes());
    run.is_some_and(|mut run| {
        let waiting: BTreeSet<TaskId> = waiting_tasks(run.cluster(), job).collect();
        run.settle(CYCLES);
        waiting.iter().any(|task| has_node(run.cluster(), *task))
    })
}

fn has_node(cluster: &Cluster, task: TaskId) -> bool {
    cluster.tasks.get(task).is_some_and(|row| row.node.is_some())
}

/// Makes changes in a copy. Returns `None` if one of them is not possible.
fn changed_run(
    (engine, stop): (&Engine, &StopSignal),
    ends: ExpectedEnds,
    changes: &[Change],
) -> Option<SupposedRun> {
    let mut run = SupposedRun::new(engine, SupposedKubelet::Instant, ends).stoppable(stop);
    // Nobody reads what these cycles report of jobs that wait.
    run.engine_mut().explain(false);
    let mut notes = ChangeNotes::default();
    for change in changes.iter().enumerate() {
        make(&mut run, change, &mut notes).ok()?;
    }
    Some(run)
}

/// Returns the remedy `together`: changes as one that lift the first set which changes can lift, but for atoms that
/// ends may lift, and the ends that then let the job start.
pub(crate) fn together(
    (engine, state): (&Engine, &AnswerState),
    ends: &ExpectedEnds,
    (job, key): (JobId, &ObjectKey),
    explanation: &Explanation,
) -> Option<Remedy> {
    let (_, combined) = first_combined(state.cluster(), (job, key), explanation)?;
    let run = changed_run((engine, state.stop()), ends.clone(), &combined.change.as_changes())?;
    let waiting: BTreeSet<TaskId> = waiting_tasks(run.cluster(), job).collect();
    let plan = plan(run, job, &waiting).ok()?;
    let awaited = awaited((state, ends), job, &plan.ended);
    let at_micros = (!plan.ended.is_empty()).then_some(plan.at_micros);
    Some(combined.into_remedy(&awaited, at_micros))
}

/// Returns the remedy `together` if no end is waited for: its changes lift all atoms of the set, and the job starts
/// with them at once.
pub(crate) fn together_at_once(
    (engine, state): (&Engine, &AnswerState),
    (job, key): (JobId, &ObjectKey),
    explanation: &Explanation,
) -> Option<Remedy> {
    let (set, combined) = first_combined(state.cluster(), (job, key), explanation)?;
    if set.atoms.iter().any(is_given_by_time) {
        return None;
    }
    let starts = starts_after((engine, state.stop()), &combined.change, job);
    starts.then(|| combined.into_remedy(&[], None))
}

/// Returns the first set with several atoms that a change lifts but for those that time gives, with this change.
fn first_combined<'e>(
    cluster: &Cluster,
    (job, key): (JobId, &ObjectKey),
    explanation: &'e Explanation,
) -> Option<(&'e BlockingSet, CombinedChange)> {
    let sets = explanation.blocking.iter().flat_map(|blocking| &blocking.sets);
    let mut sets = sets.filter(|set| 1 < set.atoms.len());
    sets.find_map(|set| Some((set, CombinedChange::of(cluster, (job, key), set)?)))
}

/// Changes of the waiting pods and of nodes that lift several atoms as one.
struct CombinedChange {
    text: String,
    who: Responsible,
    change: RemedyChange,
}

impl CombinedChange {
    /// Returns the remedy. `awaited` are the jobs whose ends then let the job start, at this time.
    fn into_remedy(self, awaited: &[AwaitedJob], at_micros: Option<i64>) -> Remedy {
        let mut text = self.text;
        if !awaited.is_empty() {
            let ends: Vec<String> = awaited.iter().map(AwaitedJob::text).collect();
            text.push_str(&format!("; it starts when {} ends", ends.join(" and ")));
        }
        Remedy {
            kind: RemedyKind::Together,
            who: self.who,
            text,
            nodes: Vec::new(),
            at_micros,
            change: Some(self.change),
        }
    }

    /// Returns the change that lifts all atoms of the set but those that time gives. Returns `None` if one of them is lifted
    /// by no change, or nothing is to be changed.
    fn of(cluster: &Cluster, (job, key): (JobId, &ObjectKey), set: &BlockingSet) -> Option<Self> {
        let (mut taints, mut labels, mut has_cordon) = (Vec::new(), Vec::new(), false);
        for atom in set.atoms.iter().filter(|atom| !is_given_by_time(atom)) {
            match atom.atom.split_once('/') {
                Some(("taint", taint)) => taints.push((taint, taint_of(taint)?)),
                Some(("label", label)) => labels.push(label),
                None if atom.atom == "cordon" => has_cordon = true,
                _ => return None,
            }
        }
        let (mut texts, mut changes) = (Vec::new(), Vec::new());
        if !taints.is_empty() {
            let (names, taints): (Vec<&str>, Vec<_>) = taints.into_iter().unzip();
            texts.push(format!("tolerate {}", names.join(" and ")));
            changes.push(RemedyChange::Tolerate { job: key.clone(), taints });
        }
        if !labels.is_empty() {
            texts.push(format!("do not ask for label {}", labels.join(" and ")));
            let labels = selector_without(cluster, job, &labels)?;
            changes.push(RemedyChange::NodeSelector { job: key.clone(), labels });
        }
        if has_cordon {
            texts.push("uncordon nodes".to_owned());
            changes.push(RemedyChange::Uncordon { nodes: cordoned_nodes(cluster) });
        }
        let change = match changes.len() {
            0 => return None,
            1 => changes.remove(0),
            _ => RemedyChange::Several(changes),
        };
        let who = if has_cordon { Responsible::Admin } else { Responsible::You };
        Some(Self { text: texts.join(", "), who, change })
    }
}

/// True if the end of other pods may lift the atom: they hold nodes, or a limit of the queue.
fn is_given_by_time(atom: &BlockingAtom) -> bool {
    let is_limit = atom.atom.starts_with("share/") || atom.atom.starts_with("admission/");
    atom.who == Responsible::Time || is_limit
}

/// Returns the names of the nodes that are cordoned.
fn cordoned_nodes(cluster: &Cluster) -> Vec<Arc<str>> {
    let nodes = cluster.nodes_by_name().iter().map(|&node| &cluster.nodes[node]);
    let cordoned = nodes.filter(|node| node.present && is_cordoned(node));
    cordoned.map(|node| node.name.clone()).collect()
}

/// Returns the taint `key=value:Effect`. Returns `None` if the text is none.
fn taint_of(text: &str) -> Option<(Arc<str>, Arc<str>, TaintEffect)> {
    let (taint, effect) = text.rsplit_once(':')?;
    let effects = [TaintEffect::NoSchedule, TaintEffect::NoExecute, TaintEffect::PreferNoSchedule];
    let effect = effects.into_iter().find(|known| RemedyChange::effect_text(*known) == effect)?;
    let (key, value) = taint.split_once('=').unwrap_or((taint, ""));
    Some((key.into(), value.into(), effect))
}
