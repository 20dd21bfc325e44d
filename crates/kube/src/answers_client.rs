//! Questions of a user to a scheduler, by each of the ways to it. Specification: answers.md 13 (ANS-88, ANS-89).

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName,
    IF_NONE_MATCH,
};
use http::request::Builder;
use http::{Request, Response, Uri};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::core::Status;
use kube::{Client, Config};
use tokio::time::timeout;

use crate::answers_token::AnswersToken;
use crate::answers_tunnel::tunnel_client;
use crate::answers_way::{
    AnswersPod, AnswersWay, DEFAULT_SERVICE, NO_STATUS, WayProblem, find_answers_pods,
};
use crate::token_file;

/// Path of the answers at their server.
pub(crate) const BASE: &str = "/apis/answers.volcano.sh/v1";
/// How long an answer may take. The server itself gives up after 60 s.
const LONGEST_ANSWER: Duration = Duration::from_secs(70);
/// Where the token goes if the API server takes `Authorization` away.
const OWN_AUTHORIZATION: HeaderName = HeaderName::from_static("x-answers-authorization");

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
    #[error("cannot read {}: {error}\nhint: check --certificate-authority", .path.display())]
    Authority { path: PathBuf, error: std::io::Error },
    /// The server's own words.
    #[error("{0}")]
    Refused(String),
    /// The words of a server that does not let the user ask.
    #[error("{0}")]
    Forbidden(String),
    /// Somebody is there, and cannot answer now.
    #[error("{0}")]
    Unavailable(String),
    #[error("no answer from {place}: {error}\nhint: {hint}")]
    NoAnswer { place: String, error: String, hint: &'static str },
    /// The way does not exist, or the user may not go it.
    #[error("no answer from {place}: {error}\nhint: {hint}")]
    NotThere { place: String, error: String, hint: &'static str },
}

/// What to do where there is no scheduler that answers.
pub(crate) const INSTALLED: &str = "is the scheduler installed with answers.enabled? Give --service NAMESPACE/NAME or \
    --server URL";

impl AnswersError {
    /// True if there is no scheduler that this user could ask there.
    pub fn is_not_there(&self) -> bool {
        matches!(self, Self::NotThere { .. } | Self::NoAccountToken { .. })
    }
}

/// Asks questions.
pub struct AnswersClient {
    client: Client,
    access: AnswersAccess,
    way: AnswersWay,
    /// What comes before the path of a request.
    prefix: String,
    /// The token that the way needs beside what `client` sends, with its header.
    token: Option<(HeaderName, AnswersToken)>,
    /// Namespace of the context.
    pub namespace: String,
}

impl AnswersClient {
    /// Goes the way that the user has named, or that of the Service of the chart. Must be called inside a runtime.
    ///
    /// # Errors
    /// The kubeconfig cannot be used, or there is none.
    pub async fn new(access: &AnswersAccess) -> Result<Self, AnswersError> {
        Self::by(access, access.way()).await
    }

    /// Goes this way. Must be called inside a runtime.
    ///
    /// # Errors
    /// The kubeconfig cannot be used, there is none, or it has no token and none is given.
    pub async fn by(access: &AnswersAccess, way: AnswersWay) -> Result<Self, AnswersError> {
        let is_named = access.context.is_some() || access.kubeconfig.is_some();
        let mut config = match (kubeconfig(access).await, &way) {
            (Ok(config), _) => config,
            // A server of one's own machine may ask for no token.
            (Err(_), AnswersWay::Server(server)) if !is_named => Config::new(url(server)?),
            (Err(error), _) => return Err(error.into()),
        };
        // Whoever cannot answer says why: repeating the question helps nobody.
        config.default_retry = false;
        let namespace = config.default_namespace.clone();
        let (prefix, token) = match &way {
            AnswersWay::Server(server) => {
                config.cluster_url = url(server)?;
                (config.root_cert, config.tls_server_name) = (None, None);
                if let Some(path) = &access.authority {
                    check_authority(path)?;
                }
                config.root_cert_file = access.authority.clone();
                config.accept_invalid_certs = access.is_insecure;
                (String::new(), None)
            }
            AnswersWay::ApiServer => (String::new(), None),
            AnswersWay::Service { namespace, name } => {
                let token = AnswersToken::new(&config, &access.account(namespace, name)).await?;
                let path =
                    format!("/api/v1/namespaces/{namespace}/services/https:{name}:answers/proxy");
                (path, Some((OWN_AUTHORIZATION, token)))
            }
            AnswersWay::Pod(AnswersPod { namespace, .. }) => {
                let service = access.service.as_ref().map_or(DEFAULT_SERVICE.1, |(_, name)| name);
                let token = AnswersToken::new(&config, &access.account(namespace, service)).await?;
                (String::new(), Some((AUTHORIZATION, token)))
            }
        };
        let client = match &way {
            AnswersWay::Pod(pod) => tunnel_client(config, pod),
            _ => Client::try_from(config),
        };
        let client = client.map_err(AnswersError::Build)?;
        Ok(Self { client, access: access.clone(), way, prefix, token, namespace })
    }

    /// Returns the way of this client.
    pub fn way(&self) -> &AnswersWay {
        &self.way
    }

    /// Lists the pods of the scheduler anew, and returns a client of the one after this. Returns `None` if there is no
    /// other pod, or if the way leads to none: a Service follows the leader by itself.
    ///
    /// # Errors
    /// The pods cannot be listed, or there is no token for the next one.
    pub async fn find_next_pod(&self) -> Result<Option<Self>, AnswersError> {
        let AnswersWay::Pod(pod) = &self.way else { return Ok(None) };
        let mut pods = find_answers_pods(&self.access, &pod.namespace).await?;
        if let Some(place) = pods.iter().position(|it| it == pod) {
            pods.rotate_left(place + 1);
        }
        match pods.into_iter().next().filter(|next| next != pod) {
            Some(next) => Self::by(&self.access, AnswersWay::Pod(next)).await.map(Some),
            None => Ok(None),
        }
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
            let status = serde_json::from_slice(&body).unwrap_or_else(|_| {
                let status = Status::failure(&String::from_utf8_lossy(&body), NO_STATUS);
                status.with_code(parts.status.as_u16())
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
        if let Some((header, token)) = &self.token {
            passed = passed.header(header, token.value().await?);
        }
        let passed = passed.body(Body::from(body.to_vec()));
        let passed = passed.map_err(|error| AnswersError::Token(error.to_string()))?;
        let answer = async {
            let (parts, body) = self.client.send(passed).await?.into_parts();
            Ok(Response::from_parts(parts, body.collect().await?.to_bytes()))
        };
        self.within_limit(answer).await
    }

    fn uri(&self, path: &str) -> String {
        format!("{}{BASE}/{path}", self.prefix)
    }

    async fn send(&self, mut request: Builder, body: Vec<u8>) -> Result<String, AnswersError> {
        if let Some((header, token)) = &self.token {
            request = request.header(header, token.value().await?);
        }
        let request = request.body(body);
        let request = request.map_err(|error| AnswersError::Token(error.to_string()))?;
        self.within_limit(self.client.request_text(request)).await
    }

    /// Waits for an answer, and gives it up after [`LONGEST_ANSWER`]. Nobody else ends a question to a pod whose
    /// process is stopped.
    async fn within_limit<T>(
        &self,
        answer: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, AnswersError> {
        match timeout(LONGEST_ANSWER, answer).await {
            Ok(answered) => answered.map_err(|error| self.error(error)),
            Err(_) => Err(self.no_answer(format!("nothing came in {LONGEST_ANSWER:?}"))),
        }
    }

    /// Returns the error of a way at whose end nobody speaks.
    fn no_answer(&self, error: String) -> AnswersError {
        let (place, hint) = (self.way.to_string(), INSTALLED);
        match self.way {
            // No tunnel can be opened, or nobody speaks TLS at its end.
            AnswersWay::Pod(_) => AnswersError::NotThere { place, error, hint },
            _ => AnswersError::NoAnswer { place, error, hint },
        }
    }

    fn error(&self, error: kube::Error) -> AnswersError {
        let status = match error {
            kube::Error::Api(status) if !status.message.is_empty() => status,
            error => return self.no_answer(chain(&error)),
        };
        let (place, error) = (self.way.to_string(), status.message.clone());
        match self.way.problem(&status) {
            Some(WayProblem::Closed) => AnswersError::NotThere { place, error, hint: INSTALLED },
            Some(WayProblem::Away) => {
                let hint = "no scheduler answers there now: try again in some seconds, or \
                    ask the cluster itself with --local";
                let text = format!("no answer from {place}: {error}\nhint: {hint}");
                AnswersError::Unavailable(text)
            }
            None if status.code == 403 => AnswersError::Forbidden(error),
            None if status.code == 503 => AnswersError::Unavailable(error),
            None => AnswersError::Refused(error),
        }
    }
}

impl AnswersAccess {
    /// Returns namespace and name of the ServiceAccount that stands for users without a token.
    fn account(&self, namespace: &str, service: &str) -> (String, String) {
        let account = || (namespace.to_owned(), format!("{service}-admin"));
        self.service_account.clone().unwrap_or_else(account)
    }
}

/// What the API server says, or the error with its causes if it says nothing.
pub(crate) fn in_words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        error => chain(error),
    }
}

/// The error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
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

/// Reads the file of a CA. kube reads it again, and does not name it in its errors.
fn check_authority(path: &Path) -> Result<(), AnswersError> {
    let failed = |error| AnswersError::Authority { path: path.to_owned(), error };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    match text.contains("-----BEGIN CERTIFICATE-----") {
        true => Ok(()),
        false => Err(failed(std::io::Error::other("it has no certificate"))),
    }
}

fn url(text: &str) -> Result<Uri, AnswersError> {
    let uri: Uri = text.parse().map_err(|_| AnswersError::Server(text.to_owned()))?;
    match uri.scheme() {
        Some(_) => Ok(uri),
        None => Err(AnswersError::Server(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tower::{BoxError, service_fn};

    use super::*;

    /// A client whose questions nobody answers.
    fn unanswered(way: AnswersWay) -> AnswersClient {
        let service = service_fn(|_| pending::<Result<Response<Body>, BoxError>>());
        AnswersClient {
            client: Client::new(service, "ml"),
            access: AnswersAccess::default(),
            way,
            prefix: String::new(),
            token: None,
            namespace: "ml".to_owned(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn ans_88_an_answer_that_does_not_come_is_given_up() {
        let pod =
            AnswersPod { namespace: "sched".to_owned(), name: "vc-0".to_owned(), port: 11253 };
        let ways = [(AnswersWay::Pod(pod), true), (AnswersWay::ApiServer, false)];
        for (way, leads_on) in ways {
            let client = unanswered(way);
            let request = Request::get("/queues").body(Bytes::new()).unwrap();
            let day = Duration::from_secs(86_400);
            let got = timeout(day, client.get("queues")).await.unwrap().map(drop);
            let passed = timeout(day, client.forward(request)).await.unwrap().map(drop);
            for error in [got.unwrap_err(), passed.unwrap_err()] {
                let expected = format!("no answer from {}: nothing came in 70s\n", client.way());
                assert!(error.to_string().starts_with(&expected), "{error}");
                assert_eq!(error.is_not_there(), leads_on, "{error}");
            }
        }
    }
}
