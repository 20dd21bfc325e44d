//! Requests to the API server as plain JSON: what a test sends is what it shows.

use std::time::Duration;

use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::harness::dir;

/// Only so that what never comes fails a test instead of hanging it.
const HANG: Duration = Duration::from_secs(180);
/// Between two looks.
pub(crate) const POLL: Duration = Duration::from_millis(20);

/// Waits until `look` has found something.
pub(crate) async fn until<T>(what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
    until_within(HANG.as_secs(), what, look).await
}

/// Likewise, for what takes its time.
pub(crate) async fn until_within<T>(
    seconds: u64,
    what: &str,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(found) = look().await {
            return found;
        }
        let in_time = Instant::now() < deadline;
        assert!(in_time, "waited in vain: {what}\nhint: logs are in {}", dir().display());
        sleep(POLL).await;
    }
}

/// The administrator's connection.
#[derive(Clone)]
pub(crate) struct Api(Client);

impl Api {
    pub(crate) async fn connect(kubeconfig: &str) -> Self {
        let file = Kubeconfig::read_from(kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(file, &options).await.unwrap();
        config.default_retry = false;
        Self(Client::try_from(config).unwrap())
    }

    async fn send(&self, request: Request<Vec<u8>>) -> kube::Result<Value> {
        self.0.request(request).await
    }

    pub(crate) async fn get(&self, path: &str) -> kube::Result<Value> {
        self.send(Request::get(path).body(Vec::new()).unwrap()).await
    }

    /// Items of a collection; none while the server does not answer.
    pub(crate) async fn list(&self, path: &str) -> Vec<Value> {
        let mut answer = self.get(path).await.unwrap_or_default();
        answer["items"].as_array_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> kube::Result<Value> {
        let request = Request::post(path).header("content-type", "application/json");
        self.send(request.body(body.to_string().into_bytes()).unwrap()).await
    }

    pub(crate) async fn merge(&self, path: &str, body: &Value) -> kube::Result<Value> {
        self.patch(path, "application/merge-patch+json", body).await
    }

    pub(crate) async fn patch(&self, path: &str, how: &str, body: &Value) -> kube::Result<Value> {
        let request = Request::patch(path).header("content-type", how);
        self.send(request.body(body.to_string().into_bytes()).unwrap()).await
    }

    /// An object, or with a collection's path all that is in it; pods at once, bound or not.
    pub(crate) async fn delete(&self, path: &str) -> kube::Result<Value> {
        let request = Request::delete(path).header("content-type", "application/json");
        self.send(request.body(br#"{"gracePeriodSeconds": 0}"#.to_vec()).unwrap()).await
    }

    /// Server-side apply, refusing what the schema does not know.
    pub(crate) async fn apply(&self, object: &Value) -> kube::Result<Value> {
        let (path, name) = (self.collection(object).await?, text(&object["metadata"]["name"]));
        let path = format!("{path}/{name}?fieldManager=test&force=true&fieldValidation=Strict");
        self.patch(&path, "application/apply-patch+yaml", object).await
    }

    /// The same, whatever the schema knows.
    pub(crate) async fn apply_unchecked(&self, object: &Value) -> kube::Result<Value> {
        let (path, name) = (self.collection(object).await?, text(&object["metadata"]["name"]));
        let path = format!("{path}/{name}?fieldManager=test&force=true");
        self.patch(&path, "application/apply-patch+yaml", object).await
    }

    pub(crate) async fn create(&self, object: &Value) -> kube::Result<Value> {
        self.post(&self.collection(object).await?, object).await
    }

    /// Where objects of this kind and namespace are, by discovery.
    async fn collection(&self, object: &Value) -> kube::Result<String> {
        let version = text(&object["apiVersion"]);
        let prefix = if version.contains('/') { "/apis" } else { "/api" };
        let known = self.get(&format!("{prefix}/{version}")).await?;
        let mut rows = known["resources"].as_array().unwrap().iter();
        let is_kind =
            |row: &&Value| row["kind"] == object["kind"] && !text(&row["name"]).contains('/');
        let row = rows.find(is_kind).unwrap_or_else(|| panic!("kind not served: {object}"));
        let place = match row["namespaced"] == true {
            true => format!("/namespaces/{}", text(&object["metadata"]["namespace"])),
            false => String::new(),
        };
        Ok(format!("{prefix}/{version}{place}/{}", text(&row["name"])))
    }
}

/// HTTP status of a refusal, 0 without an answer.
pub(crate) fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    }
}

/// The text of a field, empty without one.
pub(crate) fn text(field: &Value) -> &str {
    field.as_str().unwrap_or_default()
}
