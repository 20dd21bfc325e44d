//! Leader election on a Lease by client-go's protocol, so that a Go and a Rust candidate can share
//! it during an upgrade. Specification: core.md 1.4 (C-05), rust-ecosystem.md 5.6.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::call::{CallError, call, get};
use crate::client::Clients;
use crate::correlate::{EventNote, EventSubject};
use crate::events::record_one;
use crate::failure_log::FailureLog;
use crate::restored::RestoreNotice;
use crate::simulated::of_this_process;
use crate::wall_clock::timestamp;

/// Ends the line about a Lease that cannot be acquired.
const HINT: &str = "\nhint: the namespace must exist, and the scheduler may get, create and update \
    leases; alone it needs --leader-elect=false";

/// Which Lease, who asks for it, and the timings of core.md 1.4.
#[derive(Clone, Debug)]
pub struct Election {
    pub namespace: String,
    pub name: String,
    /// Of this process, unlike any other: see [`identity`].
    pub identity: String,
    /// Source of the event.
    pub component: String,
    /// How long others respect the Lease after its last renewal.
    pub lease: Duration,
    /// After so long without a renewal a leader gives up.
    pub renew: Duration,
    /// Pause between two attempts.
    pub retry: Duration,
}

/// What is known after an attempt to lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElectionNews<'a> {
    /// The API server has answered.
    pub connected: bool,
    /// Identity of the process that held the Lease when it was last read.
    pub leader: Option<&'a str>,
}

/// `<host>_<random UUID>`.
pub fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.or_else(|_| std::env::var("HOSTNAME")).unwrap_or_default();
    // Each `RandomState` has keys of its own, from the randomness of the system.
    let [high, low] = [(); 2].map(|()| RandomState::new().build_hasher().finish());
    let (version, variant) = (0x4000 | (high & 0x0fff), 0x8000 | (low >> 48 & 0x3fff));
    let (first, second, last) = (high >> 32, high >> 16 & 0xffff, low & 0xffff_ffff_ffff);
    format!("{}_{first:08x}-{second:04x}-{version:04x}-{variant:04x}-{last:012x}", host.trim())
}

impl Election {
    /// Waits until this process leads. `news` gets what is known after every attempt.
    pub async fn win(self, clients: &Clients, news: impl Fn(ElectionNews<'_>)) -> Leadership {
        let mut candidate = LeaderCandidate {
            leases: Api::namespaced(clients.elections.clone(), &self.namespace),
            election: self,
            observed: None,
            version: None,
            failures: clients.failures.clone(),
            restore: RestoreNotice::new(&clients.restores),
        };
        let (place, retry) = (candidate.place(), candidate.election.retry);
        tracing::info!("attempting to acquire leader lease {place}");
        let (lease, renewed) = loop {
            let start = Instant::now();
            let attempt = candidate.bounded_attempt(start + candidate.election.renew).await;
            let seen = candidate.observed.as_ref();
            let leader = seen.and_then(|(seen, _)| seen.holder_identity.as_deref());
            news(ElectionNews { connected: attempt.is_ok(), leader });
            match attempt {
                Ok(ElectionAttempt::Leads(lease)) => break (lease, start),
                Ok(_) => {}
                Err(error) => {
                    let reported = format!("{error}{HINT}");
                    clients.failures.warn("leader lease not acquired", &place, reported);
                }
            }
            sleep(retry).await;
        };
        tracing::info!("successfully acquired lease {place}");
        let event = became_leader(clients.clone(), &candidate.election, &lease);
        tokio::spawn(of_this_process(event));
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(of_this_process(candidate.keep(renewed, stopped)));
        Leadership { stop, task }
    }
}

/// The Lease is held, and renewed while this exists.
pub struct Leadership {
    stop: oneshot::Sender<()>,
    /// Answers the candidate when it was stopped, nothing when the Lease is lost.
    task: JoinHandle<Option<LeaderCandidate>>,
}

impl Leadership {
    /// Returns when the Lease is lost; not to be called again then.
    pub async fn lost(&mut self) {
        drop((&mut self.task).await);
    }

