//! The usage of the plugin `fairshare` that an earlier process has saved: read when this process begins
//! to schedule, and when a configuration first names its ConfigMap. What cannot be read then is read again until
//! it was. Specification: fair-share.md 11.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use vc_conf::Config;
use vc_engine::UsageConfigMap;
use vc_kube::{CallError, Clients};
use vc_model::ClusterEvent;
use vc_wire::ReadUsage;

/// Time between two attempts at a ConfigMap that could not be read.
const PERIOD: Duration = Duration::from_secs(30);

/// Reads the ConfigMap, and knows which one was read.
pub(crate) struct UsageReader {
    clients: Clients,
    map: Option<UsageConfigMap>,
    /// When it is read again. `None`: it was read.
    retry: Option<Instant>,
}

impl UsageReader {
    pub(crate) fn new(clients: Clients) -> Self {
        Self { clients, map: None, retry: None }
    }

    /// Returns the usage in the ConfigMap of this configuration. Returns `None` if it keeps none, or
    /// the last one kept it in the same ConfigMap.
    pub(crate) async fn read(&mut self, config: &Config) -> Option<ClusterEvent> {
        let map = UsageConfigMap::of(config);
        if map == self.map {
            return None;
        }
        (self.map, self.retry) = (map, None);
        let UsageConfigMap(key) = self.map.as_ref()?;
        match vc_kube::read_saved_usage(&self.clients, key).await {
            Ok(read) => Some(self.event(read)),
            Err(error) => {
                self.failed(&error);
                Some(ClusterEvent::UsageUnread)
            }
        }
    }

    /// Returns the usage that could not be read when it was needed, at most one attempt in a period. Returns `None`
    /// if it was read, or cannot be read yet.
    pub(crate) async fn read_late(&mut self) -> Option<ClusterEvent> {
        let UsageConfigMap(key) = self.map.as_ref()?;
        self.retry.filter(|retry| *retry <= Instant::now())?;
        match vc_kube::read_saved_usage_once(&self.clients, key).await {
            Ok(read) => Some(self.event(read)),
            Err(error) => {
                self.failed(&error);
                None
            }
        }
    }

    fn failed(&mut self, error: &CallError) {
        self.retry = Some(Instant::now() + PERIOD);
        if let Some(UsageConfigMap(key)) = &self.map {
            let hint = "hint: allow the scheduler to get, create and update it; until it is read, nothing is saved, \
                and only pods that run now have used something";
            tracing::warn!("usage of fairshare: ConfigMap {key}: {error}\n{hint}");
        }
    }

    fn event(&mut self, read: ReadUsage) -> ClusterEvent {
        self.retry = None;
        if let Some(UsageConfigMap(key)) = &self.map {
            for problem in read.problems {
                tracing::warn!("usage of fairshare: ConfigMap {key}: {problem}");
            }
        }
        if let Some(usage) = &read.usage {
            let (n_accounts, time) =
                (usage.accounts.len(), vc_wire::format_time(usage.time_micros));
            tracing::info!("usage of fairshare: {n_accounts} accounts as of {time}");
        }
        ClusterEvent::UsageRead(read.usage.map(Arc::new))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    /// The status of each answer of the API server, and the number of requests.
    type Answers = Arc<Mutex<(u16, u32)>>;

    fn reader(answers: &Answers) -> UsageReader {
        let answers = answers.clone();
        let service = tower::service_fn(move |_: Request<Body>| {
            let mut answers = answers.lock().unwrap();
            answers.1 += 1;
            let state = r#"{"lastCycle":"2026-06-01T08:00:00Z","queues":{"q":{"a":1}}}"#;
            let body = match answers.0 {
                200 => json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"},
                    "data": {"state.json": state}}),
                code => json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                    "code": code, "reason": "Injected", "message": "no luck"}),
            };
            let body = Body::from(body.to_string().into_bytes());
            let response = Response::builder().status(answers.0).body(body).unwrap();
            async move { Ok::<_, std::convert::Infallible>(response) }
        });
        UsageReader::new(Clients::shared(Client::new(service, "default")))
    }

    /// FS-82: what could not be read is asked for twice a minute.
    #[tokio::test(start_paused = true)]
    async fn fs_82_what_could_not_be_read_is_read_later() {
        let text = "actions: allocate\ntiers:\n- plugins: [{name: fairshare, arguments: \
            {fairshare.persistState: true}}]\n";
        let config = vc_conf::parse("test.conf", text, &vc_engine::KNOWN).unwrap().config;
        let answers = Answers::new(Mutex::new((403, 0)));
        let mut reader = reader(&answers);
        assert!(matches!(reader.read(&config).await, Some(ClusterEvent::UsageUnread)));
        assert!(reader.read(&config).await.is_none() && reader.read_late().await.is_none());
        assert_eq!(answers.lock().unwrap().1, 1);
        tokio::time::advance(PERIOD).await;
        assert!(reader.read_late().await.is_none());
        answers.lock().unwrap().0 = 200;
        assert!(reader.read_late().await.is_none());
        tokio::time::advance(PERIOD).await;
        let read = reader.read_late().await;
        assert!(matches!(read, Some(ClusterEvent::UsageRead(Some(_)))), "{read:?}");
        tokio::time::advance(PERIOD).await;
        assert!(reader.read_late().await.is_none());
        assert_eq!(answers.lock().unwrap().1, 3);
    }
}
