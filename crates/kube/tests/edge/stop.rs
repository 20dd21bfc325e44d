//! What is still done once no more decisions are wanted: what was decided, and nothing else.
//! Specification: core.md 1.4 (C-05), 1.6; plugins-nodes.md 2.8.

use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use vc_engine::{Effect, Engine, EngineOptions, KNOWN};
use vc_kube::{
    Backlog, CyclePace, Decisions, EngineMessage, ScheduleTrigger, SchedulerLoop, inbox,
};
use vc_model::{ClusterEvent, Consumer, DeviceObject, ResourceClaim};
use vc_wire::{Kind, decode};

use crate::fake::{pod, unobserved};

const CONF: &str = "actions: \"allocate\"
tiers:
- plugins:
  - name: gang
  - name: predicates
    arguments: {predicate.DynamicResourceAllocationEnable: true}
";

/// The engine's thread after its first cycle, with two pods whose binds wait for their claims.
struct Running {
    inbox: mpsc::Sender<EngineMessage>,
    decisions: mpsc::Receiver<Decisions>,
    thread: JoinHandle<()>,
    /// What has to be written before the pods are bound.
    pre_binds: Vec<Effect>,
}

fn event(kind: Kind, object: &Value) -> EngineMessage {
    EngineMessage::Event(decode(kind, object).unwrap().event)
}

fn claim(name: &str) -> Value {
    let requests = json!([{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]);
    json!({"metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1"},
        "spec": {"devices": {"requests": requests}}})
}

