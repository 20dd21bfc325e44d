//! Predicate of all plugins, as a whole and as tests that can be cached. Specification: core.md
//! 5.3, actions.md 2.6, 12.2 S2.

use vc_model::{Finding, NodeId, TaskId};

use crate::node_score_cache::NodeTest;
use crate::plugin::{NodeRule, Plugin, SessionView};
use crate::plugin_set::{PluginSet, has_revision};
use crate::points::Points;

impl PluginSet {
    /// Checks the task once, before its nodes are filtered; the first error wins.
    ///
    /// # Errors
    /// Why the task fits on no node.
    pub fn pre_predicate(&self, view: SessionView<'_>, task: TaskId) -> Result<(), String> {
        if let Some(lens) = &self.lens
            && self.needs(view, task).iter().all(|need| lens.lifts(need))
        {
            return Ok(());
        }
        self.all(Points::PRE_PREDICATE).try_for_each(|plugin| plugin.pre_predicate(view, task))
    }

    /// Appends the findings of the first plugin that has any.
    pub fn predicate(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        node: NodeId,
        findings: &mut Vec<Finding>,
    ) {
        self.node_rules(view, task).find(node, findings);
    }

    /// True if a plugin has findings that a dry run cannot remove, because its switches allow no
    /// simulation of removals or additions (core.md 2.3).
    pub fn has_standing_findings(&self, view: SessionView<'_>, task: TaskId, node: NodeId) -> bool {
        let mut findings = Vec::new();
        for &plugin in &self.static_filters {
            self.plugins[plugin].predicate(view, task, node, &mut findings);
        }
        !findings.is_empty()
    }

    /// Returns Predicate for many nodes, with everything that does not depend on the node computed
    /// once.
    pub fn node_rules<'a>(&'a self, view: SessionView<'a>, task: TaskId) -> NodeRules<'a> {
        let plugins = self.all(Points::PREDICATE);
        NodeRules(plugins.map(|plugin| whole_rule(plugin, view, task)).collect())
    }

    /// Returns the findings of the first plugin that has any, for each of `nodes`. Returns `None` if
    /// every plugin looks at one node at a time.
    pub(crate) fn predicate_all(
        &self,
        view: SessionView<'_>,
        task: TaskId,
        nodes: &[NodeId],
    ) -> Option<Vec<Vec<Finding>>> {
        let mut plugins = self.all(Points::PREDICATE);
        plugins.find(|plugin| plugin.predicate_all(view, task, &[]).is_some())?;
        let mut found: Vec<Vec<Finding>> = vec![Vec::new(); nodes.len()];
        for plugin in self.all(Points::PREDICATE) {
            let left: Vec<usize> = (0..nodes.len()).filter(|&at| found[at].is_empty()).collect();
            let nodes_left: Vec<NodeId> = left.iter().map(|&at| nodes[at]).collect();
            match plugin.predicate_all(view, task, &nodes_left) {
                Some(all) => {
                    left.into_iter().zip(all).for_each(|(at, of_node)| found[at] = of_node)
                }
                None => {
                    let rule = whole_rule(plugin, view, task);
                    left.into_iter().for_each(|at| rule(nodes[at], &mut found[at]));
                }
            }
        }
        Some(found)
    }

    /// Returns Predicate of all plugins as tests, each with the number of its plugin, and the
    /// cluster-scoped rules that cannot be cached. Returns `None` if a plugin has no tests and
    /// reads more than a pod shape and a node.
    pub(crate) fn tests<'a>(
        &'a self,
        view: SessionView<'a>,
        task: TaskId,
    ) -> Option<(Vec<(usize, NodeTest<'a>)>, NodeRules<'a>)> {
        let (mut tests, mut cluster_scoped) = (Vec::new(), Vec::new());
        for (number, (plugin, reads)) in self.all_with_inputs(Points::PREDICATE).enumerate() {
            let split = plugin.as_vectorized().and_then(|plugin| plugin.node_tests(view, task));
            match split {
                Some(split) => {
                    tests.extend(split.tests.into_iter().map(|test| (number, test)));
                    cluster_scoped.extend(split.cluster_scoped);
                }
                None if reads.is_by_shape_and_node(has_revision(plugin)) => {
                    let rules = NodeRules(vec![whole_rule(plugin, view, task)]);
                    tests.push((number, NodeTest::Row(Box::new(move |node| rules.pass(node)))));
                }
                None => return None,
            }
        }
        Some((tests, NodeRules(cluster_scoped)))
    }
}

/// Predicate of all plugins for one task.
pub struct NodeRules<'a>(Vec<NodeRule<'a>>);

fn whole_rule<'a>(plugin: &'a dyn Plugin, view: SessionView<'a>, task: TaskId) -> NodeRule<'a> {
    let prepared = plugin.as_vectorized().and_then(|plugin| plugin.node_rule(view, task));
    prepared.unwrap_or_else(|| {
        Box::new(move |node, findings| plugin.predicate(view, task, node, findings))
    })
}

impl NodeRules<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if no rule has a finding against the node.
    pub(crate) fn pass(&self, node: NodeId) -> bool {
        let mut findings = Vec::new();
        self.find(node, &mut findings);
        findings.is_empty()
    }

    /// Appends the findings of the first plugin that has any.
    pub fn find(&self, node: NodeId, findings: &mut Vec<Finding>) {
        for rule in &self.0 {
            rule(node, findings);
            if !findings.is_empty() {
                return;
            }
        }
    }
}
