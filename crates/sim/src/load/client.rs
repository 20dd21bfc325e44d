//! A connection to the API server, over HTTP/1.1. A 429 is waited out as `Retry-After` says; a lost
//! connection is opened again and what was asked is asked once more.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::access::LoadAccess;
use super::{LoadError, LoadObject};

/// Pause after a 429 that does not say how long.
const PAUSE: Duration = Duration::from_secs(1);
/// Attempts at one request over connections that break.
const ATTEMPTS: u32 = 5;

/// Makes connections; clones share the counter.
#[derive(Clone)]
pub struct Client {
    access: LoadAccess,
    waits: Arc<AtomicU64>,
}

/// One connection: one request after the other.
pub struct ApiConnection {
    client: Client,
    open: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    /// A client of that server.
    pub fn new(access: LoadAccess) -> Client {
        Client { access, waits: Arc::default() }
    }

    /// A connection that is opened when it is needed.
    pub fn connection(&self) -> ApiConnection {
        ApiConnection { client: self.clone(), open: None }
    }

    /// How often a 429 was waited out.
    pub fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, LoadError> {
        let authority = &self.access.authority;
        let failed = |error| LoadError::Connect { authority: authority.clone(), error };
        let stream = TcpStream::connect(authority).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let Some(tls) = &self.access.tls else { return handshake(stream).await };
        let host = authority.rsplit_once(':').map_or(authority.as_str(), |(host, _)| host);
        let host = host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(|_| LoadError::Address(authority.clone()))?;
        let stream = TlsConnector::from(tls.clone()).connect(name, stream).await.map_err(failed)?;
        handshake(stream).await
    }

    fn request(&self, method: &Method, path: &str, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method.clone();
        *request.uri_mut() = path.parse().expect("paths are made of names that the API allows");
        let headers = request.headers_mut();
        let mut set = |name, text: &str| {
            // A header that cannot be sent is a token that the server would refuse as well.
            if let Ok(value) = text.parse() {
                headers.insert(name, value);
            }
        };
        set(HOST, &self.access.authority);
        set(ACCEPT, "application/json");
        set(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.access.authorization {
            set(AUTHORIZATION, authorization);
        }
        request
    }
}

async fn handshake<S>(stream: S) -> Result<SendRequest<Full<Bytes>>, LoadError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Its end shows in the next request.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

impl ApiConnection {
    /// Creates an object. One that is there already, because an answer was lost, is no failure.
    ///
    /// # Errors
    /// The server is gone, or refuses it.
    pub async fn create(&mut self, made: &LoadObject) -> Result<(), LoadError> {
        let body = Bytes::from(made.body.to_string());
        let (code, answer) = self.call(&Method::POST, &made.path, body).await?;
        if code.is_success() || code == StatusCode::CONFLICT {
            return Ok(());
        }
        Err(refused(&made.path, code, &answer))
    }

    /// The object or list at a path.
    ///
    /// # Errors
    /// The server is gone, or refuses it.
    pub async fn get(&mut self, path: &str) -> Result<Value, LoadError> {
        let (code, answer) = self.call(&Method::GET, path, Bytes::new()).await?;
        match serde_json::from_slice(&answer) {
            Ok(value) if code.is_success() => Ok(value),
            _ => Err(refused(path, code, &answer)),
        }
    }

    /// Deletes the object at a path at once. One that is gone already is no failure.
    ///
    /// # Errors
    /// The server is gone, or refuses it.
    pub async fn delete(&mut self, path: &str) -> Result<(), LoadError> {
        let body = Bytes::from_static(br#"{"gracePeriodSeconds": 0}"#);
        let (code, answer) = self.call(&Method::DELETE, path, body).await?;
        if code.is_success() || code == StatusCode::NOT_FOUND {
            return Ok(());
        }
        Err(refused(path, code, &answer))
    }

    /// Reads what is at a path without keeping it, and says how many bytes that was.
    ///
    /// # Errors
    /// The server is gone, or refuses it.
    pub async fn skim(&mut self, path: &str) -> Result<usize, LoadError> {
        let response = self.open(&Method::GET, path, Bytes::new()).await?;
        let status = response.status();
        let (mut body, mut length) = (response.into_body(), 0);
        while let Some(frame) = body.frame().await {
            length += frame?.data_ref().map_or(0, Bytes::len);
        }
        if status.is_success() { Ok(length) } else { Err(refused(path, status, &[])) }
    }

    /// The text at a path.
    pub(super) async fn text(&mut self, path: &str) -> Result<String, LoadError> {
        let (code, answer) = self.call(&Method::GET, path, Bytes::new()).await?;
        match code.is_success() {
            true => Ok(String::from_utf8_lossy(&answer).into_owned()),
            false => Err(refused(path, code, &answer)),
        }
    }

    /// A request and its whole answer.
    pub(super) async fn call(
        &mut self,
        method: &Method,
        path: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), LoadError> {
        let mut attempts = 0;
        loop {
            let answer = async {
                let response = self.open(method, path, body.clone()).await?;
                let status = response.status();
                let pause = pause(&response);
                Ok((status, pause, response.into_body().collect().await?.to_bytes()))
            };
            match answer.await {
                Ok((StatusCode::TOO_MANY_REQUESTS, pause, _)) => {
                    self.client.waits.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(pause).await;
                }
                Ok((status, _, body)) => return Ok((status, body)),
                Err(LoadError::Http(_)) if attempts < ATTEMPTS => {
                    attempts += 1;
                    self.open = None;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// A request whose answer is read by the caller.
    pub(super) async fn open(
        &mut self,
        method: &Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, LoadError> {
        if self.open.as_ref().is_none_or(SendRequest::is_closed) {
            self.open = Some(self.client.connect().await?);
        }
        let sender = self.open.as_mut().expect("opened above");
        sender.ready().await?;
        Ok(sender.send_request(self.client.request(method, path, body)).await?)
    }
}

/// What the server says about a refusal.
pub(super) fn refused(path: &str, code: StatusCode, answer: &[u8]) -> LoadError {
    let status: Value = serde_json::from_slice(answer).unwrap_or_default();
    let message = match status["message"].as_str() {
        Some(message) => message.to_owned(),
        None => String::from_utf8_lossy(answer).into_owned(),
    };
    LoadError::Refused { path: path.to_owned(), code: code.as_u16(), message }
}

fn pause(response: &Response<Incoming>) -> Duration {
    let given = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    given.and_then(|text| text.parse().ok()).map_or(PAUSE, Duration::from_secs)
}
