//! Queues `root` and the default one, made at start if they are missing, and again when somebody
//! deletes them. Specification: core.md 4.7.

use std::time::Duration;

use kube::api::{DynamicObject, PostParams};
use kube::{Api, Client};
use serde_json::json;

use crate::call::{CallError, call, get, queue_resource, queues};

/// How often a queue is tried, one second apart.
const ATTEMPTS: u32 = 60;

/// A queue could not be made.
#[derive(Debug, thiserror::Error)]
#[error(
    "queue {name}: {error}\n\
     hint: are Volcano's CRDs installed, and may the scheduler create queues?"
)]
pub struct QueueError {
    name: String,
    error: CallError,
}

/// Creates what is missing; another replica that does the same at once is no error.
///
/// # Errors
/// A queue could not be created in 60 attempts.
pub async fn ensure_queues(client: &Client, default_queue: &str) -> Result<(), QueueError> {
    let api = queues(client);
    ensure(&api, "root", false).await?;
    ensure(&api, default_queue, true).await
}

async fn ensure(api: &Api<DynamicObject>, name: &str, reclaimable: bool) -> Result<(), QueueError> {
    if matches!(get(api, name).await, Ok(Some(_))) {
        return Ok(());
    }
    let mut attempt = 1;
    loop {
        match post(api, name, reclaimable).await {
            Ok(()) => return Ok(()),
            Err(error) if attempt == ATTEMPTS => {
                return Err(QueueError { name: name.to_owned(), error });
            }
            Err(error) => tracing::warn!(queue = name, attempt, %error, "queue not created"),
        }
        attempt += 1;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Makes a queue that was deleted; one that exists is left as it is.
pub(crate) async fn create(
    client: &Client,
    name: &str,
    reclaimable: bool,
) -> Result<(), CallError> {
    post(&queues(client), name, reclaimable).await
}

async fn post(api: &Api<DynamicObject>, name: &str, reclaimable: bool) -> Result<(), CallError> {
    let spec = json!({"spec": {"weight": 1, "reclaimable": reclaimable}});
    let queue = DynamicObject::new(name, &queue_resource()).data(spec);
    match call(api.create(&PostParams::default(), &queue)).await {
        Ok(_) => {
            tracing::info!(queue = name, "queue created");
            Ok(())
        }
        Err(error) if error.is_already_exists() => Ok(()),
        Err(error) => Err(error),
    }
}
