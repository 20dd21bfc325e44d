//! The names that Volcano registers (core.md 2.2, 2.3), built into this process or not.

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

/// The plugins of Volcano, and `cohort`, which is this project's own (cohort.md).
pub const PLUGINS: &[&str] = &[
    "drf",
    "gang",
    "deviceshare",
    "predicates",
    "priority",
    "nodeorder",
    "conformance",
    "binpack",
    "resource-strategy-fit",
    "tdm",
    "overcommit",
    "sla",
    "task-topology",
    "numa-aware",
    "cdp",
    "rescheduling",
    "usage",
    "pdb",
    "nodegroup",
    "network-topology-aware",
    "proportion",
    "capacity",
    "extender",
    "resourcequota",
    "cohort",
];

/// The names that this process can run, given by the caller: this crate knows no plugin and no
/// action. Names outside of [`PLUGINS`] and [`ACTIONS`] are those of an embedding binary.
#[derive(Clone, Copy, Debug)]
pub struct KnownNames<'a> {
    /// Compared exactly.
    pub plugins: &'a [&'a str],
    /// Compared without regard to case (A1).
    pub actions: &'a [&'a str],
}

impl<'a> KnownNames<'a> {
    /// Every registered and every given plugin name, for spelling hints.
    pub(crate) fn all_plugins(&self) -> Vec<&'a str> {
        union(PLUGINS, self.plugins)
    }

    /// Every registered and every given action name, for spelling hints.
    pub(crate) fn all_actions(&self) -> Vec<&'a str> {
        union(ACTIONS, self.actions)
    }
}

fn union<'a>(registered: &'static [&'static str], given: &'a [&'a str]) -> Vec<&'a str> {
    let extra = given.iter().copied().filter(|name| !registered.contains(name));
    registered.iter().copied().chain(extra).collect()
}
