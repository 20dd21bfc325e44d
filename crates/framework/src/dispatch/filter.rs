//! Predicate of all plugins: as a whole, and as tests that can be remembered. Specification: core.md
//! 5.3, actions.md 2.6, 12.2 S2.

use vc_model::{Finding, NodeId, TaskId};

use crate::dispatch::Dispatch;
use crate::fast::{Reads, Test};
use crate::plugin::{Ask, NodeRule, Plugin};
use crate::points::Points;

impl Dispatch {
    /// First error wins.
    ///
    /// # Errors
    /// Why the task fits on no node.
    pub fn pre_predicate(&self, ask: Ask<'_>, task: TaskId) -> Result<(), String> {
        self.all(Points::PRE_PREDICATE).try_for_each(|plugin| plugin.pre_predicate(ask, task))
    }

    /// Findings of the first plugin that has any.
    pub fn predicate(&self, ask: Ask<'_>, task: TaskId, node: NodeId, findings: &mut Vec<Finding>) {
        self.node_rules(ask, task).find(node, findings);
    }

    /// Whether a plugin has findings that stand whatever a dry run removes, because its switches
    /// let it neither simulate removals nor additions (core.md 2.3).
    pub fn has_standing_findings(&self, ask: Ask<'_>, task: TaskId, node: NodeId) -> bool {
        let mut findings = Vec::new();
        for &plugin in &self.static_filters {
            self.plugins[plugin].predicate(ask, task, node, &mut findings);
        }
        !findings.is_empty()
    }

    /// Predicate for many nodes: what holds for all of them is worked out here, once.
    pub fn node_rules<'a>(&'a self, ask: Ask<'a>, task: TaskId) -> NodeRules<'a> {
        let plugins = self.all(Points::PREDICATE);
        NodeRules(plugins.map(|plugin| whole_rule(plugin, ask, task)).collect())
    }

    /// Predicate of all plugins as tests, each with the number of its plugin, and what cannot be
    /// remembered. `None`: of one it cannot be said what it reads.
    pub(crate) fn tests<'a>(
        &'a self,
        ask: Ask<'a>,
        task: TaskId,
    ) -> Option<(Vec<(usize, Test<'a>)>, NodeRules<'a>)> {
        let (mut tests, mut wide) = (Vec::new(), Vec::new());
        for (number, plugin) in self.all(Points::PREDICATE).enumerate() {
            match plugin.node_tests(ask, task) {
                Some(split) => {
                    tests.extend(split.tests.into_iter().map(|test| (number, test)));
                    wide.extend(split.wide);
                }
                None if plugin.reads(ask, task, Points::PREDICATE) == Reads::ClassAndNode => {
                    let rules = NodeRules(vec![whole_rule(plugin, ask, task)]);
                    tests.push((number, Test::Row(Box::new(move |node| rules.pass(node)))));
                }
                None => return None,
            }
        }
        Some((tests, NodeRules(wide)))
    }
}

/// Predicate of all plugins for one task.
pub struct NodeRules<'a>(Vec<NodeRule<'a>>);

fn whole_rule<'a>(plugin: &'a dyn Plugin, ask: Ask<'a>, task: TaskId) -> NodeRule<'a> {
    plugin.node_rule(ask, task).unwrap_or_else(|| {
        Box::new(move |node, findings| plugin.predicate(ask, task, node, findings))
    })
}

impl NodeRules<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether nothing is found against the node.
    pub(crate) fn pass(&self, node: NodeId) -> bool {
        let mut findings = Vec::new();
        self.find(node, &mut findings);
        findings.is_empty()
    }

    /// Findings of the first plugin that has any.
    pub fn find(&self, node: NodeId, findings: &mut Vec<Finding>) {
        for rule in &self.0 {
            rule(node, findings);
            if !findings.is_empty() {
                return;
            }
        }
    }
}
