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
    let unknown = [&it.earliest_unknown, &it.latest_unknown].into_iter().flatten();
    parts.extend(unknown.map(|unknown| unknown.text.clone()));
    let ends: Vec<String> = it.waits_for.iter().map(awaited_text).collect();
    if !ends.is_empty() {
        let verb =
            if it.waits_for.len() == 1 && it.waits_for[0].pods == 1 { "ends" } else { "end" };
        parts.push(format!("when {} {verb}", ends.join(" and ")));
    }
    parts.join(", ")
}

/// Returns the pods of one job with where they are and where their end is from. Nodes that the reader may not list are
/// left out.
fn awaited_text(it: &AwaitedJson) -> String {
    let pods = match (it.hidden, it.pods) {
        (true, 1) => "1 pod of another namespace".to_owned(),
        (true, pods) => format!("{pods} pods of another namespace"),
        (false, 1) => it.job.clone(),
        (false, pods) => format!("{pods} pods of {}", it.job),
    };
    let nodes = match it.nodes.as_slice() {
        [] => String::new(),
        names => format!(" on {}", names.join(" ")),
    };
    let runs = it.runs.map(|runs| format!(" from {runs} runs")).unwrap_or_default();
    format!("{pods}{nodes} ({}{runs})", it.source)
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
    use crate::start::UnknownTimeJson;

    #[test]
    fn ans_40_what_the_reader_may_not_see_has_no_name() {
        let awaited =
            |hidden: bool, pods: usize, nodes: &[&str], runs: Option<usize>| AwaitedJson {
                job: if hidden { "other-1" } else { "ml/eval" }.to_owned(),
                hidden,
                pods,
                nodes: nodes.iter().map(|&name| name.to_owned()).collect(),
                source: if runs.is_none() { "stated" } else { "learned" }.to_owned(),
                runs,
                ..AwaitedJson::default()
            };
        let cases = [
            (awaited(false, 1, &["g1"], None), "ml/eval on g1 (stated)"),
            (
                awaited(false, 2, &["g1", "g2"], Some(12)),
                "2 pods of ml/eval on g1 g2 (learned from 12 runs)",
            ),
            (awaited(false, 1, &[], None), "ml/eval (stated)"),
            (awaited(true, 1, &["g1"], None), "1 pod of another namespace on g1 (stated)"),
            (awaited(true, 3, &[], Some(2)), "3 pods of another namespace (learned from 2 runs)"),
        ];
        for (job, expected) in cases {
            assert_eq!(awaited_text(&job), expected);
        }
    }

    #[test]
    fn ans_39_a_time_that_is_not_known_has_its_reason() {
        let unknown = |reason: &str, text: &str| {
            let (reason, text) = (reason.to_owned(), text.to_owned());
            Some(UnknownTimeJson { reason, text })
        };
        let start = StartJson {
            expected: Some("2026-11-23T10:40:00Z".to_owned()),
            latest_unknown: unknown("beyondWindow", "no latest start is known: not within 24h"),
            ..StartJson::default()
        };
        let now = "2026-11-23T10:00:00Z";
        let expected =
            "expected 10:40 if nothing arrives, no latest start is known: not within 24h";
        assert_eq!(start_text(&start, now), expected);
        let start = StartJson {
            text: Some("more than 100 jobs are before it".to_owned()),
            earliest_unknown: unknown("budget", "no earliest start is known: more than 200 ends"),
            ..StartJson::default()
        };
        let expected = "not known: more than 100 jobs are before it, no earliest start is known: \
            more than 200 ends";
        assert_eq!(start_text(&start, now), expected);
        assert!(start.is_incomplete(), "there was no budget for one of the times");
    }

    #[test]
    fn times_of_today_have_no_day() {
        let now = "2026-11-23T10:00:00Z";
        assert_eq!(short_time("2026-11-23T10:40:00Z", now), "10:40");
        assert_eq!(short_time("2026-11-23T10:40:05Z", now), "10:40:05");
        assert_eq!(short_time("2026-11-24T10:40:00Z", now), "2026-11-24T10:40:00Z");
    }
}
