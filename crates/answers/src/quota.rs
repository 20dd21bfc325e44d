//! The limits that votes of plugins turned on, as rows and as text.
//! Specification: answers.md 2 (NotAdmitted, QueueFull), 3 (ANS-14).

use std::sync::Arc;

use vc_framework::{FactOwner, LimitFact, LimitOwner, LimitedAmount, QueueLimit, ShareRefusal};
use vc_resource::Dims;

use crate::amounts::quantity_of;
use crate::explanation::QuotaRow;

/// Returns the rows of a limit. A plugin without numbers has none.
pub(crate) fn rows(plugin: &'static str, limit: Option<&QueueLimit>, dims: &Dims) -> Vec<QuotaRow> {
    let Some(QueueLimit { owner, amounts }) = limit else { return Vec::new() };
    let queue = match owner {
        LimitOwner::Queue(name) | LimitOwner::Cohort(name) => Some(name.clone()),
        LimitOwner::Cluster => None,
    };
    let row = |it: &LimitedAmount| {
        let text = |amount: i128| quantity_of(amount, it.dim, dims);
        QuotaRow {
            plugin,
            queue: queue.clone(),
            resource_quota: None,
            resource: dims.name(it.dim).to_owned(),
            limit: limit_name(it.set_by).to_owned(),
            amount: text(it.limit.into()),
            used: text(it.used.into()),
            asked: text(it.asked.into()),
            short: text(exceeded(it)),
        }
    };
    amounts.iter().map(row).collect()
}

/// Returns the rows of amounts that a plugin compares itself.
pub(crate) fn rows_of_facts(plugin: &'static str, facts: Vec<LimitFact>) -> Vec<QuotaRow> {
    let row = |fact: LimitFact| {
        let LimitFact { owner, resource, limit, amount, used, asked, short } = fact;
        let (queue, resource_quota) = match owner {
            FactOwner::ResourceQuota(key) => (None, Some(key.name)),
            FactOwner::Account { queue, .. } => (Some(queue), None),
        };
        let limit = limit.to_owned();
        QuotaRow { plugin, queue, resource_quota, resource, limit, amount, used, asked, short }
    };
    facts.into_iter().map(row).collect()
}

/// Returns by how much the limit would be exceeded.
fn exceeded(it: &LimitedAmount) -> i128 {
    i128::from(it.used) + i128::from(it.asked) - i128::from(it.limit)
}

/// Returns the name of a limit by its source.
fn limit_name(set_by: &str) -> &str {
    match set_by {
        "overcommit-factor" => "overcommit",
        "the cluster without the guarantees of other queues" => "guarantee of others",
        source => source.strip_prefix("spec.").unwrap_or(source),
    }
}

/// Returns why the queue has no room: `capacity: queue research holds 16 of 16 cpu, 4 more asked`.
pub(crate) fn share_text(refusal: &ShareRefusal, queue: &Arc<str>, dims: &Dims) -> String {
    let by = refusal.by;
    match &refusal.limit {
        Some(limit) if !limit.amounts.is_empty() => limit_text(by, limit, dims),
        _ => format!("{by}: queue {queue} has all that it may hold"),
    }
}

/// Returns what is short below a limit, without its other numbers:
/// `capacity: queue research has no room: 4 cpu short`. Returns `None` if the plugin has no numbers.
pub(crate) fn short_text(refusal: &ShareRefusal, dims: &Dims) -> Option<String> {
    let limit = refusal.limit.as_ref().filter(|limit| !limit.amounts.is_empty())?;
    let owner = owner_text(&limit.owner).unwrap_or_else(|| "the cluster".to_owned());
    let text = |it: &LimitedAmount| {
        format!("{} {} short", quantity_of(exceeded(it), it.dim, dims), dims.name(it.dim))
    };
    let texts: Vec<String> = limit.amounts.iter().map(text).collect();
    Some(format!("{}: {owner} has no room: {}", refusal.by, texts.join(", ")))
}

/// Returns the object that sets a limit: `queue research`. Returns `None` for the cluster.
fn owner_text(owner: &LimitOwner) -> Option<String> {
    match owner {
        LimitOwner::Queue(name) => Some(format!("queue {name}")),
        LimitOwner::Cohort(name) => Some(format!("cohort {name}")),
        LimitOwner::Cluster => None,
    }
}

/// Returns why the job is not admitted. A plugin without numbers has its message, if there is one.
pub(crate) fn admission_text(
    by: &'static str,
    message: Option<&str>,
    (limit, facts): (Option<&QueueLimit>, &[LimitFact]),
    dims: &Dims,
) -> String {
    match (limit, message) {
        (Some(limit), _) if !limit.amounts.is_empty() => limit_text(by, limit, dims),
        _ if !facts.is_empty() => facts_text(by, facts),
        (_, Some(message)) => format!("{by}: {message}"),
        (_, None) => format!("{by}: it does not admit the PodGroup to its queue"),
    }
}

fn limit_text(by: &str, limit: &QueueLimit, dims: &Dims) -> String {
    let owner = owner_text(&limit.owner);
    let text = |it: &LimitedAmount| {
        let name = dims.name(it.dim);
        let [limit, used, asked] =
            [it.limit, it.used, it.asked].map(|amount| quantity_of(amount.into(), it.dim, dims));
        let wanted = i128::from(it.used) + i128::from(it.asked);
        match &owner {
            Some(owner) => format!("{owner} holds {used} of {limit} {name}, {asked} more asked"),
            None => format!("{} {name} wanted of {limit}", quantity_of(wanted, it.dim, dims)),
        }
    };
    let texts: Vec<String> = limit.amounts.iter().map(text).collect();
    format!("{by}: {}", texts.join("; "))
}

/// Returns `resourcequota: ResourceQuota ml/q holds 1 of 2 cpu, 4 more asked`.
fn facts_text(by: &str, facts: &[LimitFact]) -> String {
    let text = |fact: &LimitFact| {
        let LimitFact { owner, resource, amount, used, asked, .. } = fact;
        match owner {
            FactOwner::ResourceQuota(key) => {
                format!(
                    "ResourceQuota {key} holds {used} of {amount} {resource}, {asked} more asked"
                )
            }
            // What is asked is the smallest amount.
            FactOwner::Account { queue, noun, name } => {
                format!(
                    "{noun} {name} has its share of queue {queue}: it holds {used} of {amount} \
                     {resource}"
                )
            }
        }
    };
    let texts: Vec<String> = facts.iter().map(text).collect();
    format!("{by}: {}", texts.join("; "))
}
