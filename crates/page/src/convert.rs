//! Explanations as plain data become JSON types.

use serde_json::Value;
use vc_answers::{
    AnswerTime, BlockingAtom, ComparedValues, Explanation, JobsAhead, LineNeighbour, Remedy,
    time_text,
};
use vc_engine::QuotaAmounts;
use vc_model::{ControllerName, ObjectKey};

use crate::cluster::QueueQuotaJson;
use crate::explanation::{
    API_VERSION, AheadJson, AmountsJson, AsOfJson, BlockingAtomJson, BlockingJson, BlockingSetJson,
    ConditionJson, ExplanationJson, FailingClassJson, GangJson, LineJson, NearestNodeJson,
    NeighbourJson, NodeGroupJson, NodeNumbersJson, PodClassJson, QuotaJson, RemedyJson, RoleJson,
    ShortJson, SubGroupJson, SubjectJson, VerdictJson,
};
use crate::start::{EvictJson, StartJson, change_json};
use crate::why_text::compared_text;

/// The controller of a PodGroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Kind in lower case.
    pub kind: String,
    /// Name.
    pub name: String,
    /// True if the name means no other job of the namespace, so that it can stand for the PodGroup.
    pub is_unique: bool,
}

impl Owner {
    /// Returns the owner for people.
    pub(crate) fn of(ControllerName { kind, name }: ControllerName<'_>, is_unique: bool) -> Self {
        Self { kind: kind.to_lowercase(), name: name.to_owned(), is_unique }
    }
}

/// Returns the controller of a PodGroup. Returns `None` if it has none, or it is not known.
pub type OwnerOf<'a> = &'a dyn Fn(&ObjectKey) -> Option<Owner>;

/// Where a state is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateSource {
    /// The memory of a process that decides, and how far the answer is behind it.
    Daemon {
        /// Age of the oldest change that the state lacks.
        behind_millis: u64,
    },
    /// Lists of a cluster, taken by whoever asks.
    Local,
    /// Files.
    File,
    /// What a scheduler was given lately.
    Bundle,
}

impl StateSource {
    /// Returns the time and origin of an answer.
    pub fn as_of(self, it: AnswerTime) -> AsOfJson {
        let (source, behind_millis) = match self {
            Self::Daemon { behind_millis } => ("daemon", Some(behind_millis)),
            Self::Local => ("local", None),
            Self::File => ("file", None),
            Self::Bundle => ("bundle", None),
        };
        AsOfJson {
            time: time_text(it.time_micros),
            cycle: it.cycle,
            source: source.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            behind_millis,
        }
    }
}

impl ExplanationJson {
    /// Returns an explanation as JSON type.
    pub fn new(it: &Explanation, owner: OwnerOf<'_>, source: StateSource) -> Self {
        let verdict = &it.verdict;
        let condition = it.last_condition.as_ref();
        Self {
            api_version: API_VERSION.to_owned(),
            kind: "Explanation".to_owned(),
            as_of: source.as_of(it.as_of),
            subject: subject(it, owner),
            verdict: VerdictJson {
                stage: verdict.code.stage().to_owned(),
                code: verdict.code.as_str().to_owned(),
                also: verdict.also.iter().map(|code| code.as_str().to_owned()).collect(),
                text: verdict.text.clone(),
            },
            last_condition: condition.map(|it| ConditionJson {
                reason: it.reason.to_string(),
                message: it.message.to_string(),
            }),
            gang: gang(it),
            pods: it.has_unknown_pods.then(|| "unknown".to_owned()),
            nodes: nodes(it),
            short: short(it),
            classes: classes(it),
            quota: quota(it),
            blocking: blocking(it),
            unblock: it.unblock.iter().map(remedy).collect(),
            line: line(it, owner),
            start: it.start.as_ref().map(|start| StartJson::of(start, owner)),
            evict: it.evict.as_deref().map(EvictJson::of),
            evictions: Vec::new(),
            history: None,
        }
    }
}

