//! The thread on which changes are supposed in a copy of the twin, while the twin follows on.
//! Specification: answers.md 10 (ANS-58), 16 (ANS-109).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::sync::{mpsc, oneshot};
use vc_engine::Engine;
use vc_objects::what_if::WhatIfTexts;
use vc_page::{Answered, ClusterNames, Document, Problem, StateSource, suppose};

use super::handle::TwinMessage;
use super::twin::log_panic;

/// Changes with the copy in which they are made.
pub(super) struct SupposedChanges {
    pub(super) engine: Box<Engine>,
    pub(super) texts: Box<WhatIfTexts>,
    pub(super) source: StateSource,
    pub(super) names: Arc<ClusterNames>,
    pub(super) reply: oneshot::Sender<Result<Answered, Problem>>,
}

/// Returns both ends of the way to the thread.
pub(super) fn way() -> (Sender<SupposedChanges>, Receiver<SupposedChanges>) {
    channel()
}

/// Runs until nobody sends any more. `twin` is told after each answer.
pub(super) fn run(changes: &Receiver<SupposedChanges>, twin: &mpsc::UnboundedSender<TwinMessage>) {
    for asked in changes {
        let SupposedChanges { engine, texts, source, names, reply } = asked;
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
        if twin.send(TwinMessage::Supposed).is_err() {
            return;
        }
    }
}
