//! A backup of all objects, and a server that begins anew from it: objects and versions are those of
//! the backup, events are forgotten, and versions that were given out since are of the future.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    kinds::ServedKind,
    object::{Key, Object},
    store::Store,
};

/// All objects of a store at one moment.
#[derive(Clone, Debug)]
pub struct Backup {
    revision: u64,
    objects: BTreeMap<&'static ServedKind, BTreeMap<Key, Arc<Object>>>,
    owned: BTreeMap<String, BTreeSet<(&'static ServedKind, Key)>>,
}

impl Store {
    /// Returns a backup of all objects.
    pub fn backup(&self) -> Backup {
        let state = self.lock();
        let objects = state.collections.iter().map(|(kind, it)| (kind, it.objects.clone()));
        Backup { revision: state.revision, objects: objects.collect(), owned: state.owned.clone() }
    }

    /// Replaces all objects by those of a backup. Readers are told `Expired`.
    pub fn restore(&self, backup: &Backup) {
        let mut state = self.lock();
        state.revision = backup.revision;
        state.n_restores += 1;
        state.owned.clone_from(&backup.owned);
        for (kind, collection) in state.collections.iter_mut() {
            collection.objects = backup.objects.get(kind).cloned().unwrap_or_default();
            collection.log.begin_at(backup.revision);
            collection.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::serve::QUEUES;

    fn queue(name: &str) -> serde_json::Value {
        json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
            "metadata": { "name": name }, "spec": { "weight": 1 },
        })
    }

    #[tokio::test]
    async fn objects_and_versions_go_back_and_readers_begin_anew() {
        let store = Arc::new(Store::new(None));
        store.create(&QUEUES, &queue("a")).unwrap();
        let (backup, revision) = (store.backup(), store.revision());
        let mut reader = store.subscribe(&QUEUES);
        store.create(&QUEUES, &queue("b")).unwrap();
        let given_out = store.revision();
        store.restore(&backup);
        assert_eq!(store.revision(), revision);
        assert!(store.get(&QUEUES, "", "a").is_some() && store.get(&QUEUES, "", "b").is_none());
        assert!(reader.next().await.is_err());
        // A watch of the future opens, and one from before the backup does not.
        assert!(store.check_revision(&QUEUES, given_out).is_ok());
        assert!(store.check_revision(&QUEUES, revision - 1).is_err());
    }
}
