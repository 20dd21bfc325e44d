//! Answers for programs, in the form that the API will have. Specification: answers.md 11 (ANS-70),
//! 18.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use vc_answers::{BlockingAtom, Explanation, LineNeighbour, Remedy, time_text};

use super::evicted::EvictionRow;
use super::names::OwnerNames;
use super::start_json::{EvictJson, StartJson, change_json};

const API_VERSION: &str = "answers.volcano.sh/v1";

/// An explanation, or a list of them.
#[derive(Serialize)]
#[serde(untagged)]
pub enum WhyJson<'a> {
    One(Box<ExplanationJson<'a>>),
    All(ExplanationsJson<'a>),
    /// A pod that is gone.
    Gone(Box<Value>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplanationsJson<'a> {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<ExplanationJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplanationJson<'a> {
    api_version: &'static str,
    kind: &'static str,
    as_of: AsOfJson,
    subject: SubjectJson<'a>,
    verdict: VerdictJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_condition: Option<ConditionJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gang: Option<GangJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<NodesJson<'a>>,
    short: Vec<ShortJson<'a>>,
    quota: Vec<QuotaJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocking: Option<BlockingJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unblock: Vec<RemedyJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<LineJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<StartJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evict: Option<EvictJson<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    evictions: &'a [EvictionRow],
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
struct SubjectJson<'a> {
    kind: &'static str,
    namespace: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pod: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_seconds: Option<i64>,
}

#[derive(Serialize)]
struct VerdictJson<'a> {
    stage: &'static str,
    code: &'static str,
    also: Vec<&'static str>,
    text: Cow<'a, str>,
}

#[derive(Serialize)]
struct ConditionJson<'a> {
    reason: &'a str,
    message: &'a str,
}

#[derive(Serialize)]
struct GangJson<'a> {
    needed: u32,
    placed: u32,
    ready: u32,
    waiting: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    roles: Vec<RoleJson<'a>>,
    pods: Vec<PodsJson<'a>>,
}

#[derive(Serialize)]
struct RoleJson<'a> {
    role: &'a str,
    needed: u32,
    placed: u32,
    ready: u32,
}

#[derive(Serialize)]
struct PodsJson<'a> {
    request: BTreeMap<&'a str, &'a str>,
    count: u32,
    placed: u32,
}

#[derive(Serialize)]
struct NodesJson<'a> {
    total: usize,
    eligible: usize,
    groups: Vec<GroupJson<'a>>,
    nearest: Vec<NearestJson<'a>>,
}

#[derive(Serialize)]
struct GroupJson<'a> {
    atoms: &'a [String],
    count: usize,
    names: Vec<&'a str>,
}

#[derive(Serialize)]
struct NearestJson<'a> {
    name: &'a str,
    atoms: &'a [String],
    lacks: BTreeMap<&'a str, &'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShortJson<'a> {
    resource: &'a str,
    need: &'a str,
    free: &'a str,
    usable: &'a str,
    largest: &'a str,
    short: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_pod: Option<&'a str>,
}

#[derive(Serialize)]
struct QuotaJson<'a> {
    plugin: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a str>,
    resource: &'a str,
    limit: &'a str,
    amount: &'a str,
    used: &'a str,
    asked: &'a str,
    short: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BlockingJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    even_empty: Option<bool>,
    complete: bool,
    atoms: &'a [String],
    sets: Vec<SetJson<'a>>,
}

#[derive(Serialize)]
struct SetJson<'a> {
    atoms: Vec<AtomJson<'a>>,
    certified: &'static str,
}

#[derive(Serialize)]
struct AtomJson<'a> {
    atom: &'a str,
    r#in: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<usize>,
    who: &'static str,
}

#[derive(Serialize)]
struct RemedyJson<'a> {
    kind: &'static str,
    who: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LineJson<'a> {
    in_queue: usize,
    of_queue: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<usize>,
    queue_turn: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<NeighbourJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<NeighbourJson<'a>>,
    ahead: AheadJson<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NeighbourJson<'a> {
    job: String,
    decided_by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<[&'a str; 2]>,
}

#[derive(Serialize)]
struct AheadJson<'a> {
    jobs: usize,
    pods: usize,
    amounts: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<usize>,
}

impl<'a> WhyJson<'a> {
    pub(super) fn one(
        it: &'a Explanation,
        owners: &OwnerNames,
        evictions: &'a [EvictionRow],
    ) -> Self {
        let explanation = ExplanationJson::new(it, owners);
        Self::One(Box::new(ExplanationJson { evictions, ..explanation }))
    }

    pub(super) fn all(all: &'a [Explanation], owners: &OwnerNames) -> Self {
        let items = all.iter().map(|it| ExplanationJson::new(it, owners)).collect();
        Self::All(ExplanationsJson { api_version: API_VERSION, kind: "ExplanationList", items })
    }
}

impl<'a> ExplanationJson<'a> {
    fn new(it: &'a Explanation, owners: &OwnerNames) -> Self {
        let verdict = &it.verdict;
        let also = verdict.also.iter().map(|code| code.as_str()).collect();
        let condition = it.last_condition.as_ref();
        Self {
            api_version: API_VERSION,
            kind: "Explanation",
            as_of: AsOfJson {
                time: time_text(it.as_of.time_micros),
                cycle: it.as_of.cycle,
                source: "file",
                version: env!("CARGO_PKG_VERSION"),
            },
            subject: subject(it, owners),
            verdict: VerdictJson {
                stage: verdict.code.stage(),
                code: verdict.code.as_str(),
                also,
                text: Cow::Borrowed(&verdict.text),
            },
            last_condition: condition
                .map(|it| ConditionJson { reason: &it.reason, message: &it.message }),
            gang: gang(it),
            nodes: nodes(it),
            short: short(it),
            quota: quota(it),
            blocking: blocking(it),
            unblock: it.unblock.iter().map(remedy).collect(),
            line: line(it, owners),
            start: it.start.as_ref().map(|start| StartJson::of(start, owners)),
            evict: it.evict.as_ref().map(EvictJson::of),
            evictions: &[],
        }
    }
}

