//! The way of a user to the answers of a scheduler: its port, or its Service through the API server.
//! Specification: answers.md 13 (ANS-88, ANS-89).

use std::path::PathBuf;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_DISPOSITION, CONTENT_TYPE, IF_NONE_MATCH};
use http::request::Builder;
use http::{Request, Response, Uri};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::core::Status;
use kube::{Client, Config};
use serde_json::Value;

use crate::answers_token::AnswersToken;
use crate::token_file;

/// Path of the answers at their server.
const BASE: &str = "/apis/answers.volcano.sh/v1";
/// Where the token goes if the API server takes `Authorization` away.
const OWN_AUTHORIZATION: &str = "x-answers-authorization";

/// The Service of the chart, where its release has the default name: namespace and name.
pub const DEFAULT_SERVICE: (&str, &str) = ("volcano-system", "vc-scheduler-answers");
/// Label of the Services of answers, as a selector.
const SERVICE_LABEL: &str = "app.kubernetes.io/component%3Danswers";

/// Where the answers are, and who asks.
#[derive(Clone, Debug, Default)]
pub struct AnswersAccess {
    /// `None`: `$KUBECONFIG`, or that of the home directory.
    pub kubeconfig: Option<PathBuf>,
    /// `None`: the current one.
    pub context: Option<String>,
    /// URL of the port of a scheduler. `None`: the Service is asked through the API server.
    pub server: Option<String>,
    /// Namespace and name of the Service. `None`: [`DEFAULT_SERVICE`].
    pub service: Option<(String, String)>,
    /// Namespace and name of the ServiceAccount whose rights are used if the kubeconfig has a client
    /// certificate and no token. `None`: that of the Service, with `-admin` behind its name.
    pub service_account: Option<(String, String)>,
    /// CA of `server`. `None`: that of the system.
    pub authority: Option<PathBuf>,
    /// Whoever answers at `server` is believed.
    pub is_insecure: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AnswersError {
    #[error("kubeconfig: {0}\nhint: check --kubeconfig, $KUBECONFIG and --context")]
    Kubeconfig(#[from] KubeconfigError),
    #[error("{0:?}: not a URL\nhint: write it like https://127.0.0.1:11253")]
    Server(String),
    #[error("the kubeconfig has no token any more\nhint: log in again")]
    NoToken,
    /// The API server does not pass client certificates on.
    #[error(
        "the kubeconfig has no token, and none of ServiceAccount {account} is given: {error}\n\
         hint: ask for the right to create serviceaccounts/token there, name another one with \
         --service-account, use a context whose user has a token, or --local"
    )]
    NoAccountToken { account: String, error: String },
    #[error("the token cannot be sent: {0}")]
    Token(String),
    #[error("client: {0}\nhint: check the user of the context in the kubeconfig")]
    Build(kube::Error),
    /// The server's own words.
    #[error("{0}")]
    Refused(String),
    #[error("no answer from {place}: {error}\nhint: {hint}")]
    NoAnswer { place: String, error: String, hint: &'static str },
    /// There is no such Service, or the user may not ask it.
    #[error("no answer from {place}: {error}\nhint: {INSTALLED}")]
    NoService { place: String, error: String },
}

/// What to do where there is no Service of answers.
const INSTALLED: &str = "is the scheduler installed with answers.enabled? Give --service NAMESPACE/NAME or \
    --server URL";

impl AnswersError {
    /// True if there is no scheduler that this user could ask there.
    pub fn is_not_there(&self) -> bool {
        matches!(self, Self::NoService { .. } | Self::NoAccountToken { .. })
    }
}

/// Asks questions.
pub struct AnswersClient {
    client: Client,
    prefix: String,
    token: Option<AnswersToken>,
    /// For messages.
    place: String,
    /// Namespace of the context.
    pub namespace: String,
}

impl AnswersClient {
    /// Must be called inside a runtime.
    ///
    /// # Errors
    /// The kubeconfig cannot be used, or there is none.
    pub async fn new(access: &AnswersAccess) -> Result<Self, AnswersError> {
        let mut config = match (kubeconfig(access).await, &access.server) {
            (Ok(config), _) => config,
            // A server of one's own machine may ask for no token.
            (Err(_), Some(server)) if access.context.is_none() => Config::new(url(server)?),
            (Err(error), _) => return Err(error.into()),
        };
        // Whoever cannot answer says why: repeating the question helps nobody.
        config.default_retry = false;
        let namespace = config.default_namespace.clone();
        let (prefix, token, place) = match &access.server {
            Some(server) => {
                config.cluster_url = url(server)?;
                (config.root_cert, config.tls_server_name) = (None, None);
                config.root_cert_file = access.authority.clone();
                config.accept_invalid_certs = access.is_insecure;
                (String::new(), None, server.clone())
            }
            None => {
                let default = || (DEFAULT_SERVICE.0.to_owned(), DEFAULT_SERVICE.1.to_owned());
                let (namespace, name) = access.service.clone().unwrap_or_else(default);
                let account = || (namespace.clone(), format!("{name}-admin"));
                let account = access.service_account.clone().unwrap_or_else(account);
                let token = AnswersToken::new(&config, &account).await?;
                let service =
                    format!("/api/v1/namespaces/{namespace}/services/https:{name}:answers/proxy");
                (service, Some(token), format!("Service {namespace}/{name}"))
            }
        };
        let client = Client::try_from(config).map_err(AnswersError::Build)?;
        Ok(Self { client, prefix, token, place, namespace })
    }

