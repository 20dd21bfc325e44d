//! A bundle of what the scheduler was given lately. It is made on the second thread of the answers.
//! Specification: answers.md 15.

use serde_json::json;
use vc_bundle::{BundleWriter, HistoryCopy, encode_checkpoint};
use vc_engine::{Engine, Report};
use vc_kube::wall_micros;
use vc_page::{
    AnswerView, BundleFile, Document, PageRange, Problem, Question, StateSource, StopCondition,
    Timeline,
};

use crate::meter::Meter;

/// Jobs whose explanations are in a bundle.
const MOST_EXPLANATIONS: usize = 200;

/// What a bundle is made of, beside a copy of the twin.
pub(super) struct BundleInputs {
    /// Report of the last cycle of the twin.
    pub(super) report: Report,
    pub(super) history: HistoryCopy,
    /// Cycles at least. `None`: all that are kept.
    pub(super) n_cycles: Option<u64>,
}

impl BundleInputs {
    /// Returns the bundle as a document. Without a history it holds the state of the copy. Its explanations are stopped
    /// as soon as the condition holds.
    pub(super) fn document(
        &self,
        engine: Engine,
        source: StateSource,
        stop_if: StopCondition,
        meter: &Meter,
    ) -> Result<Document, Problem> {
        let unmade = |error: &dyn std::fmt::Display| Problem::unavailable(error.to_string());
        let cycle = engine.n_cycles();
        let mut view = AnswerView::new(&engine, &self.report, source);
        view.stop_if(stop_if);
        let answers = answers(&engine, view)?;
        let of_now = match self.history.is_empty() {
            false => None,
            true => {
                let checkpoint =
                    engine.into_checkpoint(wall_micros()).map_err(|error| unmade(&error))?;
                let encoded = encode_checkpoint(&checkpoint).map_err(|error| unmade(&error))?;
                Some(HistoryCopy::of_now(cycle, encoded))
            }
        };
        let writer = BundleWriter::new(of_now.as_ref().unwrap_or(&self.history), self.n_cycles);
        let mut writer = writer.map_err(|error| unmade(&error))?;
        writer.set_process(env!("CARGO_PKG_VERSION"), flags());
        writer.add("explanations.json", answers);
        writer.add("metrics.txt", meter.metrics.encode().into_bytes());
        let mut contents = Vec::new();
        writer.write(&mut contents).map_err(|error| unmade(&error))?;
        Ok(Document::Bundle(Box::new(BundleFile { cycle, contents })))
    }
}

/// Returns the flags of the process without passwords in URLs.
fn flags() -> Vec<String> {
    let flags = std::env::args_os().skip(1).map(|flag| flag.to_string_lossy().into_owned());
    flags.map(|flag| vc_conf::without_users(&flag)).collect()
}

/// Returns what people read without replaying anything.
fn answers(engine: &Engine, mut view: AnswerView) -> Result<Vec<u8>, Problem> {
    let range = PageRange { offset: 0, limit: MOST_EXPLANATIONS };
    let explanations = Question::Explanations { namespace: None, queue: None, code: None, range };
    let mut answer = |question| view.answer(engine, &Timeline::default(), &question);
    let answers = json!({
        "summary": answer(Question::Summary)?,
        "queues": answer(Question::Queues)?,
        "explanations": answer(explanations)?,
    });
    serde_json::to_vec_pretty(&answers).map_err(|error| Problem::unavailable(error.to_string()))
}
