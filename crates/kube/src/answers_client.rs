//! Questions of a user to a scheduler, by each of the ways to it. Specification: answers.md 13 (ANS-88, ANS-89).

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_DISPOSITION, CONTENT_TYPE, HeaderName,
    IF_NONE_MATCH,
};
use http::request::Builder;
use http::{Request, Response, Uri};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::config::KubeconfigError;
use kube::core::Status;
use kube::{Client, Config};
use tokio::time::timeout;

use crate::answers_session::AnswersSession;
use crate::answers_token::AnswersToken;
use crate::answers_tunnel::tunnel_client;
use crate::answers_way::{
    AnswersPod, AnswersWay, DEFAULT_SERVICE, NO_STATUS, WayProblem, find_answers_pods,
};
use crate::connection_flags::{ConnectionFlags, RequestTimedOut};

/// Path of the answers at their server.
pub(crate) const BASE: &str = "/apis/answers.volcano.sh/v1";
/// How long the first part of an answer may take, and each part after another. The server itself gives up after 60 s.
const LONGEST_PAUSE: Duration = Duration::from_secs(70);
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
    /// What is said of the connection to `server`, else to the API server, in place of the kubeconfig.
    pub flags: ConnectionFlags,
    /// What the ways share once it is read. Clones of this access share it, too.
    pub session: AnswersSession,
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
    /// A file of a flag.
    #[error("cannot read {}: {error}\nhint: check {flag}", .path.display())]
    File { path: PathBuf, error: std::io::Error, flag: &'static str },
    /// A flag names an entry that the kubeconfig does not have.
    #[error("kubeconfig: it has no {kind} {name:?}\nhint: kubectl config get-{kind}s lists them")]
    NoEntry { kind: &'static str, name: String },
    /// What is listed cannot be kept.
    #[error("temporary file: {0}")]
    TemporaryFile(std::io::Error),
    /// Whoever is at the end of this way knows the user by the token alone.
    #[error(
        "{place} is not asked: it would answer the user of the token, not {user}, who is impersonated\n\
         hint: the API server's own group (value answers.aggregated of the chart) and --local answer as an \
         impersonated user; or {hint}"
    )]
    NotImpersonated { place: String, user: String, hint: &'static str },
    /// The API server would answer the user of the credentials, as nobody else is named.
    #[error(
        "kubeconfig: its user has as-uid, as-groups or as-user-extra, and no \"as\" that names whom they are about\n\
         hint: add \"as\" to the user of the kubeconfig, or give --as"
    )]
    NoImpersonatedUser,
    /// The server's own words.
    #[error("{0}")]
    Refused(String),
    /// The words of a server that does not let the user ask.
    #[error("{0}")]
    Forbidden(String),
    /// Somebody is there, and cannot answer now.
    #[error("{0}")]
    Unavailable(String),
    /// The user asks more than it may at once.
    #[error("{0}")]
    TooMany(String),
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
        matches!(
            self,
            Self::NotThere { .. } | Self::NoAccountToken { .. } | Self::NotImpersonated { .. }
        )
    }

    /// True if no file of `$KUBECONFIG`, or none in the home directory, exists, or if what they say has no current
    /// context, so that nobody is their user.
    fn is_no_kubeconfig(&self) -> bool {
        match self {
            Self::Kubeconfig(KubeconfigError::FindPath | KubeconfigError::CurrentContextNotSet) => {
                true
            }
            Self::Kubeconfig(KubeconfigError::LoadContext(name)) => name.is_empty(),
            Self::Kubeconfig(KubeconfigError::ReadConfig(error, _)) => {
                error.kind() == ErrorKind::NotFound && !has_kubeconfig_of_environment()
            }
            _ => false,
        }
    }
}

/// True if a file of `$KUBECONFIG` exists, or that cannot be found out.
fn has_kubeconfig_of_environment() -> bool {
    let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let mut files = std::env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty());
    files.any(|path| path.try_exists().unwrap_or(true))
}

