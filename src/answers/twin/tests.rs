//! Tests of the twin.

use std::sync::mpsc::channel;

use vc_engine::{Config, CycleTime, EngineOptions};
use vc_kube::TwinFeed;
use vc_model::{ClusterEvent, NodeRecord};
use vc_page::{AnswerSource, Document};

use super::*;

/// A twin that follows an engine, with what both sides know.
pub(super) fn following() -> (Twin, AnswerHandle, Arc<TwinProgress>) {
    following_with(channel().0)
}

fn following_with(copy_worker: Sender<CopyWork>) -> (Twin, AnswerHandle, Arc<TwinProgress>) {
    let progress = Arc::new(TwinProgress::default());
    let handle = AnswerHandle::default();
    let mut twin =
        Twin::new(handle.clone(), progress.clone(), Arc::default(), copy_worker, History::new(0));
    start(&mut twin, &progress);
    (twin, handle, progress)
}

/// Gives the twin the state of a new engine.
fn start(twin: &mut Twin, progress: &Arc<TwinProgress>) {
    let (mut engine, _warnings) = Engine::new(EngineOptions::default(), &Config::default());
    start_with(&mut engine, twin, progress);
}

/// Gives the twin the state of this engine.
pub(super) fn start_with(engine: &mut Engine, twin: &mut Twin, progress: &Arc<TwinProgress>) {
    let (sender, receiver) = channel();
    let mut feed = TwinFeed::new(move |input| drop(sender.send(input)), progress.clone());
    feed.start(engine);
    receiver.try_iter().for_each(|input| twin.take(input));
}

fn batch(digest: u64) -> TwinInput {
    let kind = BatchKind::Cycle;
    let events = vec![ClusterEvent::NodeDeleted { name: "n".into() }];
    TwinInput::Batch(EngineBatch { kind, events, now: CycleTime { unix_micros: 1 }, digest })
}

pub(super) fn nothing() -> u64 {
    EffectDigest::default().value()
}

/// The twin's thread copies the rows before it has the state stored, and the engine keeps its rows.
#[test]
fn ans_59_the_twin_takes_rows_of_its_own() {
    let (copy_worker, _work) = channel();
    let (mut twin, _handle, progress) = following_with(copy_worker);
    twin.history = History::new(1 << 20);
    let (mut engine, _warnings) = Engine::new(EngineOptions::default(), &Config::default());
    let node = |unschedulable: bool| {
        let record = NodeRecord { name: "n".into(), unschedulable, ..NodeRecord::default() };
        vec![ClusterEvent::NodeApplied(Box::new(record))]
    };
    engine.apply(node(false));
    let row = |engine: &Engine| {
        let cluster = engine.cluster();
        std::ptr::from_ref(&cluster.nodes[cluster.node("n").unwrap()])
    };
    let before = row(&engine);
    start_with(&mut engine, &mut twin, &progress);
    let of_twin = row(twin.engine.as_ref().unwrap());
    assert_eq!(row(&engine), before);
    assert_ne!(of_twin, before);
    engine.apply(node(true));
    assert_eq!(row(&engine), before, "the engine copies no row");
    assert_eq!(row(twin.engine.as_ref().unwrap()), of_twin);
}

#[test]
fn ans_57_a_twin_that_decides_otherwise_is_given_up() {
    let (mut twin, handle, progress) = following();
    assert!(handle.revision().is_err(), "no cycle is over yet");
    twin.take(batch(nothing()));
    assert!(handle.revision().is_ok() && progress.is_following());
    assert_eq!(progress.behind_micros(i64::MAX), 0, "all is applied");
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
    // The next one begins with the state of the engine.
    start(&mut twin, &progress);
    assert!(progress.is_following());
    twin.take(batch(nothing()));
    assert!(handle.revision().is_ok(), "{:?}", handle.revision());
}

#[test]
fn ans_60_a_question_that_panics_is_answered_and_the_next_one_too() {
    let (mut twin, handle, progress) = following();
    twin.take(batch(nothing()));
    twin.count_waiting();
    assert!(twin.view.is_some());
    let failed = twin.try_ask(&Question::Summary, |_, _, _| panic!("of the test"));
    let problem = failed.unwrap().err().unwrap();
    assert!(problem.code == 500 && problem.message.contains("answer "), "{problem:?}");
    assert!(twin.view.is_none(), "another copy is asked");
    twin.is_uncounted = true;
    twin.count_waiting();
    let answered = twin.try_ask(&Question::Summary, |view, engine, timeline| {
        let document = view.answer(engine, timeline, &Question::Summary)?;
        Ok(Answered { document, names: view.names() })
    });
    assert!(answered.unwrap().is_ok() && handle.revision().is_ok() && progress.is_following());
}

#[test]
fn ans_60_a_twin_that_panics_is_given_up() {
    let (mut twin, handle, progress) = following();
    let TwinInput::Batch(batch) = batch(nothing()) else { panic!() };
    twin.follow_by(batch, |_, _| panic!("of the test"));
    assert_eq!(handle.revision().unwrap_err().code, 503);
    assert!(!progress.is_following());
    let exported = twin.meter.metrics.encode();
    assert!(exported.contains("volcano_answers_given_up_total{cause=\"panic\"} 1"), "{exported}");
    start(&mut twin, &progress);
    assert!(progress.is_following());
}

