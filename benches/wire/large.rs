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
    pub(crate) nodes: u32,
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
    first_bind_then(context, size, flags, async |_: &Client| Ok(())).await
}

/// Measures what [`first_bind`] does. Before the peak is read, `then` is given a client with the rights of an
/// administrator.
pub(crate) async fn first_bind_then(
    context: &Context,
    size: &Size,
    flags: &[String],
    then: impl AsyncFnOnce(&Client) -> anyhow::Result<()>,
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
    then(&client).await?;
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

/// Puts in the whole cluster: nodes, what runs, and the pod that waits.
pub(crate) fn fill(store: &Store, size: &Size) -> anyhow::Result<()> {
    let nodes = Workload { nodes: size.nodes, ..Workload::default() };
    let surroundings = nodes.surroundings().into_iter().map(|made| made.body);
    put(store, surroundings.chain((0..size.nodes).map(|number| nodes.node(number).body)))?;
    put(store, running(size))?;
    // Whatever is left of a full node holds no pod that needs a whole one.
    let late = Workload { cpu: "64".to_owned(), ..gangs("late", 1, 1) };
    put(store, [late.pod_group(0).body, late.pod(0, 0).body].into_iter())?;
    let count = |kind| store.list(kind, None).objects.len();
    let there = (count(&NODES), count(&PODS), count(&POD_GROUPS));
    let wanted = (size.nodes as usize, size.pods as usize + 1, size.groups as usize + 1);
    ensure!(there == wanted, "the server has {there:?}");
    Ok(())
}

/// Puts what runs into a server that has the nodes.
pub(crate) fn put_running(server: &Server, size: &Size) -> anyhow::Result<()> {
    match server {
        Server::Embedded(embedded) => put(embedded.store(), running(size)),
        Server::Real(real) => in_batches(running(size), |batch| real.seed(batch)),
    }
}

/// Gangs of two sizes that differ by one, so that pods and groups are as many as asked for.
fn running(size: &Size) -> impl Iterator<Item = Value> + use<> {
    let (small, n_large) = (size.pods / size.groups, size.pods % size.groups);
    let n_small = size.groups - n_large;
    let (full, n_before) = (size.nodes - 1, n_small * small);
    let of_small = running_gangs(gangs("small", n_small, small), full, 0);
    of_small.chain(running_gangs(gangs("large", n_large, small + 1), full, n_before))
}

/// PodGroups, then their pods, each on the next node. `n_before` pods of other gangs have nodes already.
fn running_gangs(workload: Workload, n_nodes: u32, n_before: u32) -> impl Iterator<Item = Value> {
    let (n_gangs, size) = (workload.gangs, workload.size);
    let of_groups = workload.clone();
    let groups = (0..n_gangs).map(move |gang| of_groups.running_pod_group(gang));
    let pods = (0..n_gangs * size).map(move |number| {
        let node = (n_before + number + 1) % n_nodes;
        workload.running_pod(number / size, number % size, node)
    });
    groups.chain(pods)
}

fn gangs(prefix: &str, gangs: u32, size: u32) -> Workload {
    Workload { nodes: 0, gangs, size, prefix: prefix.to_owned(), ..Workload::default() }
}

fn put(store: &Store, objects: impl Iterator<Item = Value>) -> anyhow::Result<()> {
    in_batches(objects, |batch| {
        let refused = store.load(batch);
        ensure!(refused.is_empty(), "{refused:?}");
        Ok(())
    })
}

fn in_batches(
    mut objects: impl Iterator<Item = Value>,
    put: impl Fn(Vec<Value>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    loop {
        let batch: Vec<Value> = objects.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            return Ok(());
        }
        put(batch)?;
    }
}

/// A server that has run for a while has its objects as text.
pub(crate) async fn warm(client: &Client) -> anyhow::Result<()> {
    for path in ["/api/v1/pods", "/api/v1/nodes", "/apis/scheduling.volcano.sh/v1beta1/podgroups"] {
        client.connection().skim(path).await?;
    }
    Ok(())
}
