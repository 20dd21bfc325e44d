//! `vcsim replay` decides the last minutes of a scheduler once more, out of a bundle. Specification: answers.md 15.

mod closed;
mod cycles;
mod page;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use crate::anonymous_bundle::anonymous_bundle;
use crate::scenario::ScenarioNames;
use closed::{ClosedOutput, RecordedStory};
use cycles::{AskedCycles, CycleUse};
use serde::Serialize;
use vc_answers::{SubjectError, SubjectKind, SubjectQuery, find_subject};
use vc_bundle::{Bundle, BundleError, Replay, ReplayStep, difference, effect_line};
use vc_engine::{BatchKind, Effect, Engine, Report};
use vc_objects::written::write_objects;
use vc_page::{
    AnswerView, AskedJob, Document, ExplanationJson, Question, StateSource, Timeline,
    WhatIfResultJson, what_if_text, why_text,
};

pub use page::{BundlePage, bundle_page};

/// The line about a bundle of which the next cycle was decided.
const UNRECORDED: &str = "the bundle has a state and no recorded cycle: the next one was decided from \
    the state, and is compared with nothing";

/// What is asked.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// The bundle.
    pub file: PathBuf,
    /// The cycle after whose state the replay begins. With another configuration or a scenario it is the cycle that these
    /// are about. `None`: the replay begins with the first state, and they are about the last cycle.
    pub at: Option<u64>,
    /// The last cycle. `None`: the last one that is there.
    pub until: Option<u64>,
    /// `[NAMESPACE/]NAME` of a job, of which is asked after the last cycle why it waits.
    pub why: Option<String>,
    /// What the name may stand for: `pod`, `job` and so on. `None`: anything.
    pub kind: Option<String>,
    /// Another configuration, with which one cycle is decided, too.
    pub conf: Option<PathBuf>,
    /// True if the cycles are also run in a closed world, with each configuration.
    pub closed: bool,
    /// A new file for one cycle as a scenario.
    pub to_scenario: Option<PathBuf>,
    /// True if the scenario has numbers in place of names.
    pub anonymize: bool,
    /// A new file for the bundle with numbers in place of names.
    pub to_bundle: Option<PathBuf>,
    /// A new file for the state after the last cycle as Kubernetes objects.
    pub to_objects: Option<PathBuf>,
}

/// Why there was no replay.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file cannot be opened.
    #[error("{file}: {error}")]
    File {
        /// The file.
        file: String,
        /// Text of the system.
        error: io::Error,
    },
    /// The file is no bundle, or does not have the cycle.
    #[error("{file}: {error}")]
    Bundle {
        /// The file.
        file: String,
        /// What is wrong with it.
        error: BundleError,
    },
    /// The stored state breaks a rule of the tables.
    #[error("{0}: the state cannot be replayed\nhint: it was changed, or is of another version")]
    Damaged(String),
    /// The other configuration cannot be read. The text names the file.
    #[error("{0}")]
    Conf(String),
    /// The scenario, the bundle or the objects cannot be written. The text names the file.
    #[error("{0}")]
    NewFile(String),
    /// The job is unknown, or its name is ambiguous.
    #[error("{0}")]
    Why(String),
    /// The bundle has a state alone, and a closed world needs more.
    #[error(
        "{0} has a state and no recorded cycle\nhint: --closed runs recorded cycles; a later bundle has \
         them, unless --answers-history-mib is 0"
    )]
    NoRecordedCycle(String),
    /// The bundle begins with the state after the cycle, so nothing leads to it.
    #[error(
        "cycle {0} cannot be decided again: the bundle begins with the state after it\n\
         hint: give a cycle after {0}, up to {1}"
    )]
    FirstState(u64, u64),
    /// There is no cycle to decide otherwise or to ask about.
    #[error("no cycle was replayed\nhint: {0}..{1} are in the bundle; --at is before --until")]
    NoCycle(u64, u64),
}

