//! The client of a monitoring server: one address, credentials, limits of time and size.
//! Specification: plugins-nodes.md 12.1, 12.2.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::TokioExecutor;
use kube::Config;
use tokio::time::timeout;
use vc_text::escape;

use crate::stack::{HttpVersions, connector};

/// Longest time until a connection is there.
const CONNECT: Duration = Duration::from_secs(10);
/// Longest time of one request.
const REQUEST: Duration = Duration::from_secs(30);
/// Bytes of a refusal that are read.
const REFUSAL: usize = 64 << 10;
/// Bytes of a refusal that a message shows.
const SHOWN: usize = 200;

/// Where a monitoring server is, and how to get in.
#[derive(Clone, PartialEq)]
pub struct LoadServer {
    /// Base URL without credentials and without a slash at the end.
    base: String,
    /// For basic authentication. Both empty: none.
    username: String,
    password: String,
    skip_verify: bool,
}

/// Without the password.
impl std::fmt::Debug for LoadServer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("LoadServer").field("base", &self.base).finish_non_exhaustive()
    }
}

impl LoadServer {
    /// Reads an address. Credentials in it are used like those of `as_user`.
    ///
    /// # Errors
    /// The address is no URL of HTTP or HTTPS. The text says what to write.
    pub fn new(address: &str, skip_verify: bool) -> Result<Self, String> {
        let wrong = || {
            "not a URL of HTTP or HTTPS; write it like http://prometheus.monitoring:9090".to_owned()
        };
        let (scheme, rest) = address.trim().split_once("://").ok_or_else(wrong)?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (credentials, host) = match authority.rsplit_once('@') {
            Some((credentials, host)) => (credentials, host),
            None => ("", authority),
        };
        let base = format!("{scheme}://{host}{}", path.trim_end_matches('/'));
        let uri: Uri = base.parse().map_err(|_| wrong())?;
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        if !is_http || uri.host().is_none_or(str::is_empty) || uri.query().is_some() {
            return Err(wrong());
        }
        let (username, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        let [username, password] = [username, password].map(str::to_owned);
        Ok(Self { base, username, password, skip_verify })
    }

    /// The same with a user name and a password, unless the name is empty.
    #[must_use]
    pub fn as_user(self, username: &str, password: &str) -> Self {
        if username.is_empty() {
            return self;
        }
        Self { username: username.to_owned(), password: password.to_owned(), ..self }
    }

    /// The address without credentials.
    pub(super) fn shown(&self) -> &str {
        &self.base
    }
}

/// Why a round brought nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    #[error("no answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The words of the innermost cause.
    #[error("{0}")]
    Connection(String),
    #[error("answered {code}{text}{}", advice(*code))]
    Status { code: StatusCode, text: String },
    #[error("the answer has more than {} KiB", .0 / 1024)]
    TooLarge(usize),
    #[error("the answer cannot be read: {0}")]
    Unreadable(String),
    #[error(
        "none of the {n_nodes} nodes has both values in the answer: they must bear the names of the \
         nodes (docs/usage.md)"
    )]
    NoNode { n_nodes: usize },
}

impl LoadError {
    /// The label in the metrics.
    pub(super) fn cause(&self) -> &'static str {
        match self {
            Self::TimedOut(_) => "timeout",
            Self::Connection(_) => "connection",
            Self::Status { .. } => "status",
            Self::TooLarge(_) => "too_large",
            Self::Unreadable(_) => "unreadable",
            Self::NoNode { .. } => "no_nodes",
        }
    }

    /// The error of an answer with this status.
    pub(super) fn status(code: StatusCode, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = if text.is_empty() { text } else { format!(": {}", escape(&text)) };
        Self::Status { code, text }
    }

    /// The error of an answer that is not what it should be.
    pub(super) fn unreadable(error: &serde_json::Error) -> Self {
        Self::Unreadable(escape(&error.to_string()).into_owned())
    }
}

/// What to look at when a server answers so.
fn advice(code: StatusCode) -> &'static str {
    match code.as_u16() {
        300..=399 => "; write the address that it redirects to",
        401 | 403 => "; are user name and password right, or the rights of the scheduler?",
        404 => "; is the path of the address right, is the adapter installed?",
        _ => "",
    }
}

/// The words of the innermost cause: those around it say no more than that something failed.
pub(super) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    escape(&innermost.to_string()).into_owned()
}

