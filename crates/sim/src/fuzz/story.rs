//! One story: a script is played to its end, then everything is quiet until nothing moves any more.
//! After every change of a pod the invariants are checked that always hold, at the end the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::config_file::ConfigFile;
use super::controllers::{Controllers, PERIOD};
use super::crash::PlannedCrash;
use super::fault::{FaultKind, Strikes};
use super::findings::Findings;
use super::network::{Network, Refused};
use super::outside_event::OutsideEvent;
use super::panics::{self, PanicRecorder};
use super::process::{ProcessSetup, SchedulerProcess};
use super::rest::RestTimes;
use super::script::Script;
use super::trace::{Timeline, Trace};
use super::world::{World, has_ended, was_evicted};
use super::{check, configs, devices, managers, topology, usage, violated};
use crate::one_thread::simulate;
use crate::serve::{
    Change, Event, LOG_CAPACITY, NODES, POD_GROUPS, PODS, Subscription, in_process,
};

/// How long it takes until a killed process is started again.
const DOWN: Duration = Duration::from_secs(3);
/// How long a process may take to see that the server has begun anew from a backup. Until then it
/// decides on objects that are gone.
const UNSEEN: Duration = Duration::from_secs(600);
/// How long a leader may take to see a bind of the leader before, or of another scheduler. It begins when the leader
/// has a list of all pods.
const LATE_BIND_UNSEEN: Duration = Duration::from_secs(60);
/// How long a pod stays whose node does not exist.
const ORPHANED: Duration = Duration::from_secs(40);
/// Number of scheduler processes, of which one leads.
const PROCESSES: [&str; 2] = ["a", "b"];

/// What a story is played with.
#[derive(Clone, Debug)]
pub struct StoryOptions {
    /// Kinds of faults that may strike.
    pub faults: BTreeSet<FaultKind>,
}

/// How a story ended.
#[derive(Debug)]
pub struct StoryEnd {
    /// The invariants that were violated, one text each.
    pub violations: Vec<String>,
    /// The cluster at the end of a story that violates something, as a scenario for `vcsim test`.
    pub scenario: Option<String>,
    pub timeline: Timeline,
    /// Time of the story.
    pub lasted: Duration,
    pub n_cycles: u64,
    pub n_writes: u64,
    /// How often each kind of fault has struck.
    pub strikes: Strikes,
}

/// Plays a script on this thread.
///
/// # Errors
/// There is no runtime.
pub fn play(script: &Script, options: &StoryOptions) -> std::io::Result<StoryEnd> {
    let _recorder = PanicRecorder::start();
    simulate(async || Story::begin(script, options).play(script).await)
}

/// Something that is to be done to a process later.
#[derive(Clone, Copy)]
enum LaterAction {
    Start,
    Configure(&'static str),
}

/// Waits until a planned crash happens. Returns the number of the process.
async fn crashed(processes: &[SchedulerProcess]) -> usize {
    let crashes = processes.iter().map(|process| Box::pin(process.crashed()));
    futures::future::select_all(crashes).await.1
}

/// True if a pod frees its room otherwise than by an eviction: it has ended, or somebody else has
/// deleted it.
fn frees_room(event: &Event) -> bool {
    let pod = &event.object.value;
    has_ended(pod) || (event.change == Change::Deleted && !was_evicted(pod))
}

pub(super) struct Story {
    pub(super) trace: Trace,
    begin: Instant,
    pub(super) network: Network,
    pub(super) world: World,
    pub(super) processes: Vec<SchedulerProcess>,
    /// What is to be done to which process, and when.
    later: Vec<(Instant, usize, LaterAction)>,
    /// When the controllers look at the objects next.
    controllers_due: Instant,
    /// UIDs of pods that were bound to a node which did not exist, and when they are deleted.
    orphans: Vec<(Instant, Value)>,
    pub(super) findings: Arc<Findings>,
    pods: Subscription,
    /// When a pod changed last.
    pub(super) pod_changed: Instant,
    pub(super) rest_times: RestTimes,
    /// Until then nodes may be filled by processes that do not know that the server began anew.
    unseen_until: Instant,
    /// Nodes that got a bind of the leader before or of another scheduler, and until when the leader may not know of it.
    late_binds: BTreeMap<String, Instant>,
    /// Nodes that were filled by processes that could not know better.
    overfull: BTreeSet<String>,
    /// The largest number of pods, PodGroups and nodes together that there were at once.
    pub(super) most_objects: usize,
    pub(super) violations: Vec<String>,
}

impl Story {
    fn begin(script: &Script, options: &StoryOptions) -> Self {
        let trace = Trace::new();
        let (router, store) = in_process(script.seed, |_| LOG_CAPACITY);
        if script.has_controllers {
            store.track_managers();
        }
        let server = (router, store.clone());
        let network = Network::new(server, script, options.faults.clone(), trace.clone());
        let findings = Arc::new(Findings::default());
        let has_old_version =
            options.faults.contains(&FaultKind::OldVersion) && script.seed.is_multiple_of(4);
        let process = |name: &str| {
            SchedulerProcess::new(ProcessSetup {
                name: name.to_owned(),
                network: network.clone(),
                config: ConfigFile::new(script.config),
                trace: trace.clone(),
                findings: findings.clone(),
                ahead_micros: Arc::default(),
                crash: PlannedCrash::default(),
                is_old: has_old_version && name == PROCESSES[1],
                strikes_starts: script.strikes_starts,
                keeps_usage: script.keeps_usage,
                has_networks: script.has_networks,
                has_gpus: script.has_gpus,
            })
        };
        let pods = store.subscribe(&PODS);
        let mut world = World::new(store);
        world.controllers = script.has_controllers.then(Controllers::new);
        Self {
            begin: Instant::now(),
            processes: PROCESSES.map(process).into_iter().collect(),
            world,
            network,
            trace,
            later: Vec::new(),
            controllers_due: Instant::now(),
            orphans: Vec::new(),
            findings,
            pods,
            pod_changed: Instant::now(),
            rest_times: script.rest_times,
            unseen_until: Instant::now(),
            late_binds: BTreeMap::new(),
            overfull: BTreeSet::new(),
            most_objects: 0,
            violations: Vec::new(),
        }
    }

