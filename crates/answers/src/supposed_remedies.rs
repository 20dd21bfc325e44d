//! Remedies that need whole cycles: a higher priority, for which others are evicted, and changes after
//! which an end lets the job start. Specification: answers.md 5.

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_engine::Engine;
use vc_model::{Cluster, JobId, ObjectKey, TaintEffect, TaskId};

use crate::amounts::count;
use crate::ends::ExpectedEnds;
use crate::explain::AnswerState;
use crate::explanation::{BlockingAtom, Explanation, Remedy, RemedyKind, Responsible};
use crate::remedy_change::RemedyChange;
use crate::what_if::changes::{ChangeNotes, make};
use crate::what_if::run::SupposedRun;
use crate::what_if::{Change, SupposedKubelet};
use crate::when::{AwaitedJob, awaited, plan, waiting_tasks};

/// PriorityClasses that are tried.
const MOST_TRIALS: usize = 6;
/// Cycles in which others are evicted and the job gets their room.
const CYCLES: u32 = 4;

/// The lowest PriorityClass above the job's for which the configured actions make room.
pub(crate) fn raise_priority(engine: &Engine, job: JobId, key: &ObjectKey) -> Option<Remedy> {
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
        match evicted_for(engine, (key, class), &waiting) {
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
    engine: &Engine,
    (key, class): (&ObjectKey, &Arc<str>),
    waiting: &BTreeSet<TaskId>,
) -> Option<Vec<(ObjectKey, usize)>> {
    let change = RemedyChange::Priority { job: key.clone(), class: class.clone() }.as_change();
    let mut run = changed_run(engine, ExpectedEnds::default(), &[change])?;
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
pub(crate) fn starts_after(engine: &Engine, change: &RemedyChange, job: JobId) -> bool {
    let waiting: BTreeSet<TaskId> = waiting_tasks(engine.cluster(), job).collect();
    let run = changed_run(engine, ExpectedEnds::default(), &[change.as_change()]);
    run.is_some_and(|mut run| {
        run.settle(CYCLES);
        waiting.iter().any(|task| has_node(run.cluster(), *task))
    })
}

fn has_node(cluster: &Cluster, task: TaskId) -> bool {
    cluster.tasks.get(task).is_some_and(|row| row.node.is_some())
}

/// Makes changes in a copy. Returns `None` if one of them is not possible.
fn changed_run(engine: &Engine, ends: ExpectedEnds, changes: &[Change]) -> Option<SupposedRun> {
    let mut run = SupposedRun::new(engine, SupposedKubelet::Instant, ends);
    // Nobody reads what these cycles report of jobs that wait.
    run.engine_mut().explain(false);
    let mut notes = ChangeNotes::default();
    for change in changes.iter().enumerate() {
        make(&mut run, change, &mut notes).ok()?;
    }
    Some(run)
}

/// The first blocking set with several atoms, if all but those of time are taints that the pods may
/// tolerate: tolerations, and the ends that then let the job start.
pub(crate) fn together(
    engine: &Engine,
    (state, ends): (&AnswerState, &ExpectedEnds),
    (job, key): (JobId, &ObjectKey),
    explanation: &Explanation,
) -> Option<Remedy> {
    let sets = &explanation.blocking.as_ref()?.sets;
    let set = sets.iter().find(|set| 1 < set.atoms.len())?;
    let (by_time, own): (Vec<&BlockingAtom>, Vec<&BlockingAtom>) =
        set.atoms.iter().partition(|atom| atom.who == Responsible::Time);
    let taints: Option<Vec<_>> = own.iter().map(|atom| taint_of(&atom.atom)).collect();
    let taints = taints.filter(|taints| !taints.is_empty())?;
    let texts: Vec<String> =
        own.iter().map(|atom| atom.atom.trim_start_matches("taint/").to_owned()).collect();
    let change = RemedyChange::Tolerate { job: key.clone(), taints };
    let run = changed_run(engine, ends.clone(), &[change.as_change()])?;
    let waiting: BTreeSet<TaskId> = waiting_tasks(run.cluster(), job).collect();
    let plan = plan(run, job, &waiting).ok()?;
    let mut text = format!("tolerate {}", texts.join(" and "));
    if !by_time.is_empty() {
        let ends = awaited((state, ends), job, &plan.ended);
        let ends: Vec<String> = ends.iter().map(AwaitedJob::text).collect();
        text.push_str(&format!("; it starts when {} ends", ends.join(" and ")));
    }
    Some(Remedy {
        kind: RemedyKind::Together,
        who: Responsible::You,
        text,
        nodes: Vec::new(),
        at_micros: (!by_time.is_empty()).then_some(plan.at_micros),
        change: Some(change),
    })
}

/// Returns the taint of an atom `taint/key=value:Effect`. Returns `None` for other atoms.
fn taint_of(atom: &str) -> Option<(Arc<str>, Arc<str>, TaintEffect)> {
    let (taint, effect) = atom.strip_prefix("taint/")?.rsplit_once(':')?;
    let effects = [TaintEffect::NoSchedule, TaintEffect::NoExecute, TaintEffect::PreferNoSchedule];
    let effect = effects.into_iter().find(|known| RemedyChange::effect_text(*known) == effect)?;
    let (key, value) = taint.split_once('=').unwrap_or((taint, ""));
    Some((key.into(), value.into(), effect))
}
