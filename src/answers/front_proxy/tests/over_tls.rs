//! Requests over TLS: whose headers are believed. Case 73 of answers.md 20.

use std::net::SocketAddr;
use std::sync::Mutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::ResolvesClientCert;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    ClientConfig, HandshakeKind, RootCertStore, SignatureScheme, SupportedProtocolVersion,
};
use vc_http::ServerLimits;
use vc_page::{
    Access, AnswerSource, Answered, Problem, Question, RequestObserver, Right, RouteOptions, User,
};

use super::*;
use crate::answers::own_certificate;
use crate::flags::ClientCertificates;
use crate::serve::Tls;

/// Users of the group `ml` may all, and so may the owner of the token `good`.
struct Group(FrontProxy);

impl Access for Group {
    fn user_source(&self, peer: Option<&PeerCertificates>, headers: &HeaderMap) -> UserSource {
        self.0.user_source(peer, headers)
    }

    async fn user(&self, token: &str) -> Result<Option<User>, String> {
        let groups = vec!["ml".to_owned()];
        let user = User { name: "owner".to_owned(), groups, ..User::default() };
        Ok(Some(user).filter(|_| token == "good"))
    }

    async fn may(&self, user: &User, _right: &Right) -> Result<bool, String> {
        Ok(user.groups.iter().any(|group| group == "ml"))
    }
}

/// Has no answer for whoever is let in: 503. Remembers who was answered.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<(String, u16)>>>);

impl AnswerSource for Seen {
    fn revision(&self) -> Result<String, Problem> {
        Ok("1".to_owned())
    }

    async fn ask(&self, _question: Question) -> Result<Answered, Problem> {
        Err(Problem::unavailable("nobody answers"))
    }
}

impl RequestObserver for Seen {
    fn answered(&self, _route: &'static str, user: &str, code: u16, _took: Duration) {
        self.0.lock().unwrap().push((user.to_owned(), code));
    }
}

/// The port of the answers.
struct Port {
    address: SocketAddr,
    certificate: CertificateDer<'static>,
    seen: Seen,
    follower: FrontProxyFollower,
    server: JoinHandle<()>,
    _running: watch::Sender<bool>,
}

impl Port {
    async fn open() -> Self {
        let (follower, proxy) = FrontProxyFollower::new();
        let (chain, key) = own_certificate().unwrap();
        let certificate = chain[0].clone();
        let tls = Tls::own(chain, key, &ClientCertificates::Any).unwrap();
        let seen = Seen::default();
        let options = RouteOptions { has_page: false };
        let observer = Arc::new(seen.clone());
        let routes = vc_page::routes(Group(proxy), seen.clone(), observer, options);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_running, stop) = watch::channel(false);
        let acceptor = Some(tls.acceptor());
        let serving = vc_http::serve(listener, ServerLimits::SMALL, acceptor, routes, stop);
        // The acceptor is that of `tls` as long as it is there.
        let server = tokio::spawn(async move {
            serving.await;
            drop(tls);
        });
        Self { address, certificate, seen, follower, server, _running }
    }

    /// Returns a client that shows this certificate. It keeps its sessions, and resumes one with
    /// each connection.
    fn client(&self, shown: &Arc<Shown>, version: Version) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_client_cert_resolver(shown.clone());
        TlsConnector::from(Arc::new(config))
    }

    /// Connects a client.
    async fn connect_client(&self, client: &TlsConnector) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        client.connect(name, stream).await
    }

    /// Connects a new client, which has no session to resume.
    async fn connect(
        &self,
        shown: &Arc<Shown>,
        version: Version,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let client = self.client(shown, version);
        self.connect_client(&client).await
    }
}

type Version = &'static SupportedProtocolVersion;

/// What a client shows when it is asked for a certificate.
#[derive(Debug)]
struct Shown(Option<Arc<CertifiedKey>>);

impl Shown {
    fn new(identity: Option<&Identity>) -> Arc<Self> {
        let certified = |identity: &Identity| {
            let key = ring::sign::any_supported_type(&identity.key).unwrap();
            Arc::new(CertifiedKey::new(identity.chain.clone(), key))
        };
        Arc::new(Self(identity.map(certified)))
    }
}

impl ResolvesClientCert for Shown {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.clone()
    }

    fn has_certs(&self) -> bool {
        self.0.is_some()
    }
}

/// Sends a GET with these lines of the head, and returns code and body.
async fn ask(
    stream: &mut TlsStream<TcpStream>,
    path: &str,
    lines: &[&str],
) -> std::io::Result<(u16, String)> {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{lines}\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&answer);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if length.unwrap().parse() == Ok(body.len()) {
                return Ok((head[9..12].parse().unwrap(), body.to_owned()));
            }
        }
        if stream.read_buf(&mut answer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}

const SUMMARY: &str = "/apis/answers.volcano.sh/v1/summary";
const JO: [&str; 2] = ["X-Remote-User: jo", "X-Remote-Group: ml"];
const TOKEN: &str = "Authorization: Bearer good";

