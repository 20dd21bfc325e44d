//! Plugin `resourcequota`: a job that exceeds a ResourceQuota of its namespace is not enqueued,
//! because its pods could not be created.
//! Specification: plugins-jobs-queues.md 11.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_conf::EnqueueVote;
use vc_framework::{
    Admission, Depends, FactOwner, Inputs, LimitFact, Plugin, PluginEntry, Points, SessionView,
};
use vc_model::{JobId, ObjectKey, PodGroup, Quota, ResourceQuotaAmounts};
use vc_resource::Quantity;

pub(crate) const ENTRY: PluginEntry =
    PluginEntry::new("resourcequota", |_, _| Box::<ResourceQuota>::default())
        .enqueue_vote(EnqueueVote::IgnoresEvictions);

/// Requested amounts by resource name, for one message.
type RequestedAmounts<'a> = BTreeMap<&'a Arc<str>, Quantity>;

#[derive(Default)]
struct ResourceQuota {
    /// Amounts that jobs admitted in this session will use, by namespace.
    added: BTreeMap<Arc<str>, ResourceQuotaAmounts>,
}

/// The state that each extension point reads.
const READS: &[(Points, Inputs)] =
    &[(Points::JOB_ENQUEUEABLE, Inputs::JOB_REQUEST.and(Inputs::OTHER_OBJECTS))];

impl Plugin for ResourceQuota {
    fn points(&self) -> Points {
        Points::JOB_ENQUEUEABLE.and(Points::JOB_ENQUEUED)
    }

    fn depends(&self) -> Depends {
        Depends::of(READS)
    }

    fn open(&mut self, _view: SessionView<'_>) {
        self.added.clear();
    }

    fn job_enqueueable(&self, view: SessionView<'_>, job: JobId) -> Admission {
        let row = &view.cluster.jobs[job];
        let Some(group) = &row.pod_group else { return Admission::Permit };
        let added = self.added.get(&row.key.namespace);
        for (_, quota) in view.cluster.quotas.of(&row.key.namespace) {
            let lacking = lacking(group, quota, added);
            if !lacking.is_empty() {
                return Admission::Reject(Some(message(&lacking, quota)));
            }
        }
        Admission::Permit
    }

    /// ANS-14: the amounts of all quotas that refuse the job, since each of them has to hold it.
    fn admission_facts(&self, view: SessionView<'_>, job: JobId) -> Vec<LimitFact> {
        let row = &view.cluster.jobs[job];
        let Some(group) = &row.pod_group else { return Vec::new() };
        let namespace = &row.key.namespace;
        let added = self.added.get(namespace);
        let mut all = Vec::new();
        for (name, quota) in view.cluster.quotas.of(namespace) {
            let key = ObjectKey { namespace: namespace.clone(), name: name.clone() };
            all.extend(facts(&key, quota, added, &lacking(group, quota, added)));
        }
        all
    }

    fn job_enqueued(&mut self, view: SessionView<'_>, job: JobId) {
        let row = &view.cluster.jobs[job];
        let Some(group) = &row.pod_group else { return };
        let namespace = &row.key.namespace;
        let list = min_list(group);
        if list.is_empty() || view.cluster.quotas.of(namespace).next().is_none() {
            return;
        }
        let added = self.added.entry(namespace.clone()).or_default();
        for (name, quantity) in list {
            let sum = added.entry(name.clone()).or_default();
            *sum = *sum + *quantity;
        }
    }
}

/// Returns `spec.minResources` as written.
fn min_list(group: &PodGroup) -> &[(Arc<str>, Quantity)] {
    group.min_resources.as_ref().map_or(&[], |asked| &asked.list)
}

/// Returns the requested amounts of the job that exceed the quota, by name. Names that the quota
/// does not limit do not count.
fn lacking<'a>(
    group: &'a PodGroup,
    quota: &Quota,
    added: Option<&ResourceQuotaAmounts>,
) -> RequestedAmounts<'a> {
    let exceeds = |name: &Arc<str>, asked: Quantity| {
        let used = counted(name, quota, added);
        quota.hard.get(name).is_some_and(|&hard| hard < used + asked)
    };
    min_list(group)
        .iter()
        .filter(|(name, asked)| exceeds(name, *asked))
        .map(|(name, asked)| (name, *asked))
        .collect()
}

/// Returns what counts against the quota: what its status says, and what jobs that this session has
/// admitted will use.
fn counted(name: &Arc<str>, quota: &Quota, added: Option<&ResourceQuotaAmounts>) -> Quantity {
    let amount = |of: &ResourceQuotaAmounts| of.get(name).copied().unwrap_or_default();
    amount(&quota.used) + added.map(amount).unwrap_or_default()
}

fn facts(
    key: &ObjectKey,
    quota: &Quota,
    added: Option<&ResourceQuotaAmounts>,
    lacking: &RequestedAmounts<'_>,
) -> Vec<LimitFact> {
    let mut facts = Vec::new();
    for (&name, &asked) in lacking {
        let hard = quota.hard.get(name).copied().unwrap_or_default();
        let used = counted(name, quota, added);
        facts.push(LimitFact {
            owner: FactOwner::ResourceQuota(key.clone()),
            resource: name.to_string(),
            limit: "hard",
            amount: hard.text(name),
            used: used.text(name),
            asked: asked.text(name),
            short: (used + asked - hard).text(name),
        });
    }
    facts
}

fn message(lacking: &RequestedAmounts<'_>, quota: &Quota) -> String {
    let of = |amounts: &ResourceQuotaAmounts| {
        let amount = |name: &Arc<str>| amounts.get(name).copied().unwrap_or_default();
        map(lacking.keys().map(|&name| (name, amount(name))))
    };
    let requested = map(lacking.iter().map(|(&name, &asked)| (name, asked)));
    let (used, limited) = (of(&quota.used), of(&quota.hard));
    format!("resource quota insufficient, requested: {requested}, used: {used}, limited: {limited}")
}

/// Formats amounts as Go does: `map[cpu:2 memory:2G]`.
fn map<'a>(amounts: impl Iterator<Item = (&'a Arc<str>, Quantity)>) -> String {
    let entries: Vec<String> =
        amounts.map(|(name, amount)| format!("{name}:{}", amount.text(name))).collect();
    format!("map[{}]", entries.join(" "))
}
