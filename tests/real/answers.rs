//! Who may ask: the API server reviews tokens and rights. Specification: answers.md 12.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use vc_kube::{AnswersAccess, AnswersClient, ConnectionFlags};

use crate::api::until;
use crate::cluster::{Cluster, read_manifests};
use crate::objects::{LABEL, gang};
use crate::process::Scheduler;

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const OTHER: &str = "answers-other";
/// Flags of a scheduler that decides at once and answers on a free port.
pub(crate) const ARGS: [&str; 4] = [
    "--leader-elect=false",
    "--schedule-period=100ms",
    "--enable-answers",
    "--answers-address=127.0.0.1:0",
];

/// Where the only scheduler of the test serves its answers.
pub(crate) async fn address(cluster: &Cluster) -> String {
    let log = cluster.scheduler_log();
    until("the port of the answers", async || {
        let log = fs::read_to_string(&log).ok()?;
        let at = log.split_once("serving answers on ")?.1;
        at.split_whitespace().next().map(|address| format!("https://{address}"))
    })
    .await
}

/// Somebody who asks.
struct Reader(AnswersClient);

impl Reader {
    async fn new(cluster: &mut Cluster, name: &str, token: &str) -> Self {
        let kubeconfig =
            cluster.kubeconfig_named(&format!("reader-{name}"), &json!({"token": token}));
        let access = AnswersAccess {
            kubeconfig: Some(kubeconfig),
            server: Some(address(cluster).await),
            flags: ConnectionFlags { is_insecure: true, ..ConnectionFlags::default() },
            ..AnswersAccess::default()
        };
        Self(AnswersClient::new(&access).await.unwrap())
    }

    /// The answer, or the refusal.
    async fn get(&self, path: &str) -> Result<Value, String> {
        let answered = self.0.get(path).await.map_err(|error| error.to_string())?;
        Ok(serde_json::from_str(&answered).unwrap())
    }

    /// Asks for the path and returns the refusal. If the answer is that there were too many questions,
    /// the question is repeated.
    async fn refusal(&self, path: &str) -> String {
        let is_final = |refusal: &String| !refusal.starts_with("too many questions");
        until("a refusal", async || Some(self.get(path).await.unwrap_err()).filter(is_final)).await
    }

    async fn what_if(&self, path: &str, objects: &[Value]) -> Result<Value, String> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let answered = self.0.post(path, list.to_string()).await;
        let answered = answered.map_err(|error| error.to_string())?;
        Ok(serde_json::from_str(&answered).unwrap())
    }
}

/// Makes a ServiceAccount in the namespace of the test.
pub(crate) async fn account(cluster: &Cluster, name: &str) {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": cluster.namespace}});
    cluster.api.create(&account).await.unwrap();
}

/// Gives a ServiceAccount these rights, in one namespace or everywhere.
pub(crate) async fn grant(
    cluster: &Cluster,
    (namespace, account): (&str, &str),
    rules: Value,
    within: Option<&str>,
) {
    let subject = json!({"kind": "ServiceAccount", "namespace": namespace, "name": account});
    grant_to(cluster, account, subject, rules, within).await;
}

/// Gives a subject these rights, by a role of this name.
pub(crate) async fn grant_to(
    cluster: &Cluster,
    name: &str,
    subject: Value,
    rules: Value,
    within: Option<&str>,
) {
    let name = format!("test-{name}");
    let (role, binding) = match within {
        Some(_) => ("Role", "RoleBinding"),
        None => ("ClusterRole", "ClusterRoleBinding"),
    };
    let metadata = json!({"name": name, "namespace": within});
    let role_object =
        json!({"apiVersion": RBAC, "kind": role, "metadata": metadata, "rules": rules});
    let binding = json!({"apiVersion": RBAC, "kind": binding, "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name},
        "subjects": [subject]});
    for object in [role_object, binding] {
        cluster.api.apply(&object).await.unwrap();
    }
}

/// The objects of the chart.
pub(crate) struct ChartObjects(Vec<Value>);

impl ChartObjects {
    /// With these values of the chart.
    pub(crate) fn render(cluster: &Cluster, values: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let rendered = Command::new(folder.join("target/apiserver/helm"))
            .args(["template", "vc-scheduler", "deploy/chart", "--set", values])
            .args(["--namespace", "volcano-system"])
            .current_dir(folder)
            .output()
            .unwrap();
        assert!(rendered.status.success(), "{}", String::from_utf8_lossy(&rendered.stderr));
        let file = cluster.scheduler_log().with_file_name("chart.yaml");
        fs::write(&file, rendered.stdout).unwrap();
        Self(read_manifests(&file))
    }