#[tokio::test]
async fn ans_80_headers_are_believed_of_the_front_proxy_alone() {
    let (ours, others) = (Authority::new("front proxies"), Authority::new("front proxies"));
    let mut port = Port::open().await;
    port.follower.take(Ok(Some(values(&ours.pem(), ALLOWED))));
    let proxy = Some(ours.sign(FRONT_PROXY, |_| {}));
    let expired = ours.sign(FRONT_PROXY, |params| params.not_after = date_time_ymd(2020, 1, 1));
    let distrusted = [
        ("no certificate", None),
        ("another CA", Some(others.sign(FRONT_PROXY, |_| {}))),
        ("another name", Some(ours.sign("jo", |_| {}))),
        ("expired", Some(expired)),
    ];
    let with_token = &[JO[0], JO[1], TOKEN][..];
    let stranger = &["X-Remote-User: al", "X-Remote-Group: other"][..];
    let stranger_with_token = &[stranger[0], TOKEN][..];
    let mut cases = vec![
        ("the front proxy", &proxy, &JO[..], ("jo", 503)),
        ("a user without the right", &proxy, stranger, ("al", 403)),
        ("a user with somebody's token", &proxy, stranger_with_token, ("al", 403)),
        ("no user", &proxy, &JO[1..], ("", 401)),
        ("no user, but a token", &proxy, &[TOKEN], ("", 401)),
    ];
    for (what, identity) in &distrusted {
        cases.push((what, identity, &JO[..], ("", 401)));
        cases.push((what, identity, with_token, ("owner", 503)));
    }
    for version in [&TLS12, &TLS13] {
        for (what, identity, lines, (user, code)) in &cases {
            let shown = Shown::new(identity.as_ref());
            let mut stream = port.connect(&shown, version).await.unwrap();
            let (answered, body) = ask(&mut stream, SUMMARY, lines).await.unwrap();
            assert_eq!(answered, *code, "{what}: {body}");
            let seen = port.seen.0.lock().unwrap().pop();
            assert_eq!(seen, Some(((*user).to_owned(), *code)), "{what}");
            // The aggregator asks it before it sends anybody.
            let (code, _) = ask(&mut stream, "/apis/answers.volcano.sh/v1", &[]).await.unwrap();
            assert_eq!(code, 200, "{what}");
        }
    }
    port.server.abort();
}

#[tokio::test]
async fn ans_80_an_open_connection_is_believed_as_long_as_its_ca() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let mut port = Port::open().await;
    let shown = Shown::new(Some(&old.sign(FRONT_PROXY, |_| {})));
    let mut stream = port.connect(&shown, &TLS13).await.unwrap();
    let steps = [
        (None, 401),
        (Some(old.pem()), 503),
        (Some(old.pem() + &new.pem()), 503),
        (Some(new.pem()), 401),
        (Some(old.pem()), 503),
        (None, 401),
    ];
    for (authority, code) in steps {
        port.follower.take(Ok(authority.map(|pem| values(&pem, ALLOWED))));
        let (answered, body) = ask(&mut stream, SUMMARY, &JO).await.unwrap();
        assert_eq!(answered, code, "{body}");
    }
    port.server.abort();
}

#[tokio::test]
async fn ans_80_a_resumed_session_is_believed_as_long_as_its_ca() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let both = old.pem() + &new.pem();
    let mut port = Port::open().await;
    let shown = Shown::new(Some(&old.sign(FRONT_PROXY, |_| {})));
    let read = |authority: &str, allowed| Some(values(authority, allowed));
    let (jo, nobody) = (("jo", 503), ("", 401));
    let steps = [
        ("the first connection", read(&old.pem(), ALLOWED), HandshakeKind::Full, jo),
        ("the same CA", read(&old.pem(), ALLOWED), HandshakeKind::Resumed, jo),
        ("two CAs", read(&both, ALLOWED), HandshakeKind::Resumed, jo),
        ("another CA", read(&new.pem(), ALLOWED), HandshakeKind::Resumed, nobody),
        ("the old CA again", read(&old.pem(), ALLOWED), HandshakeKind::Resumed, jo),
        ("another name", read(&old.pem(), r#"["other"]"#), HandshakeKind::Resumed, nobody),
        ("no ConfigMap", None, HandshakeKind::Resumed, nobody),
    ];
    for version in [&TLS12, &TLS13] {
        let client = port.client(&shown, version);
        for (what, read, kind, (user, code)) in &steps {
            port.follower.take(Ok(read.clone()));
            let mut stream = port.connect_client(&client).await.unwrap();
            let handshake = stream.get_ref().1.handshake_kind();
            assert_eq!(handshake, Some(*kind), "{what}, {version:?}");
            let (answered, body) = ask(&mut stream, SUMMARY, &JO).await.unwrap();
            assert_eq!(answered, *code, "{what}, {version:?}: {body}");
            let seen = port.seen.0.lock().unwrap().pop();
            assert_eq!(seen, Some(((*user).to_owned(), *code)), "{what}, {version:?}");
        }
    }
    port.server.abort();
}

#[tokio::test]
async fn ans_80_a_certificate_without_its_key_is_of_no_use() {
    let ours = Authority::new("front proxies");
    let mut port = Port::open().await;
    port.follower.take(Ok(Some(values(&ours.pem(), ALLOWED))));
    let proxy = ours.sign(FRONT_PROXY, |_| {});
    let stolen = Identity { chain: proxy.chain.clone(), key: ours.sign("jo", |_| {}).key };
    let (stolen, proxy) = (Shown::new(Some(&stolen)), Shown::new(Some(&proxy)));
    for version in [&TLS12, &TLS13] {
        // With TLS 1.3 the client is done before the server has looked at its signature.
        let answered = match port.connect(&stolen, version).await {
            Ok(mut stream) => ask(&mut stream, SUMMARY, &JO).await,
            Err(error) => Err(error),
        };
        assert!(answered.is_err(), "{version:?}: {answered:?}");
        let mut stream = port.connect(&proxy, version).await.unwrap();
        assert_eq!(ask(&mut stream, SUMMARY, &JO).await.unwrap().0, 503, "{version:?}");
    }
    port.server.abort();
}
