//! The cases about answers (docs/spec/answers.md 19): what asking costs those who wait for a bind, how many
//! questions are answered over HTTP, what answers add to a start, and how much memory the process takes.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use vc_sim::load::{
    ApiConnection, BindWatch, Client, LoadAccess, LoadObject, RequestRate, Workload, create_gangs,
};
use vc_sim::soak::Latency;

use crate::cases::{judged, plain};
use crate::large::{self, Size};
use crate::scheduler::Scheduler;
use crate::server::{Kind, Server};
use crate::{Context, Figure};

const BASE: &str = "/apis/answers.volcano.sh/v1";
/// Number of gangs that are asked about. They wait, as no node has room for their pods.
const ASKED: u32 = 100;
/// For the binds of a case, and for the first answer.
const LIMIT: Duration = Duration::from_secs(300);
/// From one attempt to get a first answer to the next.
const POLL: Duration = Duration::from_millis(250);
/// Time in which 200 explanations a second are asked for.
const ASKING: Duration = Duration::from_secs(20);

/// Questions that are asked at a fixed rate, or a lower one if answers take longer.
#[derive(Clone, Copy)]
struct QuestionPace {
    /// Connections, each with a question at a time.
    connections: u32,
    /// Questions per second of all of them.
    per_second: u32,
    what: Asked,
}

#[derive(Clone, Copy)]
enum Asked {
    Explanation,
    WhatIf,
}

const EXPLANATIONS: QuestionPace =
    QuestionPace { connections: 8, per_second: 50, what: Asked::Explanation };
const WHAT_IFS: QuestionPace = QuestionPace { connections: 2, per_second: 5, what: Asked::WhatIf };
const MANY: QuestionPace =
    QuestionPace { connections: 16, per_second: 200, what: Asked::Explanation };

impl QuestionPace {
    /// Starts a task for each connection. It asks for this time, and returns how long each answer took, in
    /// microseconds.
    fn start(self, client: &Client, time: Duration) -> JoinSet<anyhow::Result<Vec<u64>>> {
        let pace = Duration::from_secs(1) * self.connections / self.per_second;
        let mut tasks = JoinSet::new();
        for first in 0..self.connections {
            let mut connection = client.connection();
            tasks.spawn(async move {
                let (mut ticks, end) = (interval(pace), Instant::now() + time);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                let (mut micros, mut number) = (Vec::new(), first);
                while Instant::now() < end {
                    ticks.tick().await;
                    let start = Instant::now();
                    self.what.ask(&mut connection, number % ASKED).await?;
                    micros.push(u64::try_from(start.elapsed().as_micros())?);
                    number += self.connections;
                }
                Ok(micros)
            });
        }
        tasks
    }
}

impl Asked {
    async fn ask(self, connection: &mut ApiConnection, number: u32) -> anyhow::Result<()> {
        match self {
            Self::Explanation => {
                let path = format!("{BASE}/namespaces/load/explanations/asked-{number}");
                connection.get(&path).await?;
            }
            Self::WhatIf => {
                let changes = json!([{"addNodes": {"like": "node-00000", "count": 10}}]);
                let body = json!({"apiVersion": "answers.volcano.sh/v1", "kind": "WhatIf",
                    "spec": {"changes": changes}});
                connection.create(&LoadObject { path: format!("{BASE}/whatifs"), body }).await?;
            }
        }
        Ok(())
    }
}

/// The flags of a scheduler that answers at a port, and somebody who may ask there.
fn answering() -> anyhow::Result<(Vec<String>, Client)> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let flags = [
        "--enable-answers".to_owned(),
        "--answers-auth=off".to_owned(),
        format!("--answers-address=127.0.0.1:{port}"),
    ];
    let access = LoadAccess::plain(&format!("http://127.0.0.1:{port}"))?;
    Ok((flags.into(), Client::new(access)))
}

