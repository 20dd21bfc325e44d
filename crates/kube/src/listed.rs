//! The objects of a cluster that a scheduler watches, listed once by a user. Specification: answers.md 13
//! (ANS-91).

use std::time::Duration;

use http::Request;
use kube::Client;
use kube::api::ListParams;
use kube::core::Request as PageRequest;
use serde_json::Value;

use crate::answers_client::{AnswersAccess, AnswersError, in_words};
use crate::connection_flags::in_time;
use crate::kinds::{KindSet, collections};

/// Objects of one answer of a list.
const PAGE: u32 = 500;

/// What a user may read of a cluster.
#[derive(Debug, Default)]
pub struct ListedObjects {
    /// The objects, each with its version and kind.
    pub objects: Vec<Value>,
    /// Kinds that could not be listed, each with the answer of the API server.
    pub refused: Vec<String>,
    /// Namespace of the context.
    pub namespace: String,
}

impl ListedObjects {
    /// Lists the objects with the rights of the kubeconfig, and reads the first ConfigMap of `places` that can be
    /// read, each given as namespace and name. Returns its values, or why the last one cannot be read. Must
    /// be called inside a runtime.
    ///
    /// # Errors
    /// The kubeconfig cannot be used, the API server does not answer, or nodes, pods, PodGroups or queues
    /// may not be listed.
    pub async fn read(
        access: &AnswersAccess,
        places: &[(String, String)],
    ) -> Result<(Self, Result<Value, String>), AnswersError> {
        let config = access.config().await?;
        let mut listed = Self { namespace: config.default_namespace.clone(), ..Self::default() };
        let client = Client::try_from(config).map_err(AnswersError::Build)?;
        let client = (&client, access.flags.request_timeout);
        for (set, name, path) in collections() {
            // Controllers of pods would become pods once more.
            if set != KindSet::Controllers {
                listed.list(client, (name, &path)).await?;
            }
        }
        let mut values = Err("no name is given".to_owned());
        for place in places {
            values = config_map(client, place).await;
            if values.is_ok() {
                break;
            }
        }
        Ok((listed, values))
    }

    /// Adds all objects of a kind, page by page. Each page may take as long as the limit says.
    async fn list(
        &mut self,
        (client, limit): (&Client, Option<Duration>),
        (kind, path): (&str, &str),
    ) -> Result<(), AnswersError> {
        let mut range = ListParams::default().limit(PAGE);
        loop {
            let page = PageRequest::new(path).list(&range).map_err(kube::Error::BuildRequest);
            let page = match page {
                Ok(request) => in_time(limit, client.request::<Value>(request)).await,
                Err(error) => Err(error),
            };
            let mut page = match page {
                Ok(page) => page,
                Err(error) => return self.refuse(kind, &error),
            };
            let version = page["apiVersion"].take();
            for mut object in page["items"].as_array_mut().map(std::mem::take).unwrap_or_default() {
                // Items of a list do not say what they are.
                object["apiVersion"] = version.clone();
                object["kind"] = kind.into();
                self.objects.push(object);
            }
            match page["metadata"]["continue"].as_str().filter(|next| !next.is_empty()) {
                Some(next) => range = range.continue_token(next),
                None => return Ok(()),
            }
        }
    }

    fn refuse(&mut self, kind: &str, error: &kube::Error) -> Result<(), AnswersError> {
        let text = format!("{kind}: {}", in_words(error));
        match error {
            kube::Error::Api(status) if !is_needed(kind) && matches!(status.code, 403 | 404) => {
                self.refused.push(text);
                Ok(())
            }
            _ => Err(AnswersError::Refused(format!("cannot list {text}"))),
        }
    }
}

/// Returns the values of a ConfigMap, given by namespace and name, or why it cannot be read in the time of the limit.
async fn config_map(
    (client, limit): (&Client, Option<Duration>),
    (namespace, name): &(String, String),
) -> Result<Value, String> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
    let request = Request::get(path).body(Vec::new()).map_err(|error| error.to_string())?;
    let values = in_time(limit, client.request::<Value>(request)).await;
    values.map(|mut map| map["data"].take()).map_err(|error| in_words(&error))
}

/// True if nothing can be said without objects of the kind.
fn is_needed(kind: &str) -> bool {
    matches!(kind, "Node" | "Pod" | "PodGroup" | "Queue")
}