    /// The object of this kind and name.
    pub(crate) fn one(&self, kind: &str, name: &str) -> Value {
        let is_it = |it: &&Value| it["kind"] == kind && it["metadata"]["name"] == name;
        self.0.iter().find(is_it).unwrap().clone()
    }

    fn roles(&self) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(|object| object["kind"] == "ClusterRole")
    }

    /// The rules of the ClusterRole whose name ends like this.
    pub(crate) fn rules(&self, end: &str) -> Value {
        let is_it = |role: &&Value| role["metadata"]["name"].as_str().unwrap().ends_with(end);
        self.roles().find(is_it).unwrap()["rules"].clone()
    }

    /// The rules by which the scheduler reviews tokens and rights.
    pub(crate) fn reviews(&self) -> Value {
        let rules = self.roles().filter_map(|role| role["rules"].as_array()).flatten();
        let is_review = |rule: &&Value| rule["resources"].to_string().contains("reviews");
        rules.filter(is_review).cloned().collect()
    }
}

pub(crate) fn waits(answer: &Value) -> bool {
    !["NextCycle", "NotAdmitted"]
        .contains(&answer["verdict"]["code"].as_str().unwrap_or("NextCycle"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ans_77_to_79_the_api_server_says_who_may_ask() {
    let mut cluster = Cluster::take("answers", 1).await;
    let other = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": OTHER, "labels": {LABEL: ""}}});
    cluster.api.create(&other).await.unwrap();
    for name in ["jo", "admin", "nobody", "viewer"] {
        account(&cluster, name).await;
    }
    let chart = ChartObjects::render(&cluster, "answers.enabled=true");
    grant(&cluster, ("answers", "jo"), chart.rules("-answers-view"), Some("answers")).await;
    grant(&cluster, ("answers", "admin"), chart.rules("-answers-admin"), None).await;

    let scheduler = Scheduler::start_with(&cluster, &[&ARGS[..], &["-v=10"]].concat()).await;
    cluster.submit("mine", 2, "100").await;
    for object in gang(OTHER, "theirs", 1, "100") {
        cluster.api.create(&object).await.unwrap();
    }
    let mut tokens = vec!["invented".to_owned()];
    let mut reader = async |name: &'static str| {
        let token = cluster.token_of(name);
        tokens.push(token.clone());
        Reader::new(&mut cluster, name, &token).await
    };
    let (jo, admin, nobody) = (reader("jo").await, reader("admin").await, reader("nobody").await);
    let viewer = reader("viewer").await;

    // The scheduler may not ask the API server yet: nothing is let through.
    let refused = jo.refusal("namespaces/answers/explanations/mine").await;
    let expected =
        "the API server did not review the token: the scheduler may not create tokenreviews";
    assert!(refused.starts_with(expected), "{refused}");
    grant(&cluster, ("volcano-system", "vc-scheduler"), chart.reviews(), None).await;

    let mine = until("an explanation", async || {
        jo.get("namespaces/answers/explanations/mine").await.ok().filter(waits)
    })
    .await;
    assert_eq!(mine["subject"]["name"], "mine");
    assert_eq!(mine["nodes"]["groups"][0]["names"], json!([]), "jo may not list nodes");
    let refused = jo.refusal(&format!("namespaces/{OTHER}/explanations/theirs")).await;
    let expected = "user system:serviceaccount:answers:jo may not get \
        explanations.answers.volcano.sh in namespace answers-other\nhint: ";
    assert!(refused.starts_with(expected), "{refused}");
    for path in ["explanations", "queues", "nodes", "summary", "timeline"] {
        assert!(jo.refusal(path).await.contains(" may not list "), "{path}");
        assert!(admin.get(path).await.is_ok(), "{path}");
        assert!(nobody.refusal(path).await.contains(" may not list "), "{path}");
    }
    let list = admin.get("explanations").await.unwrap();
    assert_eq!(list["total"], 2, "{list}");
    let theirs = admin.get(&format!("namespaces/{OTHER}/explanations/theirs")).await.unwrap();
    assert_eq!(theirs["nodes"]["groups"][0]["names"], json!(["node-0"]));

    // The chart's role becomes a part of `view`, as which users are bound in their namespaces.
    let path = "namespaces/answers/explanations/mine";
    assert!(viewer.refusal(path).await.contains(" may not get explanations"));
    let role = chart.one("ClusterRole", "vc-scheduler-answers-view");
    cluster.api.apply(&role).await.unwrap();
    let binding = json!({"apiVersion": RBAC, "kind": "RoleBinding",
        "metadata": {"name": "viewers", "namespace": "answers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "answers", "name": "viewer"}]});
    cluster.api.apply(&binding).await.unwrap();
    until("the rights of view", async || viewer.get(path).await.ok()).await;
    let theirs = format!("namespaces/{OTHER}/explanations/theirs");
    assert!(viewer.refusal(&theirs).await.contains(" may not get explanations"));
    cluster
        .api
        .delete(&format!("/apis/{RBAC}/clusterroles/vc-scheduler-answers-view"))
        .await
        .unwrap();

    // What is supposed is not done, and is confined to the namespace of whoever has rights there only.
    let small = gang("answers", "small", 1, "1");
    let supposed = jo.what_if("namespaces/answers/whatifs", &small).await.unwrap();
    assert_eq!(
        supposed["placed"],
        json!([
        {"pod": "answers/small-0", "podGroup": "answers/small", "node": "hidden"}])
    );
    let foreign = gang(OTHER, "small", 1, "1");
    let refused = jo.what_if("namespaces/answers/whatifs", &foreign).await.unwrap_err();
    assert!(refused.contains("is not in namespace answers"), "{refused}");
    assert!(jo.what_if("whatifs", &small).await.unwrap_err().contains(" may not create whatifs"));
    assert_eq!(admin.what_if("whatifs", &small).await.unwrap()["placed"][0]["node"], "node-0");
    assert!(cluster.pods("small").await.is_empty());

    let stranger = Reader::new(&mut cluster, "stranger", "invented").await;
    assert_eq!(stranger.refusal("summary").await, "the token was refused");
    assert!(scheduler.terminate().await.success());
    let log = fs::read_to_string(cluster.scheduler_log()).unwrap();
    for token in tokens {
        assert!(!log.contains(&token), "a token is logged");
    }
    revoke(&cluster, &["admin", "vc-scheduler"]).await;
}

/// Takes back what was granted everywhere.
pub(crate) async fn revoke(cluster: &Cluster, names: &[&str]) {
    for name in names {
        for kind in ["clusterroles", "clusterrolebindings"] {
            cluster.api.delete(&format!("/apis/{RBAC}/{kind}/test-{name}")).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ans_110_run_times_are_learned_from_pods_that_end() {
    let mut cluster = Cluster::take("learned", 1).await;
    account(&cluster, "admin").await;
    let chart = ChartObjects::render(&cluster, "answers.enabled=true");
    grant(&cluster, ("learned", "admin"), chart.rules("-answers-admin"), None).await;
    grant(&cluster, ("volcano-system", "vc-scheduler"), chart.reviews(), None).await;
    let scheduler = Scheduler::start_with(&cluster, &ARGS).await;
    for name in ["etl-28473829", "etl-28473830", "etl-28473831"] {
        for mut object in gang("learned", name, 1, "2") {
            if object["kind"] == "Pod" {
                // The owner is a Job of a CronJob, which nobody has to make for the scheduler.
                object["metadata"]["ownerReferences"] = json!([{"apiVersion": "batch/v1",
                    "kind": "Job", "name": name, "uid": name, "controller": true}]);
            }
            cluster.api.create(&object).await.unwrap();
        }
        cluster.running(name, 1).await;
    }
    cluster.submit("whole", 1, "8").await;
    let token = cluster.token_of("admin");
    let admin = Reader::new(&mut cluster, "learner", &token).await;
    let path = "namespaces/learned/explanations/whole?when=true";
    let start = async |is: &dyn Fn(&Value) -> bool| {
        until("a start", async || {
            let answer = admin.get(path).await.ok()?;
            let start = answer["start"].clone();
            is(&start).then_some(start)
        })
        .await
    };
    let unknown = start(&|start| start["reason"] == "noEnd").await;
    let text = "what it waits for is held by 3 pods without an expected end: 6 cpu";
    assert_eq!(unknown["text"], text);
    for name in ["etl-28473829", "etl-28473830"] {
        let status = json!({"status": {"phase": "Succeeded"}});
        cluster.api.merge(&cluster.path(&format!("pods/{name}-0/status")), &status).await.unwrap();
    }
    let learned = start(&|start| start["expected"].is_string()).await;
    assert_eq!(learned["few"], true, "{learned}");
    let awaited = &learned["waitsFor"][0];
    let row = json!([awaited["job"], awaited["source"], awaited["runs"]]);
    assert_eq!(row, json!(["learned/etl-28473831", "learned", 2]), "{learned}");
    assert!(learned["latest"].is_string() && learned["earliest"].is_string(), "{learned}");
    assert!(scheduler.terminate().await.success());
    revoke(&cluster, &["admin", "vc-scheduler"]).await;
}
