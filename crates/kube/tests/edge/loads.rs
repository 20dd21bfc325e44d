//! Load sources, good and bad: a server of ours answers, or misbehaves. Specification:
//! plugins-nodes.md 12.2, cases 111 and 112.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use vc_engine::Engine;
use vc_kube::{
    Clients, EngineMessage, LoadServer, LoadSource, LoadSourceKind, Observer, follow_loads, inbox,
};
use vc_model::{ClusterEvent, NodeRecord};

use crate::fake::{client, json_answer, not_found, refusal};
use crate::http2::acceptor;
use crate::log_lines::Lines;
use crate::monitor::{Monitor, MonitorRequest, Reaction};

/// Short, so that a test need not wait for the next round.
const INTERVAL: Duration = Duration::from_millis(1);

/// What happened.
#[derive(Clone, Debug, PartialEq)]
enum LoadNotice {
    /// The engine gets these: name, cpu, memory.
    Loads(Vec<(String, f64, f64)>),
    Read {
        source: &'static str,
        n_read: usize,
        n_missing: usize,
    },
    Failed {
        source: &'static str,
        cause: &'static str,
    },
    Stopped,
}

struct Tells(mpsc::UnboundedSender<LoadNotice>);

impl Observer for Tells {
    fn loads_read(&self, source: &'static str, n_read: usize, n_missing: usize) {
        let _nobody_asks = self.0.send(LoadNotice::Read { source, n_read, n_missing });
    }

    fn loads_failed(&self, source: &'static str, cause: &'static str) {
        let _nobody_asks = self.0.send(LoadNotice::Failed { source, cause });
    }

    fn loads_stopped(&self) {
        let _nobody_asks = self.0.send(LoadNotice::Stopped);
    }
}

/// The engine with nodes n1 and n2, and the reader of loads beside it.
struct Bed {
    engine: Engine,
    inbox: mpsc::Receiver<EngineMessage>,
    told: mpsc::UnboundedReceiver<LoadNotice>,
    sources: watch::Sender<Option<LoadSource>>,
    reader: JoinHandle<()>,
}

impl Bed {
    fn new(source: Option<LoadSource>) -> Self {
        Self::with(source, Clients::shared(client(|_| None).0))
    }

    fn with(source: Option<LoadSource>, clients: Clients) -> Self {
        let (mut engine, _) = Engine::new(Default::default(), &Default::default());
        let node = |name: &str| {
            let record = NodeRecord { name: name.into(), ..NodeRecord::default() };
            ClusterEvent::NodeApplied(Box::new(record))
        };
        engine.apply(vec![node("n1"), node("n2")]);
        let (sender, inbox) = inbox();
        let (tell, told) = mpsc::unbounded_channel();
        let (sources, follows) = watch::channel(source);
        let reader = tokio::spawn(follow_loads(follows, clients, sender, Arc::new(Tells(tell))));
        Self { engine, inbox, told, sources, reader }
    }

    /// What happens next; the engine answers questions meanwhile.
    async fn next(&mut self) -> LoadNotice {
        loop {
            tokio::select! {
                biased;
                told = self.told.recv() => return told.expect("the reader runs"),
                message = self.inbox.recv() => match message.expect("the reader runs") {
                    EngineMessage::Visit(visit) => visit.pay(&mut self.engine, |_| {}),
                    EngineMessage::Event(ClusterEvent::NodeLoadsRead(loads)) => {
                        let loads = loads.into_iter().map(|(name, load)| {
                            (name.to_string(), load.cpu_percent(), load.memory_percent())
                        });
                        return LoadNotice::Loads(loads.collect());
                    }
                    other => panic!("{other:?}"),
                },
            }
        }
    }

    /// The first loads that the engine gets.
    async fn loads(&mut self) -> Vec<(String, f64, f64)> {
        loop {
            if let LoadNotice::Loads(loads) = self.next().await {
                return loads;
            }
        }
    }

