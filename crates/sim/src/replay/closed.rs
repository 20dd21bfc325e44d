//! `vcsim replay --closed` runs a recorded story in a world that answers to other decisions.
//! Specification: answers.md 15 (ANS-106).

use std::fmt::Write;

use serde::Serialize;
use vc_answers::{ClosedFigures, OutsideStory, closed_run};
use vc_bundle::Replay;
use vc_conf::Config;
use vc_engine::{Engine, EngineBatch, EngineCommand};

use super::counted;

/// Says what kind of figures these are.
const SIMULATION: &str = "a simulation: bound pods run at once, and for as long as they ran";

/// A recorded story, with the state before it.
pub(super) struct RecordedStory {
    begin: Engine,
    story: OutsideStory,
}

impl RecordedStory {
    pub(super) fn new(replay: &Replay) -> Self {
        let begin = replay.engine().copy();
        // Before the first cycle there is no time.
        let first = replay.next_batch().map(|batch| batch.now.unix_micros);
        let last = Some(begin.last_micros()).filter(|last| *last != i64::MIN);
        let story = OutsideStory::new(&begin, last.or(first).unwrap_or_default());
        Self { begin, story }
    }

    /// Runs the commands before the next batch, and takes note of them. Returns the batch. `None`: there is none.
    pub(super) fn note_commands(&mut self, replay: &mut Replay) -> Option<EngineBatch> {
        let commands: Vec<EngineCommand> = replay.next_commands().cloned().collect();
        replay.run_commands();
        let cluster = replay.engine().cluster();
        commands.iter().for_each(|command| self.story.add_command(command, cluster));
        replay.next_batch()
    }

    /// Takes note of a batch that the replay was given.
    pub(super) fn note_batch(
        &mut self,
        batch: &EngineBatch,
        step: &vc_bundle::ReplayStep,
        replay: &Replay,
    ) {
        self.story.add_batch(batch, &step.effects, replay.engine().cluster());
    }

    /// Runs the story in a closed world, also with the other configuration.
    pub(super) fn run(&self, other: Option<&Config>) -> ClosedOutput {
        let run = |config| FiguresOutput::of(&closed_run(&self.begin, &self.story, config));
        ClosedOutput {
            simulation: SIMULATION,
            in_force: run(None),
            with_conf: other.map(|config| run(Some(config))),
        }
    }
}

/// Figures of the story in a closed world.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClosedOutput {
    simulation: &'static str,
    /// Figures with the configuration that was in force.
    in_force: FiguresOutput,
    /// Figures with the other configuration. `None`: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    with_conf: Option<FiguresOutput>,
}

/// Figures with the names that they have in JSON. Times are in seconds.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FiguresOutput {
    binds: u64,
    evictions: u64,
    started_jobs: usize,
    waiting_jobs: usize,
    wait_seconds: WaitsOutput,
    /// Mean of (wait + run) / run, where a run is 10 s at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_slowdown: Option<f64>,
    /// Part of the cpu that pods held, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_utilisation: Option<f64>,
    /// Jobs that came later and started before a job.
    mean_overtaken: f64,
    most_overtaken: usize,
}

#[derive(Debug, Serialize)]
struct WaitsOutput {
    mean: f64,
    median: f64,
    p95: f64,
    p99: f64,
    max: f64,
}

impl ClosedOutput {
    /// Returns a table for people, with one column for each configuration.
    pub(super) fn text(&self) -> String {
        let mut out = format!("in a closed world ({SIMULATION}):\n");
        let columns: Vec<Vec<String>> = [Some(&self.in_force), self.with_conf.as_ref()]
            .into_iter()
            .flatten()
            .map(FiguresOutput::column)
            .collect();
        let heads = ["in force", "other configuration"];
        let widths: Vec<usize> = { columns.iter().zip(heads) }
            .map(|(column, head)| column.iter().map(String::len).fold(head.len(), usize::max))
            .collect();
        let mut row = |name: &str, cells: Vec<&str>| {
            let mut line = format!("  {name:<16}");
            for (cell, width) in cells.iter().zip(&widths) {
                // Writing into a string cannot fail.
                let _ = write!(line, "  {cell:>width$}");
            }
            out.push_str(line.trim_end());
            out.push('\n');
        };
        row("", heads[..columns.len()].to_vec());
        for (at, name) in FiguresOutput::ROWS.iter().enumerate() {
            row(name, columns.iter().map(|column| column[at].as_str()).collect());
        }
        out
    }
}

impl FiguresOutput {
    const ROWS: [&str; 12] = [
        "binds",
        "evictions",
        "jobs started",
        "jobs that wait",
        "wait, mean",
        "wait, median",
        "wait, p95",
        "wait, p99",
        "wait, longest",
        "slowdown, mean",
        "cpu held",
        "overtaken by",
    ];

    fn of(figures: &ClosedFigures) -> Self {
        let seconds = |micros: i64| micros as f64 / 1e6;
        let waits = figures.waits;
        Self {
            binds: figures.n_binds,
            evictions: figures.n_evictions,
            started_jobs: figures.n_started,
            waiting_jobs: figures.n_waiting,
            wait_seconds: WaitsOutput {
                mean: seconds(waits.mean),
                median: seconds(waits.median),
                p95: seconds(waits.p95),
                p99: seconds(waits.p99),
                max: seconds(waits.max),
            },
            mean_slowdown: figures.mean_slowdown,
            cpu_utilisation: figures.utilisation,
            mean_overtaken: figures.mean_overtaken,
            most_overtaken: figures.most_overtaken,
        }
    }

    /// Returns the cells of the rows.
    fn column(&self) -> Vec<String> {
        let seconds = |time: f64| format!("{time:.1} s");
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let waits = &self.wait_seconds;
        vec![
            self.binds.to_string(),
            self.evictions.to_string(),
            self.started_jobs.to_string(),
            self.waiting_jobs.to_string(),
            seconds(waits.mean),
            seconds(waits.median),
            seconds(waits.p95),
            seconds(waits.p99),
            seconds(waits.max),
            or_none(self.mean_slowdown.map(|mean| format!("{mean:.2}"))),
            or_none(self.cpu_utilisation.map(|part| format!("{:.1} %", part * 100.0))),
            format!(
                "{:.1}, at most {}",
                self.mean_overtaken,
                counted(self.most_overtaken as u64, "job")
            ),
        ]
    }
}
