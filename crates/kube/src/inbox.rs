//! What reaches the engine's thread, and when a cycle starts: as soon as something that could change
//! a decision has arrived, or at the fixed pace of Volcano. Specification: core.md 11.

use std::fmt;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use vc_engine::{Engine, EngineCommand, Warning};
use vc_model::{ClusterEvent, PodGroupPhase, PodPhase};
use vc_wire::Kind;

use crate::event_batch::EventBatch;

/// Messages that wait at most; a longer queue holds back the watches. A pod is some kilobytes.
const WAITING: usize = 4096;
/// Messages that are taken at once.
pub(crate) const TAKEN: usize = 1024;

/// A message to the engine's thread. The order of one sender is kept.
#[derive(Debug)]
pub enum EngineMessage {
    Event(ClusterEvent),
    /// An event with the copy of it that the twin gets.
    Copied {
        event: ClusterEvent,
        copy: ClusterEvent,
    },
    /// Everything of the first list of this kind was sent before.
    Synced(Kind),
    /// Something to do with the engine between two cycles.
    Visit(EngineVisit),
    /// No more decisions are wanted.
    Stop,
}

impl EngineMessage {
    /// `None`: it is something else.
    pub(crate) fn event(self) -> Option<ClusterEvent> {
        match self {
            Self::Event(event) | Self::Copied { event, .. } => Some(event),
            Self::Synced(_) | Self::Visit(_) | Self::Stop => None,
        }
    }
}

/// Runs on the engine's thread between two cycles.
pub struct EngineVisit(VisitAction);

enum VisitAction {
    Look(Box<dyn FnOnce(&Engine) + Send>),
    Copy(Box<dyn FnOnce(&Engine) + Send>),
    Change { commands: Vec<EngineCommand>, then: Box<dyn FnOnce(Vec<Warning>) + Send> },
}

impl EngineVisit {
    /// Only looks; the next cycle starts when it would have.
    pub fn look(act: impl FnOnce(&Engine) + Send + 'static) -> Self {
        Self(VisitAction::Look(Box::new(act)))
    }

    /// Only looks, as [`EngineVisit::look`] does. Copies that `act` makes of the state share the tables with
    /// the engine until either side writes to them, so that they cost little.
    pub fn copy(act: impl FnOnce(&Engine) + Send + 'static) -> Self {
        Self(VisitAction::Copy(Box::new(act)))
    }

    /// Could change decisions, so that a cycle follows as after any change. `then` gets what there is
    /// to warn of.
    pub fn change(
        commands: Vec<EngineCommand>,
        then: impl FnOnce(Vec<Warning>) + Send + 'static,
    ) -> Self {
        Self(VisitAction::Change { commands, then: Box::new(then) })
    }

    pub(crate) fn changes(&self) -> bool {
        matches!(self.0, VisitAction::Change { .. })
    }

    /// Runs it. `command` is called with each command before it is run.
    pub fn pay(self, engine: &mut Engine, mut command: impl FnMut(&EngineCommand)) {
        match self.0 {
            VisitAction::Look(act) => act(engine),
            VisitAction::Copy(act) => {
                engine.share();
                act(engine);
            }
            VisitAction::Change { commands, then } => {
                let run = |it: EngineCommand| {
                    command(&it);
                    it.run(engine)
                };
                then(commands.into_iter().flat_map(run).collect());
            }
        }
    }
}

impl fmt::Debug for EngineVisit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Visit").field("changes", &self.changes()).finish_non_exhaustive()
    }
}

/// A bounded channel to the engine's thread.
pub fn inbox() -> (mpsc::Sender<EngineMessage>, mpsc::Receiver<EngineMessage>) {
    mpsc::channel(WAITING)
}

/// `--schedule-trigger`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleTrigger {
    /// A change starts a cycle.
    Change,
    /// A fixed pause, as Volcano.
    Period,
}

/// When cycles start.
#[derive(Clone, Copy, Debug)]
pub struct CyclePace {
    pub trigger: ScheduleTrigger,
    /// Longest (`Change`) or only (`Period`) pause between two cycles.
    pub period: Duration,
    /// How long changes are gathered at most once there is one.
    pub gather: Duration,
}

/// A pause in which no change comes ends the gathering after this part of its time.
const LULL: u32 = 4;
/// How long changes are gathered at most that make neither room nor work, and any changes while
/// decisions wait to be written.
const LONG: Duration = Duration::from_millis(100);
/// How long after a failed write a cycle follows at the latest.
const REPEAT: Duration = Duration::from_secs(1);
/// In which a decision is written by a fast server. A decision that would wait behind others is not
/// due before they are written.
const PER_WRITE: Duration = Duration::from_micros(200);

