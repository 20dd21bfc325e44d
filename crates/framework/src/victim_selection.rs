//! Result of the vote on victims: which candidates may be evicted, which plugins of which tier
//! granted it, and which plugin refused. Specification: actions.md 2.3, 10.6; core.md 5.5.

use std::fmt;

use rustc_hash::FxHashMap;
use vc_model::{JobId, TaskId};

use crate::plugin::GangEviction;

/// For whom victims are selected, and at which extension point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Preemptable: victims of the same queue, for a task.
    Preempt(TaskId),
    /// Reclaimable: victims of other queues, for a task.
    Reclaim(TaskId),
    /// UnifiedEvictable: victims of a gang action, for a job.
    Gang(JobId, GangEviction),
    /// VictimTasks: victims that plugins choose, for no preemptor.
    Shuffle,
}

/// The rule that allows an eviction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvictionRule {
    /// The tier that decided, from 1. `None` if no tier voted and only filters applied (D1: filters
    /// need no vote).
    pub tier: Option<usize>,
    /// The plugins of the tier that granted it, in order.
    pub plugins: Vec<&'static str>,
    /// The protective filters that did not protect the victim.
    pub filters: Vec<&'static str>,
    /// The reason why a group is evicted as a whole for quota. `None` if pods were selected one by
    /// one.
    pub why: Option<&'static str>,
}

impl fmt::Display for EvictionRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.tier, self.why) {
            (_, Some(why)) => write!(out, "{}: {why}", self.plugins.join(" "))?,
            (Some(tier), None) => write!(out, "tier {tier}: {}", self.plugins.join(" "))?,
            (None, None) => write!(out, "no tier voted")?,
        }
        match self.filters.is_empty() {
            true => Ok(()),
            false => write!(out, "; not protected by {}", self.filters.join(" ")),
        }
    }
}

/// The combined answer of all plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VictimSelection {
    /// The victims, in the order of the first vote.
    pub victims: Vec<TaskId>,
    /// The rule that allows their eviction. `None` if there is no victim.
    pub rule: Option<EvictionRule>,
    /// The plugin whose answer was the first to leave no victim. If there are victims, it is the
    /// first plugin that held candidates back. `None` if no plugin did either.
    pub refused_by: Option<&'static str>,
}

/// Index of an [`EvictionRule`] in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictionRuleId(usize);

/// Eviction rules of a session by victim; the last selection that names a task counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct EvictionRules {
    all: Vec<EvictionRule>,
    /// Looked up by id only, never iterated.
    allowed: FxHashMap<TaskId, EvictionRuleId>,
}

impl EvictionRules {
    pub(crate) fn note(&mut self, selection: &VictimSelection) {
        let Some(rule) = selection.rule.as_ref().filter(|_| !selection.victims.is_empty()) else {
            return;
        };
        let known = self.all.iter().position(|other| other == rule);
        let id = EvictionRuleId(known.unwrap_or_else(|| {
            self.all.push(rule.clone());
            self.all.len() - 1
        }));
        self.allowed.extend(selection.victims.iter().map(|&victim| (victim, id)));
    }

    pub(crate) fn of(&self, victim: TaskId) -> Option<EvictionRuleId> {
        self.allowed.get(&victim).copied()
    }

    pub(crate) fn rule(&self, id: EvictionRuleId) -> Option<&EvictionRule> {
        self.all.get(id.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_says_who_granted_and_who_did_not_protect() {
        let (plugins, filters) = (vec!["gang", "priority"], vec!["pdb"]);
        let rule = EvictionRule { tier: Some(2), plugins, filters, why: None };
        assert_eq!(rule.to_string(), "tier 2: gang priority; not protected by pdb");
        assert_eq!(EvictionRule::default().to_string(), "no tier voted");
        let why = Some("InClusterQueue");
        let rule = EvictionRule { plugins: vec!["cohort"], why, ..EvictionRule::default() };
        assert_eq!(rule.to_string(), "cohort: InClusterQueue");
    }
}
