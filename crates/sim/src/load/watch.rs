//! Watches the pods of a load and notes when each one was bound. A watch that ends goes on where it
//! ended; one that is too old begins again with a list.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use hyper::{Method, StatusCode};
use serde::Deserialize;
use tokio::sync::watch::{self, Receiver, Sender};
use tokio::task::JoinHandle;

use super::client::{ApiConnection, Client, refused};
use super::{LoadError, Workload};

/// Pause before a watch that has ended is begun again.
const PAUSE: Duration = Duration::from_millis(100);

/// The binds of a load as they happen. It ends with this value.
pub struct BindWatch {
    progress: Receiver<LoadProgress>,
    bound: BindTimes,
    reader: JoinHandle<()>,
}

/// When each pod was bound, by position.
type BindTimes = Arc<Mutex<Vec<Option<Instant>>>>;

#[derive(Clone, Debug, Default)]
struct LoadProgress {
    n_bound: usize,
    /// Why nothing more will be seen.
    failed: Option<String>,
}

impl BindWatch {
    /// Watches from now on. Pods that are bound already count as bound now.
    ///
    /// # Errors
    /// The server is gone, or refuses the list.
    pub async fn watch(client: &Client, workload: &Workload) -> Result<BindWatch, LoadError> {
        let bound = BindTimes::new(Mutex::new(vec![None; workload.n_pods()]));
        let (sender, progress) = watch::channel(LoadProgress::default());
        let mut reader = PodWatchReader {
            connection: client.connection(),
            pods: format!("/api/v1/namespaces/{}/pods", workload.namespace),
            workload: workload.clone(),
            version: String::new(),
            bound: bound.clone(),
            progress: sender,
        };
        reader.list().await?;
        Ok(BindWatch { progress, bound, reader: tokio::spawn(reader.run()) })
    }

    /// Waits until so many pods are bound, or the time is up: whether they are.
    ///
    /// # Errors
    /// The server refuses the watch.
    pub async fn until(&mut self, n_bound: usize, limit: Duration) -> Result<bool, LoadError> {
        let enough = |seen: &LoadProgress| n_bound <= seen.n_bound || seen.failed.is_some();
        let in_time = tokio::time::timeout(limit, self.progress.wait_for(enough)).await.is_ok();
        match self.progress.borrow().failed.clone() {
            Some(why) => Err(LoadError::Watch(why)),
            None => Ok(in_time),
        }
    }

    /// How many are bound.
    pub fn n_bound(&self) -> usize {
        self.progress.borrow().n_bound
    }

    /// When each pod was bound, by position.
    pub fn times(&self) -> Vec<Option<Instant>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for BindWatch {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

struct PodWatchReader {
    connection: ApiConnection,
    pods: String,
    workload: Workload,
    /// Everything up to this version was seen.
    version: String,
    bound: BindTimes,
    progress: Sender<LoadProgress>,
}

/// A line of a watch.
#[derive(Deserialize)]
struct PodWatchLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: WatchedPod<'a>,
}

#[derive(Deserialize)]
struct WatchedPod<'a> {
    #[serde(borrow, default)]
    metadata: WatchedMetadata<'a>,
    #[serde(borrow, default)]
    spec: WatchedSpec<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WatchedMetadata<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WatchedSpec<'a> {
    #[serde(borrow)]
    node_name: Cow<'a, str>,
}

#[derive(Deserialize)]
struct PodList<'a> {
    #[serde(borrow)]
    metadata: WatchedMetadata<'a>,
    #[serde(borrow)]
    items: Vec<WatchedPod<'a>>,
}

impl PodWatchReader {
    async fn run(mut self) {
        loop {
            match self.follow().await {
                Ok(()) | Err(LoadError::Http(_)) => {}
                Err(error) => {
                    let failed = Some(error.to_string());
                    self.progress.send_modify(|progress| progress.failed = failed);
                    return;
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn list(&mut self) -> Result<(), LoadError> {
        let (code, body) = self.connection.call(&Method::GET, &self.pods, <_>::default()).await?;
        match serde_json::from_slice::<PodList<'_>>(&body) {
            Ok(list) if code.is_success() => {
                self.version = list.metadata.resource_version.into_owned();
                list.items.iter().for_each(|pod| note(&self.bound, &self.workload, pod));
                self.tell();
                Ok(())
            }
            _ => Err(refused(&self.pods, code, &body)),
        }
    }

    /// One watch to its end.
    async fn follow(&mut self) -> Result<(), LoadError> {
        let path = format!(
            "{}?watch=true&allowWatchBookmarks=true&resourceVersion={}",
            self.pods, self.version
        );
        let response = self.connection.open(&Method::GET, &path, <_>::default()).await?;
        let status = response.status();
        let mut body = response.into_body();
        if status == StatusCode::GONE {
            return self.list().await;
        }
        if !status.is_success() {
            let body = body.collect().await?.to_bytes();
            return Err(refused(&self.pods, status, &body));
        }
        let mut rest = Vec::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            rest.extend_from_slice(&data);
            if !self.take_lines(&mut rest) {
                return self.list().await;
            }
        }
        Ok(())
    }

    /// Takes the whole lines; false when the watch is too old.
    fn take_lines(&mut self, text: &mut Vec<u8>) -> bool {
        let Some(end) = text.iter().rposition(|byte| *byte == b'\n') else { return true };
        for line in text[..end].split(|byte| *byte == b'\n') {
            // What is no pod and no bookmark is an error of the watch.
            let Ok(line) = serde_json::from_slice::<PodWatchLine<'_>>(line) else { return false };
            if line.kind == "ERROR" {
                return false;
            }
            self.version = line.object.metadata.resource_version.clone().into_owned();
            note(&self.bound, &self.workload, &line.object);
        }
        text.drain(..=end);
        self.tell();
        true
    }

    fn tell(&self) {
        let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let n_bound = bound.iter().flatten().count();
        drop(bound);
        self.progress.send_if_modified(|progress| {
            let before = std::mem::replace(&mut progress.n_bound, n_bound);
            before != n_bound
        });
    }
}

fn note(bound: &BindTimes, workload: &Workload, pod: &WatchedPod<'_>) {
    let Some(position) = workload.position(&pod.metadata.name) else { return };
    if !pod.spec.node_name.is_empty() {
        let mut bound = bound.lock().unwrap_or_else(PoisonError::into_inner);
        bound[position].get_or_insert_with(Instant::now);
    }
}
