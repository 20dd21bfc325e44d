//! The cases whose pods are created through the API, and their targets.

use std::time::{Duration, Instant};

use anyhow::ensure;
use vc_sim::load::{
    BindWatch, Client, LoadReport, PodRate, RequestRate, SchedulerProcess, Workload, WriteCounts,
    bind_all, create_gangs,
};

use crate::scheduler::Scheduler;
use crate::server::{Kind, Server};
use crate::{Context, Figure, answers, large, local, soak};

/// For binds, in one case.
const LIMIT: Duration = Duration::from_secs(600);

pub(crate) struct Case {
    pub(crate) name: &'static str,
    what: What,
    /// Also against the real API server: it does not need a cluster that takes long to fill.
    pub(crate) on_real: bool,
}

#[derive(Clone, Copy)]
enum What {
    /// All pods wait when the scheduler starts.
    Waiting {
        gangs: u32,
        size: u32,
    },
    /// They are created while it runs; per second, if not as fast as possible.
    Arriving {
        gangs: u32,
        size: u32,
        nodes: u32,
        rate: Option<f64>,
        idle: bool,
    },
    /// Nothing fits, nothing changes.
    Quiet {
        gangs: u32,
        size: u32,
    },
    Start(large::Size),
    Memory(large::Size),
    /// The same load for half an hour.
    Soak,
    /// Questions while pods come one by one.
    Interference,
    AnswersHttp,
    AnswersStart(large::Size),
    /// The peak of memory of a process that answers questions.
    AnswersMemory(large::Size),
    /// One question of `kubectl vc why --local`.
    AnswersLocal(large::Size),
}

const fn case(name: &'static str, what: What) -> Case {
    Case { name, what, on_real: true }
}

const fn embedded(name: &'static str, what: What) -> Case {
    Case { name, what, on_real: false }
}

const fn arriving(gangs: u32, size: u32) -> What {
    What::Arriving { gangs, size, nodes: 1000, rate: None, idle: false }
}

pub(crate) const CASES: &[Case] = &[
    case("waiting/20x500", What::Waiting { gangs: 20, size: 500 }),
    case("waiting/500x20", What::Waiting { gangs: 500, size: 20 }),
    case("waiting/10000x1", What::Waiting { gangs: 10_000, size: 1 }),
    case("arriving/20x500", arriving(20, 500)),
    case("arriving/500x20", arriving(500, 20)),
    case("arriving/10000x1", arriving(10_000, 1)),
    case("arriving/250x20", arriving(250, 20)),
    case(
        "idle/1k",
        What::Arriving { gangs: 300, size: 1, nodes: 1000, rate: Some(15.0), idle: true },
    ),
    embedded(
        "idle/5k",
        What::Arriving { gangs: 300, size: 1, nodes: 5000, rate: Some(15.0), idle: true },
    ),
    case("soak", What::Soak),
    case("quiet/400x20", What::Quiet { gangs: 400, size: 20 }),
    embedded("start/5k-150k", What::Start(large::START)),
    embedded("memory/10k-200k", What::Memory(large::MEMORY)),
    embedded("memory/10k-200k-answers", What::AnswersMemory(large::MEMORY)),
    embedded("answers/interference", What::Interference),
    embedded("answers/http", What::AnswersHttp),
    embedded("answers/start", What::AnswersStart(large::START)),
    case("answers/local", What::AnswersLocal(large::ASKED)),
];

impl Case {
    pub(crate) async fn run(&self, context: &Context) -> anyhow::Result<Vec<Figure>> {
        match self.what {
            What::Waiting { gangs, size } => self.waiting(context, gangs, size).await,
            What::Arriving { gangs, size, nodes, rate, idle } => {
                let gangs = gangs.div_ceil(context.part);
                let workload = Workload { nodes, gangs, size, ..Workload::default() };
                self.arriving(context, &workload, rate, idle).await
            }
            What::Quiet { gangs, size } => quiet(context, gangs, size).await,
            What::Start(size) => large::start(context, &size).await,
            What::Memory(size) => large::memory(context, &size).await,
            What::Soak => soak::soak(context, context.soak).await,
            What::Interference => answers::interference(context).await,
            What::AnswersHttp => answers::http(context).await,
            What::AnswersStart(size) => answers::start(context, &size).await,
            What::AnswersMemory(size) => answers::memory(context, &size).await,
            What::AnswersLocal(size) => local::local(context, &size).await,
        }
    }

