//! What would happen with changes, as JSON. Specification: answers.md 9 (ANS-49, ANS-50), 11 (ANS-70).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vc_answers::{EvictedPod, PlacedPod, WhatIfBound, WhatIfResult};
use vc_model::ObjectKey;

use crate::convert::{OwnerOf, StateSource, job_name};
use crate::explanation::{API_VERSION, AsOfJson};

/// What differs with the changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhatIfResultJson {
    /// Group and version.
    pub api_version: String,
    /// `WhatIfResult`.
    pub kind: String,
    /// The state before the changes.
    pub as_of: AsOfJson,
    /// True if nothing was left out for lack of budget.
    pub complete: bool,
    /// What was left out for lack of budget, each with its bound.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub left_out: Vec<WhatIfBoundJson>,
    /// Number of cycles with the changes.
    pub cycles: u32,
    /// True if the last cycle decided nothing.
    pub settled: bool,
    /// Pods that get a node with the changes only.
    pub placed: Vec<PlacedPodJson>,
    /// Pods that get a node without the changes only.
    pub not_placed: Vec<PlacedPodJson>,
    /// Pods that get another node.
    pub moved: Vec<MovedPodJson>,
    /// Pods that have to go with the changes only.
    pub evicted: Vec<SupposedEvictionJson>,
    /// Pods that have to go without the changes only.
    pub spared: Vec<SupposedEvictionJson>,
    /// Jobs that wait at the end, if the changes name them or they do not wait without the changes.
    pub waiting: Vec<StillWaitingJson>,
    /// Queues that differ.
    pub queues: Vec<QueueDifferenceJson>,
    /// Pods that the changes apply and that have no node at the end.
    pub unplaced: Vec<String>,
    /// What the answer does not take into account.
    pub warnings: Vec<String>,
    /// Full lengths of lists of which rows were left out, by name.
    pub truncated: BTreeMap<String, usize>,
}

/// What was left out, and beyond which bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIfBoundJson {
    /// `ends`: ends of pods while the clock moves on. `cycles`: cycles after the changes.
    pub what: String,
    /// The bound.
    pub most: usize,
}

/// A pod with its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacedPodJson {
    /// Namespace and name.
    pub pod: String,
    /// Its PodGroup.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pod_group: Option<String>,
    /// Name of the node.
    pub node: String,
}

/// A pod that gets another node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MovedPodJson {
    /// Namespace and name.
    pub pod: String,
    /// Its PodGroup.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pod_group: Option<String>,
    /// Its node without the changes.
    pub from: String,
    /// Its node with the changes.
    pub to: String,
}

/// A pod that has to go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SupposedEvictionJson {
    /// Namespace and name.
    pub pod: String,
    /// Its PodGroup.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pod_group: Option<String>,
    /// The action, or `drain` if its node is removed.
    pub action: String,
    /// The PodGroup for which it goes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub r#for: Option<String>,
    /// The same job as users know it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub for_job: Option<String>,
    /// The plugins that granted it, in order.
    pub plugins: Vec<String>,
}

/// A job that waits at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StillWaitingJson {
    /// PodGroup, or the pod if it has none.
    pub pod_group: String,
    /// The same as users know it.
    #[serde(default)]
    pub job: String,
    /// Why it waits, as a stable name.
    pub code: String,
    /// The same in one line.
    pub text: String,
}

/// A queue that holds something else, or has another share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueueDifferenceJson {
    /// Name.
    pub queue: String,
    /// Resources of which it and the queues below it hold another amount: without the changes, and with them.
    pub allocated: BTreeMap<String, [String; 2]>,
    /// Its share without and with the changes, if they differ. An unknown share is `null`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub share: Option<[Option<f64>; 2]>,
}

impl WhatIfResultJson {
    /// Returns a result as JSON type.
    pub fn new(it: &WhatIfResult, owner: OwnerOf<'_>, source: StateSource) -> Self {
        let moved = it.moved.iter().map(|row| MovedPodJson {
            pod: row.pod.to_string(),
            pod_group: text(row.pod_group.as_ref()),
            from: row.from.to_string(),
            to: row.to.to_string(),
        });
        let waiting = it.waiting.iter().map(|row| StillWaitingJson {
            pod_group: row.key.to_string(),
            job: job_name(&row.key, owner),
            code: row.code.as_str().to_owned(),
            text: row.text.clone(),
        });
        let queues = it.queues.iter().map(|row| QueueDifferenceJson {
            queue: row.queue.to_string(),
            allocated: row.allocated.iter().cloned().collect(),
            share: row.share,
        });
        let evicted = |rows: &[EvictedPod]| rows.iter().map(|row| eviction(row, owner)).collect();
        let truncated = it.truncated.iter().map(|(name, rows)| ((*name).to_owned(), *rows));
        Self {
            api_version: API_VERSION.to_owned(),
            kind: "WhatIfResult".to_owned(),
            as_of: source.as_of(it.as_of),
            complete: it.is_complete(),
            left_out: it.left_out.iter().map(bound).collect(),
            cycles: it.cycles,
            settled: it.is_settled,
            placed: it.placed.iter().map(placed).collect(),
            not_placed: it.not_placed.iter().map(placed).collect(),
            moved: moved.collect(),
            evicted: evicted(&it.evicted),
            spared: evicted(&it.spared),
            waiting: waiting.collect(),
            queues: queues.collect(),
            unplaced: it.unplaced_applied.iter().map(ToString::to_string).collect(),
            warnings: it.warnings.clone(),
            truncated: truncated.collect(),
        }
    }
}

fn text(key: Option<&ObjectKey>) -> Option<String> {
    key.map(ToString::to_string)
}

fn bound(it: &WhatIfBound) -> WhatIfBoundJson {
    WhatIfBoundJson { what: it.as_str().to_owned(), most: it.most() }
}

fn placed(row: &PlacedPod) -> PlacedPodJson {
    PlacedPodJson {
        pod: row.pod.to_string(),
        pod_group: text(row.pod_group.as_ref()),
        node: row.node.to_string(),
    }
}

fn eviction(row: &EvictedPod, owner: OwnerOf<'_>) -> SupposedEvictionJson {
    SupposedEvictionJson {
        pod: row.pod.to_string(),
        pod_group: text(row.pod_group.as_ref()),
        action: row.action.to_owned(),
        r#for: text(row.for_group.as_ref()),
        for_job: row.for_group.as_ref().map(|group| job_name(group, owner)),
        plugins: row.plugins.iter().map(|name| (*name).to_owned()).collect(),
    }
}