    async fn play(mut self, script: &Script) -> StoryEnd {
        self.world.has_little_memory = script.has_little_memory;
        self.world.has_gpus = script.has_gpus;
        let begun = self.world.begin(&script.nodes).and_then(|()| match script.has_networks {
            true => topology::create(&self.world.store),
            false => Ok(()),
        });
        if let Err(refused) = begun {
            self.violations.push(format!("the story cannot begin: {refused}"));
        }
        self.processes.iter_mut().for_each(SchedulerProcess::start);
        for step in &script.steps {
            if !self.until(self.begin + step.at).await {
                return self.end(&script.config_text());
            }
            self.trace.say(format_args!("- {}", step.event));
            self.let_happen(&step.event);
            self.note_change(&step.event);
        }
        self.trace.say("- no more faults");
        let config = script.config_text();
        self.network.calm();
        self.processes.iter().for_each(|process| process.plan_crash(None));
        self.processes.iter().for_each(|process| process.configure(script.config));
        self.later.retain(|(_, _, action)| matches!(action, LaterAction::Start));
        if self.rest().await {
            self.check_rest(&config).await;
        }
        self.end(&config)
    }

    /// Takes note of an event that has happened, after which evictions may follow.
    fn note_change(&self, event: &OutsideEvent) {
        let may_evict = event.may_evict();
        self.network.outside_change(may_evict);
        if may_evict {
            self.findings.forget_eviction_turns();
        }
    }

    /// Lets the event happen. Counts its kind of fault if it strikes at once.
    fn let_happen(&mut self, event: &OutsideEvent) {
        let revision = self.world.revision();
        self.happen(event);
        let strikes = match event {
            OutsideEvent::Compact | OutsideEvent::SetClock { .. } => true,
            OutsideEvent::SlowServer { .. } => true,
            // These are counted where they meet a request or a process, or where the server begins
            // anew.
            OutsideEvent::Backup | OutsideEvent::Restore { .. } => false,
            OutsideEvent::SetPodQuota { .. } => false,
            _ => revision != self.world.revision(),
        };
        if let Some(kind) = event.fault().filter(|_| strikes) {
            self.network.strike(kind);
        }
    }

