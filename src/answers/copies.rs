//! The thread that works on copies of the twin, while the twin follows on: it supposes changes, makes
//! bundles, and stores the state. Specification: answers.md 10 (ANS-58, ANS-61), 15.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use vc_bundle::{SegmentId, encode_checkpoint};
use vc_engine::Engine;
use vc_objects::what_if::WhatIfTexts;
use vc_page::{
    Answered, ClusterNames, Document, ExpectedEnds, KnownBaselines, Problem, Question,
    QuestionStopped, StateSource, StopCondition, WhatIfState, suppose,
};

use super::bundle::BundleInputs;
use super::handle::{QuestionAttempt, StoredCheckpoint, TwinMessage, TwinQuestion};
use super::twin::log_panic;
use crate::meter::Meter;

/// Work on a copy of the twin.
pub(super) enum CopyWork {
    /// It is asked a question.
    Answer(Box<CopyQuestion>),
    /// It is stored as the beginning of this segment of the history, at a time in microseconds since
    /// 1970.
    Store(SegmentId, Box<Engine>, i64),
}

/// The way back to whoever has asked.
type ReplySender = oneshot::Sender<Result<Answered, Problem>>;

/// A question with the copy that it is asked of, and the way back.
pub(super) struct CopyQuestion {
    pub(super) engine: Engine,
    pub(super) content: CopyQuestionContent,
    pub(super) source: StateSource,
    pub(super) names: Arc<ClusterNames>,
    /// Stops the question while many changes wait: it takes processor time and memory that the twin needs for them.
    pub(super) stop_if: StopCondition,
    pub(super) attempt: QuestionAttempt,
    pub(super) asked: Instant,
    pub(super) reply: ReplySender,
}

/// What a copy can be asked.
pub(super) enum CopyQuestionContent {
    /// What would happen with these changes, where pods end as is expected, beside what is known of the state.
    WhatIf(Box<WhatIfTexts>, ExpectedEnds, KnownBaselines),
    /// What the scheduler was given lately.
    Bundle(Box<BundleInputs>),
}

/// Returns both ends of the way to the thread.
pub(super) fn way() -> (Sender<CopyWork>, Receiver<CopyWork>) {
    channel()
}

/// Runs until nobody sends any more. `twin` gets a message after each piece of work.
pub(super) fn run(
    work: &Receiver<CopyWork>,
    twin: &mpsc::UnboundedSender<TwinMessage>,
    meter: &Meter,
) {
    for piece in work {
        let message = match piece {
            CopyWork::Answer(question) => match question.answer(meter) {
                None => TwinMessage::CopyAnswered,
                Some((question, attempt)) => TwinMessage::CopyStopped(question, attempt),
            },
            CopyWork::Store(segment, engine, now_micros) => {
                TwinMessage::Stored(store(segment, *engine, now_micros))
            }
        };
        if twin.send(message).is_err() {
            return;
        }
    }
}

impl CopyQuestion {
    /// Answers the question. Returns it if it was stopped: too many changes wait for the twin, or whoever has asked
    /// is gone.
    fn answer(self, meter: &Meter) -> Option<(TwinQuestion, QuestionAttempt)> {
        let Self { engine, content, source, names, stop_if, attempt, asked, reply } = self;
        let reply = Arc::new(reply);
        let stop_if = stop_or_gone(stop_if, Arc::downgrade(&reply));
        // The memory of the copy is free afterwards, before the next one is made.
        let ask = || content.answer(engine, source, stop_if, meter);
        let answered = catch_unwind(AssertUnwindSafe(ask));
        // The condition, which is not read any more, holds no strong reference.
        let reply = Arc::into_inner(reply)?;
        let answered = match answered {
            Ok(answered) => answered,
            Err(cause) if cause.is::<QuestionStopped>() => {
                let question = content.into_question();
                return Some((TwinQuestion { question, asked, reply }, attempt));
            }
            Err(_) => Err(Problem::failed(log_panic(&content.text()))),
        };
        // Whoever has asked may be gone.
        drop(reply.send(answered.map(|document| Answered { document, names })));
        None
    }
}

/// Returns the condition that holds if the other one does, or if whoever has asked is gone.
fn stop_or_gone(stop_if: StopCondition, reply: Weak<ReplySender>) -> StopCondition {
    let is_gone = move || reply.upgrade().is_none_or(|reply| reply.is_closed());
    Arc::new(move || is_gone() || stop_if())
}

impl CopyQuestionContent {
    /// Answers the question. Unwinds with [`QuestionStopped`] if the condition holds.
    fn answer(
        &self,
        engine: Engine,
        source: StateSource,
        stop_if: StopCondition,
        meter: &Meter,
    ) -> Result<Document, Problem> {
        match self {
            Self::WhatIf(texts, ends, baselines) => {
                let mut state = WhatIfState::new(&engine, ends);
                state.share_baselines(baselines.clone());
                state.stop_if(stop_if);
                Ok(Document::WhatIf(Box::new(suppose(&state, texts, source)?)))
            }
            Self::Bundle(inputs) => inputs.document(engine, source, stop_if, meter),
        }
    }

    /// Returns the question as it was asked.
    fn into_question(self) -> Question {
        match self {
            Self::WhatIf(texts, ..) => Question::WhatIf(texts),
            Self::Bundle(inputs) => Question::Bundle { n_cycles: inputs.n_cycles },
        }
    }

    /// Returns the question for the log.
    fn text(&self) -> String {
        match self {
            Self::WhatIf(texts, ..) => texts.kinds(),
            Self::Bundle(_) => "bundle".to_owned(),
        }
    }
}

fn store(segment: SegmentId, engine: Engine, now_micros: i64) -> StoredCheckpoint {
    let stored = catch_unwind(AssertUnwindSafe(|| {
        let checkpoint = engine.into_checkpoint(now_micros).map_err(|error| error.to_string())?;
        encode_checkpoint(&checkpoint)
    }));
    let checkpoint = stored.unwrap_or_else(|_| Err("it has failed inside".to_owned()));
    StoredCheckpoint { segment, checkpoint }
}
