//! The binary itself: exit codes, signals, servers, dump, log level; and with the arguments and the
//! probes of the shipped Deployment. Specification: core.md 1.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tokio::net::UnixStream;
use vc_sim::serve::{LEASES, PODS};

use crate::child::{Child, ask, get};
use crate::cluster::{bound, folder, gang, is, poll, serve, wait};

fn scheduler(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vc-scheduler")).args(args).output().unwrap()
}

fn code(args: &[&str]) -> i32 {
    scheduler(args).status.code().unwrap()
}

#[test]
fn core_2_core_4_core_5_exit_codes() {
    assert_eq!(code(&["--nope"]), 2);
    assert_eq!(code(&["--help"]), 0);
    assert_eq!(code(&["--leader-elect-lease-duration=10s"]), 1);
    assert_eq!(code(&["--disable-default-scheduler-config", "--master=127.0.0.1:1"]), 255);
    assert_eq!(code(&["--kubeconfig=/does/not/exist"]), 1);
    let conf = folder("missing").join("x.conf");
    fs::write(&conf, "actions: allocate\ntiers:\n- plugins:\n  - name: magic\n").unwrap();
    let conf = format!("--scheduler-conf={}", conf.display());
    assert_eq!(code(&["check", &conf]), 1);
    assert_eq!(code(&["check", &conf, "--allow-missing-plugins=magic"]), 0);
    let version = scheduler(&["--version"]);
    assert_eq!(version.status.code(), Some(0));
    let text = String::from_utf8(version.stdout).unwrap();
    let heads: Vec<&str> = text.lines().filter_map(|line| line.split(':').next()).collect();
    let wanted = ["API Version", "Version", "Git SHA", "Built At", "Rust Version", "OS/Arch"];
    assert_eq!(heads, wanted, "{text}");
    assert!(text.starts_with("API Version: v1alpha1\nVersion: "), "{text}");
    let commit = Command::new("git").args(["rev-parse", "HEAD"]).output();
    let has_git = commit.is_ok_and(|output| output.status.success());
    assert!(!has_git || !text.contains("Git SHA: unknown"), "{text}");
}

#[tokio::test]
async fn core_4_nothing_is_asked_when_the_timings_are_wrong() {
    let server = serve(Vec::new()).await;
    let before = server.store.list(&LEASES, None).revision;
    let bad = scheduler(&["--master", &server.url(), "--leader-elect-lease-duration=10s"]);
    assert_eq!(bad.status.code(), Some(1));
    let text = String::from_utf8(bad.stderr).unwrap();
    assert!(text.starts_with("leader election: lease 10s, renew 10s\nhint: "), "{text}");
    assert_eq!(server.store.list(&LEASES, None).revision, before);
    server.stop().await;
}

#[tokio::test]
async fn what_cannot_be_used_ends_the_start_with_its_code() {
    let server = serve(Vec::new()).await;
    let url = server.url();
    let cases: [(&[&str], i32, &str); 4] = [
        (&["--scheduler-conf=/does/not/exist.conf"], 2, "/does/not: no such directory"),
        (&["--enable-healthz", "--healthz-address=203.0.113.1:1"], 1, "cannot listen on 203."),
        (
            &[
                "--enable-healthz",
                "--ca-cert-file=/no/ca",
                "--tls-cert-file=b",
                "--tls-private-key-file=c",
            ],
            255,
            "/no/ca: ",
        ),
        (&["--disable-default-scheduler-config", "--scheduler-conf=/dev/null"], 255, "actions"),
    ];
    for (args, code, text) in cases {
        let args = [&["--master", url.as_str(), "--leader-elect=false"], args].concat();
        let output = tokio::task::spawn_blocking({
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            move || scheduler(&args.iter().map(String::as_str).collect::<Vec<_>>())
        });
        let output = output.await.unwrap();
        let reported = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{reported}");
        assert!(reported.contains(text) && reported.contains("hint: "), "{reported}");
    }
    server.stop().await;
}

