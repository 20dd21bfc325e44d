//! Questions through an APIService: the API server passes users and groups on as its front proxy.
//! Through a Service it passes no user on. Specification: answers.md 12 (ANS-80), case 73.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use vc_kube::{AnswersAccess, AnswersClient};

use crate::answers::{ARGS, ChartObjects, account, address, grant, grant_to, revoke, waits};
use crate::api::{Api, text, until};
use crate::bad_input::logged;
use crate::cluster::Cluster;
use crate::objects::{LABEL, gang};
use crate::process::Scheduler;

const GROUP: &str = "/apis/answers.volcano.sh/v1";
const API_SERVICE: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1.answers.volcano.sh";
/// The Service of the chart, by whose name the chart's Role lets users through.
const SERVICE: &str = "vc-scheduler-answers";

/// A CA.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
struct Identity {
    certificate: String,
    key: String,
}

fn pem(kind: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n")
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

impl Authority {
    fn new(name: &str) -> Self {
        let (mut params, key) = (params(name), KeyPair::generate().unwrap());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = pem("CERTIFICATE", params.self_signed(&key).unwrap().der());
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Kubernetes takes the name for the user's, the organization for the user's group.
    fn sign(&self, name: &str, group: &str) -> Identity {
        let (mut params, key) = (params(name), KeyPair::generate().unwrap());
        params.distinguished_name.push(DnType::OrganizationName, group);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let certificate = pem("CERTIFICATE", certificate.der());
        Identity { certificate, key: pem("PRIVATE KEY", &key.serialize_der()) }
    }
}

impl Identity {
    /// As a kubeconfig has it.
    fn user(&self) -> Value {
        let data = |pem: &String| BASE64_STANDARD.encode(pem);
        json!({"client-certificate-data": data(&self.certificate),
            "client-key-data": data(&self.key)})
    }
}

/// Flags by which the API server of a folder is a front proxy. Its certificate is made with the first start.
pub(crate) fn flags(dir: &Path) -> Vec<String> {
    let [ca, certificate, key] =
        ["ca.crt", "client.crt", "client.key"].map(|name| dir.join(format!("front-proxy-{name}")));
    if !key.exists() {
        let authority = Authority::new("front proxies");
        let client = authority.sign("front-proxy-client", "front proxies");
        let files =
            [(&ca, &authority.pem), (&certificate, &client.certificate), (&key, &client.key)];
        files.iter().for_each(|(path, text)| fs::write(path, text).unwrap());
    }
    vec![
        format!("--requestheader-client-ca-file={}", ca.display()),
        format!("--proxy-client-cert-file={}", certificate.display()),
        format!("--proxy-client-key-file={}", key.display()),
        "--requestheader-allowed-names=front-proxy-client".to_owned(),
        "--requestheader-username-headers=X-Remote-User".to_owned(),
        "--requestheader-group-headers=X-Remote-Group".to_owned(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
    ]
}

/// The certificate of the API server as a front proxy.
fn front_proxy(dir: &Path) -> Identity {
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    Identity { certificate: read("front-proxy-client.crt"), key: read("front-proxy-client.key") }
}

/// Makes users of a CA known to the API server, which reads its file again when it changes.
fn accept_users(dir: &Path, authority: &Authority) {
    let mut file = OpenOptions::new().append(true).open(dir.join("ca.crt")).unwrap();
    file.write_all(authority.pem.as_bytes()).unwrap();
}

async fn connect(cluster: &mut Cluster, name: &str, identity: &Identity) -> Api {
    let kubeconfig = cluster.kubeconfig_named(&format!("user-{name}"), &identity.user());
    Api::connect(kubeconfig.to_str().unwrap()).await
}

async fn read_config(kubeconfig: &Path) -> Config {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    config.default_retry = false;
    config
}

/// Asks with these headers. If the answer is that there were too many questions, the question is
/// repeated. Returns the answer, or code and message of the refusal.
async fn ask(client: &Client, path: &str, headers: &[(&str, &str)]) -> Result<Value, String> {
    until("an answer or a refusal", async || {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        match client.request(request.body(Vec::new()).unwrap()).await {
            Err(kube::Error::Api(status)) if status.code == 429 => None,
            Err(kube::Error::Api(status)) => {
                Some(Err(format!("{}: {}", status.code, status.message)))
            }
            Err(error) => Some(Err(error.to_string())),
            Ok(answer) => Some(Ok(answer)),
        }
    })
    .await
}

/// Returns what the port of the scheduler answers to headers of a front proxy, on a connection with
/// this certificate.
async fn ask_port(cluster: &mut Cluster, identity: Option<&Identity>) -> Result<Value, String> {
    let user = identity.map_or_else(|| json!({}), Identity::user);
    let mut config = read_config(&cluster.kubeconfig_named("direct", &user)).await;
    config.cluster_url = address(cluster).await.parse().unwrap();
    (config.root_cert, config.root_cert_file, config.accept_invalid_certs) = (None, None, true);
    let path = format!("{GROUP}/namespaces/proxied/explanations/mine");
    let headers = [("x-remote-user", "jo"), ("x-remote-group", "system:masters")];
    ask(&Client::try_from(config).unwrap(), &path, &headers).await
}

/// Returns the port on which the scheduler answers.
async fn port(cluster: &Cluster) -> u16 {
    address(cluster).await.rsplit_once(':').unwrap().1.parse().unwrap()
}

/// Registers the port of the scheduler with the APIService of the chart. The Service has no address of a cluster here:
/// its name leads to this machine.
async fn register(cluster: &Cluster, chart: &ChartObjects) {
    let port = port(cluster).await;
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "answers", "namespace": cluster.namespace},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}});
    cluster.api.apply(&service).await.unwrap();
    let mut registered = chart.one("APIService", "v1.answers.volcano.sh");
    registered["metadata"]["labels"][LABEL] = "".into();
    registered["spec"]["service"] =
        json!({"namespace": cluster.namespace, "name": "answers", "port": port});
    cluster.api.apply(&registered).await.unwrap();
    until("an APIService that is available", async || {
        let registered = cluster.api.get(API_SERVICE).await.ok()?;
        let conditions = registered["status"]["conditions"].as_array()?.iter();
        { conditions }.find(|it| it["type"] == "Available" && it["status"] == "True").map(drop)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ans_80_users_with_certificates_ask_through_the_api_server() {
    let mut cluster = Cluster::take("proxied", 1).await;
    let users = Authority::new("users");
    accept_users(&cluster.dir(), &users);
    let chart = ChartObjects::render(&cluster, "answers.enabled=true,answers.aggregated=true");
    grant(&cluster, ("volcano-system", "vc-scheduler"), chart.reviews(), None).await;
    cluster.api.apply(&chart.one("RoleBinding", "vc-scheduler-front-proxy")).await.unwrap();
    for name in ["jo", "al"] {
        let rules = chart.rules("-answers-view");
        grant_to(&cluster, name, json!({"kind": "User", "name": name}), rules, Some("proxied"))
            .await;
    }
    let nodes =
        json!([{"apiGroups": ["answers.volcano.sh"], "resources": ["nodes"], "verbs": ["list"]}]);
    let readers = json!({"kind": "Group", "name": "readers"});
    grant_to(&cluster, "readers", readers, nodes, None).await;
    let args = [&ARGS[..], &["--answers-aggregated", "-v=4"]].concat();
    let scheduler = Scheduler::start_with(&cluster, &args).await;
    logged(&cluster, "front proxy is believed: client certificates named front-proxy-client").await;
    register(&cluster, &chart).await;
    cluster.submit("mine", 2, "100").await;

    let mut user =
        async |name: &str, group: &str| connect(&mut cluster, name, &users.sign(name, group)).await;
    let (jo, al) = (user("jo", "readers").await, user("al", "others").await);
    let stranger = user("stranger", "readers").await;
    let mine = format!("{GROUP}/namespaces/proxied/explanations/mine");
    let asked = async |user: &Api| {
        until("an explanation", async || user.get(&mine).await.ok().filter(waits)).await
    };
    let of_jo = asked(&jo).await;
    assert_eq!(of_jo["subject"]["name"], "mine");
    // The scheduler asks about the right of a group that the API server has passed on.
    assert_eq!(of_jo["nodes"]["groups"][0]["names"], json!(["node-0"]), "{of_jo}");
    let of_al = asked(&al).await;
    assert_eq!(of_al["nodes"]["groups"][0]["names"], json!([]), "{of_al}");
    let small = gang("proxied", "small", 1, "1");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": small});
    let supposed = jo.post(&format!("{GROUP}/namespaces/proxied/whatifs"), &list).await.unwrap();
    assert_eq!(supposed["placed"][0]["node"], "node-0", "{supposed}");
    for (user, path) in [(&stranger, mine.as_str()), (&jo, "/apis/answers.volcano.sh/v1/summary")] {
        let refused = user.get(path).await.unwrap_err().to_string();
        assert!(refused.contains("is forbidden: User"), "{refused}");
    }
    // Without the certificate of the front proxy its headers say nothing.
    let dir = cluster.dir();
    for identity in [None, Some(&users.sign("front-proxy-client", "system:masters"))] {
        let refused = ask_port(&mut cluster, identity).await.unwrap_err();
        assert!(refused.starts_with("401: a bearer token is needed\n"), "{refused}");
    }
    let answer = ask_port(&mut cluster, Some(&front_proxy(&dir))).await.unwrap();
    assert_eq!(text(&answer["subject"]["name"]), "mine");
    cluster.api.delete(API_SERVICE).await.unwrap();
    assert!(scheduler.terminate().await.success());
    revoke(&cluster, &["vc-scheduler", "readers"]).await;
}

/// Returns an address of this machine that endpoints may have: the API server refuses loopback and
/// link-local addresses. Returns `None` if there is none. Nothing is sent: to connect a UDP socket
/// looks up its route only.
fn host_address() -> Option<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // This address is for documentation. The default route leads to it, as to any public one.
    socket.connect((Ipv4Addr::new(203, 0, 113, 1), 9)).ok()?;
    let IpAddr::V4(address) = socket.local_addr().ok()?.ip() else { return None };
    let is_refused = address.is_loopback() || address.is_link_local() || address.is_unspecified();
    (!is_refused).then_some(address)
}

/// Puts the Service of the chart in front of the port of the scheduler, which listens on this
/// address. Returns the path of its proxy. The proxy goes only to addresses of pods, so a pod that
/// nobody schedules has this address.
async fn serve_by_service(cluster: &Cluster, host: Ipv4Addr) -> String {
    let (namespace, port) = (cluster.namespace, port(cluster).await);
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "vc-0", "namespace": namespace},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "x"}]}});
    let metadata = json!({"name": SERVICE, "namespace": namespace});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {"clusterIP": "None", "ports": [{"name": "answers", "port": 11253}]}});
    let target = json!({"kind": "Pod", "namespace": namespace, "name": "vc-0"});
    let endpoints = json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata,
        "subsets": [{"addresses": [{"ip": host.to_string(), "targetRef": target}],
            "ports": [{"name": "answers", "port": port}]}]});
    for object in [pod, service, endpoints] {
        cluster.api.create(&object).await.unwrap();
    }
    let host = host.to_string();
    let status = json!({"status": {"podIP": host, "podIPs": [{"ip": host}]}});
    cluster.api.merge(&cluster.path("pods/vc-0/status"), &status).await.unwrap();
    format!("/api/v1/namespaces/{namespace}/services/https:{SERVICE}:answers/proxy")
}

