//! The front proxy of the API server: it passes questions on and names the user in headers. Specification: answers.md
//! 12 (ANS-80).
//!
//! The headers are believed if the client certificate of the connection is signed by the CA of a ConfigMap and has an
//! allowed name. The ConfigMap is read again and again, because its CA is replaced while the process runs.

mod common_name;
mod headers;
#[cfg(test)]
mod tests;
mod trust;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use tokio::sync::watch;
use tokio_rustls::rustls::pki_types::UnixTime;
use vc_http::PeerCertificates;
use vc_kube::{CallError, Clients, config_map_values};
use vc_page::UserSource;

use trust::{NAME, NAMESPACE, ProxyTrust};

/// Pause before the ConfigMap is read again, and one after a failure.
const READ_AGAIN: Duration = Duration::from_secs(60);
const AFTER_FAILURE: Duration = Duration::from_secs(10);

/// Knows requests of the front proxy, by what was read last.
#[derive(Clone)]
pub(crate) struct FrontProxy(watch::Receiver<Option<Arc<ProxyTrust>>>);

impl FrontProxy {
    /// Returns what says who sends a request with these headers, on a connection with these certificates.
    pub(super) fn user_source(
        &self,
        peer: Option<&PeerCertificates>,
        headers: &HeaderMap,
    ) -> UserSource {
        let (Some(PeerCertificates(chain)), Some(trust)) = (peer, self.0.borrow().clone()) else {
            return UserSource::Token;
        };
        match trust.is_front_proxy(chain, UnixTime::now()) {
            true => UserSource::FrontProxy(trust.headers.user(headers)),
            false => UserSource::Token,
        }
    }
}

/// Keeps up with the ConfigMap. Until it is read, and while it cannot be used, no front proxy is believed.
pub(crate) struct FrontProxyFollower {
    trust: watch::Sender<Option<Arc<ProxyTrust>>>,
    /// What was logged last: the values, or the error.
    logged: String,
}

impl FrontProxyFollower {
    /// Returns a follower, and the front proxy that it keeps up to date.
    pub(crate) fn new() -> (Self, FrontProxy) {
        let (trust, believed) = watch::channel(None);
        (Self { trust, logged: String::new() }, FrontProxy(believed))
    }

    /// Reads the ConfigMap again once a minute, for ever.
    pub(crate) async fn run(mut self, clients: Clients) {
        loop {
            let read = config_map_values(&clients, NAMESPACE, NAME).await;
            let pause = if read.is_ok() { READ_AGAIN } else { AFTER_FAILURE };
            self.take(read);
            tokio::time::sleep(pause).await;
        }
    }

    /// Believes what was read from now on. What is said once is logged when it changes.
    fn take(&mut self, read: Result<Option<BTreeMap<String, String>>, CallError>) {
        let values = match read {
            Ok(values) => values,
            Err(error) => return self.warn_unread(&error),
        };
        match ProxyTrust::read(values.as_ref()) {
            Ok(trust) => {
                if self.is_news(format!("{values:?}")) {
                    tracing::info!("answers: the API server's front proxy is believed: {trust}");
                }
                self.trust.send_replace(Some(Arc::new(trust)));
            }
            Err(error) => {
                self.trust.send_replace(None);
                if self.is_news(error.to_string()) {
                    tracing::warn!(
                        "answers: the API server's front proxy is not believed, tokens are: {error}"
                    );
                }
            }
        }
    }

    /// What was read before stays in force where the API server does not answer, which says nothing about its CA. If it
    /// refuses, the right to read was taken away, and nobody is believed.
    fn warn_unread(&mut self, error: &CallError) {
        if matches!(error.code(), 401 | 403) {
            self.trust.send_replace(None);
        }
        let hint = "hint: Role extension-apiserver-authentication-reader of kube-system lets the scheduler read \
            it; the chart binds it with answers.aggregated";
        let text = match self.trust.borrow().is_some() {
            true => "what was read before stays in force",
            false => "the API server's front proxy is not believed, tokens are",
        };
        if self.is_news(format!("{text}: {error}")) {
            tracing::warn!(
                "answers: ConfigMap {NAMESPACE}/{NAME} was not read, {text}: {error}\n{hint}"
            );
        }
    }

    /// True if something else was logged last.
    fn is_news(&mut self, text: String) -> bool {
        let is_news = self.logged != text;
        self.logged = text;
        is_news
    }
}
