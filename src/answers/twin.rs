//! A second engine that is given what the first one is given, decides the same, and answers
//! questions between two batches. Its effects are dropped. Specification: answers.md 10.1.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Instant;

use tokio::sync::mpsc;
use vc_engine::{EffectDigest, Engine, Report};
use vc_kube::{EngineCommand, RepeatedBatch, TwinBatch, TwinInput, TwinProgress, TwinStop};
use vc_page::{AnswerView, Answered, Problem, Question, StateSource, Timeline, TimelineStep};

use super::handle::{AnswerHandle, TwinMessage, TwinQuestion};
use super::suppose::SupposedChanges;
use crate::meter::Meter;

/// An answer holds so long even if nothing changes: how long a job waits is part of it.
const MINUTE_MICROS: i64 = 60_000_000;

/// What the thread owns.
pub(super) struct Twin {
    handle: AnswerHandle,
    progress: Arc<TwinProgress>,
    meter: Arc<Meter>,
    /// `None`: it was given up, or is not made yet.
    engine: Option<Box<Engine>>,
    /// That of its last cycle.
    report: Option<Report>,
    minute: i64,
    /// True if something has changed since who waits was counted for the metrics.
    is_uncounted: bool,
    /// A copy of the state, once somebody has asked since the last change.
    view: Option<AnswerView>,
    /// What happened lately, also to earlier twins.
    timeline: Timeline,
    supposer: Sender<SupposedChanges>,
    /// True while the other thread answers.
    is_supposing: bool,
    /// Questions with changes that wait for the other thread: there is one copy at a time.
    supposed: VecDeque<TwinQuestion>,
}

impl Twin {
    pub(super) fn new(
        handle: AnswerHandle,
        progress: Arc<TwinProgress>,
        meter: Arc<Meter>,
        supposer: Sender<SupposedChanges>,
    ) -> Self {
        Self {
            handle,
            progress,
            meter,
            engine: None,
            report: None,
            minute: 0,
            is_uncounted: false,
            view: None,
            timeline: Timeline::default(),
            supposer,
            is_supposing: false,
            supposed: VecDeque::new(),
        }
    }

    /// Runs until nobody sends any more.
    pub(super) fn run(mut self, mut receiver: mpsc::UnboundedReceiver<TwinMessage>) {
        while let Some(message) = receiver.blocking_recv() {
            match message {
                TwinMessage::Input(input) => self.take(input),
                TwinMessage::Question(question) => self.answer(question),
                TwinMessage::Supposed => self.suppose_next(),
            }
        }
    }

    fn take(&mut self, input: TwinInput) {
        match input {
            // An earlier one was given up after this one was made: nothing follows.
            TwinInput::Start(_) if !self.progress.is_following() => {}
            TwinInput::Start(engine) => {
                tracing::debug!(v = 3, "answers: a copy of the state is followed");
                (self.engine, self.report) = (Some(engine), None);
                self.changed();
            }
            TwinInput::Batch(batch) => self.follow(batch),
            TwinInput::Command(command) => self.command(command),
            TwinInput::Stop(why) => self.give_up(match why {
                TwinStop::Backlog => GiveUp::Backlog,
                TwinStop::Services => GiveUp::Services,
            }),
        }
    }

    fn changed(&mut self) {
        self.view = None;
        self.handle.changed();
    }

