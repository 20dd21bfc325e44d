//! Answers for people. A line without content is left out. Specification: answers.md 13.

use std::fmt::Write;

use vc_answers::RefusedNodes;
use vc_text::escape;

use crate::cluster_text::rest_of;
use crate::document::ExplanationListJson;
use crate::explanation::{
    AheadJson, AsOfJson, BlockingJson, BlockingSetJson, ExplanationJson, FailingClassJson,
    GangJson, LineJson, NeighbourJson, NodeGroupJson, NodeNumbersJson, RemedyJson,
};
use crate::start_text::{eviction_lines, held_text, start_text};
use crate::table::Table;

/// Widest phrase before the names of nodes.
const WIDEST_PHRASE: usize = 60;

/// One job or pod, with all that is known.
pub fn why_text(it: &ExplanationJson) -> String {
    why_body(it) + &as_of_text(&it.as_of)
}

/// Returns the lines of [`why_text`] without the last one, which names the state.
pub(crate) fn why_body(it: &ExplanationJson) -> String {
    let mut out = head(it);
    line(&mut out, "WHY", &format!("{}: {}", it.verdict.code, it.verdict.text));
    if let Some(nodes) = it.nodes.as_ref().filter(|_| it.verdict.stage == "nodes") {
        groups(&mut out, it, nodes);
    }
    for (at, class) in it.classes.iter().enumerate() {
        line(&mut out, if at == 0 { "PODS" } else { "" }, &class_text(class));
    }
    if !it.verdict.also.is_empty() {
        line(&mut out, "ALSO", &it.verdict.also.join(", "));
    }
    if let Some(text) = it.blocking.as_ref().and_then(blocked_text) {
        line(&mut out, "BLOCKED", &text);
    }
    // The line START says what waiting brings.
    let remedies: Vec<&RemedyJson> =
        it.unblock.iter().filter(|remedy| remedy.kind != "wait").collect();
    remedy_lines(&mut out, &remedies);
    let left_out = it.blocking.iter().flat_map(|blocking| &blocking.left_out);
    let left_out: Vec<&str> = left_out.map(String::as_str).collect();
    if !left_out.is_empty() {
        let text = format!("{}: the budget of the question is spent", left_out.join(", "));
        line(&mut out, "LEFT OUT", &text);
    }
    if let Some(condition) = &it.last_condition {
        let text = format!("{}: {}", condition.reason, condition.message);
        line(&mut out, "WRITTEN", &text);
    }
    if let Some(place) = &it.line {
        line(&mut out, "LINE", &line_text(it, place));
    }
    if let Some(start) = &it.start {
        line(&mut out, "START", &start_text(start, &it.as_of.time));
        start.held.iter().for_each(|&held| line(&mut out, "", &held_text(held)));
    }
    let evict = it.evict.iter().flat_map(eviction_lines);
    for (at, text) in evict.enumerate() {
        line(&mut out, if at == 0 { "EVICT" } else { "" }, &text);
    }
    // What became of a pod that is gone is its line WHY.
    let evictions = it.evictions.iter().filter(|_| !it.is_gone_pod());
    for (at, row) in evictions.enumerate() {
        line(&mut out, if at == 0 { "EVICTED" } else { "" }, &row.text);
    }
    out
}

/// Returns the last line of an answer: the state that it is about.
pub(crate) fn as_of_text(it: &AsOfJson) -> String {
    let from = match (it.behind_millis, it.source.as_str()) {
        (Some(millis), _) => format!("{millis} ms behind"),
        (None, "local") => "from lists of the cluster".to_owned(),
        (None, "bundle") => "from a bundle".to_owned(),
        (None, _) => "from files".to_owned(),
    };
    format!("as of {}, cycle {}, {from}\n", escape(&it.time), it.cycle)
}

/// One line for each job, and one that says so if there are more.
pub fn why_list_text(list: &ExplanationListJson) -> String {
    if list.items.is_empty() {
        return "nothing waits\n".to_owned();
    }
    let mut table = Table::new(["JOB", "QUEUE", "PLACE", "WAITS", "CODE", "WHY"]);
    for it in &list.items {
        let dash = || "-".to_owned();
        let queue = it.subject.queue.clone().unwrap_or_else(dash);
        let waits = it.subject.waiting_seconds.map_or_else(dash, duration);
        let place = it.line.as_ref();
        let place = place.map(|place| format!("{}/{}", place.in_queue, place.of_queue));
        let (code, text) = (it.verdict.code.clone(), it.verdict.text.clone());
        table.row([it.job_name(), queue, place.unwrap_or_else(dash), waits, code, text]);
    }
    table.text() + &rest_of(list)
}

