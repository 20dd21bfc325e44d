//! Codes of the verdict that follow from the tables alone, without a trial: refused binds, objects that cannot be read,
//! gates, and members that do not exist. Specification: answers.md 2 (ANS-6).

use std::collections::BTreeSet;

use vc_framework::Session;
use vc_model::{Gates, Job, Pause, Task, TaskId, TaskStatus};

use crate::code::WaitCode;
use crate::explanation::Verdict;

/// A code that applies, with its text.
pub(crate) type StageRow = (WaitCode, String);

/// Returns the verdict of rows in the order of the stages: the first one, and the codes of the others, each once.
/// Returns `None` if there is no row.
pub(crate) fn verdict_of(rows: Vec<StageRow>) -> Option<Verdict> {
    let mut rows = rows.into_iter();
    let (code, text) = rows.next()?;
    // A job that goes on by itself has no further obstacle.
    let mut seen = BTreeSet::from([code, WaitCode::NextCycle, WaitCode::WaitsForRelease]);
    let also = rows.map(|(code, _)| code).filter(|code| seen.insert(*code)).collect();
    Some(Verdict { code, text, also })
}

/// Returns the row of the first member whose bind was refused and is not repeated yet.
pub(crate) fn bind_failed(session: &Session<'_>, members: &[TaskId]) -> Option<StageRow> {
    let refused = members.iter().find_map(|&task| match &session.tasks[task].pause {
        Some(Pause::Bind(text)) => Some(text.to_string()),
        _ => None,
    });
    Some((WaitCode::BindFailed, refused?))
}

/// Returns the row of the first waiting member whose object cannot be read.
pub(crate) fn invalid(session: &Session<'_>, members: &[TaskId]) -> Option<StageRow> {
    let text = waiting(session, members).find_map(|row| {
        let problem = row.invalid.as_ref()?;
        Some(format!("{}: {problem}", row.key))
    });
    Some((WaitCode::Invalid, text?))
}

/// Returns the row of members with scheduling gates. Returns `None` if there are none, or all gates are our own.
pub(crate) fn gated(session: &Session<'_>, members: &[TaskId]) -> Option<StageRow> {
    if has_own_gates_only(session, members) {
        return None;
    }
    let gated = waiting(session, members).filter(|row| row.gates != Gates::None);
    let gated: Vec<&Task> = gated.collect();
    let names = gated.first()?.gate_names.as_deref().unwrap_or_default();
    let (n_gated, of) = (gated.len(), members.len());
    let have = if n_gated == 1 { "has" } else { "have" };
    let pods = if of == 1 { "pod" } else { "pods" };
    let text = format!("{n_gated} of {of} {pods} {have} scheduling gates: {names}");
    Some((WaitCode::Gated, text))
}

/// Returns the row of a job that JobValid refuses with this message.
pub(crate) fn not_valid(job: &Job, message: &str) -> StageRow {
    let (valid, minimum) = (i64::from(job.counts.valid()), i64::from(job.min_available));
    let text = match valid < minimum {
        true => format!("{valid} of {minimum} needed pods exist"),
        false => message.to_owned(),
    };
    (WaitCode::NotValid, text)
}

/// True if all gates of the members are the one that this scheduler removes itself, and there is one.
pub(crate) fn has_own_gates_only(session: &Session<'_>, members: &[TaskId]) -> bool {
    let is_ours = session.view().cluster.settings.queue_gate_admission;
    let gated = members.iter().map(|&task| &session.tasks[task]);
    let mut gated = gated.filter(|task| task.gates != Gates::None).peekable();
    gated.peek().is_some()
        && gated.all(|task| {
            task.ungating
                || is_ours && task.gates == Gates::QueueAllocationOnly && task.manages_queue_gate
        })
}

fn waiting<'s>(session: &'s Session<'_>, members: &'s [TaskId]) -> impl Iterator<Item = &'s Task> {
    let rows = members.iter().map(move |&task| &session.tasks[task]);
    rows.filter(|row| row.status == TaskStatus::Pending)
}
