//! The ways of a user to the answers of a scheduler, and which of them a cluster has. Specification: answers.md 13
//! (ANS-88).

use std::fmt;

use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use kube::core::Status;
use serde_json::Value;

use crate::answers_client::{AnswersAccess, AnswersError, BASE, INSTALLED, in_words};
use crate::connection_flags::in_time;

/// The Service of the chart, where its release has the default name: namespace and name.
pub(crate) const DEFAULT_SERVICE: (&str, &str) = ("volcano-system", "vc-scheduler-answers");
/// Label of the Services of answers, as a selector.
const SERVICE_LABEL: &str = "app.kubernetes.io/component%3Danswers";
/// Label that a leader sets on its own pod once it answers, as a selector (ANS-83).
const POD_LABEL: &str = "scheduling.volcano.sh/answers=true";
/// Name of the container's port for answers in the chart, and its number where no port has this name.
const PORT_NAME: &str = "answers";
const DEFAULT_PORT: u16 = 11253;
/// kube's reason of an error whose body is no `Status`.
pub(crate) const NO_STATUS: &str = "Failed to parse error data";

/// A way to the answers of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswersWay {
    /// The port of a scheduler, by its URL.
    Server(String),
    /// The API server itself, which passes questions of the group on to the scheduler.
    ApiServer,
    /// A Service, through the API server.
    Service {
        /// Namespace of the Service.
        namespace: String,
        /// Name of the Service.
        name: String,
    },
    /// A pod, through a tunnel that the API server opens to its port.
    Pod(AnswersPod),
}

/// A pod that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswersPod {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub name: String,
    /// Port of the answers, with TLS.
    pub port: u16,
}

impl fmt::Display for AnswersWay {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(url) => out.write_str(url),
            Self::ApiServer => out.write_str("the API server"),
            Self::Service { namespace, name } => write!(out, "Service {namespace}/{name}"),
            Self::Pod(AnswersPod { namespace, name, .. }) => write!(out, "pod {namespace}/{name}"),
        }
    }
}

impl AnswersAccess {
    /// Returns the way that the user has named, or the Service of the chart.
    pub fn way(&self) -> AnswersWay {
        let (namespace, name) = match (&self.server, &self.service) {
            (Some(server), _) => return AnswersWay::Server(server.clone()),
            (None, Some((namespace, name))) => (namespace.clone(), name.clone()),
            (None, None) => (DEFAULT_SERVICE.0.to_owned(), DEFAULT_SERVICE.1.to_owned()),
        };
        AnswersWay::Service { namespace, name }
    }
}

/// Why a way leads to no scheduler.
pub(crate) enum WayProblem {
    /// It does not exist here, or the user may not use it.
    Closed,
    /// Nobody is at its end.
    Away,
}

impl AnswersWay {
    /// Reads an error in the words of the API server about this way. Returns `None` for the words of a scheduler.
    pub(crate) fn problem(&self, status: &Status) -> Option<WayProblem> {
        match self {
            Self::Service { .. } => words_about_service(&status.message),
            // A scheduler always answers with a `Status`. One that does not believe the API server wants a token.
            Self::ApiServer if status.reason == NO_STATUS || status.code == 401 => {
                Some(WayProblem::Closed)
            }
            Self::ApiServer | Self::Server(_) | Self::Pod(_) => None,
        }
    }
}

/// Reads what the API server says of its own Service. Returns `None` for the words of a scheduler.
fn words_about_service(message: &str) -> Option<WayProblem> {
    let away = [
        "no endpoints available for service \"",
        "no service port \"",
        "error trying to reach service: ",
    ];
    match message {
        _ if message.starts_with("services \"") => Some(WayProblem::Closed),
        _ if away.iter().any(|words| message.starts_with(words)) => Some(WayProblem::Away),
        _ => None,
    }
}

