//! The ways from a user to a scheduler, each made to fail in turn. Specification: answers.md 13 (ANS-88), case 79.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use axum::Router;
use axum::http::StatusCode;

use crate::front::{FixedAnswer, Front, serve, status};
use crate::servers::{self_made, serve_plain, serve_tls};
use crate::{call, explanation, kubeconfig_of, plugin, scheduler, text, what_ifs};

use Outcome::{Answered, Unanswered};

const SERVICE: &str = "Service volcano-system/vc-scheduler-answers";
/// A Service of another name.
const ASK: &str = "Service volcano-system/ask";
/// A pod of the scheduler, and the way to it.
const POD: (&str, &str, &str) = ("volcano-system", "vc-0", "True");
const TUNNEL: &str = "pod volcano-system/vc-0 ports=8443";
/// Another pod, and the way to it.
const POD_1: (&str, &str, &str) = ("volcano-system", "vc-1", "True");
const TUNNEL_1: &str = "pod volcano-system/vc-1 ports=8443";

/// An answer of the scheduler.
fn answers() -> Option<FixedAnswer> {
    Some((200, explanation()))
}

/// What an API server says of a Service that the user may not ask.
fn forbidden() -> Option<FixedAnswer> {
    let name = "services \"https:vc-scheduler-answers:answers\" is forbidden";
    Some(status(403, name))
}

/// A port at which nobody listens.
fn nobody() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// A scheduler that always says the same.
fn says((code, text): FixedAnswer) -> Router {
    let answer = (StatusCode::from_u16(code).unwrap(), text);
    Router::new().fallback(async move || answer)
}

