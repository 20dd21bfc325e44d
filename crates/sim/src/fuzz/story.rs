//! One story: a script is played to its end, then everything is quiet until nothing moves any more.
//! After every change of a pod the invariants are checked that always hold, at the end the others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep_until};
use vc_conf::Config;
use vc_kube::{EngineMessage, EngineVisit};
use vc_model::Cluster;

use super::check;
use super::fault::FaultKind;
use super::network::Network;
use super::process::{ProcessFaults, SchedulerProcess};
use super::script::{OutsideEvent, Script};
use super::trace::{Timeline, Trace};
use super::world::World;
use crate::serve::{PODS, Subscription, in_process};

/// The time of day when a story begins: 2027-01-15T08:00:00Z.
const BEGIN_MICROS: i64 = 1_800_000_000_000_000;
/// For so long no pod changes at the end of a story: the amounts in messages are renewed every five
/// minutes at most.
const STILL: Duration = Duration::from_secs(330);
/// After so long without faults a story must have come to rest.
const LONGEST_REST: Duration = Duration::from_secs(3_600);
/// For so long nothing is written at rest.
const SILENT: Duration = Duration::from_secs(330);
/// How long after the deletion of everything the tables must be empty.
const EMPTIED: Duration = Duration::from_secs(60);
/// How long it takes until a killed process is started again.
const DOWN: Duration = Duration::from_secs(3);
/// Number of scheduler processes, of which one leads.
const PROCESSES: [&str; 2] = ["a", "b"];

/// What a story is played with.
#[derive(Clone, Debug)]
pub struct StoryOptions {
    /// Kinds of faults that may strike.
    pub faults: BTreeSet<FaultKind>,
    /// The configuration of both processes.
    pub config: Arc<Config>,
}

/// How a story ended.
#[derive(Debug)]
pub struct StoryEnd {
    /// The invariants that were violated, one text each.
    pub violations: Vec<String>,
    pub timeline: Timeline,
    /// Time of the story.
    pub lasted: Duration,
    pub n_cycles: u64,
    pub n_writes: u64,
}

/// Plays a script on this thread.
///
/// # Errors
/// There is no runtime.
pub fn play(script: &Script, options: &StoryOptions) -> std::io::Result<StoryEnd> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let local = LocalSet::new();
    Ok(runtime
        .block_on(local.run_until(async { Story::begin(script, options).play(script).await })))
}

