//! A service of ours that misbehaves in every way, over HTTP. Case 97 of plugins-jobs-queues.md.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use serde_json::Value;
use vc_engine::{
    ExtenderAnswer, ExtenderClient, ExtenderError, ExtenderQuery, ExtenderRequest, SessionInfo,
    SessionView,
};
use vc_kube::HttpExtender;
use vc_model::{Cluster, ClusterEvent, QueueRecord};

/// Requests that are under way together.
const MOST_AT_ONCE: usize = 16;
/// Largest answer that is read, in bytes.
const MOST_BYTES: usize = 10 << 20;

const OVERUSED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 17\r\n\r\n{\"overused\":true}";
/// Long enough for every answer that comes at all.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(50);

/// Number of the connection, and the text of the request.
type Heard = Receiver<(usize, String)>;

/// Starts a server that writes this answer to every request, and leaves the connection open. It
/// ends with the process.
fn serve(answer: impl Into<Vec<u8>>) -> (String, Heard) {
    let answer = answer.into();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (answer, tell) = (answer.clone(), tell.clone());
            std::thread::spawn(move || converse(stream.unwrap(), number, &answer, &tell));
        }
    });
    (url, heard)
}

fn converse(mut stream: TcpStream, number: usize, answer: &[u8], tell: &Sender<(usize, String)>) {
    while let Some(request) = read_request(&mut stream) {
        let _nobody_listens = tell.send((number, request));
        // The client may have gone away.
        if stream.write_all(answer).is_err() {
            return;
        }
        if answer.ends_with(CLOSE) {
            return;
        }
    }
}

/// The end of an answer after which the connection is closed.
const CLOSE: &[u8] = b"<close>";

fn read_request(stream: &mut TcpStream) -> Option<String> {
    let (mut text, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let n_read = stream.read(&mut part).ok().filter(|n_read| 0 < *n_read)?;
        text.extend_from_slice(&part[..n_read]);
        let request = String::from_utf8_lossy(&text).into_owned();
        let Some((head, body)) = request.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if length.is_none_or(|length| body.len() == length.parse::<usize>().unwrap()) {
            return Some(request);
        }
    }
}

fn cluster() -> Cluster {
    let mut cluster = Cluster::default();
    let queue = QueueRecord { name: "q".into(), ..QueueRecord::default() };
    cluster.apply(ClusterEvent::QueueApplied(Box::new(queue)));
    cluster
}

/// Sends the question whether queue `q` is overused so many times at once.
fn ask_all(
    client: &HttpExtender,
    url: &str,
    timeout: Duration,
    times: usize,
) -> Vec<Result<ExtenderAnswer, ExtenderError>> {
    let (cluster, info) = (cluster(), SessionInfo::default());
    let view = SessionView { cluster: &cluster, info: &info };
    let query = ExtenderQuery::QueueOverused(cluster.queue("q").unwrap());
    let request = ExtenderRequest { url, timeout, view, query };
    client.exchange_all(&vec![request; times])
}

fn ask(url: &str, timeout: Duration) -> Result<ExtenderAnswer, ExtenderError> {
    ask_all(&HttpExtender::default(), url, timeout, 1).pop().unwrap()
}

fn answer_of(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn a_request_is_a_post_of_json() {
    let (url, heard) = serve(OVERUSED);
    let answer = ask(&url, LONG).unwrap();
    assert!(answer.is_true);
    let (_, request) = heard.recv().unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /hook HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/json\r\n"), "{head}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["queue"]["Name"], "q");
}

