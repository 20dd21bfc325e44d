//! Answers for people. A line without content is left out. Specification: answers.md 13.

use std::fmt::Write;

use vc_answers::{
    BlockingSet, BlockingSets, Explanation, GangNumbers, LineNeighbour, LinePlace, NodeNumbers,
    RefusedNodes, Remedy, RemedyKind, WaitCode,
};
use vc_text::escape;

use super::evicted::EvictionRow;
use super::names::OwnerNames;
use super::start::{eviction_lines, start_text};

/// Widest phrase before the names of nodes.
const WIDEST_PHRASE: usize = 60;

/// One job or pod, with all that is known.
pub(super) fn of_one(it: &Explanation, owners: &OwnerNames, evictions: &[EvictionRow]) -> String {
    let mut out = head(it, owners);
    let code = it.verdict.code;
    line(&mut out, "WHY", &format!("{}: {}", code.as_str(), it.verdict.text));
    if let Some(nodes) = it.nodes.as_ref().filter(|_| code.stage() == "nodes") {
        groups(&mut out, it, nodes);
    }
    let also: Vec<&str> = it.verdict.also.iter().map(|code| code.as_str()).collect();
    if !also.is_empty() {
        line(&mut out, "ALSO", &also.join(", "));
    }
    if let Some(text) = it.blocking.as_ref().and_then(blocked_text) {
        line(&mut out, "BLOCKED", &text);
    }
    // The line START says what waiting brings.
    let remedies: Vec<&Remedy> =
        it.unblock.iter().filter(|remedy| remedy.kind != RemedyKind::Wait).collect();
    remedy_lines(&mut out, &remedies);
    if let Some(condition) = &it.last_condition {
        let text = format!("{}: {}", condition.reason, condition.message);
        line(&mut out, "WRITTEN", &text);
    }
    if let Some(place) = &it.line {
        line(&mut out, "LINE", &line_text(it, place, owners));
    }
    if let Some(start) = &it.start {
        line(&mut out, "START", &start_text(start, it.as_of.time_micros, owners));
    }
    let evict = it.evict.iter().flat_map(eviction_lines);
    for (at, text) in evict.enumerate() {
        line(&mut out, if at == 0 { "EVICT" } else { "" }, &text);
    }
    for (at, row) in evictions.iter().enumerate() {
        line(&mut out, if at == 0 { "EVICTED" } else { "" }, &row.text(owners));
    }
    let time = vc_answers::time_text(it.as_of.time_micros);
    let _infallible = writeln!(out, "as of {time}, cycle {}, from files", it.as_of.cycle);
    out
}

/// One line for each job.
pub(super) fn of_all(all: &[Explanation], owners: &OwnerNames) -> String {
    if all.is_empty() {
        return "nothing waits\n".to_owned();
    }
    let row = |it: &Explanation| {
        let queue = it.subject.queue.as_deref().unwrap_or("-").to_owned();
        let waits = it.subject.waiting_seconds.map_or_else(|| "-".to_owned(), duration);
        let place = it.line.as_ref();
        let place = place.map(|place| format!("{}/{}", place.in_queue, place.of_queue));
        let place = place.unwrap_or_else(|| "-".to_owned());
        let code = it.verdict.code.as_str().to_owned();
        [name(it, owners), queue, place, waits, code, it.verdict.text.clone()]
    };
    let head = ["JOB", "QUEUE", "PLACE", "WAITS", "CODE", "WHY"].map(str::to_owned);
    let rows: Vec<[String; 6]> = std::iter::once(head).chain(all.iter().map(row)).collect();
    let rows: Vec<[String; 6]> =
        rows.into_iter().map(|row| row.map(|cell| escape(&cell).into_owned())).collect();
    let widths: Vec<usize> = (0..5)
        .map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(&widths) {
            let _infallible = write!(out, "{cell:<width$}  ");
        }
        out.push_str(&row[5]);
        out.push('\n');
    }
    out
}

fn head(it: &Explanation, owners: &OwnerNames) -> String {
    let subject = &it.subject;
    let mut words = Vec::new();
    match owners.get(&subject.key) {
        _ if subject.is_bare => words.push("pod".to_owned()),
        Some(owner) => {
            words.push(owner.kind.clone());
            words.push(format!("PodGroup {}", subject.key.name));
        }
        None => words.push("PodGroup".to_owned()),
    }
    if let Some(queue) = &subject.queue {
        words.push(format!("queue {queue}"));
        words.push(format!("priority {}", subject.priority));
    }
    if let Some(pod) = subject.pod.as_ref().filter(|_| !subject.is_bare) {
        words.insert(0, format!("pod {}", pod.name));
    }
    let waits = match (it.waits(), subject.waiting_seconds) {
        _ if it.verdict.code == WaitCode::NotOurs => String::new(),
        (true, Some(seconds)) => format!(" waits for {}", duration(seconds)),
        (true, None) => " waits".to_owned(),
        (false, _) => " does not wait".to_owned(),
    };
    let gang = it.gang.as_ref().filter(|_| it.waits()).map(gang_text).unwrap_or_default();
    let text = format!("{} ({}){waits}{gang}", name(it, owners), words.join(", "));
    format!("{}\n", escape(&text))
}

fn name(it: &Explanation, owners: &OwnerNames) -> String {
    owners.name(&it.subject.key)
}