/// What is left of nodes, pods and PodGroups. `None`: nothing.
fn residue(cluster: &Cluster) -> Option<String> {
    let left = [
        ("nodes", cluster.nodes.len()),
        ("pods", cluster.tasks.len()),
        ("PodGroups", cluster.jobs.len()),
    ];
    let left = left.iter().filter(|(_, count)| 0 < *count);
    let texts: Vec<String> = left.map(|(what, count)| format!("{count} {what}")).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

struct Story {
    trace: Trace,
    begin: Instant,
    network: Network,
    world: World,
    processes: Vec<SchedulerProcess>,
    /// Processes that are down, with the time when each is started again.
    down: Vec<(Instant, usize)>,
    faults: Arc<ProcessFaults>,
    config: Arc<Config>,
    pods: Subscription,
    /// When a pod changed last.
    pod_changed: Instant,
    violations: Vec<String>,
}

impl Story {
    fn begin(script: &Script, options: &StoryOptions) -> Self {
        vc_kube::simulate_wall_clock(BEGIN_MICROS);
        let trace = Trace::new();
        let (router, store) = in_process(script.seed);
        let server = (router, store.clone());
        let network = Network::new(server, script.seed, options.faults.clone(), trace.clone());
        let faults = Arc::new(ProcessFaults::default());
        let process =
            |name| SchedulerProcess::new(name, &network, &options.config, &trace, &faults);
        let pods = store.subscribe(&PODS);
        Self {
            begin: Instant::now(),
            processes: PROCESSES.map(process).into_iter().collect(),
            world: World::new(store),
            network,
            trace,
            down: Vec::new(),
            faults,
            config: options.config.clone(),
            pods,
            pod_changed: Instant::now(),
            violations: Vec::new(),
        }
    }

    async fn play(mut self, script: &Script) -> StoryEnd {
        if let Err(refused) = self.world.begin(&script.nodes) {
            self.violations.push(format!("the story cannot begin: {refused}"));
        }
        self.processes.iter_mut().for_each(SchedulerProcess::start);
        for step in &script.steps {
            if !self.until(self.begin + step.at).await {
                return self.end();
            }
            self.trace.say(format_args!("- {}", step.event));
            self.happen(&step.event);
        }
        self.trace.say("- no more faults");
        self.network.calm();
        if self.rest().await {
            self.check_rest().await;
        }
        self.end()
    }

    /// Lets the event happen, to the server, a process or the objects.
    fn happen(&mut self, event: &OutsideEvent) {
        match event {
            OutsideEvent::Outage { seconds } => {
                self.network.away_for(Duration::from_secs(*seconds))
            }
            OutsideEvent::Crash { process } => {
                self.processes[*process].crash();
                self.down.retain(|(_, other)| other != process);
                self.down.push((Instant::now() + DOWN, *process));
            }
            _ => {
                if let Err(refused) = self.world.apply(event) {
                    self.violations.push(format!("the script is refused: {refused}"));
                }
            }
        }
    }

    /// Lets time pass, and checks what always holds after every change of a pod. False: something is
    /// violated.
    async fn until(&mut self, end: Instant) -> bool {
        loop {
            let next = self.down.iter().map(|(at, _)| *at).fold(end, Instant::min);
            let is_over = tokio::select! {
                biased;
                events = self.pods.next() => {
                    if events.is_err() {
                        self.pods = self.world.store.subscribe(&PODS);
                    }
                    self.pod_changed = Instant::now();
                    false
                }
                () = sleep_until(next) => true,
            };
            self.violations.extend(check::room(&self.world.store));
            self.violations.extend(self.faults.take());
            self.violations.extend(self.network.take_violations());
            if !self.violations.is_empty() {
                return false;
            }
            let now = Instant::now();
            while let Some(at) = self.down.iter().position(|(at, _)| *at <= now) {
                let (_, process) = self.down.remove(at);
                self.processes[process].start();
            }
            if is_over && end <= now {
                return true;
            }
        }
    }

    /// Waits until no pod changes any more. False: something is violated, or there is no rest.
    async fn rest(&mut self) -> bool {
        let last = Instant::now() + LONGEST_REST;
        loop {
            if !self.until(self.pod_changed + STILL).await {
                return false;
            }
            if self.pod_changed + STILL <= Instant::now() {
                return true;
            }
            if last < Instant::now() {
                self.violations
                    .push("I4: pods change for an hour without an outside change".into());
                return false;
            }
        }
    }

    /// Checks what holds at rest.
    async fn check_rest(&mut self) {
        let before = self.network.n_writes();
        if !self.until(Instant::now() + SILENT).await {
            return;
        }
        let n_writes = self.network.n_writes() - before;
        if 0 < n_writes {
            self.violations.push(format!("I10: {n_writes} writes at rest"));
        }
        let store = &self.world.store;
        self.violations.extend(check::gangs(store, &self.world.broken));
        let settled = check::settled(store, &self.config, vc_kube::wall_micros());
        self.violations.extend(settled);
        if self.violations.is_empty() {
            self.check_residue().await;
        }
    }

    /// I12: when all objects are gone, the leader's tables are empty.
    async fn check_residue(&mut self) {
        self.trace.say("- everything is deleted");
        if let Err(refused) = self.world.clear() {
            self.violations.push(format!("the script is refused: {refused}"));
        }
        if !self.until(Instant::now() + EMPTIED).await {
            return;
        }
        let Some(inbox) = self.faults.leader() else {
            return self.violations.push("I11: nobody leads".to_owned());
        };
        let (sender, receiver) = oneshot::channel();
        let visit = EngineVisit::look(move |engine| drop(sender.send(residue(engine.cluster()))));
        if inbox.send(EngineMessage::Visit(visit)).await.is_ok()
            && let Ok(Some(residue)) = receiver.await
        {
            self.violations.push(format!("I12: {residue} are left"));
        }
    }

    fn end(self) -> StoryEnd {
        for violation in &self.violations {
            self.trace.say(format_args!("VIOLATED {violation}"));
        }
        StoryEnd {
            violations: self.violations,
            timeline: self.trace.timeline(),
            lasted: self.begin.elapsed(),
            n_cycles: self.faults.n_cycles.load(Ordering::Relaxed),
            n_writes: self.network.n_writes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use vc_wire::Kind;

    use super::*;

    #[test]
    fn what_is_left_is_named() {
        let mut cluster = Cluster::default();
        assert_eq!(residue(&cluster), None);
        let node = json!({"metadata": {"name": "n"}});
        cluster.apply(vc_wire::decode(Kind::Node, &node).unwrap().event);
        assert_eq!(residue(&cluster).as_deref(), Some("1 nodes"));
    }
}