fn head(it: &ExplanationJson) -> String {
    let subject = &it.subject;
    let is_bare = subject.kind == "Pod";
    let mut words = Vec::new();
    match &subject.job_kind {
        _ if is_bare => words.push("pod".to_owned()),
        Some(kind) => {
            words.push(kind.clone());
            words.push(format!("PodGroup {}", subject.name));
        }
        None => words.push("PodGroup".to_owned()),
    }
    if let Some(queue) = &subject.queue {
        words.push(format!("queue {queue}"));
        words.push(format!("priority {}", subject.priority.unwrap_or(0)));
    }
    if let Some(evicted) = it.evictions.first().filter(|_| it.is_gone_pod()) {
        words.push(format!("PodGroup {}", evicted.pod_group));
    }
    if let Some(pod) = subject.pod.as_ref().filter(|_| !is_bare) {
        words.insert(0, format!("pod {pod}"));
    }
    let waits = match (it.waits(), subject.waiting_seconds) {
        _ if it.verdict.code == "NotOurs" => String::new(),
        _ if it.verdict.code == "Gone" => " is gone".to_owned(),
        (true, Some(seconds)) => format!(" waits for {}", duration(seconds)),
        (true, None) => " waits".to_owned(),
        (false, _) => " does not wait".to_owned(),
    };
    let pods = it.pods.as_ref().map(|pods| format!(": pods {pods}"));
    let gang = it.gang.as_ref().filter(|_| it.waits()).map(gang_text);
    let members = gang.or(pods).unwrap_or_default();
    let text = format!("{} ({}){waits}{members}", it.job_name(), words.join(", "));
    format!("{}\n", escape(&text))
}

fn gang_text(gang: &GangJson) -> String {
    let total = gang.waiting + gang.ready;
    let pods = if total == 1 { "pod" } else { "pods" };
    let ready = match gang.ready {
        0 => String::new(),
        ready => format!(", {ready} with a node"),
    };
    format!(": {total} {pods}, {} needed{ready}, {} placed", gang.needed, gang.placed)
}

/// Adds a line of an answer: its word, and what it says.
pub(crate) fn line(out: &mut String, word: &str, text: &str) {
    let _infallible = writeln!(out, "{word:<8} {}", escape(text));
}

/// Why further pods find no place: `2 more pods (4 cpu): NoRoom: 3 cpu short: 8 needed, 5 free on eligible nodes`.
fn class_text(it: &FailingClassJson) -> String {
    let pods = if it.count == 1 { "pod" } else { "pods" };
    let request = it.request.iter().map(|(name, amount)| format!("{amount} {name}"));
    let request: Vec<String> = request.collect();
    format!("{} more {pods} ({}): {}: {}", it.count, request.join(", "), it.code, it.text)
}

/// The groups of nodes, unless the nodes are not what is in the way.
fn groups(out: &mut String, it: &ExplanationJson, nodes: &NodeNumbersJson) {
    if !it.quota.is_empty() {
        return;
    }
    let rows: Vec<(String, String, &NodeGroupJson)> = nodes
        .groups
        .iter()
        .map(|group| {
            let noun = if group.count == 1 { "node" } else { "nodes" };
            (format!("{} {noun}", group.count), phrase(group), group)
        })
        .collect();
    let counts = rows.iter().map(|(count, ..)| count.chars().count()).max().unwrap_or(0);
    let phrases = rows.iter().map(|(_, phrase, _)| phrase.chars().count()).max().unwrap_or(0);
    let phrases = phrases.min(WIDEST_PHRASE);
    for (count, phrase, group) in rows {
        let mut names: Vec<&str> = group.names.iter().map(String::as_str).collect();
        if names.len() < group.count {
            names.push("…");
        }
        let text = format!("{count:<counts$}  {phrase:<phrases$}  {}", names.join(" "));
        let _infallible = writeln!(out, "           {}", escape(&text));
    }
}

/// What refuses the nodes, after `6 nodes`.
fn phrase(group: &NodeGroupJson) -> String {
    let nodes = RefusedNodes {
        atoms: group.atoms.clone(),
        count: group.count,
        names: Vec::new(),
        lacks: group.lacks.clone().into_iter().collect(),
    };
    nodes.phrase()
}

/// Who may change what, so that the job starts, and on which nodes it would be.
fn remedy_lines(out: &mut String, remedies: &[&RemedyJson]) {
    let is_located = |remedy: &&&RemedyJson| !remedy.nodes.is_empty();
    let widths = remedies.iter().filter(is_located).map(|it| it.text.chars().count());
    let width = widths.max().unwrap_or(0).min(WIDEST_PHRASE);
    for (at, remedy) in remedies.iter().enumerate() {
        let word = if at == 0 { "UNBLOCK" } else { "" };
        let nodes = remedy.nodes.join(" ");
        let text = format!("{:<5}  {:<width$}  {nodes}", remedy.who, remedy.text);
        line(out, word, text.trim_end());
    }
}

/// What would have to be lifted. Returns `None` if it was not found out.
fn blocked_text(blocking: &BlockingJson) -> Option<String> {
    let set = |set: &BlockingSetJson| {
        let atoms: Vec<String> =
            set.atoms.iter().map(|atom| atom.atom.replacen('/', " ", 1)).collect();
        atoms.join(" and ")
    };
    let sets: Vec<String> = blocking.sets.iter().map(set).collect();
    let by_time = match blocking.helps_waiting {
        true => "",
        false => "; waiting alone does not help",
    };
    let text = match sets.as_slice() {
        [] if !are_sets_complete(blocking) => return None,
        [] => "not even empty nodes without all other obstacles would do".to_owned(),
        [one] => format!("by  {one}{by_time}"),
        [..] => format!("any one of:  {}{by_time}", sets.join("   |   ")),
    };
    Some(text)
}