    /// Returns the document of a path below that of the version, with its query.
    ///
    /// # Errors
    /// The server refuses, or does not answer.
    pub async fn get(&self, path: &str) -> Result<String, AnswersError> {
        self.send(Request::get(self.uri(path)), Vec::new()).await
    }

    /// Sends a document to a path below that of the version, and returns the one that answers it.
    ///
    /// # Errors
    /// The server refuses, or does not answer.
    pub async fn post(&self, path: &str, body: String) -> Result<String, AnswersError> {
        let request = Request::post(self.uri(path)).header(CONTENT_TYPE, "application/yaml");
        self.send(request, body.into_bytes()).await
    }

    /// Returns the name and the contents of a file below the path of the version.
    ///
    /// # Errors
    /// The server refuses, or does not answer.
    pub async fn file(&self, path: &str) -> Result<(Option<String>, Bytes), AnswersError> {
        let request = Request::get(format!("{BASE}/{path}")).body(Bytes::new());
        let request = request.map_err(|error| AnswersError::Token(error.to_string()))?;
        let (parts, body) = self.forward(request).await?.into_parts();
        if !parts.status.is_success() {
            let status = serde_json::from_slice(&body).unwrap_or_else(|_| Status {
                code: parts.status.as_u16(),
                message: String::from_utf8_lossy(&body).into_owned(),
                ..Status::default()
            });
            return Err(self.error(kube::Error::Api(Box::new(status))));
        }
        let named = parts.headers.get(CONTENT_DISPOSITION).and_then(|it| it.to_str().ok());
        let name = named.and_then(|it| it.split_once("filename=")).map(|(_, name)| name);
        Ok((name.map(|name| name.trim_matches('"').to_owned()), body))
    }

