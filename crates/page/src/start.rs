//! When a job starts, why nobody was evicted, and remedies as changes, as JSON. Specification:
//! answers.md 5, 7, 8, 18.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use vc_answers::{
    EndSource, EvictionAnswer, RaisedQuota, RemedyChange, StartAnswer, StartUnknown, time_text,
};
use vc_model::ObjectKey;

use crate::convert::{OwnerOf, job_name};
use crate::explanation::is_false;

/// When a job starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartJson {
    /// Start of the job alone, as if no other job waited, RFC 3339. Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub earliest: Option<String>,
    /// Start with all jobs that wait now, RFC 3339. Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expected: Option<String>,
    /// Start with all jobs that wait now, if pods run as long as the longest tenth of earlier ones of
    /// their kind, RFC 3339. Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub latest: Option<String>,
    /// True if an end that is waited for is learned from fewer than five runs.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub few: bool,
    /// How many of the last predictions held, and the number of these. Absent if nothing that was
    /// predicted has started yet.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub held: Option<[usize; 2]>,
    /// Why `expected` is absent, as a stable name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// The same in words.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
    /// Why `earliest` is absent. Absent if it is there, or if `reason` says why.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub earliest_unknown: Option<UnknownTimeJson>,
    /// Why `latest` is absent. Absent if it is there, or if `reason` says why.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub latest_unknown: Option<UnknownTimeJson>,
    /// What `expected` takes for granted.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub assumes: Vec<String>,
    /// The pods whose ends the job waits for, by job.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub waits_for: Vec<AwaitedJson>,
}

/// Why a time is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnknownTimeJson {
    /// The reason as a stable name.
    pub reason: String,
    /// The same in words: `no latest start is known: not within 24h`.
    pub text: String,
}

impl UnknownTimeJson {
    fn of(word: &str, reason: Option<&StartUnknown>) -> Option<Self> {
        let reason = reason?;
        let text = format!("no {word} start is known: {}", reason.text());
        Some(Self { reason: reason.as_str().to_owned(), text })
    }
}

impl StartJson {
    /// True if a time was not found because the budget of the question was spent.
    pub(crate) fn is_incomplete(&self) -> bool {
        let others = [&self.earliest_unknown, &self.latest_unknown].into_iter().flatten();
        let mut reasons = self.reason.iter().chain(others.map(|unknown| &unknown.reason));
        reasons.any(|reason| reason == StartUnknown::Budget.as_str())
    }
}

/// Pods of one job that are expected to end. Those that terminate already are an entry of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AwaitedJson {
    /// Namespace and name of the job.
    pub job: String,
    /// True if the reader may not see the job; `job` then only tells hidden jobs apart.
    #[serde(skip_serializing_if = "is_false", default)]
    pub hidden: bool,
    /// Number of pods.
    pub pods: usize,
    /// Their nodes. Empty if the reader may not list nodes.
    pub nodes: Vec<String>,
    /// The last of their ends, RFC 3339.
    pub end: String,
    /// Where the end is from: `deadline`, `stated`, `learned`, or `terminating`, if the grace period of the
    /// pods ends then.
    pub source: String,
    /// The number of runs from which it is learned.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub runs: Option<usize>,
}

/// Why nobody was evicted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvictJson {
    /// What each action found that tried.
    pub actions: Vec<EvictingActionJson>,
    /// Evicting actions that are not configured.
    pub not_configured: Vec<String>,
    /// What plugins that refused have compared.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub compared: Vec<String>,
    /// All of it in one line.
    pub text: String,
    /// A change that would help.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub remedy: Option<String>,
}

/// An action that evicted nobody for the job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvictingActionJson {
    /// Its name.
    pub action: String,
    /// The causes.
    pub causes: Vec<EvictionCauseJson>,
}

/// A cause with its count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvictionCauseJson {
    /// How often it was found.
    pub count: u32,
    /// What `count` counts: `nodes`, `pods`, `tries` (for a pod, or for a pod on a node), or `job`: the cause is one of
    /// the job as a whole, and `count` is 1. Empty if the scheduler is of an older version.
    #[serde(default)]
    pub counted_in: String,
    /// The cause in words.
    pub text: String,
    /// The plugin that refused.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub plugin: Option<String>,
}

/// A pod that had to go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvictedPodJson {
    /// Namespace and name.
    pub pod: String,
    /// Its PodGroup.
    pub pod_group: String,
    /// The action that evicted it.
    pub action: String,
    /// The PodGroup that gets the room. Absent if a plugin chose the pod.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub r#for: Option<String>,
    /// The plugins that granted it.
    pub plugins: Vec<String>,
    /// Their tier, from 1. Absent if no tier voted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tier: Option<usize>,
    /// Of the pods that went with it each of these was needed: `pod`, `bundle`, `group`. Absent if that is not
    /// stated.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub minimal: Option<String>,
    /// All of it in one line.
    pub text: String,
}

impl StartJson {
    pub(crate) fn of(it: &StartAnswer, owner: OwnerOf<'_>) -> Self {
        let awaited = it.waits_for.iter().map(|job| AwaitedJson {
            job: job_name(&job.job, owner),
            hidden: false,
            pods: job.pods,
            nodes: job.nodes.iter().map(|node| node.to_string()).collect(),
            end: time_text(job.end.at_micros),
            source: job.end.source.as_str().to_owned(),
            runs: match job.end.source {
                EndSource::Learned(runs) => Some(runs),
                _ => None,
            },
        });
        Self {
            earliest: it.earliest_micros.map(time_text),
            expected: it.expected_micros.map(time_text),
            latest: it.latest_micros.map(time_text),
            few: it.is_of_few,
            held: None,
            reason: it.unknown.as_ref().map(|reason| reason.as_str().to_owned()),
            text: it.unknown.as_ref().map(|reason| reason.text()),
            earliest_unknown: UnknownTimeJson::of("earliest", it.earliest_unknown.as_ref()),
            latest_unknown: UnknownTimeJson::of("latest", it.latest_unknown.as_ref()),
            assumes: it.assumes.iter().map(|&name| name.to_owned()).collect(),
            waits_for: awaited.collect(),
        }
    }
}

