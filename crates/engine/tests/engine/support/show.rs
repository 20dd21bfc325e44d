//! Effects as text, one line each, in their order; then what the report says is pipelined.

use vc_engine::{About, Effect, Nomination, PreBindWrites, Report};
use vc_model::{ObjectKey, PodCondition, PodGroupStatus, SavedAccount};

pub(crate) fn lines(effects: &[Effect], report: &Report) -> Vec<String> {
    let mut lines: Vec<String> = effects.iter().map(line).collect();
    for task in &report.pipelined {
        lines.push(format!("pipeline {} {}", short(&task.pod), task.node));
    }
    lines
}

fn line(effect: &Effect) -> String {
    match effect {
        Effect::Bind { pod, node, .. } => format!("bind {} {node}", short(pod)),
        Effect::PreBind { pod, node, writes, .. } => {
            let PreBindWrites { bindings, provisions, devices } = &**writes;
            let bound = bindings.iter().map(|(claim, pv)| format!("{}={pv}", claim.key.name));
            let made = provisions.iter().map(|claim| claim.key.name.to_string());
            let device = |promise: &vc_model::ClaimPromise| {
                let chosen = promise.allocation.iter().flat_map(|chosen| &chosen.results);
                let chosen: Vec<String> = chosen.map(|one| one.device.device.to_string()).collect();
                format!("{}:{}", promise.key.name, chosen.join(","))
            };
            let what = bound.chain(made).chain(devices.iter().map(device));
            let what: Vec<String> = what.collect();
            format!("prebind {} {node} {}", short(pod), what.join(" "))
        }
        Effect::UnreserveClaims { pod, claims, .. } => {
            format!("unreserve {} {}", short(pod), claims.join(" "))
        }
        Effect::DeallocateClaim { claim, .. } => format!("deallocate {}", short(claim)),
        Effect::Resync { pod, .. } => format!("resync {}", short(pod)),
        Effect::Evict { pod, reason, .. } => format!("evict {} {}", short(pod), reason.as_str()),
        Effect::PodCondition { pod, condition, nomination, .. } => {
            let PodCondition { reason, message, .. } = &**condition;
            let nomination = match nomination {
                Nomination::Keep => String::new(),
                Nomination::Set(node) => format!(" nominated={node}"),
                Nomination::Clear => " nominated=-".to_owned(),
            };
            format!("pod {} {reason} {message:?}{nomination}", short(pod))
        }
        Effect::ClearNomination { pod, .. } => format!("pod {} nominated=-", short(pod)),
        Effect::PodGroupStatus { pod_group, status, .. } => {
            format!("group {} {}", short(pod_group), status_text(status))
        }
        Effect::QueueAnnotation { queue, key, value } => {
            format!("annotate queue {queue} {key}={value}")
        }
        Effect::QueueStatus { queue, allocated } => {
            let amounts: Vec<String> =
                allocated.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
            format!("queue {queue} {}", amounts.join(" "))
        }
        Effect::CreateQueue { queue, .. } => format!("create queue {queue}"),
        Effect::NodeShardStatus { shard, nodes_in_use, nodes_to_remove, nodes_to_add } => {
            let [used, remove, add] =
                [nodes_in_use, nodes_to_remove, nodes_to_add].map(|nodes| nodes.join(","));
            format!("shard {shard} use={used} remove={remove} add={add}")
        }
        Effect::SaveUsage { config_map, usage } => {
            let account = |account: &SavedAccount| {
                let SavedAccount { queue, account, closed, rate, .. } = account;
                format!(" {queue}/{account}={closed}+{rate}")
            };
            let accounts: String = usage.accounts.iter().map(account).collect();
            format!("save {config_map} at {}:{accounts}", usage.time_micros)
        }
        Effect::RemoveGate { pod, .. } => format!("ungate {}", short(pod)),
        Effect::Event { about, warning, reason, message } => {
            let (kind, name) = match about {
                About::Pod { key, .. } => ("Pod", short(key)),
                About::PodGroup { key, .. } => ("PodGroup", short(key)),
                About::Queue { name, .. } => ("Queue", name.to_string()),
                About::HyperNode { name, .. } => ("HyperNode", name.to_string()),
            };
            let severity = if *warning { "Warning" } else { "Normal" };
            format!("event {kind} {name} {severity} {reason} {message:?}")
        }
    }
}

fn status_text(status: &PodGroupStatus) -> String {
    let mut text = status.phase.as_str().to_owned();
    for (name, count) in
        [("running", status.running), ("succeeded", status.succeeded), ("failed", status.failed)]
    {
        if count != 0 {
            text.push_str(&format!(" {name}={count}"));
        }
    }
    for condition in &*status.conditions {
        let status = match &*condition.status {
            "True" => String::new(),
            status => format!("={status}"),
        };
        text.push_str(&format!(" {}{status} {:?}", condition.kind, &*condition.message));
    }
    text
}

/// Without the namespace of the tests.
fn short(key: &ObjectKey) -> String {
    let text = key.to_string();
    text.strip_prefix("default/").map_or(text.clone(), str::to_owned)
}
