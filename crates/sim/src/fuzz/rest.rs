//! The end of a story: nothing moves any more, nothing is written, everything that fits is placed, the
//! leader knows what there is, and when everything is deleted nothing is left.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;
use vc_engine::Engine;
use vc_kube::{EngineMessage, EngineVisit};

use super::process::SchedulerProcess;
use super::residue::EngineResidue;
use super::story::Story;
use super::{check, configs, devices, usage, view};

/// After so long without faults a story must have come to rest.
const LONGEST_REST: Duration = Duration::from_secs(3_600);

/// How long the parts of the end of a story take.
#[derive(Clone, Copy, Debug)]
pub(super) struct RestTimes {
    /// For so long no pod changes: the amounts in messages are renewed every five minutes at most.
    /// A clock that was set back lengthens this by as much.
    pub(super) still: Duration,
    /// For so long nothing is written at rest. `RestWrites` knows how often an event may be
    /// repeated meanwhile.
    pub(super) silent: Duration,
    /// Time after the deletion of all objects within which the tables become empty.
    pub(super) emptied: Duration,
}

impl RestTimes {
    /// Those of all stories but some of tests.
    pub(super) const USUAL: Self = Self {
        still: Duration::from_secs(330),
        silent: Duration::from_secs(330),
        emptied: Duration::from_secs(60),
    };
}

impl Story {
    /// Waits until no pod changes any more. False: something is violated, or there is no rest.
    pub(super) async fn rest(&mut self) -> bool {
        self.pod_changed = Instant::now();
        let behind = self.processes.iter().map(SchedulerProcess::behind_itself);
        let behind = behind.max().unwrap_or_default();
        let (still, longest) = (self.rest_times.still + behind, LONGEST_REST + 2 * behind);
        let last = Instant::now() + longest;
        loop {
            if !self.until(self.pod_changed + still).await {
                return false;
            }
            if self.pod_changed + still <= Instant::now() {
                return true;
            }
            if last < Instant::now() {
                let seconds = longest.as_secs();
                self.violations
                    .push(format!("I4: pods change for {seconds} s without an outside change"));
                return false;
            }
        }
    }

    /// Checks what holds at rest. `config`: the configuration file.
    pub(super) async fn check_rest(&mut self, config: &str) {
        self.network.begin_rest();
        if !self.until(Instant::now() + self.rest_times.silent).await {
            return;
        }
        self.violations.extend(self.network.end_rest());
        self.violations.extend(self.network.repeated_events());
        let store = &self.world.store;
        let mut broken = self.world.broken.clone();
        broken.extend(self.network.evicted_groups());
        broken.extend(self.network.half_bound_groups());
        // While a bind was repeated, the share of the queue fell, or a node was closed. A pod with a GPU keeps no
        // place meanwhile (core.md 7.2, C-50).
        let may_be_short = |group: &String| {
            check::waits_for_others(store, group) || devices::has_requests(store, group)
        };
        broken.extend(self.network.unbound_groups().into_iter().filter(may_be_short));
        self.violations.extend(check::gangs(store, &broken));
        if self.network.leader_has_saved_usage() {
            self.violations.extend(usage::unsaved(store));
        }
        match configs::read(config) {
            Ok(loaded) => {
                let now = vc_kube::wall_micros();
                self.violations.extend(check::settled(store, &loaded.config, now));
                self.check_leader(loaded.config.actions).await;
            }
            Err(error) => self.violations.push(format!("the configuration is bad: {error}")),
        }
        if self.violations.is_empty() {
            self.check_residue().await;
        }
    }

    /// I6 and I9: the leader knows what there is, and runs the actions of the configuration.
    async fn check_leader(&mut self, actions: Vec<String>) {
        let look = |engine: &Engine| {
            (view::of_cluster(engine.cluster()), engine.fork().actions().to_vec())
        };
        let Some((known, run)) = self.look(look).await else { return };
        self.violations.extend(view::of_store(&self.world.store).differences(&known));
        if run != actions {
            self.violations.push(format!("I9: actions {run:?} run instead of {actions:?}"));
        }
    }

    /// Looks at the engine of the leader. `None`: nobody leads, which is a violation.
    async fn look<T: Send + 'static>(
        &mut self,
        look: impl FnOnce(&Engine) -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        let visit = EngineVisit::look(move |engine| drop(sender.send(look(engine))));
        let seen = match self.findings.leader() {
            Some(inbox) if inbox.send(EngineMessage::Visit(visit)).await.is_ok() => {
                receiver.await.ok()
            }
            _ => None,
        };
        if seen.is_none() {
            self.violations.push("I11: nobody leads".to_owned());
        }
        seen
    }

    /// I12: when all objects are gone, the leader's tables are as those of a new engine.
    async fn check_residue(&mut self) {
        self.trace.say("- everything is deleted");
        if let Err(refused) = self.world.clear() {
            self.violations.push(format!("the script is refused: {refused}"));
        }
        if !self.until(Instant::now() + self.rest_times.emptied).await {
            return;
        }
        if let Some(residue) = self.look(EngineResidue::of).await {
            let (store, now) = (&self.world.store, vc_kube::wall_micros());
            self.violations.extend(residue.violations(store, self.most_objects, now));
        }
    }
}
