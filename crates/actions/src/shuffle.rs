//! Evicts what plugins select, without anybody who gets the room. Specification: actions.md 8, A40,
//! plugins-jobs-queues.md D2.

use vc_framework::tracing::error;
use vc_framework::{Action, EvictReason, Question, Session, klog};
use vc_model::{TaskId, TaskStatus};

pub(crate) struct Shuffle;

impl Action for Shuffle {
    fn name(&self) -> &'static str {
        "shuffle"
    }

    fn run(&self, session: &mut Session<'_>) {
        klog!(5; "Enter Shuffle ...");
        // Nobody has to be offered where nobody is selected.
        let is_asked = session.hooks().select_victims();
        let running = if is_asked { running(session) } else { Vec::new() };
        let victims = session.ruling(Question::Shuffle, &running).victims;
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

/// The Running tasks of all jobs whose eviction was not refused just now.
fn running(session: &Session<'_>) -> Vec<TaskId> {
    let jobs = session.ask().all_jobs();
    let tasks = jobs.flat_map(|job| session.jobs[job].tasks.iter().copied());
    let may_go = |&task: &TaskId| {
        let row = &session.tasks[task];
        row.status == TaskStatus::Running && row.pause.is_none()
    };
    tasks.filter(may_go).collect()
}
