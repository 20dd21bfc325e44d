//! The label by which the Service of the answers finds the leader. Specification: answers.md 12
//! (ANS-83).

use std::time::Duration;

use vc_kube::{Clients, label_pod};

use super::handle::AnswerHandle;
use crate::environment::OwnPod;

/// Key of the label.
const LABEL: &str = "scheduling.volcano.sh/answers";
/// Pause before a label that was not written is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// Removes the label that an earlier process of this pod may have left.
pub(crate) async fn unmark(clients: &Clients, pod: Option<&OwnPod>) {
    let Some(OwnPod { namespace, name }) = pod else {
        let hint = "hint: set POD_NAME and POD_NAMESPACE, as the chart does";
        tracing::info!("answers: no Service can find this pod\n{hint}");
        return;
    };
    if let Err(error) = label_pod(clients, (namespace, name), (LABEL, None)).await {
        tracing::warn!("answers: label {LABEL} of pod {namespace}/{name} not removed: {error}");
    }
}

/// Sets the label once questions are answered.
pub(crate) async fn mark(handle: AnswerHandle, clients: Clients, pod: Option<OwnPod>) {
    let Some(OwnPod { namespace, name }) = &pod else { return };
    handle.is_serving().await;
    loop {
        let written = label_pod(&clients, (namespace, name), (LABEL, Some("true"))).await;
        let Err(error) = written else { return };
        let hint = "hint: the scheduler may patch pods; the Service does not find it until then";
        tracing::warn!("answers: label {LABEL} of pod {namespace}/{name}: {error}\n{hint}");
        tokio::time::sleep(AGAIN).await;
    }
}
