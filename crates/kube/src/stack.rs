//! Address and credentials in front of connections to the API server, as kube's own client puts them
//! there. Specification: core.md 1.9, rust-ecosystem.md 3.

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::TokioExecutor;
use kube::Config;
use kube::client::{Body, ConfigExt};
use tower::util::BoxService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

/// Always ready.
pub(crate) type ServiceStack = BoxService<Request<Body>, Response<Incoming>, BoxError>;

/// What HTTP versions the server is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum HttpVersions {
    Http1,
    All,
}

/// Completes requests before `leaf` sends them.
///
/// # Errors
/// Credentials or headers are unreadable.
pub(crate) fn stack<S>(config: &Config, leaf: S) -> Result<ServiceStack, kube::Error>
where
    S: Service<Request<Body>, Response = Response<Incoming>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
{
    let stack = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(leaf.map_err(Into::into));
    Ok(BoxService::new(stack))
}

/// Connections that serve one request at a time; `None`: not for this configuration, which has a
/// proxy.
///
/// # Errors
/// Certificates or credentials are unreadable.
pub(crate) fn http1(config: &Config) -> Result<Option<ServiceStack>, kube::Error> {
    if config.proxy_url.is_some() {
        return Ok(None);
    }
    let connector = connector(config, HttpVersions::Http1)?;
    let client: Client<_, Body> = legacy::Builder::new(TokioExecutor::new()).build(connector);
    stack(config, client).map(Some)
}

/// How connections are made; requests of one connection do not wait for answers to others.
///
/// # Errors
/// Certificates are unreadable.
pub(crate) fn connector(
    config: &Config,
    versions: HttpVersions,
) -> Result<HttpsConnector<HttpConnector>, kube::Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    let tls = config.rustls_client_config()?;
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name =
            name.clone().try_into().map_err(|error| kube::Error::Service(Box::new(error)))?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(match versions {
        HttpVersions::Http1 => builder.enable_http1().wrap_connector(tcp),
        HttpVersions::All => builder.enable_all_versions().wrap_connector(tcp),
    })
}
