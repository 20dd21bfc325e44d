//! The actions of a cycle, one file each.
//! Specification: actions.md.

mod allocate;
mod backfill;
mod commit_or_discard;
mod demand;
mod eligible;
mod enqueue;
mod gang;
mod gang_attempt_cache;
mod gangpreempt;
mod gangreclaim;
mod job_queue;
mod kept_room;
mod places;
mod preempt;
mod quota_pass;
mod reclaim;
mod search;
mod shuffle;
mod starving;
mod sub_job_tasks;
mod topology;
mod victims;
mod waiting_jobs;

use vc_framework::Action;

pub use allocate::{JobTrial, JobTrialOutcome, first_tasks, try_job};
pub use backfill::try_best_effort;
pub use demand::needed;

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