    /// Repeats what the engine did, and compares what came of it.
    fn follow(&mut self, batch: TwinBatch) {
        self.progress.took(batch.events.len());
        self.meter.metrics.answers_backlog(self.progress.n_waiting());
        let Some(engine) = &mut self.engine else { return };
        let (n_events, expected) = (batch.events.len(), batch.digest);
        let now_micros = batch.now.unix_micros;
        let minute = now_micros.div_euclid(MINUTE_MICROS);
        let start = Instant::now();
        let Ok(repeated) = catch_unwind(AssertUnwindSafe(|| batch.repeat(engine))) else {
            return self.give_up(GiveUp::Panic);
        };
        let RepeatedBatch { digest, effects, report } = repeated;
        if digest != expected {
            return self.give_up(GiveUp::Divergence);
        }
        self.timeline.record(&TimelineStep {
            cluster: engine.cluster(),
            effects: &effects,
            report: report.as_ref(),
            cycle: engine.n_cycles(),
            now_micros,
            took_micros: u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX),
            n_events,
        });
        let is_empty = n_events == 0;
        let is_first = self.report.is_none();
        if let Some(report) = report {
            self.report = Some(report);
            self.handle.serves();
        }
        let has_decided = digest != EffectDigest::default().value();
        let has_news = !is_empty || has_decided || is_first;
        self.is_uncounted |= has_news;
        let is_next_minute = minute != self.minute;
        if has_news || is_next_minute {
            self.minute = minute;
            self.changed();
        }
        if is_next_minute && self.is_uncounted {
            self.count_waiting();
        }
    }

    /// Counts for the metrics who waits, and why.
    fn count_waiting(&mut self) {
        let (Some(engine), Some(report)) = (&self.engine, &self.report) else { return };
        self.is_uncounted = false;
        let source = StateSource::Daemon { behind_millis: 0 };
        let counted = catch_unwind(AssertUnwindSafe(|| {
            let mut view = AnswerView::new(engine, report, source);
            (view.waiting_counts(), view)
        }));
        match counted {
            Ok((counts, view)) => {
                let counts = counts.iter().map(|((queue, code), jobs)| ((&**queue, *code), *jobs));
                self.meter.metrics.waiting_jobs(counts);
                self.view = Some(view);
            }
            Err(_) => drop(log_panic(&"volcano_waiting_jobs")),
        }
    }

    fn command(&mut self, command: EngineCommand) {
        let Some(engine) = &mut self.engine else { return };
        let Ok(_warnings) = catch_unwind(AssertUnwindSafe(|| command.run(engine))) else {
            return self.give_up(GiveUp::Panic);
        };
        match engine.is_repeatable() {
            true => self.changed(),
            false => self.give_up(GiveUp::Services),
        }
    }

    fn give_up(&mut self, cause: GiveUp) {
        (self.engine, self.report) = (None, None);
        self.changed();
        self.progress.give_up();
        self.handle.given_up(cause.text());
        self.meter.metrics.answers_given_up(cause.label());
        match cause {
            GiveUp::Divergence => tracing::error!(
                "the copy that answers questions has decided otherwise than the scheduler\n\
                 hint: this is a fault of the scheduler, please report it; scheduling goes on"
            ),
            _ => tracing::warn!("answers are off: {}", cause.text()),
        }
    }

    /// Answers the next question with changes.
    fn suppose_next(&mut self) {
        self.is_supposing = false;
        while !self.is_supposing
            && let Some(question) = self.supposed.pop_front()
        {
            self.answer(question);
        }
    }

    /// Returns how long the state has been outdated, in milliseconds.
    fn behind_millis(&self, asked: Instant) -> u64 {
        let behind = if self.progress.n_waiting() == 0 { 0 } else { asked.elapsed().as_millis() };
        u64::try_from(behind).unwrap_or(u64::MAX)
    }

    fn answer(&mut self, question: TwinQuestion) {
        if question.reply.is_closed() {
            return;
        }
        if self.is_supposing && matches!(question.question, Question::WhatIf(_)) {
            return self.supposed.push_back(question);
        }
        let TwinQuestion { question, asked, reply } = question;
        let behind = self.behind_millis(asked);
        let (Some(engine), Some(report)) = (&self.engine, &self.report) else {
            let problem = Problem::unavailable("the first cycle is not over");
            return drop(reply.send(Err(problem)));
        };
        let source = StateSource::Daemon { behind_millis: behind };
        let copied = || AnswerView::new(engine, report, source);
        let view = self.view.get_or_insert_with(copied);
        view.set_behind(behind);
        if let Question::WhatIf(texts) = question {
            let (engine, names) = (Box::new(engine.copy()), view.names());
            let changes = SupposedChanges { engine, texts, source, names, reply };
            // The other thread ends with the process.
            self.is_supposing = self.supposer.send(changes).is_ok();
            return;
        }
        let answered = catch_unwind(AssertUnwindSafe(|| {
            let document = view.answer(engine, &self.timeline, &question)?;
            Ok(Answered { document, names: view.names() })
        }));
        let answered = answered.unwrap_or_else(|_| {
            // What the question was asked of may be half changed.
            self.view = None;
            Err(Problem::failed(log_panic(&question)))
        });
        // Whoever has asked may be gone.
        drop(reply.send(answered));
    }
}

/// Logs that a question has failed. Returns the number by which the client finds the line.
pub(super) fn log_panic(question: &dyn Debug) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    tracing::error!(
        "answer {id} has failed: {question:?}\nhint: this is a fault of the scheduler, please \
         report it; scheduling goes on"
    );
    id
}

/// Why there is no twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GiveUp {
    Backlog,
    Divergence,
    Panic,
    Services,
}