fn subject<'a>(it: &'a Explanation, owners: &OwnerNames) -> SubjectJson<'a> {
    let subject = &it.subject;
    SubjectJson {
        kind: if subject.is_bare { "Pod" } else { "PodGroup" },
        namespace: &subject.key.namespace,
        name: &subject.key.name,
        job: owners.get(&subject.key).map(|owner| owner.name.clone()),
        pod: subject.pod.as_ref().map(|pod| &*pod.name),
        queue: subject.queue.as_deref(),
        priority: subject.queue.as_ref().map(|_| subject.priority),
        waiting_seconds: subject.waiting_seconds.filter(|_| it.waits()),
    }
}

fn map(list: &[(String, String)]) -> BTreeMap<&str, &str> {
    list.iter().map(|(name, amount)| (name.as_str(), amount.as_str())).collect()
}

fn gang(it: &Explanation) -> Option<GangJson<'_>> {
    let gang = it.gang.as_ref()?;
    let roles = gang.roles.iter().map(|row| RoleJson {
        role: &row.role,
        needed: row.needed,
        placed: row.placed,
        ready: row.ready,
    });
    let pods = gang.pods.iter().map(|row| PodsJson {
        request: map(&row.request),
        count: row.count,
        placed: row.placed,
    });
    Some(GangJson {
        needed: gang.needed,
        placed: gang.placed,
        ready: gang.ready,
        waiting: gang.waiting,
        roles: roles.collect(),
        pods: pods.collect(),
    })
}

fn nodes(it: &Explanation) -> Option<NodesJson<'_>> {
    let nodes = it.nodes.as_ref()?;
    let groups = nodes.groups.iter().map(|group| GroupJson {
        atoms: &group.atoms,
        count: group.count,
        names: group.names.iter().map(|name| &**name).collect(),
    });
    let nearest = nodes.nearest.iter().map(|node| NearestJson {
        name: &node.name,
        atoms: &node.atoms,
        lacks: map(&node.lacks),
    });
    Some(NodesJson {
        total: nodes.total,
        eligible: nodes.eligible,
        groups: groups.collect(),
        nearest: nearest.collect(),
    })
}

fn short(it: &Explanation) -> Vec<ShortJson<'_>> {
    let rows = it.short.iter().map(|row| ShortJson {
        resource: &row.resource,
        need: &row.need,
        free: &row.free,
        usable: &row.usable,
        largest: &row.largest,
        short: &row.short,
        per_pod: row.per_pod.as_deref(),
    });
    rows.collect()
}

fn quota(it: &Explanation) -> Vec<QuotaJson<'_>> {
    let rows = it.quota.iter().map(|row| QuotaJson {
        plugin: row.plugin,
        queue: row.queue.as_deref(),
        resource: &row.resource,
        limit: &row.limit,
        amount: &row.amount,
        used: &row.used,
        asked: &row.asked,
        short: &row.short,
    });
    rows.collect()
}

fn blocking(it: &Explanation) -> Option<BlockingJson<'_>> {
    let blocking = it.blocking.as_ref()?;
    let sets = blocking.sets.iter().map(|set| SetJson {
        atoms: set.atoms.iter().map(atom).collect(),
        certified: set.certified,
    });
    Some(BlockingJson {
        even_empty: blocking.even_empty,
        complete: blocking.is_complete,
        atoms: &blocking.atoms,
        sets: sets.collect(),
    })
}

fn remedy(remedy: &Remedy) -> RemedyJson<'_> {
    RemedyJson {
        kind: remedy.kind.as_str(),
        who: remedy.who.as_str(),
        text: &remedy.text,
        nodes: remedy.nodes.iter().map(|name| &**name).collect(),
        at: remedy.at_micros.map(time_text),
        change: remedy.change.as_ref().map(change_json),
    }
}

fn atom(atom: &BlockingAtom) -> AtomJson<'_> {
    AtomJson { atom: &atom.atom, r#in: &atom.place, nodes: atom.n_nodes, who: atom.who.as_str() }
}

fn line<'a>(it: &'a Explanation, owners: &OwnerNames) -> Option<LineJson<'a>> {
    let line = it.line.as_ref()?;
    let neighbour = |other: &'a LineNeighbour| NeighbourJson {
        job: owners.name(&other.job),
        decided_by: other.decided_by,
        values: other.values.as_ref().map(|(own, other)| [own.as_str(), other.as_str()]),
    };
    Some(LineJson {
        in_queue: line.in_queue,
        of_queue: line.of_queue,
        turn: line.turn,
        queue_turn: line.queue_turn,
        before: line.before.as_ref().map(neighbour),
        behind: line.behind.as_ref().map(neighbour),
        ahead: AheadJson {
            jobs: line.ahead.jobs,
            pods: line.ahead.pods,
            amounts: map(&line.ahead.amounts),
            blocked: line.ahead.blocked,
        },
    })
}
