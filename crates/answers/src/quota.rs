//! The limits that votes of plugins turned on, as rows and as text.
//! Specification: answers.md 2 (NotAdmitted, QueueFull), 3 (ANS-14).

use std::sync::Arc;

use vc_framework::{LimitOwner, LimitedAmount, QueueLimit, ShareRefusal};
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

/// Returns what is short in the rows of one limit, without its numbers:
/// `capacity: queue research has no room: 4 cpu short`. Returns `None` if there is no row.
pub(crate) fn short_text(rows: &[QuotaRow]) -> Option<String> {
    let first = rows.first()?;
    let owner = match &first.queue {
        Some(name) => format!("queue {name}"),
        None => "the cluster".to_owned(),
    };
    let texts = rows.iter().map(|row| format!("{} {} short", row.short, row.resource));
    let texts: Vec<String> = texts.collect();
    Some(format!("{}: {owner} has no room: {}", first.plugin, texts.join(", ")))
}

/// Returns why the job is not admitted. A plugin without numbers has its message, if there is one.
pub(crate) fn admission_text(
    by: &'static str,
    message: Option<&str>,
    limit: Option<&QueueLimit>,
    dims: &Dims,
) -> String {
    match (limit, message) {
        (Some(limit), _) if !limit.amounts.is_empty() => limit_text(by, limit, dims),
        (_, Some(message)) => format!("{by}: {message}"),
        (_, None) => format!("{by}: it does not admit the PodGroup to its queue"),
    }
}

fn limit_text(by: &str, limit: &QueueLimit, dims: &Dims) -> String {
    let owner = match &limit.owner {
        LimitOwner::Queue(name) => Some(format!("queue {name}")),
        LimitOwner::Cohort(name) => Some(format!("cohort {name}")),
        LimitOwner::Cluster => None,
    };
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
