//! What would happen if: changes are made in a copy of the engine, whole cycles are run in it, and the
//! same cycles in a second copy without the changes. The answer is the difference.
//! Specification: answers.md 9.

pub(crate) mod changes;
mod difference;
mod question;
pub(crate) mod run;
mod volumes;

use std::collections::BTreeSet;

use vc_engine::{Effect, Engine, Report};
use vc_model::{Cluster, ObjectKey};

pub use difference::{EvictedPod, MovedPod, PlacedPod, QueueDifference, WaitingJob, WhatIfResult};
pub use question::{
    Change, CycleLimit, LiveObject, MOST_CHANGES, MOST_CYCLES, MOST_NEW_NODES, MOST_NEW_PODS,
    NewNodes, NodePatch, NodeSelection, PodChange, PodGroupChange, QueueChange, SupposedKubelet,
    WhatIf, WhatIfError,
};

use crate::ends::ExpectedEnds;
use crate::explanation::AnswerTime;
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
    let mut with = SupposedRun::new(engine, question.kubelet, ends.clone());
    let mut notes = ChangeNotes::default();
    for change in question.changes.iter().enumerate() {
        make(&mut with, change, &mut notes)?;
    }
    let is_settled = match question.cycles {
        CycleLimit::Settled => with.settle(MOST_CYCLES),
        CycleLimit::Number(most) => {
            (0..most.clamp(1, MOST_CYCLES)).fold(false, |_, _| !with.cycle())
        }
    };
    let mut without = SupposedRun::new(engine, question.kubelet, ends.clone());
    without.settle(with.n_cycles());
    notes.warnings.extend(unknown_effects(&with));
    let as_of = AnswerTime { time_micros: engine.last_micros(), cycle: engine.n_cycles() };
    let result = difference(&with, &without, &notes, as_of);
    Ok(WhatIfResult { is_settled, ..result })
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
    let result = difference(&with, &without, &notes, as_of);
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
