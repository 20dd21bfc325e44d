//! The small servers: metrics and profiles, health, log level. HTTP/1.1, a few connections each.
//! Specification: core.md 1.5 (5), 1.8.

mod authorize;
mod health;
mod level;
mod metrics;
mod profile;
mod tls;

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::serve::Listener;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use vc_http::ServerLimits;
use vc_kube::{Clients, Reviewer};

use crate::answers::{self, AnswerHandle, FrontProxyFollower};
use crate::fatal::Fatal;
use crate::flags::{AnswerFlags, Flags, TlsFiles};
use crate::meter::Meter;

pub use level::socket;
pub use tls::{Tls, TlsError};

/// Limits of the port for answers: as those of the small ports, with heads of 16 KiB at most (ANS-74).
const ANSWERS: ServerLimits = ServerLimits { buffer: 16 * 1024, ..ServerLimits::SMALL };

/// Running servers; they end when this is dropped.
#[derive(Default)]
pub struct Servers(JoinSet<()>);

/// Serves until the task is dropped.
async fn serve<L: Listener>(listener: L, limits: ServerLimits, tls: Option<Tls>, routes: Router) {
    let (_running, stop) = watch::channel(false);
    let acceptor = tls.as_ref().map(Tls::acceptor);
    let serving = vc_http::serve(listener, limits, acceptor, routes, stop);
    match tls {
        None => serving.await,
        Some(tls) => tokio::select! { () = serving => {}, () = tls.follow_files() => {} },
    }
}

/// Starts what the flags ask for. That nobody can listen for metrics or answers is only logged.
///
/// # Errors
/// Nobody can listen on the health port, or the files of TLS are of no use.
pub async fn start(
    flags: &Flags,
    clients: &Clients,
    meter: &Arc<Meter>,
    answers: &AnswerHandle,
) -> Result<Servers, Fatal> {
    let mut servers = Servers::default();
    let read = |files: Option<&TlsFiles>| files.map(Tls::read).transpose();
    let health_tls = read(flags.health.as_ref().and_then(|health| health.tls.as_ref()))?;
    let metrics_tls = read(flags.metrics_tls.as_ref())?;
    if let Some(of_answers) = &flags.answers {
        start_answers(&mut servers, of_answers, clients, meter, answers).await?;
    }
    if flags.metrics || flags.profiles {
        match listen(&flags.listen_address, "metrics").await {
            Ok(listener) => {
                let mut routes = metrics::routes(flags, meter.clone(), answers.clone());
                if flags.metrics_authorization {
                    let reviewer = Reviewer::new(clients.core.clone());
                    routes = authorize::protect(routes, reviewer);
                }
                servers.0.spawn(serve(listener, ServerLimits::SMALL, metrics_tls, routes));
            }
            Err(error) => {
                let address = &flags.listen_address;
                tracing::error!("no metrics: cannot listen on {address}: {error}");
            }
        }
    }
    if let Some(health) = &flags.health {
        let address = health.address.clone();
        let listener =
            listen(&address, "health").await.map_err(|error| Fatal::Listen { address, error })?;
        let routes = health::routes(meter.clone());
        servers.0.spawn(serve(listener, ServerLimits::SMALL, health_tls, routes));
    }
    Ok(servers)
}

/// Starts to answer why jobs wait. That nobody can listen is only logged.
///
/// # Errors
/// The files of TLS are of no use.
async fn start_answers(
    servers: &mut Servers,
    flags: &AnswerFlags,
    clients: &Clients,
    meter: &Arc<Meter>,
    answers: &AnswerHandle,
) -> Result<(), Fatal> {
    let tls = answers_tls(flags)?;
    let listener = match listen(&flags.address, "answers").await {
        Ok(listener) => listener,
        Err(error) => {
            let address = &flags.address;
            tracing::error!("no answers: cannot listen on {address}: {error}");
            return Ok(());
        }
    };
    let front_proxy = flags.is_aggregated.then(|| {
        let (follower, front_proxy) = FrontProxyFollower::new();
        servers.0.spawn(follower.run(clients.clone()));
        front_proxy
    });
    let routes = answers::routes(flags, answers, clients, meter, front_proxy);
    servers.0.spawn(serve(listener, ANSWERS, tls, routes));
    Ok(())
}

/// TLS of the answers: the files, or a certificate of our own. `None`: plain HTTP.
fn answers_tls(flags: &AnswerFlags) -> Result<Option<Tls>, Fatal> {
    match &flags.tls {
        Some(files) => Ok(Some(Tls::read(files)?)),
        None if flags.needs_token => {
            let (chain, key) = answers::own_certificate()?;
            Ok(Some(Tls::own(chain, key, &flags.clients())?))
        }
        None => Ok(None),
    }
}

async fn listen(address: &str, purpose: &str) -> io::Result<TcpListener> {
    let listener = bind(address).await?;
    tracing::info!("serving {purpose} on {}", listener.local_addr()?);
    Ok(listener)
}

/// As Go, `:8080` means every address of the machine.
async fn bind(address: &str) -> io::Result<TcpListener> {
    let Some(port) = address.strip_prefix(':') else {
        return TcpListener::bind(address).await;
    };
    match TcpListener::bind(format!("[::]:{port}")).await {
        // Without IPv6 there is still the other one; any other problem is met again there.
        Err(_) => TcpListener::bind(format!("0.0.0.0:{port}")).await,
        bound => bound,
    }
}

#[cfg(test)]
mod testing {
    use axum::Router;
    use axum::body::{Body, to_bytes};
    use tower::ServiceExt;

    /// Status and body of a GET.
    pub(super) async fn get(routes: &Router, path: &str) -> (u16, String) {
        let request = http::Request::get(path).body(Body::empty()).unwrap();
        let answer = routes.clone().oneshot(request).await.unwrap();
        let code = answer.status().as_u16();
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        (code, String::from_utf8_lossy(&body).into_owned())
    }
}
