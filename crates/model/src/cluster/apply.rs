//! Dispatch of events to the code that applies them, and the events of PriorityClasses and
//! namespaces. Specification: core.md 3.7 (priority), 3.9, 4.6.

use crate::cluster::Cluster;
use crate::default_spread::SelectorKind;
use crate::event::ClusterEvent;
use crate::ids::JobId;
use crate::record::{ObjectKey, PriorityClassRecord};
use crate::selector::{LabelSelector, Labels};

impl Cluster {
    /// Applies one event to the tables, at the cost of what it changes.
    pub fn apply(&mut self, event: ClusterEvent) {
        // Heartbeats and echoes of our own writes often bring no news.
        let is_news = match event {
            ClusterEvent::PodApplied(pod) => self.pod_applied(*pod),
            ClusterEvent::PodRead { pod, after } => self.pod_read(*pod, after),
            ClusterEvent::NodeApplied(node) => self.node_applied(*node),
            ClusterEvent::NodeLoadsRead(loads) => self.node_loads_read(loads),
            ClusterEvent::DeviceReportsRead(reports) => self.device_reports_read(reports),
            ClusterEvent::PodGroupApplied(group) => self.pod_group_applied(*group),
            ClusterEvent::PodGroupWritten { key, resource_version, status } => {
                self.pod_group_written(&key, &resource_version, *status)
            }
            ClusterEvent::QueueApplied(queue) => self.queue_applied(*queue),
            ClusterEvent::HyperNodeApplied(record) => self.hyper_nodes.apply(record),
            ClusterEvent::NumaTopologyApplied(record) => self.numa_topology_applied(*record),
            other => {
                self.apply_news(other);
                true
            }
        };
        self.version += u64::from(is_news);
    }

    fn apply_news(&mut self, event: ClusterEvent) {
        match event {
            ClusterEvent::PodApplied(_)
            | ClusterEvent::PodRead { .. }
            | ClusterEvent::NodeApplied(_)
            | ClusterEvent::NodeLoadsRead(_)
            | ClusterEvent::DeviceReportsRead(_)
            | ClusterEvent::PodGroupApplied(_)
            | ClusterEvent::PodGroupWritten { .. }
            | ClusterEvent::HyperNodeApplied(_)
            | ClusterEvent::NumaTopologyApplied(_)
            | ClusterEvent::QueueApplied(_) => {}
            ClusterEvent::PodDeleted { key, uid } => self.pod_deleted(&key, &uid),
            // The engine reports the failure to users; the pod waits for its resync.
            ClusterEvent::BindFailed { .. } | ClusterEvent::EvictFailed { .. } => {}
            ClusterEvent::PodStatusFailed { uid } => self.forget_condition(&uid),
            ClusterEvent::NodeDeleted { name } => self.node_deleted(&name),
            ClusterEvent::PodGroupDeleted { key } => self.pod_group_deleted(&key),
            ClusterEvent::PodGroupFailed { key, status } => self.pod_group_failed(&key, &status),
            ClusterEvent::QueueDeleted { name } => self.queue_deleted(&name),
            ClusterEvent::QueueFailed { name } => self.queue_failed(&name),
            ClusterEvent::PriorityClassApplied(class) => self.priority_class_applied(class),
            ClusterEvent::PriorityClassDeleted { name } => self.priority_class_deleted(&name),
            ClusterEvent::NodeShardApplied(shard) => self.node_shard_applied(*shard),
            ClusterEvent::NodeShardDeleted { name } => self.node_shard_deleted(&name),
            ClusterEvent::NodeShardFailed { name } => self.node_shard_failed(&name),
            ClusterEvent::NumaTopologyDeleted { name } => self.numa_topology_deleted(&name),
            ClusterEvent::HyperNodeDeleted { name } => self.hyper_nodes.remove(&name),
            ClusterEvent::HyperNodesListed { is_complete } => {
                self.hyper_nodes.set_listed(is_complete);
            }
            ClusterEvent::StorageApplied(object) => self.storage_applied(*object),
            ClusterEvent::StorageDeleted { kind, key } => self.storage_deleted(kind, &key),
            ClusterEvent::DeviceApplied(object) => self.device_applied(*object),
            ClusterEvent::DeviceDeleted { kind, key } => self.devices.remove(kind, &key),
            ClusterEvent::VolumesWritten { uid, objects, devices } => {
                self.devices_written(devices);
                self.volumes_written(&uid, objects);
            }
            // The engine withdraws the bind.
            ClusterEvent::PreBindFailed { .. } => {}
            ClusterEvent::BudgetApplied(budget) => self.budgets.apply(*budget),
            ClusterEvent::BudgetDeleted { key } => self.budgets.remove(&key),
            ClusterEvent::QuotaApplied(quota) => self.quotas.apply(*quota),
            ClusterEvent::QuotaDeleted { key } => self.quotas.remove(&key),
            ClusterEvent::UsageRead(usage) => self.saved_usages.set_read(usage),
            ClusterEvent::UsageUnread => self.saved_usages.set_unread(),
            ClusterEvent::UsageNotSaved => self.saved_usages.save_failed(),
            ClusterEvent::SelectorApplied(object) => {
                self.selector_changed(object.kind, object.key, object.selector);
            }
            ClusterEvent::SelectorDeleted { kind, key } => self.selector_changed(kind, key, None),
            ClusterEvent::NamespaceApplied { name, labels } => {
                let before = self.namespaces.get_mut().insert(name.clone(), labels);
                self.namespace_changed(&name, before);
            }
            ClusterEvent::NamespaceDeleted { name } => {
                let before = self.namespaces.remove(&name);
                self.namespace_changed(&name, before);
            }
        }
    }

