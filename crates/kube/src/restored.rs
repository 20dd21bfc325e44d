//! Whether the API server was restored from a backup while a watch was closed. A watch that went on then
//! would be silent until the server has given out its version again, and miss everything before.
//! Specification: rust-ecosystem.md 3.

use kube::Client;
use serde::Deserialize;
use tokio::sync::watch;
use vc_model::ObjectKey;

use crate::slim::Slim;
use crate::source::{ListPage, ObjectChange, SourceError, escaped, list};

/// Tells the sources of all kinds that one of them, or the election, has noticed a restore of the server. All
/// kinds are listed again, because writes that came after the backup are lost, also those of a kind whose own
/// watch shows nothing of the restore.
#[derive(Clone, Debug)]
pub(crate) struct RestoreNotices(watch::Sender<()>);

impl Default for RestoreNotices {
    fn default() -> Self {
        Self(watch::channel(()).0)
    }
}

/// What one source, or the election, knows of a restored server.
pub(crate) struct RestoreNotice {
    others: RestoreNotices,
    from_others: watch::Receiver<()>,
    /// The server was restored from a backup, and is to be listed again.
    is_restored: bool,
}

impl RestoreNotice {
    pub(crate) fn new(others: &RestoreNotices) -> Self {
        Self { others: others.clone(), from_others: others.0.subscribe(), is_restored: false }
    }

    /// This source has noticed it.
    pub(crate) fn noticed(&mut self) {
        self.others.0.send_replace(());
        self.from_others.mark_unchanged();
        self.is_restored = true;
    }

    /// True, once, if another source has noticed it.
    pub(crate) fn is_noticed_by_others(&mut self) -> bool {
        let is_new = self.from_others.has_changed().unwrap_or(false);
        self.from_others.mark_unchanged();
        self.is_restored |= is_new;
        is_new
    }

    /// Returns when another source has noticed it, which the next look shows.
    pub(crate) async fn by_others(&mut self) {
        if self.from_others.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        self.from_others.mark_changed();
    }

    /// A list begins. True if what was written after a backup is to be forgotten with it.
    pub(crate) fn take(&mut self) -> bool {
        std::mem::take(&mut self.is_restored)
    }
}

/// The object that a watch has shown last, with its version.
#[derive(Clone, Debug)]
pub(crate) struct SeenObject {
    key: ObjectKey,
    version: u64,
}

impl SeenObject {
    /// Returns the object of a change. `None`: it has none, or nothing is known of it.
    pub(crate) fn of(change: &ObjectChange) -> Option<Self> {
        let (ObjectChange::Applied(object) | ObjectChange::Deleted(object)) = change else {
            return None;
        };
        let (key, _) = object.identity.as_ref()?;
        Some(Self { key: key.clone(), version: object.version.as_deref()?.parse().ok()? })
    }

    fn selector(&self) -> String {
        let ObjectKey { namespace, name } = &self.key;
        let within = match namespace.is_empty() {
            true => String::new(),
            false => format!(",metadata.namespace={namespace}"),
        };
        format!("metadata.name={name}{within}")
    }
}

#[derive(Deserialize)]
struct ObjectVersion {
    metadata: ObjectVersionMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectVersionMetadata {
    resource_version: String,
}

/// True if the server was restored from a backup. Exact because versions only grow otherwise:
///
/// - The newest version of the server is older than the one that was seen.
/// - The object that was seen last has an older version than it had then.
///
/// It stays unknown here if the server has given out the version again, and the last object is gone or was
/// written again. The Lease shows it then, if there is one (`elect.rs`).
pub(crate) async fn is_restored<S: Slim>(
    client: &Client,
    version: &str,
    last: Option<&SeenObject>,
) -> Result<bool, SourceError> {
    let selector = last.map(|last| format!("&fieldSelector={}", escaped(&last.selector())));
    let query = format!("limit=1{}", selector.unwrap_or_default());
    let page: ListPage<ObjectVersion> = list::<S, _>(client, &query).await?;
    let number = |text: &str| text.parse::<u64>().ok();
    let newest = number(page.metadata.resource_version.as_deref().unwrap_or_default());
    let is_ahead = number(version).zip(newest).is_some_and(|(seen, newest)| newest < seen);
    let found = page.items.into_iter().flatten().next();
    let found = found.and_then(|object| number(&object.metadata.resource_version));
    let is_older = last.zip(found).is_some_and(|(last, found)| found < last.version);
    Ok(is_ahead || is_older)
}
