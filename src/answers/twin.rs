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
use vc_bundle::{History, RecordedInput, effect_line};
use vc_engine::{
    BatchKind, EffectDigest, Engine, EngineBatch, EngineCommand, RepeatedBatch, Report,
};
use vc_kube::{TwinInput, TwinProgress, TwinStop, wall_micros};
use vc_page::{
    AnswerView, Answered, Problem, Question, QuestionStopped, StateSource, StopCondition, Timeline,
    TimelineStep,
};

use super::bundle::BundleInputs;
use super::copies::{CopyQuestion, CopyQuestionContent, CopyWork};
use super::handle::{
    AnswerHandle, BUSY, QuestionAttempt, StoredCheckpoint, TwinMessage, TwinQuestion, busy,
};
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
    /// What the engine was given lately.
    history: History,
    copy_worker: Sender<CopyWork>,
    /// True while the other thread answers.
    is_copy_busy: bool,
    /// Questions that wait for the other thread: one is answered at a time.
    waiting_for_copy: VecDeque<TwinQuestion>,
}

impl Twin {
    pub(super) fn new(
        handle: AnswerHandle,
        progress: Arc<TwinProgress>,
        meter: Arc<Meter>,
        copy_worker: Sender<CopyWork>,
        history: History,
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
            history,
            copy_worker,
            is_copy_busy: false,
            waiting_for_copy: VecDeque::new(),
        }
    }

    /// Runs until nobody sends any more.
    pub(super) fn run(mut self, mut receiver: mpsc::UnboundedReceiver<TwinMessage>) {
        while let Some(message) = receiver.blocking_recv() {
            match message {
                TwinMessage::Input(input) => self.take(input),
                TwinMessage::Question(question) => self.answer(question),
                TwinMessage::StoppedQuestion(question) => self.answer_again(question),
                TwinMessage::CopyAnswered => self.answer_next(),
                TwinMessage::CopyStopped(question, attempt) => self.copy_stopped(question, attempt),
                TwinMessage::Stored(stored) => self.stored(stored),
            }
        }
    }

    fn take(&mut self, input: TwinInput) {
        match input {
            // An earlier one was given up after this one was made: nothing follows.
            TwinInput::Start(_) if !self.progress.is_following() => {}
            TwinInput::Start(mut engine) => {
                tracing::debug!(v = 3, "answers: a copy of the state is followed");
                // Before anything else: until then the deciding thread copies each part that it writes.
                engine.unshare();
                (self.engine, self.report) = (Some(engine), None);
                self.history.clear();
                self.timeline.note_gap();
                self.begin_segment(wall_micros());
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

    fn follow(&mut self, batch: EngineBatch) {
        self.progress.begin_batch(&batch);
        self.follow_by(batch, EngineBatch::repeat);
        self.progress.end_batch();
    }

    /// Repeats what the engine did, and compares what came of it.
    fn follow_by(
        &mut self,
        batch: EngineBatch,
        repeat: impl FnOnce(EngineBatch, &mut Engine) -> RepeatedBatch,
    ) {
        self.progress.took(batch.events.len());
        self.meter.metrics.answers_backlog(self.progress.n_waiting());
        let Some(engine) = &mut self.engine else { return };
        let (n_events, expected, kind) = (batch.events.len(), batch.digest, batch.kind);
        let recorded = self.history.is_on().then(|| batch.clone());
        let now_micros = batch.now.unix_micros;
        let minute = now_micros.div_euclid(MINUTE_MICROS);
        self.timeline.learn(engine.cluster(), &batch.events, now_micros);
        let start = Instant::now();
        let Ok(repeated) = catch_unwind(AssertUnwindSafe(|| repeat(batch, engine))) else {
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
        for outcome in self.timeline.take_outcomes() {
            self.meter.metrics.start_prediction(outcome.is_covered, outcome.error_ratio);
        }
        if let Some(batch) = recorded {
            let effect_lines = effects.iter().map(effect_line).collect();
            self.record(&RecordedInput::Batch { batch, effect_lines });
            if kind == BatchKind::Cycle {
                self.begin_segment(now_micros);
            }
        }
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
        let (Some(engine), Some(report)) = (&mut self.engine, &self.report) else { return };
        self.is_uncounted = false;
        engine.share();
        let engine = &*engine;
        let source = StateSource::Daemon { behind_millis: 0 };
        let stop_if = stop_condition(&self.progress);
        let counted = catch_unwind(AssertUnwindSafe(|| {
            let mut view = AnswerView::new(engine, report, source);
            view.stop_if(stop_if);
            (view.waiting_counts(), view)
        }));
        match counted {
            Ok((counts, view)) => {
                let counts = counts.iter().map(|((queue, code), jobs)| ((&**queue, *code), *jobs));
                self.meter.metrics.waiting_jobs(counts);
                count_trials(&self.meter, &view);
                self.view = Some(view);
            }
            // They are counted with the next minute.
            Err(cause) if cause.is::<QuestionStopped>() => self.is_uncounted = true,
            Err(_) => drop(log_panic(&"volcano_waiting_jobs")),
        }
    }

    fn command(&mut self, command: EngineCommand) {
        if self.history.is_on() {
            self.record(&RecordedInput::Command(command.without_secrets()));
        }
        let Some(engine) = &mut self.engine else { return };
        let Ok(_warnings) = catch_unwind(AssertUnwindSafe(|| command.run(engine))) else {
            return self.give_up(GiveUp::Panic);
        };
        match engine.is_repeatable() {
            true => self.changed(),
            false => self.give_up(GiveUp::Services),
        }
    }

    fn record(&mut self, input: &RecordedInput) {
        let cycle = self.engine.as_ref().map_or(0, |engine| engine.n_cycles());
        self.history.record(input, cycle);
    }

    /// Begins a segment of the history, if one is due. Its state is stored on the other thread.
    fn begin_segment(&mut self, now_micros: i64) {
        let Some(engine) = self.engine.as_mut().filter(|_| self.history.is_due(now_micros)) else {
            return;
        };
        engine.share();
        let segment = self.history.begin(engine.n_cycles(), now_micros);
        // The other thread ends with the process.
        drop(self.copy_worker.send(CopyWork::Store(segment, Box::new(engine.copy()), now_micros)));
    }

    fn stored(&mut self, stored: StoredCheckpoint) {
        let StoredCheckpoint { segment, checkpoint } = stored;
        let checkpoint = match checkpoint {
            Ok(checkpoint) => checkpoint,
            Err(error) => {
                tracing::debug!("the state is stored after the next cycle: {error}");
                return self.history.give_up(segment);
            }
        };
        let mib = checkpoint.size().div_ceil(1 << 20);
        if !self.history.put_checkpoint(segment, checkpoint) {
            tracing::warn!(
                "bundles have no history: the stored state takes {mib} MiB\n\
                 hint: raise --answers-history-mib; bundles still have the state of their moment"
            );
        }
    }

    fn give_up(&mut self, cause: GiveUp) {
        (self.engine, self.report) = (None, None);
        self.history.clear();
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

    /// The other thread is free: sends the next question that waits for it.
    fn answer_next(&mut self) {
        self.is_copy_busy = false;
        self.send_waiting();
    }

    /// Sends questions that wait for the other thread, until it is busy.
    fn send_waiting(&mut self) {
        while !self.is_copy_busy
            && let Some(question) = self.waiting_for_copy.pop_front()
        {
            self.answer(question);
        }
    }

    /// The other thread is free, as its question was stopped. The changes that waited then are applied by now: the
    /// question is asked again once, of a new copy, before others that wait. It is dropped if whoever has asked is gone.
    fn copy_stopped(&mut self, question: TwinQuestion, attempt: QuestionAttempt) {
        self.is_copy_busy = false;
        match attempt {
            QuestionAttempt::First => self.answer_again(question),
            QuestionAttempt::Last => {
                drop(question.reply.send(Err(busy(self.progress.n_waiting()))))
            }
        }
        self.send_waiting();
    }

    /// Returns the age of the oldest batch that is not applied, in milliseconds. It was sent after the question.
    fn behind_millis(&self, asked: Instant) -> u64 {
        let behind = u64::try_from(self.progress.behind_micros(wall_micros()) / 1_000);
        let waited = u64::try_from(asked.elapsed().as_millis());
        behind.unwrap_or_default().min(waited.unwrap_or(u64::MAX))
    }

    fn answer(&mut self, question: TwinQuestion) {
        if let Some(stopped) = self.answer_unless_stopped(question, QuestionAttempt::First) {
            self.handle.ask_again(stopped);
        }
    }

    /// Answers a question that was stopped before, unless it is stopped again.
    fn answer_again(&mut self, question: TwinQuestion) {
        if let Some(stopped) = self.answer_unless_stopped(question, QuestionAttempt::Last) {
            drop(stopped.reply.send(Err(busy(self.progress.n_waiting()))));
        }
    }

    /// Answers a question, or sends it to the other thread. Returns it if it was stopped because too many changes wait.
    fn answer_unless_stopped(
        &mut self,
        question: TwinQuestion,
        attempt: QuestionAttempt,
    ) -> Option<TwinQuestion> {
        if question.reply.is_closed() {
            return None;
        }
        let is_of_copy = matches!(question.question, Question::WhatIf(_) | Question::Bundle { .. });
        if self.is_copy_busy && is_of_copy {
            self.waiting_for_copy.push_back(question);
            return None;
        }
        let behind = self.behind_millis(question.asked);
        let (Some(engine), Some(report)) = (&mut self.engine, &self.report) else {
            drop(question.reply.send(Err(no_cycle())));
            return None;
        };
        let source = StateSource::Daemon { behind_millis: behind };
        if self.view.is_none() || is_of_copy {
            engine.share();
        }
        let engine = &*engine;
        let now_micros = engine.last_micros();
        let stop_if = stop_condition(&self.progress);
        let copied = || {
            let mut view = AnswerView::new(engine, report, source);
            view.stop_if(stop_if);
            view
        };
        let view = self.view.get_or_insert_with(copied);
        view.set_behind(behind);
        if is_of_copy {
            self.send_copy(question, source, attempt);
            return None;
        }
        let TwinQuestion { question, asked, reply } = question;
        let answered = self.try_ask(&question, |view, engine, timeline| {
            let document = view.answer(engine, timeline, &question)?;
            Ok(Answered { document, names: view.names() })
        });
        let Ok(answered) = answered else { return Some(TwinQuestion { question, asked, reply }) };
        self.view.iter().for_each(|view| count_trials(&self.meter, view));
        if let Some((job, start)) = self.view.as_mut().and_then(AnswerView::take_told) {
            self.timeline.told(&job, &start, now_micros);
        }
        // Whoever has asked may be gone.
        drop(reply.send(answered));
        None
    }

    /// Sends a question with a copy of the twin, whose state has a view, to the other thread.
    fn send_copy(&mut self, question: TwinQuestion, source: StateSource, attempt: QuestionAttempt) {
        let TwinQuestion { question, asked, reply } = question;
        let (Some(engine), Some(report), Some(view)) = (&self.engine, &self.report, &mut self.view)
        else {
            return drop(reply.send(Err(no_cycle())));
        };
        let content = match question {
            Question::WhatIf(texts) => {
                // The view is kept through cycles that change nothing, while the clock moves on.
                let baselines = view.baselines().at_time(engine.last_micros());
                CopyQuestionContent::WhatIf(texts, self.timeline.ends(), baselines)
            }
            Question::Bundle { n_cycles } => {
                let (report, history) = (report.clone(), self.history.copy());
                let inputs = BundleInputs { report, history, n_cycles };
                CopyQuestionContent::Bundle(Box::new(inputs))
            }
            question => return drop(reply.send(Err(Problem::failed(log_panic(&question))))),
        };
        let (engine, names) = (engine.copy(), view.names());
        let stop_if = stop_condition(&self.progress);
        let question =
            CopyQuestion { engine, content, source, names, stop_if, attempt, asked, reply };
        // The other thread ends with the process.
        self.is_copy_busy = self.copy_worker.send(CopyWork::Answer(Box::new(question))).is_ok();
    }

    /// Asks the state. A question that panics is answered by 500.
    ///
    /// # Errors
    /// The question was stopped.
    fn try_ask(
        &mut self,
        question: &Question,
        ask: impl FnOnce(&mut AnswerView, &Engine, &Timeline) -> Result<Answered, Problem>,
    ) -> Result<Result<Answered, Problem>, QuestionStopped> {
        let (Some(engine), Some(view)) = (&self.engine, &mut self.view) else {
            return Ok(Err(no_cycle()));
        };
        let answered = catch_unwind(AssertUnwindSafe(|| ask(view, engine, &self.timeline)));
        answered.or_else(|cause| {
            // What the question was asked of may be half changed. Its counters are whole.
            let asked = self.view.take();
            asked.iter().for_each(|view| count_trials(&self.meter, view));
            match cause.is::<QuestionStopped>() {
                true => Err(QuestionStopped),
                false => Ok(Err(Problem::failed(log_panic(question)))),
            }
        })
    }
}

/// Returns what is answered before the twin has decided a cycle.
fn no_cycle() -> Problem {
    Problem::unavailable("the first cycle is not over")
}

fn count_trials(meter: &Meter, view: &AnswerView) {
    let counts = view.take_trial_counts();
    counts.for_each(|(shortcut, n_trials)| meter.metrics.answers_trials(shortcut, n_trials));
}

/// Returns the condition under which a question is stopped: so many changes wait that the twin would soon be given up.
fn stop_condition(progress: &Arc<TwinProgress>) -> StopCondition {
    let progress = progress.clone();
    Arc::new(move || BUSY < progress.n_waiting())
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
mod metric_tests;
#[cfg(test)]
mod tests;
