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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// What the API server answers: a status, and the content of the ConfigMap.
    type Answer = Arc<Mutex<(u16, &'static str)>>;

    fn reader(answer: &Answer) -> DeviceConfigReader {
        let answer = answer.clone();
        let service = tower::service_fn(move |_: Request<Body>| {
            let (status, text) = *answer.lock().unwrap();
            let body = match status {
                200 => json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"},
                    "data": {DeviceConfigMap::KEY: text}}),
                code => json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                    "code": code, "reason": "Injected", "message": "no luck"}),
            };
            let body = Body::from(body.to_string().into_bytes());
            let response = Response::builder().status(status).body(body).unwrap();
            async move { Ok::<_, std::convert::Infallible>(response) }
        });
        DeviceConfigReader::new(Clients::shared(Client::new(service, "default")))
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_162_a_changed_config_map_is_read_within_half_a_minute() {
        let text = "actions: allocate\ntiers:\n- plugins: [{name: deviceshare, arguments: \
            {deviceshare.VGPUEnable: true}}]\n";
        let config = vc_conf::parse("test.conf", text, &vc_engine::KNOWN).unwrap().config;
        let answer = Answer::new(Mutex::new((200, "nvidia: {}")));
        let mut reader = reader(&answer);
        assert_eq!(reader.read(&config).await.as_deref(), Some("nvidia: {}"));
        *answer.lock().unwrap() = (200, "vnpus: []");
        assert_eq!(reader.read(&config).await.as_deref(), Some("nvidia: {}"));
        tokio::time::advance(PERIOD).await;
        assert_eq!(reader.read(&config).await.as_deref(), Some("vnpus: []"));
        // What was read stays in force while it cannot be read.
        *answer.lock().unwrap() = (403, "");
        tokio::time::advance(PERIOD).await;
        assert_eq!(reader.read(&config).await.as_deref(), Some("vnpus: []"));
        // A ConfigMap that was deleted leaves the defaults.
        *answer.lock().unwrap() = (404, "");
        tokio::time::advance(PERIOD).await;
        assert_eq!(reader.read(&config).await, None);
    }
}