    /// Lets the event happen, to the server, a process or the objects.
    fn happen(&mut self, event: &OutsideEvent) {
        let time = |seconds: &u64| Duration::from_secs(*seconds);
        match event {
            OutsideEvent::Outage { seconds } => {
                self.network.away_for(FaultKind::Outage, time(seconds));
            }
            OutsideEvent::Restore { seconds } => self.restore(time(seconds)),
            OutsideEvent::TokenExpires { process, seconds } => {
                let name = format!("{}.", PROCESSES[*process]);
                self.network.refuse(Refused::Process(name), time(seconds));
            }
            OutsideEvent::RightTaken { resource, seconds } => {
                self.network.refuse(Refused::Resource(resource), time(seconds));
            }
            OutsideEvent::Refuse { write, by, seconds } => {
                self.network.refuse(Refused::Write(*write, *by), time(seconds));
            }
            OutsideEvent::SetClock { process, seconds } => {
                self.processes[*process].set_clock(*seconds);
                self.network.clock_is_set();
            }
            OutsideEvent::Configure { text, after } => {
                let now = Instant::now();
                let at = |(process, seconds)| (now + time(seconds), process);
                let later = after.iter().enumerate().map(at);
                self.later
                    .extend(later.map(|(at, process)| (at, process, LaterAction::Configure(text))));
            }
            OutsideEvent::Crash { process } => self.crash(*process),
            OutsideEvent::CrashAt(crash) => {
                self.processes.iter().for_each(|process| process.plan_crash(Some(*crash)));
            }
            #[cfg(test)]
            OutsideEvent::CrashOf { process, crash } => {
                self.processes[*process].plan_crash(Some(*crash));
            }
            OutsideEvent::SlowServer { most_millis, seconds } => {
                self.network.slow_for(time(seconds), *most_millis);
            }
            OutsideEvent::Stop { process } => {
                if self.processes[*process].stop() {
                    self.network.strike(FaultKind::Restart);
                }
                self.start_later(*process);
            }
            OutsideEvent::WriteNote { text } => self.happen_to_usage(Some(text)),
            OutsideEvent::DeleteUsage => self.happen_to_usage(None),
            _ => {
                if let Some(node) = self.world.node_that_goes(event) {
                    self.network.loses_node(node.name());
                }
                if matches!(event, OutsideEvent::SetRack { .. }) {
                    self.network.hyper_nodes_changed();
                }
                if let Err(refused) = self.world.apply(event) {
                    self.violations.push(format!("the script is refused: {refused}"));
                }
            }
        }
    }

    /// Somebody else writes a note into the ConfigMap with the usage. `None`: he deletes it.
    fn happen_to_usage(&mut self, note: Option<&str>) {
        let store = &self.world.store;
        let done = match note {
            Some(text) => usage::write_note(store, text),
            None => usage::delete(store).map(|()| true),
        };
        match done {
            Ok(is_done) => self.network.others_wrote_usage(note.filter(|_| is_done)),
            Err(refused) => self.violations.push(format!("the script is refused: {refused}")),
        }
    }

    /// Kills a process, which is started again later.
    fn crash(&mut self, process: usize) {
        if self.processes[process].crash() {
            self.network.strike(FaultKind::Crash);
        }
        self.start_later(process);
    }

    fn start_later(&mut self, process: usize) {
        let is_start = |action| matches!(action, LaterAction::Start);
        self.later.retain(|(_, other, action)| *other != process || !is_start(*action));
        self.later.push((Instant::now() + DOWN, process, LaterAction::Start));
    }

    fn restore(&mut self, time: Duration) {
        if self.world.restore() {
            self.network.strike(FaultKind::Restore);
            self.network.away_for(FaultKind::Restore, time);
            self.network.restored();
            self.unseen_until = Instant::now() + time + UNSEEN;
        }
    }

    /// Lets time pass, and checks what always holds after every change of a pod. False: something is
    /// violated.
    pub(super) async fn until(&mut self, end: Instant) -> bool {
        loop {
            let orphans = self.orphans.iter().map(|(at, _)| *at);
            let controllers = self.world.controllers.iter().map(|_| self.controllers_due);
            let next = self.later.iter().map(|(at, _, _)| *at).chain(orphans).chain(controllers);
            let next = next.fold(end, Instant::min);
            let is_over = tokio::select! {
                biased;
                events = self.pods.next() => {
                    match events {
                        Ok(events) => {
                            self.make_evicted_again(&events);
                            self.note_orphans(&events);
                            self.network.note_pods(&events);
                            if events.iter().any(|event| frees_room(event)) {
                                self.findings.forget_eviction_turns();
                            }
                        }
                        Err(_) => {
                            self.pods = self.world.store.subscribe(&PODS);
                            self.network.note_all_pods();
                            self.findings.forget_eviction_turns();
                        }
                    }
                    self.pod_changed = Instant::now();
                    false
                }
                process = crashed(&self.processes) => {
                    self.crash(process);
                    false
                }
                () = sleep_until(next) => true,
            };
            self.count_objects();
            self.check_room();
            self.violations.extend(panics::take());
            self.violations.extend(self.findings.take());
            self.violations.extend(managers::written_fields(&self.world.store));
            self.violations.extend(self.network.take_violations());
            if !self.violations.is_empty() {
                return false;
            }
            self.act();
            if is_over && end <= Instant::now() {
                return true;
            }
        }
    }

