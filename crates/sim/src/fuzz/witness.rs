//! What the requests of scheduler processes show about invariants: who writes, on which view, and
//! whether it is needed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::check;
use super::world::group_of;
use crate::serve::{LEASES, PODS, Store};

/// Time after which a leader has noticed that the Lease is another's: it renews every two seconds, and gives
/// up after ten without success.
const NOTICED: Duration = Duration::from_secs(12);
/// Time after that in which a process may write the events that it still has. Each takes up
/// to 30 s, and one about the same object waits for it.
const EVENTS_LATE: Duration = Duration::from_secs(600);
/// How long the Lease is respected after its last renewal.
const LEASE: Duration = Duration::from_secs(15);
/// How long the list after a restore may take to come into effect, with what was decided before.
const UNSURE: Duration = Duration::from_secs(45);
/// Path of the list of pods.
const POD_LIST: &str = "/api/v1/pods";
/// Time after which a list of pods that has not come to its end is no excuse any more for what the leader has not seen.
const LONGEST_LIST: Duration = Duration::from_secs(300);
/// Lists without which nothing may be decided.
const NEEDED: [&str; 5] = [
    "/api/v1/nodes",
    POD_LIST,
    "/apis/scheduling.volcano.sh/v1beta1/podgroups",
    "/apis/scheduling.volcano.sh/v1beta1/queues",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
];

/// A request of a process that changes something.
#[derive(Clone, Debug)]
pub(super) struct SentWrite {
    pub(super) process: Arc<str>,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: Value,
    /// The PodGroup of the pod that is bound or evicted. Empty: none.
    pub(super) pod_group: String,
}

/// Looks at every request and answer.
pub(super) struct Witness {
    /// Identity of the life that holds the Lease. Empty: nobody holds it.
    holder: String,
    /// Lives that have held the Lease and do not hold it any more, with the time when they lost it.
    former_holders: BTreeMap<String, Instant>,
    /// When the Lease was written last, and as which version.
    renewed: (u64, Instant),
    /// Lives that have given the Lease back.
    released: BTreeSet<Arc<str>>,
    /// Of each life of a process, by its identity in the Lease.
    lives: BTreeMap<Arc<str>, KnownToLife>,
    /// PodGroups of which the scheduler has evicted pods.
    pub(super) evicted: BTreeSet<String>,
    /// PodGroups of which a bind was refused or lost.
    pub(super) unbound: BTreeSet<String>,
    /// PodGroup and node of each bind that was refused or lost, and not repeated with success since, by the UID of
    /// the pod.
    refused_binds: BTreeMap<String, (String, String)>,
    /// PodGroups that a leader before has left half bound, as with it went what it knew of their places,
    /// or that were refused room while a bind was repeated.
    pub(super) half_bound: BTreeSet<String>,
    /// Nodes that got a bind whose sender no longer held the Lease.
    late_binds: BTreeSet<String>,
    /// Evictions since the last change from outside of what there is or what is asked for.
    n_evictions: u64,
    violations: Vec<String>,
}

/// What a process knows by the answers that it got.
#[derive(Default)]
struct KnownToLife {
    /// Paths of the collections that were listed to their end.
    listed: BTreeSet<String>,
    /// Uids of the pods of which it knows that it has bound them.
    bound: BTreeSet<String>,
    /// Uids of the pods of which it knows that it has evicted them.
    evicted: BTreeSet<String>,
    /// Versions of objects after its last PUT, by path.
    written: BTreeMap<String, String>,
    /// Collections that it has not listed since the server began anew.
    unlisted: BTreeSet<&'static str>,
    /// Begin of its list of pods that has not come to its end. `None`: the last list has.
    lists_pods_since: Option<Instant>,
    /// End of the time in which the process may decide by a list that is older than its writes.
    unsure_until: Option<Instant>,
}

impl KnownToLife {
    /// True if the process may still decide by what the server was before its restore.
    fn is_unsure(&self) -> bool {
        let is_new = self.unsure_until.is_some_and(|until| Instant::now() < until);
        is_new || !self.unlisted.is_empty()
    }
}

impl SentWrite {
    pub(super) fn is_bind(&self) -> bool {
        self.path.ends_with("/binding")
    }

