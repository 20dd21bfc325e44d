//! Which certificates are believed to be the front proxy's, and until when.

mod identity;
mod over_tls;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::*;
use crate::log::tests::logged;
use identity::{Authority, Identity};
use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
use rcgen::date_time_ymd;

/// The usual name of the front proxy's certificate.
const FRONT_PROXY: &str = "front-proxy-client";
const ALLOWED: &str = r#"["front-proxy-client"]"#;

type Values = BTreeMap<String, String>;

/// The values as kube-apiserver writes them.
fn values(authority: &str, allowed_names: &str) -> Values {
    let rows = [
        ("client-ca-file", "of users"),
        ("requestheader-client-ca-file", authority),
        ("requestheader-allowed-names", allowed_names),
        ("requestheader-username-headers", r#"["X-Remote-User"]"#),
        ("requestheader-uid-headers", r#"["X-Remote-Uid"]"#),
        ("requestheader-group-headers", r#"["X-Remote-Group"]"#),
        ("requestheader-extra-headers-prefix", r#"["X-Remote-Extra-"]"#),
    ];
    rows.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

#[test]
fn ans_80_only_certificates_of_the_front_proxy_are_believed() {
    let (ours, others) = (Authority::new("front proxies"), Authority::new("front proxies"));
    let middle = ours.authority("between");
    let proxy = ours.sign(FRONT_PROXY, |_| {});
    let below = middle.sign(FRONT_PROXY, |_| {});
    let whole = Identity { chain: [&below.chain[..], &[middle.der()]].concat(), key: below.key() };
    let expired = ours.sign(FRONT_PROXY, |params| params.not_after = date_time_ymd(2020, 1, 1));
    let early = ours.sign(FRONT_PROXY, |params| params.not_before = date_time_ymd(3000, 1, 1));
    let server = ours.sign(FRONT_PROXY, |params| params.extended_key_usages = vec![ServerAuth]);
    let client = ours.sign(FRONT_PROXY, |params| params.extended_key_usages = vec![ClientAuth]);
    let (other, user) = (others.sign(FRONT_PROXY, |_| {}), ours.sign("jo", |_| {}));
    let forged = Identity { chain: vec![other.chain[0].clone(), ours.der()], key: other.key() };
    let cases = [
        ("the front proxy", &proxy, ALLOWED, true),
        ("one of several names", &proxy, r#"["a", "front-proxy-client"]"#, true),
        ("another name", &user, ALLOWED, false),
        ("any name", &user, "[]", true),
        ("any name, as Go writes no list", &user, "null", true),
        ("the empty name alone", &user, "[\"\"]", false),
        ("any name of another CA of this name", &other, "[]", false),
        ("another CA of this name", &other, ALLOWED, false),
        ("another CA, with ours behind it", &forged, ALLOWED, false),
        ("an expired certificate", &expired, ALLOWED, false),
        ("a certificate of later", &early, ALLOWED, false),
        ("a certificate for servers", &server, ALLOWED, false),
        ("a certificate for clients", &client, ALLOWED, true),
        ("a CA between", &whole, ALLOWED, true),
        ("a CA between that is not shown", &below, ALLOWED, false),
    ];
    for (what, identity, allowed, is_known) in cases {
        let trust = ProxyTrust::read(Some(&values(&ours.pem(), allowed))).unwrap();
        assert_eq!(trust.is_front_proxy(&identity.chain, UnixTime::now()), is_known, "{what}");
    }
    let trust = ProxyTrust::read(Some(&values(&ours.pem(), "[]"))).unwrap();
    assert!(!trust.is_front_proxy(&[], UnixTime::now()), "no certificate");
    let later = UnixTime::since_unix_epoch(Duration::from_secs(1 << 37));
    assert!(!trust.is_front_proxy(&proxy.chain, later), "it expires while the connection is open");
}

#[test]
fn ans_80_a_config_map_that_is_not_whole_lets_nobody_in() {
    let authority = Authority::new("front proxies").pem();
    let whole = values(&authority, ALLOWED);
    let place = "ConfigMap kube-system/extension-apiserver-authentication";
    let key = |key| format!("{place}, key requestheader-{key}: ");
    let cases = [
        ("client-ca-file", None, format!("{place} has no key requestheader-client-ca-file")),
        ("client-ca-file", Some(" \n"), format!("{place} has no key requestheader-client-ca-file")),
        ("client-ca-file", Some("PEM"), key("client-ca-file") + "no CA certificates in PEM: there"),
        (
            "client-ca-file",
            Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            key("client-ca-file") + "no CA certificates in PEM: invalid",
        ),
        ("allowed-names", None, format!("{place} has no key requestheader-allowed-names")),
        ("allowed-names", Some("jo"), key("allowed-names") + "no JSON list of texts: expected"),
        ("allowed-names", Some(" "), format!("{place} has no key requestheader-allowed-names")),
        ("allowed-names", Some("[7]"), key("allowed-names") + "no JSON list of texts: invalid"),
        ("username-headers", None, format!("{place} has no key requestheader-username-headers")),
        ("username-headers", Some("[\"\"]"), format!("{place} has no key requestheader-username")),
        ("group-headers", Some("[\"a b\"]"), key("group-headers") + "\"a b\" is no name of a"),
    ];
    for (name, value, text) in cases {
        let mut values = whole.clone();
        let name = format!("requestheader-{name}");
        match value {
            Some(value) => drop(values.insert(name, value.to_owned())),
            None => drop(values.remove(&name)),
        }
        let error = ProxyTrust::read(Some(&values)).err().unwrap().to_string();
        assert!(error.starts_with(&text), "{error}");
        assert!(error.contains("\nhint: kube-apiserver writes it, out of --requestheader-"));
    }
    let error = ProxyTrust::read(None).err().unwrap().to_string();
    assert!(error.starts_with(&format!("there is no {place}\nhint: ")), "{error}");
}

/// True if a connection with this certificate is believed.
fn is_believed(proxy: &FrontProxy, identity: &Identity) -> bool {
    let peer = PeerCertificates(identity.chain.clone().into());
    proxy.user_source(Some(&peer), &HeaderMap::new()) == UserSource::FrontProxy(None)
}

#[test]
fn ans_80_a_replaced_ca_counts_from_then_on_and_is_logged_once() {
    let authorities = [Authority::new("old"), Authority::new("new")];
    let [old, new] = &authorities.each_ref().map(|authority| authority.sign(FRONT_PROXY, |_| {}));
    let [old_pem, new_pem] = &authorities.map(|authority| authority.pem());
    let (mut follower, proxy) = FrontProxyFollower::new();
    let failure = || Err(CallError::TimedOut(Duration::from_secs(30)));
    // The right to read it was taken away.
    let refusal = json!({"kind": "Status", "apiVersion": "v1", "code": 403, "message": "no"});
    let refusal = serde_json::from_value(refusal).unwrap();
    let refusal = Err(CallError::Refused(kube::Error::Api(refusal)));
    let read = |authority: &str| Ok(Some(values(authority, ALLOWED)));
    let mut without = values("", ALLOWED);
    without.remove("requestheader-client-ca-file");
    let (unread, believed) = (" was not read, ", " front proxy is believed: client certificates ");
    let steps = [
        (failure(), [false, false], Some(unread)),
        (read(old_pem), [true, false], Some(believed)),
        (read(old_pem), [true, false], None),
        // Kubernetes puts the new CA beside the old one for a while.
        (read(&format!("{old_pem}{new_pem}")), [true, true], Some(" of the 2 CAs of ")),
        (failure(), [true, true], Some("what was read before stays in force: no answer within")),
        (failure(), [true, true], None),
        (read(new_pem), [false, true], Some(believed)),
        (refusal, [false, false], Some("tokens are: ")),
        (read(new_pem), [false, true], Some(believed)),
        (Ok(Some(without)), [false, false], Some(" has no key requestheader-client-ca-file")),
        (Ok(None), [false, false], Some("tokens are: there is no ConfigMap kube-system/ext")),
        (Ok(None), [false, false], None),
        (read(new_pem), [false, true], Some(believed)),
    ];
    for (number, (read, expected, line)) in steps.into_iter().enumerate() {
        let lines = logged(0, || follower.take(read)).join("\n");
        assert_eq!([old, new].map(|it| is_believed(&proxy, it)), expected, "step {number}");
        match line {
            Some(line) => assert!(lines.contains(line), "step {number}: {lines}"),
            None => assert_eq!(lines, "", "step {number}"),
        }
    }
    assert_eq!(proxy.user_source(None, &HeaderMap::new()), UserSource::Token, "no TLS");
}

#[tokio::test(start_paused = true)]
async fn ans_80_the_config_map_is_read_once_a_minute() {
    let authority = Authority::new("front proxies");
    let data = values(&authority.pem(), ALLOWED);
    let (sender, mut asked) = mpsc::unbounded_channel();
    let start = Instant::now();
    let service = tower::service_fn(move |request: Request<Body>| {
        let line = format!("{} {}", request.method(), request.uri().path());
        let seconds = start.elapsed().as_secs();
        sender.send((seconds, line)).unwrap();
        // At first nobody has bound the Role.
        let (code, body) = match seconds {
            0 => (403, json!({"kind": "Status", "apiVersion": "v1", "code": 403, "message": "no"})),
            _ => (
                200,
                json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}, "data": data}),
            ),
        };
        let body = Body::from(body.to_string().into_bytes());
        async move { Ok::<_, kube::Error>(Response::builder().status(code).body(body).unwrap()) }
    });
    let (follower, proxy) = FrontProxyFollower::new();
    let clients = Clients::shared(Client::new(service, "default"));
    let following = tokio::spawn(follower.run(clients));
    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    for seconds in [0, 10, 70, 130] {
        assert_eq!(asked.recv().await, Some((seconds, format!("GET {path}"))));
    }
    assert!(is_believed(&proxy, &authority.sign(FRONT_PROXY, |_| {})));
    following.abort();
}
