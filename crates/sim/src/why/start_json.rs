//! When a job starts, why nobody was evicted, and remedies as changes, for programs.
//! Specification: answers.md 5, 7, 8, 18.

use serde::Serialize;
use serde_json::{Value, json};
use vc_answers::{EvictionAnswer, RemedyChange, StartAnswer, time_text};
use vc_model::ObjectKey;

use super::names::OwnerNames;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StartJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    earliest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    assumes: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits_for: Vec<AwaitedJson>,
}

#[derive(Serialize)]
struct AwaitedJson {
    job: String,
    pods: usize,
    nodes: Vec<String>,
    end: String,
    source: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EvictJson<'a> {
    actions: Vec<ActionJson<'a>>,
    not_configured: &'a [&'static str],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    compared: Vec<&'a str>,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'static str>,
}

#[derive(Serialize)]
struct ActionJson<'a> {
    action: &'static str,
    causes: Vec<CauseJson<'a>>,
}

#[derive(Serialize)]
struct CauseJson<'a> {
    count: u32,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<&'static str>,
}

impl StartJson {
    pub(super) fn of(it: &StartAnswer, owners: &OwnerNames) -> Self {
        let awaited = it.waits_for.iter().map(|job| AwaitedJson {
            job: owners.name(&job.job),
            pods: job.pods,
            nodes: job.nodes.iter().map(|node| node.to_string()).collect(),
            end: time_text(job.end.at_micros),
            source: job.end.source.as_str(),
        });
        Self {
            earliest: it.earliest_micros.map(time_text),
            expected: it.expected_micros.map(time_text),
            reason: it.unknown.as_ref().map(|reason| reason.as_str()),
            text: it.unknown.as_ref().map(|reason| reason.text()),
            assumes: it.assumes.clone(),
            waits_for: awaited.collect(),
        }
    }
}

impl<'a> EvictJson<'a> {
    pub(super) fn of(it: &'a EvictionAnswer) -> Self {
        let actions = it.actions.iter().map(|action| ActionJson {
            action: action.action,
            causes: action
                .causes
                .iter()
                .map(|cause| CauseJson {
                    count: cause.count,
                    text: &cause.text,
                    plugin: cause.plugin,
                })
                .collect(),
        });
        Self {
            actions: actions.collect(),
            not_configured: &it.not_configured,
            compared: it.compared.iter().map(String::as_str).collect(),
            text: &it.text,
            remedy: it.remedy,
        }
    }
}

/// Returns a remedy as one change of a document `WhatIf`.
pub(super) fn change_json(change: &RemedyChange) -> Value {
    let name = |job: &ObjectKey| job.to_string();
    match change {
        RemedyChange::Tolerate { job, taints } => {
            let tolerations = taints.iter().map(|(key, value, effect)| {
                let effect = RemedyChange::effect_text(*effect);
                json!({ "key": &**key, "value": &**value, "effect": effect })
            });
            let tolerations: Vec<Value> = tolerations.collect();
            json!({ "setPods": { "job": name(job), "tolerations": tolerations } })
        }
        RemedyChange::Priority { job, class } => {
            json!({ "setJob": { "job": name(job), "priorityClassName": &**class } })
        }
        RemedyChange::Request { job, resource, amount } => {
            json!({ "setPods": { "job": name(job), "requests": { (resource.as_str()): amount } } })
        }
        RemedyChange::Minimum { job, minimum } => {
            json!({ "setJob": { "job": name(job), "minMember": minimum } })
        }
        RemedyChange::Capability { queue, amounts } => {
            let amounts =
                amounts.iter().map(|(name, amount)| (name.clone(), amount.clone().into()));
            let amounts: serde_json::Map<String, Value> = amounts.collect();
            json!({ "setQueue": { "name": &**queue, "capability": amounts } })
        }
        RemedyChange::AddNodes { like, count } => {
            json!({ "addNodes": { "like": &**like, "count": count } })
        }
        RemedyChange::Uncordon { nodes } => {
            let names: Vec<&str> = nodes.iter().map(|node| &**node).collect();
            json!({ "uncordon": { "names": names } })
        }
    }
}
