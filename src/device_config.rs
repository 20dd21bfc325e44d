//! The ConfigMap with the device configuration of the plugin `deviceshare`: read when this process
//! begins to schedule, and twice a minute. Specification: plugins-nodes.md 16.2.

use std::borrow::Cow;
use std::time::Duration;

use tokio::time::Instant;
use vc_conf::Config;
use vc_engine::DeviceConfigMap;
use vc_kube::Clients;

/// How often the ConfigMap is read.
const PERIOD: Duration = Duration::from_secs(30);

/// Reads the ConfigMap, and knows what was read last.
pub(crate) struct DeviceConfigReader {
    clients: Clients,
    map: Option<DeviceConfigMap>,
    /// When it is read again.
    next: Option<Instant>,
    text: Option<String>,
    /// The failure that was logged last.
    failure: Option<String>,
}

impl DeviceConfigReader {
    pub(crate) fn new(clients: Clients) -> Self {
        Self { clients, map: None, next: None, text: None, failure: None }
    }

    /// Returns the content of the ConfigMap that this configuration needs, at most so old as a
    /// period. After a failure it is what was read before.
    pub(crate) async fn read(&mut self, config: &Config) -> Option<String> {
        let map = DeviceConfigMap::of(config);
        if map != self.map {
            (self.text, self.next, self.failure) = (None, None, None);
            self.map = map;
        }
        let map = self.map.as_ref()?;
        if self.next.is_none_or(|next| next <= Instant::now()) {
            let DeviceConfigMap { namespace, name } = map;
            let key = DeviceConfigMap::KEY;
            match vc_kube::config_map_value(&self.clients, namespace, name, key).await {
                Ok(text) => (self.text, self.failure) = (text, None),
                Err(error) => self.failed(format!("ConfigMap {namespace}/{name}: {error}")),
            }
            self.next = Some(Instant::now() + PERIOD);
        }
        self.text.clone()
    }

    /// Logs a failure when it is a new one.
    fn failed(&mut self, failure: String) {
        if self.failure.as_ref() != Some(&failure) {
            let hint = "hint: allow the scheduler to get it, or write its content to \
                deviceshare.DeviceConfig; until then what was read last is in force, else the defaults";
            tracing::warn!("device configuration: {failure}\n{hint}");
        }
        self.failure = Some(failure);
    }
}

/// Returns the configuration with the content of the ConfigMap. A content that is no YAML is left
/// out, and logged.
pub(crate) fn merged<'a>(config: &'a Config, text: Option<&str>) -> Cow<'a, Config> {
    let Some(text) = text else { return Cow::Borrowed(config) };
    match vc_engine::with_device_config(config.clone(), text) {
        Ok(config) => Cow::Owned(config),
        Err(problem) => {
            let key = DeviceConfigMap::KEY;
            let hint = "hint: correct the YAML; until then the defaults are in force";
            tracing::warn!("device configuration: {key}: {problem}\n{hint}");
            Cow::Borrowed(config)
        }
    }
}