/// What comes of a question.
#[derive(Clone, Copy)]
enum Outcome {
    /// It is answered, and this is said beside the answer.
    Answered(&'static str),
    /// It is not answered, and a line begins like this.
    Unanswered(&'static str),
}

/// The name of a case, what the API server has, the ways that are asked, and what comes of it.
type Case = (&'static str, Front, &'static [&'static str], Outcome);

async fn check(cases: Vec<Case>) {
    let folder = tempfile::tempdir().unwrap();
    for (case, front, ways, outcome) in cases {
        let asked = front.asked.clone();
        let config = serve(folder.path(), front).await;
        let called = call(&["why", "job/train"], &config);
        let (out, said) = (text(&called.stdout), text(&called.stderr));
        assert_eq!(asked.take(), ways, "{case}: {said}");
        match outcome {
            Answered(line) => {
                assert!(out.starts_with("ml/train (job, "), "{case}: {out}{said}");
                assert_eq!(said, line, "{case}");
            }
            Unanswered(line) => {
                assert!(said.lines().any(|it| it.starts_with(line)), "{case}: {said}");
                assert_eq!((called.status.code(), out.as_str()), (Some(1), ""), "{case}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_the_api_server_is_asked_where_it_has_the_group() {
    let tunnels = Some(serve_tls(self_made(), scheduler(explanation())).await);
    let front =
        |group| Front { group, default: answers(), pods: vec![POD], tunnels, ..Front::default() };
    let unavailable = (503, "service unavailable\n".to_owned());
    let unbelieving = status(401, "a bearer token is needed");
    let then_service: &[&str] = &["group", SERVICE];
    check(vec![
        ("it answers", front(answers()), &["group"], Answered("")),
        (
            "a standby",
            front(Some(status(503, "vc-1 leads"))),
            &["group"],
            Unanswered("error: vc-1"),
        ),
        ("nobody is behind it", front(Some(unavailable)), then_service, Answered("")),
        ("it is not believed", front(Some(unbelieving)), then_service, Answered("")),
        ("it has no group", front(None), &[SERVICE], Answered("")),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_a_right_that_the_api_server_does_not_see_leads_to_the_next_way() {
    let group = Some(status(403, "explanations.answers.volcano.sh \"train\" is forbidden"));
    let front = |default| Front { group: group.clone(), default, ..Front::default() };
    let away = status(503, "no endpoints available for service \"https:ask:answers\"");
    let forbidden_too = status(403, "may not get explanations in namespace ml");
    let then_service: &[&str] = &["group", SERVICE];
    let of_group = Unanswered("error: explanations.answers.volcano.sh \"train\" is forbidden");
    check(vec![
        ("the Service answers", front(answers()), then_service, Answered("")),
        ("there is no Service", front(None), then_service, of_group),
        ("the Service may not be asked", front(forbidden()), then_service, of_group),
        ("the Service has no pod", front(Some(away)), then_service, of_group),
        (
            "the scheduler refuses",
            front(Some(forbidden_too)),
            then_service,
            Unanswered("error: may not get explanations in namespace ml"),
        ),
    ])
    .await;
    let folder = tempfile::tempdir().unwrap();
    let config = serve(folder.path(), front(answers())).await;
    let said = text(&call(&["why", "job/train", "-v"], &config).stderr);
    let expected = format!(
        "the API server: explanations.answers.volcano.sh \"train\" is forbidden\n{SERVICE}: answers\n"
    );
    assert_eq!(said, expected);
    // What can be read once is sent once.
    let called = call(&["what-if", "-f", "/dev/null", "--drain", "g1"], &config);
    let said = text(&called.stderr);
    assert!(said.starts_with("error: explanations.answers.volcano.sh "), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_what_the_api_server_says_of_the_group_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let absent = "it has no group answers.volcano.sh";
    let cases = [
        (status(404, "the server could not find the requested resource"), absent),
        (status(403, "forbidden: User \"jo\" cannot get path"), absent),
        (status(401, "Unauthorized"), "no answer from the API server: Unauthorized"),
        (status(429, "too many requests"), "no answer from the API server: too many requests"),
        (
            (503, "service unavailable\n".to_owned()),
            "no answer from the API server: service unavailable",
        ),
    ];
    for (discovery, expected) in cases {
        let front = Front {
            discovery: Some(discovery),
            group: answers(),
            default: answers(),
            ..Front::default()
        };
        let asked = front.asked.clone();
        let config = serve(folder.path(), front).await;
        let called = call(&["why", "job/train", "-v"], &config);
        let expected = format!("the API server: {expected}\n{SERVICE}: answers\n");
        assert_eq!(text(&called.stderr), expected);
        assert_eq!((called.status.code(), asked.take()), (Some(0), vec![SERVICE.to_owned()]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_a_list_of_services_that_is_refused_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let config = serve(folder.path(), Front { hides_services: true, ..Front::default() }).await;
    let said = text(&call(&["why", "big", "-n", "default", "-v"], &config).stderr);
    let refused = "no answer from Services of namespace volcano-system: services is forbidden: ";
    assert_eq!(said.lines().filter(|line| line.starts_with(refused)).count(), 1, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_who_does_not_lead_leads_to_the_next_one() {
    let leader = serve_tls(self_made(), scheduler(explanation())).await;
    let standby = serve_tls(self_made(), says(status(503, "vc-1 leads"))).await;
    let two = |tunnels| Front {
        default: forbidden(),
        pods: vec![POD, POD_1],
        tunnels: Some(tunnels),
        other_tunnels: vec![("vc-0", standby)],
        ..Front::default()
    };
    let labelled = vec![("volcano-system", "ask")];
    let service = Front { labelled, other: Some(status(503, "vc-1 leads")), ..two(leader) };
    let both = "asked pod volcano-system/vc-0\nasked pod volcano-system/vc-1\n";
    let all = "asked Service volcano-system/ask\nasked pod volcano-system/vc-0\n\
        asked pod volcano-system/vc-1\n";
    check(vec![
        ("a pod", two(leader), &[SERVICE, TUNNEL, TUNNEL_1], Answered(both)),
        ("a Service", service, &[SERVICE, ASK, TUNNEL, TUNNEL_1], Answered(all)),
        ("all", two(standby), &[SERVICE, TUNNEL, TUNNEL_1], Unanswered("error: vc-1 leads")),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_another_service_comes_before_a_tunnel() {
    let tunnels = Some(serve_tls(self_made(), scheduler(explanation())).await);
    let front = |other| Front {
        labelled: vec![("volcano-system", "ask")],
        other: Some(other),
        default: forbidden(),
        pods: vec![POD],
        tunnels,
        ..Front::default()
    };
    let away = status(503, "no endpoints available for service \"https:ask:answers\"");
    let foreign = status(403, "services \"https:ask:answers\" is forbidden");
    let said = Answered("asked Service volcano-system/ask\n");
    let through = Answered("asked pod volcano-system/vc-0\n");
    let both = Answered("asked Service volcano-system/ask\nasked pod volcano-system/vc-0\n");
    let none = |other| Front { pods: Vec::new(), ..front(other) };
    check(vec![
        ("it answers", front((200, explanation())), &[SERVICE, ASK], said),
        ("it has no pod", front(away.clone()), &[SERVICE, ASK, TUNNEL], both),
        ("nobody has one", none(away), &[SERVICE, ASK], Unanswered("error: no answer from ")),
        ("it may not be asked", front(foreign), &[SERVICE, ASK, TUNNEL], through),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_a_tunnel_comes_before_the_lists() {
    let pod = serve_tls(self_made(), scheduler(explanation())).await;
    let plain = serve_plain(scheduler(explanation())).await;
    let refusing = serve_tls(self_made(), says(status(401, "the token was refused"))).await;
    let front =
        |tunnels| Front { default: forbidden(), pods: vec![POD], tunnels, ..Front::default() };
    let unready = [("volcano-system", "vc-0", "False"), ("tenant", "vc-1", "True")];
    let unready = Front { pods: unready.to_vec(), ..front(Some(pod)) };
    let no_service = Front { default: None, ..front(Some(pod)) };
    let two = vec![("volcano-system", "vc-9", "False"), POD];
    let through = Answered("asked pod volcano-system/vc-0\n");
    let tried: &[&str] = &[SERVICE, TUNNEL];
    let listed = Unanswered("asked without the scheduler");
    check(vec![
        ("the Service may not be asked", front(Some(pod)), tried, through),
        ("there is no Service", no_service, tried, through),
        ("another pod is not ready", Front { pods: two, ..front(Some(pod)) }, tried, through),
        ("it refuses", front(Some(refusing)), tried, Unanswered("error: the token was refused")),
        ("no tunnel is opened", front(None), tried, listed),
        ("nobody listens", front(Some(nobody())), tried, listed),
        ("nobody speaks TLS", front(Some(plain)), tried, listed),
        ("no pod is ready and here", unready, &[SERVICE], listed),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_each_way_that_was_tried_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let front = Front {
        group: Some((503, "service unavailable\n".to_owned())),
        labelled: vec![("volcano-system", "ask")],
        other: forbidden(),
        default: forbidden(),
        pods: vec![POD],
        tunnels: Some(nobody()),
        ..Front::default()
    };
    let config = serve(folder.path(), front.clone()).await;
    let told = |words: &[&str], config: &Path| text(&call(words, config).stderr);
    let said = told(&["why", "big", "-n", "default", "-v"], &config);
    let refused = "services \"https:vc-scheduler-answers:answers\" is forbidden";
    let other = "Service volcano-system/ask";
    let pod = "pod volcano-system/vc-0";
    let broken = "ServiceError: client error (Connect): error forwarding port 8443 to pod abc: ";
    let expected = [
        "the API server: no answer from the API server: service unavailable".to_owned(),
        format!("{SERVICE}: no answer from {SERVICE}: {refused}"),
        format!("{other}: no answer from {other}: {refused}"),
        format!("{pod}: no answer from {pod}: {broken}"),
        "asked without the scheduler: ".to_owned(),
    ];
    let lines: Vec<&str> = said.lines().take(expected.len()).collect();
    assert_eq!(lines.len(), expected.len(), "{said}");
    for (line, expected) in lines.into_iter().zip(&expected) {
        assert!(line.starts_with(expected), "{line}\n{said}");
    }
    // Whoever has named a place is told what became of it, and of the tunnel beside it.
    let said = told(&["why", "big", "-v", "--service", "volcano-system/ask"], &config);
    let expected = format!(
        "{other}: no answer from {other}: {refused}\n{pod}: no answer from {pod}: {broken}"
    );
    assert!(said.starts_with(&expected), "{said}");
    assert!(
        said.contains(&format!("\nerror: no answer from {other}: {refused}\nhint: ")),
        "{said}"
    );
    // An API server that nobody finds is asked once.
    let gone = kubeconfig_of(folder.path(), "gone", &format!("http://{}", nobody()));
    let said = told(&["why", "big", "-v"], &gone);
    assert!(said.starts_with("error: no answer from the API server: "), "{said}");
    assert!(
        said.contains("\nhint: check the cluster of the context in the kubeconfig\n"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_a_tunnel_leads_to_the_namespace_of_the_service_alone() {
    let folder = tempfile::tempdir().unwrap();
    let tunnels = Some(serve_tls(self_made(), scheduler(explanation())).await);
    let pods = vec![("sched", "vc-0", "True"), POD];
    let front = Front { default: forbidden(), pods, tunnels, ..Front::default() };
    let asked = front.asked.clone();
    let config = serve(folder.path(), front).await;
    let named = |service: &str| {
        let called = call(&["why", "job/train", "--service", service], &config);
        (called.status.code(), text(&called.stderr), asked.take())
    };
    let (code, said, ways) = named("sched/vc-scheduler-answers");
    assert_eq!((code, said.as_str()), (Some(0), "asked pod sched/vc-0\n"));
    assert_eq!(ways, ["Service sched/vc-scheduler-answers", "pod sched/vc-0 ports=8443"]);
    let (code, said, ways) = named("elsewhere/vc-scheduler-answers");
    assert_eq!((code, ways), (Some(1), vec!["Service elsewhere/vc-scheduler-answers".to_owned()]));
    assert!(said.starts_with("error: no answer from Service elsewhere/"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_changes_are_supposed_through_a_tunnel() {
    let folder = tempfile::tempdir().unwrap();
    let tunnels = Some(serve_tls(self_made(), what_ifs()).await);
    let front = Front { default: forbidden(), pods: vec![POD], tunnels, ..Front::default() };
    let asked = front.asked.clone();
    let config = serve(folder.path(), front).await;
    let called = call(&["what-if", "--drain", "g1"], &config);
    let (out, said) = (text(&called.stdout), text(&called.stderr));
    assert!(out.starts_with("+ placed   ml/train-0 → g1-whatif-1\n"), "{out}{said}");
    assert_eq!(asked.take(), [SERVICE, TUNNEL]);
    // What can be read once is sent once.
    let called = call(&["what-if", "-f", "/dev/null"], &config);
    assert_eq!((called.status.code(), asked.take()), (Some(1), vec![SERVICE.to_owned()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_88_a_job_is_watched_through_a_tunnel() {
    let folder = tempfile::tempdir().unwrap();
    let tunnels = Some(serve_tls(self_made(), scheduler(explanation())).await);
    let front = Front { default: forbidden(), pods: vec![POD], tunnels, ..Front::default() };
    let config = serve(folder.path(), front).await;
    let mut child = Command::new(env!("CARGO_BIN_EXE_kubectl-vc"))
        .args(["why", "train", "--watch"])
        .env("KUBECONFIG", &config)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let first = BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(first.starts_with("ml/train (job, "), "{first}");
}

/// Asks with a kubeconfig that has a plugin. Returns the ways that were asked, and how often the plugin has run.
async fn runs_of_plugin(front: Front, words: &[&str]) -> (Vec<String>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let asked = front.asked.clone();
    let config = serve(folder.path(), front).await;
    let mut of_plugin: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&config).unwrap()).unwrap();
    of_plugin["users"][0]["user"] = serde_json::json!({"exec": plugin(folder.path())});
    std::fs::write(&config, of_plugin.to_string()).unwrap();
    call(words, &config);
    let runs = std::fs::read_to_string(folder.path().join("runs")).unwrap();
    (asked.take(), runs.lines().count())
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_89_a_plugin_runs_as_often_for_many_ways_as_for_one() {
    let one = Front { default: answers(), ..Front::default() };
    let (asked, runs_of_one) = runs_of_plugin(one, &["why", "job/train"]).await;
    assert_eq!(asked, [SERVICE]);
    let many = Front {
        group: Some(status(401, "a bearer token is needed")),
        labelled: vec![("volcano-system", "ask")],
        other: forbidden(),
        default: forbidden(),
        pods: vec![POD, POD_1],
        tunnels: Some(nobody()),
        ..Front::default()
    };
    let (asked, runs_of_many) = runs_of_plugin(many, &["cycles"]).await;
    assert_eq!(asked, ["group", SERVICE, ASK, TUNNEL, TUNNEL_1]);
    assert_eq!(runs_of_many, runs_of_one);
}