/// Creates the gangs that the questions are about. Each pod requests `cpus` CPUs.
pub(crate) async fn create_asked(
    client: &Client,
    context: &Context,
    cpus: u32,
) -> anyhow::Result<()> {
    let (prefix, cpu) = ("asked".to_owned(), cpus.to_string());
    let asked = Workload { gangs: ASKED, size: 10, prefix, cpu, ..Workload::default() };
    create_gangs(client, &asked, RequestRate::full(context.in_flight)).await?;
    Ok(())
}

/// Waits until each of them has been explained once.
async fn first_answers(client: &Client) -> anyhow::Result<()> {
    let (mut connection, start) = (client.connection(), Instant::now());
    for number in 0..ASKED {
        while let Err(error) = Asked::Explanation.ask(&mut connection, number).await {
            ensure!(start.elapsed() < LIMIT, "no answer: {error}");
            tokio::time::sleep(POLL).await;
        }
    }
    Ok(())
}

/// One pod at a time on 5,000 nodes, without questions and with them.
pub(crate) async fn interference(context: &Context) -> anyhow::Result<Vec<Figure>> {
    let (without, _) = one_by_one(context, &[]).await?;
    let (with, asked) = one_by_one(context, &[EXPLANATIONS, WHAT_IFS]).await?;
    let most = without.p99_micros * 11 / 10 + 1_000;
    let [p99, p99_with] = [without, with].map(|it| it.p99_micros as f64 / 1_000.0);
    let mut figures = vec![
        plain("created to bound, p99, nobody asks", format!("{p99:.1} ms")),
        judged(
            "created to bound, p99, with questions",
            format!("{p99_with:.1} ms"),
            "≤ 1.1 × + 1 ms",
            with.p99_micros <= most,
        ),
    ];
    let names = ["explanations", "what-ifs"];
    figures.extend(names.into_iter().zip(asked).map(|(name, it)| {
        let (n_asked, p99) = (it.count, it.p99_micros as f64 / 1_000.0);
        plain(name, format!("{n_asked}, p99 {p99:.1} ms"))
    }));
    Ok(figures)
}

/// Returns the times from creation to bind, and those of the answers at each pace.
async fn one_by_one(
    context: &Context,
    paces: &[QuestionPace],
) -> anyhow::Result<(Latency, Vec<Latency>)> {
    let gangs = 300_u32.div_ceil(context.part);
    let workload = Workload { nodes: 5_000, gangs, size: 1, ..Workload::default() };
    let (server, client) = Server::with(context.kind, &workload).await?;
    // One more than a node has.
    create_asked(&client, context, 65).await?;
    let (flags, answers) = answering()?;
    let scheduler = Scheduler::start_with(context, &server, &flags)?;
    scheduler.ready().await?;
    first_answers(&answers).await?;
    let mut binds = BindWatch::watch(&client, &workload).await?;
    // So long the pods come.
    let time = Duration::from_secs(gangs.into()) / 15;
    let asking: Vec<_> = paces.iter().map(|it| it.start(&answers, time)).collect();
    let pressure = RequestRate { in_flight: context.in_flight, rate: Some(15.0) };
    let created = create_gangs(&client, &workload, pressure).await?;
    ensure!(binds.until(workload.n_pods(), LIMIT).await?, "not all pods are bound");
    let waits = created.into_iter().zip(binds.times()).filter_map(|(created, bound)| {
        u64::try_from(bound?.saturating_duration_since(created).as_micros()).ok()
    });
    let waits = Latency::of(waits.collect());
    let mut asked = Vec::new();
    for tasks in asking {
        asked.push(durations(tasks).await?);
    }
    drop(scheduler);
    server.stop().await?;
    Ok((waits, asked))
}

async fn durations(mut tasks: JoinSet<anyhow::Result<Vec<u64>>>) -> anyhow::Result<Latency> {
    let mut micros = Vec::new();
    while let Some(done) = tasks.join_next().await {
        micros.extend(done??);
    }
    Ok(Latency::of(micros))
}

