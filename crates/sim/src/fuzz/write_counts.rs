//! I10: how much is written. A gang that is bound at once takes one bind for each pod and at most
//! three writes of its PodGroup. A process writes no more events about a pod than it has tried to
//! bind it, to evict it or to say why it waits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::rest_writes::WrittenEvent;
use super::witness::SentWrite;
use super::world::group_of;
use crate::serve::{PODS, Store};

/// Writes of the PodGroup of a gang until its last pod is bound.
const MOST_GROUP_WRITES: u64 = 3;
/// Time from the first bind of a gang to the last one, if it is bound at once. Later the counts of
/// its running pods are written, too.
const BOUND_AT_ONCE: Duration = Duration::from_secs(1);
/// Time from the first write about a gang to its last bind, if it does not wait.
const PLACED_AT_ONCE: Duration = Duration::from_secs(5);
/// Events about a pod beyond the attempts that are known. A process that ends may have handed on an
/// event, and may not have sent the first request of its attempt.
const UNSENT_ATTEMPTS: u64 = 1;

/// The writes of all processes of a story.
pub(super) struct WriteCounts {
    /// False if gangs are not judged: their pods come later than their PodGroups, or the server has
    /// begun anew.
    judges_gangs: bool,
    /// By name of the PodGroup.
    gangs: BTreeMap<String, GangWrites>,
    /// By life of a process and name of the pod.
    pods: BTreeMap<(Arc<str>, String), PodAttempts>,
    violations: Vec<String>,
}

/// The writes about a gang until its last pod is bound.
#[derive(Debug, Default)]
struct GangWrites {
    /// The life of a process that has written. `None`: none has.
    writer: Option<Arc<str>>,
    first_write: Option<Instant>,
    first_bind: Option<Instant>,
    /// Uids of the pods that were bound.
    bound: BTreeSet<String>,
    n_group_writes: u64,
    /// True if the gang is not judged: it waits, it has lost a pod, a fault has struck a write, or
    /// it was judged.
    is_excused: bool,
}

/// What a life of a process has done about a pod.
#[derive(Debug, Default)]
struct PodAttempts {
    /// Binds, and reads of the pod. A process reads a pod before it evicts it or says why it waits.
    n_attempts: u64,
    /// Events that the server has written.
    n_events: u64,
}

impl WriteCounts {
    pub(super) fn new(judges_gangs: bool) -> Self {
        let (gangs, pods, violations) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        Self { judges_gangs, gangs, pods, violations }
    }

    /// Returns the violations so far, and forgets them.
    pub(super) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.violations)
    }

    /// The server has begun anew: PodGroups and what was written about them have gone back.
    pub(super) fn restored(&mut self) {
        self.judges_gangs = false;
    }

    /// Takes note of a read of one object.
    pub(super) fn note_read(&mut self, request: &SentWrite) {
        if let Some((_, pod)) = request.pod() {
            self.attempts(&request.process, pod).n_attempts += 1;
        }
    }

    /// Takes note of a write on its way to the server.
    pub(super) fn sent(&mut self, write: &SentWrite) {
        let Some((_, pod)) = write.pod() else { return };
        if write.is_bind() {
            self.attempts(&write.process, pod).n_attempts += 1;
        } else {
            // Its pods wait, or one is evicted.
            self.excuse(write);
        }
    }

    /// Takes note of a fault that strikes a write: it may be repeated, or come late.
    pub(super) fn struck(&mut self, write: &SentWrite) {
        self.excuse(write);
    }

    /// Takes note of a write that the server has done.
    pub(super) fn done(&mut self, write: &SentWrite, store: &Store) {
        if write.method == "GET" {
            return;
        }
        if write.is_event() {
            return self.note_event(write, store);
        }
        let Some(group) = group_of_write(write).filter(|_| self.judges_gangs) else { return };
        let gang = self.gangs.entry(group.to_owned()).or_default();
        gang.note_writer(&write.process);
        if write.is_bind() {
            gang.first_bind.get_or_insert_with(Instant::now);
            gang.bound.insert(write.uid().to_owned());
            let fault = gang.fault(group, store);
            self.violations.extend(fault);
        } else if group_in_path(write).is_some() {
            gang.n_group_writes += 1;
        }
    }

    /// Returns one text for each pod about which a process has written too many events.
    pub(super) fn repeated_events(&self) -> Vec<String> {
        let too_often = self.pods.iter().filter(|(_, it)| it.has_too_many_events());
        let text = |((process, pod), it): (&(Arc<str>, String), &PodAttempts)| {
            let PodAttempts { n_attempts, n_events } = it;
            format!(
                "I10: {process} has written {n_events} events about pod {pod}, which it has tried {n_attempts} \
                 times to bind, to evict or to tell why it waits"
            )
        };
        too_often.map(text).collect()
    }

    fn attempts(&mut self, process: &Arc<str>, pod: &str) -> &mut PodAttempts {
        self.pods.entry((process.clone(), pod.to_owned())).or_default()
    }

    fn excuse(&mut self, write: &SentWrite) {
        if let Some(group) = group_of_write(write) {
            self.gangs.entry(group.to_owned()).or_default().is_excused = true;
        }
    }

    fn note_event(&mut self, write: &SentWrite, store: &Store) {
        let event = WrittenEvent::of(write, store);
        if let Some(event) = event.filter(|event| event.object_kind == "Pod") {
            self.attempts(&write.process, &event.object).n_events += 1;
        }
    }
}

