//! The difference for programs. Specification: answers.md 9 (ANS-49, ANS-50), 11 (ANS-70).

use std::collections::BTreeMap;

use serde::Serialize;
use vc_answers::{EvictedPod, PlacedPod, WhatIfResult, time_text};

use crate::input::ANSWERS;

/// A result.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WhatIfJson<'a> {
    api_version: &'static str,
    kind: &'static str,
    as_of: AsOfJson,
    complete: bool,
    cycles: u32,
    settled: bool,
    placed: Vec<PlacedJson<'a>>,
    not_placed: Vec<PlacedJson<'a>>,
    moved: Vec<MovedJson<'a>>,
    evicted: Vec<EvictedJson<'a>>,
    spared: Vec<EvictedJson<'a>>,
    waiting: Vec<WaitingJson<'a>>,
    queues: Vec<QueueJson<'a>>,
    unplaced: Vec<String>,
    warnings: &'a [String],
    truncated: BTreeMap<&'static str, usize>,
}

#[derive(Serialize)]
struct AsOfJson {
    time: String,
    cycle: u64,
    source: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlacedJson<'a> {
    pod: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pod_group: Option<String>,
    node: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MovedJson<'a> {
    pod: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pod_group: Option<String>,
    from: &'a str,
    to: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EvictedJson<'a> {
    pod: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pod_group: Option<String>,
    action: &'static str,
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    for_group: Option<String>,
    plugins: &'a [&'static str],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WaitingJson<'a> {
    pod_group: String,
    code: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct QueueJson<'a> {
    queue: &'a str,
    allocated: BTreeMap<&'a str, &'a [String; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<[Option<f64>; 2]>,
}

impl<'a> WhatIfJson<'a> {
    pub(super) fn of(it: &'a WhatIfResult) -> Self {
        let moved = it.moved.iter().map(|row| MovedJson {
            pod: row.pod.to_string(),
            pod_group: row.pod_group.as_ref().map(ToString::to_string),
            from: &row.from,
            to: &row.to,
        });
        let waiting = it.waiting.iter().map(|row| WaitingJson {
            pod_group: row.key.to_string(),
            code: row.code.as_str(),
            text: &row.text,
        });
        let queues = it.queues.iter().map(|row| QueueJson {
            queue: &row.queue,
            allocated: row.allocated.iter().map(|(name, pair)| (name.as_str(), pair)).collect(),
            share: row.share,
        });
        Self {
            api_version: ANSWERS,
            kind: "WhatIfResult",
            as_of: AsOfJson {
                time: time_text(it.as_of.time_micros),
                cycle: it.as_of.cycle,
                source: "file",
                version: env!("CARGO_PKG_VERSION"),
            },
            complete: it.is_complete,
            cycles: it.cycles,
            settled: it.is_settled,
            placed: it.placed.iter().map(placed).collect(),
            not_placed: it.not_placed.iter().map(placed).collect(),
            moved: moved.collect(),
            evicted: it.evicted.iter().map(evicted).collect(),
            spared: it.spared.iter().map(evicted).collect(),
            waiting: waiting.collect(),
            queues: queues.collect(),
            unplaced: it.unplaced_applied.iter().map(ToString::to_string).collect(),
            warnings: &it.warnings,
            truncated: it.truncated.iter().copied().collect(),
        }
    }
}

fn placed(row: &PlacedPod) -> PlacedJson<'_> {
    PlacedJson {
        pod: row.pod.to_string(),
        pod_group: row.pod_group.as_ref().map(ToString::to_string),
        node: &row.node,
    }
}

fn evicted(row: &EvictedPod) -> EvictedJson<'_> {
    EvictedJson {
        pod: row.pod.to_string(),
        pod_group: row.pod_group.as_ref().map(ToString::to_string),
        action: row.action,
        for_group: row.for_group.as_ref().map(ToString::to_string),
        plugins: &row.plugins,
    }
}