    /// Matches namespace selectors again if the labels differ. A missing namespace has no labels.
    fn namespace_changed(&mut self, name: &str, before: Option<Labels>) {
        let now = self.namespaces.get().get(name);
        if before.as_ref().unwrap_or(&Labels::new()) != now.unwrap_or(&Labels::new()) {
            let (domains, world) = self.domains_and_world();
            domains.namespace_changed(name, world);
        }
    }

    /// Renews the default spread constraints of the pods that the object selects, or selected
    /// before (plugins-nodes.md 7.8).
    fn selector_changed(
        &mut self,
        kind: SelectorKind,
        key: ObjectKey,
        selector: Option<LabelSelector>,
    ) {
        let before = self.selectors.get(kind, &key);
        self.selectors.set(kind, key.clone(), selector);
        let after = self.selectors.get(kind, &key);
        if before != after {
            let (domains, world) = self.domains_and_world();
            domains.selector_changed(kind, &key, [before, after], world);
        }
    }

    fn priority_class_applied(&mut self, class: PriorityClassRecord) {
        let counts = |class: &PriorityClassRecord| (class.value, class.global_default);
        let before = self.priority_classes.get(&class.name).map(counts);
        let same = before == Some(counts(&class));
        self.priority_classes.insert(class.name.clone(), class);
        if !same {
            self.refresh_priorities();
        }
    }

    fn priority_class_deleted(&mut self, name: &str) {
        if self.priority_classes.remove(name).is_some() {
            self.refresh_priorities();
        }
    }

    /// Recomputes the priorities of all jobs. Any job may name the class, and a default applies to
    /// all jobs without a class.
    fn refresh_priorities(&mut self) {
        let ids: Vec<JobId> = self.jobs.ids().collect();
        for id in ids {
            self.jobs[id].priority = self.job_priority(id);
            self.job_changes.push(id);
        }
    }

    /// Returns the priority that a job should have (core.md 3.7).
    pub(super) fn job_priority(&self, id: JobId) -> i32 {
        let group = self.jobs[id].pod_group.as_ref();
        group.map_or(0, |group| self.priority_value(&group.priority_class_name))
    }
}

/// Returns the value of a text that Go parses as bool. Returns `None` for any other text.
pub(super) fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}
