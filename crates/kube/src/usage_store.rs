//! The ConfigMap with the usage of the plugin `fairshare`: read when this process begins to schedule,
//! and written over what was seen last. Specification: fair-share.md 11.

use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use vc_model::{ObjectKey, SavedUsage};
use vc_wire::{BAD_USAGE_KEY, EXACT_USAGE_KEY, ReadUsage, USAGE_KEY, read_usage, usage_texts};

use crate::call::{CallError, call, get, insist};
use crate::client::Clients;

/// The ConfigMap as it was seen or written last. Its version goes along with the next write, so that
/// a write never hides what somebody else has written.
#[derive(Default)]
pub(crate) struct UsageStore {
    /// `None`: it is read before the next write.
    seen: Mutex<Option<(ObjectKey, ConfigMap)>>,
}

impl UsageStore {
    fn take(&self, key: &ObjectKey) -> Option<ConfigMap> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).take();
        seen.filter(|(of, _)| of == key).map(|(_, map)| map)
    }

    fn keep(&self, key: &ObjectKey, map: ConfigMap) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some((key.clone(), map));
    }
}

/// Reads the usage that an earlier process has saved, once.
///
/// # Errors
/// The API server did not answer, or refused.
pub async fn read_saved_usage_once(
    clients: &Clients,
    key: &ObjectKey,
) -> Result<ReadUsage, CallError> {
    let api: Api<ConfigMap> = Api::namespaced(clients.core.clone(), &key.namespace);
    Ok(keep_read(clients, key, get(&api, &key.name).await?))
}

/// Reads the usage that an earlier process has saved, for a minute at most.
///
/// # Errors
/// The API server did not answer, or refused.
pub async fn read_saved_usage(clients: &Clients, key: &ObjectKey) -> Result<ReadUsage, CallError> {
    let api: Api<ConfigMap> = Api::namespaced(clients.core.clone(), &key.namespace);
    // A refusal does not pass by itself.
    let ask = || async {
        match get(&api, &key.name).await {
            Err(error) if error.code() == 403 => Ok(Err(error)),
            answer => answer.map(Ok),
        }
    };
    Ok(keep_read(clients, key, insist("usage of fairshare", ask).await??))
}

/// Keeps the ConfigMap for the next write, and returns what it says.
fn keep_read(clients: &Clients, key: &ObjectKey, found: Option<ConfigMap>) -> ReadUsage {
    let Some(mut map) = found else { return ReadUsage::default() };
    let read = set_bad_text_aside(&mut map);
    clients.usage_store.keep(key, map);
    read
}

/// Writes the usage, and returns the number of accounts for which there was no room. Other keys of
/// the ConfigMap stay.
///
/// # Errors
/// It was not written: also if somebody else has written since.
pub(crate) async fn save_usage(
    client: &Client,
    store: &UsageStore,
    key: &ObjectKey,
    usage: &SavedUsage,
) -> Result<usize, CallError> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &key.namespace);
    let seen = match store.take(key) {
        Some(map) => Some(map),
        None => get(&api, &key.name).await?.map(|mut map| {
            set_bad_text_aside(&mut map);
            map
        }),
    };
    let is_new = seen.is_none();
    let mut map = seen.unwrap_or_else(|| named(key));
    let texts = usage_texts(usage);
    let data = map.data.get_or_insert_default();
    data.insert(USAGE_KEY.to_owned(), texts.state);
    data.insert(EXACT_USAGE_KEY.to_owned(), texts.exact);
    let written = match is_new {
        true => call(api.create(&PostParams::default(), &map)).await?,
        false => call(api.replace(&key.name, &PostParams::default(), &map)).await?,
    };
    store.keep(key, written);
    Ok(texts.n_left_out)
}

/// Reads the texts of the ConfigMap. One that cannot be read gets another key, since the next write
/// takes its place.
fn set_bad_text_aside(map: &mut ConfigMap) -> ReadUsage {
    let data = map.data.get_or_insert_default();
    let read = read_usage(data);
    if let Some(text) = &read.bad_text {
        data.insert(BAD_USAGE_KEY.to_owned(), text.clone());
    }
    read
}

fn named(key: &ObjectKey) -> ConfigMap {
    let (namespace, name) = (key.namespace.to_string(), key.name.to_string());
    let metadata =
        ObjectMeta { namespace: Some(namespace), name: Some(name), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}
