//! A client that follows the leader from pod to pod. Specification: answers.md 13 (ANS-88).

use std::sync::Arc;

use vc_kube::{AnswersClient, AnswersError, AnswersWay};

use crate::attempt::{asked_line, print_line};

/// A client whose way changes when the pod that it leads to does not answer any more.
pub(crate) struct LeaderClient {
    client: Arc<AnswersClient>,
    /// The ways whose names the user knows.
    named: Vec<AnswersWay>,
}

impl LeaderClient {
    pub(crate) fn new(client: AnswersClient) -> Self {
        Self { named: vec![client.way().clone()], client: Arc::new(client) }
    }

    pub(crate) fn client(&self) -> Arc<AnswersClient> {
        self.client.clone()
    }

    /// Goes on to the next pod, if the way of `failed` leads to a pod. Of several questions that have failed, the first
    /// one looks for the next pod.
    pub(crate) async fn follow(&mut self, failed: &Arc<AnswersClient>) {
        if !Arc::ptr_eq(&self.client, failed) {
            return;
        }
        // Where the pods cannot be listed, the same one is asked again.
        let Ok(Some(next)) = failed.find_next_pod().await else { return };
        if !self.named.contains(next.way()) {
            print_line(&asked_line(next.way()));
            self.named.push(next.way().clone());
        }
        self.client = Arc::new(next);
    }
}

/// True if another pod may lead after this error.
pub(crate) fn is_of_lost_leader(error: &AnswersError) -> bool {
    error.is_not_there() || matches!(error, AnswersError::Unavailable(_))
}
