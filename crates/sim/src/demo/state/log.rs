//! The log of the demo: one line for each thing that happened, binds gathered by gang.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::MemberCounts;
use crate::serve::Key;

/// Lines that are kept for the live view.
const KEPT: usize = 50;

/// How a line is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Things go on.
    Plain,
    /// A gang is complete.
    Good,
    /// A gang waits.
    Waiting,
    /// Something was refused.
    Bad,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogNote {
    /// When it happened.
    pub at: Duration,
    /// How it is meant.
    pub tone: Tone,
    /// One line without its time.
    pub text: String,
}

#[derive(Debug, Default)]
pub(super) struct NoteLog {
    fresh: Vec<LogNote>,
    binds: BTreeMap<Key, BindSummary>,
    kept: Vec<LogNote>,
}

/// Binds of one gang since the last lines.
#[derive(Debug, Default)]
struct BindSummary {
    first: Duration,
    pods: usize,
    nodes: BTreeSet<String>,
}

impl NoteLog {
    pub(super) fn add(&mut self, at: Duration, tone: Tone, text: String) {
        self.fresh.push(LogNote { at, tone, text });
    }

    pub(super) fn bound(&mut self, gang: &Key, node: String, at: Duration) {
        let new = BindSummary { first: at, ..BindSummary::default() };
        let binds = self.binds.entry(gang.clone()).or_insert(new);
        binds.pods += 1;
        binds.nodes.insert(node);
    }

    pub(super) fn bound_single(&mut self, pod: &str, node: &str, at: Duration) {
        self.add(at, Tone::Plain, format!("bound pod {pod} to {node}"));
    }

    /// The lines since the last call by time. `gang` gives the title and members of a gang.
    pub(super) fn take<'a>(
        &mut self,
        gang: impl Fn(&Key) -> Option<(&'a str, &'a MemberCounts)>,
    ) -> Vec<LogNote> {
        for (key, binds) in std::mem::take(&mut self.binds) {
            if let Some((title, members)) = gang(&key) {
                let text = binds.line(title, members);
                self.fresh.push(LogNote { at: binds.first, tone: Tone::Plain, text });
            }
        }
        let mut notes = std::mem::take(&mut self.fresh);
        notes.sort_by_key(|note| note.at);
        self.kept.extend(notes.iter().cloned());
        self.kept.drain(..self.kept.len().saturating_sub(KEPT));
        notes
    }

    pub(super) fn recent(&self) -> &[LogNote] {
        &self.kept
    }
}

impl BindSummary {
    fn line(&self, title: &str, members: &MemberCounts) -> String {
        let nodes = match self.nodes.first() {
            Some(node) if self.nodes.len() == 1 => node.clone(),
            _ => format!("{} nodes", self.nodes.len()),
        };
        let (placed, total) = (members.placed(), members.total);
        let pods = count(self.pods, "pod");
        format!("bound {pods} of {title} to {nodes} ({placed}/{total})")
    }
}

/// `1 pod`, `2 pods`.
pub(in crate::demo) fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// `12 ms`, `4.5 s`.
pub(in crate::demo) fn span(span: Duration) -> String {
    match span.as_millis() {
        millis if millis < 1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", span.as_secs_f64()),
    }
}