    /// Takes note of how many objects there are, by which the leader's tables may have grown.
    fn count_objects(&mut self) {
        let store = &self.world.store;
        let counts = [&PODS, &POD_GROUPS, &NODES].map(|kind| store.list(kind, None).objects.len());
        self.most_objects = self.most_objects.max(counts.iter().sum());
    }

    /// Controllers make pods anew that the scheduler has evicted.
    fn make_evicted_again(&mut self, events: &[Arc<Event>]) {
        for event in events.iter().filter(|event| event.change == Change::Deleted) {
            let pod = &event.object.value;
            if was_evicted(pod)
                && let Err(refused) = self.world.make_again(pod)
            {
                self.violations.push(format!("a controller is refused: {refused}"));
            }
        }
    }

    /// A bind that arrives after its node has gone makes an orphan.
    fn note_orphans(&mut self, events: &[Arc<Event>]) {
        let changed = events.iter().filter(|event| event.change != Change::Deleted);
        let pods = changed.map(|event| &event.object.value);
        let orphans = pods.filter(|pod| self.world.is_orphan(pod));
        let due = Instant::now() + ORPHANED;
        self.orphans.extend(orphans.map(|pod| (due, pod["metadata"]["uid"].clone())));
    }

    /// I1, but for nodes that were filled by processes that could not know better: the server had begun
    /// anew, or a bind of the leader before or of another scheduler came late.
    fn check_room(&mut self) {
        let mut found = check::room(&self.world.store);
        if self.world.has_gpus {
            found.extend(devices::room(&self.world.store));
        }
        self.overfull.retain(|node| found.contains_key(node));
        let now = Instant::now();
        let late = self.network.take_late_binds();
        self.late_binds.extend(late.into_iter().map(|node| (node, now + LATE_BIND_UNSEEN)));
        if self.network.leader_lists_pods() {
            let seen = now + LATE_BIND_UNSEEN;
            self.late_binds.values_mut().for_each(|until| *until = seen);
        }
        self.late_binds.retain(|_, until| now < *until);
        let late = self.late_binds.keys().filter(|node| found.contains_key(*node));
        self.overfull.extend(late.cloned());
        if now < self.unseen_until {
            self.overfull.extend(found.into_keys());
            return;
        }
        let new = found.into_iter().filter(|(node, _)| !self.overfull.contains(node));
        self.violations.extend(new.map(|(_, text)| text));
    }

    /// Does what is due to processes.
    fn act(&mut self) {
        let now = Instant::now();
        while let Some(at) = self.later.iter().position(|(at, _, _)| *at <= now) {
            let (_, process, action) = self.later.remove(at);
            match action {
                LaterAction::Start => self.processes[process].start(),
                LaterAction::Configure(text) => {
                    self.network.strike(FaultKind::Reload);
                    self.processes[process].configure(text);
                }
            }
        }
        for (_, uid) in self.orphans.extract_if(.., |(at, _)| *at <= now) {
            if let Err(refused) = self.world.collect_orphan(&uid) {
                self.violations.push(format!("the garbage collector is refused: {refused}"));
            }
        }
        if self.controllers_due <= now {
            self.controllers_due = now + PERIOD;
            self.control();
        }
    }

    /// Lets the controllers look at the objects. The scheduler may not know for a while of a pod that another one
    /// has bound, which takes the room where a refused bind is repeated.
    fn control(&mut self) {
        match self.world.control() {
            Ok(bound) => {
                if !bound.is_empty() {
                    self.findings.forget_eviction_turns();
                }
                bound.iter().for_each(|node| self.network.loses_node(node));
                let until = Instant::now() + LATE_BIND_UNSEEN;
                self.late_binds.extend(bound.into_iter().map(|node| (node, until)));
            }
            Err(refused) => self.violations.push(format!("a controller is refused: {refused}")),
        }
    }

    fn end(self, config: &str) -> StoryEnd {
        for violation in &self.violations {
            self.trace.say(format_args!("VIOLATED {violation}"));
        }
        let scenario = configs::read(config).ok().filter(|_| !self.violations.is_empty());
        let scenario = scenario.and_then(|loaded| {
            let (store, now) = (&self.world.store, vc_kube::wall_micros());
            violated::scenario(store, &loaded.config, now, &self.violations).ok()
        });
        StoryEnd {
            violations: self.violations,
            scenario,
            timeline: self.trace.timeline(),
            lasted: self.begin.elapsed(),
            n_cycles: self.findings.n_cycles.load(Ordering::Relaxed),
            n_writes: self.network.n_writes(),
            strikes: self.network.strikes(),
        }
    }
}