#[tokio::test]
async fn ans_61_a_question_is_stopped_and_asked_again_once() {
    let (mut twin, handle, progress) = following();
    let (_sender, mut messages) = handle.lead(progress.clone());
    twin.take(batch(nothing()));
    for n_done in [0, 1] {
        progress.add_waiting(BUSY + 1);
        let (reply, answer) = tokio::sync::oneshot::channel();
        twin.answer(TwinQuestion { question: Question::Summary, asked: Instant::now(), reply });
        assert!(twin.view.is_none(), "another copy is asked");
        let Some(TwinMessage::StoppedQuestion(stopped)) = messages.recv().await else { panic!() };
        progress.took(n_done);
        twin.answer_again(stopped);
        let answered = answer.await.unwrap().err().map(|problem| (problem.code, problem.message));
        let busy = (503, "busy: 20001 changes wait".to_owned());
        assert_eq!(answered, (n_done == 0).then_some(busy));
        progress.took(BUSY + 1 - n_done);
    }
}

/// Takes the messages about a question that the other thread stops once or twice. Returns true if the second attempt is
/// answered.
async fn copy_answers(
    twin: &mut Twin,
    from_thread: &mut mpsc::UnboundedReceiver<TwinMessage>,
    after_first: impl FnOnce(),
) -> bool {
    let Some(TwinMessage::CopyStopped(question, QuestionAttempt::First)) = from_thread.recv().await
    else {
        panic!("it is not stopped")
    };
    after_first();
    twin.copy_stopped(question, QuestionAttempt::First);
    assert!(twin.is_copy_busy, "it is asked again");
    match from_thread.recv().await {
        Some(TwinMessage::CopyStopped(question, QuestionAttempt::Last)) => {
            twin.copy_stopped(question, QuestionAttempt::Last);
            false
        }
        Some(TwinMessage::CopyAnswered) => {
            twin.answer_next();
            true
        }
        _ => panic!("something else was sent"),
    }
}

#[tokio::test]
async fn ans_61_a_question_about_a_copy_is_stopped_and_asked_again_once() {
    let (copy_worker, work) = channel();
    let (mut twin, _handle, progress) = following_with(copy_worker);
    twin.take(batch(nothing()));
    let (to_twin, mut from_thread) = mpsc::unbounded_channel();
    let thread = std::thread::spawn(move || {
        super::super::copies::run(&work, &to_twin, &Meter::default());
    });
    for (question, n_done) in [
        (Question::WhatIf(Box::default()), 0),
        (Question::WhatIf(Box::default()), 1),
        (Question::Bundle { n_cycles: None }, 0),
        (Question::Bundle { n_cycles: None }, 1),
    ] {
        progress.add_waiting(BUSY + 1);
        let (reply, answer) = tokio::sync::oneshot::channel();
        twin.answer(TwinQuestion { question, asked: Instant::now(), reply });
        let is_answered = copy_answers(&mut twin, &mut from_thread, || progress.took(n_done)).await;
        assert_eq!(is_answered, n_done == 1);
        let answered = answer.await.unwrap().err().map(|problem| (problem.code, problem.message));
        let busy = (503, "busy: 20001 changes wait".to_owned());
        assert_eq!(answered, (n_done == 0).then_some(busy));
        assert!(!twin.is_copy_busy);
        progress.took(BUSY + 1 - n_done);
    }
    drop(twin);
    thread.join().unwrap();
}

/// The second thread does not go on with a question that nobody waits for, and is free for the next one.
#[test]
fn ans_61_a_question_about_a_copy_is_stopped_when_nobody_waits_for_it() {
    let (copy_worker, work) = channel();
    let (mut twin, _handle, _progress) = following_with(copy_worker);
    twin.take(batch(nothing()));
    for question in [Question::WhatIf(Box::default()), Question::Bundle { n_cycles: None }] {
        let (reply, answer) = tokio::sync::oneshot::channel();
        twin.answer(TwinQuestion { question, asked: Instant::now(), reply });
        drop(answer);
        let (to_thread, taken) = channel();
        assert!(to_thread.send(work.try_recv().unwrap()).is_ok());
        drop(to_thread);
        let (to_twin, mut from_thread) = mpsc::unbounded_channel();
        super::super::copies::run(&taken, &to_twin, &Meter::default());
        let Ok(TwinMessage::CopyStopped(question, attempt)) = from_thread.try_recv() else {
            panic!("it is not stopped")
        };
        twin.copy_stopped(question, attempt);
        assert!(!twin.is_copy_busy, "it is not asked again");
    }
}

