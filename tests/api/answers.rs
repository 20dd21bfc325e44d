//! Answers of the whole process: the twin follows what the engine is given. Specification:
//! answers.md 10.1, 11.

use serde_json::{Value, json};
use vc_bundle::{Bundle, Replay, difference};
use vc_engine::Effect;
use vc_objects::input::Input;
use vc_objects::what_if::WhatIfTexts;
use vc_page::{
    AnswerSource, AskedJob, AskedTimeline, BASE, Document, PageRange, Problem, Question,
};
use vc_scheduler::environment::OwnPod;
use vc_scheduler::meter::State;
use vc_sim::serve::{PODS, Server};

use crate::child::{Child, get};
use crate::cluster::{
    Cluster, HANG, Replica, create, folder, gang, is, no_fault, pod, poll, serve, wait,
};
use crate::reload::{FILE, Mounted};

/// The port is opened by the machine; this test asks past it.
const ON: [&str; 3] = ["--enable-answers", "--answers-auth=off", "--answers-address=127.0.0.1:0"];

async fn ask(replica: &Replica, question: Question) -> Result<Value, Problem> {
    let answered = replica.answers.ask(question).await?;
    Ok(serde_json::to_value(&answered.document).unwrap())
}

async fn why(replica: &Replica, name: &str) -> Result<Value, Problem> {
    let (namespace, name) = ("default".to_owned(), name.to_owned());
    ask(replica, Question::Explanation(AskedJob { namespace, name, ..AskedJob::default() })).await
}

/// Waits for an explanation of the job with this code.
async fn explained(replica: &Replica, name: &str, code: &str) -> Value {
    poll(code, async || why(replica, name).await.ok().filter(|it| it["verdict"]["code"] == code))
        .await
}

/// Waits for an explanation of a job that cannot be placed.
async fn waiting(replica: &Replica, name: &str) -> Value {
    let goes_on = ["Placed", "Binding", "NextCycle", "NotAdmitted"];
    let waits = |it: &Value| !goes_on.iter().any(|code| it["verdict"]["code"] == *code);
    poll(name, async || why(replica, name).await.ok().filter(waits)).await
}

/// Objects to apply, as changes to suppose.
fn applied(objects: Vec<Value>) -> WhatIfTexts {
    let (file, mut input) = ("test".into(), Input::default());
    objects.into_iter().for_each(|object| input.add_object(&file, 1, object));
    WhatIfTexts { objects: input.objects, ..WhatIfTexts::default() }
}

fn metric(replica: &Replica, name: &str) -> Option<String> {
    let text = replica.meter.metrics.encode();
    text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")).map(str::to_owned))
}

fn conf(actions: &str, plugin: &str) -> String {
    format!(
        "actions: \"{actions}\"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n  \
         - name: proportion\n{plugin}"
    )
}

/// Asks for a bundle of everything so far, which must decide the same again.
async fn replays(replica: &Replica) {
    let answered = replica.answers.ask(Question::Bundle { n_cycles: None }).await.unwrap();
    let Document::Bundle(file) = answered.document else { panic!("{:?}", answered.document) };
    let bundle = Bundle::read(&*file.contents).unwrap();
    let (first, last) = (bundle.manifest().first_cycle, bundle.manifest().last_cycle);
    assert_eq!((first, last), (0, file.cycle), "from before the first cycle on");
    let mut replay = Replay::new(&bundle, None).unwrap();
    let mut n_binds = 0;
    while let Some(step) = replay.step() {
        assert_eq!((difference(&step), step.is_same), ((None, None), true));
        n_binds += step.effects.iter().filter(|it| matches!(it, Effect::Bind { .. })).count();
    }
    assert_eq!((replay.engine().n_cycles(), n_binds), (last, 3));
    // The reload is an input, too.
    assert_eq!(replay.engine().config().actions, ["enqueue", "allocate", "backfill"]);
    let explanations = String::from_utf8_lossy(bundle.file("explanations.json").unwrap());
    assert!(explanations.contains("\"more\""), "{explanations}");
}

