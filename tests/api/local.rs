//! `kubectl vc` asks the process and, with `--local`, the objects of the same cluster. Specification: answers.md 13
//! (ANS-91), case 81.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use tokio::process::Command;
use vc_sim::serve::{ServeOptions, start};

use crate::child::Child;
use crate::cluster::{bound, folder, gang, poll};

const CONF: &str = "actions: \"enqueue, allocate, backfill\"\ntiers:\n- plugins:\n  - name: gang\n  - name: priority\n  \
    - name: predicates\n  - name: proportion\n  - name: nodeorder\n";
/// Fields about the moment of the answer, and what the process remembers (ANS-91).
const OF_THE_MOMENT: [&str; 3] = ["asOf", "history", "waitingSeconds"];

/// The other program of the workspace.
fn kubectl_vc() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_vc-scheduler")).with_file_name("kubectl-vc");
    assert!(path.is_file(), "no {}\nhint: cargo test --workspace builds it", path.display());
    path
}

async fn ask(words: &[&str], way: &[&str]) -> Output {
    let mut command = Command::new(kubectl_vc());
    command.args(words).args(["-o", "json"]).args(way);
    command.output().await.unwrap()
}

/// Returns an answer without what is of the moment.
async fn answer(words: &[&str], way: &[&str]) -> Value {
    let output = ask(words, way).await;
    let said = String::from_utf8_lossy(&output.stderr);
    let parsed = serde_json::from_slice(&output.stdout);
    without_moment(parsed.unwrap_or_else(|error| panic!("{words:?} {way:?}: {error}: {said}")))
}

fn without_moment(mut answer: Value) -> Value {
    match &mut answer {
        Value::Object(fields) => {
            fields.retain(|name, _| !OF_THE_MOMENT.contains(&name.as_str()));
            fields.values_mut().for_each(|value| *value = without_moment(value.take()));
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| *item = without_moment(item.take()))
        }
        _ => {}
    }
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn ans_91_a_settled_cluster_is_answered_alike_with_and_without_its_scheduler() {
    let folder = folder("local");
    let (config, conf) = (folder.join("kubeconfig"), folder.join("scheduler.conf"));
    std::fs::write(&conf, CONF).unwrap();
    let objects = [gang("small", 2, "8"), gang("large", 3, "20"), gang("huge", 1, "1000")];
    let options = ServeOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        nodes: 2,
        objects: objects.concat(),
        write_kubeconfig: Some(config.clone()),
        ..ServeOptions::default()
    };
    let server = start(options).await.unwrap();
    assert!(server.rejected.is_empty(), "{:?}", server.rejected);
    let (config, conf) = (config.to_str().unwrap(), conf.to_str().unwrap());
    let args = [
        &format!("--kubeconfig={config}"),
        &format!("--scheduler-conf={conf}"),
        "--leader-elect=false",
        "--schedule-period=100ms",
        "--enable-answers",
        "--answers-auth=off",
        "--answers-address=127.0.0.1:0",
    ];
    let mut scheduler = Child::start(&args, &folder);
    let url = format!("http://{}", scheduler.address("answers").await);
    let process = ["--server", url.as_str(), "--kubeconfig", config];
    let local = ["--local", "--scheduler-conf", conf, "--kubeconfig", config];
    // It has settled when what fits has its nodes and what does not is explained.
    bound(&server, "small-1").await;
    poll("the cluster has settled", async || {
        let answered = ask(&["why", "-A"], &process).await;
        let list: Value = serde_json::from_slice(&answered.stdout).ok()?;
        let codes = list["items"].as_array()?.iter().map(|it| it["verdict"]["code"].as_str());
        (codes.collect::<Vec<_>>() == [Some("QueueFull"), Some("GangShort")]).then_some(())
    })
    .await;
    let questions: [&[&str]; 12] = [
        &["why"],
        &["why", "-A"],
        &["why", "large"],
        &["why", "podgroup/huge"],
        &["why", "small"],
        &["queues"],
        &["queues", "default"],
        &["line", "default"],
        &["nodes"],
        &["nodes", "node-1"],
        &["hypernodes"],
        &["top"],
    ];
    for words in questions {
        let of_process = answer(words, &process).await;
        let of_lists = answer(words, &local).await;
        assert_eq!(of_process, of_lists, "{words:?}");
    }
    let what_if = ["what-if", "--add-nodes", "node-1=1"];
    assert_eq!(answer(&what_if, &process).await, answer(&what_if, &local).await);
    // What is of the moment is all that differs of these.
    let summary = ask(&["top"], &process).await.stdout;
    assert!(String::from_utf8_lossy(&summary).contains("\"source\": \"daemon\""));
    let summary = ask(&["top"], &local).await.stdout;
    assert!(String::from_utf8_lossy(&summary).contains("\"source\": \"local\""));
    scheduler.signal("-TERM").await;
    assert!(scheduler.ended().await.success());
    server.stop().await;
}
