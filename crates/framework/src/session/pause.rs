//! Sessions that are put aside between two questions about one state, so that plugins are opened once.
//!
//! Exact because:
//! - only a session in which nothing is evicted or admitted is put aside, what it holds is undone, and its
//!   owner drops it when the tables change;
//! - what attempts have recorded is dropped: a session that goes on begins with no records, as a new one does;
//! - `ans_29_what_is_kept_changes_no_answer` compares with the plain evaluator, which opens a session for each
//!   question.
//!
//! Specification: answers.md 10 (ANS-66).

use std::collections::BTreeMap;

use vc_conf::ActionSettings;
use vc_model::Cluster;

use super::{Caches, Outcome, Session, SessionState};
use crate::active_jobs::ActiveJobs;
use crate::eviction_hold::EvictionHolds;
use crate::journal::Journal;
use crate::plugin::SessionInfo;
use crate::plugin_set::PluginSet;
use crate::records::Records;
use crate::victim_selection::EvictionRules;

/// What a session has beside the tables and the plugins.
pub struct PausedSession {
    info: SessionInfo,
    caches: Caches,
    eviction_holds: EvictionHolds,
    journal: Journal,
    victim_index_bytes: usize,
    is_fast: bool,
    may_cache_failures: bool,
    is_trial_cached: bool,
}

impl PausedSession {
    /// Returns the caches.
    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    /// Returns the active jobs.
    pub fn active_jobs(&self) -> &ActiveJobs {
        &self.info.active_jobs
    }

    /// Ends the session. Returns the caches and the active jobs. The plugins are not closed.
    pub fn end(self) -> (Caches, ActiveJobs) {
        (self.caches, self.info.active_jobs)
    }
}

impl<'c> Session<'c> {
    /// Puts the session aside. What is held is undone; nothing may be evicted or admitted.
    pub fn pause(self) -> PausedSession {
        let Self { mut state, caches, .. } = self;
        debug_assert!(state.evicted.is_empty() && state.phase_before.is_empty());
        for op in std::mem::take(&mut state.held).into_iter().rev() {
            state.undo(op);
        }
        debug_assert!(state.journal.len() == 0, "a statement is open");
        debug_assert!(state.plugins.lens.is_none() && state.trial.is_none(), "a trial runs");
        PausedSession {
            info: state.info,
            caches,
            eviction_holds: state.eviction_holds,
            journal: state.journal,
            victim_index_bytes: state.victim_index_bytes,
            is_fast: state.is_fast,
            may_cache_failures: state.may_cache_failures,
            is_trial_cached: state.is_trial_cached,
        }
    }

    /// Goes on with a session. Tables and plugins must be as they were when it was put aside.
    pub fn resume(
        cluster: &'c mut Cluster,
        plugins: &'c mut PluginSet,
        settings: &'c ActionSettings,
        paused: PausedSession,
    ) -> Self {
        let state = SessionState {
            cluster,
            plugins,
            settings,
            info: paused.info,
            records: Records::default(),
            eviction_holds: paused.eviction_holds,
            victim_index_bytes: paused.victim_index_bytes,
            is_fast: paused.is_fast,
            may_cache_failures: paused.may_cache_failures,
            rules: EvictionRules::default(),
            journal: paused.journal,
            held: Vec::new(),
            evicted: Vec::new(),
            phase_before: BTreeMap::new(),
            n_draws: 0,
            trial: None,
            is_trial_cached: paused.is_trial_cached,
        };
        Self { state, caches: paused.caches, outcome: Outcome::default() }
    }
}
