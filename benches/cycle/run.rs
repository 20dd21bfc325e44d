//! One fresh start of a case in a process of its own, and the collection of their samples.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use vc_engine::{CycleTime, Effect, Engine, EngineOptions, Evaluator, Report};
use vc_model::ClusterEvent;

use crate::cases::{Case, START_MICROS, Times};
use crate::load::arrival;
use crate::meter::{cost_of, peak_rss_kib};

/// Starts per case, unless that takes longer than [`LONGEST`].
const STARTS: usize = 5;
const LONGEST: Duration = Duration::from_secs(60);

/// One measured cycle. Times in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) n_nodes: u64,
    pub(crate) n_pending: u64,
    pub(crate) n_running: u64,
    pub(crate) n_decisions: u64,
    pub(crate) wall_nanos: u64,
    pub(crate) cpu_nanos: u64,
    /// Of the actions that evict, by the wall: the search with what is done about it. 0: the case is
    /// not about evictions.
    pub(crate) evict_nanos: u64,
    /// Of that the searches for groups that go, without their trials of placement (cohort.md B.11).
    pub(crate) search_nanos: u64,
    /// Pages that the cycle was the first to touch.
    pub(crate) n_faults: u64,
    pub(crate) alloc_count: u64,
    pub(crate) alloc_bytes: u64,
    pub(crate) peak_rss_kib: u64,
}

impl Sample {
    /// The fields as one line between the two processes.
    fn line(&self) -> String {
        let fields = [
            self.n_nodes,
            self.n_pending,
            self.n_running,
            self.n_decisions,
            self.wall_nanos,
            self.cpu_nanos,
            self.evict_nanos,
            self.search_nanos,
            self.n_faults,
            self.alloc_count,
            self.alloc_bytes,
            self.peak_rss_kib,
        ];
        fields.map(|field| field.to_string()).join(" ")
    }

    /// Cycle and sample of a line; `None` for any other text.
    fn parse(line: &str) -> Option<(u32, Self)> {
        let (cycle, fields) = line.split_once(' ')?;
        let fields: Result<Vec<u64>, _> = fields.split(' ').map(str::parse).collect();
        let [
            nodes,
            pending,
            running,
            decisions,
            wall,
            cpu,
            evict,
            search,
            faults,
            count,
            bytes,
            rss,
        ] = fields.ok()?.try_into().ok()?;
        let sample = Sample {
            n_nodes: nodes,
            n_pending: pending,
            n_running: running,
            n_decisions: decisions,
            wall_nanos: wall,
            cpu_nanos: cpu,
            evict_nanos: evict,
            search_nanos: search,
            n_faults: faults,
            alloc_count: count,
            alloc_bytes: bytes,
            peak_rss_kib: rss,
        };
        Some((cycle.parse().ok()?, sample))
    }
}

/// Runs the case once and prints one line for each cycle that it measures.
///
/// # Errors
/// A cycle does not decide what the case is made for.
#[allow(clippy::print_stdout, reason = "the parent process reads it")]
pub(crate) fn sample(case: &Case, evaluator: Evaluator, plugins: &[String]) -> anyhow::Result<()> {
    let known = vc_engine::KNOWN;
    let mut conf = case.conf.unwrap_or(vc_conf::CHART).to_owned();
    let is_built = |name: &String| known.plugins.iter().any(|plugin| plugin.name == *name);
    let unknown = plugins.iter().find(|name| !is_built(name));
    ensure!(unknown.is_none(), "no plugin of this name is built: {}", unknown.map_or("", |it| it));
    plugins.iter().for_each(|name| conf.push_str(&format!("\n  - name: {name}\n")));
    let loaded = vc_conf::parse("the configuration of the case", &conf, &known)?;
    let stopwatch = case.is_of_quota().then_some(stopwatch as fn() -> u64);
    let options = EngineOptions { evaluator, stopwatch, ..EngineOptions::default() };
    let (mut engine, _) = Engine::new(options, &loaded.config);
    (case.load)(case, &mut engine);
    let last = case.cycles.iter().copied().max().unwrap_or(0);
    for cycle in 1..=last {
        let now = CycleTime { unix_micros: START_MICROS + i64::from(cycle) * 1_000_000 };
        let arrives = 2 < cycle && 0 < case.n_arriving;
        let events = if arrives { arrival(case, cycle) } else { Vec::new() };
        let ((effects, report), cost) = cost_of(|| engine.cycle(events, now))?;
        let n_decisions = n_decisions(&effects, &report);
        let expected = match cycle {
            1 => case.n_decisions(),
            _ if arrives => case.n_arriving,
            _ => 0,
        };
        ensure!(
            n_decisions == expected,
            "{}, cycle {cycle}: {expected} decisions expected, found {n_decisions}",
            case.name,
        );
        if case.cycles.contains(&cycle) {
            let sample = Sample {
                n_nodes: case.n_nodes,
                n_pending: case.n_pending,
                n_running: case.n_running,
                n_decisions,
                wall_nanos: cost.wall_nanos,
                cpu_nanos: cost.cpu_nanos,
                evict_nanos: evict_nanos(&report),
                search_nanos: report.timings.as_ref().map_or(0, |timings| timings.quota_search),
                n_faults: cost.n_faults,
                alloc_count: cost.alloc_count,
                alloc_bytes: cost.alloc_bytes,
                peak_rss_kib: peak_rss_kib()?,
            };
            println!("{cycle} {}", sample.line());
        }
        engine.apply(answers(effects));
    }
    Ok(())
}

