//! The usage of the plugin `fairshare` that an earlier process has saved: read when this process begins
//! to schedule, and when a configuration first names its ConfigMap. Specification: fair-share.md 11.

use std::sync::Arc;

use vc_conf::Config;
use vc_engine::UsageConfigMap;
use vc_kube::Clients;
use vc_model::ClusterEvent;

/// Reads the ConfigMap, and knows which one was read.
pub(crate) struct UsageReader {
    clients: Clients,
    map: Option<UsageConfigMap>,
}

impl UsageReader {
    pub(crate) fn new(clients: Clients) -> Self {
        Self { clients, map: None }
    }

    /// Returns the usage in the ConfigMap of this configuration. Returns `None` if it keeps none, or
    /// the last one kept it in the same ConfigMap.
    pub(crate) async fn read(&mut self, config: &Config) -> Option<ClusterEvent> {
        let map = UsageConfigMap::of(config);
        if map == self.map {
            return None;
        }
        self.map = map;
        let UsageConfigMap(key) = self.map.as_ref()?;
        let usage = match vc_kube::read_saved_usage(&self.clients, key).await {
            Ok(read) => {
                for problem in read.problems {
                    tracing::warn!("usage of fairshare: ConfigMap {key}: {problem}");
                }
                read.usage
            }
            Err(error) => {
                let hint = "hint: allow the scheduler to get, create and update it; until then \
                    only pods that run now have used something";
                tracing::warn!("usage of fairshare: ConfigMap {key}: {error}\n{hint}");
                None
            }
        };
        if let Some(usage) = &usage {
            let (n_accounts, time) =
                (usage.accounts.len(), vc_wire::format_time(usage.time_micros));
            tracing::info!("usage of fairshare: {n_accounts} accounts as of {time}");
        }
        Some(ClusterEvent::UsageRead(usage.map(Arc::new)))
    }
}