impl PodAttempts {
    fn has_too_many_events(&self) -> bool {
        self.n_attempts + UNSENT_ATTEMPTS < self.n_events
    }
}

impl GangWrites {
    /// Excuses the gang if another process has written about it before.
    fn note_writer(&mut self, process: &Arc<str>) {
        self.first_write.get_or_insert_with(Instant::now);
        let writer = self.writer.get_or_insert_with(|| process.clone());
        self.is_excused |= *writer != *process;
    }

    /// Returns a text if all pods of the gang were bound at once, and its PodGroup was written too
    /// often before. `None`: it was not, some pods wait, or the gang is excused.
    fn fault(&mut self, group: &str, store: &Store) -> Option<String> {
        let is_past = |begin: Option<Instant>, time: Duration| {
            begin.is_some_and(|begin| begin + time < Instant::now())
        };
        self.is_excused |= is_past(self.first_bind, BOUND_AT_ONCE);
        self.is_excused |= is_past(self.first_write, PLACED_AT_ONCE);
        if self.is_excused {
            return None;
        }
        let pods = store.list(&PODS, None).objects;
        let members = pods.iter().filter(|pod| group_of(&pod.value) == group);
        let uids: BTreeSet<String> = members.map(|pod| pod.uid().to_owned()).collect();
        if uids != self.bound {
            return None;
        }
        self.is_excused = true;
        let (n_pods, n_writes) = (self.bound.len(), self.n_group_writes);
        (MOST_GROUP_WRITES < n_writes).then(|| {
            format!(
                "I10: PodGroup {group} was written {n_writes} times until its {n_pods} pods were bound at once, at \
                 most {MOST_GROUP_WRITES} times are right"
            )
        })
    }
}

/// Returns the PodGroup that is written, or that of the pod that is written. `None`: there is none.
fn group_of_write(write: &SentWrite) -> Option<&str> {
    let of_pod = || match write.pod_group.as_str() {
        "" => group_of(&write.body),
        group => group,
    };
    group_in_path(write).or_else(|| write.pod().map(|_| of_pod())).filter(|group| !group.is_empty())
}