/// What the replay has shown.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayResult {
    /// `ReplayResult`.
    kind: &'static str,
    /// The first cycle that was replayed. It is `last_cycle` if no whole one was.
    first_cycle: u64,
    last_cycle: u64,
    n_cycles: u64,
    n_binds: usize,
    n_evictions: usize,
    /// The first cycle that was decided otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<DifferenceOutput>,
    /// The next cycle, if the bundle has a state and no recorded cycle. It is compared with nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    unrecorded_cycle: Option<u64>,
    /// One cycle with the other configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    with_conf: Option<ComparedOutput>,
    /// The cycles in a closed world.
    #[serde(skip_serializing_if = "Option::is_none")]
    closed: Option<ClosedOutput>,
    /// Why the job waits after the last cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Box<ExplanationJson>>,
    /// Differences between the decisions of the scenario that was written and those of the cycle.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scenario_differences: Vec<String>,
    /// Problems with the other configuration, and what a scenario lacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// The first effect of a cycle that is another one in the replay.
#[derive(Debug, Serialize)]
struct DifferenceOutput {
    cycle: u64,
    recorded: Option<String>,
    replayed: Option<String>,
}

/// What two configurations decide otherwise in one cycle: binds and evictions that they do not have in common, one
/// line each, and the whole difference.
#[derive(Debug, Serialize)]
struct ComparedOutput {
    cycle: u64,
    /// Only with the configuration in force.
    without: BTreeSet<String>,
    /// Only with the other one.
    with: BTreeSet<String>,
    /// The difference that the other configuration makes, as of a what-if.
    difference: WhatIfResultJson,
}

/// Replays a bundle.
///
/// # Errors
/// See [`ReplayError`].
pub fn replay(options: &ReplayOptions) -> Result<ReplayResult, ReplayError> {
    let name = options.file.display().to_string();
    let damaged = |_| ReplayError::Damaged(name.clone());
    // A state that was changed by hand may break any rule of the tables.
    catch_unwind(AssertUnwindSafe(|| run(options, &name))).map_err(damaged)?
}

fn run(options: &ReplayOptions, name: &str) -> Result<ReplayResult, ReplayError> {
    let of_bundle = |error| ReplayError::Bundle { file: name.to_owned(), error };
    let file = File::open(&options.file)
        .map_err(|error| ReplayError::File { file: name.to_owned(), error })?;
    let bundle = Bundle::read(io::BufReader::new(file)).map_err(of_bundle)?;
    let cycles = AskedCycles::new(options, bundle.manifest(), name)?;
    let mut replay = Replay::new(&bundle, cycles.begin).map_err(of_bundle)?;
    let mut result = ReplayResult::new(replay.engine().n_cycles());
    let other = options.conf.as_deref().map(|conf| configuration(conf, &mut result)).transpose()?;
    let one = CycleUse { conf: other.as_ref(), scenario: options.scenario() };
    let mut story = options.closed.then(|| RecordedStory::new(&replay));
    let mut report = None;
    while replay.next_cycle() <= cycles.until && result.difference.is_none() {
        let noted = story.as_mut().and_then(|story| story.note_commands(&mut replay));
        let before = one.is_any().then(|| cycles.before_one(&mut replay)).flatten();
        let Some(step) = replay.step() else { break };
        result.add(&step);
        if let (Some(story), Some(batch)) = (&mut story, noted) {
            story.note_batch(&batch, &step, &replay);
        }
        if let Some(before) = before {
            one.apply(before, (&step, replay.engine()), &mut result)?;
        }
        report = step.report.or(report);
    }
    if result.difference.is_none() {
        if result.n_cycles == 0 && !cycles.is_state_alone {
            let manifest = bundle.manifest();
            return Err(ReplayError::NoCycle(manifest.first_cycle, manifest.last_cycle));
        }
        if let Some(path) = &options.to_bundle {
            write_new(path, &anonymous_bundle(&bundle).map_err(of_bundle)?)?;
        }
        if let Some(path) = &options.to_objects {
            write_state(path, replay.engine())?;
        }
        if cycles.is_state_alone {
            report = one.decide_unrecorded(&mut replay, &mut result)?;
        }
    }
    if let (Some(asked), Some(report)) = (&options.why, report) {
        result.explanation =
            Some(why(replay.engine(), &report, (asked.as_str(), options.kind.clone()))?);
    }
    let story = story.filter(|_| result.difference.is_none());
    result.closed = story.map(|story| story.run(other.as_ref()));
    Ok(result)
}

