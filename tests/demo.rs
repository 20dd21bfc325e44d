//! The demo end to end: the embedded API server, the scheduler as a process of its own, and the
//! workload that ships, eight times as fast. Every gang that can run has run at its end.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use vc_sim::demo::manifests::Workload;
use vc_sim::demo::{DemoError, DemoOptions, run};

/// Only so that a demo that never settles fails instead of hanging.
const HANG: Duration = Duration::from_secs(120);

fn options(scheduler: impl Into<PathBuf>) -> DemoOptions {
    DemoOptions {
        workload: Workload::Gangs,
        scheduler: Some(scheduler.into()),
        scheduler_conf: None,
        nodes: 12,
        plain: true,
        svg: None,
        speed: 8.0,
        timeout: HANG,
        keep: false,
        verbose: false,
    }
}

#[tokio::test]
async fn the_demo_runs_to_its_summary() {
    let mut out = Vec::new();
    let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join("demo.svg");
    let svg = Some(picture.clone());
    let options = DemoOptions { svg, ..options(env!("CARGO_BIN_EXE_vc-scheduler")) };
    let summary = run(&options, &mut out).await.unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(summary.settled, "{text}");
    assert_eq!((summary.pods_bound, summary.pods), (128, 130), "{text}");
    assert_eq!((summary.gangs_complete, summary.gangs), (10, 11), "{text}");
    assert!(summary.time_to_bind.is_some() && summary.refused.is_empty(), "{text}");
    let [giant] = &summary.waiting[..] else { panic!("{text}") };
    assert_eq!((giant.what.as_str(), giant.pods), ("gang giant", 2), "{text}");
    assert!(giant.reason.contains("12 Insufficient cpu"), "{text}");
    // The page shows a picture that the same command has made: the same names and the same figures.
    let shown = include_str!("../docs/demo.svg");
    for picture in [shown, &std::fs::read_to_string(picture).unwrap()] {
        for part in ["research", "product", "sweep", "12 nodes", "128 of 130", "10 of 11"] {
            assert!(picture.contains(&part.replace(' ', "\u{a0}")), "{part}: {picture}");
        }
    }
    for line in [
        "queue research: weight 3",
        "gang resnet created: min 16, queue research",
        "gang resnet complete: 16 pods in ",
        "gang giant waits: ",
        "gang llm complete: 24 pods in ",
        "gang sweep done after ",
        "settled after ",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

/// The scheduler of a demo that is kept says why the giant waits, in a terminal and to the page.
#[tokio::test]
async fn a_demo_that_is_kept_can_be_asked() {
    let scheduler = Path::new(env!("CARGO_BIN_EXE_vc-scheduler"));
    let mut demo = Command::new(scheduler.with_file_name("vcsim"))
        .args(["demo", "--plain", "--fast", "--keep", "--timeout", "120"])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the workspace is built");
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let mut ask = None;
    while let Some(line) = tokio::time::timeout(HANG, lines.next_line()).await.unwrap().unwrap() {
        if let Some(command) = line.strip_prefix("ask              kubectl-vc ") {
            ask = Some(command.to_owned());
        }
        if line == "kept until Ctrl-C" {
            break;
        }
    }
    let ask = ask.expect("the demo says how to ask");
    let kubectl_vc = Command::new(scheduler.with_file_name("kubectl-vc"))
        .args(ask.split(' '))
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&kubectl_vc.stdout).into_owned();
    let why =
        "WHY      NeverFits: no eligible node is large enough: 48 cpu asked, 32 on the largest";
    let unblock = "UNBLOCK  you    ask for at most 32 cpu a pod";
    for line in [why, "12 nodes  lack room: cpu", unblock] {
        assert!(
            said.contains(line),
            "{line}: {said}{}",
            String::from_utf8_lossy(&kubectl_vc.stderr)
        );
    }
    assert!(said.lines().count() < 24, "one screen: {said}");
    let pid = rustix::process::Pid::from_raw(demo.id().unwrap().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert!(demo.wait().await.unwrap().success());
}

/// A gang that is larger than any rack waits for ever; all others have run in a rack or the hall.
#[tokio::test]
async fn the_demo_of_the_network_topology_runs_to_its_summary() {
    let mut out = Vec::new();
    let workload = Workload::Topology;
    let options = DemoOptions { workload, ..options(env!("CARGO_BIN_EXE_vc-scheduler")) };
    let summary = run(&options, &mut out).await.unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(summary.settled, "{text}");
    assert_eq!((summary.pods_bound, summary.pods), (70, 90), "{text}");
    assert_eq!((summary.gangs_complete, summary.gangs), (5, 6), "{text}");
    assert!(summary.refused.is_empty(), "{text}");
    let [giant] = &summary.waiting[..] else { panic!("{text}") };
    assert_eq!((giant.what.as_str(), giant.pods), ("gang giant", 20), "{text}");
    let why = "too little cpu even when empty. Allow a higher tier in spec.networkTopology";
    assert!(giant.reason.contains(why), "{text}");
    // Four nodes are a rack. A slow machine tells of a gang in several lines.
    for gang in ["allreduce", "finetune"] {
        let of_gang = format!(" of {gang} to ");
        let places: Vec<&str> =
            text.lines().filter_map(|line| line.split_once(&of_gang)).map(|it| it.1).collect();
        let is_rack = |place: &&str| {
            place.starts_with("node-")
                || ["2", "3", "4"].iter().any(|n| place.starts_with(&format!("{n} nodes")))
        };
        assert!(!places.is_empty() && places.iter().all(is_rack), "{gang}: {text}");
    }
}

#[tokio::test]
async fn nothing_starts_without_a_scheduler() {
    let error = run(&options("/nowhere/vc-scheduler"), &mut Vec::new()).await.unwrap_err();
    assert!(
        matches!(&error, DemoError::Missing(path) if path == Path::new("/nowhere/vc-scheduler"))
    );
    assert!(error.to_string().contains("\nhint: "), "{error}");
}

#[tokio::test]
async fn a_scheduler_that_ends_is_reported_with_its_last_words() {
    // This program does not know the flags of a scheduler and says so.
    let program = std::env::current_exe().unwrap();
    let error = run(&options(program), &mut Vec::new()).await.unwrap_err();
    let DemoError::Ended { status, tail } = error else { panic!("{error}") };
    assert!(!status.success() && tail.contains("master"), "{status}: {tail}");
}