    /// The cause of the next failure. Nothing is sent before it.
    async fn failure(&mut self) -> &'static str {
        match self.next().await {
            LoadNotice::Failed { cause, .. } => cause,
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

fn source(kind: LoadSourceKind) -> Option<LoadSource> {
    Some(LoadSource { kind, interval: INTERVAL })
}

fn prometheus(address: &str) -> Option<LoadSource> {
    source(LoadSourceKind::Prometheus(LoadServer::new(address, false).unwrap()))
}

fn elasticsearch(address: &str) -> Option<LoadSource> {
    let server = LoadServer::new(address, false).unwrap().as_user("me", "secret");
    let (index, host_field) = ("metricbeat-*".to_owned(), "host.hostname".to_owned());
    source(LoadSourceKind::Elasticsearch { server, index, host_field })
}

/// The answer of Prometheus to a query, with these values by instance.
fn vector(values: &[(&str, &str)]) -> Reaction {
    let element = |(instance, value): &(&str, &str)| json!({"metric": {"instance": instance, "job": "node"}, "value": [1.5, value]});
    let result: Vec<Value> = values.iter().map(element).collect();
    answer(json!({"resultType": "vector", "result": result}))
}

fn answer(data: Value) -> Reaction {
    Reaction::json(json!({"status": "success", "data": data}).to_string())
}

fn is_about_cpu(request: &MonitorRequest) -> bool {
    request.head.contains("node_cpu_seconds_total")
}

fn good(request: &MonitorRequest) -> Reaction {
    match is_about_cpu(request) {
        true => vector(&[("n1:9100", "25.5"), ("n2:9100", "0"), ("n9:9100", "1")]),
        false => vector(&[("n1", "40"), ("n2", "60")]),
    }
}

fn good_loads() -> Vec<(String, f64, f64)> {
    vec![("n1".to_owned(), 25.5, 40.0), ("n2".to_owned(), 0.0, 60.0)]
}

#[tokio::test]
async fn two_queries_read_all_nodes_of_prometheus() {
    let mut monitor = Monitor::start(None, good).await;
    let mut bed = Bed::new(prometheus(&format!("{}/base/", monitor.address)));
    let read = LoadNotice::Read { source: "prometheus", n_read: 2, n_missing: 0 };
    assert_eq!(bed.next().await, read);
    assert_eq!(bed.next().await, LoadNotice::Loads(good_loads()));
    let heads = [monitor.requests.recv().await.unwrap(), monitor.requests.recv().await.unwrap()];
    for head in heads.map(|request| request.head) {
        assert!(head.starts_with("GET /base/api/v1/query?query="), "{head}");
        assert!(!head.contains("instance=") && !head.contains("authorization"), "{head}");
        assert!(head.contains("user-agent: vc-scheduler/"), "{head}");
    }
}

#[tokio::test]
async fn a_source_that_answers_nonsense_changes_nothing_until_it_is_well() {
    let page = "<html>502 Bad Gateway</html>";
    let cases: Vec<(Reaction, &str)> = vec![
        (Reaction::Answer(500, "", page.to_owned()), "status"),
        (Reaction::Answer(401, "", String::new()), "status"),
        (Reaction::Answer(302, "location: /login\r\n", String::new()), "status"),
        (Reaction::Answer(503, "", "x".repeat(1 << 20)), "status"),
        (Reaction::json(page), "unreadable"),
        (Reaction::json(""), "unreadable"),
        (Reaction::json("{}"), "unreadable"),
        (Reaction::json("[".repeat(100_000)), "unreadable"),
        (Reaction::json(r#"{"status": "success"}"#), "unreadable"),
        (Reaction::json(r#"{"status": "error", "error": "no", "data": null}"#), "unreadable"),
        (answer(json!({"resultType": "matrix", "result": []})), "unreadable"),
        (answer(json!({"resultType": "vector", "result": {}})), "unreadable"),
        (Reaction::Cut, "connection"),
        (Reaction::Garbage, "connection"),
        (vector(&[]), "no_nodes"),
        (vector(&[("10.0.0.1:9100", "1"), ("10.0.0.2:9100", "2")]), "no_nodes"),
        (vector(&[("n1", "NaN"), ("n2", "+Inf")]), "no_nodes"),
        (vector(&[("n1", "-1"), ("n2", "many")]), "no_nodes"),
    ];
    let monitor = Monitor::start(None, good).await;
    for (reaction, cause) in cases {
        let shown = format!("{reaction:?}").chars().take(200).collect::<String>();
        monitor.react(move |_| reaction.clone());
        let mut bed = Bed::new(prometheus(&monitor.address));
        assert_eq!(bed.failure().await, cause, "{shown}");
        monitor.react(good);
        assert_eq!(bed.loads().await, good_loads(), "{shown}");
    }
}

#[tokio::test]
async fn a_source_that_nobody_serves_is_named() {
    let (lines, _guard) = Lines::collect();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut bed = Bed::new(prometheus(&format!("http://me:secret@127.0.0.1:{port}")));
    for _ in 0..3 {
        assert_eq!(bed.failure().await, "connection");
    }
    let expected = format!(
        "node loads not read: prometheus (http://127.0.0.1:{port}): Connection refused (os error 111)"
    );
    assert_eq!(lines.all(), [expected], "once a minute, and without the password");
}

/// Runs until the requests hang; then the clock jumps to the next limit of time.
async fn times_out(reaction: Reaction) {
    let mut monitor = Monitor::start(None, move |_| reaction.clone()).await;
    let mut bed = Bed::new(prometheus(&monitor.address));
    for _ in 0..2 {
        tokio::select! {
            request = monitor.requests.recv() => assert!(request.is_some()),
            told = bed.next() => panic!("{told:?}"),
        }
    }
    tokio::time::pause();
    assert_eq!(bed.failure().await, "timeout");
    tokio::time::resume();
    monitor.react(good);
    assert_eq!(bed.loads().await, good_loads());
}

#[tokio::test]
async fn a_source_that_never_answers_is_given_up() {
    times_out(Reaction::Hang).await;
}

#[tokio::test]
async fn a_source_that_stops_in_the_middle_is_given_up() {
    times_out(Reaction::Stall).await;
}

#[tokio::test]
async fn nodes_112_a_node_without_both_values_is_not_sent() {
    let react = |request: &MonitorRequest| match is_about_cpu(request) {
        true => vector(&[("n2", "10")]),
        false => good(request),
    };
    let monitor = Monitor::start(None, react).await;
    let mut bed = Bed::new(prometheus(&monitor.address));
    let read = LoadNotice::Read { source: "prometheus", n_read: 1, n_missing: 1 };
    assert_eq!(bed.next().await, read);
    assert_eq!(bed.next().await, LoadNotice::Loads(vec![("n2".to_owned(), 10.0, 60.0)]));
    // One series that cannot be read does not take the others along.
    monitor.react(|request| match is_about_cpu(request) {
        true => answer(json!({"resultType": "vector", "result": [
            {"metric": {}, "value": [1, "5"]},
            {"metric": {"instance": "n1"}, "value": "5"},
            {"metric": {"instance": "n2"}, "value": [1, "7"]},
            null,
        ]})),
        false => good(request),
    });
    while bed.loads().await != [("n2".to_owned(), 7.0, 60.0)] {}
}

#[tokio::test]
async fn what_is_too_much_for_one_query_is_asked_node_by_node() {
    let too_much = Reaction::Answer(422, "", r#"{"status": "error"}"#.to_owned());
    for refused in [too_much, Reaction::Flood(20 << 20)] {
        let mut monitor = Monitor::start(None, move |request| {
            let names = ["n1", "n2"];
            let asked = |name: &&str| request.head.contains(&format!("instance=\"{name}\""));
            match names.into_iter().find(asked) {
                None => refused.clone(),
                Some(name) if is_about_cpu(request) => vector(&[(name, "12")]),
                Some(name) => vector(&[(name, "34")]),
            }
        })
        .await;
        let mut bed = Bed::new(prometheus(&monitor.address));
        let expected = ["n1", "n2"].map(|name| (name.to_owned(), 12.0, 34.0));
        assert_eq!(bed.loads().await, expected);
        let mut n_single = 0;
        while let Ok(request) = monitor.requests.try_recv() {
            n_single += usize::from(request.head.contains("instance="));
        }
        assert!(4 <= n_single, "{n_single}");
    }
}

#[tokio::test]
async fn an_endless_answer_is_not_read_to_its_end() {
    let monitor = Monitor::start(None, |_| Reaction::Flood(usize::MAX / 2)).await;
    let mut bed = Bed::new(prometheus(&monitor.address));
    assert_eq!(bed.failure().await, "too_large");
}

#[tokio::test]
async fn nodes_111_elasticsearch_is_searched_node_by_node() {
    let react = |request: &MonitorRequest| {
        let cpu = if request.body.contains("\"n1\"") { json!(0.25) } else { json!(null) };
        Reaction::json(
            json!({"took": 1, "aggregations": {"cpu": {"value": cpu}, "mem": {"value": 0.5}}})
                .to_string(),
        )
    };
    let mut monitor = Monitor::start(None, react).await;
    let mut bed = Bed::new(elasticsearch(&monitor.address));
    let read = LoadNotice::Read { source: "elasticsearch", n_read: 1, n_missing: 1 };
    assert_eq!(bed.next().await, read);
    assert_eq!(bed.next().await, LoadNotice::Loads(vec![("n1".to_owned(), 25.0, 50.0)]));
    let MonitorRequest { head, body } = monitor.requests.recv().await.unwrap();
    assert!(head.starts_with("POST /metricbeat-*/_search HTTP/1.1"), "{head}");
    assert!(head.contains("authorization: Basic bWU6c2VjcmV0"), "{head}");
    assert!(head.contains("content-type: application/json"), "{head}");
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["size"], 0);
    let filter = &body["query"]["bool"]["filter"];
    assert_eq!(filter[0], json!({"range": {"@timestamp": {"gte": "now-10m", "lt": "now"}}}));
    assert!(["n1", "n2"].iter().any(|name| filter[1] == json!({"term": {"host.hostname": name}})));
    assert_eq!(body["aggs"]["cpu"], json!({"avg": {"field": "host.cpu.usage"}}));
    assert_eq!(body["aggs"]["mem"], json!({"avg": {"field": "system.memory.actual.used.pct"}}));
}

#[tokio::test]
async fn nodes_111_one_bad_answer_of_elasticsearch_ends_the_round() {
    let well = json!({"took": 1, "aggregations": {"cpu": {"value": 0.1}, "mem": {"value": 0.1}}});
    let cases = [
        (Reaction::Flood(2 << 20), "too_large"),
        (Reaction::json("{}"), "unreadable"),
        (Reaction::json(r#"{"took": 1, "aggregations": {"cpu": {"value": "a"}}}"#), "unreadable"),
        (Reaction::Answer(404, "", "no such index".to_owned()), "status"),
        (Reaction::json(r#"{"took": 1, "hits": {"total": 0}}"#), "no_nodes"),
    ];
    for (bad, cause) in cases {
        let (shown, well) = (format!("{bad:?}"), well.to_string());
        // A missing index is missing for every node, all else is bad for one of them.
        let is_for_all = cause == "no_nodes";
        let monitor = Monitor::start(None, move |request| {
            match is_for_all || request.body.contains("\"n2\"") {
                true => bad.clone(),
                false => Reaction::json(well.clone()),
            }
        })
        .await;
        let mut bed = Bed::new(elasticsearch(&monitor.address));
        assert_eq!(bed.failure().await, cause, "{shown}");
    }
}

/// The custom metrics API with these values of the nodes.
fn metric_list(values: &[(&str, &str)]) -> Value {
    let item = |(name, value): &(&str, &str)| {
        json!({"describedObject": {"kind": "Node", "name": name}, "value": value,
            "timestamp": "2026-01-01T00:00:00Z"})
    };
    json!({"kind": "MetricValueList", "items": values.iter().map(item).collect::<Vec<_>>()})
}

#[tokio::test]
async fn the_adapter_is_asked_through_the_api_server() {
    let (server, log) = client(|seen| match &*seen.line {
        line if line.contains("v1beta2") => not_found(),
        line if line.ends_with("nodes/*/node_cpu_usage_avg") => {
            json_answer(200, metric_list(&[("n1", "250m"), ("n2", "1")]))
        }
        _ => json_answer(200, metric_list(&[("n1", "500m"), ("n2", "x")])),
    });
    let mut bed = Bed::with(source(LoadSourceKind::PrometheusAdaptor), Clients::shared(server));
    let read = LoadNotice::Read { source: "prometheus_adaptor", n_read: 1, n_missing: 1 };
    assert_eq!(bed.next().await, read);
    assert_eq!(bed.next().await, LoadNotice::Loads(vec![("n1".to_owned(), 25.0, 50.0)]));
    let path = "GET /apis/custom.metrics.k8s.io/v1beta1/nodes/*/node_memory_usage_avg";
    assert!(log.lines().iter().any(|line| line == path), "{:?}", log.lines());
}

#[tokio::test]
async fn without_the_right_to_read_metrics_the_log_says_so() {
    let (lines, _guard) = Lines::collect();
    let (server, _) =
        client(|_| refusal(403, "Forbidden", "nodes.custom.metrics.k8s.io is forbidden"));
    let mut bed = Bed::with(source(LoadSourceKind::PrometheusAdaptor), Clients::shared(server));
    assert_eq!(bed.failure().await, "status");
    let line = lines.all().join("\n");
    assert!(line.starts_with("node loads not read: prometheus_adaptor (API server): answered 403"));
    assert!(line.contains("nodes.custom.metrics.k8s.io is forbidden"), "{line}");
    assert!(line.ends_with("or the rights of the scheduler?"), "{line}");
}

#[tokio::test]
async fn another_configuration_changes_the_source_at_once_and_ends_it() {
    let mut hangs = Monitor::start(None, |_| Reaction::Hang).await;
    let monitor = Monitor::start(None, good).await;
    let mut bed = Bed::new(prometheus(&hangs.address));
    tokio::select! {
        request = hangs.requests.recv() => assert!(request.is_some()),
        told = bed.next() => panic!("{told:?}"),
    }
    // The requests in flight are not waited for.
    bed.sources.send_replace(prometheus(&monitor.address));
    assert_eq!(bed.next().await, LoadNotice::Stopped);
    assert_eq!(bed.loads().await, good_loads());
    bed.sources.send_replace(None);
    while bed.next().await != LoadNotice::Stopped {}
    // Nothing follows: the reader ends with the configuration.
    let Bed { sources, .. } = &mut bed;
    *sources = watch::Sender::new(None);
    assert_eq!(bed.told.recv().await, Some(LoadNotice::Stopped));
    assert_eq!(bed.told.recv().await, None);
}

#[tokio::test]
async fn a_certificate_is_checked_unless_the_configuration_says_otherwise() {
    let monitor = Monitor::start(Some(acceptor(&[])), good).await;
    for (skip_verify, expected) in [(false, false), (true, true)] {
        let server = LoadServer::new(&monitor.address, skip_verify).unwrap();
        let mut bed = Bed::new(source(LoadSourceKind::Prometheus(server)));
        let is_read = match bed.next().await {
            LoadNotice::Failed { cause, .. } => {
                assert_eq!(cause, "connection");
                false
            }
            told => matches!(told, LoadNotice::Read { .. }),
        };
        assert_eq!(is_read, expected);
    }
}
