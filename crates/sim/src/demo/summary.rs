//! What the demo ends with: pods bound, gangs complete, times to bind, what still waits and why.

use std::time::Duration;

use super::state::{DemoState, GangView, MemberCounts, count, span};

/// Lines about what waits; a workload that waits as a whole would hide the figures.
const MOST_WAITING: usize = 20;

/// The result of a demo.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DemoSummary {
    /// Pods that the scheduler has bound.
    pub pods_bound: usize,
    /// Pods that there have been.
    pub pods: usize,
    /// Gangs that have had their minimum bound.
    pub gangs_complete: usize,
    /// Gangs that there are.
    pub gangs: usize,
    /// From creation to bind, measured at the API server; absent when nothing was bound.
    pub time_to_bind: Option<Quantiles>,
    /// What has not got all that it asks for.
    pub waiting: Vec<WaitingGang>,
    /// From the start of the workload.
    pub took: Duration,
    /// Whether all that can run has run; else the time was up.
    pub settled: bool,
    /// Objects that could not be applied.
    pub refused: Vec<String>,
}

/// Quantiles of a set of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantiles {
    /// Half of them are not longer.
    pub p50: Duration,
    /// 99 of 100 are not longer.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

/// A gang, or a pod without one, that has not got all that it asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingGang {
    /// `gang giant`, `pod default/web`.
    pub what: String,
    /// Its members without a node.
    pub pods: usize,
    /// As the scheduler says; empty when it has said nothing.
    pub reason: String,
}

impl DemoSummary {
    /// The summary of what has been seen until `now`.
    pub fn of(
        state: &DemoState,
        now: Duration,
        settled: bool,
        refused: Vec<String>,
    ) -> DemoSummary {
        let gangs = state.gangs();
        DemoSummary {
            pods_bound: state.bind_times.len(),
            pods: state.pods_seen,
            gangs_complete: gangs.iter().filter(|(gang, _)| gang.completed.is_some()).count(),
            gangs: gangs.len(),
            time_to_bind: quantiles(&state.bind_times),
            waiting: waiting(state, &gangs),
            took: now,
            settled,
            refused,
        }
    }

    /// The summary as text.
    pub fn lines(&self) -> Vec<String> {
        let ended = if self.settled { "settled after" } else { "not settled after" };
        let mut lines = vec![
            format!("{ended} {}", span(self.took)),
            String::new(),
            format!("pods bound       {} of {}", self.pods_bound, self.pods),
            format!("gangs complete   {} of {}", self.gangs_complete, self.gangs),
        ];
        if let Some(Quantiles { p50, p99, max }) = self.time_to_bind {
            let [p50, p99, max] = [p50, p99, max].map(span);
            lines.push(format!("time to bind     p50 {p50}, p99 {p99}, longest {max}"));
            let scope = "created to bound at the API server, waiting for room included";
            lines.push(format!("                 ({scope})"));
        }
        lines.extend(self.waiting_lines());
        lines.extend(self.refused.iter().map(|line| format!("not applied      {line}")));
        lines
    }

    fn waiting_lines(&self) -> Vec<String> {
        if self.waiting.is_empty() {
            return vec!["still waiting    nothing".to_owned()];
        }
        let pods: usize = self.waiting.iter().map(|it| it.pods).sum();
        let mut lines = vec![format!("still waiting    {}", count(pods, "pod"))];
        for WaitingGang { what, pods, reason } in self.waiting.iter().take(MOST_WAITING) {
            let reason = if reason.is_empty() { "no reason given yet" } else { reason };
            lines.push(format!("  {what}, {}: {reason}", count(*pods, "pod")));
        }
        let more = self.waiting.len().saturating_sub(MOST_WAITING);
        if 0 < more {
            lines.push(format!("  and {more} more"));
        }
        lines
    }
}

/// Nearest rank; absent for no times.
pub fn quantiles(times: &[Duration]) -> Option<Quantiles> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let rank = |percent: usize| (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    let at = |percent| sorted.get(rank(percent)).copied();
    Some(Quantiles { p50: at(50)?, p99: at(99)?, max: *sorted.last()? })
}

fn waiting(state: &DemoState, gangs: &[(&GangView, MemberCounts)]) -> Vec<WaitingGang> {
    let is_waiting = |(gang, members): &&(&GangView, MemberCounts)| {
        gang.completed.is_none() || 0 < members.waiting()
    };
    let gangs = gangs.iter().filter(is_waiting).map(|(gang, members)| WaitingGang {
        what: format!("gang {}", gang.title),
        pods: members.waiting(),
        reason: reason(state, gang).to_owned(),
    });
    let pods = state.single_pods().filter(|(_, pod)| pod.waits()).map(|(key, pod)| WaitingGang {
        what: format!("pod {}/{}", key.namespace, key.name),
        pods: 1,
        reason: pod.reason.clone(),
    });
    gangs.chain(pods).collect()
}

/// A gang that is complete can only wait with the members above its minimum.
fn reason<'a>(state: &'a DemoState, gang: &'a GangView) -> &'a str {
    match gang.completed {
        None if !gang.reason.is_empty() => &gang.reason,
        _ => state.reason_of_member(gang).unwrap_or_default(),
    }
}