#[tokio::test]
async fn ans_57_the_twin_follows_the_engine() {
    let mounted = Mounted::new(&conf("enqueue, allocate", ""));
    let path = format!("--scheduler-conf={}", mounted.0.join(FILE).display());
    let args = [&ON[..], &[path.as_str()]].concat();
    let cluster = Cluster::start(gang("large", 1, "1000"), &args, no_fault).await;
    let replica = &cluster.replica;
    let large = waiting(replica, "large").await;
    assert_eq!(large["asOf"]["source"], "daemon");
    assert_eq!(large["subject"]["queue"], "default");
    // What comes later, and what the engine decided about it.
    cluster.create(gang("train", 2, "1")).await;
    cluster.bound("train-1").await;
    explained(replica, "train", "Placed").await;
    // Nothing of what is supposed is done.
    let supposed = ask(replica, Question::WhatIf(Box::new(applied(gang("idea", 2, "1"))))).await;
    let supposed = supposed.unwrap();
    assert_eq!(supposed["placed"].as_array().unwrap().len(), 2, "{supposed}");
    assert_eq!(why(replica, "idea").await.unwrap_err().code, 404);
    let revision = replica.answers.revision().unwrap();
    cluster.create(gang("more", 1, "2000")).await;
    waiting(replica, "more").await;
    assert_ne!(replica.answers.revision().unwrap(), revision);
    // Another configuration, which knows no pod of a size: the twin has it, too.
    mounted.write("..v2", &conf("enqueue, allocate, backfill", ""));
    let mut idle = gang("idle", 1, "1");
    idle[1]["spec"]["containers"][0]["resources"] = Value::Null;
    cluster.create(idle).await;
    // Only backfill places it, so the configuration is in force by then.
    cluster.bound("idle-0").await;
    explained(replica, "idle", "Placed").await;
    let given_up = metric(replica, "volcano_answers_divergences_total");
    assert_eq!(given_up.as_deref(), Some("0"));
    let waiting = async || metric(replica, "volcano_answers_backlog_events");
    poll("no event waits", async || waiting().await.filter(|n_events| n_events == "0")).await;
    replays(replica).await;
    // Answers of services outside cannot be repeated.
    let extender =
        "  - name: extender\n    arguments:\n      extender.urlPrefix: http://127.0.0.1:1\n";
    mounted.write("..v3", &conf("enqueue, allocate", extender));
    let problem = poll("it gives up", async || replica.answers.revision().err()).await;
    assert!(
        problem.message.ends_with(": the configuration has the plugin extender"),
        "{problem:?}"
    );
    cluster.stop().await;
}

#[tokio::test]
async fn ans_04_without_the_flag_there_is_no_twin() {
    let cluster = Cluster::start(gang("train", 1, "1"), &[], no_fault).await;
    cluster.bound("train-0").await;
    let problem = cluster.replica.answers.revision().unwrap_err();
    assert_eq!((problem.code, problem.message.as_str()), (503, "lists are being read"));
    assert!(why(&cluster.replica, "train").await.is_err());
    cluster.stop().await;
}

#[tokio::test]
async fn ans_63_a_standby_names_the_leader() {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "volcano-system"}});
    let server = serve(vec![namespace]).await;
    let args = [&ON[..], &["--leader-elect-retry-period=100ms"]].concat();
    let first = Replica::start(&server, &args, no_fault);
    first.reaches(State::Leading { synced: true }).await;
    poll("it answers", async || ask(&first, Question::Queues).await.ok()).await;
    let second = Replica::start(&server, &args, no_fault);
    second.reaches(State::Standby { connected: true }).await;
    let leads =
        async || second.answers.revision().err().filter(|it| it.message.ends_with(" leads"));
    let problem = poll("the leader is known", leads).await;
    assert_eq!(problem.code, 503);
    assert_ne!(problem.message, "another process leads");
    second.stop().await;
    first.stop().await;
    server.stop().await;
}

/// The port of a standby serves `/healthz` and the page, which have no data of the cluster, and refuses questions.
#[tokio::test]
async fn ans_63_a_standby_serves_its_health_and_the_page() {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "volcano-system"}});
    let server = serve(vec![namespace]).await;
    let leader = Replica::start(&server, &["--leader-elect-retry-period=100ms"], no_fault);
    leader.reaches(State::Leading { synced: true }).await;
    let url = server.url();
    let args = ["--master", &url, "--leader-elect-retry-period=100ms"];
    let mut standby = Child::start(&[&args[..], &ON[..]].concat(), &folder("sockets"));
    let address = standby.address("answers").await;
    let queues = format!("{BASE}/queues");
    let refused = poll("the leader is known", async || {
        let (code, body) = get(address, &queues).await;
        let text = String::from_utf8_lossy(&body).into_owned();
        let is_known = text.contains(" leads") && !text.contains("another process leads");
        is_known.then_some((code, text))
    });
    let (code, text) = refused.await;
    assert_eq!(code, 503, "{text}");
    for (path, content) in [("/healthz", "ok"), ("/ui/", "<!doctype html>")] {
        let (code, body) = get(address, path).await;
        let text = String::from_utf8_lossy(&body);
        assert!(code == 200 && text.contains(content), "{path}: {code} {text}");
    }
    standby.signal("-TERM").await;
    standby.ended().await;
    leader.stop().await;
    server.stop().await;
}