#[tokio::test]
async fn an_api_server_that_does_not_answer_is_told_and_counted() {
    let sockets = folder("sockets");
    let ports = ["--listen-address=127.0.0.1:0", "--healthz-address=127.0.0.1:0"];
    let args = ["--master=http://127.0.0.1:1", "--enable-metrics", "--enable-healthz"];
    let mut child = Child::start(&[&args[..], &ports].concat(), &sockets);
    let (metrics, health) = (child.address("metrics").await, child.address("health").await);
    let why = child.says("version of the API server not read").await;
    let expected =
        "connection to http://127.0.0.1:1: Connection refused (os error 111); nothing listens";
    assert!(why.contains(expected), "{why}");
    let (_, text) = get(metrics, "/metrics").await;
    let text = String::from_utf8(text).unwrap();
    let series = "rest_client_requests_total{code=\"<error>\",host=\"127.0.0.1:1\",method=\"GET\"}";
    assert!(text.contains(series), "{text}");
    assert_eq!(get(health, "/livez").await.0, 200);
    let (code, text) = get(health, "/readyz").await;
    assert_eq!((code, &*String::from_utf8_lossy(&text)), (503, "not ready: starting\n"));
    child.signal("-TERM").await;
    assert_eq!(child.ended().await.code(), Some(0));
}

#[tokio::test]
async fn an_address_with_the_wrong_scheme_is_told() {
    let server = serve(Vec::new()).await;
    let master = server.url().replace("http://", "https://");
    let mut child = Child::start(&["--master", &master], &folder("sockets"));
    let why = child.says("version of the API server not read").await;
    let expected = format!("connection to {master}: ");
    assert!(why.contains(&expected) && why.contains("it does not speak TLS"), "{why}");
    child.signal("-TERM").await;
    child.ended().await;
    server.stop().await;
}

#[test]
fn check_prints_what_is_in_force_or_exits_1() {
    let conf = concat!(env!("CARGO_MANIFEST_DIR"), "/config/volcano-scheduler.conf");
    let good = scheduler(&["check", "--scheduler-conf", conf]);
    assert_eq!(good.status.code(), Some(0));
    let text = String::from_utf8(good.stdout).unwrap();
    assert!(text.starts_with("actions, in this order:\n  enqueue\n"), "{text}");
    assert_eq!(scheduler(&["check", conf]).stdout, text.as_bytes());
    for args in [&["check"][..], &["check", "--scheduler-conf=/does/not/exist"]] {
        let bad = scheduler(args);
        assert_eq!(bad.status.code(), Some(1));
        assert!(bad.stdout.is_empty());
        assert!(String::from_utf8(bad.stderr).unwrap().contains("hint: "));
    }
    // Not the first argument, so no command: it must not schedule.
    assert_eq!(code(&["--kubeconfig=/does/not/exist", "check"]), 2);
    assert_eq!(code(&["chek", conf]), 2);
    assert_eq!(code(&["--kubeconfig=/does/not/exist", "2>&1"]), 1);
}

#[tokio::test]
async fn core_1_the_binary_binds_and_ends_with_sigterm() {
    let server = serve(gang("train", 2, "1")).await;
    let sockets = folder("sockets");
    let url = server.url();
    let args = ["--master", &url, "--leader-elect=false", "--logtostderr", "-v=3", "2>&1"];
    let child = Child::start(&args, &sockets);
    let is_bound = |pod: &Value| is(pod, "train-1") && pod["spec"]["nodeName"].is_string();
    wait(&server, &PODS, is_bound).await;
    child.signal("-TERM").await;
    assert_eq!(child.ended().await.code(), Some(0));
    server.stop().await;
}

#[tokio::test]
async fn ans_66_without_the_flag_there_is_no_thread_of_the_answers() {
    let server = serve(Vec::new()).await;
    let (sockets, url) = (folder("sockets"), server.url());
    let without = ["--master", &url, "--leader-elect=false"];
    let on = ["--enable-answers", "--answers-auth=off", "--answers-address=127.0.0.1:0"];
    for (flags, expected) in [(&on[..0], &[][..]), (&on[..], &["answers", "answers-2"][..])] {
        let mut child = Child::start(&[&without[..], flags].concat(), &sockets);
        child.says("cycles start").await;
        let of_answers = |name: &String| name.starts_with("answers");
        let threads: Vec<String> = child.threads().into_iter().filter(of_answers).collect();
        assert_eq!(threads, expected);
        child.signal("-TERM").await;
        assert_eq!(child.ended().await.code(), Some(0));
    }
    server.stop().await;
}