impl GiveUp {
    /// Label of the metric.
    fn label(self) -> &'static str {
        match self {
            Self::Backlog => "backlog",
            Self::Divergence => "divergence",
            Self::Panic => "panic",
            Self::Services => "services",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Backlog => "more changes came than could be followed",
            Self::Divergence => "the copy of the state has decided otherwise than the scheduler",
            Self::Panic => "the copy of the state has failed",
            Self::Services => "the configuration has the plugin extender",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use vc_engine::{Config, CycleTime, EngineOptions};
    use vc_kube::{TwinBatchKind, TwinFeed};
    use vc_model::ClusterEvent;
    use vc_page::{AnswerSource, Document};

    use super::*;

    /// A twin that follows an engine, with what both sides know.
    fn following() -> (Twin, AnswerHandle, Arc<TwinProgress>) {
        following_with(channel().0)
    }

    fn following_with(
        supposer: Sender<SupposedChanges>,
    ) -> (Twin, AnswerHandle, Arc<TwinProgress>) {
        let (engine, _warnings) = Engine::new(EngineOptions::default(), &Config::default());
        let (sender, receiver) = channel();
        let progress = Arc::new(TwinProgress::default());
        let mut feed = TwinFeed::new(move |input| drop(sender.send(input)), progress.clone());
        feed.start(&engine);
        let handle = AnswerHandle::default();
        let mut twin = Twin::new(handle.clone(), progress.clone(), Arc::default(), supposer);
        receiver.try_iter().for_each(|input| twin.take(input));
        (twin, handle, progress)
    }

    fn batch(digest: u64) -> TwinInput {
        let kind = TwinBatchKind::Cycle;
        let events = vec![ClusterEvent::NodeDeleted { name: "n".into() }];
        TwinInput::Batch(TwinBatch { kind, events, now: CycleTime { unix_micros: 1 }, digest })
    }

    fn nothing() -> u64 {
        EffectDigest::default().value()
    }

    #[test]
    fn ans_57_a_twin_that_decides_otherwise_is_given_up() {
        let (mut twin, handle, progress) = following();
        assert!(handle.revision().is_err(), "no cycle is over yet");
        twin.take(batch(nothing()));
        assert!(handle.revision().is_ok() && progress.is_following());
        twin.take(batch(nothing() + 1));
        let problem = handle.revision().unwrap_err();
        assert!(problem.message.ends_with("decided otherwise than the scheduler"), "{problem:?}");
        assert!(!progress.is_following());
        let exported = twin.meter.metrics.encode();
        for line in [
            "volcano_answers_divergences_total 1",
            "volcano_answers_given_up_total{cause=\"divergence\"} 1",
        ] {
            assert!(exported.contains(line), "{line}");
        }
        // What was sent before it was known changes nothing.
        twin.take(batch(nothing()));
        assert!(handle.revision().is_err());
    }

    #[tokio::test]
    async fn ans_58_questions_are_answered_between_two_batches() {
        let (mut twin, _handle, _progress) = following();
        let (reply, answer) = tokio::sync::oneshot::channel();
        let asked = std::time::Instant::now();
        twin.answer(TwinQuestion { question: Question::Queues, asked, reply });
        assert_eq!(answer.await.unwrap().unwrap_err().code, 503, "no cycle is over yet");
        twin.take(batch(nothing()));
        let (reply, answer) = tokio::sync::oneshot::channel();
        twin.answer(TwinQuestion { question: Question::Summary, asked, reply });
        let Document::Summary(summary) = answer.await.unwrap().unwrap().document else { panic!() };
        assert_eq!((summary.as_of.cycle, summary.content.nodes), (1, 0));
        assert!(twin.view.is_some(), "the copy is kept until something changes");
        twin.take(batch(nothing()));
        assert!(twin.view.is_none());
    }

    #[tokio::test]
    async fn ans_58_changes_are_supposed_on_another_thread_one_copy_at_a_time() {
        let (supposer, changes) = channel();
        let (mut twin, _handle, _progress) = following_with(supposer);
        twin.take(batch(nothing()));
        let mut replies = Vec::new();
        for _ in 0..2 {
            let (reply, answer) = tokio::sync::oneshot::channel();
            let question = Question::WhatIf(Box::default());
            twin.answer(TwinQuestion { question, asked: Instant::now(), reply });
            replies.push(answer);
        }
        assert_eq!(twin.supposed.len(), 1, "the second one waits");
        let (to_twin, mut from_thread) = tokio::sync::mpsc::unbounded_channel();
        let thread = std::thread::spawn(move || super::super::suppose::run(&changes, &to_twin));
        // The twin follows on meanwhile.
        twin.take(batch(nothing()));
        for (waiting, reply) in [0, 0].into_iter().zip(replies) {
            let answered = reply.await.unwrap().unwrap();
            assert!(matches!(answered.document, Document::WhatIf(_)));
            assert!(matches!(from_thread.recv().await, Some(TwinMessage::Supposed)));
            twin.suppose_next();
            assert_eq!(twin.supposed.len(), waiting);
        }
        drop(twin);
        thread.join().unwrap();
    }
}
