//! Questions: why a job waits, who is before it, when it starts, and what would happen if.

use std::sync::Arc;

use anyhow::Context;
use vc_answers::{
    Change, Depth, ExpectedEnds, NewNodes, NodeSelection, QueueChange, RunningFilter, Subject,
    Timeline, WhatIf, add_cycle_remedies, add_start, explain, explain_waiting, place_in_line,
    running_jobs, what_if,
};
use vc_model::{
    ClusterEvent, LabelSelector, NodeRecord, PodAffinity, PodGroupPhase, PodPhase, PodRecord,
    PodSelector, PodTerm, RUN_TEMPLATE, RUNTIME, SpreadConstraint, Taint, TaintEffect,
};
use vc_resource::Quantity;

use super::clusters::{AskedCluster, case, load_full};
use super::{Figure, QUESTIONS, millis, p99_millis, p99_of};
use crate::cases::{CASES, START_MICROS};
use crate::cohorts;
use crate::load::{apply, base, events, gang, load_refused, running_gangs};
use crate::objects::{QUEUE, Shape};

const ZONE: &str = "topology.kubernetes.io/zone";
const JOB: &str = "volcano.sh/job-name";
/// Taints of a node on which nothing else is missing.
const TAINTS: usize = 30;
/// Request of each pod of the jobs that run.
const RUNNING: Shape = Shape { cpu_milli: 2_000, memory_gi: 8 };

/// The first levels of an explanation, for one job after the other, again for the same jobs, and for jobs of the
/// shape of the only one that was asked about before.
pub(crate) fn quick() -> anyhow::Result<Vec<Figure>> {
    let asked = full(10, |event| event)?;
    let (mut state, jobs) = (asked.state(), asked.waiting()?);
    let mut ask = |subject| explain(&mut state, subject, Depth::Quick);
    let value = p99_millis(|number| Ok(ask(jobs[number % jobs.len()])))?;
    let again = p99_millis(|number| Ok(ask(jobs[number % jobs.len()])))?;
    let cluster = asked.engine.cluster();
    let request = |subject: &Subject| {
        let pods = subject.job.map(|job| &cluster.jobs[job].tasks)?;
        pods.first().map(|&pod| cluster.request(pod))
    };
    let (first, others) = jobs.split_first().context("no job waits")?;
    let is_alike = |other: &&Subject| request(other) == request(first);
    // Behind at most 20 jobs an answer tells how many of them are blocked, for which their shapes are tried, too.
    let mut line = asked.state();
    let mut is_far = |other: &&Subject| {
        let place = other.job.and_then(|job| place_in_line(&mut line, job));
        place.is_some_and(|place| 21 < place.in_queue)
    };
    let others = others.iter().filter(is_alike).filter(|other| is_far(other));
    let others: Vec<Subject> = others.copied().collect();
    anyhow::ensure!(!others.is_empty(), "only one job of the shape waits");
    let mut of_shape = Vec::new();
    while of_shape.len() < QUESTIONS {
        let mut state = asked.state();
        drop(explain(&mut state, *first, Depth::Quick));
        let timed = |&other| millis(|| drop(explain(&mut state, other, Depth::Quick))).1;
        of_shape.extend(others.iter().map(timed));
    }
    let of_shape = p99_of(of_shape);
    Ok(vec![
        Figure { what: "p99 ms", value, goal: 2.0 },
        Figure { what: "p99 ms, asked before", value: again, goal: 0.1 },
        Figure { what: "p99 ms, others of that shape", value: of_shape, goal: 0.1 },
    ])
}

pub(crate) fn why_10() -> anyhow::Result<Vec<Figure>> {
    why(&full(10, |event| event)?, 3.0)
}

pub(crate) fn why_100() -> anyhow::Result<Vec<Figure>> {
    why(&full(100, |event| event)?, 10.0)
}