impl CyclePace {
    /// The pace while so many decisions wait to be written.
    pub(crate) fn behind(self, n_waiting: usize) -> Self {
        let n_waiting = u32::try_from(n_waiting).unwrap_or(u32::MAX);
        let until_written = PER_WRITE.saturating_mul(n_waiting).min(LONG);
        Self { gather: self.gather.max(until_written), ..self }
    }

    /// The pause after a cycle. `last`: what that took, so that dear ones are rarer.
    pub(crate) fn pause(self, last: Duration) -> CyclePause {
        let due = Instant::now() + self.period;
        let lull = (self.gather / LULL).max(last);
        CyclePause { pace: self, due, lull_ends: due, lull }
    }
}

/// What a pause ends with, or is interrupted by.
#[derive(Debug)]
pub(crate) enum PauseEnd {
    /// The events for a cycle, which is due.
    Cycle(EventBatch),
    /// The events so far. A bind that was decided before may have waited for them; the pause is not
    /// over.
    Written(EventBatch),
    /// No more decisions are wanted. The events so far, as for `Written`.
    Stop(EventBatch),
}

/// The pause between two cycles.
#[derive(Debug)]
pub(crate) struct CyclePause {
    pace: CyclePace,
    due: Instant,
    lull_ends: Instant,
    /// A time without changes that ends the gathering.
    lull: Duration,
}

impl CyclePause {
    /// A cycle is due after this time, whatever comes. `None`: nothing waits for one.
    pub(crate) fn end_by(&mut self, after: Option<Duration>) {
        let after = after.filter(|_| self.pace.trigger == ScheduleTrigger::Change);
        self.due = after.map_or(self.due, |after| self.due.min(Instant::now() + after));
    }

    /// Gathers events. Visits are handed on as they come.
    pub(crate) async fn next(
        &mut self,
        inbox: &mut mpsc::Receiver<EngineMessage>,
        mut visit: impl FnMut(EngineVisit),
    ) -> PauseEnd {
        let (mut events, mut taken) = (EventBatch::default(), Vec::new());
        loop {
            let until = self.due.min(self.lull_ends);
            match timeout_at(until, inbox.recv_many(&mut taken, TAKEN)).await {
                Err(_) => return PauseEnd::Cycle(events),
                Ok(0) => return PauseEnd::Stop(events),
                Ok(_) => {}
            }
            let (mut is_written, mut stops) = (false, false);
            for message in taken.drain(..) {
                self.hear(&message);
                match message {
                    EngineMessage::Stop => stops = true,
                    EngineMessage::Synced(_) => {}
                    EngineMessage::Visit(one) => visit(one),
                    EngineMessage::Event(event) => {
                        is_written |= lets_a_bind_go_on(&event);
                        events.push(event, None);
                    }
                    EngineMessage::Copied { event, copy } => {
                        is_written |= lets_a_bind_go_on(&event);
                        events.push(event, Some(copy));
                    }
                }
            }
            if stops {
                return PauseEnd::Stop(events);
            }
            // A channel that is never empty must not put the cycle off.
            if self.due <= Instant::now() {
                return PauseEnd::Cycle(events);
            }
            if is_written {
                return PauseEnd::Written(events);
            }
        }
    }

    /// A change brings the cycle nearer.
    fn hear(&mut self, message: &EngineMessage) {
        if self.pace.trigger == ScheduleTrigger::Period {
            return;
        }
        let (now, gather) = (Instant::now(), self.pace.gather);
        match weight(message) {
            MessageWeight::None => {}
            MessageWeight::Failed => self.due = self.due.min(now + gather.max(REPEAT)),
            MessageWeight::Light => self.due = self.due.min(now + gather.max(LONG)),
            MessageWeight::Full => {
                (self.due, self.lull_ends) = (self.due.min(now + gather), now + self.lull)
            }
        }
    }
}

/// What a bind waits for that was decided: its volumes and claims. Nothing new is decided by it, so
/// that it needs no cycle (plugins-nodes.md 2.8).
fn lets_a_bind_go_on(event: &ClusterEvent) -> bool {
    matches!(
        event,
        ClusterEvent::VolumesWritten { .. }
            | ClusterEvent::PreBindFailed { .. }
            | ClusterEvent::StorageApplied(_)
            | ClusterEvent::StorageDeleted { .. }
    )
}

