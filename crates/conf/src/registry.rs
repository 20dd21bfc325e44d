//! What plugins and actions declare about themselves for the loader: names, arguments, and what they
//! decide. Specification: core.md 2.2, 2.3.

use crate::argument::{DeclaredArgument, matches};
use crate::file::{PluginOption, Tier};
use crate::switches::Switch;

/// The actions, in canonical lower case (A1).
pub const ACTIONS: &[&str] = &[
    "enqueue",
    "allocate",
    "backfill",
    "preempt",
    "reclaim",
    "gangpreempt",
    "gangreclaim",
    "shuffle",
];

/// What a plugin says about itself before it is built.
#[derive(Clone, Copy, Debug)]
pub struct PluginDeclaration {
    /// The name in the configuration.
    pub name: &'static str,
    pub arguments: &'static [&'static dyn DeclaredArgument],
    /// Keys of older versions, where a `*` at the end stands for any text, and what to write now.
    pub moved_arguments: &'static [(&'static str, &'static str)],
    /// Pairs of boolean arguments that cannot both be true, each with the error of a file in which
    /// they are.
    pub exclusive_arguments: &'static [(&'static str, &'static str, &'static str)],
    pub enqueue_vote: EnqueueVote,
    pub queue_rule: QueueRule,
    /// Judges an entry of the plugin, given all tiers.
    pub check_entry: EntryCheck,
}

/// Returns what is wrong with an entry of a plugin, given all tiers.
pub type EntryCheck = fn(&PluginOption, &[Tier]) -> Vec<EntryFinding>;

/// Something that is wrong with an entry of a plugin, alone or beside others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryFinding {
    /// The argument. Empty: it is about the entry.
    pub key: &'static str,
    /// What is wrong, in lower case.
    pub problem: String,
    /// What the operator can do.
    pub remedy: String,
    /// True if the file is refused.
    pub is_error: bool,
}

impl EntryFinding {
    /// Returns a finding that refuses the file.
    pub fn error(key: &'static str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { key, problem: problem.into(), remedy: remedy.into(), is_error: true }
    }

    /// Returns a finding of which the operator is told.
    pub fn warning(
        key: &'static str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { is_error: false, ..Self::error(key, problem, remedy) }
    }
}

/// What the plugin answers when a job asks for admission to its queue (JobEnqueueable).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnqueueVote {
    /// The plugin has no vote.
    None,
    /// The plugin permits some jobs and rejects none.
    NeverRejects,
    /// The plugin rejects jobs for which evictions could make room.
    IgnoresEvictions,
    /// The plugin rejects only jobs for which no eviction could make room.
    CountsEvictions,
}

/// What the plugin decides about queues, which other plugins decide too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueRule {
    /// The plugin limits no queue.
    None,
    /// The plugin limits queues by its own figures. Beside another such plugin both limits hold.
    Quota,
    /// The plugin decides the quota of queues alone.
    ExclusiveQuota,
    /// The plugin decides shares of queues while `switch` is on. It then cannot stand in one tier
    /// with `excludes`.
    Shares { switch: Switch, excludes: &'static str },
}

impl PluginDeclaration {
    /// Declares a plugin without arguments.
    pub const fn new(name: &'static str) -> Self {
        PluginDeclaration {
            name,
            arguments: &[],
            moved_arguments: &[],
            exclusive_arguments: &[],
            enqueue_vote: EnqueueVote::None,
            queue_rule: QueueRule::None,
            check_entry: |_, _| Vec::new(),
        }
    }

    /// Returns what stands in the place of an argument of an older version.
    pub(crate) fn moved_argument(&self, key: &str) -> Option<&'static str> {
        let row = self.moved_arguments.iter().find(|(pattern, _)| matches(pattern, key));
        row.map(|(_, remedy)| *remedy)
    }
}

/// What the loader knows of plugins and actions, given by the caller: this crate knows none.
#[derive(Clone, Copy, Debug)]
pub struct KnownNames<'a> {
    /// The plugins that this process can run. Names are compared exactly.
    pub plugins: &'a [PluginDeclaration],
    /// The plugins of Volcano that this process cannot run.
    pub not_built: &'a [PluginDeclaration],
    /// The actions that this process can run. Compared without regard to case (A1).
    pub actions: &'a [&'a str],
}

impl<'a> KnownNames<'a> {
    /// Returns the declaration of a plugin that this process can run.
    pub(crate) fn built(&self, name: &str) -> Option<&'a PluginDeclaration> {
        self.plugins.iter().find(|plugin| plugin.name == name)
    }

    /// Returns the declaration of a plugin, whether it is built or not.
    pub(crate) fn declared(&self, name: &str) -> Option<&'a PluginDeclaration> {
        self.built(name).or_else(|| self.not_built.iter().find(|plugin| plugin.name == name))
    }

    /// Returns every plugin name, for spelling hints.
    pub(crate) fn all_plugins(&self) -> impl Iterator<Item = &'static str> {
        self.plugins.iter().chain(self.not_built).map(|plugin| plugin.name)
    }

    /// Returns every registered and every given action name, for spelling hints.
    pub(crate) fn all_actions(&self) -> Vec<&'a str> {
        let extra = self.actions.iter().copied().filter(|name| !ACTIONS.contains(name));
        ACTIONS.iter().copied().chain(extra).collect()
    }
}