pub(crate) fn why_512() -> anyhow::Result<Vec<Figure>> {
    why(&full(512, |event| event)?, 50.0)
}

/// Gangs of four classes of pods.
pub(crate) fn why_roles() -> anyhow::Result<Vec<Figure>> {
    let asked = full(100, |event| {
        change_waiting_pod(event, |pod| {
            let role = index_of(pod) % 4;
            let task: Arc<str> = format!("role-{role}").into();
            pod.annotations.insert("volcano.sh/task-spec".into(), task.clone());
            pod.labels.insert("volcano.sh/task-spec".into(), task);
            let cpu = Quantity::from_value(3 + i64::from(role));
            pod.containers[0].requests[0].1 = cpu;
        })
    })?;
    why(&asked, 10.0)
}

/// Pods that want to be in one zone with those of their job, evenly over its nodes.
pub(crate) fn why_affinity() -> anyhow::Result<Vec<Figure>> {
    let asked = full(100, |event| {
        change_waiting_pod(event, |pod| {
            let own = own(pod);
            let term = PodTerm { topology_key: ZONE.into(), pods: own.clone() };
            let affinity = PodAffinity { required: vec![term], ..PodAffinity::default() };
            pod.pod_affinity = Some(affinity.into());
            pod.spread.push(SpreadConstraint {
                topology_key: "kubernetes.io/hostname".into(),
                labels: own.labels,
                ..SpreadConstraint::default()
            });
        })
    })?;
    why(&asked, 50.0)
}

/// Nodes with many taints, of which no one alone keeps the pods away.
pub(crate) fn why_24_atoms() -> anyhow::Result<Vec<Figure>> {
    let asked = full(10, |event| match event {
        ClusterEvent::NodeApplied(node) => ClusterEvent::NodeApplied(Box::new(tainted(*node))),
        other => other,
    })?;
    why(&asked, 10.0)
}

fn tainted(mut node: NodeRecord) -> NodeRecord {
    let taint = |number| Taint {
        key: format!("dedicated-{number:02}").into(),
        value: "".into(),
        effect: TaintEffect::NoSchedule,
    };
    node.taints = (0..TAINTS).map(taint).collect();
    node
}

/// The heads of a thousand queues of a tree, whose quota is used.
pub(crate) fn why_quota() -> anyhow::Result<Vec<Figure>> {
    let heads = CASES.iter().find(|case| case.name == "cohort/heads-1k");
    let heads = heads.expect("the case is in the table");
    let asked = AskedCluster::new(cohorts::SEARCH, |engine| (heads.load)(heads, engine))?;
    why(&asked, 10.0)
}

/// One line for each of 10,000 groups that wait.
pub(crate) fn list() -> anyhow::Result<Vec<Figure>> {
    let asked = refused()?;
    let mut state = asked.state();
    let (all, first) = millis(|| explain_waiting(&mut state));
    anyhow::ensure!(all.len() == 10_000, "{} explanations", all.len());
    let ((), again) = millis(|| drop(explain_waiting(&mut state)));
    Ok(vec![
        Figure { what: "ms, first", value: first, goal: 50.0 },
        Figure { what: "ms, again", value: again, goal: 10.0 },
    ])
}

/// The place of one job among 10,000; then, in the same state, of others from the whole line.
pub(crate) fn line() -> anyhow::Result<Vec<Figure>> {
    let asked = refused()?;
    let (mut state, jobs) = (asked.state(), asked.waiting()?);
    let mut ask = |number: usize| {
        let job = jobs[number].job.context("a job")?;
        place_in_line(&mut state, job).context("the job is in no line")
    };
    let (place, first) = millis(|| ask(5_000));
    anyhow::ensure!(place?.of_queue == 10_000, "not all jobs wait in one queue");
    let again = p99_millis(|number| ask(number * 50))?;
    Ok(vec![
        Figure { what: "ms, first", value: first, goal: 2.0 },
        Figure { what: "p99 ms, again", value: again, goal: 0.1 },
    ])
}