/// What a message means for the next cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageWeight {
    None,
    /// Something is to be repeated, or its pause begins.
    Failed,
    /// It changes what is written, hardly what is decided.
    Light,
    /// It could change decisions.
    Full,
}

/// Answers to our own writes change nothing; what failed is tried again after a second or the period,
/// not at once. A pod that has got its node and a PodGroup that has its pods make neither room nor work:
/// most of them are echoes of our own writes.
fn weight(message: &EngineMessage) -> MessageWeight {
    let event = match message {
        EngineMessage::Event(event) | EngineMessage::Copied { event, .. } => event,
        EngineMessage::Visit(visit) if visit.changes() => return MessageWeight::Full,
        EngineMessage::Visit(_) | EngineMessage::Synced(_) | EngineMessage::Stop => {
            return MessageWeight::None;
        }
    };
    match event {
        ClusterEvent::PodGroupWritten { .. } => MessageWeight::None,
        ClusterEvent::PodGroupFailed { .. }
        | ClusterEvent::QueueFailed { .. }
        | ClusterEvent::NodeShardFailed { .. }
        | ClusterEvent::UsageNotSaved
        | ClusterEvent::BindFailed { .. }
        | ClusterEvent::PreBindFailed { .. }
        | ClusterEvent::EvictFailed { .. }
        | ClusterEvent::PodStatusFailed { .. }
        | ClusterEvent::PodRead { .. } => MessageWeight::Failed,
        ClusterEvent::PodApplied(pod)
            if pod.node_name.is_some() && pod.phase == PodPhase::Pending && !pod.deleting =>
        {
            MessageWeight::Light
        }
        ClusterEvent::PodGroupApplied(group) if group.status.phase == PodGroupPhase::Running => {
            MessageWeight::Light
        }
        _ => MessageWeight::Full,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use vc_model::PodRecord;
    use vc_wire::SlimPodGroup;

    use super::*;

    const CHANGE: CyclePace = CyclePace {
        trigger: ScheduleTrigger::Change,
        period: Duration::from_secs(1),
        gather: Duration::from_millis(10),
    };

    fn node(name: &str) -> EngineMessage {
        EngineMessage::Event(ClusterEvent::NodeDeleted { name: name.into() })
    }

    fn failed() -> EngineMessage {
        EngineMessage::Event(ClusterEvent::QueueFailed { name: "q".into() })
    }

    /// Number of events and milliseconds until the cycle.
    async fn next(pace: CyclePace, messages: Vec<EngineMessage>) -> Option<(usize, u128)> {
        let (sender, mut receiver) = inbox();
        for message in messages {
            sender.send(message).await.unwrap();
        }
        let start = Instant::now();
        let events = cycle(pace, Duration::ZERO, &mut receiver).await?;
        Some((events.len(), start.elapsed().as_millis()))
    }

    async fn cycle(
        pace: CyclePace,
        last: Duration,
        receiver: &mut mpsc::Receiver<EngineMessage>,
    ) -> Option<Vec<ClusterEvent>> {
        match pace.pause(last).next(receiver, |_| {}).await {
            PauseEnd::Cycle(batch) => Some(batch.events),
            PauseEnd::Written(events) => panic!("not over yet: {events:?}"),
            PauseEnd::Stop(_) => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_starts_a_cycle_when_no_more_comes() {
        assert_eq!(next(CHANGE, vec![node("a"), node("b"), failed()]).await, Some((3, 3)));
        assert_eq!(next(CHANGE, vec![]).await, Some((0, 1000)));
        assert_eq!(
            next(CHANGE, vec![failed(), EngineMessage::Synced(Kind::Pod)]).await,
            Some((1, 1000))
        );
    }

    fn bound(node: Option<&str>, phase: PodPhase) -> EngineMessage {
        let node_name = node.map(Into::into);
        let pod = PodRecord { node_name, phase, ..PodRecord::default() };
        EngineMessage::Event(ClusterEvent::PodApplied(Box::new(pod)))
    }

    fn group(phase: PodGroupPhase) -> EngineMessage {
        let object = json!({"metadata": {"name": "g", "namespace": "ns", "uid": "u"},
            "status": {"phase": phase.as_str()}});
        let slim: SlimPodGroup = serde_json::from_value(object).unwrap();
        let (group, _) = slim.to_record().unwrap();
        EngineMessage::Event(ClusterEvent::PodGroupApplied(Box::new(group)))
    }

    #[tokio::test(start_paused = true)]
    async fn what_makes_neither_room_nor_work_is_gathered_longer() {
        let cases = [
            (vec![bound(Some("n"), PodPhase::Pending)], 100),
            (vec![group(PodGroupPhase::Running)], 100),
            (vec![group(PodGroupPhase::Inqueue)], 3),
            (vec![bound(None, PodPhase::Pending)], 3),
            (vec![bound(Some("n"), PodPhase::Running)], 3),
            (vec![bound(Some("n"), PodPhase::Pending), node("a")], 3),
        ];
        for (messages, millis) in cases {
            let count = messages.len();
            assert_eq!(next(CHANGE, messages).await, Some((count, millis)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn behind_many_writes_more_is_gathered() {
        for (n_waiting, millis) in [(0, 3), (50, 3), (100, 5), (500, 25), (1_000_000, 25)] {
            let pace = CHANGE.behind(n_waiting);
            assert_eq!(next(pace, vec![node("a")]).await, Some((1, millis)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_visit_that_changes_something_starts_a_cycle() {
        let visits = [
            (EngineVisit::look(|_| {}), 1000),
            (EngineVisit::copy(|_| {}), 1000),
            (EngineVisit::change(Vec::new(), |_| {}), 3),
        ];
        for (visit, millis) in visits {
            assert_eq!(next(CHANGE, vec![EngineMessage::Visit(visit)]).await, Some((0, millis)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn period_waits_whatever_comes() {
        let pace = CyclePace { trigger: ScheduleTrigger::Period, ..CHANGE };
        assert_eq!(next(pace, vec![node("a")]).await, Some((1, 1000)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_bind_waits_for_is_handed_on_at_once_and_the_pause_goes_on() {
        let pace = CyclePace { trigger: ScheduleTrigger::Period, ..CHANGE };
        let (sender, mut receiver) = inbox();
        let mut pause = pace.pause(Duration::ZERO);
        let start = Instant::now();
        for n_before in [1, 0] {
            for _ in 0..n_before {
                sender.send(node("a")).await.unwrap();
            }
            let (uid, objects, devices) = ("u".into(), Vec::new(), Vec::new());
            let written = ClusterEvent::VolumesWritten { uid, objects, devices };
            sender.send(EngineMessage::Event(written)).await.unwrap();
            let next = pause.next(&mut receiver, |_| {}).await;
            assert!(matches!(next, PauseEnd::Written(batch) if batch.events.len() == n_before + 1));
            assert!(start.elapsed().is_zero());
        }
        sender.send(node("b")).await.unwrap();
        let next = pause.next(&mut receiver, |_| {}).await;
        assert!(matches!(next, PauseEnd::Cycle(batch) if batch.events.len() == 1));
        assert_eq!(start.elapsed(), pace.period);
    }

    #[tokio::test(start_paused = true)]
    async fn stop_ends_it_and_so_does_a_closed_channel() {
        assert_eq!(next(CHANGE, vec![node("a"), EngineMessage::Stop]).await, None);
        let (sender, mut receiver) = inbox();
        for message in [failed(), EngineMessage::Stop, node("a")] {
            sender.send(message).await.unwrap();
        }
        let end = CHANGE.pause(Duration::ZERO).next(&mut receiver, |_| {}).await;
        assert!(matches!(end, PauseEnd::Stop(batch) if batch.events.len() == 2), "nothing is lost");
        let (sender, mut receiver) = inbox();
        drop(sender);
        assert!(cycle(CHANGE, Duration::ZERO, &mut receiver).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_does_not_put_the_cycle_off() {
        let (sender, mut receiver) = inbox();
        let flood = tokio::spawn(async move {
            while sender.send(node("a")).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        let events = cycle(CHANGE, Duration::ZERO, &mut receiver).await.unwrap();
        assert!((8..20).contains(&events.len()), "{}", events.len());
        flood.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_dear_cycle_the_whole_window_is_used() {
        for (last, millis) in [(5, 5), (500, 10)] {
            let (sender, mut receiver) = inbox();
            sender.send(node("a")).await.unwrap();
            let start = Instant::now();
            let last = Duration::from_millis(last);
            cycle(CHANGE, last, &mut receiver).await.unwrap();
            assert_eq!(start.elapsed().as_millis(), millis);
        }
    }
}
