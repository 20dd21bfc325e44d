//! The lines START and EVICT of an answer. Specification: answers.md 13.

use crate::start::{AwaitedJson, EvictJson, StartJson};

/// Returns when a job starts, in one line. `now` is the time of the state.
pub(crate) fn start_text(it: &StartJson, now: &str) -> String {
    let mut parts = Vec::new();
    let differs = |at: &&String| it.expected.as_ref() != Some(*at);
    let earliest = it.earliest.as_ref().filter(differs).map(|at| short_time(at, now));
    let latest = it.latest.as_ref().filter(differs).map(|at| short_time(at, now));
    if let Some(at) = &it.expected {
        let between = match (&earliest, &latest) {
            (earliest, Some(latest)) => {
                let from = earliest.clone().unwrap_or_else(|| short_time(at, now));
                format!(", between {from} and {latest},")
            }
            _ => String::new(),
        };
        parts.push(format!("expected {}{between} if nothing arrives", short_time(at, now)));
    }
    if let Some(at) = earliest.filter(|_| latest.is_none()) {
        parts.push(format!("not before {at}"));
    }
    if let Some(text) = &it.text {
        let known = if parts.is_empty() { "not known: " } else { "" };
        parts.push(format!("{known}{text}"));
    }
    let awaited = |job: &AwaitedJson| {
        let pods = if job.pods == 1 { String::new() } else { format!("{} pods of ", job.pods) };
        let runs = job.runs.map(|runs| format!(" from {runs} runs")).unwrap_or_default();
        format!("{pods}{} on {} ({}{runs})", job.job, job.nodes.join(" "), job.source)
    };
    let ends: Vec<String> = it.waits_for.iter().map(awaited).collect();
    if !ends.is_empty() {
        let verb =
            if it.waits_for.len() == 1 && it.waits_for[0].pods == 1 { "ends" } else { "end" };
        parts.push(format!("when {} {verb}", ends.join(" and ")));
    }
    parts.join(", ")
}

/// Returns how many of the last predictions held.
pub(crate) fn held_text([held, of]: [usize; 2]) -> String {
    format!("{held} of the last {of} predictions held")
}

/// Returns why nobody was evicted, in lines.
pub(crate) fn eviction_lines(it: &EvictJson) -> Vec<String> {
    let mut lines = vec![it.text.clone()];
    lines.extend(it.compared.iter().cloned());
    lines.extend(it.remedy.clone());
    lines
}

/// A time without its day, if that is the day of `now`, and without seconds if there are none.
fn short_time(time: &str, now: &str) -> String {
    match (time.split_once('T'), now.split_once('T')) {
        (Some((day, time)), Some((today, _))) if day == today => {
            let time = time.trim_end_matches('Z');
            time.strip_suffix(":00").unwrap_or(time).to_owned()
        }
        _ => time.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_today_have_no_day() {
        let now = "2026-11-23T10:00:00Z";
        assert_eq!(short_time("2026-11-23T10:40:00Z", now), "10:40");
        assert_eq!(short_time("2026-11-23T10:40:05Z", now), "10:40:05");
        assert_eq!(short_time("2026-11-24T10:40:00Z", now), "2026-11-24T10:40:00Z");
    }
}
