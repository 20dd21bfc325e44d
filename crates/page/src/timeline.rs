//! What happened lately, as JSON. Specification: answers.md 8 (ANS-45), 11.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vc_answers::{
    BindsByJob, CycleBinds, CycleEntry, EvictionEntry, JobSpan, SharedNames, Timeline,
    TimelineFilter, time_text,
};
use vc_model::{Cluster, ObjectKey};

use crate::convert::{Owner, OwnerOf, job_name, map};
use crate::explanation::{AmountsJson, is_false};
use crate::start::EvictedPodJson;
use crate::tables_of_cluster::set_amounts;

/// Rows of each list.
const MOST_ROWS: usize = 5_000;
/// Cycles of one job with their binds.
const MOST_BIND_ROWS: usize = 20;
/// Evictions that an explanation shows, the last ones.
const MOST_EVICTIONS: usize = 20;
/// How far a timeline goes back if nobody says it.
const HOUR_MICROS: i64 = 3_600_000_000;

/// A time, or how long ago it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedTime {
    /// Microseconds since 1970.
    At(i64),
    /// Microseconds before the last cycle.
    Ago(i64),
}

impl AskedTime {
    fn micros(self, last_micros: i64) -> i64 {
        match self {
            Self::At(micros) => micros,
            Self::Ago(micros) => last_micros.saturating_sub(micros),
        }
    }
}

/// Which part of the timeline is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AskedTimeline {
    /// Absent: an hour before `to`.
    pub from: Option<AskedTime>,
    /// Absent: the last cycle.
    pub to: Option<AskedTime>,
    /// Only this queue.
    pub queue: Option<String>,
    /// Only jobs of this namespace.
    pub namespace: Option<String>,
}

/// What happened lately.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimelineJson {
    /// Begin, RFC 3339: what was asked for, or how far back the timeline reaches.
    pub from: String,
    /// Begin of the time in which `bound` and `binds` of the jobs have all pods, RFC 3339. Absent if it is `from`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub binds_from: Option<String>,
    /// End, RFC 3339.
    pub to: String,
    /// True if entries between both are left out, as there are too many.
    pub truncated: bool,
    /// The queue that was asked for. Absent: all queues.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub queue: Option<String>,
    /// Sums over these queues, minute by minute.
    pub samples: Vec<TimelineSampleJson>,
    /// Jobs that held nodes, those that began last first.
    pub jobs: Vec<JobSpanJson>,
    /// Evictions, the last one first.
    pub evictions: Vec<TimedEvictionJson>,
}

/// Sums over the queues at the beginning of a minute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineSampleJson {
    /// RFC 3339.
    pub time: String,
    /// Jobs that waited.
    pub waiting: u32,
    /// Jobs that held nodes.
    pub running: u32,
    /// What jobs held; of one queue, those of the queue itself. Absent if the reader may not see the queue.
    #[serde(skip_serializing_if = "AmountsJson::is_empty", default)]
    pub allocated: AmountsJson,
    /// What the queues of these jobs deserved. A queue without jobs does not count. Absent if the reader may not see
    /// the queue.
    #[serde(skip_serializing_if = "AmountsJson::is_empty", default)]
    pub deserved: AmountsJson,
}

/// A job with the time in which it held nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobSpanJson {
    /// Namespace and name.
    pub job: String,
    /// True if the reader may not see the job.
    #[serde(skip_serializing_if = "is_false", default)]
    pub hidden: bool,
    /// Name of its queue.
    pub queue: String,
    /// Most pods that held a node at once.
    pub pods: u32,
    /// When its PodGroup was created, RFC 3339; a pod without one, when it was. Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub created: Option<String>,
    /// When it was admitted to its queue last, RFC 3339. Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub admitted: Option<String>,
    /// When its first pod got a node, RFC 3339. Absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_bind: Option<String>,
    /// RFC 3339.
    pub start: String,
    /// RFC 3339, within a second. Absent if it still holds nodes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub end: Option<String>,
    /// Number of its pods that got a node in this part of the timeline, by this scheduler.
    #[serde(default)]
    pub bound: u32,
    /// The same by cycle, the first one first: the last 20 cycles in which one of them did.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub binds: Vec<CycleBindsJson>,
}

