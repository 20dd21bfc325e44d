//! Conditions of pods whose bind is decided and waits for volumes or devices. They are written
//! after two seconds, because most volumes are bound before. Specification: core.md 3.10 (C-43),
//! plugins-nodes.md 2.8.

use std::collections::BTreeMap;

use vc_framework::{Nomination, Session, SessionState};
use vc_model::{BindingStage, JobId, TaskId, TaskStatus};

use super::pods;
use crate::engine::EngineMemory;

/// Wait without a condition. A shorter wait is not worth a write.
const GRACE_MICROS: i64 = 2_000_000;
/// Reason of the condition. It is not `Unschedulable`, because an additional node would not help.
const REASON: &str = "Binding";

/// Writes the condition of each pod whose bind waits longer than [`GRACE_MICROS`].
pub(super) fn record(session: &mut Session<'_>, memory: &mut EngineMemory) {
    let mut due_micros = memory.outside_due_micros;
    for (tasks, since_micros) in gangs(session) {
        let reported_micros = since_micros.saturating_add(GRACE_MICROS);
        if session.info().now_micros < reported_micros {
            due_micros = Some(due_micros.unwrap_or(i64::MAX).min(reported_micros));
            continue;
        }
        let mut last = None;
        for task in tasks {
            let text = text(session, task);
            pods::report_condition(session, task, (REASON, &text), Nomination::Keep, &mut last);
        }
    }
    memory.outside_due_micros = due_micros;
}

/// Returns the waiting binds of each job, and the time since when the first of them waits.
fn gangs(session: &SessionState<'_>) -> Vec<(Vec<TaskId>, i64)> {
    let mut gangs: BTreeMap<JobId, (Vec<TaskId>, i64)> = BTreeMap::new();
    for task in session.volumes.held().filter(|&task| is_held(session, task)) {
        let Some(job) = session.tasks[task].job else { continue };
        let (tasks, since_micros) = gangs.entry(job).or_insert((Vec::new(), i64::MAX));
        tasks.push(task);
        let stage = session.volumes.reservation(task).map(|reservation| &reservation.stage);
        if let Some(
            BindingStage::Sent { since_micros: at }
            | BindingStage::Written { since_micros: at, .. },
        ) = stage
        {
            *since_micros = (*since_micros).min(*at);
        }
    }
    gangs.into_values().collect()
}

/// True if the bind of the task is decided and waits for volumes or devices of its gang.
pub(crate) fn is_held(session: &SessionState<'_>, task: TaskId) -> bool {
    session.tasks[task].status == TaskStatus::Binding && session.volumes.is_held(task)
}

/// Returns a text like `waiting on node n1 for PersistentVolumeClaims a, b to be bound`.
pub(crate) fn text(session: &SessionState<'_>, task: TaskId) -> String {
    let row = &session.tasks[task];
    let node = row.node.map_or("", |node| &session.nodes[node].name);
    let reservation = session.volumes.reservation(task);
    let is_open = |name: &&str| {
        let key = vc_model::ObjectKey::new(&row.key.namespace, name);
        session.volumes.claim(&key).is_none_or(|claim| !claim.is_bound())
    };
    let claims = reservation.into_iter().flat_map(|reservation| reservation.claims());
    let claims: Vec<&str> = claims.map(|claim| &*claim.key.name).filter(is_open).collect();
    let waits_for = match (&claims[..], reservation) {
        ([claim], _) => format!("PersistentVolumeClaim {claim} to be bound"),
        ([_, ..], _) => format!("PersistentVolumeClaims {} to be bound", claims.join(", ")),
        ([], Some(reservation))
            if !reservation.devices.is_empty()
                && !matches!(reservation.stage, BindingStage::Written { .. }) =>
        {
            "its ResourceClaims to be reserved".to_owned()
        }
        _ => "the volumes or devices of other pods of its PodGroup".to_owned(),
    };
    format!("waiting on node {node} for {waits_for}")
}
