//! Locks of nodes: an annotation that keeps two schedulers, or two binds, from giving out devices of a
//! node at a time. It is written before the bind; the device plugin removes it when the pod has its
//! devices. Specification: plugins-nodes.md 16.8.

use k8s_openapi::jiff::Timestamp;
use kube::api::{DynamicObject, PostParams};
use kube::{Api, Client};
use vc_engine::NodeLock;

use crate::call::{CallError, call, get, resource};

/// How long a lock holds that nobody removes.
const LOCKED_SECONDS: i64 = 5 * 60;
const ATTEMPTS: u32 = 5;

/// Locks the node.
///
/// # Errors
/// The node is locked by somebody else, is gone, or the write was refused.
pub(crate) async fn lock(client: &Client, node: &str, lock: &NodeLock) -> Result<(), CallError> {
    let now = Timestamp::from_microsecond(lock.now_micros).unwrap_or_default();
    let value = text(lock);
    change(client, node, |object| {
        let annotations = object.metadata.annotations.get_or_insert_default();
        let held = annotations.get(&*lock.annotation).and_then(|held| held.parse().ok());
        let is_fresh = |held: Timestamp| now.as_second() - held.as_second() < LOCKED_SECONDS;
        if held.is_some_and(is_fresh) {
            return Err(CallError::Overtaken("the node has been locked within 5 minutes"));
        }
        annotations.insert(lock.annotation.to_string(), value.clone());
        Ok(true)
    })
    .await
}

/// Removes the lock, if it is still this one.
///
/// # Errors
/// The write was refused.
pub(crate) async fn unlock(client: &Client, node: &str, lock: &NodeLock) -> Result<(), CallError> {
    let value = text(lock);
    change(client, node, |object| {
        let annotations = object.metadata.annotations.get_or_insert_default();
        let is_ours = annotations.get(&*lock.annotation) == Some(&value);
        if is_ours {
            annotations.remove(&*lock.annotation);
        }
        Ok(is_ours)
    })
    .await
}

/// The time of the lock, as the annotation has it.
fn text(lock: &NodeLock) -> String {
    let seconds = lock.now_micros.div_euclid(1_000_000);
    Timestamp::from_second(seconds).unwrap_or_default().to_string()
}

/// Reads, changes and writes the node; `change` says whether there is something to write.
async fn change(
    client: &Client,
    node: &str,
    change: impl Fn(&mut DynamicObject) -> Result<bool, CallError>,
) -> Result<(), CallError> {
    let api = Api::all_with(client.clone(), &resource("", "v1", "Node", "nodes"));
    for attempt in 1.. {
        let mut object = get(&api, node).await?.ok_or(CallError::Gone)?;
        if !change(&mut object)? {
            return Ok(());
        }
        match call(api.replace(node, &PostParams::default(), &object)).await {
            Err(error) if error.is_conflict() && attempt < ATTEMPTS => {}
            answer => return answer.map(drop),
        }
    }
    Ok(())
}