/// Returns the PodGroup that is written. `None`: another object is.
fn group_in_path(write: &SentWrite) -> Option<&str> {
    write.path.split_once("/podgroups/")?.1.split('/').next()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::time::advance;

    use super::*;
    use crate::fuzz::outside_event::OutsideEvent;
    use crate::fuzz::script::JobSpec;
    use crate::fuzz::world::World;
    use crate::serve::{LOG_CAPACITY, in_process};

    const POD_GROUP: &str = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups/j";
    const EVENTS_PATH: &str = "/api/v1/namespaces/default/events";

    /// A cluster with a gang of two pods.
    fn gang_of_two() -> World {
        let (_router, store) = in_process(1, |_| LOG_CAPACITY);
        let mut world = World::new(store);
        world.begin(&[]).unwrap();
        let job = JobSpec { pods: 2, min: 2, ..JobSpec::lone("j") };
        world.apply(&OutsideEvent::Job(job)).unwrap();
        world
    }

    fn write(process: &str, method: &str, path: &str, body: Value) -> SentWrite {
        let (process, method, path) = (process.into(), method.to_owned(), path.to_owned());
        SentWrite { process, method, path, body, pod_group: String::new() }
    }

    fn bind(world: &World, pod: &str) -> SentWrite {
        let uid = world.store.get(&PODS, "default", pod).unwrap().uid().to_owned();
        let path = format!("/api/v1/namespaces/default/pods/{pod}/binding");
        let body = json!({ "metadata": { "uid": uid } });
        SentWrite { pod_group: "j".to_owned(), ..write("a", "POST", &path, body) }
    }

    /// Returns the number of violations after so many writes of the PodGroup, what `between` does,
    /// and a bind of both pods.
    fn n_found(n_writes: usize, between: impl FnOnce(&mut WriteCounts)) -> usize {
        let (world, mut counts) = (gang_of_two(), WriteCounts::new(true));
        let written = write("a", "PUT", POD_GROUP, Value::Null);
        (0..n_writes).for_each(|_| counts.done(&written, &world.store));
        between(&mut counts);
        for pod in ["j-0", "j-1"] {
            let bind = bind(&world, pod);
            counts.sent(&bind);
            counts.done(&bind, &world.store);
        }
        counts.take().len()
    }

    #[tokio::test(start_paused = true)]
    async fn a_gang_that_is_bound_at_once_takes_three_writes_of_its_pod_group() {
        assert_eq!([n_found(3, |_| {}), n_found(4, |_| {})], [0, 1]);
        let waits = json!({
            "metadata": { "annotations": { "scheduling.k8s.io/group-name": "j" } },
        });
        let waits = write("a", "PUT", "/api/v1/namespaces/default/pods/j-0/status", waits);
        assert_eq!(n_found(4, |counts| counts.sent(&waits)), 0, "it waits");
        let written = |process| write(process, "PUT", POD_GROUP, Value::Null);
        assert_eq!(n_found(4, |counts| counts.struck(&written("a"))), 0, "a fault");
        let store = gang_of_two().store;
        assert_eq!(n_found(3, |counts| counts.done(&written("b"), &store)), 0, "two leaders");
        assert_eq!(n_found(4, WriteCounts::restored), 0, "a restore");
    }

    #[tokio::test(start_paused = true)]
    async fn a_gang_that_is_bound_piece_by_piece_is_not_judged() {
        let (world, mut counts) = (gang_of_two(), WriteCounts::new(true));
        let written = write("a", "PUT", POD_GROUP, Value::Null);
        (0..4).for_each(|_| counts.done(&written, &world.store));
        counts.done(&bind(&world, "j-0"), &world.store);
        advance(2 * BOUND_AT_ONCE).await;
        counts.done(&bind(&world, "j-1"), &world.store);
        assert_eq!(counts.take(), [""; 0]);
    }

    #[tokio::test]
    async fn an_event_tells_of_an_attempt() {
        let (world, mut counts) = (gang_of_two(), WriteCounts::new(true));
        let event = json!({ "involvedObject": { "kind": "Pod", "name": "j-0" } });
        let event = write("a", "POST", EVENTS_PATH, event);
        (0..2).for_each(|_| counts.done(&event, &world.store));
        counts.sent(&bind(&world, "j-0"));
        assert_eq!(counts.repeated_events(), [""; 0]);
        counts.done(&event, &world.store);
        let expected = "I10: a has written 3 events about pod j-0, which it has tried 1 times to bind, \
            to evict or to tell why it waits";
        assert_eq!(counts.repeated_events(), [expected]);
        counts.note_read(&write("a", "GET", "/api/v1/namespaces/default/pods/j-0", Value::Null));
        assert_eq!(counts.repeated_events(), [""; 0]);
    }
}
