//! `kubectl vc ui`: the page on this machine. The browser holds no credentials: they are added on the
//! way. Specification: answers.md 13 (ANS-90).

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Query, Request, State};
use axum::http::header::{CACHE_CONTROL, COOKIE, HOST, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use ring::rand::{SecureRandom, SystemRandom};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::RwLock;
use vc_http::is_local_host;
use vc_kube::AnswersClient;
use vc_page::{BASE, page_routes};

use crate::leader::{LeaderClient, is_of_lost_leader};
use crate::output::print;

/// Name of the cookie that says that a browser has opened the address that was printed.
const COOKIE_NAME: &str = "kubectl-vc";

/// What all requests share.
struct Proxy {
    leader: RwLock<LeaderClient>,
    /// The secret of the address that was printed.
    key: String,
}

/// Serves the page until the process is interrupted.
///
/// # Errors
/// Nobody can listen.
pub(crate) async fn serve(client: AnswersClient, port: u16) -> Result<(), String> {
    let key = key()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    print(&format!("http://{address}/?key={key}\nCtrl-C ends it.\n"));
    let leader = RwLock::new(LeaderClient::new(client));
    let routes = routes(Arc::new(Proxy { leader, key }));
    let interrupted = async { drop(tokio::signal::ctrl_c().await) };
    let served = axum::serve(listener, routes).with_graceful_shutdown(interrupted).await;
    served.map_err(|error| error.to_string())
}

/// Returns 128 random bits as text.
fn key() -> Result<String, String> {
    let mut bytes = [0_u8; 16];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| "the system has no random numbers".to_owned())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn routes(proxy: Arc<Proxy>) -> Router {
    let answers = any(forward).with_state(proxy.clone());
    Router::new()
        .route(&format!("{BASE}/{{*path}}"), answers)
        .merge(page_routes())
        .layer(from_fn_with_state(proxy.clone(), check))
        .route("/", get(enter).with_state(proxy))
        .layer(axum::middleware::from_fn(check_host))
}

#[derive(Deserialize)]
struct EnterQuery {
    #[serde(default)]
    key: String,
}

/// Gives a browser that has the address the cookie.
async fn enter(State(proxy): State<Arc<Proxy>>, Query(query): Query<EnterQuery>) -> Response {
    if query.key != proxy.key {
        return refuse("open the address that kubectl vc ui has printed");
    }
    let cookie = format!("{COOKIE_NAME}={}; HttpOnly; SameSite=Strict; Path=/", proxy.key);
    let headers = [
        (SET_COOKIE, cookie),
        (LOCATION, "/ui/".to_owned()),
        (CACHE_CONTROL, "no-store".to_owned()),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

fn refuse(message: &'static str) -> Response {
    (StatusCode::FORBIDDEN, format!("{message}\n")).into_response()
}

/// Refuses requests that were meant for another machine.
async fn check_host(request: Request, next: Next) -> Response {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    match host.is_some_and(is_local_host) {
        true => next.run(request).await,
        false => refuse("this is not a name of this machine"),
    }
}

/// Refuses browsers that have not opened the address that was printed.
async fn check(State(proxy): State<Arc<Proxy>>, request: Request, next: Next) -> Response {
    match has_cookie(request.headers(), &proxy.key) {
        true => next.run(request).await,
        false => refuse("open the address that kubectl vc ui has printed"),
    }
}

fn has_cookie(headers: &HeaderMap, key: &str) -> bool {
    let texts = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = texts.flat_map(|text| text.split("; "));
    pairs.filter_map(|pair| pair.split_once('=')).any(|pair| pair == (COOKIE_NAME, key))
}

async fn forward(State(proxy): State<Arc<Proxy>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = match axum::body::to_bytes(body, 2 << 20).await {
        Ok(body) => body,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    let request = axum::http::Request::from_parts(parts, body);
    let client = proxy.leader.read().await.client();
    let answered = client.forward(request).await;
    let is_lost = match &answered {
        Ok(response) => response.status() == StatusCode::SERVICE_UNAVAILABLE,
        Err(error) => is_of_lost_leader(error),
    };
    if is_lost {
        proxy.leader.write().await.follow(&client).await;
    }
    match answered {
        Ok(response) => {
            let (parts, body): (_, Bytes) = response.into_parts();
            Response::from_parts(parts, Body::from(body))
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ans_90_only_the_whole_cookie_lets_in() {
        let cases = [
            ("kubectl-vc=abc", true),
            ("a=b; kubectl-vc=abc; c=d", true),
            ("kubectl-vc=abcd", false),
            ("kubectl-vc=", false),
            ("xkubectl-vc=abc", false),
            ("", false),
        ];
        for (cookie, expected) in cases {
            let headers = HeaderMap::from_iter([(COOKIE, cookie.parse().unwrap())]);
            assert_eq!(has_cookie(&headers, "abc"), expected, "{cookie:?}");
        }
        assert!(key().unwrap().len() == 32 && key().unwrap() != key().unwrap());
    }
}
