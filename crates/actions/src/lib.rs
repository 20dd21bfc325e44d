//! The steps of a cycle, one file each. Specification: actions.md.

mod alike;
mod allocate;
mod backfill;
mod demand;
mod enqueue;
mod failures;
mod gang;
mod gangpreempt;
mod gangreclaim;
mod preempt;
mod quota_pass;
mod reclaim;
mod settle;
mod shuffle;
mod topology;
mod trim;
mod turns;
mod victims;
mod worksheet;

use vc_framework::Action;

/// Every action that is built; the only place where they are named.
pub const ALL: &[&dyn Action] = &[
    &enqueue::Enqueue,
    &allocate::Allocate,
    &backfill::Backfill,
    &preempt::Preempt,
    &reclaim::Reclaim,
    &shuffle::Shuffle,
    &gangpreempt::GangPreempt,
    &gangreclaim::GangReclaim,
];

/// The names of [`ALL`], for reading a configuration before any action runs.
pub const NAMES: &[&str] = &[
    "enqueue",
    "allocate",
    "backfill",
    "preempt",
    "reclaim",
    "shuffle",
    "gangpreempt",
    "gangreclaim",
];

#[cfg(test)]
mod tests {
    use super::{ALL, NAMES};

    #[test]
    fn names_are_those_of_the_actions() {
        let names: Vec<&str> = ALL.iter().map(|action| action.name()).collect();
        assert_eq!(names, NAMES);
    }
}