/// Writes a file that does not exist yet.
fn write_new(path: &Path, contents: &[u8]) -> Result<(), ReplayError> {
    let written =
        File::create_new(path).and_then(|mut file| io::Write::write_all(&mut file, contents));
    written.map_err(|error| ReplayError::NewFile(format!("{}: {error}", path.display())))
}

/// Writes the state of an engine as objects into a file that does not exist yet.
fn write_state(path: &Path, engine: &Engine) -> Result<(), ReplayError> {
    let written = File::create_new(path).and_then(|file| {
        let mut out = io::BufWriter::new(file);
        write_objects(engine.cluster(), &mut out)?;
        io::Write::flush(&mut out)
    });
    written.map_err(|error| ReplayError::NewFile(format!("{}: {error}", path.display())))
}

/// Reads the other configuration. Its warnings become those of the result.
fn configuration(path: &Path, result: &mut ReplayResult) -> Result<vc_conf::Config, ReplayError> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| ReplayError::Conf(format!("{name}: {error}")))?;
    let loaded = vc_conf::parse(&name, &text, &vc_engine::KNOWN)
        .map_err(|error| ReplayError::Conf(error.to_string()))?;
    result.warnings.extend(loaded.missing.iter().map(|entry| entry.in_file(&name)));
    result.warnings.extend(loaded.warnings.iter().map(|it| format!("{name}: {it}")));
    Ok(loaded.config)
}

/// Returns why a job waits after the last cycle.
fn why(
    engine: &Engine,
    report: &Report,
    (asked, kind): (&str, Option<String>),
) -> Result<Box<ExplanationJson>, ReplayError> {
    let (namespace, name) = match asked.split_once('/') {
        Some((namespace, name)) => (namespace.to_owned(), name),
        None => (only_namespace(engine, asked)?, asked),
    };
    let job = AskedJob { namespace, name: name.to_owned(), kind, ..AskedJob::default() };
    let mut view = AnswerView::new(engine, report, StateSource::Bundle);
    let answered = view.answer(engine, &Timeline::default(), &Question::Explanation(job));
    match answered {
        Ok(Document::Explanation(explanation)) => Ok(explanation),
        Ok(_) => Err(ReplayError::Why(format!("no job {asked}"))),
        Err(problem) => Err(ReplayError::Why(problem.message)),
    }
}

/// Returns the only namespace that has a job, PodGroup or pod of this name.
fn only_namespace(engine: &Engine, name: &str) -> Result<String, ReplayError> {
    let cluster = engine.cluster();
    let jobs = cluster.jobs.iter().map(|(_, job)| &job.key);
    let pods = cluster.tasks.iter().map(|(_, task)| &task.key);
    let all: BTreeSet<&str> = jobs.chain(pods).map(|key| &*key.namespace).collect();
    let is_there = |namespace: &&str| {
        let kind = SubjectKind::default();
        let query = SubjectQuery { namespace, name, controller_uid: None, kind };
        !matches!(find_subject(cluster, query), Err(SubjectError::Unknown(_)))
    };
    let namespaces: Vec<&str> = all.into_iter().filter(is_there).collect();
    let mut each = namespaces.iter();
    match (each.next(), each.next()) {
        (Some(only), None) => Ok((*only).to_owned()),
        (None, _) => Err(ReplayError::Why(format!("no job, PodGroup or pod {name}"))),
        (Some(_), Some(_)) => {
            let list: Vec<String> = namespaces.iter().map(|it| format!("{it}/{name}")).collect();
            Err(ReplayError::Why(format!("{name} means several: {}", list.join(", "))))
        }
    }
}

impl ReplayOptions {
    /// Returns the new file for the scenario. Returns `None` if none is written.
    fn scenario(&self) -> Option<(&Path, ScenarioNames)> {
        let names = match self.anonymize {
            true => ScenarioNames::Anonymous,
            false => ScenarioNames::Real,
        };
        self.to_scenario.as_deref().map(|path| (path, names))
    }
}

