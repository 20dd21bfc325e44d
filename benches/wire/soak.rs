//! Half an hour of the same load: rounds of gangs come, are bound and deleted, and nothing of the
//! scheduler's process may grow.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tokio::time::{MissedTickBehavior, interval};
use vc_sim::load::{ApiConnection, BindWatch, Client, RequestRate, Workload, create_gangs};
use vc_sim::soak::{Latency, SoakSample, Verdict, csv, svg, table};

use crate::cases::{judged, plain};
use crate::scheduler::Scheduler;
use crate::server::Server;
use crate::{Context, Figure};

const NODES: u32 = 100;
const GANGS: u32 = 20;
const SIZE: u32 = 5;
/// From one round to the next.
const ROUND: Duration = Duration::from_secs(5);
/// The same in the first tenth: what is remembered of pods that are gone is full after some 10,000 of them.
const FIRST_ROUNDS: Duration = Duration::from_secs(1);
/// Rounds for which a gang is there.
const ROUNDS_OF_A_GANG: usize = 6;
/// Samples in all.
const SAMPLES: u32 = 100;
/// For the binds of a round.
const LIMIT: Duration = Duration::from_secs(120);
/// Growth of the resident memory from which on it is too much, in percent.
const MEMORY_LIMIT: f64 = 1.0;

/// The rounds so far, and what was seen since the last sample.
struct Soak<'a> {
    client: Client,
    scheduler: &'a Scheduler,
    begin: Instant,
    /// Rounds that are there, the oldest first.
    there: VecDeque<Workload>,
    n_rounds: u32,
    waits: Vec<u64>,
    samples: Vec<SoakSample>,
}

/// Plays for so long. Curves and samples are written where plots are.
pub(crate) async fn soak(context: &Context, time: Duration) -> anyhow::Result<Vec<Figure>> {
    let surroundings = Workload { nodes: NODES, ..Workload::default() };
    let (server, client) = Server::with(context.kind, &surroundings).await?;
    let scheduler = Scheduler::start(context, &server)?;
    scheduler.ready().await?;
    let (begin, there) = (Instant::now(), VecDeque::new());
    let (waits, samples) = (Vec::new(), Vec::new());
    let mut soak =
        Soak { client, scheduler: &scheduler, begin, there, n_rounds: 0, waits, samples };
    soak.play(context, time).await?;
    let samples = soak.samples;
    drop(scheduler);
    server.stop().await?;
    figures(context, &samples)
}

impl Soak<'_> {
    async fn play(&mut self, context: &Context, time: Duration) -> anyhow::Result<()> {
        let paced = |period| {
            let mut rounds = interval(period);
            // A round that takes longer is followed by the next at once, not by several.
            rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
            rounds
        };
        let (mut first, mut rounds) = (paced(FIRST_ROUNDS), paced(ROUND));
        while self.begin.elapsed() < time {
            match self.begin.elapsed() < time / 10 {
                true => first.tick().await,
                false => rounds.tick().await,
            };
            self.round(context).await?;
            let due = self.begin.elapsed().as_secs_f64() / time.as_secs_f64();
            if (self.samples.len() as f64) < due * f64::from(SAMPLES) {
                self.sample().await?;
            }
        }
        Ok(())
    }

    /// New gangs come and are bound; the oldest go.
    async fn round(&mut self, context: &Context) -> anyhow::Result<()> {
        self.n_rounds += 1;
        let prefix = format!("round-{}", self.n_rounds);
        let round = Workload { gangs: GANGS, size: SIZE, prefix, ..Workload::default() };
        let mut binds = BindWatch::watch(&self.client, &round).await?;
        let created =
            create_gangs(&self.client, &round, RequestRate::full(context.in_flight)).await?;
        ensure!(binds.until(round.n_pods(), LIMIT).await?, "not all pods are bound");
        let waits = created.into_iter().zip(binds.times()).filter_map(|(created, bound)| {
            let waited = bound?.saturating_duration_since(created);
            u64::try_from(waited.as_micros()).ok()
        });
        self.waits.extend(waits);
        self.there.push_back(round);
        if ROUNDS_OF_A_GANG < self.there.len()
            && let Some(oldest) = self.there.pop_front()
        {
            delete(&mut self.client.connection(), &oldest).await?;
        }
        Ok(())
    }

    async fn sample(&mut self) -> anyhow::Result<()> {
        let text = self.scheduler.metrics().await?;
        let n_series = text.lines().filter(|line| !line.starts_with('#')).count();
        let resident = self.scheduler.process().resident_kib().context("the scheduler is gone")?;
        self.samples.push(SoakSample {
            hour: self.begin.elapsed().as_secs_f64() / 3600.0,
            n_lived: u64::from(self.n_rounds * GANGS * SIZE),
            resident_kib: resident,
            waits: Latency::of(std::mem::take(&mut self.waits)),
            tables: BTreeMap::from([("series of metrics".to_owned(), n_series)]),
            ..SoakSample::default()
        });
        Ok(())
    }
}

/// Deletes the pods and PodGroups of a round.
async fn delete(connection: &mut ApiConnection, round: &Workload) -> anyhow::Result<()> {
    for gang in 0..round.gangs {
        let pods = (0..round.size).map(|index| round.pod(gang, index));
        for object in pods.chain([round.pod_group(gang)]) {
            let name = object.body["metadata"]["name"].as_str().unwrap_or_default();
            connection.delete(&format!("{}/{name}", object.path)).await?;
        }
    }
    Ok(())
}

#[allow(clippy::print_stderr, reason = "the samples of half an hour, beside the figures")]
fn figures(context: &Context, samples: &[SoakSample]) -> anyhow::Result<Vec<Figure>> {
    let verdict = Verdict::of(samples, MEMORY_LIMIT);
    eprint!("{}", table(samples, &verdict));
    if let Some(dir) = &context.plots {
        std::fs::create_dir_all(dir)?;
        let kind = format!("{:?}", context.kind).to_lowercase();
        std::fs::write(dir.join(format!("{kind}-soak.csv")), csv(samples))?;
        let title = format!("the process on the {kind} API server");
        std::fs::write(dir.join(format!("{kind}-soak.svg")), svg(&title, samples))?;
    }
    let last = samples.last().context("no samples")?;
    let (percent, grown) = (verdict.memory_percent, verdict.growths.len());
    Ok(vec![
        plain("pods that have lived", last.n_lived.to_string()),
        plain(
            "resident memory at the end",
            format!("{:.1} MiB", last.resident_kib as f64 / 1024.0),
        ),
        judged(
            "growth after the first tenth",
            format!("{percent:+.2} %"),
            "< 1 %",
            percent < MEMORY_LIMIT,
        ),
        judged("what grows", grown.to_string(), "0", grown == 0),
    ])
}