#[test]
fn case_97_answers_that_are_failures() {
    let large = format!("{{\"x\":\"{}\"}}", "a".repeat(MOST_BYTES));
    let deep = "[".repeat(100_000);
    let cases = [
        (answer_of("204 No Content", ""), "status 204 No Content, expected 200"),
        (answer_of("500 Internal Server Error", "{}"), "status 500"),
        (
            "HTTP/1.1 302 Found\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n".to_owned(),
            "status 302 Found",
        ),
        (answer_of("200 OK", &large), "the answer is larger than 10 MiB"),
        (answer_of("200 OK", ""), "the answer is empty"),
        (answer_of("200 OK", "yes"), "the answer is no JSON"),
        (answer_of("200 OK", "{\"overused\":"), "the answer is no JSON"),
        (answer_of("200 OK", "[true]"), "the answer is no JSON: expected an object"),
        (answer_of("200 OK", &deep), "the answer is no JSON: recursion limit"),
        (
            answer_of("200 OK", "{\"overused\":\"true\"}"),
            "field overused of the answer is no boolean",
        ),
        ("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{}<close>".to_owned(), "broke off"),
        ("nonsense<close>".to_owned(), "the connection broke"),
        ("<close>".to_owned(), "the connection broke"),
    ];
    for (answer, expected) in cases {
        let (url, _heard) = serve(answer.as_str());
        match ask(&url, LONG) {
            Err(ExtenderError::BadAnswer(text)) => {
                assert!(text.contains(expected), "{expected}: {text}");
            }
            other => panic!("{expected}: {other:?}"),
        }
    }
}

/// Names match without regard to case, what is unknown is ignored, and what is missing is zero.
#[test]
fn answers_are_read_as_volcano_reads_them() {
    for (body, is_true) in [
        ("{\"OverUsed\":true,\"more\":[1]}", true),
        ("{}", false),
        ("null", false),
        ("{\"overused\":null}", false),
        ("{\"overused\":true} and more", true),
        (" \n{\"overused\":false,\"Overused\":true}", false),
    ] {
        let (url, _heard) = serve(answer_of("200 OK", body));
        assert_eq!(ask(&url, LONG).map(|answer| answer.is_true), Ok(is_true), "{body}");
    }
}

#[test]
fn a_service_that_does_not_answer_in_time() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 17\r\n\r\n{\"over";
    for answer in ["", half, "HTTP/1.1 200 OK\r\nx: "] {
        let (url, _heard) = serve(answer);
        let expected = ExtenderError::Unreachable("no answer within 50ms".to_owned());
        assert_eq!(ask(&url, SHORT), Err(expected), "{answer}");
    }
}

/// D50: what has not been sent when the first request fails is never sent.
#[test]
fn a_service_that_hangs_gets_no_more_than_one_round() {
    let (url, heard) = serve("");
    let answers = ask_all(&HttpExtender::default(), &url, SHORT, 100);
    assert_eq!(answers.len(), 100);
    let expected = Err(ExtenderError::Unreachable("no answer within 50ms".to_owned()));
    assert!(answers.iter().all(|answer| *answer == expected));
    let n_heard = heard.try_iter().count();
    assert!((1..=MOST_AT_ONCE).contains(&n_heard), "{n_heard}");
}

#[test]
fn a_service_that_is_not_there() {
    // The port is free again once the listener is dropped.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    match ask(&format!("http://{address}/x"), LONG) {
        Err(ExtenderError::Unreachable(text)) => assert!(text.contains("refused"), "{text}"),
        other => panic!("{other:?}"),
    }
    for url in ["", "/predicate", "http://", "http://a b/c", "ftp://127.0.0.1/x"] {
        assert!(ask(url, LONG).is_err(), "{url}");
    }
}

#[test]
fn many_requests_share_few_connections() {
    let (url, heard) = serve(OVERUSED);
    let client = HttpExtender::default();
    let answers = ask_all(&client, &url, LONG, 100);
    assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|answer| answer.is_true)));
    let numbers: Vec<usize> = heard.try_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers.len(), 100);
    assert!(numbers.iter().all(|number| *number < 2 * MOST_AT_ONCE), "{numbers:?}");
}

#[test]
fn the_body_of_an_answer_to_a_session_hook_is_ignored() {
    let (cluster, info) = (cluster(), SessionInfo::default());
    let view = SessionView { cluster: &cluster, info: &info };
    for (query, has_jobs) in
        [(ExtenderQuery::SessionOpen, true), (ExtenderQuery::SessionClose, false)]
    {
        let (url, heard) = serve(answer_of("200 OK", "no JSON"));
        let request = ExtenderRequest { url: &url, timeout: LONG, view, query };
        assert_eq!(HttpExtender::default().exchange(&request), Ok(ExtenderAnswer::default()));
        let (_, asked) = heard.recv().unwrap();
        assert_eq!(asked.contains("\"Jobs\":{}"), has_jobs, "{asked}");
        assert_eq!(asked.ends_with("\r\n\r\n{}"), !has_jobs, "{asked}");
    }
}