/// Measures the list of 10,000 jobs of 20 pods that hold nodes, with their ends. Half of the jobs state how long they
/// run. The run times of the others were learned.
pub(crate) fn runs() -> anyhow::Result<Vec<Figure>> {
    let mut case = case(10_000, 20);
    case.n_running = 200_000;
    let running = running_gangs(&case, case.gang_size, RUNNING).map(with_run);
    let asked =
        AskedCluster::new(vc_conf::CHART, |engine| apply(engine, base(&case).chain(running)))?;
    let mut timeline = Timeline::default();
    timeline.learn(asked.engine.cluster(), &ended_pods(case.gang_size), START_MICROS);
    let cluster = asked.engine.cluster();
    let (jobs, value) =
        millis(|| running_jobs(cluster, &timeline, RunningFilter::default(), START_MICROS));
    anyhow::ensure!(jobs.len() == 10_000, "{} jobs", jobs.len());
    anyhow::ensure!(jobs.iter().all(|job| job.end.is_some()), "an end is not known");
    Ok(vec![Figure { what: "ms", value, goal: 100.0 }])
}

/// Gives a PodGroup the time that its pods run, or the template under which that time is learned. Gives a pod its
/// creation as its start.
fn with_run(mut event: ClusterEvent) -> ClusterEvent {
    match &mut event {
        ClusterEvent::PodGroupApplied(group) => {
            let (name, value) = match group.created_micros / 1_000 % 2 {
                0 => (RUNTIME, "30h"),
                _ => (RUN_TEMPLATE, "etl"),
            };
            group.annotations.insert(name.into(), value.into());
        }
        ClusterEvent::PodApplied(pod) => pod.started_micros = Some(pod.created_micros),
        _ => {}
    }
    event
}

/// Returns events in which pods of the first two jobs end. The second one has the template.
fn ended_pods(gang_size: u64) -> Vec<ClusterEvent> {
    let ended = (0..2).flat_map(|number| {
        let gang = gang(number, gang_size, RUNNING, PodGroupPhase::Running, START_MICROS);
        (0..4).map(move |index| {
            let phase = PodPhase::Succeeded;
            ClusterEvent::PodApplied(Box::new(PodRecord { phase, ..gang.pod(index, Some(index)) }))
        })
    });
    ended.collect()
}

/// The start of the last of 100 jobs. What runs has a deadline.
pub(crate) fn when() -> anyhow::Result<Vec<Figure>> {
    let asked = full(10, |event| match event {
        ClusterEvent::PodApplied(mut pod) if pod.node_name.is_some() => {
            let number = i64::from(index_of(&pod)) + pod.created_micros / 1_000 % 1_000;
            pod.started_micros = Some(START_MICROS - 3_600_000_000);
            pod.active_deadline_seconds = Some(3_700 + number);
            ClusterEvent::PodApplied(pod)
        }
        other => other,
    })?;
    let (mut state, jobs) = (asked.state(), asked.waiting()?);
    let last = jobs[jobs.len() - 1];
    let mut ask = || {
        let mut explanation = explain(&mut state, last, Depth::Full);
        millis(|| {
            add_start(&asked.engine, (&mut state, &ExpectedEnds::default()), last, &mut explanation)
        })
        .1
    };
    Ok(vec![
        Figure { what: "ms, first", value: ask(), goal: 100.0 },
        Figure { what: "ms, again", value: ask(), goal: 1.0 },
    ])
}

/// A gang of 100 is applied.
pub(crate) fn what_if_job() -> anyhow::Result<Vec<Figure>> {
    let shape = Shape { cpu_milli: 1_000, memory_gi: 1 };
    let gang = gang(3_000_000, 100, shape, PodGroupPhase::Pending, START_MICROS);
    suppose(vec![Change::Apply(events(&gang, |_| None))])
}

