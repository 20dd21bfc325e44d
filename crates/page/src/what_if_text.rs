//! What would happen with changes, for people, one line for each row. Specification: answers.md 13.

use std::fmt::Write;

use vc_text::escape;

use crate::what_if::{
    QueueDifferenceJson, SupposedEvictionJson, WhatIfBoundJson, WhatIfResultJson,
};

/// Returns the lines.
pub fn what_if_text(it: &WhatIfResultJson) -> String {
    let mut out = String::new();
    let mut line = |mark: &str, word: &str, text: &str| {
        let _infallible = writeln!(out, "{mark} {word:<8} {}", escape(text));
    };
    for row in &it.placed {
        line("+", "placed", &format!("{} → {}", row.pod, row.node));
    }
    for row in &it.not_placed {
        line("-", "placed", &format!("{} → {}", row.pod, row.node));
    }
    for row in &it.moved {
        line("~", "moved", &format!("{} {} → {}", row.pod, row.from, row.to));
    }
    for row in &it.evicted {
        line("+", "evicted", &evicted(row));
    }
    for row in &it.spared {
        line("-", "evicted", &evicted(row));
    }
    for row in &it.waiting {
        let job = if row.job.is_empty() { &row.pod_group } else { &row.job };
        line("!", "waits", &format!("{job}  {}: {}", row.code, row.text));
    }
    for row in &it.queues {
        line(" ", "queue", &queue(row));
    }
    for (name, rows) in &it.truncated {
        line(" ", "…", &format!("{rows} {name} in all"));
    }
    for warning in &it.warnings {
        line(" ", "note", warning);
    }
    out.push_str(&sum(it));
    out
}

fn evicted(row: &SupposedEvictionJson) -> String {
    let mut text = format!("{} ({}", row.pod, row.action);
    if let Some(job) = row.for_job.as_ref().or(row.r#for.as_ref()) {
        let _infallible = write!(text, " for {job}");
    }
    if !row.plugins.is_empty() {
        let _infallible = write!(text, ", granted by {}", row.plugins.join(", "));
    }
    text + ")"
}

fn queue(row: &QueueDifferenceJson) -> String {
    let amounts = row.allocated.iter().filter(|(name, _)| *name != "pods");
    let amounts = amounts.map(|(name, [before, after])| format!("{name} {before} → {after}"));
    let share = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |it| format!("{it:.2}"));
    let shares = row.share.iter();
    let shares =
        shares.map(|&[before, after]| format!("share {} → {}", share(before), share(after)));
    let parts: Vec<String> = amounts.chain(shares).collect();
    format!("{} {}", row.queue, parts.join(", "))
}

/// The last line: counts of whole lists.
fn sum(it: &WhatIfResultJson) -> String {
    let count = |name: &str, shown: usize| it.truncated.get(name).copied().unwrap_or(shown);
    let cycles = if it.cycles == 1 { "cycle" } else { "cycles" };
    let settled = if it.settled { "settled" } else { "not settled" };
    let left_out: String = match it.complete || !it.left_out.is_empty() {
        true => it.left_out.iter().map(left_out).collect(),
        // An earlier version of the scheduler does not name what is not there.
        false => "; not complete".to_owned(),
    };
    let waiting = count("waiting", it.waiting.len());
    format!(
        "{} placed, {} evicted, {waiting} {} ({} {cycles}, {settled}{left_out})\n",
        count("placed", it.placed.len()),
        count("evicted", it.evicted.len()),
        if waiting == 1 { "waits" } else { "wait" },
        it.cycles,
    )
}

/// Returns what was left out and beyond which bound, as a part of the last line.
fn left_out(it: &WhatIfBoundJson) -> String {
    format!("; {} after the first {} were left out", it.what, it.most)
}