#[tokio::test]
async fn core_15_a_signal_dumps_the_cache() {
    let server = serve(gang("train", 2, "1")).await;
    let (sockets, dumps, url) = (folder("sockets"), folder("dumps"), server.url());
    let dir = format!("--cache-dump-dir={}", dumps.display());
    let args = ["--master", &url, "--leader-elect=false", &dir];
    let mut child = Child::start(&args, &sockets);
    wait(&server, &PODS, |pod| is(pod, "train-1") && pod["status"]["phase"] == "Running").await;
    child.signal("-USR1").await;
    let file = child.says("the cache is in ").await;
    let name = file.strip_prefix(dumps.to_str().unwrap()).unwrap();
    let seconds = name.strip_prefix("/snapshot-").unwrap().strip_suffix(".json").unwrap();
    assert!(1_700_000_000 < seconds.parse::<u64>().unwrap());
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 6);
    let nodes = lines[0].as_object().unwrap();
    assert_eq!(nodes.keys().collect::<Vec<_>>(), ["node-0", "node-1"]);
    let used: i64 = nodes.values().map(|node| node["Used"]["MilliCPU"].as_i64().unwrap()).sum();
    assert_eq!(used, 2000);
    assert_eq!(nodes["node-0"]["State"], json!({"Phase": 1, "Reason": ""}));
    assert_eq!(nodes["node-0"]["Allocatable"]["MilliCPU"], 32_000);
    let job = &lines[5]["default/train"];
    assert_eq!((&job["MinAvailable"], &job["Queue"]), (&json!(2), &json!("default")));
    let task = job["Tasks"].as_object().unwrap().values().next().unwrap();
    assert_eq!(task["Resreq"]["MilliCPU"], 1000);
    assert!(task["NodeName"].as_str().unwrap().starts_with("node-"));
    // Into the log; there is one more after that, so the first did not end the process.
    child.signal("-USR2").await;
    child.says("Dump of nodes info in scheduler cache").await;
    child.says("node-0: {").await;
    child.says("Dump of jobs info in scheduler cache").await;
    child.says("default/train: {").await;
    child.says("VmRSS: ").await;
    fs::remove_dir_all(&dumps).unwrap();
    child.signal("-USR1").await;
    let problem = child.says("no dump: ").await;
    assert!(problem.contains("No such file or directory"), "{problem}");
    child.signal("-TERM").await;
    assert_eq!(child.ended().await.code(), Some(0));
    server.stop().await;
}

#[tokio::test]
async fn user_signals_are_ignored_without_a_dumper() {
    let server = serve(gang("train", 1, "1")).await;
    let (sockets, url) = (folder("sockets"), server.url());
    let args = ["--master", &url, "--leader-elect=false", "--cache-dumper=false"];
    let mut child = Child::start(&args, &sockets);
    child.says("cycles start").await;
    child.signal("-USR1").await;
    child.signal("-USR2").await;
    bound(&server, "train-0").await;
    child.signal("-TERM").await;
    assert_eq!(child.ended().await.code(), Some(0));
    server.stop().await;
}

#[tokio::test]
async fn core_16_the_log_level_is_set_over_a_socket() {
    let server = serve(Vec::new()).await;
    let (sockets, url) = (folder("sockets"), server.url());
    let period = "--schedule-period=100ms";
    let args = ["--master", &url, "--leader-elect=false", "-v=1", period];
    let mut child = Child::start(&args, &sockets);
    child.says("cycles start").await;
    let socket = sockets.join("klog-klog.sock");
    poll("the socket", async || UnixStream::connect(&socket).await.ok()).await;
    let ask = async |path: &str| {
        let (code, body) = ask(UnixStream::connect(&socket).await.unwrap(), path).await.unwrap();
        (code, String::from_utf8(body).unwrap())
    };
    let (code, text) = ask("/setlevel?level=0&duration=1s").await;
    assert_eq!(code, 400);
    assert!(text.starts_with("usage: "), "{text}");
    let (code, text) = ask("/setlevel?level=5&duration=1h").await;
    assert_eq!(code, 200);
    assert_eq!(text, "Change klog log level to 5 successfully and  for 1h0m0s\n");
    assert_eq!(ask("/getlevel").await.1, "Current klog log level: 5\n");
    // A cycle is worth a line at this level only.
    child.says("] cycle ").await;
    assert_eq!(ask("/setlevel?level=5&duration=1s").await.0, 200);
    child.says("log level 1 again").await;
    assert_eq!(ask("/getlevel").await.1, "Current klog log level: 1\n");
    server.stop().await;
}

