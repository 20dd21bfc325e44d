//! The page about the end of a bundle, as a file of its own. Specification: answers.md 14 (ANS-96), 15.

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use vc_bundle::{Bundle, Replay};
use vc_page::{AnswerView, StateSource, Timeline, TimelineStep, report_answers, report_html};

use super::ReplayError;

/// A page about a bundle.
pub struct BundlePage {
    /// One file with data, styles and scripts.
    pub html: String,
    /// True if everything was decided as it was recorded.
    pub is_same: bool,
}

/// Decides a bundle again, and writes down the state after its last cycle and what has happened.
///
/// # Errors
/// The file is no bundle, or has no cycle.
pub fn bundle_page(path: &Path) -> Result<BundlePage, ReplayError> {
    let name = path.display().to_string();
    let damaged = |_| ReplayError::Damaged(name.clone());
    // A state that was changed by hand may break any rule of the tables.
    catch_unwind(AssertUnwindSafe(|| page(path, &name))).map_err(damaged)?
}

fn page(path: &Path, name: &str) -> Result<BundlePage, ReplayError> {
    let of_bundle = |error| ReplayError::Bundle { file: name.to_owned(), error };
    let file =
        File::open(path).map_err(|error| ReplayError::File { file: name.to_owned(), error })?;
    let bundle = Bundle::read(io::BufReader::new(file)).map_err(of_bundle)?;
    let mut replay = Replay::new(&bundle, None).map_err(of_bundle)?;
    let (mut timeline, mut report, mut is_same) = (Timeline::default(), None, true);
    loop {
        replay.run_commands();
        let Some(batch) = replay.next_batch() else { break };
        timeline.learn(replay.engine().cluster(), &batch.events, batch.now.unix_micros);
        let Some(step) = replay.step() else { break };
        timeline.record(&TimelineStep {
            cluster: replay.engine().cluster(),
            effects: &step.effects,
            report: step.report.as_ref(),
            cycle: step.cycle,
            now_micros: step.now.unix_micros,
            // How long it took then is not recorded.
            took_micros: 0,
            n_events: batch.events.len(),
        });
        is_same &= step.is_same;
        report = step.report.or(report);
    }
    let report = report.ok_or_else(|| ReplayError::NoInputs(name.to_owned()))?;
    let mut view = AnswerView::new(replay.engine(), &report, StateSource::Bundle);
    let answers = report_answers(&mut view, replay.engine(), &timeline);
    Ok(BundlePage { html: report_html(&answers), is_same })
}