#[tokio::test]
async fn ans_83_the_leader_marks_its_pod_for_the_service() {
    let mut me = pod("me", "nothing", "1");
    me["metadata"]["labels"] = json!({"scheduling.volcano.sh/answers": "true", "app": "x"});
    me["spec"]["schedulerName"] = "other".into();
    let server = serve(vec![me]).await;
    let own = OwnPod { namespace: "default".to_owned(), name: "me".to_owned() };
    let args = [&ON[..], &["--leader-elect=false"]].concat();
    let mut changes = server.store.subscribe(&PODS);
    let replica = Replica::start_in(Some(own), &server, &args, no_fault);
    let mut marks = Vec::new();
    while marks.last() != Some(&Value::from("true")) {
        let events = tokio::time::timeout(HANG, changes.next()).await.unwrap().unwrap();
        let labels = events.iter().map(|event| event.object.value["metadata"]["labels"].clone());
        for labels in labels {
            assert_eq!(labels["app"], "x", "other labels stay");
            marks.push(labels["scheduling.volcano.sh/answers"].clone());
        }
    }
    assert_eq!(marks, [Value::Null, Value::from("true")], "an earlier mark goes first");
    assert!(replica.answers.revision().is_ok());
    replica.stop().await;
    server.stop().await;
}

/// A pod of a scheduler, which says that it answers as long as nobody takes that back.
fn scheduler_pod(name: &str) -> (Value, OwnPod) {
    let mut pod = pod(name, "nothing", "1");
    pod["metadata"]["labels"] = json!({"scheduling.volcano.sh/answers": "true"});
    pod["spec"]["schedulerName"] = "other".into();
    (pod, OwnPod { namespace: "default".to_owned(), name: name.to_owned() })
}

/// Waits until the pod has the mark, or not.
async fn is_marked(server: &Server, name: &str, wanted: bool) {
    let marked = |pod: &Value| pod["metadata"]["labels"]["scheduling.volcano.sh/answers"] == "true";
    wait(server, &PODS, |pod| is(pod, name) && marked(pod) == wanted).await;
}

#[tokio::test]
async fn ans_65_after_a_failover_the_new_leader_answers() {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "volcano-system"}});
    let [(a, own_a), (b, own_b)] = ["a", "b"].map(scheduler_pod);
    let objects = [vec![namespace, a, b], gang("large", 1, "1000")].concat();
    let server = serve(objects).await;
    let args = [&ON[..], &["--leader-elect-retry-period=100ms"]].concat();
    let start = |own: &OwnPod| Replica::start_in(Some(own.clone()), &server, &args, no_fault);
    let first = start(&own_a);
    first.reaches(State::Leading { synced: true }).await;
    waiting(&first, "large").await;
    is_marked(&server, "a", true).await;
    let second = start(&own_b);
    second.reaches(State::Standby { connected: true }).await;
    is_marked(&server, "b", false).await;
    assert_eq!(why(&second, "large").await.unwrap_err().code, 503);
    first.stop().await;
    second.reaches(State::Leading { synced: true }).await;
    assert_eq!(waiting(&second, "large").await["verdict"]["code"], "QueueFull");
    is_marked(&server, "b", true).await;
    // The pod of the first one starts its container again, and must not be asked any more.
    let again = start(&own_a);
    again.reaches(State::Standby { connected: true }).await;
    is_marked(&server, "a", false).await;
    is_marked(&server, "b", true).await;
    again.stop().await;
    second.stop().await;
    server.stop().await;
}

/// What is nobody's business: in an environment, an annotation and the configuration.
const SECRET: &str = "marker-of-a-secret";