/// True if no set was left out. A scheduler of an older version does not say what was.
fn are_sets_complete(blocking: &BlockingJson) -> bool {
    let left_out = &blocking.left_out;
    blocking.complete || !left_out.is_empty() && left_out.iter().all(|it| it != "sets")
}

fn line_text(it: &ExplanationJson, place: &LineJson) -> String {
    let queue = it.subject.queue.as_deref().unwrap_or_default();
    let mut text = format!("{} of {} in queue {queue}", rank(place.in_queue), place.of_queue);
    if let Some(other) = &place.before {
        let values = other.values.as_ref().map(|[own, other]| (other.as_str(), own.as_str()));
        text.push_str(&neighbour("behind", other, values));
    }
    if let Some(other) = &place.behind {
        let values = other.values.as_ref().map(|[own, other]| (own.as_str(), other.as_str()));
        text.push_str(&neighbour("before", other, values));
    }
    text.push_str(&format!("; {} queue if a cycle began now", rank(place.queue_turn)));
    let ahead = &place.ahead;
    if 0 < ahead.jobs {
        text.push_str(&format!("; ahead: {}", ahead_text(ahead)));
        if let Some(blocked) = ahead.blocked.filter(|blocked| 0 < *blocked) {
            let of_first = match ahead.tried.filter(|tried| *tried < ahead.jobs) {
                Some(tried) => format!(" of the first {tried}"),
                None => String::new(),
            };
            text.push_str(&format!(", {blocked}{of_first} cannot start now either"));
        }
    }
    text
}

/// Returns `1 job, 2 pods (8 cpu)`.
pub(crate) fn ahead_text(ahead: &AheadJson) -> String {
    let jobs = if ahead.jobs == 1 { "job" } else { "jobs" };
    let text = format!("{} {jobs}, {} pods", ahead.jobs, ahead.pods);
    let amounts = ahead.amounts.iter().map(|(name, amount)| format!("{amount} {name}"));
    match amounts.collect::<Vec<_>>() {
        amounts if amounts.is_empty() => text,
        amounts => format!("{text} ({})", amounts.join(", ")),
    }
}

/// Returns what is compared of two neighbours, that of the first one first. Names are not told.
pub(crate) fn compared_text(decided_by: &str, values: Option<(&str, &str)>) -> Option<String> {
    let (first, second) = values.filter(|_| decided_by != "name")?;
    let (first, second) = short_times(first, second);
    Some(format!("{decided_by}: {first} before {second}"))
}

fn neighbour(side: &str, other: &NeighbourJson, values: Option<(&str, &str)>) -> String {
    let name = match other.hidden {
        true => "a job of another namespace",
        false => &other.job,
    };
    match compared_text(&other.decided_by, values) {
        Some(compared) => format!(", {side} {name} ({compared})"),
        None => format!(", {side} {name} (by {})", other.decided_by),
    }
}

/// Two times of one day without the day, and without seconds if both have none.
fn short_times<'a>(first: &'a str, second: &'a str) -> (&'a str, &'a str) {
    let of_day = |time: &'a str| Some(time.split_once('T')?.1.trim_end_matches('Z'));
    match (of_day(first), of_day(second)) {
        (Some(l), Some(r)) if first.get(..11) == second.get(..11) => {
            match (l.strip_suffix(":00"), r.strip_suffix(":00")) {
                (Some(l), Some(r)) => (l, r),
                _ => (l, r),
            }
        }
        _ => (first, second),
    }
}

fn rank(number: usize) -> String {
    let ending = match (number % 10, number % 100) {
        (1, tens) if tens != 11 => "st",
        (2, tens) if tens != 12 => "nd",
        (3, tens) if tens != 13 => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// The two largest units of a duration: `1h30m`, `45s`.
pub(crate) fn duration(seconds: i64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let mut left = seconds.max(0);
    let mut parts = Vec::new();
    for (size, unit) in units {
        if 0 < left / size {
            parts.push(format!("{}{unit}", left / size));
        }
        left %= size;
    }
    parts.truncate(2);
    if parts.is_empty() { "0s".to_owned() } else { parts.concat() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_ranks_are_short() {
        let cases = [(0, "0s"), (45, "45s"), (5_400, "1h30m"), (90_061, "1d1h"), (3_601, "1h1s")];
        for (seconds, expected) in cases {
            assert_eq!(duration(seconds), expected);
        }
        assert_eq!(
            [1, 2, 3, 4, 11, 12, 13, 21].map(rank).join(" "),
            "1st 2nd 3rd 4th 11th 12th 13th 21st"
        );
        let times = ("2026-11-23T08:30:00Z", "2026-11-23T09:10:00Z", "2026-11-24T09:10:00Z");
        assert_eq!(short_times(times.0, times.1), ("08:30", "09:10"));
        assert_eq!(short_times(times.0, times.2), (times.0, times.2));
    }
}