/// Pods of a job that got nodes in one cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CycleBindsJson {
    /// Number of the cycle, from 1.
    pub cycle: u64,
    /// RFC 3339.
    pub time: String,
    /// Number of pods.
    pub pods: u32,
}

impl From<&CycleBinds> for CycleBindsJson {
    fn from(it: &CycleBinds) -> Self {
        Self { cycle: it.cycle, time: time_text(it.at_micros), pods: it.pods }
    }
}

/// A pod that was evicted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimedEvictionJson {
    /// RFC 3339.
    pub time: String,
    /// Namespace and name.
    pub pod: String,
    /// Its PodGroup. Absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pod_group: Option<String>,
    /// True if the reader may not see the pod.
    #[serde(skip_serializing_if = "is_false", default)]
    pub hidden: bool,
    /// Name of its queue.
    pub queue: String,
    /// The action.
    pub action: String,
    /// The PodGroup for which it had to go. Absent if a plugin chose it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub r#for: Option<String>,
    /// The plugins that granted it, in order.
    pub plugins: Vec<String>,
    /// Their tier, from 1. Absent if no tier voted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tier: Option<usize>,
    /// Of the pods that went with it each of these was needed: `pod`, `bundle`, `group`. Absent if that is not
    /// stated.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub minimal: Option<String>,
}

/// A cycle before which something came, or that decided something.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CycleJson {
    /// Its number, from 1.
    pub cycle: u64,
    /// RFC 3339.
    pub time: String,
    /// How long the copy that answers took for it, in microseconds.
    pub micros: u64,
    /// Events that came before it.
    pub events: u32,
    /// Pods that got a node.
    pub binds: u32,
    /// Pods that were evicted.
    pub evictions: u32,
    /// Jobs that waited at its end.
    pub waiting: u32,
}

impl From<&CycleEntry> for CycleJson {
    fn from(it: &CycleEntry) -> Self {
        Self {
            cycle: it.cycle,
            time: time_text(it.at_micros),
            micros: it.took_micros,
            events: it.events,
            binds: it.binds,
            evictions: it.evictions,
            waiting: it.waiting,
        }
    }
}

impl TimelineJson {
    /// Returns a part of the timeline. Amounts are in the dimensions of the cluster.
    pub(crate) fn new(timeline: &Timeline, cluster: &Cluster, asked: &AskedTimeline) -> Self {
        let last = timeline.last_micros();
        let to_micros = asked.to.map_or(last, |to| to.micros(last));
        let from = asked.from.map_or(to_micros - HOUR_MICROS, |from| from.micros(last));
        let from_micros = timeline.since_micros().map_or(from, |since| since.max(from));
        let binds_from = timeline.binds_since_micros().filter(|since| from_micros < *since);
        let filter = TimelineFilter {
            from_micros,
            to_micros,
            queue: asked.queue.as_deref(),
            namespace: asked.namespace.as_deref(),
        };
        let jobs = timeline.jobs(filter);
        let shared = SharedNames::of_timeline(cluster, timeline);
        let binds = timeline.binds(filter);
        let span = |it| span(it, &shared, &binds);
        let evictions: Vec<&EvictionEntry> = timeline.evictions(filter).collect();
        let samples = timeline.samples(filter).into_iter().map(|it| TimelineSampleJson {
            time: time_text(it.at_micros),
            waiting: it.waiting,
            running: it.running,
            allocated: map(&it.allocated.to_quantities(&cluster.dims)),
            deserved: set_amounts(&it.deserved.to_quantities(&cluster.dims)),
        });
        Self {
            from: time_text(from_micros),
            binds_from: binds_from.map(time_text),
            to: time_text(to_micros),
            truncated: MOST_ROWS < jobs.len().max(evictions.len()),
            queue: asked.queue.clone(),
            samples: samples.collect(),
            jobs: jobs.into_iter().take(MOST_ROWS).map(span).collect(),
            evictions: evictions.into_iter().take(MOST_ROWS).map(eviction).collect(),
        }
    }
}

