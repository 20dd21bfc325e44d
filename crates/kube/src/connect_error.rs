//! Errors of connections as text: address, cause and what to look at, in one line. All other errors
//! stay as they are. Specification: core.md 1.9.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::Request;
use tower::{BoxError, Layer, Service};

/// Puts [`ConnectErrorService`] around a client.
#[derive(Clone)]
pub(crate) struct ConnectErrorLayer {
    /// Scheme, host and port of the API server.
    pub(crate) address: Arc<str>,
}

impl<S> Layer<S> for ConnectErrorLayer {
    type Service = ConnectErrorService<S>;

    fn layer(&self, inner: S) -> ConnectErrorService<S> {
        ConnectErrorService { inner, address: self.address.clone() }
    }
}

/// A service whose errors of connections are [`ConnectError`].
#[derive(Clone)]
pub(crate) struct ConnectErrorService<S> {
    inner: S,
    address: Arc<str>,
}

impl<S, R> Service<Request<R>> for ConnectErrorService<S>
where
    S: Service<Request<R>, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let ready = self.inner.poll_ready(context);
        ready.map_err(|error| explained(error, &self.address))
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let (answer, address) = (self.inner.call(request), self.address.clone());
        Box::pin(async move { answer.await.map_err(|error| explained(error, &address)) })
    }
}

/// The connection to the API server could not be made, or broke.
#[derive(Debug)]
struct ConnectError {
    address: Arc<str>,
    /// The innermost cause.
    cause: String,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, cause } = self;
        write!(out, "connection to {address}: {cause}")?;
        match advice(cause) {
            Some(advice) => write!(out, "; {advice}"),
            None => Ok(()),
        }
    }
}

impl Error for ConnectError {}

/// The error itself unless its innermost cause is one of input and output.
fn explained(error: BoxError, address: &Arc<str>) -> BoxError {
    let mut innermost: &(dyn Error + 'static) = &*error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    let cause = innermost.to_string();
    let is_wrong_scheme = address.starts_with("http://") && cause.contains(CLOSED);
    match innermost.is::<io::Error>() || is_wrong_scheme {
        true => Box::new(ConnectError { address: address.clone(), cause }),
        false => error,
    }
}

/// In hyper's words: what a port for TLS may do to whoever speaks plain HTTP to it.
const CLOSED: &str = "connection closed before message completed";

/// What a cause contains in lower case, and what to look at then.
const ADVICE: &[(&str, &str)] = &[
    ("connection refused", "nothing listens there: is the server up, are address and port right?"),
    ("invalidcontenttype", "it does not speak TLS: write http:// in the address"),
    (
        "unknownissuer",
        "its CA is not known: name it in the kubeconfig (certificate-authority-data)",
    ),
    (
        "notvalidforname",
        "its certificate is for another name: set tls-server-name in the kubeconfig",
    ),
    (CLOSED, "does it speak TLS? then write https:// in the address"),
    ("expired", "its certificate has expired, or a clock is wrong"),
    ("lookup address", "nobody knows this name: is the address right, does DNS work?"),
    ("unreachable", "there is no way to it: is the address right?"),
    ("timed out", "it does not answer: is the address right, is a firewall in between?"),
];

fn advice(cause: &str) -> Option<&'static str> {
    let cause = cause.to_lowercase();
    ADVICE.iter().find(|(part, _)| cause.contains(part)).map(|(_, advice)| *advice)
}

/// What an API server says in plain text to whoever speaks plain HTTP to its port for TLS.
const PLAIN_TO_TLS: &str = "HTTP request to an HTTPS server";

/// What to do about a refusal that comes before the API server has read the request.
pub(crate) fn advice_on_refusal(message: &str) -> Option<&'static str> {
    message.contains(PLAIN_TO_TLS).then_some("write https:// in --master or the kubeconfig")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("client error (Connect)")]
    struct Outer(#[source] io::Error);

    #[test]
    fn the_address_the_cause_and_what_to_look_at() {
        let address: Arc<str> = "https://10.0.0.1:6443".into();
        let reported = |error: BoxError| explained(error, &address).to_string();
        let other = |text: &str| Box::new(Outer(io::Error::other(text.to_owned())));
        let refused = Box::new(Outer(io::Error::from_raw_os_error(111)));
        assert_eq!(
            reported(refused),
            "connection to https://10.0.0.1:6443: Connection refused (os error 111); nothing listens \
             there: is the server up, are address and port right?"
        );
        for (cause, advice) in [
            ("invalid peer certificate: UnknownIssuer", "its CA is not known"),
            ("received corrupt message of type InvalidContentType", "it does not speak TLS"),
            ("invalid peer certificate: NotValidForName", "its certificate is for another name"),
            ("failed to lookup address information: Name or service not known", "nobody knows"),
        ] {
            let reported = reported(other(cause));
            let expected = format!("connection to https://10.0.0.1:6443: {cause}; {advice}");
            assert!(reported.starts_with(&expected), "{reported}");
        }
        assert!(reported(other("broken pipe")).ends_with(": broken pipe"));
        let plain: Arc<str> = "http://10.0.0.1:6443".into();
        let closed = explained(CLOSED.into(), &plain).to_string();
        assert!(
            closed.ends_with("does it speak TLS? then write https:// in the address"),
            "{closed}"
        );
        assert_eq!(reported(CLOSED.into()), CLOSED);
        let words = "Client sent an HTTP request to an HTTPS server.";
        assert_eq!(advice_on_refusal(words), Some("write https:// in --master or the kubeconfig"));
        assert_eq!(advice_on_refusal("pods is forbidden"), None);
        // What is no matter of the connection stays what it is.
        let limited: BoxError = "rate limit".into();
        assert_eq!(reported(limited), "rate limit");
    }
}
