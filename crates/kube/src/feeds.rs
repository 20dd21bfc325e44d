//! The kinds that are followed. Specification: core.md 4.1.

use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use vc_wire::{SlimNamespace, SlimNode, SlimPod, SlimPodGroup, SlimPriorityClass, SlimQueue};

use crate::client::Clients;
use crate::feed::feed;
use crate::inbox::Incoming;
use crate::watched::Slim;

/// The running watches; they end when this is dropped.
#[derive(Default)]
pub struct Feeds(JoinSet<()>);

/// Starts to follow every kind; PriorityClasses only if wanted (`--priority-class`).
pub fn follow(clients: &Clients, priority_classes: bool, inbox: &mpsc::Sender<Incoming>) -> Feeds {
    let mut feeds = Feeds::default();
    feeds.add::<SlimNode>(&clients.core, inbox);
    feeds.add::<SlimNamespace>(&clients.core, inbox);
    feeds.add::<SlimQueue>(&clients.volcano, inbox);
    if priority_classes {
        feeds.add::<SlimPriorityClass>(&clients.core, inbox);
    }
    feeds.add::<SlimPodGroup>(&clients.volcano, inbox);
    feeds.add::<SlimPod>(&clients.core, inbox);
    feeds
}

impl Feeds {
    fn add<S: Slim>(&mut self, client: &Client, inbox: &mpsc::Sender<Incoming>) {
        self.0.spawn(feed::<S>(client.clone(), inbox.clone()));
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