    /// Who holds the Lease after this write. `None`: it writes something else.
    fn new_holder(&self) -> Option<&str> {
        let is_it = self.method == "PUT" && self.path.contains("/leases/");
        is_it.then(|| self.body["spec"]["holderIdentity"].as_str().unwrap_or_default())
    }

    fn is_eviction(&self) -> bool {
        self.method == "DELETE" && self.path.contains("/pods/")
    }

    /// True if an event is written or repeated.
    pub(super) fn is_event(&self) -> bool {
        self.path.contains("/events")
    }

    /// True if the Lease is written.
    fn is_of_lease(&self) -> bool {
        self.path.contains("/leases")
    }

    /// True if a queue is created.
    fn creates_queue(&self) -> bool {
        self.method == "POST" && self.path.ends_with("/queues")
    }

    /// The node of a bind. `None`: it writes something else.
    pub(super) fn chosen_node(&self) -> Option<&str> {
        self.body["target"]["name"].as_str().filter(|_| self.is_bind())
    }

    /// What is decided, for the timeline: the node of a bind, the phase of a PodGroup, or why a pod
    /// waits.
    pub(super) fn decision(&self) -> String {
        let phase = || self.body["status"]["phase"].as_str();
        match () {
            () if self.is_bind() => format!(" to {}", self.chosen_node().unwrap_or_default()),
            () if self.method != "PUT" => String::new(),
            () if self.path.contains("/podgroups/") => {
                phase().map(|phase| format!(" {phase}")).unwrap_or_default()
            }
            () if self.pod().is_some() => waits_why(&self.body).unwrap_or_default(),
            () => String::new(),
        }
    }

    /// The uid that the server compares. Empty: none.
    pub(super) fn uid(&self) -> &str {
        let uid = match self.is_bind() {
            true => &self.body["metadata"]["uid"],
            false => &self.body["preconditions"]["uid"],
        };
        uid.as_str().unwrap_or_default()
    }

    /// Sets the PodGroup of the pod that is bound or evicted.
    pub(super) fn find_pod_group(&mut self, store: &Store) {
        if self.is_bind() || self.is_eviction() {
            let pod = self.pod().and_then(|(namespace, name)| store.get(&PODS, namespace, name));
            let pod = pod.filter(|pod| pod.uid() == self.uid());
            self.pod_group = pod.map(|pod| group_of(&pod.value).to_owned()).unwrap_or_default();
        }
    }

    /// Namespace and name of the pod that the request concerns. `None`: it concerns something else.
    pub(super) fn pod(&self) -> Option<(&str, &str)> {
        let mut parts = self.path.split("/namespaces/").nth(1)?.split('/');
        let namespace = parts.next()?;
        (parts.next()? == "pods").then_some((namespace, parts.next()?))
    }
}

/// Returns the beginning of the sentence that says why a pod waits, in brackets.
fn waits_why(pod: &Value) -> Option<String> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let scheduled = conditions.iter().find(|condition| condition["type"] == "PodScheduled")?;
    let message: String = scheduled["message"].as_str()?.chars().take(100).collect();
    Some(format!(" ({message})"))
}

impl Witness {
    pub(super) fn new() -> Self {
        Self {
            holder: String::new(),
            former_holders: BTreeMap::new(),
            renewed: (0, Instant::now()),
            released: BTreeSet::new(),
            lives: BTreeMap::new(),
            evicted: BTreeSet::new(),
            unbound: BTreeSet::new(),
            refused_binds: BTreeMap::new(),
            half_bound: BTreeSet::new(),
            late_binds: BTreeSet::new(),
            n_evictions: 0,
            violations: Vec::new(),
        }
    }

