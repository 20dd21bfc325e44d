//! The small servers: metrics and profiles, health, log level. Plain HTTP/1.1, a few connections.
//! Specification: core.md 1.5 (5), 1.8.

mod health;
mod http;
mod level;
mod metrics;
mod profile;
mod tls;

use std::io;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::fatal::Fatal;
use crate::flags::Flags;
use crate::meter::Meter;

pub use level::socket;
pub use tls::{Tls, TlsError};

/// Running servers; they end when this is dropped.
#[derive(Default)]
pub struct Servers(JoinSet<()>);

/// Starts what the flags ask for. That nobody can listen for metrics is only logged.
///
/// # Errors
/// Nobody can listen on the health port.
pub async fn start(flags: &Flags, tls: Option<Tls>, meter: &Arc<Meter>) -> Result<Servers, Fatal> {
    let mut servers = Servers::default();
    if flags.metrics || flags.profiles {
        match listen(&flags.listen_address, "metrics").await {
            Ok(listener) => {
                let routes = metrics::routes(flags, meter.clone());
                servers.0.spawn(http::serve(listener, None, routes));
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
        servers.0.spawn(http::serve(listener, tls, health::routes(meter.clone())));
    }
    Ok(servers)
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
