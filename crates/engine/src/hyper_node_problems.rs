//! Reports about HyperNodes with a problem: a warning when it begins, and their number for metrics.
//! Specification: core.md 4.9.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vc_framework::{Sample, Session};
use vc_model::HyperNodeTree;

/// The problems that were reported.
#[derive(Clone, Debug, Default)]
pub(crate) struct HyperNodeProblems {
    /// The tree of the last report.
    tree: Option<Arc<HyperNodeTree>>,
    known: BTreeSet<String>,
}

impl HyperNodeProblems {
    /// Adds warnings about new problems to the session. Returns their numbers by HyperNode if they
    /// have changed.
    pub(crate) fn report(&mut self, session: &mut Session<'_>) -> Option<Sample> {
        let tree = session.info().hyper_nodes.clone();
        if self.tree.as_ref().is_some_and(|known| Arc::ptr_eq(known, &tree)) {
            return None;
        }
        let texts: BTreeSet<String> = tree.problems().iter().map(ToString::to_string).collect();
        let mut counts: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        for problem in tree.problems() {
            *counts.entry(problem.name().clone()).or_default() += 1;
        }
        self.tree = Some(tree);
        if texts == self.known {
            return None;
        }
        for text in texts.difference(&self.known) {
            let hint = "hint: see docs/topology.md; everything else about HyperNodes is in force";
            session.outcome.out.warnings.push(format!("{text}\n{hint}"));
        }
        self.known = texts;
        Some(Sample::HyperNodeProblems(counts.into_iter().collect()))
    }
}