fn gang_text(gang: &GangNumbers) -> String {
    let total = gang.waiting + gang.ready;
    let pods = if total == 1 { "pod" } else { "pods" };
    let ready = match gang.ready {
        0 => String::new(),
        ready => format!(", {ready} with a node"),
    };
    format!(": {total} {pods}, {} needed{ready}, {} placed", gang.needed, gang.placed)
}

fn line(out: &mut String, word: &str, text: &str) {
    let _infallible = writeln!(out, "{word:<8} {}", escape(text));
}

/// The groups of nodes, unless the nodes are not what is in the way.
fn groups(out: &mut String, it: &Explanation, nodes: &NodeNumbers) {
    if !it.quota.is_empty() {
        return;
    }
    let rows: Vec<(String, String, &RefusedNodes)> = nodes
        .groups
        .iter()
        .map(|group| {
            let noun = if group.count == 1 { "node" } else { "nodes" };
            (format!("{} {noun}", group.count), group.phrase(), group)
        })
        .collect();
    let counts = rows.iter().map(|(count, ..)| count.chars().count()).max().unwrap_or(0);
    let phrases = rows.iter().map(|(_, phrase, _)| phrase.chars().count()).max().unwrap_or(0);
    let phrases = phrases.min(WIDEST_PHRASE);
    for (count, phrase, group) in rows {
        let mut names: Vec<&str> = group.names.iter().map(|name| &**name).collect();
        if names.len() < group.count {
            names.push("…");
        }
        let text = format!("{count:<counts$}  {phrase:<phrases$}  {}", names.join(" "));
        let _infallible = writeln!(out, "           {}", escape(&text));
    }
}

/// Who may change what, so that the job starts, and on which nodes it would be.
fn remedy_lines(out: &mut String, remedies: &[&Remedy]) {
    let is_located = |remedy: &&&Remedy| !remedy.nodes.is_empty();
    let widths = remedies.iter().filter(is_located).map(|it| it.text.chars().count());
    let width = widths.max().unwrap_or(0).min(WIDEST_PHRASE);
    for (at, remedy) in remedies.iter().enumerate() {
        let word = if at == 0 { "UNBLOCK" } else { "" };
        let nodes: Vec<&str> = remedy.nodes.iter().map(|name| &**name).collect();
        let text =
            format!("{:<5}  {:<width$}  {}", remedy.who.as_str(), remedy.text, nodes.join(" "));
        line(out, word, text.trim_end());
    }
}

/// What would have to be lifted. Returns `None` if it was not found out.
fn blocked_text(blocking: &BlockingSets) -> Option<String> {
    let set = |set: &BlockingSet| {
        let atoms: Vec<String> =
            set.atoms.iter().map(|atom| atom.atom.replacen('/', " ", 1)).collect();
        atoms.join(" and ")
    };
    let sets: Vec<String> = blocking.sets.iter().map(set).collect();
    let by_time = match blocking.helps_waiting() {
        true => "",
        false => "; waiting alone does not help",
    };
    let text = match sets.as_slice() {
        [] if !blocking.is_complete => return None,
        [] => "not even empty nodes without all other obstacles would do".to_owned(),
        [one] => format!("by  {one}{by_time}"),
        [..] => format!("any one of:  {}{by_time}", sets.join("   |   ")),
    };
    Some(text)
}

fn line_text(it: &Explanation, place: &LinePlace, owners: &OwnerNames) -> String {
    let queue = it.subject.queue.as_deref().unwrap_or_default();
    let mut text = format!("{} of {} in queue {queue}", rank(place.in_queue), place.of_queue);
    if let Some(other) = &place.before {
        let values = other.values.as_ref().map(|(own, other)| (other.as_str(), own.as_str()));
        text.push_str(&neighbour("behind", other, values, owners));
    }
    if let Some(other) = &place.behind {
        let values = other.values.as_ref().map(|(own, other)| (own.as_str(), other.as_str()));
        text.push_str(&neighbour("before", other, values, owners));
    }
    text.push_str(&format!("; {} queue", rank(place.queue_turn)));
    let ahead = &place.ahead;
    if 0 < ahead.jobs {
        let jobs = if ahead.jobs == 1 { "job" } else { "jobs" };
        let amounts = ahead.amounts.iter().map(|(name, amount)| format!("{amount} {name}"));
        let amounts: Vec<String> = amounts.collect();
        text.push_str(&format!("; ahead: {} {jobs}, {} pods", ahead.jobs, ahead.pods));
        if !amounts.is_empty() {
            text.push_str(&format!(" ({})", amounts.join(", ")));
        }
        if let Some(blocked) = ahead.blocked.filter(|blocked| 0 < *blocked) {
            text.push_str(&format!(", {blocked} cannot start now either"));
        }
    }
    text
}

fn neighbour(
    side: &str,
    other: &LineNeighbour,
    values: Option<(&str, &str)>,
    owners: &OwnerNames,
) -> String {
    let name = owners.name(&other.job);
    match values.filter(|_| other.decided_by != "name") {
        Some((first, second)) => {
            let (first, second) = short_times(first, second);
            format!(", {side} {name} ({}: {first} before {second})", other.decided_by)
        }
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
fn duration(seconds: i64) -> String {
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