/// A pod in a group of its own.
fn member(name: &str) -> [EngineMessage; 2] {
    let mut member = pod(name);
    member["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": name});
    member["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    member["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": name}]);
    let group = json!({"metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"minMember": 1}, "status": {"phase": "Inqueue"}});
    [event(Kind::PodGroup, &group), event(Kind::Pod, &member)]
}

fn objects() -> Vec<EngineMessage> {
    let room = json!({"cpu": "4", "pods": "10"});
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let node = json!({"metadata": {"name": "n1"}, "spec": {},
        "status": {"allocatable": room, "capacity": room, "conditions": ready}});
    let slice = json!({"metadata": {"name": "s", "resourceVersion": "1"},
        "spec": {"driver": "d", "nodeName": "n1", "devices": [{"name": "0"}, {"name": "1"}],
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1}}});
    let mut all = vec![
        event(Kind::Queue, &json!({"metadata": {"name": "default"}, "spec": {"weight": 1}})),
        event(Kind::Node, &node),
        event(Kind::DeviceClass, &json!({"metadata": {"name": "gpu"}, "spec": {}})),
        event(Kind::ResourceSlice, &slice),
    ];
    for name in ["a", "b"] {
        all.push(event(Kind::ResourceClaim, &claim(name)));
        all.extend(member(name));
    }
    all
}

fn running() -> Running {
    let config = vc_conf::parse("conf", CONF, &KNOWN).unwrap().config;
    let (engine, _) = Engine::new(EngineOptions::default(), &config);
    let (sender, receiver) = inbox();
    let (effects, mut decisions) = mpsc::channel(16);
    // A change could start the next cycle at any time, but for the end.
    let gather = Duration::from_millis(1);
    let pace =
        CyclePace { trigger: ScheduleTrigger::Change, period: Duration::from_secs(3600), gather };
    let scheduler_loop = SchedulerLoop {
        inbox: receiver,
        effects,
        pace,
        backlog: Backlog::default(),
        n_kinds: 1,
        check_cycles: 1,
        is_unchecked: true,
        observer: unobserved(),
        twin: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let thread = std::thread::spawn(move || scheduler_loop.run(engine, &runtime));
    for message in objects().into_iter().chain([EngineMessage::Synced(Kind::Pod)]) {
        sender.blocking_send(message).unwrap();
    }
    // The lists have no queue `root`: a restore may have taken it while nobody led.
    let missing = decisions.blocking_recv().unwrap().effects;
    let root = Effect::CreateQueue { queue: "root".into(), reclaimable: false };
    assert_eq!(missing, [root]);
    let first = decisions.blocking_recv().unwrap().effects;
    let is_pre_bind = |effect: &Effect| matches!(effect, Effect::PreBind { .. });
    let pre_binds: Vec<Effect> =
        first.iter().filter(|&effect| is_pre_bind(effect)).cloned().collect();
    assert_eq!(pre_binds.len(), 2, "{first:?}");
    Running { inbox: sender, decisions, thread, pre_binds }
}

impl Running {
    fn send(&self, message: EngineMessage) {
        self.inbox.blocking_send(message).unwrap();
    }

    fn answer(&self, index: usize) {
        self.send(self.answered(index));
    }

    /// The server has stored what was to be written.
    fn answered(&self, index: usize) -> EngineMessage {
        let Effect::PreBind { pod, uid, writes, .. } = &self.pre_binds[index] else { panic!() };
        let decoded = decode(Kind::ResourceClaim, &claim(&pod.name)).unwrap().event;
        let ClusterEvent::DeviceApplied(object) = decoded else { panic!("not a claim") };
        let DeviceObject::Claim(stored) = *object else { panic!("not a claim") };
        let stored = ResourceClaim {
            resource_version: "2".into(),
            allocation: writes.devices[0].allocation.clone(),
            reserved_for: vec![Consumer { name: pod.name.clone(), uid: uid.clone() }],
            ..stored
        };
        let (uid, objects, devices) = (uid.clone(), Vec::new(), vec![stored]);
        EngineMessage::Event(ClusterEvent::VolumesWritten { uid, objects, devices })
    }

    fn refuse(&self, index: usize) {
        let Effect::PreBind { uid, .. } = &self.pre_binds[index] else { panic!() };
        let (uid, error) = (uid.clone(), "no luck".to_owned());
        self.send(EngineMessage::Event(ClusterEvent::PreBindFailed { uid, error, pauses: true }));
    }

    /// What is decided from now on until the thread has ended, as verb and pod.
    fn rest(mut self) -> Vec<String> {
        let mut rest = Vec::new();
        while let Some(decisions) = self.decisions.blocking_recv() {
            rest.extend(decisions.effects.iter().filter_map(line));
        }
        self.thread.join().unwrap();
        rest.sort();
        rest
    }
}

fn line(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Bind { pod, .. } => Some(format!("bind {}", pod.name)),
        Effect::PreBind { pod, .. } => Some(format!("prebind {}", pod.name)),
        Effect::PodCondition { pod, condition, .. } => {
            Some(format!("tell {}: {}", pod.name, condition.message))
        }
        Effect::Resync { pod, .. } => Some(format!("resync {}", pod.name)),
        _ => None,
    }
}

#[test]
fn c05_binds_that_wait_for_answers_are_sent_and_no_cycle_starts() {
    let running = running();
    running.send(EngineMessage::Stop);
    // Work for a cycle, which there is not any more.
    member("c").into_iter().for_each(|message| running.send(message));
    running.answer(1);
    running.answer(0);
    assert_eq!(running.rest(), ["bind a", "bind b"]);
}

#[test]
fn c05_answers_that_come_around_the_end_are_not_lost() {
    for n_before in 0..=2 {
        let running = running();
        (0..n_before).for_each(|index| running.answer(index));
        running.send(EngineMessage::Stop);
        (n_before..2).for_each(|index| running.answer(index));
        assert_eq!(running.rest(), ["bind a", "bind b"], "{n_before}");
    }
}

#[test]
fn c05_a_refusal_ends_the_wait_too() {
    let running = running();
    running.send(EngineMessage::Stop);
    running.refuse(0);
    running.answer(1);
    let rest = running.rest();
    assert_eq!(rest[..2], ["bind b", "resync a"]);
    let [reported] = &rest[2..] else { panic!("{rest:?}") };
    let wanted = "tell a: execute preBind for pod ns/a failed: no luck, resync the task. \
        It is tried again after 1 s, at ";
    assert!(reported.starts_with(wanted), "{reported}");
}

#[test]
fn c05_the_wait_ends_when_nobody_listens_or_nobody_answers_any_more() {
    let all = running();
    all.send(EngineMessage::Stop);
    let answered = all.answered(0);
    drop(all.decisions);
    all.inbox.blocking_send(answered).unwrap();
    all.thread.join().unwrap();
    let all = running();
    all.send(EngineMessage::Stop);
    drop(all.inbox);
    all.thread.join().unwrap();
}
