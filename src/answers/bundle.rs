//! A bundle of what the scheduler was given lately. It is made on the second thread of the answers.
//! Specification: answers.md 15.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::oneshot;
use vc_bundle::{BundleWriter, HistoryCopy, encode_checkpoint};
use vc_engine::{Engine, Report};
use vc_kube::wall_micros;
use vc_page::{
    AnswerView, Answered, BundleFile, ClusterNames, Document, PageRange, Problem, Question,
    StateSource, Timeline,
};

use crate::meter::Meter;

/// Jobs whose explanations are in a bundle.
const MOST_EXPLANATIONS: usize = 200;

/// What a bundle is made of.
pub(super) struct BundleRequest {
    /// A copy of the twin, with the report of its last cycle.
    pub(super) engine: Box<Engine>,
    pub(super) report: Report,
    pub(super) history: HistoryCopy,
    /// Cycles at least. `None`: all that are kept.
    pub(super) n_cycles: Option<u64>,
    pub(super) source: StateSource,
    pub(super) names: Arc<ClusterNames>,
    pub(super) reply: oneshot::Sender<Result<Answered, Problem>>,
}

impl BundleRequest {
    /// Returns the document of the bundle. The engine is used up.
    pub(super) fn build(
        engine: Engine,
        report: &Report,
        (history, n_cycles): (HistoryCopy, Option<u64>),
        source: StateSource,
        meter: &Meter,
    ) -> Result<Document, Problem> {
        let unmade = |error: &dyn std::fmt::Display| Problem::unavailable(error.to_string());
        let cycle = engine.n_cycles();
        let answers = answers(&engine, report, source)?;
        let conf = engine.config().without_secrets().file_text().map_err(|error| unmade(&error))?;
        let history = match history.is_empty() {
            false => history,
            true => {
                let checkpoint =
                    engine.into_checkpoint(wall_micros()).map_err(|error| unmade(&error))?;
                let encoded = encode_checkpoint(&checkpoint).map_err(|error| unmade(&error))?;
                HistoryCopy::of_now(cycle, encoded)
            }
        };
        let mut writer = BundleWriter::new(&history, n_cycles).map_err(|error| unmade(&error))?;
        writer.set_process(env!("CARGO_PKG_VERSION"), flags());
        writer.add(&format!("conf/{cycle}.yaml"), conf.into_bytes());
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
fn answers(engine: &Engine, report: &Report, source: StateSource) -> Result<Vec<u8>, Problem> {
    let mut view = AnswerView::new(engine, report, source);
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