/// Sends requests to one server.
pub(super) struct LoadClient {
    base: String,
    /// Header `authorization`. `None`: it is not sent.
    credentials: Option<HeaderValue>,
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl LoadClient {
    /// # Errors
    /// Certificates of the system are unreadable, or credentials are.
    pub(super) fn new(server: &LoadServer) -> Result<Self, LoadError> {
        let failed = |text: &dyn std::fmt::Display| LoadError::Connection(text.to_string());
        let url = server.base.parse().map_err(|error| failed(&error))?;
        let mut config = Config::new(url);
        config.accept_invalid_certs = server.skip_verify;
        config.connect_timeout = Some(CONNECT);
        if server.base.starts_with("http://") || server.skip_verify {
            // An image without a trust store must do.
            config.root_cert = Some(Vec::new());
        }
        let connector = connector(&config, HttpVersions::Http1);
        let connector = connector.map_err(|error| LoadError::Connection(innermost(&error)))?;
        let credentials = match server.username.is_empty() {
            true => None,
            false => {
                Some(basic(&server.username, &server.password).map_err(|error| failed(&error))?)
            }
        };
        let http = Builder::new(TokioExecutor::new()).build(connector);
        Ok(Self { base: server.base.clone(), credentials, http })
    }

    /// Returns the answer to a GET of a path below the address, at most so many bytes.
    pub(super) async fn get(&self, path: &str, most: usize) -> Result<Bytes, LoadError> {
        self.send(Method::GET, path, Bytes::new(), most).await
    }

    /// Returns the answer to a POST of JSON, at most so many bytes.
    pub(super) async fn post(
        &self,
        path: &str,
        json: String,
        most: usize,
    ) -> Result<Bytes, LoadError> {
        self.send(Method::POST, path, json.into(), most).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        most: usize,
    ) -> Result<Bytes, LoadError> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header(USER_AGENT, concat!("vc-scheduler/", env!("CARGO_PKG_VERSION")));
        if let Some(credentials) = &self.credentials {
            request = request.header(AUTHORIZATION, credentials);
        }
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::new(body));
        let request = request.map_err(|error| LoadError::Connection(error.to_string()))?;
        limited(async {
            let answer = self.http.request(request).await;
            received(answer.map_err(|error| LoadError::Connection(innermost(&error)))?, most).await
        })
        .await
    }
}

/// Runs a request in at most [`REQUEST`].
pub(super) async fn limited<T>(
    request: impl Future<Output = Result<T, LoadError>>,
) -> Result<T, LoadError> {
    timeout(REQUEST, request).await.unwrap_or(Err(LoadError::TimedOut(REQUEST)))
}

/// Returns the whole body of a good answer, at most so many bytes.
pub(super) async fn received<B>(answer: Response<B>, most: usize) -> Result<Bytes, LoadError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (head, body) = answer.into_parts();
    if !head.status.is_success() {
        let body = Limited::new(body, REFUSAL).collect().await;
        let text = body.map(|body| body.to_bytes()).unwrap_or_default();
        return Err(LoadError::status(head.status, &text));
    }
    match Limited::new(body, most).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(LoadError::TooLarge(most)),
        Err(error) => Err(LoadError::Connection(innermost(&*error))),
    }
}

fn basic(username: &str, password: &str) -> Result<HeaderValue, http::header::InvalidHeaderValue> {
    let text = format!("Basic {}", base64(format!("{username}:{password}").as_bytes()));
    let mut value = HeaderValue::from_str(&text)?;
    value.set_sensitive(true);
    Ok(value)
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the text in base64 with padding (RFC 4648, 4).
fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let byte = |at: usize| u32::from(part.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = BASE64[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= part.len() { digit.into() } else { '=' });
        }
    }
    text
}

/// Returns the text for a path or a query: what is neither a letter nor a digit nor one of `-._~*,`
/// is encoded (RFC 3986, 2.1).
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'*' | b',' => {
                out.push(byte.into());
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_taken_out_of_the_address() {
        let server = LoadServer::new("https://me:p@ss@prometheus:9090/base/", false).unwrap();
        assert_eq!(server.shown(), "https://prometheus:9090/base");
        assert_eq!((&*server.username, &*server.password), ("me", "p@ss"));
        assert!(!format!("{server:?}").contains("p@ss"));
        let other = server.clone().as_user("you", "secret");
        assert_eq!((&*other.username, &*other.password), ("you", "secret"));
        assert_eq!(server.clone().as_user("", "x"), server);
        for address in
            ["", "prometheus:9090", "ftp://x", "http://", "http:///x", "http://a b", "http://x?y"]
        {
            assert!(LoadServer::new(address, false).is_err(), "{address}");
        }
    }

    #[test]
    fn texts_are_encoded() {
        let cases =
            [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj"), ("a:b?", "YTpiPw==")];
        for (text, expected) in cases {
            assert_eq!(base64(text.as_bytes()), expected);
        }
        assert_eq!(encoded("metricbeat-*,x"), "metricbeat-*,x");
        assert_eq!(encoded("a{b=\"c d\"}/é"), "a%7Bb%3D%22c%20d%22%7D%2F%C3%A9");
    }
}
