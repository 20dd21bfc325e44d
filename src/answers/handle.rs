//! The way from the port to the twin, and what is known of it. Specification: answers.md 10
//! (ANS-58, ANS-60, ANS-63), 16.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{mpsc, oneshot, watch};
use vc_bundle::{EncodedCheckpoint, SegmentId};
use vc_kube::{TwinInput, TwinProgress, wall_micros};
use vc_page::{AnswerSource, Answered, Problem, Question, time_text};

/// Events that wait for the twin; beyond it new questions are refused, and the one that runs is stopped.
pub(super) const BUSY: usize = 20_000;

/// What the thread of the twin takes, in order.
pub(crate) enum TwinMessage {
    Input(TwinInput),
    Question(TwinQuestion),
    /// A question that was stopped, and is asked for the second and last time.
    StoppedQuestion(TwinQuestion),
    /// The thread that works on copies has answered a question.
    CopyAnswered,
    /// That thread gives back a question that was stopped.
    CopyStopped(TwinQuestion, QuestionAttempt),
    /// That thread has stored a copy.
    Stored(StoredCheckpoint),
}

/// The state with which a segment of the history begins, or why it was not stored.
pub(crate) struct StoredCheckpoint {
    pub(crate) segment: SegmentId,
    pub(crate) checkpoint: Result<EncodedCheckpoint, String>,
}

/// The attempt to answer a question. A question that was stopped is asked again once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuestionAttempt {
    First,
    Last,
}

/// A question with the way back.
pub(crate) struct TwinQuestion {
    pub(crate) question: Question,
    pub(crate) asked: Instant,
    pub(crate) reply: oneshot::Sender<Result<Answered, Problem>>,
}

/// How far the twin is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum TwinPhase {
    /// The process has just started, or the first cycle is not over.
    #[default]
    Starting,
    /// Another process leads. Its identity is empty if it is not known.
    Standby(String),
    /// It answers.
    Serving,
    /// It was given up at this time, for this cause.
    GivenUp(String, &'static str),
}

/// Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub struct AnswerHandle(Arc<HandleState>);

#[derive(Default)]
struct HandleState {
    phase: watch::Sender<TwinPhase>,
    /// Changes whenever answers may change.
    revision: AtomicU64,
    /// The thread of the twin, once this process leads.
    thread: Mutex<Option<TwinThread>>,
}

/// Both ends of the way to the thread of the twin.
type TwinChannel = (mpsc::UnboundedSender<TwinMessage>, mpsc::UnboundedReceiver<TwinMessage>);

struct TwinThread {
    sender: mpsc::UnboundedSender<TwinMessage>,
    progress: Arc<TwinProgress>,
    /// Tells the answers of this process from those of others.
    start_micros: i64,
}