    /// Lets a successor lead at once. A failure is logged: then it waits until the Lease expires.
    pub async fn release(self) {
        drop(self.stop);
        if let Ok(Some(candidate)) = self.task.await {
            candidate.release().await;
        }
    }
}

/// How an attempt has ended, if the API server has answered.
enum ElectionAttempt {
    Leads(Box<Lease>),
    /// Somebody else has it.
    Held,
    /// Somebody else wrote at the same time.
    Raced,
}

struct LeaderCandidate {
    leases: Api<Lease>,
    election: Election,
    /// The record as last seen, and when this process first saw it: two clocks are never compared.
    observed: Option<(LeaseSpec, Instant)>,
    /// Version of the Lease when it was last read or written.
    version: Option<u64>,
    failures: Arc<FailureLog>,
    restore: RestoreNotice,
}

impl LeaderCandidate {
    /// For the log.
    fn place(&self) -> String {
        format!("{}/{}", self.election.namespace, self.election.name)
    }

    async fn bounded_attempt(&mut self, end: Instant) -> Result<ElectionAttempt, CallError> {
        let start = Instant::now();
        let attempt = timeout_at(end, self.attempt()).await;
        attempt.unwrap_or_else(|_| Err(CallError::TimedOut(start.elapsed())))
    }

    /// Acquires or renews the Lease, or finds out why not.
    async fn attempt(&mut self) -> Result<ElectionAttempt, CallError> {
        let name = self.election.name.clone();
        let now = MicroTime(timestamp());
        let mut wanted = LeaseSpec {
            holder_identity: Some(self.election.identity.clone()),
            lease_duration_seconds: Some(seconds(self.election.lease)),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            lease_transitions: Some(0),
            ..LeaseSpec::default()
        };
        let Some(mut lease) = get(&self.leases, &name).await? else {
            let metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
            let lease = Lease { metadata, spec: Some(wanted) };
            let answer = call(self.leases.create(&PostParams::default(), &lease)).await;
            return self.outcome(answer);
        };
        self.note_version(&lease);
        let held = lease.spec.take().unwrap_or_default();
        self.observe(&held);
        let holder = held.holder_identity.as_deref().unwrap_or_default();
        if holder == self.election.identity {
            wanted.acquire_time = held.acquire_time;
            wanted.lease_transitions = held.lease_transitions;
        } else if holder.is_empty() || self.expired(&held) {
            wanted.lease_transitions = Some(held.lease_transitions.unwrap_or(0) + 1);
        } else {
            return Ok(ElectionAttempt::Held);
        }
        lease.spec = Some(wanted);
        // The resourceVersion that was read goes along: of two candidates exactly one succeeds.
        let answer = call(self.leases.replace(&name, &PostParams::default(), &lease)).await;
        self.outcome(answer)
    }

    fn outcome(&mut self, answer: Result<Lease, CallError>) -> Result<ElectionAttempt, CallError> {
        match answer {
            Ok(lease) => {
                self.note_version(&lease);
                Ok(ElectionAttempt::Leads(Box::new(lease)))
            }
            Err(error) if error.is_conflict() => Ok(ElectionAttempt::Raced),
            Err(error) => Err(error),
        }
    }

    /// Versions only grow, and the Lease is written every few seconds: one that has gone back shows that
    /// the server was restored from a backup, also if it has given out later versions again.
    fn note_version(&mut self, lease: &Lease) {
        let text = lease.metadata.resource_version.as_deref().unwrap_or_default();
        let Ok(version) = text.parse() else { return };
        let before = self.version.replace(version);
        // A watch has often shown it before.
        let is_known = self.restore.is_noticed_by_others();
        if let Some(before) = before.filter(|&before| version < before && !is_known) {
            tracing::warn!(
                "Lease {} has version {version}, before it had {before}: the API server was restored \
                 from a backup; all kinds are listed again",
                self.place()
            );
            self.restore.noticed();
        }
    }