impl ReplayResult {
    /// Returns the result of a replay that begins with the state after this cycle.
    fn new(cycle: u64) -> Self {
        Self {
            kind: "ReplayResult",
            first_cycle: cycle,
            last_cycle: cycle,
            n_cycles: 0,
            n_binds: 0,
            n_evictions: 0,
            difference: None,
            unrecorded_cycle: None,
            with_conf: None,
            closed: None,
            explanation: None,
            scenario_differences: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn add(&mut self, step: &ReplayStep) {
        self.last_cycle = step.cycle;
        if self.n_cycles == 0 {
            self.first_cycle = step.cycle;
        }
        self.n_cycles += u64::from(step.kind == BatchKind::Cycle);
        let is_bind = |it: &&Effect| matches!(it, Effect::Bind { .. });
        let is_eviction = |it: &&Effect| matches!(it, Effect::Evict { .. });
        self.n_binds += step.effects.iter().filter(is_bind).count();
        self.n_evictions += step.effects.iter().filter(is_eviction).count();
        if !step.is_same {
            let (recorded, replayed) = difference(step);
            let cycle = step.cycle;
            self.difference = Some(DifferenceOutput { cycle, recorded, replayed });
        }
    }

    /// True if everything was decided as it was recorded, also by the scenario that was written.
    pub fn is_same(&self) -> bool {
        self.difference.is_none() && self.scenario_differences.is_empty()
    }

    /// Returns why the job waits that was asked about.
    pub fn explanation(&self) -> Option<&ExplanationJson> {
        self.explanation.as_deref()
    }

    /// Returns the line about a bundle that has no recorded cycle. Returns `None` if it has one.
    pub fn unrecorded_note(&self) -> Option<&'static str> {
        self.unrecorded_cycle.map(|_| UNRECORDED)
    }

    /// Returns problems with the other configuration.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the result for people.
    pub fn text(&self) -> String {
        let (first, last) = (self.first_cycle, self.last_cycle);
        let mut out = format!("{first}..{last}: {}, ", counted(self.n_cycles, "cycle"));
        // Writing into a string cannot fail.
        let (binds, evictions) = (self.n_binds as u64, self.n_evictions as u64);
        let (binds, evictions) = (counted(binds, "bind"), counted(evictions, "eviction"));
        let _ = write!(out, "{binds}, {evictions}: ");
        match (&self.difference, self.unrecorded_note()) {
            (None, None) => out.push_str("the same\n"),
            (None, Some(note)) => {
                let _ = writeln!(out, "not recorded\n{note}");
            }
            (Some(difference), _) => {
                let nothing = || "nothing more".to_owned();
                let _ = write!(
                    out,
                    "cycle {} differs\n  recorded  {}\n  replayed  {}\n",
                    difference.cycle,
                    difference.recorded.clone().unwrap_or_else(nothing),
                    difference.replayed.clone().unwrap_or_else(nothing),
                );
            }
        }
        if self.difference.is_some() {
            out.push_str("the replay ended there\n");
        }
        if !self.scenario_differences.is_empty() {
            out.push_str("the scenario decides otherwise than the cycle did:\n");
            for difference in &self.scenario_differences {
                let _ = writeln!(out, "  {difference}");
            }
        }
        if let Some(compared) = &self.with_conf {
            out.push_str(&compared.text());
        }
        if let Some(closed) = &self.closed {
            out.push_str(&closed.text());
        }
        if let Some(explanation) = &self.explanation {
            out.push_str(&why_text(explanation));
        }
        out
    }
}

impl ComparedOutput {
    fn new(
        cycle: u64,
        (in_force, other): (&[Effect], &[Effect]),
        difference: WhatIfResultJson,
    ) -> Self {
        let (in_force, other) = (decisions(in_force), decisions(other));
        let without = in_force.difference(&other).cloned().collect();
        let with = other.difference(&in_force).cloned().collect();
        Self { cycle, without, with, difference }
    }

    fn text(&self) -> String {
        let cycle = self.cycle;
        match self.without.is_empty() && self.with.is_empty() {
            true => format!("cycle {cycle} with the other configuration: the same\n"),
            false => {
                let difference = what_if_text(&self.difference);
                format!("cycle {cycle} with the other configuration:\n{difference}")
            }
        }
    }
}

fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns binds and evictions, one line each.
fn decisions(effects: &[Effect]) -> BTreeSet<String> {
    let is_decision = |it: &&Effect| matches!(it, Effect::Bind { .. } | Effect::Evict { .. });
    effects.iter().filter(is_decision).map(effect_line).collect()
}