/// Starts a scheduler that believes the front proxy and answers on this address. The ServiceAccount
/// `jo` may ask it why jobs of the namespace wait, through the Service of the chart.
async fn start_at(cluster: &Cluster, host: Ipv4Addr) -> Scheduler {
    let chart = ChartObjects::render(cluster, "answers.enabled=true,answers.aggregated=true");
    grant(cluster, ("volcano-system", "vc-scheduler"), chart.reviews(), None).await;
    cluster.api.apply(&chart.one("RoleBinding", "vc-scheduler-front-proxy")).await.unwrap();
    account(cluster, "jo").await;
    let mut rules = chart.rules("-answers-view");
    let proxy = chart.one("Role", "vc-scheduler-answers-proxy");
    rules.as_array_mut().unwrap().push(proxy["rules"][0].clone());
    grant(cluster, (cluster.namespace, "jo"), rules, Some(cluster.namespace)).await;
    let address = format!("--answers-address={host}:0");
    let args = [&ARGS[..], &["--answers-aggregated", "-v=4", address.as_str()]].concat();
    let scheduler = Scheduler::start_with(cluster, &args).await;
    logged(cluster, "front proxy is believed: client certificates named front-proxy-client").await;
    scheduler
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ans_80_a_service_proxy_is_no_front_proxy() {
    let Some(host) = host_address() else {
        eprintln!("left out: this machine has no address that endpoints may have");
        return;
    };
    let mut cluster = Cluster::take("serviced", 1).await;
    let scheduler = start_at(&cluster, host).await;
    let proxy = serve_by_service(&cluster, host).await;
    cluster.submit("mine", 2, "100").await;
    let token = cluster.token_of("jo");
    let kubeconfig = cluster.kubeconfig_named("serviced-jo", &json!({"token": token}));
    let jo = Client::try_from(read_config(&kubeconfig).await).unwrap();

    // The API server takes `Authorization` away: the scheduler needs a token of its own.
    let (bearer, question) = (format!("Bearer {token}"), "namespaces/serviced/explanations/mine");
    let own = ("X-Answers-Authorization", bearer.as_str());
    let (mine, summary) = (format!("{proxy}{GROUP}/{question}"), format!("{proxy}{GROUP}/summary"));
    let of_jo =
        until("an explanation", async || ask(&jo, &mine, &[own]).await.ok().filter(waits)).await;
    let forged = [("X-Remote-User", "admin"), ("X-Remote-Group", "system:masters")];
    let forged_with_token = [forged[0], forged[1], own];
    let answered = ask(&jo, &mine, &forged_with_token).await.unwrap();
    for answer in [&of_jo, &answered] {
        assert_eq!(answer["subject"]["name"], "mine", "{answer}");
        assert_eq!(answer["nodes"]["groups"][0]["names"], json!([]), "jo may not list nodes");
    }
    let refused = ask(&jo, &summary, &forged_with_token).await.unwrap_err();
    let expected = "403: user system:serviceaccount:serviced:jo may not ";
    assert!(refused.starts_with(expected), "{refused}");

    let invented = [forged[0], forged[1], ("X-Answers-Authorization", "Bearer invented")];
    for path in [&mine, &summary] {
        let refused = ask(&jo, path, &forged).await.unwrap_err();
        assert!(refused.starts_with("401: a bearer token is needed\n"), "{refused}");
        let refused = ask(&jo, path, &invented).await.unwrap_err();
        assert!(refused.starts_with("401: the token was refused"), "{refused}");
    }
    // The API server does not pass its administrator on either.
    let refused = cluster.api.get(&mine).await.unwrap_err().to_string();
    assert!(refused.contains("a bearer token is needed"), "{refused}");

    // kubectl vc asks through the Service as well.
    let service = Some((cluster.namespace.to_owned(), SERVICE.to_owned()));
    let access =
        AnswersAccess { kubeconfig: Some(kubeconfig), service, ..AnswersAccess::default() };
    let client = AnswersClient::new(&access).await.unwrap();
    let answered = until("its answer", async || client.get(question).await.ok()).await;
    assert!(answered.contains("\"mine\""), "{answered}");
    assert!(scheduler.terminate().await.success());
    revoke(&cluster, &["vc-scheduler"]).await;
}
