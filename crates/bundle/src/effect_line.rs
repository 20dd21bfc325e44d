//! Effects in short, one line each.

use vc_engine::{About, Effect};

/// Returns the effect as one line: what is done to which object.
pub fn effect_line(effect: &Effect) -> String {
    match effect {
        Effect::Bind { pod, node, .. } => format!("bind {pod} to {node}"),
        Effect::PreBind { pod, node, .. } => format!("write volumes and claims of {pod} on {node}"),
        Effect::Evict { pod, reason, .. } => format!("evict {pod} by {}", reason.as_str()),
        Effect::PodCondition { pod, condition, .. } => {
            format!("condition of {pod}: {}: {}", condition.reason, condition.message)
        }
        Effect::PodGroupStatus { pod_group, status, .. } => {
            format!("status of PodGroup {pod_group}: {}", status.phase.as_str())
        }
        Effect::QueueStatus { queue, .. } => format!("status of queue {queue}"),
        Effect::CreateQueue { queue, .. } => format!("create queue {queue}"),
        Effect::QueueAnnotation { queue, key, .. } => format!("annotation {key} of queue {queue}"),
        Effect::NodeShardStatus { shard, .. } => format!("status of NodeShard {shard}"),
        Effect::UnreserveClaims { pod, .. } => format!("unreserve claims of {pod}"),
        Effect::DeallocateClaim { claim, .. } => format!("deallocate claim {claim}"),
        Effect::Resync { pod, .. } => format!("read {pod} again"),
        Effect::ClearNomination { pod, .. } => format!("clear nomination of {pod}"),
        Effect::RemoveGate { pod, .. } => format!("remove gate of {pod}"),
        Effect::SaveUsage { config_map, .. } => format!("save usage in {config_map}"),
        Effect::Event { about, reason, message, .. } => {
            format!("event of {}: {reason}: {message}", about_text(about))
        }
    }
}

fn about_text(about: &About) -> String {
    match about {
        About::Pod { key, .. } => key.to_string(),
        About::PodGroup { key, .. } => format!("PodGroup {key}"),
        About::Queue { name, .. } => format!("queue {name}"),
        About::HyperNode { name, .. } => format!("HyperNode {name}"),
    }
}
