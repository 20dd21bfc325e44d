//! The condition that a PodGroup shows, where it says something else than the verdict. Specification: answers.md 2
//! (ANS-9).

use vc_framework::SessionState;
use vc_model::{JobId, PodGroupCondition};

use crate::code::WaitCode;
use crate::explanation::{LastCondition, Verdict};

/// Returns the condition `Unschedulable` of the PodGroup, if it says something else than the verdict. Nothing is
/// written for a pod without a PodGroup of its own.
pub(crate) fn last_condition(
    session: &SessionState<'_>,
    job: JobId,
    verdict: &Verdict,
) -> Option<LastCondition> {
    let row = &session.jobs[job];
    let group = row.pod_group.as_ref().filter(|_| !row.bare)?;
    let says_no = |condition: &&PodGroupCondition| {
        &*condition.kind == "Unschedulable" && &*condition.status == "True"
    };
    let condition = group.status.conditions.iter().find(says_no)?;
    let (reason, message) = (condition.reason.clone(), condition.message.clone());
    (!agrees((&*reason, &*message), verdict)).then_some(LastCondition { reason, message })
}

/// True if a condition and the verdict say the same. The text that plugin gang writes, `2/2 tasks in gang
/// unschedulable`, is the same for whatever a job waits for.
fn agrees((reason, message): (&str, &str), verdict: &Verdict) -> bool {
    let has_code = |code: WaitCode| verdict.code == code || verdict.also.contains(&code);
    match reason {
        _ if matches!(verdict.code, WaitCode::NextCycle | WaitCode::WaitsForRelease) => false,
        // Volcano writes these.
        "NotEnoughTasks" | "NotEnoughPodsOfTask" => has_code(WaitCode::NotValid),
        "NotEnoughResources" if is_of_missing_queue(message) => has_code(WaitCode::QueueMissing),
        "NotEnoughResources" => true,
        _ => false,
    }
}

fn is_of_missing_queue(message: &str) -> bool {
    message.starts_with("queue ") && message.ends_with(" does not exist")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_09_a_condition_of_another_reason_disagrees() {
        use WaitCode::{Gated, NextCycle, NoRoom, NotValid, QueueFull, WaitsForRelease};
        let gang =
            ("NotEnoughResources", "2/2 tasks in gang unschedulable: pod group is not ready");
        let queue = ("NotEnoughResources", "queue research does not exist");
        let members = ("NotEnoughTasks", "Not enough valid tasks for gang-scheduling");
        let roles = ("NotEnoughPodsOfTask", "Not enough valid pods of each task");
        let others = ("Suspended", "by its owner");
        for (condition, code, also, expected) in [
            (gang, NoRoom, None, true),
            (gang, QueueFull, None, true),
            (gang, NotValid, None, true),
            (gang, NextCycle, None, false),
            (gang, WaitsForRelease, None, false),
            (queue, NoRoom, None, false),
            (members, NotValid, None, true),
            (members, Gated, Some(NotValid), true),
            (members, NoRoom, None, false),
            (roles, NotValid, None, true),
            (roles, QueueFull, None, false),
            (others, NoRoom, None, false),
        ] {
            let verdict = Verdict { code, text: String::new(), also: also.into_iter().collect() };
            assert_eq!(agrees(condition, &verdict), expected, "{condition:?} {code:?}");
        }
    }
}
