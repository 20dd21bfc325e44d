//! A job that the ResourceQuotas of its namespace cannot hold is not enqueued: its pods could not be
//! created. Specification: plugins-jobs-queues.md 11.

use std::collections::BTreeMap;
use std::sync::Arc;

use vc_framework::{Admission, Ask, Clock, Marked, Plugin, PluginEntry, Points};
use vc_model::{JobId, PodGroup, Quota, QuotaAmounts, TaskId};
use vc_resource::Quantity;

pub(crate) const ENTRY: PluginEntry =
    PluginEntry { name: "resourcequota", build: |_, _| Box::<ResourceQuota>::default() };

/// The names of one line of the message, with what is asked of them.
type Asked<'a> = BTreeMap<&'a Arc<str>, Quantity>;

#[derive(Default)]
struct ResourceQuota {
    /// What jobs admitted in this session will use, by namespace.
    added: BTreeMap<Arc<str>, QuotaAmounts>,
}

impl Plugin for ResourceQuota {
    fn points(&self) -> Points {
        Points::JOB_ENQUEUEABLE.and(Points::JOB_ENQUEUED)
    }

    fn clock(&self, _ask: Ask<'_>) -> Clock {
        Clock::Ignores
    }

    fn knows_askers(&self, _ask: Ask<'_>, _task: TaskId) -> bool {
        true
    }

    fn open(&mut self, _ask: Ask<'_>) {
        self.added.clear();
    }

    fn job_enqueueable(&self, ask: Ask<'_>, job: JobId) -> Admission {
        let row = &ask.cluster.jobs[job];
        let Some(group) = &row.pod_group else { return Admission::Permit };
        let added = self.added.get(&row.key.namespace);
        for (_, quota) in ask.cluster.quotas.of(&row.key.namespace) {
            let lacking = lacking(group, quota, added);
            if !lacking.is_empty() {
                return Admission::Reject(Some(message(&lacking, quota)));
            }
        }
        Admission::Permit
    }

    fn admits_alike(&self, _ask: Ask<'_>, _job: JobId) -> Option<Marked> {
        Some(Marked::default())
    }

    fn job_enqueued(&mut self, ask: Ask<'_>, job: JobId) {
        let row = &ask.cluster.jobs[job];
        let Some(group) = &row.pod_group else { return };
        let namespace = &row.key.namespace;
        let list = min_list(group);
        if list.is_empty() || ask.cluster.quotas.of(namespace).next().is_none() {
            return;
        }
        let added = self.added.entry(namespace.clone()).or_default();
        for (name, quantity) in list {
            let sum = added.entry(name.clone()).or_default();
            *sum = *sum + *quantity;
        }
    }
}

/// `spec.minResources` as written.
fn min_list(group: &PodGroup) -> &[(Arc<str>, Quantity)] {
    group.min_resources.as_ref().map_or(&[], |asked| &asked.list)
}

/// What of the job goes beyond the quota, by name. Names that the quota does not limit do not count.
fn lacking<'a>(group: &'a PodGroup, quota: &Quota, added: Option<&QuotaAmounts>) -> Asked<'a> {
    let amount = |of: &QuotaAmounts, name: &str| of.get(name).copied().unwrap_or_default();
    let exceeds = |name: &Arc<str>, asked: Quantity| {
        let used = amount(&quota.used, name);
        let added = added.map(|added| amount(added, name)).unwrap_or_default();
        quota.hard.get(name).is_some_and(|&hard| hard < used + added + asked)
    };
    min_list(group)
        .iter()
        .filter(|(name, asked)| exceeds(name, *asked))
        .map(|(name, asked)| (name, *asked))
        .collect()
}

fn message(lacking: &Asked<'_>, quota: &Quota) -> String {
    let of = |amounts: &QuotaAmounts| {
        let amount = |name: &Arc<str>| amounts.get(name).copied().unwrap_or_default();
        map(lacking.keys().map(|&name| (name, amount(name))))
    };
    let requested = map(lacking.iter().map(|(&name, &asked)| (name, asked)));
    let (used, limited) = (of(&quota.used), of(&quota.hard));
    format!("resource quota insufficient, requested: {requested}, used: {used}, limited: {limited}")
}

/// `map[cpu:2 memory:2G]`.
fn map<'a>(amounts: impl Iterator<Item = (&'a Arc<str>, Quantity)>) -> String {
    let entries: Vec<String> =
        amounts.map(|(name, amount)| format!("{name}:{}", amount.text(name))).collect();
    format!("map[{}]", entries.join(" "))
}
