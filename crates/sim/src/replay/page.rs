//! The page about the end of a bundle, as a file of its own. Specification: answers.md 14 (ANS-96), 15.

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use vc_bundle::{Bundle, Replay};
use vc_engine::Report;
use vc_page::{AnswerView, StateSource, Timeline, TimelineStep, report_answers, report_html};

use super::{ReplayError, UNRECORDED};

/// A page about a bundle.
pub struct BundlePage {
    /// One file with data, styles and scripts.
    pub html: String,
    /// True if everything was decided as it was recorded.
    pub is_same: bool,
    /// The line about a bundle that has no recorded cycle, so that the page is about the next one. `None`: it has one.
    pub unrecorded_note: Option<&'static str>,
}

/// Decides a bundle again, and writes down the state after its last cycle and what has happened. If the bundle has no
/// recorded cycle, the next one is decided, and the page is about the state after that one.
///
/// # Errors
/// The file is no bundle.
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
    let unrecorded_note = report.is_none().then_some(UNRECORDED);
    let report = match report {
        Some(report) => report,
        None => next_report(&mut replay, &mut timeline),
    };
    let mut view = AnswerView::new(replay.engine(), &report, StateSource::Bundle);
    let answers = report_answers(&mut view, replay.engine(), &timeline);
    Ok(BundlePage { html: report_html(&answers), is_same, unrecorded_note })
}

/// Decides the cycle after the last input, and returns its report. In the timeline is what the state says: what the cycle
/// decides has not happened.
fn next_report(replay: &mut Replay, timeline: &mut Timeline) -> Report {
    timeline.record(&TimelineStep {
        cluster: replay.engine().cluster(),
        effects: &[],
        report: None,
        cycle: replay.engine().n_cycles(),
        now_micros: replay.unrecorded_batch().now.unix_micros,
        took_micros: 0,
        n_events: 0,
    });
    replay.decide_unrecorded().report.unwrap_or_default()
}