/// Asks questions.
pub struct AnswersClient {
    client: Client,
    access: AnswersAccess,
    way: AnswersWay,
    /// What comes before the path of a request.
    prefix: String,
    /// The token that the way needs beside what `client` sends, with its header.
    token: Option<(HeaderName, Arc<AnswersToken>)>,
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
    /// The kubeconfig cannot be used, there is none, or it has no token and none is given. An impersonated user would
    /// not be the one who is answered.
    pub async fn by(access: &AnswersAccess, way: AnswersWay) -> Result<Self, AnswersError> {
        let config = access.config_for(&way).await?;
        access.flags.check_impersonation(&config, &way)?;
        let namespace = config.default_namespace.clone();
        let server = match &way {
            AnswersWay::Server(server) => Some(access.server_config(config, server)?),
            _ => None,
        };
        let (prefix, token) = match &way {
            AnswersWay::Server(_) | AnswersWay::ApiServer => (String::new(), None),
            AnswersWay::Service { namespace, name } => {
                let token = access.token(&access.account(namespace, name)).await?;
                let path =
                    format!("/api/v1/namespaces/{namespace}/services/https:{name}:answers/proxy");
                (path, Some((OWN_AUTHORIZATION, token)))
            }
            AnswersWay::Pod(AnswersPod { namespace, .. }) => {
                let service = access.service.as_ref().map_or(DEFAULT_SERVICE.1, |(_, name)| name);
                let token = access.token(&access.account(namespace, service)).await?;
                (String::new(), Some((AUTHORIZATION, token)))
            }
        };
        let client = match (&way, server) {
            (_, Some(config)) => Client::try_from(config).map_err(AnswersError::Build)?,
            (AnswersWay::Pod(pod), None) => {
                let tunnel = tunnel_client(access.api_client().await?, &namespace, pod);
                tunnel.map_err(AnswersError::Build)?
            }
            (_, None) => access.api_client().await?,
        };
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
        let (parts, body) = self.accepted(self.forward(request).await?)?.into_parts();
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
        self.respond(passed).await
    }

    fn uri(&self, path: &str) -> String {
        format!("{}{BASE}/{path}", self.prefix)
    }

    async fn send(&self, mut request: Builder, body: Vec<u8>) -> Result<String, AnswersError> {
        if let Some((header, token)) = &self.token {
            request = request.header(header, token.value().await?);
        }
        let request = request.body(Body::from(body));
        let request = request.map_err(|error| AnswersError::Token(error.to_string()))?;
        let response = self.accepted(self.respond(request).await?)?;
        let text = String::from_utf8(response.into_body().to_vec());
        text.map_err(|error| self.no_answer(error.to_string(), INSTALLED))
    }

    /// Sends a request, and returns the whole response, if it comes in the time of the flags.
    async fn respond(&self, request: Request<Body>) -> Result<Response<Bytes>, AnswersError> {
        let response = self.respond_in_parts(request);
        let Some(limit) = self.access.flags.request_timeout else { return response.await };
        timeout(limit, response).await.unwrap_or_else(|_| {
            let hint = "give a longer --request-timeout, or none";
            Err(self.no_answer(RequestTimedOut(limit).to_string(), hint))
        })
    }

    /// Sends a request, and returns the whole response. Each part of it may take its time.
    async fn respond_in_parts(
        &self,
        request: Request<Body>,
    ) -> Result<Response<Bytes>, AnswersError> {
        let (parts, mut body) = self.next_part(self.client.send(request)).await?.into_parts();
        let mut bytes = BytesMut::new();
        while let Some(frame) = self.next_part(body.frame().map(Option::transpose)).await? {
            if let Ok(data) = frame.into_data() {
                bytes.extend_from_slice(&data);
            }
        }
        Ok(Response::from_parts(parts, bytes.freeze()))
    }

    /// Waits for the next part of an answer, and gives up after [`LONGEST_PAUSE`]. Nobody else ends a question to a
    /// pod whose process is stopped.
    async fn next_part<T>(
        &self,
        part: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, AnswersError> {
        match timeout(LONGEST_PAUSE, part).await {
            Ok(came) => came.map_err(|error| self.error(error)),
            Err(_) => Err(self.no_answer(format!("nothing came in {LONGEST_PAUSE:?}"), INSTALLED)),
        }
    }

    /// Returns a response that is no refusal.
    fn accepted(&self, response: Response<Bytes>) -> Result<Response<Bytes>, AnswersError> {
        let code = response.status();
        if code.is_success() {
            return Ok(response);
        }
        let status = serde_json::from_slice(response.body()).unwrap_or_else(|_| {
            let text = String::from_utf8_lossy(response.body());
            Status::failure(text.trim(), NO_STATUS).with_code(code.as_u16())
        });
        Err(self.error(kube::Error::Api(Box::new(status))))
    }

    /// Returns the error of a way at whose end nobody speaks.
    fn no_answer(&self, error: String, hint: &'static str) -> AnswersError {
        let place = self.way.to_string();
        match self.way {
            // No tunnel can be opened, or nobody speaks TLS at its end.
            AnswersWay::Pod(_) => AnswersError::NotThere { place, error, hint },
            _ => AnswersError::NoAnswer { place, error, hint },
        }
    }

    fn error(&self, error: kube::Error) -> AnswersError {
        let status = match error {
            kube::Error::Api(status) if !status.message.is_empty() => status,
            error => return self.no_answer(chain(&error), INSTALLED),
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
            None if status.code == 429 => AnswersError::TooMany(error),
            None => AnswersError::Refused(error),
        }
    }
}

impl AnswersAccess {
    /// True if the user wants this kubeconfig and no other one.
    fn names_kubeconfig(&self) -> bool {
        let ConnectionFlags { cluster, user, .. } = &self.flags;
        [&self.context, cluster, user].into_iter().any(Option::is_some) || self.kubeconfig.is_some()
    }