/// Returns what is answered while so many changes wait for the twin.
pub(super) fn busy(n_waiting: usize) -> Problem {
    Problem::unavailable(format!("busy: {n_waiting} changes wait"))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is one assignment: nothing is half done after a panic.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AnswerHandle {
    /// This process waits for the Lease, which another one holds.
    pub(crate) fn stands_by(&self, leader: Option<&str>) {
        let leader = leader.unwrap_or_default().to_owned();
        self.0.phase.send_replace(TwinPhase::Standby(leader));
    }

    /// This process leads. Returns the way to the thread of the twin, and what that takes.
    pub(crate) fn lead(&self, progress: Arc<TwinProgress>) -> TwinChannel {
        self.0.phase.send_replace(TwinPhase::Starting);
        let (sender, receiver) = mpsc::unbounded_channel();
        let thread = TwinThread { sender: sender.clone(), progress, start_micros: wall_micros() };
        *lock(&self.0.thread) = Some(thread);
        (sender, receiver)
    }

    /// The twin answers.
    pub(crate) fn serves(&self) {
        self.0.phase.send_if_modified(|phase| {
            std::mem::replace(phase, TwinPhase::Serving) != TwinPhase::Serving
        });
    }

    /// Returns when the twin answers.
    pub(crate) async fn is_serving(&self) {
        let mut phase = self.0.phase.subscribe();
        // The sender is this handle's own.
        drop(phase.wait_for(|phase| *phase == TwinPhase::Serving).await);
    }

    /// There is no twin at the moment.
    pub(crate) fn given_up(&self, cause: &'static str) {
        self.0.phase.send_replace(TwinPhase::GivenUp(time_text(wall_micros()), cause));
    }

    /// Answers may differ from now on.
    pub(crate) fn changed(&self) {
        self.0.revision.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the age of the oldest batch of changes that the twin has not applied, in seconds; 0 if there
    /// is none, or no twin.
    pub(crate) fn behind_seconds(&self) -> f64 {
        let thread = lock(&self.0.thread);
        let micros = thread.as_ref().map_or(0, |it| it.progress.behind_micros(wall_micros()));
        micros as f64 / 1e6
    }

    /// Asks a question that was stopped once more, after the changes that wait now.
    pub(super) fn ask_again(&self, question: TwinQuestion) {
        let sender = lock(&self.0.thread).as_ref().map(|thread| thread.sender.clone());
        // Without a thread nobody is answered any more.
        if let Some(sender) = sender {
            drop(sender.send(TwinMessage::StoppedQuestion(question)));
        }
    }

    fn check(&self) -> Result<(), Problem> {
        let problem = match &*self.0.phase.borrow() {
            TwinPhase::Serving => return Ok(()),
            TwinPhase::Starting => "lists are being read".to_owned(),
            TwinPhase::Standby(leader) => match leader.rsplit_once('_') {
                Some((host, _)) => format!("{host} leads"),
                None if leader.is_empty() => "another process leads".to_owned(),
                None => format!("{leader} leads"),
            },
            TwinPhase::GivenUp(since, cause) => format!("answers are off since {since}: {cause}"),
        };
        Err(Problem::unavailable(problem))
    }
}

impl AnswerSource for AnswerHandle {
    fn revision(&self) -> Result<String, Problem> {
        self.check()?;
        let start = lock(&self.0.thread).as_ref().map_or(0, |thread| thread.start_micros);
        Ok(format!("{start}-{}", self.0.revision.load(Ordering::Relaxed)))
    }

    async fn ask(&self, question: Question) -> Result<Answered, Problem> {
        self.check()?;
        let n_waiting = lock(&self.0.thread).as_ref().map_or(0, |it| it.progress.n_waiting());
        if BUSY < n_waiting {
            return Err(busy(n_waiting));
        }
        let (reply, answer) = oneshot::channel();
        let question = TwinQuestion { question, asked: Instant::now(), reply };
        let ended = || Problem::unavailable("the process ends");
        let is_sent = lock(&self.0.thread)
            .as_ref()
            .is_some_and(|thread| thread.sender.send(TwinMessage::Question(question)).is_ok());
        if !is_sent {
            return Err(ended());
        }
        answer.await.unwrap_or_else(|_| Err(ended()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(handle: &AnswerHandle) -> String {
        let problem = handle.revision().unwrap_err();
        assert_eq!((problem.code, problem.retry_after.is_some()), (503, true));
        problem.message
    }

    #[test]
    fn ans_16_whoever_cannot_answer_says_why() {
        let handle = AnswerHandle::default();
        assert_eq!(refused(&handle), "lists are being read");
        handle.stands_by(Some("vc-scheduler-abc_0123"));
        assert_eq!(refused(&handle), "vc-scheduler-abc leads");
        handle.stands_by(Some("somebody"));
        assert_eq!(refused(&handle), "somebody leads");
        handle.stands_by(None);
        assert_eq!(refused(&handle), "another process leads");
        let _channel = handle.lead(Arc::default());
        assert_eq!(refused(&handle), "lists are being read");
        handle.given_up("too much waits");
        let text = refused(&handle);
        assert!(text.starts_with("answers are off since 2"), "{text}");
        assert!(text.ends_with(": too much waits"), "{text}");
    }

    #[tokio::test]
    async fn ans_61_nobody_is_answered_while_too_many_events_wait() {
        let handle = AnswerHandle::default();
        let progress = Arc::new(TwinProgress::default());
        let (_sender, receiver) = handle.lead(progress.clone());
        handle.serves();
        progress.add_waiting(BUSY + 1);
        let problem = handle.ask(Question::Queues).await.unwrap_err();
        assert_eq!((problem.code, problem.retry_after), (503, Some(2)));
        assert_eq!(problem.message, "busy: 20001 changes wait");
        // One less, and the question is sent; here nobody takes it.
        progress.took(1);
        drop(receiver);
        let problem = handle.ask(Question::Queues).await.unwrap_err();
        assert_eq!(problem.message, "the process ends");
    }

    #[tokio::test]
    async fn ans_72_the_revision_changes_with_the_answers() {
        let handle = AnswerHandle::default();
        let (_sender, receiver) = handle.lead(Arc::default());
        handle.serves();
        let first = handle.revision().unwrap();
        assert_eq!(handle.revision().unwrap(), first);
        handle.changed();
        assert_ne!(handle.revision().unwrap(), first);
        drop(receiver);
        assert_eq!(handle.ask(Question::Queues).await.unwrap_err().code, 503);
    }
}
