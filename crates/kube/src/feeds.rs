//! The running watches, one per kind. Specification: core.md 4.1.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::client::Clients;
use crate::feed::{KnownObjects, feed};
use crate::inbox::EngineMessage;
use crate::kinds::KindSet;
use crate::observe::Observer;
use crate::simulated::of_this_process;
use crate::slim::Slim;
use crate::source::ObjectSource;

/// The running watches; they end when this is dropped.
#[derive(Default)]
pub struct Feeds {
    tasks: JoinSet<()>,
}

/// Starts to follow the kinds of [`KindSet::Core`] and those of the other sets.
pub fn follow(
    clients: &Clients,
    sets: &[KindSet],
    inbox: &mpsc::Sender<EngineMessage>,
    observer: &Arc<dyn Observer>,
) -> Feeds {
    let mut feeds = Feeds::default();
    for &set in [KindSet::Core].iter().chain(sets) {
        feeds.follow(set, clients, inbox, observer);
    }
    feeds
}

impl Feeds {
    /// Follows one kind. Texts are kept of a kind whose objects are written whole.
    pub(crate) fn add<S: Slim>(
        &mut self,
        clients: &Clients,
        inbox: &mpsc::Sender<EngineMessage>,
        observer: &Arc<dyn Observer>,
    ) {
        let client = match S::GROUP.ends_with(".volcano.sh") {
            true => &clients.volcano,
            false => &clients.core,
        };
        let source =
            ObjectSource::<S>::new(client.clone(), clients.bulk.clone(), &clients.restores);
        let pod_group_cache = S::WRITTEN_WHOLE.then(|| clients.pod_group_cache.clone());
        let known = KnownObjects::new(
            observer.clone(),
            clients.failures.clone(),
            clients.event_copies.clone(),
        );
        self.tasks.spawn(of_this_process(feed(source, pod_group_cache, inbox.clone(), known)));
    }

    /// Returns when one of them has ended, which none does while the engine listens.
    pub async fn ended(&mut self) {
        if self.tasks.join_next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Kinds that are followed: as many `Synced` messages come.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether nothing is followed.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
}