    /// Passes a request for a path of the server on, with the credentials of the kubeconfig, and returns
    /// the answer as it is. Only what is about the content goes along.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn forward(&self, request: Request<Bytes>) -> Result<Response<Bytes>, AnswersError> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut passed = Request::builder().method(parts.method);
        passed = passed.uri(format!("{}{path}", self.prefix));
        for name in [ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, IF_NONE_MATCH] {
            if let Some(value) = parts.headers.get(&name) {
                passed = passed.header(name, value);
            }
        }
        if let Some(token) = &self.token {
            passed = passed.header(OWN_AUTHORIZATION, token.value().await?);
        }
        let passed = passed.body(Body::from(body.to_vec()));
        let passed = passed.map_err(|error| AnswersError::Token(error.to_string()))?;
        let response = self.client.send(passed).await.map_err(|error| self.error(error))?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| self.error(error))?;
        Ok(Response::from_parts(parts, body.to_bytes()))
    }

    fn uri(&self, path: &str) -> String {
        format!("{}{BASE}/{path}", self.prefix)
    }

    async fn send(&self, mut request: Builder, body: Vec<u8>) -> Result<String, AnswersError> {
        if let Some(token) = &self.token {
            request = request.header(OWN_AUTHORIZATION, token.value().await?);
        }
        let request = request.body(body);
        let request = request.map_err(|error| AnswersError::Token(error.to_string()))?;
        self.client.request_text(request).await.map_err(|error| self.error(error))
    }

    fn error(&self, error: kube::Error) -> AnswersError {
        let place = self.place.clone();
        match error {
            kube::Error::Api(status) if !status.message.is_empty() => {
                let error = status.message.clone();
                match words_about_service(&error).filter(|_| self.token.is_some()) {
                    Some(ServiceProblem::Unknown) => AnswersError::NoService { place, error },
                    Some(ServiceProblem::Away) => {
                        let hint = "no scheduler answers there now: try again in some seconds, or \
                            ask the cluster itself with --local";
                        AnswersError::NoAnswer { place, error, hint }
                    }
                    None => AnswersError::Refused(error),
                }
            }
            error => {
                let error = chain(&error);
                AnswersError::NoAnswer { place, error, hint: INSTALLED }
            }
        }
    }
}

/// Why the API server does not pass a question on.
enum ServiceProblem {
    /// There is no such Service, or the user may not ask it.
    Unknown,
    /// Nobody is behind it.
    Away,
}

/// Reads what the API server says of its own Service. Returns `None` for the words of a scheduler.
fn words_about_service(message: &str) -> Option<ServiceProblem> {
    let away = [
        "no endpoints available for service \"",
        "no service port \"",
        "error trying to reach service: ",
    ];
    match message {
        _ if message.starts_with("services \"") => Some(ServiceProblem::Unknown),
        _ if away.iter().any(|words| message.starts_with(words)) => Some(ServiceProblem::Away),
        _ => None,
    }
}

/// Returns namespace and name of each Service of the namespace of [`DEFAULT_SERVICE`] that has the label of the
/// answers. Returns none if they cannot be listed. Those of other namespaces do not count: a Service is sent the
/// user's token, and whoever may create one in a namespace could give it the label.
pub async fn find_answers_services(access: &AnswersAccess) -> Vec<(String, String)> {
    let list = async {
        let client = Client::try_from(kubeconfig(access).await.ok()?).ok()?;
        let (namespace, _) = DEFAULT_SERVICE;
        let path = format!("/api/v1/namespaces/{namespace}/services?labelSelector={SERVICE_LABEL}");
        let request = Request::get(path).body(Vec::new()).ok()?;
        let mut list = client.request::<Value>(request).await.ok()?;
        let items = list["items"].as_array_mut().map(std::mem::take)?;
        let named = items.iter().filter_map(|service| {
            let field = |name: &str| service["metadata"][name].as_str().map(str::to_owned);
            Some((field("namespace")?, field("name")?))
        });
        Some(named.collect())
    };
    list.await.unwrap_or_default()
}

/// What the API server says, or the error with its causes if it says nothing.
pub(crate) fn in_words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        error => chain(error),
    }
}

/// The error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let words = next.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = next.source();
    }
    text
}

pub(crate) async fn kubeconfig(access: &AnswersAccess) -> Result<Config, KubeconfigError> {
    let context = access.context.clone();
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let mut config = match &access.kubeconfig {
        Some(path) => {
            Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &options).await?
        }
        None => Config::from_kubeconfig(&options).await?,
    };
    token_file::trim(&mut config);
    Ok(config)
}

fn url(text: &str) -> Result<Uri, AnswersError> {
    let uri: Uri = text.parse().map_err(|_| AnswersError::Server(text.to_owned()))?;
    match uri.scheme() {
        Some(_) => Ok(uri),
        None => Err(AnswersError::Server(text.to_owned())),
    }
}
