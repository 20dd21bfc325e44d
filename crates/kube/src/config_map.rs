//! Reads the values of a ConfigMap.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;

use crate::call::{CallError, get};
use crate::client::Clients;

/// Returns the value of a key. Returns `None` if there is no such ConfigMap or no such key.
///
/// # Errors
/// The API server did not answer, or refused.
pub async fn config_map_value(
    clients: &Clients,
    namespace: &str,
    name: &str,
    key: &str,
) -> Result<Option<String>, CallError> {
    let values = config_map_values(clients, namespace, name).await?;
    Ok(values.and_then(|mut values| values.remove(key)))
}

/// Returns all values by their keys. Returns `None` if there is no such ConfigMap.
///
/// # Errors
/// The API server did not answer, or refused.
pub async fn config_map_values(
    clients: &Clients,
    namespace: &str,
    name: &str,
) -> Result<Option<BTreeMap<String, String>>, CallError> {
    let api: Api<ConfigMap> = Api::namespaced(clients.core.clone(), namespace);
    Ok(get(&api, name).await?.map(|map| map.data.unwrap_or_default()))
}