    /// Returns the violations so far, and forgets them.
    pub(super) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.violations)
    }

    /// Returns the nodes that got a bind whose sender no longer held the Lease, and forgets them.
    pub(super) fn take_late_binds(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.late_binds)
    }

    /// Something has changed from outside. `may_evict`: evictions may follow.
    pub(super) fn outside_change(&mut self, may_evict: bool, store: &Arc<Store>) {
        if may_evict {
            self.n_evictions = 0;
        }
        self.look_at_holder(store);
    }

    /// The server has begun anew: what processes know of it holds no more.
    pub(super) fn restored(&mut self, store: &Arc<Store>) {
        self.look_at_holder(store);
        // The Lease may be anybody's.
        self.renewed.1 = Instant::now().checked_sub(LEASE).unwrap_or(self.renewed.1);
        for life in self.lives.values_mut() {
            let listed = std::mem::take(&mut life.listed);
            let unlisted = listed.iter().filter_map(|path| NEEDED.iter().find(|it| *it == path));
            let unlisted = unlisted.copied().collect();
            *life = KnownToLife { listed, unlisted, ..KnownToLife::default() };
        }
    }

    /// A process asks for the collection of this path, or for a further page of it.
    pub(super) fn lists(&mut self, process: &Arc<str>, path: &str) {
        if path == POD_LIST {
            let life = self.lives.entry(process.clone()).or_default();
            life.lists_pods_since.get_or_insert_with(Instant::now);
        }
    }

    /// Returns who holds the Lease, as far as requests have shown.
    pub(super) fn leader(&self) -> &str {
        &self.holder
    }

    /// True if the leader's list of pods has not come to its end, unless it takes longer than [`LONGEST_LIST`].
    pub(super) fn leader_lists_pods(&self) -> bool {
        let life = self.lives.get(self.holder.as_str());
        let since = life.and_then(|life| life.lists_pods_since);
        since.is_some_and(|since| since.elapsed() < LONGEST_LIST)
    }

    /// A process has read the collection of this path to its end.
    pub(super) fn listed(&mut self, process: &Arc<str>, path: &str) {
        let life = self.lives.entry(process.clone()).or_default();
        life.lists_pods_since = life.lists_pods_since.filter(|_| path != POD_LIST);
        life.listed.insert(path.to_owned());
        if life.unlisted.remove(path) {
            life.unsure_until = Some(Instant::now() + UNSURE);
        }
    }

    /// Looks at a write on its way to the server.
    pub(super) fn sent(&mut self, write: &SentWrite, store: &Arc<Store>) {
        self.look_at_holder(store);
        self.look_at_leader(write);
        if write.is_bind() || write.is_eviction() {
            self.look_at_view(write);
        }
        let unconditional = match write.method.as_str() {
            _ if write.is_bind() || write.is_eviction() => write.uid().is_empty(),
            "PUT" => write.body["metadata"]["resourceVersion"].as_str().is_none_or(str::is_empty),
            _ => false,
        };
        if unconditional {
            let SentWrite { process, method, path, .. } = write;
            self.violations
                .push(format!("I7: {process} sends {method} {path} without precondition"));
        }
    }

    fn look_at_holder(&mut self, store: &Arc<Store>) {
        let lease = store.get(&LEASES, "volcano-system", "vc-scheduler");
        let revision = lease.as_ref().map_or(0, |lease| lease.revision);
        let holder = lease
            .and_then(|lease| lease.value["spec"]["holderIdentity"].as_str().map(str::to_owned));
        if self.renewed.0 != revision {
            self.renewed = (revision, Instant::now());
        }
        let holder = holder.unwrap_or_default();
        if self.holder != holder {
            let former = std::mem::replace(&mut self.holder, holder);
            self.former_holders.insert(former, Instant::now());
        }
    }

    /// I7: the Lease is taken from nobody who has renewed it in time. `before`: the holder, and when the
    /// Lease was written.
    fn look_at_lease(&mut self, write: &SentWrite, (holder, renewed): (String, Instant)) {
        let Some(new) = write.new_holder() else { return };
        if new.is_empty() {
            self.released.insert(write.process.clone());
        } else if !holder.is_empty() && *holder != *new && Instant::now() < renewed + LEASE {
            self.violations.push(format!("I7: {new} takes the Lease from {holder}, who renews it"));
        }
    }

    /// I7: who writes holds the Lease, or has lost it only just now. Before it leads, a process may
    /// write the Lease and create the queues that must exist. After that it may write the events
    /// that it still has.
    fn look_at_leader(&mut self, write: &SentWrite) {
        let SentWrite { process, method, path, .. } = write;
        let is_holder = *self.holder == **process;
        let lost = self.former_holders.get(&**process).filter(|_| !is_holder);
        let has_led = is_holder || lost.is_some();
        if write.is_of_lease() || write.creates_queue() && !has_led {
            return;
        }
        if self.released.contains(process) && !write.is_event() {
            let text =
                format!("I7: {process} sends {method} {path} after the Lease was given back");
            self.violations.push(text);
        }
        let late = if write.is_event() { EVENTS_LATE } else { Duration::ZERO };
        let is_late = lost.is_some_and(|lost| *lost + NOTICED + late < Instant::now());
        if is_late || !has_led {
            let holder = &self.holder;
            let text = format!("I7: {process} sends {method} {path}, {holder:?} holds the Lease");
            self.violations.push(text);
        }
    }

    /// I6: everything was listed, and nothing is decided again that was acknowledged.
    fn look_at_view(&mut self, write: &SentWrite) {
        let process = &write.process;
        let life = self.lives.entry(process.clone()).or_default();
        let lacking = NEEDED.iter().find(|path| !life.listed.contains(**path));
        if let Some(lacking) = lacking {
            let path = &write.path;
            self.violations.push(format!("I6: {process} sends {path} without a list of {lacking}"));
        }
        let is_unsure = life.is_unsure();
        let (known, done) = match write.is_bind() {
            true => (&life.bound, "binds"),
            false => (&life.evicted, "evicts"),
        };
        // The watch may show a pod for a while that is gone: an eviction of it finds nothing.
        let finds_nothing = write.is_eviction() && write.pod_group.is_empty();
        if known.contains(write.uid()) && !is_unsure && !finds_nothing {
            let path = &write.path;
            self.violations.push(format!("I6: {process} {done} {path} again, which it knows done"));
        }
    }

    /// A write was refused, or was lost before the server had it.
    pub(super) fn not_done(&mut self, write: &SentWrite) {
        if let Some(node) = write.chosen_node() {
            self.unbound.insert(write.pod_group.clone());
            let refused = (write.pod_group.clone(), node.to_owned());
            self.refused_binds.insert(write.uid().to_owned(), refused);
        }
    }

    /// Leaves out the gangs of which a bind to this node is repeated: the node goes, and with it their places.
    pub(super) fn loses_node(&mut self, name: &str) {
        let there = self.refused_binds.values().filter(|(_, node)| node == name);
        self.half_bound.extend(there.map(|(group, _)| group.clone()));
    }

    /// A process begins to lead: the gangs that are half bound are not its work.
    pub(super) fn leads(&mut self, store: &Arc<Store>) {
        self.half_bound.extend(check::half_bound(store));
    }

    /// A process has a new configuration: the share of the queue of a gang whose bind is repeated may be
    /// another one now, and evictions may follow.
    pub(super) fn has_new_configuration(&mut self) {
        self.n_evictions = 0;
        self.half_bound.extend(self.unbound.iter().cloned());
    }

    /// Looks at what the server has done, before the process knows of it.
    pub(super) fn done(&mut self, write: &SentWrite, store: &Arc<Store>) {
        let before = (self.holder.clone(), self.renewed.1);
        self.look_at_lease(write, before);
        self.look_at_holder(store);
        if *self.holder != *write.process
            && let Some(node) = write.chosen_node()
        {
            self.late_binds.insert(node.to_owned());
            self.half_bound.insert(write.pod_group.clone());
        }
        if write.is_bind() {
            self.refused_binds.remove(write.uid());
        }
        if write.method == "PUT" && write.pod().is_some() {
            self.look_at_reason(&write.body);
        }
        if !write.is_eviction() {
            return;
        }
        self.n_evictions += 1;
        self.evicted.insert(write.pod_group.clone());
        let n_pods = u64::try_from(store.list(&PODS, None).objects.len()).unwrap_or(u64::MAX);
        if n_pods.saturating_mul(3).max(30) < self.n_evictions {
            let n_evictions = self.n_evictions;
            let text = format!(
                "I4: {n_evictions} evictions since the last change of nodes, pods, jobs or queues from outside"
            );
            self.violations.push(text);
        }
    }

    /// A pod is told why it waits. While a refused bind is repeated, the share of the queue may fall, or
    /// nodes may be closed, and others take the room.
    fn look_at_reason(&mut self, pod: &Value) {
        let group = group_of(pod);
        if self.unbound.contains(group) && check::names_queue_or_closed_nodes(pod) {
            self.half_bound.insert(group.to_owned());
        }
    }

    /// A process gets an answer. `version`: that of the object after a PUT.
    pub(super) fn answered(&mut self, write: &SentWrite, version: Option<String>) {
        let life = self.lives.entry(write.process.clone()).or_default();
        match version {
            _ if write.is_bind() => drop(life.bound.insert(write.uid().to_owned())),
            _ if write.is_eviction() => drop(life.evicted.insert(write.uid().to_owned())),
            Some(version) if write.method == "PUT" => {
                let before = life.written.insert(write.path.clone(), version.clone());
                if before == Some(version) && !life.is_unsure() {
                    let SentWrite { process, path, .. } = write;
                    let text = format!("I10: {process} writes {path} again, which changes nothing");
                    self.violations.push(text);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::time::advance;

    use super::*;
    use crate::serve::{Key, LOG_CAPACITY, in_process};

    const LEASE_PUT: (&str, &str) =
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases/vc-scheduler");
    const QUEUE_POST: (&str, &str) = ("POST", "/apis/scheduling.volcano.sh/v1beta1/queues");
    const QUEUE_PUT: (&str, &str) = ("PUT", "/apis/scheduling.volcano.sh/v1beta1/queues/q1/status");
    const CONDITION_PUT: (&str, &str) = ("PUT", "/api/v1/namespaces/default/pods/p/status");
    const EVENT_POST: (&str, &str) = ("POST", "/api/v1/namespaces/default/events");

    /// Returns a server whose Lease names this holder.
    fn server_with_lease(holder: &str) -> Arc<Store> {
        let (_router, store) = in_process(1, |_| LOG_CAPACITY);
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": "vc-scheduler", "namespace": "volcano-system" },
            "spec": { "holderIdentity": holder },
        });
        store.create(&LEASES, &lease).unwrap();
        store
    }

    /// Returns the number of violations that this write of the process shows.
    fn n_found(
        witness: &mut Witness,
        store: &Arc<Store>,
        process: &str,
        (method, path): (&str, &str),
    ) -> usize {
        let (method, path) = (method.to_owned(), path.to_owned());
        let body = json!({ "metadata": { "resourceVersion": "1" } });
        let process = process.into();
        let write = SentWrite { process, method, path, body, pod_group: String::new() };
        witness.sent(&write, store);
        witness.take().len()
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_lead_writes_only_what_it_may() {
        let (store, mut witness) = (server_with_lease("a"), Witness::new());
        for (process, write, expected) in [
            ("b", LEASE_PUT, 0),
            ("b", QUEUE_POST, 0),
            ("b", QUEUE_PUT, 1),
            ("b", CONDITION_PUT, 1),
            ("b", EVENT_POST, 1),
            ("a", QUEUE_POST, 0),
            ("a", CONDITION_PUT, 0),
        ] {
            let found = n_found(&mut witness, &store, process, write);
            assert_eq!(found, expected, "{process}: {write:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_lost_the_lease_soon_writes_only_events_and_they_end() {
        let (store, mut witness) = (server_with_lease("a"), Witness::new());
        assert_eq!(n_found(&mut witness, &store, "a", CONDITION_PUT), 0);
        let taken = store.update(&LEASES, &Key::new("volcano-system", "vc-scheduler"), |lease| {
            lease["spec"]["holderIdentity"] = "b".into();
            Ok(())
        });
        taken.unwrap();
        for (seconds, write, expected) in [
            (0, CONDITION_PUT, 0),
            (11, QUEUE_PUT, 0),
            (2, QUEUE_PUT, 1),
            (0, QUEUE_POST, 1),
            (0, EVENT_POST, 0),
            (600, EVENT_POST, 1),
            (0, LEASE_PUT, 0),
        ] {
            advance(Duration::from_secs(seconds)).await;
            assert_eq!(n_found(&mut witness, &store, "a", write), expected, "{write:?}");
        }
    }
}