/// Returns true if the API server has the group of the answers, and somebody behind it serves its discovery. Returns
/// `false` if it does not know the group, or does not let this user ask.
///
/// # Errors
/// The kubeconfig cannot be used, the API server does not answer, it says why the group cannot be asked now, or it does
/// not let the user impersonate another one.
pub async fn has_answers_group(access: &AnswersAccess) -> Result<bool, AnswersError> {
    let client = access.api_client().await?;
    let request = Request::get(BASE).body(Vec::new());
    let request = request.map_err(|error| AnswersError::Token(error.to_string()))?;
    match in_time(access.flags.request_timeout, client.request_text(request)).await {
        Ok(_) => Ok(true),
        // This refusal is not about the group: by each way the same one would come.
        Err(kube::Error::Api(status)) if is_about_impersonation(&status) => {
            Err(AnswersError::Forbidden(status.message))
        }
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => Ok(false),
        Err(error) => {
            let place = AnswersWay::ApiServer.to_string();
            Err(match &error {
                kube::Error::Api(_) => {
                    AnswersError::NotThere { place, error: in_words(&error), hint: INSTALLED }
                }
                error => {
                    let hint = "check the cluster of the context in the kubeconfig";
                    AnswersError::NoAnswer { place, error: in_words(error), hint }
                }
            })
        }
    }
}

/// True if the API server does not let this user impersonate the one who is named.
fn is_about_impersonation(status: &Status) -> bool {
    status.code == 403 && status.message.contains(" cannot impersonate")
}

/// Returns namespace and name of each Service of a namespace that has the label of the answers. Those of other
/// namespaces do not count: a Service is sent the user's token, and whoever may create one in a namespace could give it
/// the label.
///
/// # Errors
/// The Services cannot be listed.
pub async fn find_answers_services(
    access: &AnswersAccess,
    namespace: &str,
) -> Result<Vec<(String, String)>, AnswersError> {
    let client = access.api_client().await?;
    let path = format!("/api/v1/namespaces/{namespace}/services?labelSelector={SERVICE_LABEL}");
    let request = Request::get(path).body(Vec::new());
    let request = request.map_err(|error| AnswersError::Token(error.to_string()))?;
    let list = in_time(access.flags.request_timeout, client.request::<Value>(request));
    let list = list.await.map_err(|error| {
        let place = format!("Services of namespace {namespace}");
        AnswersError::NotThere { place, error: in_words(&error), hint: INSTALLED }
    })?;
    let named = list["items"].as_array().into_iter().flatten().filter_map(|service| {
        let field = |name: &str| service["metadata"][name].as_str().map(str::to_owned);
        Some((field("namespace")?, field("name")?))
    });
    // The answer of a list is not believed about other namespaces.
    Ok(named.filter(|(of, _)| of == namespace).collect())
}

/// Returns the pods of a namespace that answer: each has the label that the leader sets, and is ready. Pods of other
/// namespaces do not count, as whoever may create pods in a namespace could give one the label.
///
/// # Errors
/// The pods cannot be listed, or there is none.
pub async fn find_answers_pods(
    access: &AnswersAccess,
    namespace: &str,
) -> Result<Vec<AnswersPod>, AnswersError> {
    let client = access.api_client().await?;
    let closed = |error| {
        let place = format!("pods of namespace {namespace}");
        AnswersError::NotThere { place, error, hint: INSTALLED }
    };
    let api = Api::<Pod>::namespaced(client, namespace);
    let labelled = ListParams::default().labels(POD_LABEL);
    let listed = in_time(access.flags.request_timeout, api.list(&labelled)).await;
    let listed = listed.map_err(|error| closed(in_words(&error)))?;
    let ready = listed.items.iter().filter(|pod| is_ready(pod));
    let pods: Vec<AnswersPod> = ready.filter_map(|pod| answers_pod(pod, namespace)).collect();
    match pods.is_empty() {
        true => Err(closed("none is ready and has the label of the leader".to_owned())),
        false => Ok(pods),
    }
}

