//! `vcsim test --write`: what was decided becomes what is expected. The rest of the file keeps
//! every byte.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::file::{Expectations, ExpectedGroup};
use super::outcome::{GroupState, ScenarioOutcome};

/// The text of a scenario with another `expect`.
///
/// # Errors
/// The file does not have its keys at the start of lines.
pub(super) fn rewrite(
    text: &str,
    expect: Option<&Expectations>,
    outcome: &ScenarioOutcome,
) -> Result<String, String> {
    let block = render(expect, outcome);
    let Some((start, end)) = expect_block(text) else {
        if expect.is_some() {
            return Err("cannot write: `expect:` must stand at the start of a line".to_owned());
        }
        let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return Ok(format!("{text}{newline}{block}"));
    };
    Ok(format!("{}{block}{}", &text[..start], &text[end..]))
}

/// Where the value of the top-level key `expect` stands: from its line to its last indented line.
fn expect_block(text: &str) -> Option<(usize, usize)> {
    let (mut position, mut found) = (0, None);
    for line in text.split_inclusive('\n') {
        let next = position + line.len();
        found = match found {
            None if line.starts_with("expect:") => Some((position, next)),
            Some((start, _)) if continues(line) => Some((start, next)),
            // Blank lines and comments belong to the block only when it goes on after them.
            Some(block) if is_filler(line) => Some(block),
            Some(block) => return Some(block),
            None => None,
        };
        position = next;
    }
    found
}

fn continues(line: &str) -> bool {
    !is_filler(line) && line.starts_with([' ', '\t', '}', ']'])
}

fn is_filler(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

/// The keys that the file has, or the usual ones when it has none.
pub(super) fn render(expect: Option<&Expectations>, outcome: &ScenarioOutcome) -> String {
    let none = Expectations::default();
    let expect = expect.unwrap_or(&none);
    let has_keys = expect.binds.is_some()
        || expect.bind_count.is_some()
        || expect.evictions.is_some()
        || expect.eviction_count.is_some()
        || expect.pipelined.is_some()
        || expect.pod_groups.is_some()
        || expect.messages.is_some();
    let mut out = "expect:\n".to_owned();
    if expect.binds.is_some() || !has_keys {
        let binds = outcome.binds_by_pod();
        let binds = binds.into_iter().map(|(pod, nodes)| (pod, nodes.into_iter().collect()));
        map(&mut out, "binds", binds.collect());
    }
    if expect.bind_count.is_some() {
        line(&mut out, "bindCount", &outcome.binds.len().to_string());
    }
    if expect.evictions.is_some() || !has_keys {
        let mut pods: Vec<&str> = outcome.evictions.iter().map(String::as_str).collect();
        pods.sort_unstable();
        line(&mut out, "evictions", &list(&pods));
    }
    if expect.eviction_count.is_some() {
        line(&mut out, "evictionCount", &outcome.evictions.len().to_string());
    }
    if expect.pipelined.is_some() || (!has_keys && !outcome.pipelined.is_empty()) {
        let pipelined = outcome.pipelined.iter().map(|(pod, node)| (&**pod, vec![&**node]));
        map(&mut out, "pipelined", pipelined.collect());
    }
    if let Some(groups) = &expect.pod_groups {
        out.push_str("  podGroups:\n");
        for (name, expected) in groups {
            if let Some(state) = outcome.pod_groups.get(name) {
                out.push_str(&format!("    {}: {}\n", scalar(name), group(expected, state)));
            }
        }
    }
    if let Some(wanted) = &expect.messages {
        // A part of a text is chosen by hand: what is told no longer goes.
        let is_reported_here =
            |wanted: &&String| outcome.messages.iter().any(|text| text.contains(&**wanted));
        let kept: Vec<&str> = wanted.iter().filter(is_reported_here).map(String::as_str).collect();
        line(&mut out, "messages", &list(&kept));
    }
    out
}

fn line(out: &mut String, key: &str, value: &str) {
    out.push_str(&format!("  {key}: {value}\n"));
}

/// Longest line that a map may fill.
const WIDTH: usize = 100;

fn map(out: &mut String, key: &str, entries: BTreeMap<&str, Vec<&str>>) {
    let entries: Vec<String> =
        entries.iter().map(|(pod, nodes)| format!("{}: {}", scalar(pod), list(nodes))).collect();
    let flow = format!("{{{}}}", entries.join(", "));
    if key.len() + flow.len() + 4 <= WIDTH {
        return line(out, key, &flow);
    }
    let _infallible = writeln!(out, "  {key}:");
    for entry in entries {
        let _infallible = writeln!(out, "    {entry}");
    }
}

fn list(items: &[&str]) -> String {
    let items: Vec<String> = items.iter().map(|item| scalar(item)).collect();
    format!("[{}]", items.join(", "))
}

/// The fields that the file names.
fn group(expected: &ExpectedGroup, state: &GroupState) -> String {
    let mut fields = Vec::new();
    if expected.phase.is_some() || expected.conditions.is_empty() {
        fields.push(format!("phase: {}", scalar(&state.phase)));
    }
    let mut conditions = Vec::new();
    for (kind, wanted) in &expected.conditions {
        if let Some((status, reason)) = state.conditions.get(kind) {
            let status = wanted.status.is_some().then(|| format!("status: {}", scalar(status)));
            let reason = wanted.reason.is_some().then(|| format!("reason: {}", scalar(reason)));
            let parts: Vec<String> = status.into_iter().chain(reason).collect();
            conditions.push(format!("{}: {{{}}}", scalar(kind), parts.join(", ")));
        }
    }
    if !conditions.is_empty() {
        fields.push(format!("conditions: {{{}}}", conditions.join(", ")));
    }
    format!("{{{}}}", fields.join(", "))
}

/// A text that YAML reads as itself, quoted where it must be.
fn scalar(text: &str) -> String {
    let is_plain_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '/' | '.');
    let is_word = matches!(
        text.to_ascii_lowercase().as_str(),
        "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n" | "null"
    );
    let starts_with_letter = text.starts_with(|c: char| c.is_ascii_alphabetic());
    match starts_with_letter && !is_word && text.chars().all(is_plain_char) {
        true => text.to_owned(),
        false => serde_json::Value::from(text).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_ends_with_its_last_indented_line() {
        let text = "a: 1\nexpect:\n  binds: {\n}\n\n  # inside\n  x: 1\n# after\n\nlast: 2\n";
        let (start, end) = expect_block(text).unwrap();
        assert_eq!(&text[..start], "a: 1\n");
        assert_eq!(&text[end..], "# after\n\nlast: 2\n");
    }

    #[test]
    fn texts_that_yaml_would_misread_are_quoted() {
        assert_eq!(scalar("c1/p-1"), "c1/p-1");
        assert_eq!(scalar("True"), "\"True\"");
        assert_eq!(scalar("1e3"), "\"1e3\"");
        assert_eq!(scalar("a: b"), "\"a: b\"");
    }
}
