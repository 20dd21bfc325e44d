//! What happened lately, for people. Specification: answers.md 13.

use crate::cluster::{ListJson, OneJson};
use crate::table::Table;
use crate::timeline::{CycleJson, EvictionGrant, JobSpanJson, TimelineJson, how_evicted};
use crate::why_text::as_of_text;

/// Returns the jobs that held nodes and the evictions, one line each.
pub fn timeline_text(one: &OneJson<TimelineJson>) -> String {
    let mut table = Table::new(["JOB", "QUEUE", "PODS", "START", "END"]);
    for job in &one.content.jobs {
        let (name, pods) = (shown(job), job.pods.to_string());
        let end = or_dash(job.end.as_ref());
        table.row([name, job.queue.clone(), pods, job.start.clone(), end]);
    }
    text_with_jobs(one, &table.text())
}

/// Returns the jobs that held nodes, with all their times and how many of their pods got nodes in each cycle, and the
/// evictions, one line each.
pub fn timeline_wide_text(one: &OneJson<TimelineJson>) -> String {
    let mut table = Table::new([
        "JOB",
        "QUEUE",
        "PODS",
        "CREATED",
        "ADMITTED",
        "FIRST BIND",
        "START",
        "END",
        "BOUND BY CYCLE",
    ]);
    for job in &one.content.jobs {
        table.row([
            shown(job),
            job.queue.clone(),
            job.pods.to_string(),
            or_dash(job.created.as_ref()),
            or_dash(job.admitted.as_ref()),
            or_dash(job.first_bind.as_ref()),
            job.start.clone(),
            or_dash(job.end.as_ref()),
            binds_text(job),
        ]);
    }
    let since = one.content.binds_from.as_ref();
    let since = since.map(|since| format!("bound by cycle: since {since}\n")).unwrap_or_default();
    text_with_jobs(one, &(since + &table.text()))
}

/// Returns `2 in 48210, 1 in 48211`, behind `… ` if there were more cycles.
fn binds_text(job: &JobSpanJson) -> String {
    let cycles = job.binds.iter().map(|binds| format!("{} in {}", binds.pods, binds.cycle));
    let text = cycles.collect::<Vec<_>>().join(", ");
    let is_all = job.bound == job.binds.iter().map(|binds| binds.pods).sum::<u32>();
    match (text.is_empty(), is_all) {
        (true, _) => "-".to_owned(),
        (false, true) => text,
        (false, false) => format!("… {text}"),
    }
}

fn or_dash(time: Option<&String>) -> String {
    time.cloned().unwrap_or_else(|| "-".to_owned())
}

/// Returns a timeline with this table of its jobs.
fn text_with_jobs(one: &OneJson<TimelineJson>, jobs: &str) -> String {
    let it = &one.content;
    let mut out = format!("from {} to {}\n", it.from, it.to);
    if !it.jobs.is_empty() {
        out.push_str(jobs);
    }
    if !it.evictions.is_empty() {
        let mut table = Table::new(["TIME", "EVICTED", "QUEUE", "HOW"]);
        for row in &it.evictions {
            let minimal = row.minimal.as_deref();
            let grant = EvictionGrant { plugins: &row.plugins, tier: row.tier, minimal };
            let how = how_evicted(&row.action, row.r#for.as_deref(), grant);
            let pod = if row.hidden { hidden() } else { row.pod.clone() };
            table.row([row.time.clone(), pod, row.queue.clone(), how]);
        }
        out.push_str(&table.text());
    }
    if it.truncated {
        out.push_str("there is more: ask for a shorter time, a queue or a namespace\n");
    }
    out + &as_of_text(&one.as_of)
}

fn hidden() -> String {
    "(of another namespace)".to_owned()
}

fn shown(job: &JobSpanJson) -> String {
    if job.hidden { hidden() } else { job.job.clone() }
}

/// Returns the cycles, one line each.
pub fn cycles_text(list: &ListJson<CycleJson>) -> String {
    let head = ["CYCLE", "TIME", "MICROS", "EVENTS", "BINDS", "EVICTIONS", "WAITING"];
    let mut table = Table::new(head);
    for it in &list.items {
        table.row([
            it.cycle.to_string(),
            it.time.clone(),
            it.micros.to_string(),
            it.events.to_string(),
            it.binds.to_string(),
            it.evictions.to_string(),
            it.waiting.to_string(),
        ]);
    }
    table.text() + &as_of_text(&list.as_of)
}
