//! Reports about HyperNodes with a problem: a warning and an event when it begins, and their number
//! for metrics.
//! Specification: core.md 4.9.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_framework::{About, Effect, Sample, Session};
use vc_model::{HyperNodeProblem, HyperNodeTree};

/// The problems that were reported.
#[derive(Clone, Debug, Default)]
pub(crate) struct HyperNodeProblems {
    /// The tree of the last report.
    tree: Option<Arc<HyperNodeTree>>,
    known: BTreeSet<String>,
}

impl HyperNodeProblems {
    /// Adds warnings and events about new problems to the session. Returns their numbers by HyperNode
    /// if they have changed.
    pub(crate) fn report(&mut self, session: &mut Session<'_>) -> Option<Sample> {
        let tree = session.info().hyper_nodes.clone();
        if self.tree.as_ref().is_some_and(|known| Arc::ptr_eq(known, &tree)) {
            return None;
        }
        let mut problems: BTreeMap<String, &HyperNodeProblem> = BTreeMap::new();
        let mut counts: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        for problem in tree.problems() {
            problems.insert(problem.to_string(), problem);
            *counts.entry(problem.name().clone()).or_default() += 1;
        }
        let is_as_before = problems.keys().eq(&self.known);
        for (text, problem) in problems.iter().filter(|(text, _)| !self.known.contains(*text)) {
            warn(session, problem, text);
        }
        self.known = problems.into_keys().collect();
        self.tree = Some(tree);
        (!is_as_before).then(|| Sample::HyperNodeProblems(counts.into_iter().collect()))
    }
}

/// Adds an event on the HyperNode, and a line of the log. A wrong field has its line already, from
/// where the object was decoded.
fn warn(session: &mut Session<'_>, problem: &HyperNodeProblem, text: &str) {
    if !matches!(problem, HyperNodeProblem::Field { .. }) {
        let hint = "hint: see docs/topology.md; everything else about HyperNodes is in force";
        session.outcome.out.warnings.push(format!("{text}\n{hint}"));
    }
    let name = problem.name().clone();
    let uid = session.hyper_nodes.record(&name).map(|record| record.uid.clone());
    session.outcome.out.effects.push(Effect::Event {
        about: About::HyperNode { name, uid: uid.unwrap_or_default() },
        warning: true,
        reason: "InvalidHyperNode",
        message: text.into(),
    });
}
