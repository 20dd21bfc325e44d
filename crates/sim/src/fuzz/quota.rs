//! The ResourceQuota for the pods of the jobs' namespace: a new pod beyond it is refused, as by its admission plugin.

use serde_json::{Value, json};

use super::world::{NAMESPACE, found, has_ended};
use crate::serve::{DeleteOptions, Key, PODS, Refused, ServedKind, Store};

/// Name of the quota.
const NAME: &str = "pods";

fn quotas() -> &'static ServedKind {
    ServedKind::of("v1", "ResourceQuota").expect("the server has quotas")
}

/// Sets the quota. `None`: there is none any more.
///
/// # Errors
/// The object is refused, which is a fault of this module.
pub(super) fn set(store: &Store, pods: Option<u64>) -> Result<(), Refused> {
    let key = Key::new(NAMESPACE, NAME);
    found(store.delete(quotas(), &key, &DeleteOptions::default()).map(drop))?;
    let Some(pods) = pods else { return Ok(()) };
    let hard = json!({ "pods": pods.to_string() });
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": { "name": NAME, "namespace": NAMESPACE },
        "spec": { "hard": hard }, "status": { "hard": hard },
    });
    store.create(quotas(), &quota).map(drop)
}

/// Creates a pod, unless that exceeds the quota.
///
/// # Errors
/// `Forbidden` in the words of the admission plugin, or what the server says otherwise.
pub(super) fn create_pod(store: &Store, pod: &Value) -> Result<(), Refused> {
    let quota = store.get(quotas(), NAMESPACE, NAME);
    let hard = quota.and_then(|quota| quota.value["spec"]["hard"]["pods"].as_str()?.parse().ok());
    let pods = store.list(&PODS, Some(NAMESPACE)).objects;
    let used = pods.iter().filter(|pod| !has_ended(&pod.value)).count();
    if let Some(hard) = hard.filter(|hard: &usize| *hard <= used) {
        return Err(Refused::Forbidden {
            kind: &PODS,
            name: pod["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            why: format!(
                "exceeded quota: {NAME}, requested: pods=1, used: pods={used}, limited: pods={hard}"
            ),
        });
    }
    store.create(&PODS, pod).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::script::JobSpec;
    use crate::fuzz::world;
    use crate::serve::{LOG_CAPACITY, in_process};

    #[tokio::test]
    async fn a_pod_beyond_the_quota_is_refused() {
        let (_router, store) = in_process(1, |_| LOG_CAPACITY);
        let pod = |at| world::pod(&JobSpec::lone("j"), at);
        set(&store, Some(1)).unwrap();
        create_pod(&store, &pod(0)).unwrap();
        let refused = create_pod(&store, &pod(1)).unwrap_err();
        let expected = "pods \"j-1\" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=1, \
            limited: pods=1";
        assert_eq!(refused.to_string(), expected);
        set(&store, Some(2)).unwrap();
        create_pod(&store, &pod(1)).unwrap();
        set(&store, None).unwrap();
        create_pod(&store, &pod(2)).unwrap();
    }
}