/// A question that waits for the other thread gets its turn, whatever becomes of the one before it.
#[tokio::test]
async fn ans_61_others_that_wait_come_after_a_stopped_question() {
    let (copy_worker, work) = channel();
    let (mut twin, _handle, _progress) = following_with(copy_worker);
    twin.take(batch(nothing()));
    let ask = |twin: &mut Twin| {
        let (reply, answer) = tokio::sync::oneshot::channel();
        let question = Question::WhatIf(Box::default());
        twin.answer(TwinQuestion { question, asked: Instant::now(), reply });
        answer
    };
    let (first, _second) = (ask(&mut twin), ask(&mut twin));
    let stopped = |attempt: QuestionAttempt| {
        let Ok(CopyWork::Answer(sent)) = work.try_recv() else { panic!("nothing was sent") };
        assert_eq!(sent.attempt, attempt);
        let CopyQuestion { asked, reply, .. } = *sent;
        TwinQuestion { question: Question::WhatIf(Box::default()), asked, reply }
    };
    twin.copy_stopped(stopped(QuestionAttempt::First), QuestionAttempt::First);
    assert_eq!(twin.waiting_for_copy.len(), 1, "the stopped one comes first");
    twin.copy_stopped(stopped(QuestionAttempt::Last), QuestionAttempt::Last);
    assert_eq!(first.await.unwrap().unwrap_err().message, "busy: 0 changes wait");
    assert!(
        twin.waiting_for_copy.is_empty() && twin.is_copy_busy,
        "now it is the second one's turn"
    );
    stopped(QuestionAttempt::First);
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
async fn ans_100_a_bundle_holds_what_the_twin_was_given() {
    let (copy_worker, work) = channel();
    let (mut twin, _handle, progress) = following_with(copy_worker);
    twin.history = History::new(1 << 20);
    let engine = Engine::new(EngineOptions::default(), &Config::default()).0;
    twin.take(TwinInput::Start(Box::new(engine)));
    assert!(progress.is_following());
    twin.take(batch(nothing()));
    let (reply, answer) = tokio::sync::oneshot::channel();
    let question = Question::Bundle { n_cycles: None };
    twin.answer(TwinQuestion { question, asked: Instant::now(), reply });
    let (to_twin, mut from_thread) = tokio::sync::mpsc::unbounded_channel();
    let thread = std::thread::spawn(move || {
        super::super::copies::run(&work, &to_twin, &Meter::default());
    });
    let Some(TwinMessage::Stored(stored)) = from_thread.recv().await else { panic!() };
    twin.stored(stored);
    assert!(matches!(from_thread.recv().await, Some(TwinMessage::CopyAnswered)));
    let bundle = |document| {
        let Document::Bundle(file) = document else { panic!() };
        vc_bundle::Bundle::read(&*file.contents).unwrap()
    };
    let early = bundle(answer.await.unwrap().unwrap().document);
    let range = |it: &vc_bundle::Bundle| (it.manifest().first_cycle, it.manifest().last_cycle);
    assert_eq!(range(&early), (1, 1), "the state of its moment, as none was stored yet");
    for name in ["conf/1.yaml", "explanations.json", "metrics.txt"] {
        assert!(early.file(name).is_some_and(|file| !file.is_empty()), "{name}");
    }
    let files = &early.manifest().files;
    assert!(!files.contains_key(vc_bundle::OBJECTS), "who receives it makes the objects");
    twin.answer_next();
    let (reply, answer) = tokio::sync::oneshot::channel();
    let question = Question::Bundle { n_cycles: None };
    twin.answer(TwinQuestion { question, asked: Instant::now(), reply });
    let later = bundle(answer.await.unwrap().unwrap().document);
    assert_eq!(range(&later), (0, 1));
    let mut replay = vc_bundle::Replay::new(&later, None).unwrap();
    assert!(replay.step().unwrap().is_same && replay.step().is_none());
    drop(twin);
    thread.join().unwrap();
}

#[tokio::test]
async fn ans_58_changes_are_supposed_on_another_thread_one_copy_at_a_time() {
    let (copy_worker, work) = channel();
    let (mut twin, _handle, _progress) = following_with(copy_worker);
    twin.take(batch(nothing()));
    let mut replies = Vec::new();
    for _ in 0..2 {
        let (reply, answer) = tokio::sync::oneshot::channel();
        let question = Question::WhatIf(Box::default());
        twin.answer(TwinQuestion { question, asked: Instant::now(), reply });
        replies.push(answer);
    }
    assert_eq!(twin.waiting_for_copy.len(), 1, "the second one waits");
    let (to_twin, mut from_thread) = tokio::sync::mpsc::unbounded_channel();
    let thread = std::thread::spawn(move || {
        super::super::copies::run(&work, &to_twin, &Meter::default());
    });
    // The twin follows on meanwhile.
    twin.take(batch(nothing()));
    for (waiting, reply) in [0, 0].into_iter().zip(replies) {
        let answered = reply.await.unwrap().unwrap();
        assert!(matches!(answered.document, Document::WhatIf(_)));
        assert!(matches!(from_thread.recv().await, Some(TwinMessage::CopyAnswered)));
        twin.answer_next();
        assert_eq!(twin.waiting_for_copy.len(), waiting);
    }
    drop(twin);
    thread.join().unwrap();
}
