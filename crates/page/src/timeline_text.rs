//! What happened lately, for people. Specification: answers.md 13.

use crate::cluster::{ListJson, OneJson};
use crate::table::Table;
use crate::timeline::{CycleJson, EvictionGrant, JobSpanJson, TimelineJson, how_evicted};
use crate::why_text::as_of_text;

/// Returns the jobs that held nodes and the evictions, one line each.
pub fn timeline_text(one: &OneJson<TimelineJson>) -> String {
    let it = &one.content;
    let mut out = format!("from {} to {}\n", it.from, it.to);
    if !it.jobs.is_empty() {
        let mut table = Table::new(["JOB", "QUEUE", "PODS", "START", "END"]);
        for job in &it.jobs {
            let end = job.end.clone().unwrap_or_else(|| "-".to_owned());
            let name = shown(job);
            table.row([name, job.queue.clone(), job.pods.to_string(), job.start.clone(), end]);
        }
        out.push_str(&table.text());
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
