//! The action `shuffle`: evicts the pods that plugins select, for no job in particular.
//! Specification: actions.md 8, A40, plugins-jobs-queues.md D2.

use vc_framework::tracing::error;
use vc_framework::{Action, EvictReason, Question, Session, SessionState, klog};
use vc_model::{TaskId, TaskStatus};

pub(crate) struct Shuffle;

impl Action for Shuffle {
    fn name(&self) -> &'static str {
        "shuffle"
    }

    fn run(&self, session: &mut Session<'_>) {
        klog!(5; "Enter Shuffle ...");
        // Without a plugin that selects victims, no candidates are collected.
        let is_asked = session.plugins().has_victim_tasks();
        let running = if is_asked { running(session) } else { Vec::new() };
        let victims = session.select_victims(Question::Shuffle, &running).victims;
        let mut statement = session.evicting_statement();
        for victim in victims {
            if let Err(refused) = statement.evict(victim, EvictReason::Shuffle, None) {
                error!("Failed to evict Task <{}>: {refused}", statement.tasks[victim].key);
            }
        }
        if !statement.is_empty() {
            statement.commit();
        }
        klog!(5; "Leaving Shuffle ...");
    }
}

/// Returns the Running tasks of all jobs, except tasks whose eviction was refused recently.
fn running(session: &SessionState<'_>) -> Vec<TaskId> {
    let jobs = session.view().all_jobs();
    let tasks = jobs.flat_map(|job| session.jobs[job].tasks.iter().copied());
    let may_go = |&task: &TaskId| {
        let row = &session.tasks[task];
        row.status == TaskStatus::Running && row.pause.is_none()
    };
    tasks.filter(may_go).collect()
}
