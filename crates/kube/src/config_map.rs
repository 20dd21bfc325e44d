//! Reads one value of a ConfigMap.

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
    let api: Api<ConfigMap> = Api::namespaced(clients.core.clone(), namespace);
    let found = get(&api, name).await?;
    Ok(found.and_then(|map| map.data?.remove(key)))
}
