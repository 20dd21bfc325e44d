//! The port on which the process answers: it is opened, or the process says why not, and requests are counted.
//! Specification: answers.md 11 (ANS-76), 17.

use std::net::TcpListener;

use vc_page::BASE;

use crate::child::{Child, get};
use crate::cluster::{bound, folder, gang, poll, serve};

const ON: [&str; 3] = ["--leader-elect=false", "--enable-answers", "--answers-auth=off"];

#[tokio::test]
async fn ans_76_without_its_port_the_process_schedules() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let server = serve(gang("train", 2, "1")).await;
    let (url, flag) = (server.url(), format!("--answers-address={address}"));
    let metrics = ["--enable-metrics", "--listen-address=127.0.0.1:0"];
    let args = [&["--master", &url, &flag][..], &ON, &metrics].concat();
    let mut child = Child::start(&args, &folder("sockets"));
    let why = child.says(&format!("no answers: cannot listen on {address}: ")).await;
    assert!(why.contains("in use"), "{why}");
    let metrics = child.address("metrics").await;
    bound(&server, "train-1").await;
    assert_eq!(get(metrics, "/metrics").await.0, 200, "other ports are open");
    child.signal("-TERM").await;
    assert_eq!(child.ended().await.code(), Some(0));
    server.stop().await;
}

#[tokio::test]
async fn metrics_17_requests_to_the_port_are_counted() {
    let server = serve(gang("large", 1, "1000")).await;
    let url = server.url();
    let ports =
        ["--answers-address=127.0.0.1:0", "--enable-metrics", "--listen-address=127.0.0.1:0"];
    let args = [&["--master", &url][..], &ON, &ports].concat();
    let mut child = Child::start(&args, &folder("sockets"));
    let (answers, metrics) = (child.address("answers").await, child.address("metrics").await);
    let path = format!("{BASE}/namespaces/default/explanations/large");
    poll("an answer", async || (get(answers, &path).await.0 == 200).then_some(())).await;
    let unknown = format!("{BASE}/namespaces/default/explanations/nothing");
    assert_eq!(get(answers, &unknown).await.0, 404);
    let (_, text) = get(metrics, "/metrics").await;
    let text = String::from_utf8(text).unwrap();
    let route = "route=\"/namespaces/{namespace}/explanations/{name}\"";
    for series in [
        format!("volcano_answers_requests_total{{code=\"200\",{route}}} 1"),
        format!("volcano_answers_requests_total{{code=\"404\",{route}}} 1"),
    ] {
        assert!(text.lines().any(|line| line == series), "{series}: {text}");
    }
    for series in [
        format!("volcano_answers_duration_seconds_count{{{route}}} "),
        "volcano_answers_trials_total{shortcut=\"none\"} ".to_owned(),
    ] {
        assert!(text.lines().any(|line| line.starts_with(&series)), "{series}: {text}");
    }
    child.signal("-TERM").await;
    assert_eq!(child.ended().await.code(), Some(0));
    server.stop().await;
}
