//! The thread that works on copies of the twin, while the twin follows on: it supposes changes, stores
//! the state, and makes bundles. Specification: answers.md 10 (ANS-58), 15, 16 (ANS-109).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::sync::{mpsc, oneshot};
use vc_bundle::{SegmentId, encode_checkpoint};
use vc_engine::Engine;
use vc_objects::what_if::WhatIfTexts;
use vc_page::{Answered, ClusterNames, Document, Problem, StateSource, suppose};

use super::bundle::BundleRequest;
use super::handle::{StoredCheckpoint, TwinMessage};
use super::twin::log_panic;
use crate::meter::Meter;

/// Work on a copy of the twin.
pub(super) enum CopyWork {
    /// Changes are made in it, for a question.
    Suppose(SupposedChanges),
    /// It is stored as the beginning of a segment of the history.
    Store(SegmentId, Box<Engine>, i64),
    /// It is asked for a bundle.
    Bundle(Box<BundleRequest>),
}

/// Changes with the copy in which they are made.
pub(super) struct SupposedChanges {
    pub(super) engine: Box<Engine>,
    pub(super) texts: Box<WhatIfTexts>,
    pub(super) source: StateSource,
    pub(super) names: Arc<ClusterNames>,
    pub(super) reply: oneshot::Sender<Result<Answered, Problem>>,
}

/// Returns both ends of the way to the thread.
pub(super) fn way() -> (Sender<CopyWork>, Receiver<CopyWork>) {
    channel()
}

/// Runs until nobody sends any more. `twin` is told after each piece of work.
pub(super) fn run(
    work: &Receiver<CopyWork>,
    twin: &mpsc::UnboundedSender<TwinMessage>,
    meter: &Meter,
) {
    for piece in work {
        let message = match piece {
            CopyWork::Suppose(changes) => {
                changes.answer();
                TwinMessage::Supposed
            }
            CopyWork::Bundle(wanted) => {
                answer_bundle(*wanted, meter);
                TwinMessage::Supposed
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

impl SupposedChanges {
    fn answer(self) {
        let Self { engine, texts, source, names, reply } = self;
        let answered = catch_unwind(AssertUnwindSafe(|| suppose(&engine, &texts, source)));
        let answered = match answered {
            Ok(result) => result.map(|result| {
                let document = Document::WhatIf(Box::new(result));
                Answered { document, names }
            }),
            Err(_) => Err(Problem::failed(log_panic(&texts))),
        };
        // Its memory is free before the next copy is made.
        drop(engine);
        // Whoever has asked may be gone.
        drop(reply.send(answered));
    }
}

fn answer_bundle(wanted: BundleRequest, meter: &Meter) {
    let BundleRequest { engine, report, history, n_cycles, source, names, reply } = wanted;
    let made = catch_unwind(AssertUnwindSafe(|| {
        BundleRequest::build(*engine, &report, (history, n_cycles), source, meter)
    }));
    let made = made.unwrap_or_else(|_| Err(Problem::failed(log_panic(&"bundle"))));
    drop(reply.send(made.map(|document| Answered { document, names })));
}

fn store(segment: SegmentId, engine: Engine, now_micros: i64) -> StoredCheckpoint {
    let stored = catch_unwind(AssertUnwindSafe(|| {
        let checkpoint = engine.into_checkpoint(now_micros).map_err(|error| error.to_string())?;
        encode_checkpoint(&checkpoint)
    }));
    let checkpoint = stored.unwrap_or_else(|_| Err("it has failed inside".to_owned()));
    StoredCheckpoint { segment, checkpoint }
}