/// Explanations on a cluster of 50,000 pods that run.
pub(crate) async fn http(context: &Context) -> anyhow::Result<Vec<Figure>> {
    let server = Server::start(Kind::Embedded).await?;
    let Server::Embedded(embedded) = &server else { unreachable!("it was asked for") };
    large::fill(embedded.store(), &large::ASKED)?;
    // Each pod requests all CPUs of a node, and pods run on every node.
    create_asked(&Client::new(server.access()?), context, 64).await?;
    let (flags, answers) = answering()?;
    let scheduler = Scheduler::start_with(context, &server, &flags)?;
    scheduler.ready().await?;
    first_answers(&answers).await?;
    let start = Instant::now();
    let answered = durations(MANY.start(&answers, ASKING)).await?;
    let per_second = answered.count as f64 / start.elapsed().as_secs_f64();
    let p99 = answered.p99_micros as f64 / 1_000.0;
    let peak = scheduler.process().peak_mib().context("the scheduler is gone")?;
    drop(scheduler);
    server.stop().await?;
    let reached = 0.98 * f64::from(MANY.per_second) <= per_second;
    Ok(vec![
        judged("explanations", format!("{per_second:.0}/s"), "200/s", reached),
        judged("of each, p99", format!("{p99:.1} ms"), "≤ 20 ms", p99 <= 20.0),
        plain("of each, median", format!("{:.1} ms", answered.median_micros as f64 / 1_000.0)),
        plain("peak memory", format!("{peak:.0} MiB")),
    ])
}

/// The first bind on a large cluster, without answers and with them.
pub(crate) async fn start(context: &Context, size: &Size) -> anyhow::Result<Vec<Figure>> {
    let without = large::first_bind(context, size, &[]).await?;
    let (flags, _) = answering()?;
    let with = large::first_bind(context, size, &flags).await?;
    let seconds = [&without, &with].map(|it| it.first_bind.as_secs_f64());
    let ratio = seconds[1] / seconds[0];
    Ok(vec![
        plain("start to first right bind, without answers", format!("{:.2} s", seconds[0])),
        judged(
            "start to first right bind",
            format!("{:.2} s", seconds[1]),
            "≤ 3 s",
            seconds[1] <= 3.0,
        ),
        judged("of that without", format!("{ratio:.2}"), "≤ 1.15", ratio <= 1.15),
        plain(
            "peak memory without, with",
            format!("{:.0}, {:.0} MiB", without.peak_mib, with.peak_mib),
        ),
    ])
}

/// The peak of a process that answers. Its history has the first state.
pub(crate) async fn memory(context: &Context, size: &Size) -> anyhow::Result<Vec<Figure>> {
    let (mut flags, answers) = answering()?;
    flags.push("--answers-history-mib=32".to_owned());
    let seen = large::first_bind_then(context, size, &flags, async |client: &Client| {
        // Each pod requests all CPUs of a node, and pods run on every node.
        create_asked(client, context, 64).await?;
        first_answers(&answers).await?;
        ask_each(&answers).await
    });
    let seen = seen.await?;
    let (mib, seconds) = (seen.peak_mib, seen.first_bind.as_secs_f64());
    Ok(vec![
        judged("peak memory", format!("{mib:.0} MiB"), "≤ 512 MiB", mib <= 512.0),
        plain("start to first right bind", format!("{seconds:.2} s")),
    ])
}

/// Asks when a job starts, what would happen with more nodes, and which jobs wait. The what-if is answered after the
/// state of the history is stored, by the same thread.
async fn ask_each(client: &Client) -> anyhow::Result<()> {
    let (mut connection, start) = (client.connection(), Instant::now());
    let jobs = format!("{BASE}/namespaces/load/explanations");
    // Until a cycle has tried the job, its code is `NextCycle`, which has no start.
    while !connection.get(&format!("{jobs}/asked-0?when=true")).await?["start"].is_object() {
        ensure!(start.elapsed() < LIMIT, "nobody says when the job starts");
        tokio::time::sleep(POLL).await;
    }
    Asked::WhatIf.ask(&mut connection, 0).await?;
    let waiting = connection.get(&jobs).await?;
    let n_waiting = waiting["items"].as_array().map_or(0, Vec::len);
    ensure!(n_waiting == ASKED as usize, "{n_waiting} jobs wait");
    Ok(())
}