    async fn waiting(
        &self,
        context: &Context,
        gangs: u32,
        size: u32,
    ) -> anyhow::Result<Vec<Figure>> {
        let gangs = gangs.div_ceil(context.part);
        let workload = Workload { nodes: 1000, gangs, size, ..Workload::default() };
        let (bare, bare_cpu) = bare_loop(context, &workload).await?;
        let (server, client) = Server::with(context.kind, &workload).await?;
        let created =
            create_gangs(&client, &workload, RequestRate::full(context.in_flight)).await?;
        let mut binds = BindWatch::watch(&client, &workload).await?;
        let scheduler = Scheduler::start(context, &server)?;
        ensure!(binds.until(workload.n_pods(), LIMIT).await?, "not all pods are bound");
        let cpu_bound = scheduler.cpu_seconds()?;
        let writes = scheduler.calm().await?;
        let report = LoadReport {
            workload,
            start: scheduler.started,
            created: created.into_iter().map(Some).collect(),
            bound: binds.times(),
            waits: client.waits(),
            cpu_seconds: Some(scheduler.cpu_seconds()?),
            peak_mib: scheduler.process().peak_mib(),
            writes: Some(writes),
        };
        drop(scheduler);
        server.stop().await?;
        self.draw(context, &report)?;
        let pace = report.binding();
        let ratio = pace.rate() / bare;
        let mut figures = vec![plain("bare bind loop", format!("{bare:.0}/s"))];
        figures.extend(bare_cpu.map(|cpu| plain("CPU of the bare loop", format!("{cpu:.3} ms"))));
        figures.extend([
            plain("binds", format!("{:.0}/s", pace.rate())),
            judged("of the bare loop", format!("{ratio:.2}"), "≥ 0.75", 0.75 <= ratio),
            plain("start to first bind", format!("{:.2} s", pace.first)),
            plain("start to last bind", format!("{:.2} s", pace.last)),
        ]);
        figures.extend(costs(&report, cpu_bound, false));
        Ok(figures)
    }

    async fn arriving(
        &self,
        context: &Context,
        workload: &Workload,
        rate: Option<f64>,
        idle: bool,
    ) -> anyhow::Result<Vec<Figure>> {
        let (server, client) = Server::with(context.kind, workload).await?;
        let scheduler = Scheduler::start(context, &server)?;
        scheduler.ready().await?;
        let mut binds = BindWatch::watch(&client, workload).await?;
        let (cpu, writes) = (scheduler.cpu_seconds()?, scheduler.writes().await?);
        let start = Instant::now();
        let pressure = RequestRate { in_flight: context.in_flight, rate };
        let created = create_gangs(&client, workload, pressure).await?;
        ensure!(binds.until(workload.n_pods(), LIMIT).await?, "not all pods are bound");
        let cpu_bound = scheduler.cpu_seconds()? - cpu;
        let after = scheduler.calm().await?;
        let report = LoadReport {
            workload: workload.clone(),
            start,
            created: created.into_iter().map(Some).collect(),
            bound: binds.times(),
            waits: client.waits(),
            cpu_seconds: Some(scheduler.cpu_seconds()? - cpu),
            peak_mib: scheduler.process().peak_mib(),
            writes: Some(after.since(&writes)),
        };
        drop(scheduler);
        server.stop().await?;
        self.draw(context, &report)?;
        Ok(arrival_figures(&report, cpu_bound, idle))
    }

    fn draw(&self, context: &Context, report: &LoadReport) -> anyhow::Result<()> {
        if let Some(dir) = &context.plots {
            std::fs::create_dir_all(dir)?;
            let name = format!("{:?}-{}.svg", context.kind, self.name).to_lowercase();
            std::fs::write(dir.join(name.replace('/', "-")), report.svg())?;
        }
        Ok(())
    }
}

pub(crate) fn plain(name: &'static str, value: String) -> Figure {
    Figure { name, value, target: "", holds: None }
}

pub(crate) fn judged(
    name: &'static str,
    value: String,
    target: &'static str,
    holds: bool,
) -> Figure {
    Figure { name, value, target, holds: Some(holds) }
}

/// Binds per second of as many clients without a scheduler, and their CPU time per pod in ms, the
/// watch of the pods included; the embedded server runs in the same process, so there is none then.
async fn bare_loop(context: &Context, workload: &Workload) -> anyhow::Result<(f64, Option<f64>)> {
    let this = SchedulerProcess { pid: std::process::id() };
    let (server, client) = Server::with(context.kind, workload).await?;
    create_gangs(&client, workload, RequestRate::full(context.in_flight)).await?;
    let mut binds = BindWatch::watch(&client, workload).await?;
    let (start, cpu) = (Instant::now(), this.cpu_seconds());
    bind_all(&client, workload, context.in_flight).await?;
    ensure!(binds.until(workload.n_pods(), LIMIT).await?, "not all pods are seen bound");
    let cpu = { this.cpu_seconds().zip(cpu) }.filter(|_| context.kind == Kind::Real);
    let mut seconds: Vec<f64> = { binds.times().into_iter().flatten() }
        .map(|at| at.saturating_duration_since(start).as_secs_f64())
        .collect();
    seconds.sort_by(f64::total_cmp);
    let (first, last) = (seconds.first().copied(), seconds.last().copied());
    server.stop().await?;
    let (n_pods, first, last) = (seconds.len(), first.unwrap_or(0.0), last.unwrap_or(0.0));
    let per_pod = cpu.map(|(after, before)| (after - before) * 1000.0 / n_pods.max(1) as f64);
    Ok((PodRate { n_pods, first, last }.rate(), per_pod))
}

