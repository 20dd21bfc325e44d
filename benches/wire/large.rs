//! The cases of a large cluster that exists before the scheduler starts: time to the first bind,
//! which has only one right answer, and memory.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;
use vc_sim::load::{Client, Workload};
use vc_sim::serve::{NODES, POD_GROUPS, PODS, Store};

use crate::cases::{judged, plain};
use crate::scheduler::Scheduler;
use crate::server::{Kind, Server};
use crate::{Context, Figure};

/// A cluster whose pods run, in gangs of `pods / groups` on average.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    nodes: u32,
    pods: u32,
    groups: u32,
}

pub(crate) const START: Size = Size { nodes: 5000, pods: 150_000, groups: 87_000 };
/// Of the cases about answers.
pub(crate) const ASKED: Size = Size { nodes: 5000, pods: 50_000, groups: 5_000 };
pub(crate) const MEMORY: Size = Size { nodes: 10_000, pods: 200_000, groups: 50_000 };

/// Objects that are put in at once.
const BATCH: usize = 2000;
const LIMIT: Duration = Duration::from_secs(180);
/// How long the scheduler is watched after its first decision, for its peak.
const AFTER: Duration = Duration::from_secs(5);

pub(crate) async fn start(context: &Context, size: &Size) -> anyhow::Result<Vec<Figure>> {
    let seen = first_bind(context, size, &[]).await?;
    let seconds = seen.first_bind.as_secs_f64();
    Ok(vec![
        plain("the server is filled in", format!("{:.1} s", seen.filled.as_secs_f64())),
        judged("start to first right bind", format!("{seconds:.2} s"), "≤ 3 s", seconds <= 3.0),
        plain("CPU until then", format!("{:.2} s", seen.cpu_seconds)),
        plain("peak memory", format!("{:.0} MiB", seen.peak_mib)),
    ])
}

pub(crate) async fn memory(context: &Context, size: &Size) -> anyhow::Result<Vec<Figure>> {
    let seen = first_bind(context, size, &[]).await?;
    let (mib, seconds) = (seen.peak_mib, seen.first_bind.as_secs_f64());
    Ok(vec![
        judged("peak memory", format!("{mib:.0} MiB"), "≤ 512 MiB", mib <= 512.0),
        plain("start to first right bind", format!("{seconds:.2} s")),
        plain("CPU until then", format!("{:.2} s", seen.cpu_seconds)),
    ])
}

/// What was seen of a start.
pub(crate) struct FirstBind {
    filled: Duration,
    pub(crate) first_bind: Duration,
    cpu_seconds: f64,
    pub(crate) peak_mib: f64,
}

/// Every node but the last is full of running pods, and one pod waits that needs a whole node.
pub(crate) async fn first_bind(
    context: &Context,
    size: &Size,
    flags: &[String],
) -> anyhow::Result<FirstBind> {
    let start = Instant::now();
    let server = Server::start(Kind::Embedded).await?;
    let Server::Embedded(embedded) = &server else { unreachable!("it was asked for") };
    fill(embedded.store(), size)?;
    let client = Client::new(server.access()?);
    warm(&client).await?;
    let filled = start.elapsed();
    let mut bound = embedded.store().subscribe(&PODS);
    let scheduler = Scheduler::start_with(context, &server, flags)?;
    let node = loop {
        let events = tokio::time::timeout(LIMIT, bound.next()).await.context("nothing is bound")?;
        let mine = |value: &Value| value["metadata"]["name"] == "late-0-worker-0";
        let values = events?.into_iter().map(|event| event.object.value.clone());
        let node = { values }.filter(mine).map(|pod| pod["spec"]["nodeName"].clone()).next_back();
        if let Some(node) = node.filter(Value::is_string) {
            break node;
        }
    };
    let (first_bind, cpu_seconds) = (scheduler.started.elapsed(), scheduler.cpu_seconds()?);
    ensure!(node == last_node(size), "bound to {node}, which is full");
    tokio::time::sleep(AFTER).await;
    let peak_mib = scheduler.process().peak_mib().context("the scheduler is gone")?;
    drop(scheduler);
    if !context.hold.is_zero() {
        eprintln!("the cluster is served for a while: {}", embedded.url());
        tokio::time::sleep(context.hold).await;
    }
    server.stop().await?;
    Ok(FirstBind { filled, first_bind, cpu_seconds, peak_mib })
}

fn last_node(size: &Size) -> String {
    format!("node-{:05}", size.nodes - 1)
}

/// Gangs of two sizes that differ by one, so that pods and groups are as many as asked for.
pub(crate) fn fill(store: &Store, size: &Size) -> anyhow::Result<()> {
    let (small, n_large) = (size.pods / size.groups, size.pods % size.groups);
    let n_small = size.groups - n_large;
    // Whatever is left of a full node holds no pod that needs a whole one.
    let of = |prefix: &str, gangs, size| Workload {
        nodes: 0,
        gangs,
        size,
        prefix: prefix.to_owned(),
        ..Workload::default()
    };
    let (small, large) = (of("small", n_small, small), of("large", n_large, small + 1));
    let nodes = Workload { nodes: size.nodes, ..Workload::default() };
    let full = size.nodes - 1;
    let mut next = 0;
    let mut place = || {
        next = (next + 1) % full;
        next
    };
    let surroundings = nodes.surroundings().into_iter().map(|made| made.body);
    put(store, surroundings.chain((0..size.nodes).map(|number| nodes.node(number).body)))?;
    for workload in [&small, &large] {
        put(store, (0..workload.gangs).map(|gang| workload.running_pod_group(gang)))?;
        let pods = (0..workload.gangs).flat_map(|gang| (0..workload.size).map(move |i| (gang, i)));
        put(store, pods.map(|(gang, index)| workload.running_pod(gang, index, place())))?;
    }
    let late = Workload { cpu: "64".to_owned(), ..of("late", 1, 1) };
    put(store, [late.pod_group(0).body, late.pod(0, 0).body].into_iter())?;
    let count = |kind| store.list(kind, None).objects.len();
    let there = (count(&NODES), count(&PODS), count(&POD_GROUPS));
    let wanted = (size.nodes as usize, size.pods as usize + 1, size.groups as usize + 1);
    ensure!(there == wanted, "the server has {there:?}");
    Ok(())
}

fn put(store: &Store, mut objects: impl Iterator<Item = Value>) -> anyhow::Result<()> {
    loop {
        let batch: Vec<Value> = objects.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            return Ok(());
        }
        let refused = store.load(batch);
        ensure!(refused.is_empty(), "{refused:?}");
    }
}

/// A server that has run for a while has its objects as text.
async fn warm(client: &Client) -> anyhow::Result<()> {
    for path in ["/api/v1/pods", "/api/v1/nodes", "/apis/scheduling.volcano.sh/v1beta1/podgroups"] {
        client.connection().skim(path).await?;
    }
    Ok(())
}