    fn observe(&mut self, held: &LeaseSpec) {
        let before = self.observed.as_ref().map(|(seen, _)| seen);
        if before == Some(held) {
            return;
        }
        let holder = held.holder_identity.as_deref().unwrap_or_default();
        let same = before.is_some_and(|seen| seen.holder_identity == held.holder_identity);
        if !same && !holder.is_empty() {
            tracing::info!("leader of {}: {holder}", self.place());
        }
        self.observed = Some((held.clone(), Instant::now()));
    }

    fn expired(&self, held: &LeaseSpec) -> bool {
        let lasts = u64::try_from(held.lease_duration_seconds.unwrap_or(0)).unwrap_or(0);
        let over = |since: Instant| since + Duration::from_secs(lasts) <= Instant::now();
        self.observed.as_ref().is_none_or(|&(_, since)| over(since))
    }

    /// Renews until told to stop, and answers `self` then, or until the Lease is lost. An attempt
    /// is not broken off by the stop: its PUT would race with the release.
    async fn keep(mut self, mut renewed: Instant, mut stop: oneshot::Receiver<()>) -> Option<Self> {
        let Election { renew, retry, .. } = self.election;
        loop {
            tokio::select! {
                biased;
                _ = &mut stop => return Some(self),
                () = sleep(retry) => {}
            }
            let (start, deadline) = (Instant::now(), renewed + renew);
            match self.bounded_attempt(deadline).await {
                Ok(ElectionAttempt::Leads(_)) => renewed = start,
                Ok(ElectionAttempt::Held) => return None,
                Ok(ElectionAttempt::Raced) => {}
                Err(error) => {
                    self.failures.warn("leader lease not renewed", self.place(), error);
                }
            }
            if renewed + renew <= Instant::now() {
                return None;
            }
        }
    }

    /// As client-go: no holder, and a duration of one second.
    async fn release(mut self) {
        let renew = self.election.renew;
        match timeout(renew, self.give_back()).await.unwrap_or(Err(CallError::TimedOut(renew))) {
            Ok(()) => tracing::info!("leader lease {} released", self.place()),
            Err(error) => {
                tracing::warn!("leader lease {} not released: {error}", self.place());
            }
        }
    }

    async fn give_back(&mut self) -> Result<(), CallError> {
        let name = &self.election.name;
        let Some(mut lease) = get(&self.leases, name).await? else { return Ok(()) };
        let held = lease.spec.take().unwrap_or_default();
        if held.holder_identity.as_ref() != Some(&self.election.identity) {
            return Ok(());
        }
        let now = MicroTime(timestamp());
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            lease_transitions: held.lease_transitions,
            ..LeaseSpec::default()
        });
        call(self.leases.replace(name, &PostParams::default(), &lease)).await.map(drop)
    }
}

fn seconds(time: Duration) -> i32 {
    i32::try_from(time.as_secs()).unwrap_or(i32::MAX).max(1)
}

fn became_leader(
    clients: Clients,
    election: &Election,
    lease: &Lease,
) -> impl Future<Output = ()> + use<> {
    let about = EventSubject {
        api_version: "coordination.k8s.io/v1",
        kind: "Lease",
        namespace: election.namespace.as_str().into(),
        name: election.name.as_str().into(),
        uid: lease.metadata.uid.as_deref().unwrap_or_default().into(),
    };
    let message = format!("{} became leader", election.identity).into();
    let note = EventNote { about, warning: false, reason: "LeaderElection", message };
    record_one(clients.events, election.component.clone(), note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_a_host_and_a_random_uuid() {
        let (one, other) = (identity(), identity());
        assert_ne!(one, other);
        let (host, uuid) = one.rsplit_once('_').unwrap();
        assert!(!host.is_empty() && !host.ends_with('\n'), "{one}");
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{one}");
        assert_eq!(&uuid[14..15], "4");
    }
}