/// Returns true if the pod has the label, serves, and is not about to go.
fn is_ready(pod: &Pod) -> bool {
    let (name, value) = POD_LABEL.split_once('=').unwrap_or_default();
    let labels = pod.metadata.labels.as_ref();
    let is_labelled = labels.and_then(|labels| labels.get(name)).is_some_and(|it| it == value);
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let is_ready = conditions.any(|it| it.type_ == "Ready" && it.status == "True");
    is_labelled && is_ready && pod.metadata.deletion_timestamp.is_none()
}

/// Returns name and port of a pod. Returns `None` if the pod is of another namespace.
fn answers_pod(pod: &Pod, namespace: &str) -> Option<AnswersPod> {
    let name = pod.metadata.name.clone()?;
    let is_here = pod.metadata.namespace.as_deref() == Some(namespace);
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
    let named = ports.find(|port| port.name.as_deref() == Some(PORT_NAME));
    let port = named.and_then(|port| u16::try_from(port.container_port).ok());
    let port = port.unwrap_or(DEFAULT_PORT);
    is_here.then(|| AnswersPod { namespace: namespace.to_owned(), name, port })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(change: impl FnOnce(&mut Value)) -> Option<AnswersPod> {
        let mut pod = json!({"metadata": {"namespace": "sched", "name": "a",
                "labels": {"scheduling.volcano.sh/answers": "true"}},
            "spec": {"containers": [{"name": "side", "ports": [{"containerPort": 1}]},
                {"name": "main", "ports": [{"name": "answers", "containerPort": 8443}]}]},
            "status": {"conditions": [{"type": "Initialized", "status": "True"},
                {"type": "Ready", "status": "True"}]}});
        change(&mut pod);
        let pod: Pod = serde_json::from_value(pod).unwrap();
        Some(pod).filter(is_ready).and_then(|pod| answers_pod(&pod, "sched"))
    }

    #[test]
    fn ans_88_only_a_ready_pod_of_the_namespace_with_the_label_is_asked() {
        let of =
            |port| Some(AnswersPod { namespace: "sched".to_owned(), name: "a".to_owned(), port });
        assert_eq!(pod(|_| {}), of(8443));
        assert_eq!(pod(|pod| pod["spec"]["containers"][1]["ports"] = json!([])), of(11253));
        let refused: [fn(&mut Value); 6] = [
            |pod| pod["metadata"]["namespace"] = "other".into(),
            |pod| pod["metadata"]["labels"] = json!({}),
            |pod| pod["metadata"]["labels"]["scheduling.volcano.sh/answers"] = "false".into(),
            |pod| pod["metadata"]["deletionTimestamp"] = "2026-06-01T10:00:00Z".into(),
            |pod| pod["status"]["conditions"][1]["status"] = "False".into(),
            |pod| pod["status"] = json!({}),
        ];
        for (number, change) in refused.into_iter().enumerate() {
            assert_eq!(pod(change), None, "{number}");
        }
    }

    #[test]
    fn ans_88_words_of_the_api_server_about_a_way_are_no_answer() {
        let service = AnswersWay::Service { namespace: "sched".to_owned(), name: "ask".to_owned() };
        let of_scheduler = Status::failure("vc-scheduler-b leads", "ServiceUnavailable");
        let of_scheduler = of_scheduler.with_code(503);
        let cases = [
            (&AnswersWay::ApiServer, Status::failure("service unavailable", NO_STATUS), true),
            (
                &AnswersWay::ApiServer,
                Status::failure("no token", "Unauthorized").with_code(401),
                true,
            ),
            (
                &AnswersWay::ApiServer,
                Status::failure("forbidden", "Forbidden").with_code(403),
                false,
            ),
            (&AnswersWay::ApiServer, of_scheduler.clone(), false),
            (&service, Status::failure("services \"ask\" not found", "NotFound"), true),
            (&service, Status::failure("no token", "Unauthorized").with_code(401), false),
            (&service, of_scheduler, false),
        ];
        for (way, status, expected) in cases {
            assert_eq!(way.problem(&status).is_some(), expected, "{way}: {}", status.message);
        }
    }
}