async fn cpu_profiles_can_be_taken(address: SocketAddr) {
    for (query, wanted) in [("seconds=60", 400), ("seconds=x", 400)] {
        let (code, _) = get(address, &format!("/debug/pprof/profile?{query}")).await;
        assert_eq!(code, wanted);
    }
    // Long enough for the other one to come meanwhile.
    let profile = || get(address, "/debug/pprof/profile?seconds=3");
    let (one, other) = tokio::join!(profile(), profile());
    let mut codes = [one.0, other.0];
    codes.sort_unstable();
    assert_eq!(codes, [200, 500]);
    let body = if one.0 == 200 { one.1 } else { other.1 };
    let has = |text: &[u8]| body.windows(text.len()).any(|window| window == text);
    assert!(has(b"\x32\x0bnanoseconds"), "{} bytes", body.len());
}

#[tokio::test]
async fn profiles_can_be_taken_one_at_a_time() {
    let server = serve(Vec::new()).await;
    let (sockets, url) = (folder("sockets"), server.url());
    let args = [
        "--master",
        &url,
        "--leader-elect=false",
        "--enable-pprof",
        "--listen-address=127.0.0.1:0",
    ];
    let mut child = Child::start(&args, &sockets);
    let address = child.address("metrics").await;
    if cfg!(feature = "cpu-profiles") {
        cpu_profiles_can_be_taken(address).await;
    } else {
        let (code, text) = get(address, "/debug/pprof/profile").await;
        let text = String::from_utf8(text).unwrap();
        assert!(code == 404 && text.contains("feature cpu-profiles"), "{code} {text:?}");
    }
    let paths = ["/debug/pprof/heap", "/debug/pprof/allocs"];
    for path in paths.into_iter().filter(|_| cfg!(feature = "heap-profiles")) {
        let (code, heap) = get(address, path).await;
        assert_eq!(code, 200);
        let has = |text: &str| heap.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(has("inuse_space") && has("tokio"), "{} bytes", heap.len());
    }
    let (code, line) = get(address, "/debug/pprof/cmdline").await;
    let line = String::from_utf8(line).unwrap();
    assert!(code == 200 && line.contains("\0--enable-pprof\0"), "{code} {line:?}");
    server.stop().await;
}

#[tokio::test]
async fn the_shipped_deployment_works_with_the_binary() {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "volcano-system"}});
    let server = serve([vec![namespace], gang("train", 2, "1")].concat()).await;
    let (sockets, url, deployment) = (folder("sockets"), server.url(), deployment());
    let conf =
        concat!("--scheduler-conf=", env!("CARGO_MANIFEST_DIR"), "/config/volcano-scheduler.conf");
    let mut args: Vec<&str> =
        deployment["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    // What differs here from a cluster.
    args.extend(["--master", &url, conf]);
    args.extend(["--healthz-address=127.0.0.1:0", "--listen-address=127.0.0.1:0"]);
    let mut child = Child::start(&args, &sockets);
    let metrics = child.address("metrics").await;
    let ports = BTreeMap::from([("metrics", metrics), ("health", child.address("health").await)]);
    for probe in ["livenessProbe", "readinessProbe"] {
        let probe = &deployment[probe]["httpGet"];
        let port = ports[probe["port"].as_str().unwrap()];
        answers(port, probe["path"].as_str().unwrap()).await;
    }
    bound(&server, "train-1").await;
    for line in [
        "volcano_e2e_scheduling_latency_milliseconds_bucket{le=\"1.5656065579430964\"} ",
        "volcano_objects{kind=\"pods\"} 2",
        "volcano_api_writes_total{code=\"201\",resource=\"leases\",verb=\"create\"} 1",
    ] {
        // Nobody waits for metrics, not even a bind.
        poll(line, async || {
            let (_, text) = get(metrics, "/metrics").await;
            String::from_utf8(text).unwrap().contains(line).then_some(())
        })
        .await;
    }
    child.signal("-TERM").await;
    assert_eq!(child.ended().await.code(), Some(0));
    let lease = wait(&server, &LEASES, |lease| lease["spec"]["holderIdentity"] == "").await;
    assert_eq!(lease["spec"]["leaseDurationSeconds"], 1);
    server.stop().await;
}

/// The container of the shipped Deployment.
fn deployment() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/manifests/30-deployment.yaml");
    let text = fs::read_to_string(path).unwrap();
    let object: Value = serde_yaml::from_str(&text).unwrap();
    object["spec"]["template"]["spec"]["containers"][0].clone()
}

/// As a kubelet probes.
async fn answers(address: SocketAddr, path: &str) {
    let ok = async || (get(address, path).await.0 == 200).then_some(());
    poll(&format!("{path} answers 200"), ok).await;
}