/// Ten nodes are added.
pub(crate) fn what_if_nodes() -> anyhow::Result<Vec<Figure>> {
    let nodes = NewNodes::Like("node-00000".into());
    suppose(vec![Change::AddNodes { nodes, count: 10 }])
}

/// Ten nodes with 100 pods are gone.
pub(crate) fn what_if_drain() -> anyhow::Result<Vec<Figure>> {
    let names = (0..10).map(|number| format!("node-{number:05}").into()).collect();
    suppose(vec![Change::RemoveNodes(NodeSelection { names, match_labels: None })])
}

/// A queue has another weight.
pub(crate) fn what_if_queue() -> anyhow::Result<Vec<Figure>> {
    let change = QueueChange { weight: Some(4), ..QueueChange::default() };
    suppose(vec![Change::SetQueue(QUEUE.into(), Box::new(change))])
}

/// Another configuration is in force.
pub(crate) fn what_if_conf() -> anyhow::Result<Vec<Figure>> {
    let conf = crate::evictions::PREEMPT;
    let loaded = vc_conf::parse("the configuration of the case", conf, &vc_engine::KNOWN)?;
    suppose(vec![Change::Configure(Box::new(loaded.config))])
}

fn suppose(changes: Vec<Change>) -> anyhow::Result<Vec<Figure>> {
    let asked = full(10, |event| event)?;
    let question = WhatIf { changes, ..WhatIf::default() };
    let value = p99_millis(|_| Ok(what_if(&asked.engine, &ExpectedEnds::default(), &question)?))?;
    Ok(vec![Figure { what: "p99 ms", value, goal: 50.0 }])
}

fn full(
    gang_size: u64,
    change: impl FnMut(ClusterEvent) -> ClusterEvent,
) -> anyhow::Result<AskedCluster> {
    AskedCluster::new(vc_conf::CHART, |engine| load_full(engine, gang_size, change))
}

fn refused() -> anyhow::Result<AskedCluster> {
    let mut case = case(5_000, 1);
    (case.n_pending, case.n_running) = (10_000, 20_000);
    AskedCluster::new(vc_conf::CHART, |engine| load_refused(&case, engine))
}

/// The whole explanation of one job after the other.
fn why(asked: &AskedCluster, goal: f64) -> anyhow::Result<Vec<Figure>> {
    let (mut state, jobs) = (asked.state(), asked.waiting()?);
    let mut n_sets = 0;
    let mut ask = |subject: Subject| {
        let mut explanation = explain(&mut state, subject, Depth::Full);
        add_cycle_remedies(&asked.engine, &mut state, subject, &mut explanation);
        n_sets += explanation.blocking.as_ref().map_or(0, |blocking| blocking.sets.len());
        explanation
    };
    let value = p99_millis(|number| Ok(ask(jobs[number % jobs.len()])))?;
    anyhow::ensure!(0 < n_sets, "no blocking set was found");
    Ok(vec![Figure { what: "p99 ms", value, goal }])
}

fn change_waiting_pod(
    mut event: ClusterEvent,
    change: impl FnOnce(&mut PodRecord),
) -> ClusterEvent {
    if let ClusterEvent::PodApplied(pod) = &mut event
        && pod.node_name.is_none()
    {
        change(pod);
    }
    event
}

/// Returns the number at the end of a pod's name.
fn index_of(pod: &PodRecord) -> u32 {
    let index = pod.key.name.rsplit('-').next().and_then(|text| text.parse().ok());
    index.unwrap_or_default()
}

/// Pods of the same job.
fn own(pod: &PodRecord) -> PodSelector {
    let job = pod.labels.get(JOB).map(|job| (JOB.into(), job.clone()));
    let labels =
        LabelSelector { match_labels: job.into_iter().collect(), ..LabelSelector::default() };
    let namespaces = vec![pod.key.namespace.clone()];
    PodSelector { namespaces, namespace_selector: None, labels: Some(labels) }
}
