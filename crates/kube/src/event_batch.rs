//! Events on their way to the engine, with copies for the twin that are made on the threads of those who
//! send them: the engine's thread moves them, unread. Specification: answers.md 10 (ANS-56, ANS-59).

use std::sync::Arc;

use vc_model::ClusterEvent;

use crate::inbox::EngineMessage;
use crate::twin_feed::TwinProgress;

/// Makes the message of an event, with a copy while a twin follows.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventCopies {
    /// `None`: there is no twin.
    twin: Option<Arc<TwinProgress>>,
}

impl EventCopies {
    /// Returns what makes copies for the twin of this progress.
    pub(crate) fn of(twin: Option<Arc<TwinProgress>>) -> Self {
        Self { twin }
    }

    /// Returns the message.
    pub(crate) fn message(&self, event: ClusterEvent) -> EngineMessage {
        match self.twin.as_ref().is_some_and(|twin| twin.is_following()) {
            true => EngineMessage::Copied { copy: event.clone(), event },
            false => EngineMessage::Event(event),
        }
    }
}

/// Events that the engine is given at once.
#[derive(Debug, Default)]
pub struct EventBatch {
    /// The events, in order.
    pub events: Vec<ClusterEvent>,
    /// Copies, with the places of their events. An event without one was sent when no twin followed.
    copies: Vec<(usize, ClusterEvent)>,
}

impl EventBatch {
    /// Adds an event with its copy.
    pub fn push(&mut self, event: ClusterEvent, copy: Option<ClusterEvent>) {
        self.copies.extend(copy.map(|copy| (self.events.len(), copy)));
        self.events.push(event);
    }

    /// Returns a copy of each event. Those are made here that no sender has made.
    pub(crate) fn take_copies(&mut self) -> Vec<ClusterEvent> {
        let copies = std::mem::take(&mut self.copies);
        if copies.len() == self.events.len() {
            return copies.into_iter().map(|(_, copy)| copy).collect();
        }
        let mut copies = copies.into_iter().peekable();
        let of_event = |(place, event): (usize, &ClusterEvent)| {
            let copy = copies.next_if(|(other, _)| *other == place);
            copy.map_or_else(|| event.clone(), |(_, copy)| copy)
        };
        self.events.iter().enumerate().map(of_event).collect()
    }
}

impl From<Vec<ClusterEvent>> for EventBatch {
    fn from(events: Vec<ClusterEvent>) -> Self {
        Self { events, copies: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str) -> ClusterEvent {
        ClusterEvent::NodeDeleted { name: name.into() }
    }

    /// The copies that were made by the sender are handed on; others are made from their events.
    #[test]
    fn ans_56_copies_stand_in_the_order_of_their_events() {
        let mut batch = EventBatch::default();
        batch.push(event("a"), None);
        batch.push(event("b"), Some(event("copy of b")));
        batch.push(event("c"), None);
        batch.push(event("d"), Some(event("copy of d")));
        let name = |it: &ClusterEvent| match it {
            ClusterEvent::NodeDeleted { name } => name.to_string(),
            other => panic!("{other:?}"),
        };
        let copies: Vec<String> = batch.take_copies().iter().map(name).collect();
        assert_eq!(copies, ["a", "copy of b", "c", "copy of d"]);
        let events: Vec<String> = batch.events.iter().map(name).collect();
        assert_eq!(events, ["a", "b", "c", "d"]);
    }

    #[test]
    fn ans_56_senders_copy_while_a_twin_follows() {
        let is_copied = |copies: &EventCopies| {
            matches!(copies.message(event("a")), EngineMessage::Copied { .. })
        };
        assert!(!is_copied(&EventCopies::default()));
        let progress = Arc::new(TwinProgress::default());
        let copies = EventCopies::of(Some(progress.clone()));
        assert!(!is_copied(&copies), "there is no twin yet");
        progress.begin();
        assert!(is_copied(&copies));
        progress.give_up();
        assert!(!is_copied(&copies));
    }
}
