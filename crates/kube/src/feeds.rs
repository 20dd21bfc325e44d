//! The kinds that are followed. Specification: core.md 4.1.

use std::sync::Arc;

use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use vc_wire::{
    SlimBudget, SlimCsiDriver, SlimCsiNode, SlimDeviceClass, SlimNamespace, SlimNode,
    SlimNodeShard, SlimPersistentVolume, SlimPersistentVolumeClaim, SlimPod, SlimPodGroup,
    SlimPriorityClass, SlimQueue, SlimQuota, SlimReplicaSet, SlimReplicationController,
    SlimResourceClaim, SlimResourceSlice, SlimService, SlimStatefulSet, SlimStorageCapacity,
    SlimStorageClass, SlimVolumeAttachment,
};

use crate::client::Clients;
use crate::feed::feed;
use crate::inbox::Incoming;
use crate::observe::Observer;
use crate::slim::Slim;
use crate::source::Source;

/// The running watches; they end when this is dropped.
#[derive(Default)]
pub struct Feeds(JoinSet<()>);

/// Starts to follow every kind; PriorityClasses only if wanted (`--priority-class`).
pub fn follow(
    clients: &Clients,
    priority_classes: bool,
    inbox: &mpsc::Sender<Incoming>,
    observer: &Arc<dyn Observer>,
) -> Feeds {
    let mut feeds = Feeds::default();
    let to = (inbox, observer);
    feeds.add::<SlimNode>((clients, &clients.core), to);
    feeds.add::<SlimNamespace>((clients, &clients.core), to);
    feeds.add::<SlimService>((clients, &clients.core), to);
    feeds.add::<SlimQueue>((clients, &clients.volcano), to);
    if priority_classes {
        feeds.add::<SlimPriorityClass>((clients, &clients.core), to);
    }
    feeds.add::<SlimStorageClass>((clients, &clients.core), to);
    feeds.add::<SlimCsiNode>((clients, &clients.core), to);
    feeds.add::<SlimVolumeAttachment>((clients, &clients.core), to);
    feeds.add::<SlimPersistentVolume>((clients, &clients.core), to);
    feeds.add::<SlimPersistentVolumeClaim>((clients, &clients.core), to);
    feeds.add::<SlimQuota>((clients, &clients.core), to);
    feeds.add_kept::<SlimPodGroup>((clients, &clients.volcano), to);
    feeds.add::<SlimPod>((clients, &clients.core), to);
    feeds
}

/// All clients, and the one for the kind.
type From<'a> = (&'a Clients, &'a Client);
/// Where the events of a feed go, and what is said about it.
type To<'a> = (&'a mpsc::Sender<Incoming>, &'a Arc<dyn Observer>);

impl Feeds {
    /// Follows NodeShards too: `--scheduler-sharding-mode` is hard or soft.
    pub fn follow_node_shards(
        &mut self,
        clients: &Clients,
        inbox: &mpsc::Sender<Incoming>,
        observer: &Arc<dyn Observer>,
    ) {
        self.add::<SlimNodeShard>((clients, &clients.volcano), (inbox, observer));
    }

    /// Follows PodDisruptionBudgets too: gate `PodDisruptionBudgetsSupport` (plugins-jobs-queues.md 10).
    pub fn follow_budgets(
        &mut self,
        clients: &Clients,
        inbox: &mpsc::Sender<Incoming>,
        observer: &Arc<dyn Observer>,
    ) {
        self.add::<SlimBudget>((clients, &clients.core), (inbox, observer));
    }

    /// Follows controllers of pods too, for default spread constraints: gate `WorkLoadSupport`
    /// (core.md 1.3).
    pub fn follow_controllers(
        &mut self,
        clients: &Clients,
        inbox: &mpsc::Sender<Incoming>,
        observer: &Arc<dyn Observer>,
    ) {
        self.add::<SlimReplicationController>((clients, &clients.core), (inbox, observer));
        self.add::<SlimReplicaSet>((clients, &clients.core), (inbox, observer));
        self.add::<SlimStatefulSet>((clients, &clients.core), (inbox, observer));
    }

    /// Follows storage drivers and what room they have: `--csi-storage`.
    pub fn follow_csi_storage(
        &mut self,
        clients: &Clients,
        inbox: &mpsc::Sender<Incoming>,
        observer: &Arc<dyn Observer>,
    ) {
        self.add::<SlimCsiDriver>((clients, &clients.core), (inbox, observer));
        self.add::<SlimStorageCapacity>((clients, &clients.core), (inbox, observer));
    }

    /// Follows claims for devices, their classes and slices; optional, the server may be too old.
    pub fn follow_devices(
        &mut self,
        clients: &Clients,
        inbox: &mpsc::Sender<Incoming>,
        observer: &Arc<dyn Observer>,
    ) {
        self.add::<SlimDeviceClass>((clients, &clients.core), (inbox, observer));
        self.add::<SlimResourceSlice>((clients, &clients.core), (inbox, observer));
        self.add::<SlimResourceClaim>((clients, &clients.core), (inbox, observer));
    }

    fn add<S: Slim>(&mut self, (clients, client): From<'_>, (inbox, observer): To<'_>) {
        let source = Source::<S>::new(client.clone(), clients.bulk.clone());
        self.0.spawn(feed(
            source,
            None,
            inbox.clone(),
            (observer.clone(), clients.failures.clone()),
        ));
    }

    /// Of a kind whose objects are written whole.
    fn add_kept<S: Slim>(&mut self, (clients, client): From<'_>, (inbox, observer): To<'_>) {
        let source = Source::<S>::new(client.clone(), clients.bulk.clone());
        let kept = Some(clients.kept.clone());
        self.0.spawn(feed(
            source,
            kept,
            inbox.clone(),
            (observer.clone(), clients.failures.clone()),
        ));
    }

    /// Returns when one of them has ended, which none does while the engine listens.
    pub async fn ended(&mut self) {
        if self.0.join_next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Kinds that are followed: as many `Synced` messages come.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is followed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
