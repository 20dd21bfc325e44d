//! What the plugins say about victims: who may go, which plugins of which tier granted it, and who
//! refused where nobody may. Specification: actions.md 2.3, 10.6; core.md 5.5.

use std::fmt;

use rustc_hash::FxHashMap;
use vc_model::{JobId, TaskId};

use crate::plugin::GangEviction;

/// Who asks for victims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Preemptable: a task, of its own queue.
    Preempt(TaskId),
    /// Reclaimable: a task, of other queues.
    Reclaim(TaskId),
    /// UnifiedEvictable: a gang action, for a job.
    Gang(JobId, GangEviction),
    /// VictimTasks: nobody; plugins choose.
    Shuffle,
}

/// The rule that allows an eviction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The tier that decided, from 1; `None`: no tier voted, only filters spoke (D1).
    pub tier: Option<usize>,
    /// The plugins of the tier that granted it, in order.
    pub plugins: Vec<&'static str>,
    /// The protective filters that let it pass.
    pub filters: Vec<&'static str>,
    /// The reason by which a group goes as a whole for quota; `None`: pods were judged one by one.
    pub why: Option<&'static str>,
}

impl fmt::Display for Rule {
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

/// The answer of all plugins together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ruling {
    /// Who may go, in the order of the first answer.
    pub victims: Vec<TaskId>,
    /// Why they may; `None`: nobody may.
    pub rule: Option<Rule>,
    /// The plugin whose answer was the first to leave nobody; where somebody may go, the first one
    /// that held others back. `None`: there was no such answer.
    pub refused_by: Option<&'static str>,
}

/// One of the rules of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleId(usize);

/// What was allowed in a session: the rule of every task that a ruling named, the last one counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    all: Vec<Rule>,
    /// Looked up by id only, never walked.
    allowed: FxHashMap<TaskId, RuleId>,
}

impl Rules {
    pub(crate) fn note(&mut self, ruling: &Ruling) {
        let Some(rule) = ruling.rule.as_ref().filter(|_| !ruling.victims.is_empty()) else {
            return;
        };
        let known = self.all.iter().position(|other| other == rule);
        let id = RuleId(known.unwrap_or_else(|| {
            self.all.push(rule.clone());
            self.all.len() - 1
        }));
        self.allowed.extend(ruling.victims.iter().map(|&victim| (victim, id)));
    }

    pub(crate) fn of(&self, victim: TaskId) -> Option<RuleId> {
        self.allowed.get(&victim).copied()
    }

    pub(crate) fn rule(&self, id: RuleId) -> Option<&Rule> {
        self.all.get(id.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_says_who_granted_and_who_did_not_protect() {
        let (plugins, filters) = (vec!["gang", "priority"], vec!["pdb"]);
        let rule = Rule { tier: Some(2), plugins, filters, why: None };
        assert_eq!(rule.to_string(), "tier 2: gang priority; not protected by pdb");
        assert_eq!(Rule::default().to_string(), "no tier voted");
        let why = Some("InClusterQueue");
        let rule = Rule { plugins: vec!["cohort"], why, ..Rule::default() };
        assert_eq!(rule.to_string(), "cohort: InClusterQueue");
    }
}
