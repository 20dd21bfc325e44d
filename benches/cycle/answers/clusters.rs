//! The clusters that are asked about.

use anyhow::Context;
use vc_answers::{AnswerState, Subject};
use vc_engine::{CycleTime, Engine, EngineOptions, Report};
use vc_model::{ClusterEvent, JobId, PodGroupPhase};

use crate::cases::{CASES, Case, START_MICROS};
use crate::load::{apply, base, events, gang, running_gangs};
use crate::objects::Shape;

/// Pods that run on a node.
const N_RUNNING: u64 = 10;

/// A cluster after a cycle that has decided nothing more.
pub(crate) struct AskedCluster {
    pub(crate) engine: Engine,
    pub(crate) report: Report,
}

impl AskedCluster {
    /// Loads a cluster and runs cycles until nothing is decided.
    pub(crate) fn new(conf: &str, load: impl FnOnce(&mut Engine)) -> anyhow::Result<Self> {
        let mut engine = engine(conf)?;
        load(&mut engine);
        let mut cycle = 0;
        loop {
            cycle += 1;
            let now = CycleTime { unix_micros: START_MICROS + cycle * 1_000_000 };
            let (effects, report) = engine.cycle(Vec::new(), now);
            if effects.is_empty() || 3 < cycle {
                // As the twin does before it is asked.
                engine.share();
                return Ok(Self { engine, report });
            }
        }
    }

    pub(crate) fn state(&self) -> AnswerState {
        AnswerState::new(&self.engine, &self.report)
    }

    /// Returns the jobs that wait, by name.
    ///
    /// # Errors
    /// None waits.
    pub(crate) fn waiting(&self) -> anyhow::Result<Vec<Subject>> {
        let cluster = self.engine.cluster();
        let waits = |job: &JobId| {
            let key = &cluster.jobs[*job].key;
            cluster.jobs[*job].phase() != PodGroupPhase::Running && key.name.starts_with("job-1")
        };
        let jobs = cluster.jobs_by_key().filter(waits);
        let subjects: Vec<_> = jobs.map(|job| Subject { job: Some(job), pod: None }).collect();
        subjects.first().context("no job waits")?;
        Ok(subjects)
    }
}

/// Returns an engine that explains.
///
/// # Errors
/// The configuration is refused.
pub(crate) fn engine(conf: &str) -> anyhow::Result<Engine> {
    let loaded = vc_conf::parse("the configuration of the case", conf, &vc_engine::KNOWN)?;
    let (mut engine, _warnings) = Engine::new(EngineOptions::default(), &loaded.config);
    engine.explain(true);
    Ok(engine)
}

/// Loads nodes of which 2 cpus are left each, and 100 gangs of so many pods that ask for more. Events
/// are changed before.
pub(crate) fn load_full(
    engine: &mut Engine,
    gang_size: u64,
    mut change: impl FnMut(ClusterEvent) -> ClusterEvent,
) {
    let case = case(5_000, gang_size);
    let running = running_gangs(&case, N_RUNNING, Shape { cpu_milli: 6_200, memory_gi: 25 });
    let waiting = (0..100).flat_map(move |number| {
        let shape = Shape { cpu_milli: 3_000 + 250 * (number % 16) as i64, memory_gi: 4 };
        let created_micros = START_MICROS - 3_600_000_000 + number as i64 * 1_000;
        let gang =
            gang(1_000_000 + number, gang_size, shape, PodGroupPhase::Inqueue, created_micros);
        events(&gang, |_| None)
    });
    apply(engine, base(&case).chain(running).chain(waiting).map(&mut change));
}

/// A case with so many nodes, and ten times as many pods that run.
pub(crate) fn case(n_nodes: u64, gang_size: u64) -> Case {
    let idle = CASES.iter().find(|case| case.name == "idle/10k-200k");
    let idle = idle.expect("the case is in the table");
    Case { name: "answers", n_nodes, n_running: N_RUNNING * n_nodes, gang_size, ..*idle }
}
