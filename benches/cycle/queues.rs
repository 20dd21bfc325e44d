//! Queues by number, and groups in them.

use vc_model::ClusterEvent;

/// Name of the queue of this number.
pub(crate) fn name(number: u64) -> String {
    format!("queue-{number:04}")
}

/// The same event with the group in the queue of this number.
pub(crate) fn in_queue(mut event: ClusterEvent, number: u64) -> ClusterEvent {
    if let ClusterEvent::PodGroupApplied(group) = &mut event {
        group.queue = name(number).into();
    }
    event
}
