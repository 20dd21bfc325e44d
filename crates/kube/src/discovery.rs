//! Whether the server has a kind, as its discovery says. Specification: core.md 1.5 (C-06).

use http::Request;
use kube::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::slim::{Slim, collection};
use crate::source::START;

/// Whether the server says that it does not have the kind: a 404 alone may be the word of a proxy.
pub(crate) async fn is_unknown<S: Slim>(client: &Client) -> bool {
    if !S::GROUP.is_empty() {
        match read_all_of::<ApiGroups>(client, "/apis").await {
            Some(groups) if groups.have(S::GROUP, S::VERSION) => {}
            Some(_) => return true,
            None => return false,
        }
    }
    let (collection, plural) = (collection::<S>(), S::PLURAL);
    let version = collection.strip_suffix(plural).map_or("", |path| path.trim_end_matches('/'));
    let resources = read_all_of::<ApiResources>(client, version).await;
    resources.is_some_and(|found| found.resources.iter().all(|kind| kind.name != plural))
}

/// The object at a path; `None`: no answer, or not of this kind.
async fn read_all_of<T: DeserializeOwned>(client: &Client, path: &str) -> Option<T> {
    let request = Request::get(path).body(Vec::new()).ok()?;
    timeout(START, client.request(request)).await.ok()?.ok()
}

/// What `/apis` says.
#[derive(Deserialize)]
struct ApiGroups {
    groups: Vec<ApiGroup>,
}

#[derive(Deserialize)]
struct ApiGroup {
    name: String,
    versions: Vec<GroupVersion>,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
}

impl ApiGroups {
    fn have(&self, group: &str, version: &str) -> bool {
        let mut versions = self.groups.iter().filter(|found| found.name == group);
        versions.any(|group| group.versions.iter().any(|found| found.version == version))
    }
}

/// What the path of a version says.
#[derive(Deserialize)]
struct ApiResources {
    resources: Vec<ApiResourceName>,
}

#[derive(Deserialize)]
struct ApiResourceName {
    name: String,
}
