//! The difference for people, one line for each row. Specification: answers.md 13.

use std::fmt::Write;

use vc_answers::{EvictedPod, QueueDifference, WhatIfResult};
use vc_text::escape;

use crate::why::OwnerNames;

/// Returns the lines.
pub(super) fn of(it: &WhatIfResult, owners: &OwnerNames) -> String {
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
        line("+", "evicted", &evicted(row, owners));
    }
    for row in &it.spared {
        line("-", "evicted", &evicted(row, owners));
    }
    for row in &it.waiting {
        let text = format!("{}  {}: {}", owners.name(&row.key), row.code.as_str(), row.text);
        line("!", "waits", &text);
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

fn evicted(row: &EvictedPod, owners: &OwnerNames) -> String {
    let mut text = format!("{} ({}", row.pod, row.action);
    if let Some(group) = &row.for_group {
        let _infallible = write!(text, " for {}", owners.name(group));
    }
    if !row.plugins.is_empty() {
        let _infallible = write!(text, ", granted by {}", row.plugins.join(", "));
    }
    text + ")"
}

fn queue(row: &QueueDifference) -> String {
    let amounts = row.allocated.iter().filter(|(name, _)| name != "pods");
    let amounts = amounts.map(|(name, [before, after])| format!("{name} {before} → {after}"));
    let share = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |it| format!("{it:.2}"));
    let shares = row.share.iter();
    let shares =
        shares.map(|&[before, after]| format!("share {} → {}", share(before), share(after)));
    let parts: Vec<String> = amounts.chain(shares).collect();
    format!("{} {}", row.queue, parts.join(", "))
}

/// The last line: counts of whole lists.
fn sum(it: &WhatIfResult) -> String {
    let count = |name: &str, shown: usize| {
        let full = it.truncated.iter().find(|(other, _)| *other == name);
        full.map_or(shown, |(_, full)| *full)
    };
    let cycles = if it.cycles == 1 { "cycle" } else { "cycles" };
    let settled = if it.is_settled { "settled" } else { "not settled" };
    let complete = if it.is_complete { "" } else { "; later ends were left out" };
    format!(
        "{} placed, {} evicted, {} {} ({} {cycles}, {settled}{complete})\n",
        count("placed", it.placed.len()),
        count("evicted", it.evicted.len()),
        count("waiting", it.waiting.len()),
        if count("waiting", it.waiting.len()) == 1 { "waits" } else { "wait" },
        it.cycles,
    )
}
