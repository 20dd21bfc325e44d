//! The case of `kubectl vc why NAME --local` (docs/spec/answers.md 13, ANS-92): how long it takes to list
//! a cluster and to answer, and how much memory the process of the user takes for it.

use std::fs;
use std::pin::pin;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tokio::process::Command;
use tokio::time::timeout;
use vc_sim::load::{SchedulerProcess, Workload};

use crate::answers::create_asked;
use crate::cases::judged;
use crate::large::{self, Size};
use crate::server::{Server, directory};
use crate::{Context, Figure};

/// How long the answer may take.
const LIMIT: Duration = Duration::from_secs(300);
/// From one look at the peak of the process to the next.
const POLL: Duration = Duration::from_millis(10);

/// What an answer has cost.
struct LocalCost {
    time: Duration,
    peak_mib: f64,
}

/// One question about a cluster in which pods run and gangs wait.
pub(crate) async fn local(context: &Context, size: &Size) -> anyhow::Result<Vec<Figure>> {
    let nodes = Workload { nodes: size.nodes, ..Workload::default() };
    let (server, client) = Server::with(context.kind, &nodes).await?;
    large::put_running(&server, size)?;
    // Each pod requests all CPUs of a node. Only one node is free, and each gang has ten pods.
    create_asked(&client, context, 64).await?;
    large::warm(&client).await?;
    let LocalCost { time, peak_mib } = ask(context, &server).await?;
    server.stop().await?;
    let seconds = time.as_secs_f64();
    Ok(vec![
        judged("lists and answer", format!("{seconds:.2} s"), "≤ 15 s", seconds <= 15.0),
        judged("peak memory", format!("{peak_mib:.0} MiB"), "≤ 300 MiB", peak_mib <= 300.0),
    ])
}

async fn ask(context: &Context, server: &Server) -> anyhow::Result<LocalCost> {
    let program = context.scheduler.with_file_name("kubectl-vc");
    ensure!(program.is_file(), "{} is missing: `make kubectl-vc`", program.display());
    let conf = directory("kubectl-vc")?.join("volcano-scheduler.conf");
    fs::write(&conf, vc_conf::CHART)?;
    let start = Instant::now();
    let child = Command::new(program)
        .args(["why", "asked-0", "--namespace=load", "--local"])
        .arg(format!("--kubeconfig={}", server.kubeconfig().display()))
        .arg(format!("--scheduler-conf={}", conf.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let process = SchedulerProcess { pid: child.id().context("kubectl-vc is gone")? };
    let mut ended = pin!(child.wait_with_output());
    let mut peak_mib = 0.0;
    let output = loop {
        match timeout(POLL, ended.as_mut()).await {
            Ok(output) => break output?,
            // A process that has ended, and is not waited for yet, has no peak any more.
            Err(_) => peak_mib = process.peak_mib().unwrap_or(peak_mib),
        }
        ensure!(start.elapsed() < LIMIT, "kubectl-vc does not end");
    };
    let time = start.elapsed();
    let [text, said] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    let is_answer = output.status.success() && text.starts_with("load/asked-0 (");
    ensure!(is_answer && 0.0 < peak_mib, "{text}{said}");
    Ok(LocalCost { time, peak_mib })
}
