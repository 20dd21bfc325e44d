//! What would happen if: changes are made in a copy of the engine, whole cycles are run in it, and the
//! same cycles in a second copy without the changes. The answer is the difference.
//! Specification: answers.md 9.

mod baseline;
pub(crate) mod changes;
mod difference;
mod question;
pub(crate) mod run;
mod volumes;

use std::collections::BTreeSet;
use std::sync::Arc;

use vc_engine::{Effect, Engine, Report};
use vc_model::{Cluster, ObjectKey};

pub use baseline::KnownBaselines;
pub use difference::{EvictedPod, MovedPod, PlacedPod, QueueDifference, WaitingJob, WhatIfResult};
pub use question::{
    Change, CycleLimit, LiveObject, MOST_CHANGES, MOST_CYCLES, MOST_NEW_NODES, MOST_NEW_PODS,
    NewNodes, NodePatch, NodeSelection, PodChange, PodGroupChange, QueueChange, SupposedKubelet,
    WhatIf, WhatIfBound, WhatIfError,
};

use crate::ends::ExpectedEnds;
use crate::explanation::AnswerTime;
use crate::stop::{StopCondition, StopSignal};
use baseline::{Baseline, BaselineRun};
use changes::{ChangeNotes, make};
use difference::difference;
use run::{SupposedRun, is_decision};

/// Answers what would happen with the changes, where pods end as is expected. The engine must be between two cycles; nothing of it
/// changes.
///
/// # Errors
/// A change names something that does not exist.
pub fn what_if(
    engine: &Engine,
    ends: &ExpectedEnds,
    question: &WhatIf,
) -> Result<WhatIfResult, WhatIfError> {
    WhatIfState::new(engine, ends).ask(question)
}

/// A state that is asked what would happen if: an engine between two cycles, of which nothing changes.
pub struct WhatIfState<'a> {
    engine: &'a Engine,
    ends: &'a ExpectedEnds,
    baselines: KnownBaselines,
    stop: StopSignal,
}

impl<'a> WhatIfState<'a> {
    /// Returns the state of an engine, where pods end as is expected.
    pub fn new(engine: &'a Engine, ends: &'a ExpectedEnds) -> Self {
        Self { engine, ends, baselines: KnownBaselines::default(), stop: StopSignal::default() }
    }

    /// Lets the question share outcomes without changes with others about the same state.
    pub fn share_baselines(&mut self, known: KnownBaselines) {
        self.baselines = known;
    }

    /// Lets questions unwind with [`crate::QuestionStopped`] as soon as the condition holds.
    pub fn stop_if(&mut self, is_due: StopCondition) {
        self.stop = StopSignal::new(is_due);
    }

    /// Returns the engine.
    pub fn engine(&self) -> &'a Engine {
        self.engine
    }

    /// Answers a question.
    ///
    /// # Errors
    /// A change names something that does not exist.
    pub fn ask(&self, question: &WhatIf) -> Result<WhatIfResult, WhatIfError> {
        self.stop.check();
        let mut with = self.run(question.kubelet);
        let mut notes = ChangeNotes::default();
        for change in question.changes.iter().enumerate() {
            self.stop.check();
            make(&mut with, change, &mut notes)?;
        }
        let is_settled = run_cycles(&mut with, question);
        let may_settle =
            question.kubelet == SupposedKubelet::Instant && question.cycles == CycleLimit::Settled;
        if may_settle && !is_settled {
            notes.left_out.insert(WhatIfBound::Cycles);
        }
        let without = self.baseline(question.kubelet, with.n_cycles());
        notes.warnings.extend(unknown_effects(&with));
        let time_micros = self.engine.last_micros();
        let as_of = AnswerTime { time_micros, cycle: self.engine.n_cycles() };
        let result = difference(&with, &without, &notes, as_of);
        Ok(WhatIfResult { is_settled, ..result })
    }

    fn run(&self, kubelet: SupposedKubelet) -> SupposedRun {
        SupposedRun::new(self.engine, kubelet, self.ends.clone()).stoppable(&self.stop)
    }

    /// Returns what happens without changes in so many cycles, or until one decides nothing.
    fn baseline(&self, kubelet: SupposedKubelet, most_cycles: u32) -> Arc<Baseline> {
        // With the plain evaluator nothing is kept (ANS-66).
        let is_kept = self.engine.paths().is_some();
        let known = is_kept.then(|| self.baselines.find(kubelet, most_cycles)).flatten();
        known.unwrap_or_else(|| {
            let mut run = self.run(kubelet);
            let is_settled = run.settle(most_cycles);
            let as_run = BaselineRun { kubelet, n_cycles: run.n_cycles(), is_settled };
            let outcome = Arc::new(Baseline::of(run));
            if is_kept {
                self.baselines.keep(as_run, outcome.clone());
            }
            outcome
        })
    }
}

/// Runs the cycles after the changes. Returns true if the last one decided nothing.
fn run_cycles(run: &mut SupposedRun, question: &WhatIf) -> bool {
    match (question.kubelet, question.cycles) {
        // Pods that do not start and do not go would wait for ever: later cycles say nothing about the cluster.
        (SupposedKubelet::None, _) => !run.cycle(),
        (SupposedKubelet::Instant, CycleLimit::Settled) => run.settle(MOST_CYCLES),
        (SupposedKubelet::Instant, CycleLimit::Number(number)) => {
            (0..number.clamp(1, MOST_CYCLES)).fold(false, |_, _| !run.cycle())
        }
    }
}

/// A cycle that was decided.
pub struct DecidedCycle<'a> {
    /// The engine after it.
    pub engine: &'a Engine,
    /// What it has decided.
    pub effects: &'a [Effect],
    /// Its report.
    pub report: Report,
}

/// Returns what one cycle has decided otherwise than another one, which has begun with the same state, that of
/// this time.
pub fn compare_cycles(
    with: DecidedCycle<'_>,
    without: DecidedCycle<'_>,
    as_of: AnswerTime,
) -> WhatIfResult {
    let is_settled = !with.effects.iter().any(is_decision);
    let [with, without] = [with, without].map(SupposedRun::of_cycle);
    let mut notes = ChangeNotes::default();
    notes.warnings.extend(unknown_effects(&with));
    let result = difference(&with, &Baseline::of(without), &notes, as_of);
    WhatIfResult { is_settled, ..result }
}

/// Returns what the engine cannot know of the world (ANS-54).
fn unknown_effects(run: &SupposedRun) -> Vec<String> {
    let mut texts = Vec::new();
    if run.has_provisioned {
        texts.push("volumes are provisioned at once, on every node".to_owned());
    }
    let mut plugins = run.engine().config().tiers.iter().flat_map(|tier| &tier.plugins);
    if plugins.any(|plugin| plugin.name == "extender") {
        texts.push("the service of the plugin extender is not asked".to_owned());
    }
    texts
}

/// Returns the PodGroups and pods of which something waits.
fn waiting_keys(cluster: &Cluster) -> BTreeSet<ObjectKey> {
    let jobs = cluster.jobs_by_key().filter(|&job| {
        let row = &cluster.jobs[job];
        0 < row.counts.of(vc_model::TaskStatus::Pending)
    });
    let jobs = jobs.map(|job| cluster.jobs[job].key.clone());
    let pods = cluster.ungrouped().map(|pod| cluster.tasks[pod].key.clone());
    jobs.chain(pods).collect()
}