impl EvictJson {
    pub(crate) fn of(it: &EvictionAnswer) -> Self {
        let actions = it.actions.iter().map(|action| {
            let causes = action.causes.iter().map(|cause| EvictionCauseJson {
                count: cause.count,
                counted_in: cause.counted_in.as_str().to_owned(),
                text: cause.text.clone(),
                plugin: cause.plugin.map(str::to_owned),
            });
            EvictingActionJson { action: action.action.to_owned(), causes: causes.collect() }
        });
        Self {
            actions: actions.collect(),
            not_configured: it.not_configured.iter().map(|&name| name.to_owned()).collect(),
            compared: it.compared.clone(),
            text: it.text.clone(),
            remedy: it.remedy.map(str::to_owned),
        }
    }
}

/// Returns a remedy as one change of a document `WhatIf`, or as a list if it takes several.
pub(crate) fn change_json(change: &RemedyChange) -> Value {
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
        RemedyChange::NodeSelector { job, labels } => {
            let labels = labels.iter().map(|(key, value)| (key.to_string(), (&**value).into()));
            let labels: serde_json::Map<String, Value> = labels.collect();
            json!({ "setPods": { "job": name(job), "nodeSelector": labels } })
        }
        RemedyChange::CreateQueue { queue } => {
            let (version, metadata) =
                ("scheduling.volcano.sh/v1beta1", json!({ "name": &**queue }));
            let object = json!({ "apiVersion": version, "kind": "Queue", "metadata": metadata });
            json!({ "apply": [object] })
        }
        RemedyChange::Quota { queue, raised } => json!({ "setQueue": quota_json(queue, raised) }),
        RemedyChange::AddNodes { like, count } => {
            json!({ "addNodes": { "like": &**like, "count": count } })
        }
        RemedyChange::Uncordon { nodes } => {
            let names: Vec<&str> = nodes.iter().map(|node| &**node).collect();
            json!({ "uncordon": { "names": names } })
        }
        RemedyChange::Finish { jobs } => {
            let jobs: Vec<String> = jobs.iter().map(name).collect();
            json!({ "finish": { "jobs": jobs } })
        }
        RemedyChange::Several(changes) => changes.iter().map(change_json).collect(),
    }
}

/// Returns the fields of a change `setQueue`.
fn quota_json(queue: &str, raised: &RaisedQuota) -> Value {
    let mut fields = json!({ "name": queue });
    let lists = [
        ("capability", &raised.capability),
        ("deserved", &raised.deserved),
        ("guarantee", &raised.guarantee),
    ];
    for (field, amounts) in lists {
        if !amounts.is_empty() {
            let amounts =
                amounts.iter().map(|(name, amount)| (name.clone(), amount.clone().into()));
            fields[field] = Value::Object(amounts.collect());
        }
    }
    if let Some(weight) = raised.weight {
        fields["weight"] = weight.into();
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_28_several_changes_are_a_list() {
        let (job, taint) = (ObjectKey::new("ml", "train"), ("team".into(), "vision".into()));
        let taints = vec![(taint.0, taint.1, vc_model::TaintEffect::NoSchedule)];
        let tolerate = RemedyChange::Tolerate { job, taints };
        let uncordon = RemedyChange::Uncordon { nodes: vec!["g1".into()] };
        let toleration = json!({ "key": "team", "value": "vision", "effect": "NoSchedule" });
        let expected = json!([
            { "setPods": { "job": "ml/train", "tolerations": [toleration] } },
            { "uncordon": { "names": ["g1"] } },
        ]);
        assert_eq!(change_json(&RemedyChange::Several(vec![tolerate, uncordon])), expected);
    }

    #[test]
    fn ans_28_a_queue_that_is_created_is_an_object() {
        let change = change_json(&RemedyChange::CreateQueue { queue: "q".into() });
        let version = "scheduling.volcano.sh/v1beta1";
        let queue = json!({ "apiVersion": version, "kind": "Queue", "metadata": { "name": "q" } });
        assert_eq!(change, json!({ "apply": [queue] }));
    }

    #[test]
    fn ans_28_a_raised_queue_is_one_change() {
        let amount = |name: &str, amount: &str| vec![(name.to_owned(), amount.to_owned())];
        let raised = RaisedQuota {
            capability: amount("cpu", "8"),
            weight: Some(3),
            deserved: amount("cpu", "5"),
            guarantee: amount("nvidia.com/gpu", "2"),
        };
        let change = change_json(&RemedyChange::Quota { queue: "q".into(), raised });
        let fields = json!({
            "name": "q", "capability": { "cpu": "8" }, "weight": 3, "deserved": { "cpu": "5" },
            "guarantee": { "nvidia.com/gpu": "2" },
        });
        assert_eq!(change, json!({ "setQueue": fields }));
        let raised = RaisedQuota { weight: Some(2), ..RaisedQuota::default() };
        let change = change_json(&RemedyChange::Quota { queue: "q".into(), raised });
        assert_eq!(change, json!({ "setQueue": { "name": "q", "weight": 2 } }));
    }
}
