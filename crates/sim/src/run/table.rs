//! The result for people.

use std::borrow::Cow;
use std::collections::BTreeMap;

use vc_text::{escape, escape_lines};

use super::result::RunResult;

/// Tables with a heading each; those without rows are left out.
pub fn table(result: &RunResult) -> String {
    let mut out = String::new();
    let rows = result.binds.iter().map(|it| [&*it.pod, &*it.pod_group, &*it.node]);
    section(&mut out, "BOUND", ["POD", "PODGROUP", "NODE"], rows);
    let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let victims: Vec<_> = result
        .evictions
        .iter()
        .map(|it| [it.pod.clone(), dash(&it.for_pod), it.reason.clone()])
        .collect();
    let rows = victims.iter().map(|row| row.each_ref().map(String::as_str));
    section(&mut out, "EVICTED", ["POD", "FOR", "REASON"], rows);
    let rows = result.pipelined.iter().map(|it| [&*it.pod, &*it.node]);
    section(&mut out, "WAITING FOR ROOM THAT IS BEING FREED", ["POD", "NODE"], rows);
    let rows = result.waiting.iter().map(|it| [&*it.pod, &*it.pod_group, &*it.reason]);
    section(&mut out, "WAITING", ["POD", "PODGROUP", "REASON"], rows);
    let rows = result.skipped.iter().map(|it| [&*it.pod_group, &*it.cause, &*it.remedy]);
    section(&mut out, "NOTHING EVICTED FOR", ["PODGROUP", "CAUSE", "REMEDY"], rows);
    pod_groups(&mut out, result);
    topologies(&mut out, result);
    queues(&mut out, result);
    quotas(&mut out, result);
    usages(&mut out, result);
    for warning in &result.warnings {
        let warning = escape_lines(warning).replace('\n', "\n         ");
        out.push_str(&format!("warning: {warning}\n"));
    }
    let cycles = if result.cycles == 1 { "cycle" } else { "cycles" };
    out.push_str(&format!(
        "{} bound, {} evicted, {} waiting after {} {cycles}\n",
        result.binds.len(),
        result.evictions.len(),
        result.waiting.len() + result.pipelined.len(),
        result.cycles,
    ));
    out
}

fn pod_groups(out: &mut String, result: &RunResult) {
    let describe = |it: &super::PodGroupOutput| {
        let placed = format!("{}/{}", it.placed, it.pods);
        let min_member = it.min_member.to_string();
        [it.pod_group.clone(), it.queue.clone(), it.phase.clone(), min_member, placed]
    };
    let rows: Vec<_> = result.pod_groups.iter().map(describe).collect();
    let rows = rows.iter().map(|row| row.each_ref().map(String::as_str));
    section(out, "PODGROUPS", ["PODGROUP", "QUEUE", "PHASE", "MINMEMBER", "PLACED"], rows);
}

/// A drawing of the HyperNodes of each job.
fn topologies(out: &mut String, result: &RunResult) {
    let lines: Vec<String> = result.topologies.iter().flat_map(|it| it.lines()).collect();
    if lines.is_empty() {
        return;
    }
    out.push_str("NETWORK TOPOLOGY\n");
    lines.iter().for_each(|line| out.push_str(&format!("  {}\n", escape(line))));
    out.push('\n');
}

fn queues(out: &mut String, result: &RunResult) {
    let list = |list: &BTreeMap<String, String>| {
        let entries: Vec<_> = list.iter().map(|(name, text)| format!("{name}={text}")).collect();
        if entries.is_empty() { "-".to_owned() } else { entries.join(" ") }
    };
    let describe = |it: &super::QueueUseOutput| {
        let share = it.share.map_or("-".to_owned(), |share| format!("{:.0}%", share * 100.0));
        let deserved = it.deserved.as_ref().map_or("-".to_owned(), list);
        [it.queue.clone(), it.state.clone(), list(&it.allocated), deserved, share]
    };
    let rows: Vec<_> = result.queues.iter().map(describe).collect();
    let rows = rows.iter().map(|row| row.each_ref().map(String::as_str));
    section(out, "QUEUES", ["QUEUE", "STATE", "ALLOCATED", "DESERVED", "USED"], rows);
}

/// Of the cohorts, if the plugin is configured.
fn quotas(out: &mut String, result: &RunResult) {
    const COLUMNS: [&str; 8] =
        ["QUEUE", "RESOURCE", "NOMINAL", "USED", "BORROWED", "LENT", "AVAILABLE", "SHARE"];
    let rows: Vec<_> = result.quotas.iter().flat_map(super::QuotaUseOutput::rows).collect();
    let rows = rows.iter().map(|row| row.each_ref().map(String::as_str));
    section(out, "QUOTA", COLUMNS, rows);
}

/// Of the accounts, if the plugin fairshare is configured.
fn usages(out: &mut String, result: &RunResult) {
    const COLUMNS: [&str; 9] = [
        "QUEUE",
        "ACCOUNT",
        "CHARGED",
        "RUNNING",
        "USED",
        "PROJECTED",
        "WEIGHT",
        "LEVEL",
        "WAITING",
    ];
    let rows: Vec<_> = result.usages.iter().map(super::AccountUseOutput::row).collect();
    let rows = rows.iter().map(|row| row.each_ref().map(String::as_str));
    section(out, "USAGE", COLUMNS, rows);
}

/// A heading, the names of the columns and the rows, each column as wide as its longest text.
fn section<'a, const N: usize>(
    out: &mut String,
    title: &str,
    columns: [&'a str; N],
    rows: impl Iterator<Item = [&'a str; N]>,
) {
    let rows: Vec<[Cow<'_, str>; N]> = rows.map(|row| row.map(escape)).collect();
    if rows.is_empty() {
        return;
    }
    let mut widths = columns.map(|column| column.chars().count());
    for row in &rows {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = (*width).max(text.chars().count());
        }
    }
    out.push_str(&format!("{title}\n"));
    for row in std::iter::once(&columns.map(Cow::Borrowed)).chain(&rows) {
        let cells = row.iter().zip(widths);
        let padded: String = cells.map(|(text, width)| format!("{text:width$}  ")).collect();
        out.push_str(&format!("  {}\n", padded.trim_end()));
    }
    out.push('\n');
}
