//! Reports about HyperNodes with a problem: a warning and an event when it begins, and their number
//! for metrics.
//! Specification: core.md 4.9.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_framework::{About, Effect, HyperNodeProblemCount, Sample, Session};
use vc_model::{HyperNodeProblem, HyperNodeTree};

/// The problems that were reported.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct HyperNodeProblems {
    /// The tree of the last report.
    #[serde(skip)]
    tree: Option<Arc<HyperNodeTree>>,
    /// The texts, each with the uid of the HyperNode. One that was made anew is another one.
    known: BTreeSet<(String, Arc<str>)>,
    /// The numbers of the last sample.
    #[serde(skip)]
    sampled: Vec<HyperNodeProblemCount>,
}

impl HyperNodeProblems {
    /// Adds warnings and events about new problems to the session. Returns their numbers by field if
    /// they have changed.
    pub(crate) fn report(&mut self, session: &mut Session<'_>) -> Option<Sample> {
        let tree = session.info().hyper_nodes.clone();
        if self.tree.as_ref().is_some_and(|known| Arc::ptr_eq(known, &tree)) {
            return None;
        }
        let mut problems: BTreeMap<(String, Arc<str>), &HyperNodeProblem> = BTreeMap::new();
        let mut counts: BTreeMap<(&Arc<str>, &str), u32> = BTreeMap::new();
        for problem in tree.problems() {
            let uid = session.hyper_nodes.record(problem.name()).map(|record| record.uid.clone());
            problems.insert((problem.to_string(), uid.unwrap_or_default()), problem);
            *counts.entry((problem.name(), problem.field())).or_default() += 1;
        }
        for (key, problem) in problems.iter().filter(|(key, _)| !self.known.contains(*key)) {
            warn(session, problem, key);
        }
        self.known = problems.into_keys().collect();
        let count =
            |((hyper_node, field), n_problems): ((&Arc<str>, &str), u32)| HyperNodeProblemCount {
                hyper_node: hyper_node.clone(),
                field: field.into(),
                n_problems,
            };
        let counts: Vec<HyperNodeProblemCount> = counts.into_iter().map(count).collect();
        self.tree = Some(tree.clone());
        if counts == self.sampled {
            return None;
        }
        self.sampled = counts.clone();
        Some(Sample::HyperNodeProblems(counts))
    }
}

/// Adds an event on the HyperNode, and a line of the log. A wrong field has its line already, from
/// where the object was decoded.
fn warn(session: &mut Session<'_>, problem: &HyperNodeProblem, (text, uid): &(String, Arc<str>)) {
    if !matches!(problem, HyperNodeProblem::Field { .. }) {
        let hint = "hint: see docs/topology.md; everything else about HyperNodes is in force";
        session.outcome.out.warnings.push(format!("{text}\n{hint}"));
    }
    session.outcome.out.effects.push(Effect::Event {
        about: About::HyperNode { name: problem.name().clone(), uid: uid.clone() },
        warning: true,
        reason: "InvalidHyperNode",
        message: text.as_str().into(),
    });
}