/// Every question that has one answer, and one about a job of this name.
fn questions(name: &str) -> Vec<Question> {
    let range = PageRange::default();
    let asked = |name: &str| AskedJob {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        ..AskedJob::default()
    };
    vec![
        Question::Explanation(asked(name)),
        Question::Explanations { namespace: None, queue: None, code: None, range },
        Question::Queues,
        Question::Queue { name: "default".to_owned() },
        Question::Line { queue: "default".to_owned(), range },
        Question::Nodes { range, label: None },
        Question::NodeLabels,
        Question::Runs { namespace: None, queue: None, range },
        Question::HyperNodes { range },
        Question::Summary,
        Question::Timeline(AskedTimeline::default()),
        Question::Cycles { last: 100 },
        Question::WhatIf(Box::new(applied(gang("idea", 2, "1")))),
    ]
}

/// A configuration with the secret.
fn secret_conf() -> String {
    let arguments =
        format!("  - name: nodeorder\n    arguments:\n      prometheus.password: {SECRET}\n");
    conf("enqueue, allocate", &arguments)
}

/// A gang with the secret in each pod.
fn secret_gang(name: &str, cpu: &str) -> Vec<Value> {
    let mut objects = gang(name, 2, cpu);
    for pod in &mut objects[1..] {
        pod["metadata"]["annotations"]["example.com/token"] = SECRET.into();
        let container = &mut pod["spec"]["containers"][0];
        container["env"] = json!([{"name": "TOKEN", "value": SECRET}]);
        container["command"] = json!(["login", SECRET]);
    }
    objects
}

#[tokio::test]
async fn ans_102_a_secret_is_in_no_answer_and_no_bundle() {
    let mounted = Mounted::new(&secret_conf());
    let path = format!("--scheduler-conf={}", mounted.0.join(FILE).display());
    let objects = secret_gang("large", "1000");
    let args = [&ON[..], &[path.as_str()]].concat();
    let cluster = Cluster::start(objects, &args, no_fault).await;
    let replica = &cluster.replica;
    waiting(replica, "large").await;
    for question in questions("large") {
        let text = format!("{question:?}");
        let answer = ask(replica, question).await.unwrap().to_string();
        assert!(!answer.contains(SECRET), "{text}: {answer}");
    }
    let answered = replica.answers.ask(Question::Bundle { n_cycles: None }).await.unwrap();
    let Document::Bundle(file) = answered.document else { panic!("{:?}", answered.document) };
    let bundle = Bundle::read(&*file.contents).unwrap();
    for name in bundle.manifest().files.keys() {
        let contents = String::from_utf8_lossy(bundle.file(name).unwrap());
        assert!(!contents.contains(SECRET), "{name}");
        // The configuration itself is there.
        let is_conf = name.starts_with("conf/");
        assert!(!is_conf || contents.contains("prometheus.password"), "{name}");
    }
    let mut replay = Replay::new(&bundle, None).unwrap();
    while replay.step().is_some() {}
    let engine = replay.engine();
    assert!(engine.cluster().tasks.iter().any(|(_, row)| &*row.key.name == "large-1"));
    for text in [format!("{:?}", engine.cluster()), format!("{:?}", engine.config())] {
        assert!(!text.contains(SECRET), "{text}");
    }
    cluster.stop().await;
}

/// Everything is logged: the configuration, a reload of it, a pod that is bound and one that waits.
#[tokio::test]
async fn ans_102_a_secret_is_in_no_line_of_the_log() {
    let mounted = Mounted::new(&secret_conf());
    let path = format!("--scheduler-conf={}", mounted.0.join(FILE).display());
    let server = serve(secret_gang("large", "1000")).await;
    let args = ["--master", &server.url(), "--leader-elect=false", "-v=10", &path];
    let mut child = Child::start(&[&args[..], &ON[..]].concat(), &folder("sockets"));
    let before = child.lines_until("cycles start").await;
    create(&server, secret_gang("train", "1")).await;
    let bound = child.lines_until("train-1").await;
    mounted
        .write("..v2", &secret_conf().replace("enqueue, allocate", "enqueue, allocate, backfill"));
    let reloaded = child.lines_until("the new configuration is in force").await;
    child.signal("-TERM").await;
    let after = child.rest().await;
    let lines = [before, bound, reloaded, after].concat();
    let hidden = lines.iter().filter(|line| line.ends_with("prometheus.password: \"***\""));
    assert_eq!(hidden.count(), 2, "the configuration is logged at the start and at the reload");
    let told: Vec<&String> = lines.iter().filter(|line| line.contains(SECRET)).collect();
    assert_eq!(told, [""; 0]);
    server.stop().await;
}
