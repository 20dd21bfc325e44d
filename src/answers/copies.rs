//! The thread that works on copies of the twin, while the twin follows on: it supposes changes, makes
//! bundles, and stores the state. Specification: answers.md 10 (ANS-58), 15, 16 (ANS-109).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::sync::{mpsc, oneshot};
use vc_bundle::{SegmentId, encode_checkpoint};
use vc_engine::Engine;
use vc_objects::what_if::WhatIfTexts;
use vc_page::{Answered, ClusterNames, Document, ExpectedEnds, Problem, StateSource, suppose};

use super::bundle::BundleInputs;
use super::handle::{StoredCheckpoint, TwinMessage};
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

/// A question with the copy that it is asked of, and the way back.
pub(super) struct CopyQuestion {
    pub(super) engine: Engine,
    pub(super) content: CopyQuestionContent,
    pub(super) source: StateSource,
    pub(super) names: Arc<ClusterNames>,
    pub(super) reply: oneshot::Sender<Result<Answered, Problem>>,
}

/// What a copy can be asked.
pub(super) enum CopyQuestionContent {
    /// What would happen with these changes, where pods end as is expected.
    WhatIf(Box<WhatIfTexts>, ExpectedEnds),
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
            CopyWork::Answer(question) => {
                question.answer(meter);
                TwinMessage::CopyAnswered
            }
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
    fn answer(self, meter: &Meter) {
        let Self { engine, content, source, names, reply } = self;
        let asked = content.text();
        // The memory of the copy is free afterwards, before the next one is made.
        let answered = catch_unwind(AssertUnwindSafe(move || match content {
            CopyQuestionContent::WhatIf(texts, ends) => {
                Ok(Document::WhatIf(Box::new(suppose(&engine, &ends, &texts, source)?)))
            }
            CopyQuestionContent::Bundle(inputs) => inputs.document(engine, source, meter),
        }));
        let answered = answered.unwrap_or_else(|_| Err(Problem::failed(log_panic(&asked))));
        // Whoever has asked may be gone.
        drop(reply.send(answered.map(|document| Answered { document, names })));
    }
}

impl CopyQuestionContent {
    /// Returns the question for the log.
    fn text(&self) -> String {
        match self {
            Self::WhatIf(texts, _) => texts.kinds(),
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
