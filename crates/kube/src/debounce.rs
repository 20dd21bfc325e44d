//! Events that say why a PodGroup waits rest for a while, as its status does: a group that arrives
//! piece by piece waits for the next piece, and one that is placed meanwhile waits for nothing.
//! Specification: core.md 7.6 (C-30), 7.9.

use std::collections::VecDeque;
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::time::Instant;

use crate::correlate::{EventNote, EventSubject};

/// Volcano's period, so nobody sees it later than from Volcano.
const REST: Duration = Duration::from_secs(1);
/// Events that rest at most; more go their way at once.
const MOST: usize = 16_384;

/// The newest event of each group that waits.
#[derive(Default)]
pub(crate) struct Debounce {
    notes: FxHashMap<EventSubject, EventNote>,
    /// In the order of their ends; an entry may be stale.
    order: VecDeque<(Instant, EventSubject)>,
}

impl Debounce {
    /// Returns the number of events that rest, with entries that are stale.
    pub(crate) fn n_entries(&self) -> usize {
        self.notes.len() + self.order.len()
    }

    /// `None`: it rests now.
    pub(crate) fn take_in(&mut self, note: EventNote, now: Instant) -> Option<EventNote> {
        if !(note.warning && note.reason == "Unschedulable") {
            if note.reason == "Scheduled" {
                self.notes.remove(&note.about);
            }
            return Some(note);
        }
        if MOST <= self.notes.len() {
            return Some(note);
        }
        let about = note.about.clone();
        if self.notes.insert(about.clone(), note).is_none() {
            self.order.push_back((now + REST, about));
        }
        None
    }

    /// Waits for the next one that has rested; without an end, if none does.
    pub(crate) async fn rested(&mut self) -> EventNote {
        loop {
            let Some((end, _)) = self.order.front() else { return std::future::pending().await };
            tokio::time::sleep_until(*end).await;
            if let Some(note) = self.wake() {
                return note;
            }
        }
    }

    /// The first one, rested or not.
    pub(crate) fn first(&mut self) -> Option<EventNote> {
        while !self.order.is_empty() {
            if let Some(note) = self.wake() {
                return Some(note);
            }
        }
        None
    }

    fn wake(&mut self) -> Option<EventNote> {
        let (_, about) = self.order.pop_front()?;
        self.notes.remove(&about)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(group: &str, warning: bool, reason: &'static str, message: &str) -> EventNote {
        let about = EventSubject {
            api_version: "scheduling.volcano.sh/v1beta1",
            kind: "PodGroup",
            namespace: "ns".into(),
            name: group.into(),
            uid: group.into(),
        };
        EventNote { about, warning, reason, message: message.into() }
    }

    fn waits(group: &str, message: &str) -> EventNote {
        note(group, true, "Unschedulable", message)
    }

    #[tokio::test(start_paused = true)]
    async fn the_newest_reason_is_told_after_a_second_and_none_of_a_placed_group() {
        let (mut debounce, start) = (Debounce::default(), Instant::now());
        for (group, message) in [("a", "0/0"), ("b", "0/0"), ("a", "1/2")] {
            assert_eq!(debounce.take_in(waits(group, message), Instant::now()), None);
        }
        let placed = note("b", false, "Scheduled", "pod group is ready");
        assert_eq!(debounce.take_in(placed.clone(), Instant::now()), Some(placed));
        assert_eq!(debounce.rested().await, waits("a", "1/2"));
        assert_eq!(start.elapsed(), REST);
        assert_eq!(debounce.first(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn others_do_not_rest_and_at_the_end_nothing_does() {
        let mut debounce = Debounce::default();
        let refused = note("a", false, "Unschedulable", "queue resource quota insufficient");
        assert_eq!(debounce.take_in(refused.clone(), Instant::now()), Some(refused));
        assert_eq!(debounce.take_in(waits("a", "1/2"), Instant::now()), None);
        assert_eq!(debounce.first(), Some(waits("a", "1/2")));
    }
}
