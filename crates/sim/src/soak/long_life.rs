//! The course of a soak: jobs arrive, end and are deleted, and a sample is taken at even distances.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::arrivals::ArrivalPlan;
use super::cluster::SoakCluster;
use super::memory::resident_kib;
use super::sample::{Latency, SoakSample};
use super::scheduler::SoakScheduler;
use super::{SoakError, SoakOptions};
use crate::live_bytes::live_bytes;
use crate::serve::{EVENTS, POD_GROUPS, PODS, Refused, Subscription, in_process};

/// One event of so many pods is kept by the server for watches, of pods, PodGroups and events: the logs are
/// full long before the first tenth is over.
const PODS_PER_LOG_ENTRY: u64 = 100;
/// Fewest and most events that are kept.
const LEAST_LOG: u64 = 512;
const MOST_LOG: u64 = 4_096;
/// Events that are kept for each pod that can arrive in a tick. Nobody is further behind, as nothing waits
/// for a network.
const PER_ARRIVAL: u64 = 3;
/// Events of each other kind that are kept. Those of queues come slowly.
const OTHER_LOG: usize = 128;
/// How often jobs arrive and old ones are deleted.
const TICK: Duration = Duration::from_secs(1);
/// In a burst, so many times the mean number of pods arrives in a tick, at most.
const BURST_RATE: u64 = 20;

/// A cluster and its scheduler.
pub(super) struct LongLife {
    begin: Instant,
    plan: ArrivalPlan,
    most_pods: u64,
    cluster: SoakCluster,
    scheduler: SoakScheduler,
    pods: Subscription,
    events: Subscription,
    /// The samples that are still to be taken, the next one last.
    sample_times: Vec<Instant>,
    samples: Vec<SoakSample>,
}

impl LongLife {
    pub(super) async fn begin(options: &SoakOptions, plan: ArrivalPlan) -> Result<Self, SoakError> {
        let per_tick = options.pods as f64 * TICK.as_secs_f64() / options.time.as_secs_f64();
        let most_pods = (per_tick.ceil() as u64).saturating_mul(BURST_RATE);
        let log_capacity = (options.pods / PODS_PER_LOG_ENTRY).clamp(LEAST_LOG, MOST_LOG);
        let log_capacity = log_capacity.max(PER_ARRIVAL.saturating_mul(most_pods));
        let log_capacity = usize::try_from(log_capacity).unwrap_or(usize::MAX);
        let is_of_pods = |kind: &_| [PODS, POD_GROUPS, EVENTS].contains(kind);
        let capacity_of = |kind: &_| if is_of_pods(kind) { log_capacity } else { OTHER_LOG };
        let (router, store) = in_process(options.seed, capacity_of);
        let (pods, events) = (store.subscribe(&PODS), store.subscribe(&EVENTS));
        let begin = Instant::now();
        let at = |number| begin + options.time.mul_f64(number);
        let n_samples = f64::from(options.samples);
        let sample_times = (1..=options.samples).rev().map(|it| at(f64::from(it) / n_samples));
        Ok(Self {
            begin,
            plan,
            most_pods,
            cluster: SoakCluster::begin(store, options.nodes).map_err(refused)?,
            scheduler: SoakScheduler::start(router).await?,
            pods,
            events,
            sample_times: sample_times.collect(),
            samples: Vec::new(),
        })
    }

    pub(super) async fn play(
        mut self,
        sampled: &mut dyn FnMut(&SoakSample),
    ) -> Result<Vec<SoakSample>, SoakError> {
        let mut tick = self.begin;
        while let Some(&sample) = self.sample_times.last() {
            self.until(tick.min(sample)).await?;
            if tick <= Instant::now() {
                self.tick()?;
                tick += TICK;
            }
            if sample <= Instant::now() {
                self.sample_times.pop();
                let sample = self.sample().await?;
                sampled(&sample);
                self.samples.push(sample);
            }
        }
        Ok(self.samples)
    }

    /// Lets time pass, and does what controllers do.
    async fn until(&mut self, end: Instant) -> Result<(), SoakError> {
        loop {
            tokio::select! {
                biased;
                read = self.pods.next() => {
                    for event in read.map_err(refused)? {
                        self.cluster.see_pod(&event).map_err(refused)?;
                    }
                }
                read = self.events.next() => {
                    let read = read.map_err(refused)?;
                    read.iter().for_each(|event| self.cluster.see_event(event));
                }
                led = &mut self.scheduler.leading => {
                    let why = led.err().map_or_else(String::new, |error| error.to_string());
                    return Err(SoakError::Scheduler(format!("it has ended: {why}")));
                }
                () = sleep_until(end) => return Ok(()),
            }
        }
    }

    fn tick(&mut self) -> Result<(), SoakError> {
        for job in self.plan.due(self.begin.elapsed(), self.most_pods) {
            self.cluster.create(&job).map_err(refused)?;
        }
        self.cluster.delete_old().map_err(refused)?;
        self.scheduler.fault().map_or(Ok(()), |fault| Err(SoakError::Scheduler(fault)))
    }

    async fn sample(&mut self) -> Result<SoakSample, SoakError> {
        let resident_kib = resident_kib("self").map_err(SoakError::Memory)?;
        let allocated_kib = live_bytes() / 1_024;
        let counts = self.cluster.take_counts();
        let mut tables = self.scheduler.look(vc_engine::Engine::table_sizes).await?;
        let tables = tables.as_mut().map_err(|why| SoakError::Scheduler(why.clone()))?;
        let of_server = self.cluster.sizes();
        tables.extend(of_server.into_iter().map(|(name, size)| (format!("server.{name}"), size)));
        let of_writers = self.scheduler.writer_tables();
        tables.extend(of_writers.into_iter().map(|(name, size)| (name.to_owned(), size)));
        let last = self.samples.last();
        Ok(SoakSample {
            hour: self.begin.elapsed().as_secs_f64() / 3_600.0,
            n_lived: last.map_or(0, |it| it.n_lived) + counts.n_lived,
            n_evicted: last.map_or(0, |it| it.n_evicted) + counts.n_evicted,
            n_waiting: self.cluster.n_waiting(),
            resident_kib,
            allocated_kib,
            cycles: Latency::of(self.scheduler.take_cycles()),
            waits: Latency::of(counts.waits_micros),
            tables: std::mem::take(tables),
        })
    }
}

fn refused(refused: Refused) -> SoakError {
    SoakError::Simulation(refused.to_string())
}