fn arrival_figures(report: &LoadReport, cpu_bound: f64, idle: bool) -> Vec<Figure> {
    let (created, lag) = (report.creation(), report.lag().unwrap_or(f64::INFINITY));
    let mut figures = vec![
        plain("created", format!("{:.0}/s", created.rate())),
        judged("last bind after last create", format!("{lag:.2} s"), "≤ 3 s", lag <= 3.0),
    ];
    if let Some(waited) = report.waited() {
        let [p50, p99] = [waited.p50, waited.p99].map(|span| span.as_secs_f64() * 1000.0);
        figures.push(plain("created to bound, p50", format!("{p50:.1} ms")));
        let (name, value) = ("created to bound, p99", format!("{p99:.1} ms"));
        figures.push(match idle {
            true => judged(name, value, "≤ 20 ms", p99 <= 20.0),
            false => plain(name, value),
        });
    }
    figures.extend(costs(report, cpu_bound, idle));
    figures
}

/// CPU, memory and writes. What is written after the last bind (statuses, events) counts, too. Of an
/// idle cluster each pod has a cycle of its own, so its CPU has no target.
fn costs(report: &LoadReport, cpu_bound: f64, idle: bool) -> Vec<Figure> {
    let mut figures = Vec::new();
    let n_pods = report.workload.n_pods().max(1) as f64;
    let until = cpu_bound * 1000.0 / n_pods;
    figures.push(plain("CPU per pod until the last bind", format!("{until:.3} ms")));
    if let Some(cpu) = report.cpu_ms_per_pod() {
        let (name, value) = ("CPU per pod", format!("{cpu:.3} ms"));
        figures.push(match idle {
            true => plain(name, value),
            false => judged(name, value, "≤ 0.5 ms", cpu <= 0.5),
        });
    }
    if let (Some(writes), Some(per_pod)) = (&report.writes, report.writes_per_pod()) {
        // Two writes of the queue's status belong to no pod.
        let most = 1.0 + 3.0 / f64::from(report.workload.size) + 10.0 / n_pods;
        let value = format!("{per_pod:.3} ({})", of_resources(writes));
        figures.push(judged("writes per pod", value, "≤ 1 + 3 / size", per_pod <= most));
    }
    if let Some(mib) = report.peak_mib {
        figures.push(plain("peak memory", format!("{mib:.0} MiB")));
    }
    if 0 < report.waits {
        figures.push(plain("429 waited out by the generator", report.waits.to_string()));
    }
    figures
}

fn of_resources(writes: &WriteCounts) -> String {
    let each = writes.by_resource.iter().map(|(resource, count)| format!("{resource} {count}"));
    each.collect::<Vec<_>>().join(", ")
}

/// Pods that ask for more than any node has: after the first round nothing is to be written.
async fn quiet(context: &Context, gangs: u32, size: u32) -> anyhow::Result<Vec<Figure>> {
    let cpu = "65".to_owned();
    let workload = Workload { nodes: 1000, gangs, size, cpu, ..Workload::default() };
    let (server, client): (Server, Client) = Server::with(context.kind, &workload).await?;
    create_gangs(&client, &workload, RequestRate::full(context.in_flight)).await?;
    let scheduler = Scheduler::start(context, &server)?;
    scheduler.ready().await?;
    // A busy machine may be calm before the first cycle: every pod is told once why it waits.
    let reported =
        |writes: &WriteCounts| writes.by_resource.get("pods/status").copied().unwrap_or(0);
    let start = Instant::now();
    while reported(&scheduler.writes().await?) < workload.n_pods() as u64 && start.elapsed() < LIMIT
    {
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    scheduler.calm().await?;
    let (cpu, before) = (scheduler.cpu_seconds()?, scheduler.writes().await?);
    tokio::time::sleep(context.quiet).await;
    let after = scheduler.writes().await?;
    let cpu = scheduler.cpu_seconds()? - cpu;
    let written = after.since(&before);
    drop(scheduler);
    server.stop().await?;
    let seconds = context.quiet.as_secs_f64();
    Ok(vec![
        plain("pending pods", workload.n_pods().to_string()),
        plain("writes before", of_resources(&before)),
        judged(
            "writes",
            format!("{} and {} events in {seconds} s", written.n_objects(), written.n_events()),
            "0",
            written.n_objects() + written.n_events() == 0,
        ),
        plain("CPU", format!("{:.1} % of a core", cpu / seconds * 100.0)),
    ])
}