/// Nanoseconds since the first call.
fn stopwatch() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

fn evict_nanos(report: &Report) -> u64 {
    let actions = report.timings.iter().flat_map(|timings| &timings.actions);
    let evicting = actions.filter(|(name, _)| matches!(*name, "preempt" | "reclaim"));
    evicting.map(|(_, nanos)| nanos).sum()
}

/// Binds, also those that wait for a claim to be written, pipelines and evictions.
fn n_decisions(effects: &[Effect], report: &Report) -> u64 {
    let decides = |effect: &&Effect| {
        matches!(effect, Effect::Bind { .. } | Effect::PreBind { .. } | Effect::Evict { .. })
    };
    (effects.iter().filter(decides).count() + report.pipelined.len()) as u64
}

/// What the API server says to the writes of a cycle: all are stored.
fn answers(effects: Vec<Effect>) -> Vec<ClusterEvent> {
    let stored = |effect| match effect {
        Effect::PodGroupStatus { pod_group: key, status, .. } => {
            let (resource_version, status) = ("2".into(), Box::new(status));
            Some(ClusterEvent::PodGroupWritten { key, resource_version, status })
        }
        _ => None,
    };
    effects.into_iter().filter_map(stored).collect()
}

/// Samples of several fresh starts by the number of the cycle.
///
/// # Errors
/// A process fails, or says something else than samples.
pub(crate) fn samples_by_cycle(
    case: &str,
    evaluator: Evaluator,
    plugins: &[String],
) -> anyhow::Result<BTreeMap<u32, Vec<Sample>>> {
    let mut samples: BTreeMap<u32, Vec<Sample>> = BTreeMap::new();
    let begin = Instant::now();
    for n_starts in 1..=STARTS {
        for (cycle, sample) in start(case, evaluator, Times::ONE, plugins)? {
            samples.entry(cycle).or_default().push(sample);
        }
        // The next one takes about as long as those before did on average.
        let next = begin.elapsed() / n_starts as u32;
        if LONGEST < begin.elapsed() + next {
            break;
        }
    }
    Ok(samples)
}

/// One fresh start, with so many times the nodes and pods, and these plugins in the last tier beside
/// those of the case: cycle and sample.
///
/// # Errors
/// The process fails, or says something else than samples.
pub(crate) fn start(
    case: &str,
    evaluator: Evaluator,
    times: Times,
    plugins: &[String],
) -> anyhow::Result<Vec<(u32, Sample)>> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let child = Command::new(program)
        .args(["--sample", case, "--evaluator", name(evaluator)])
        .args(["--nodes-times", &times.nodes.to_string()])
        .args(["--pending-times", &times.pending.to_string()])
        .args(["--running-times", &times.running.to_string()])
        .args(["--hyper-nodes-times", &times.hyper_nodes.to_string()])
        .args(plugins.iter().flat_map(|name| ["--plugins", name]))
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start a process of its own")?;
    ensure!(child.status.success(), "{case}: {}", child.status);
    let text = String::from_utf8(child.stdout).context("no text")?;
    let parse =
        |line: &str| Sample::parse(line).with_context(|| format!("{case}: not a sample: {line}"));
    text.lines().map(parse).collect()
}

/// As on the command line.
pub(crate) fn name(evaluator: Evaluator) -> &'static str {
    match evaluator {
        Evaluator::Plain => "plain",
        Evaluator::Fast => "fast",
    }
}