fn span(it: &JobSpan, shared: &SharedNames, binds: &BindsByJob<'_>) -> JobSpanJson {
    let binds = binds.of_span(it);
    let last_binds = &binds[binds.len().saturating_sub(MOST_BIND_ROWS)..];
    let is_unique = !shared.contains(&it.key);
    let owner = |_: &ObjectKey| Some(Owner::of(it.controller()?.name?, is_unique));
    JobSpanJson {
        job: job_name(&it.key, &owner),
        hidden: false,
        queue: it.queue.to_string(),
        pods: it.pods,
        created: it.created_micros.map(time_text),
        admitted: it.admitted_micros.map(time_text),
        first_bind: it.first_bind_micros.map(time_text),
        start: time_text(it.start_micros),
        end: it.end_micros.map(time_text),
        bound: binds.iter().map(|binds| binds.pods).sum(),
        binds: last_binds.iter().map(CycleBindsJson::from).collect(),
    }
}

fn eviction(it: &EvictionEntry) -> TimedEvictionJson {
    TimedEvictionJson {
        time: time_text(it.at_micros),
        pod: it.pod.to_string(),
        pod_group: it.pod_group.as_ref().map(ToString::to_string),
        hidden: false,
        queue: it.queue.to_string(),
        action: it.action.to_owned(),
        r#for: it.for_group.as_ref().map(ToString::to_string),
        plugins: it.plugins.iter().map(|name| (*name).to_owned()).collect(),
        tier: it.tier.map(usize::from),
        minimal: minimal(it),
    }
}

fn minimal(it: &EvictionEntry) -> Option<String> {
    it.minimal.map(|unit| unit.as_str().to_owned())
}

/// Returns the last evictions that a PodGroup suffered or that were for it, each with its sentence.
pub(crate) fn evictions_about(
    timeline: &Timeline,
    group: &ObjectKey,
    owner: OwnerOf<'_>,
) -> Vec<EvictedPodJson> {
    let last = timeline.evictions_about(group).take(MOST_EVICTIONS);
    last.map(|it| evicted_pod(it, owner)).collect()
}

/// Returns an eviction with its sentence.
pub(crate) fn evicted_pod(it: &EvictionEntry, owner: OwnerOf<'_>) -> EvictedPodJson {
    let for_job = it.for_group.as_ref().map(|group| job_name(group, owner));
    let plugins: Vec<String> = it.plugins.iter().map(|name| (*name).to_owned()).collect();
    let (tier, minimal) = (it.tier.map(usize::from), minimal(it));
    let grant = EvictionGrant { plugins: &plugins, tier, minimal: minimal.as_deref() };
    let how = how_evicted(it.action, for_job.as_deref(), grant);
    EvictedPodJson {
        pod: it.pod.to_string(),
        pod_group: it.pod_group.as_ref().map(ToString::to_string).unwrap_or_default(),
        action: it.action.to_owned(),
        r#for: it.for_group.as_ref().map(ToString::to_string),
        plugins,
        tier,
        minimal,
        text: format!("{} {how} at {}", it.pod, time_text(it.at_micros)),
    }
}

/// What let a pod be evicted.
#[derive(Clone, Copy, Debug)]
pub struct EvictionGrant<'a> {
    /// The plugins that granted it, in order.
    pub plugins: &'a [String],
    /// Their tier, from 1. `None` if it is not known.
    pub tier: Option<usize>,
    /// Of the pods that went with it each of these was needed. `None` if that is not stated.
    pub minimal: Option<&'a str>,
}

/// Returns how a pod was evicted, in words after its name.
pub fn how_evicted(action: &str, for_job: Option<&str>, grant: EvictionGrant<'_>) -> String {
    let mut text = format!("by {action}");
    if let Some(job) = for_job {
        text.push_str(&format!(" for {job}"));
    }
    if !grant.plugins.is_empty() {
        text.push_str(&format!(", granted by {}", grant.plugins.join(", ")));
        if let Some(tier) = grant.tier {
            text.push_str(&format!(" (tier {tier})"));
        }
    }
    if let Some(unit) = grant.minimal {
        text.push_str(&format!(", each {unit} needed"));
    }
    text
}