    /// Returns the kubeconfig for this way. Without one the port of a scheduler is asked with the flags alone, as a
    /// server of one's own machine may ask for no token. One that cannot be used may say whom its user impersonates.
    async fn config_for(&self, way: &AnswersWay) -> Result<Config, AnswersError> {
        match (self.config().await, way) {
            (Err(error), AnswersWay::Server(server))
                if !self.names_kubeconfig() && error.is_no_kubeconfig() =>
            {
                let mut config = Config::new(url(server)?);
                self.flags.change_user(&mut config.auth_info)?;
                Ok(config)
            }
            (config, _) => config,
        }
    }

    /// Returns how the port of a scheduler is asked with the credentials of a kubeconfig.
    fn server_config(&self, mut config: Config, server: &str) -> Result<Config, AnswersError> {
        config.default_retry = false;
        config.cluster_url = url(server)?;
        self.flags.check_authority()?;
        // Where nothing is verified, the certificates of the system need not be there.
        config.root_cert = self.flags.is_insecure.then(Vec::new);
        config.root_cert_file.clone_from(&self.flags.authority);
        config.tls_server_name.clone_from(&self.flags.tls_server_name);
        config.accept_invalid_certs = self.flags.is_insecure;
        Ok(config)
    }

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
        kube::Error::Service(error) if error.is::<RequestTimedOut>() => error.to_string(),
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

    use futures::{StreamExt, stream};
    use http_body::Frame;
    use http_body_util::StreamBody;
    use http_body_util::combinators::UnsyncBoxBody;
    use tower::{BoxError, Service, service_fn};

    use super::*;

    type Answered = Response<UnsyncBoxBody<Bytes, BoxError>>;

    /// How long a test would wait, in the time of a paused clock.
    const DAY: Duration = Duration::from_secs(86_400);

    /// A client of this way whose requests a service answers.
    fn client<S>(way: AnswersWay, service: S) -> AnswersClient
    where
        S: Service<Request<Body>, Response = Answered, Error = BoxError> + Send + 'static,
        S::Future: Send,
    {
        AnswersClient {
            client: Client::new(service, "ml"),
            access: AnswersAccess::default(),
            way,
            prefix: String::new(),
            token: None,
            namespace: "ml".to_owned(),
        }
    }

    fn pod() -> AnswersWay {
        let (namespace, name) = ("sched".to_owned(), "vc-0".to_owned());
        AnswersWay::Pod(AnswersPod { namespace, name, port: 11253 })
    }

    /// Asks as the verbs do, and as the page does. Returns what failed.
    async fn failures(client: &AnswersClient) -> [AnswersError; 2] {
        let request = Request::get("/queues").body(Bytes::new()).unwrap();
        let got = timeout(DAY, client.get("queues")).await.unwrap().map(drop);
        let passed = timeout(DAY, client.forward(request)).await.unwrap().map(drop);
        [got.unwrap_err(), passed.unwrap_err()]
    }

    /// An answer whose parts come after 60 s each, and which ends or not.
    fn slow(n_parts: usize, has_end: bool) -> Answered {
        let parts = stream::iter(0..n_parts).then(|_| async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok(Frame::data(Bytes::from_static(b"x")))
        });
        let rest = stream::pending().take(usize::from(!has_end));
        Response::new(StreamBody::new(parts.chain(rest)).boxed_unsync())
    }

    #[tokio::test(start_paused = true)]
    async fn ans_88_an_answer_that_does_not_come_is_given_up() {
        for (way, leads_on) in [(pod(), true), (AnswersWay::ApiServer, false)] {
            let silent = service_fn(|_| pending::<Result<Answered, BoxError>>());
            let stopped = service_fn(|_| async { Ok(slow(2, false)) });
            let expected = format!("no answer from {way}: nothing came in 70s\n");
            for client in [client(way.clone(), silent), client(way, stopped)] {
                for error in failures(&client).await {
                    assert!(error.to_string().starts_with(&expected), "{error}");
                    assert_eq!(error.is_not_there(), leads_on, "{error}");
                }
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn ans_86_an_answer_that_takes_longer_than_the_flag_allows_is_given_up() {
        for (way, leads_on) in [(pod(), true), (AnswersWay::ApiServer, false)] {
            let slow = service_fn(|_| async { Ok(slow(5, true)) });
            let mut client = client(way.clone(), slow);
            client.access.flags.request_timeout = Some(Duration::from_secs(200));
            for error in failures(&client).await {
                let expected = format!(
                    "no answer from {way}: it took longer than 200s (--request-timeout)\n\
                     hint: give a longer --request-timeout, or none"
                );
                assert_eq!(error.to_string(), expected);
                assert_eq!(error.is_not_there(), leads_on);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn ans_88_a_long_answer_may_come_slowly() {
        let service = service_fn(|_| async { Ok(slow(5, true)) });
        let client = client(pod(), service);
        assert_eq!(timeout(DAY, client.get("queues")).await.unwrap().unwrap(), "xxxxx");
    }
}