fn subject(it: &Explanation, owner: OwnerOf<'_>) -> SubjectJson {
    let subject = &it.subject;
    let owner = owner(&subject.key);
    SubjectJson {
        kind: if subject.is_bare { "Pod" } else { "PodGroup" }.to_owned(),
        namespace: subject.key.namespace.to_string(),
        name: subject.key.name.to_string(),
        job: owner.as_ref().map(|owner| owner.name.clone()),
        job_kind: owner.map(|owner| owner.kind),
        pod: subject.pod.as_ref().map(|pod| pod.name.to_string()),
        queue: subject.queue.as_deref().map(str::to_owned),
        priority: subject.queue.as_ref().map(|_| subject.priority),
        waiting_seconds: subject.waiting_seconds.filter(|_| it.waits()),
    }
}

pub(crate) fn map(list: &[(String, String)]) -> AmountsJson {
    list.iter().cloned().collect()
}

fn texts(names: &[std::sync::Arc<str>]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

fn gang(it: &Explanation) -> Option<GangJson> {
    let gang = it.gang.as_ref()?;
    let roles = gang.roles.iter().map(|row| RoleJson {
        role: row.role.to_string(),
        needed: row.needed,
        placed: row.placed,
        ready: row.ready,
    });
    let sub_groups = gang.sub_groups.iter().map(|row| SubGroupJson {
        name: row.name.to_string(),
        needed: row.needed,
        placed: row.placed,
        ready: row.ready,
    });
    let pods = gang.pods.iter().map(|row| PodClassJson {
        request: map(&row.request),
        count: row.count,
        placed: row.placed,
    });
    Some(GangJson {
        needed: gang.needed,
        placed: gang.placed,
        ready: gang.ready,
        waiting: gang.waiting,
        total: gang.waiting + gang.ready,
        roles: roles.collect(),
        sub_groups: sub_groups.collect(),
        pods: pods.collect(),
    })
}

fn nodes(it: &Explanation) -> Option<NodeNumbersJson> {
    let nodes = it.nodes.as_ref()?;
    let groups = nodes.groups.iter().map(|group| NodeGroupJson {
        atoms: group.atoms.clone(),
        count: group.count,
        names: texts(&group.names),
        lacks: map(&group.lacks),
        text: group.phrase(),
    });
    let nearest = nodes.nearest.iter().map(|node| NearestNodeJson {
        name: node.name.to_string(),
        atoms: node.atoms.clone(),
        lacks: map(&node.lacks),
    });
    Some(NodeNumbersJson {
        total: nodes.total,
        eligible: nodes.eligible,
        groups: groups.collect(),
        nearest: nearest.collect(),
    })
}

fn short(it: &Explanation) -> Vec<ShortJson> {
    let rows = it.short.iter().map(|row| ShortJson {
        resource: row.resource.clone(),
        need: row.need.clone(),
        free: row.free.clone(),
        usable: row.usable.clone(),
        largest: row.largest.clone(),
        short: row.short.clone(),
        per_pod: row.per_pod.clone(),
    });
    rows.collect()
}

fn classes(it: &Explanation) -> Vec<FailingClassJson> {
    let rows = it.classes.iter().map(|row| FailingClassJson {
        request: map(&row.request),
        count: row.count,
        code: row.code.as_str().to_owned(),
        text: row.text.clone(),
    });
    rows.collect()
}

fn quota(it: &Explanation) -> Vec<QuotaJson> {
    let rows = it.quota.iter().map(|row| QuotaJson {
        plugin: row.plugin.to_owned(),
        queue: row.queue.as_deref().map(str::to_owned),
        resource_quota: row.resource_quota.as_deref().map(str::to_owned),
        resource: row.resource.clone(),
        limit: row.limit.clone(),
        amount: Some(row.amount.clone()),
        used: Some(row.used.clone()),
        asked: row.asked.clone(),
        short: row.short.clone(),
    });
    rows.collect()
}

fn blocking(it: &Explanation) -> Option<BlockingJson> {
    let blocking = it.blocking.as_ref()?;
    let sets = blocking.sets.iter().map(|set| BlockingSetJson {
        atoms: set.atoms.iter().map(atom).collect(),
        certified: set.certified.to_owned(),
    });
    Some(BlockingJson {
        even_empty: blocking.even_empty,
        complete: blocking.is_complete(),
        left_out: blocking.left_out.iter().map(|it| it.as_str().to_owned()).collect(),
        helps_waiting: blocking.helps_waiting(),
        atoms: blocking.atoms.clone(),
        sets: sets.collect(),
    })
}

fn remedy(remedy: &Remedy) -> RemedyJson {
    let (change, changes) = match remedy.change.as_ref().map(change_json) {
        Some(Value::Array(changes)) => (None, changes),
        change => (change, Vec::new()),
    };
    RemedyJson {
        kind: remedy.kind.as_str().to_owned(),
        who: remedy.who.as_str().to_owned(),
        text: remedy.text.clone(),
        nodes: texts(&remedy.nodes),
        at: remedy.at_micros.map(time_text),
        change,
        changes,
    }
}

fn atom(atom: &BlockingAtom) -> BlockingAtomJson {
    BlockingAtomJson {
        atom: atom.atom.clone(),
        r#in: atom.place.clone(),
        nodes: atom.n_nodes,
        who: atom.who.as_str().to_owned(),
    }
}

impl From<&QuotaAmounts> for QueueQuotaJson {
    fn from(it: &QuotaAmounts) -> Self {
        Self {
            resource: it.resource.clone(),
            nominal: it.nominal.clone(),
            used: it.used.clone(),
            borrowed: it.borrowed.clone(),
            lent: it.lent.clone(),
            available: it.available.clone(),
        }
    }
}

/// Returns the name of a job as users know it: that of its controller if no other job is meant by it,
/// else that of its PodGroup.
pub(crate) fn job_name(key: &ObjectKey, owner: OwnerOf<'_>) -> String {
    match owner(key).filter(|owner| owner.is_unique) {
        Some(owner) => format!("{}/{}", key.namespace, owner.name),
        None => key.to_string(),
    }
}

fn line(it: &Explanation, owner: OwnerOf<'_>) -> Option<LineJson> {
    let line = it.line.as_ref()?;
    let neighbour = |other: &LineNeighbour, is_before: bool| NeighbourJson {
        job: job_name(&other.job, owner),
        hidden: false,
        decided_by: other.decided_by.to_owned(),
        values: other.values.as_ref().map(ComparedValues::texts),
        text: order_text(other, is_before),
    };
    Some(LineJson {
        in_queue: line.in_queue,
        of_queue: line.of_queue,
        turn: line.turn,
        queue_turn: line.queue_turn,
        before: line.before.as_ref().map(|other| neighbour(other, true)),
        behind: line.behind.as_ref().map(|other| neighbour(other, false)),
        ahead: jobs_ahead(&line.ahead),
    })
}

/// Returns what decides between a job and its neighbour, which comes before it or behind it.
pub(crate) fn order_text(other: &LineNeighbour, is_before: bool) -> String {
    let values = other.values.as_ref().map(ComparedValues::texts);
    let values = values.as_ref().map(|[own, others]| match is_before {
        true => (others.as_str(), own.as_str()),
        false => (own.as_str(), others.as_str()),
    });
    let compared = compared_text(other.decided_by, values);
    compared.unwrap_or_else(|| other.decided_by.to_owned())
}

pub(crate) fn jobs_ahead(ahead: &JobsAhead) -> AheadJson {
    AheadJson {
        jobs: ahead.jobs,
        pods: ahead.pods,
        amounts: map(&ahead.amounts),
        tried: ahead.tried,
        blocked: ahead.blocked,
    }
}
