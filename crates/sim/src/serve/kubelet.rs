//! The kubelets of all simulated nodes in one task: bound pods run, deleted pods go, and a pod ends
//! when the seconds of its annotation `vcsim/run-seconds` have passed. Driven by the store's events
//! and one queue of due times; nothing is polled.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};

use super::{
    clock,
    delete::DeleteOptions,
    devices,
    kinds::{NODES, PODS},
    log::{Change, Subscription},
    object::{Key, Object, is_terminating, items, set_condition, text},
    store::Store,
    stream::stopped,
};

/// How long a simulated pod runs, in seconds; without it, until it is deleted.
pub const RUN_SECONDS: &str = "vcsim/run-seconds";
/// How long a pod takes to end after its deletion, if its grace is not shorter.
const TERMINATION: Duration = Duration::from_millis(200);

struct Kubelets {
    store: Arc<Store>,
    due: BTreeMap<(Instant, u64), DueAction>,
    /// Numbers the entries, so that two of one instant differ.
    entries: u64,
    pod_addresses: u32,
}

/// Something to do to a pod later, if it still is the same one.
struct DueAction {
    key: Key,
    uid: String,
    what: KubeletAction,
}

#[derive(Clone, Copy)]
enum KubeletAction {
    Finish,
    Remove,
}

/// Runs the pods of a store until the server stops.
pub(super) async fn run(store: Arc<Store>, mut stop: watch::Receiver<bool>) {
    let mut kubelets =
        Kubelets { store: store.clone(), due: BTreeMap::new(), entries: 0, pod_addresses: 0 };
    let mut nodes = store.subscribe(&NODES);
    let mut events = kubelets.start_over();
    loop {
        let next = kubelets.due.keys().next().map(|(at, _)| *at);
        let read = tokio::select! {
                biased;
            read = events.next() => read,
            read = nodes.next() => {
                if !read.is_ok_and(|read| read.iter().all(|event| event.change != Change::Added)) {
                    // Pods may have waited for it.
                    nodes = store.subscribe(&NODES);
                    kubelets.observe_all();
                }
                continue;
            }
            () = until(next) => {
                kubelets.work_off(Instant::now());
                continue;
            }
            () = stopped(&mut stop) => return,
        };
        match read {
            Ok(read) => {
                let alive = read.iter().filter(|event| event.change != Change::Deleted);
                alive.for_each(|event| kubelets.observe(&event.object));
            }
            // Too slow for the log: look at everything again.
            Err(_expired) => events = kubelets.start_over(),
        }
    }
}

async fn until(next: Option<Instant>) {
    match next {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl Kubelets {
    /// Takes charge of every pod that exists, and returns what happens from then on.
    fn start_over(&mut self) -> Subscription {
        self.due.clear();
        let listing = self.store.list(&PODS, None);
        for pod in &listing.objects {
            if text(&pod.value, "/status/phase") == "Running" {
                self.schedule_end(pod);
            }
            self.observe(pod);
        }
        self.store.subscribe_after(&PODS, listing.revision)
    }

    fn observe_all(&mut self) {
        for pod in &self.store.list(&PODS, None).objects {
            self.observe(pod);
        }
    }

    fn observe(&mut self, pod: &Object) {
        let node = text(&pod.value, "/spec/nodeName");
        if node.is_empty() {
            return;
        }
        if is_terminating(&pod.value) {
            let grace = pod.value["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap_or(0);
            self.plan(pod, TERMINATION.min(Duration::from_secs(grace)), KubeletAction::Remove);
        } else if text(&pod.value, "/status/phase") == "Pending"
            && self.store.get(&NODES, "", node).is_some()
        {
            self.start(pod);
        }
    }

    /// What was observed may be old: a pod starts once. A pod whose devices the device plugin does
    /// not find fails.
    fn start(&mut self, pod: &Object) {
        let address = self.next_address();
        let (mut starts, mut devices) = (false, Ok(false));
        let node = self.store.get(&NODES, "", text(&pod.value, "/spec/nodeName"));
        let started = self.store.update(&PODS, &Key::of(&pod.value), |value| {
            let is_it = text(value, "/metadata/uid") == pod.uid();
            starts = is_it && text(value, "/status/phase") == "Pending" && !is_terminating(value);
            if starts {
                devices = node.as_ref().map_or(Ok(false), |it| devices::allocate(value, &it.value));
                start_with(value, &address, &devices);
            }
            Ok(())
        });
        if starts && devices != Ok(false) {
            self.unlock(text(&pod.value, "/spec/nodeName"));
        }
        starts &= devices.is_ok();
        // Gone meanwhile: its DELETED event follows.
        if let Ok(started) = started
            && starts
        {
            self.schedule_end(&started);
        }
    }

    /// Removes the lock of a node once the device plugin has answered.
    fn unlock(&self, node: &str) {
        if !self.store.get(&NODES, "", node).is_some_and(|node| devices::is_locked(&node.value)) {
            return;
        }
        let key = Key { namespace: String::new(), name: node.to_owned() };
        // A node that is gone has no lock.
        let _gone = self.store.update(&NODES, &key, |value| {
            devices::unlock(value);
            Ok(())
        });
    }

    fn schedule_end(&mut self, pod: &Object) {
        let seconds = pod.value["metadata"]["annotations"][RUN_SECONDS].as_str();
        let seconds = seconds.and_then(|text| text.parse::<f64>().ok());
        if let Some(span) = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
            self.plan(pod, span, KubeletAction::Finish);
        }
    }

    fn plan(&mut self, pod: &Object, after: Duration, what: KubeletAction) {
        let Some(at) = Instant::now().checked_add(after) else {
            return;
        };
        self.entries += 1;
        let due = DueAction { key: Key::of(&pod.value), uid: pod.uid().to_owned(), what };
        self.due.insert((at, self.entries), due);
    }

    fn work_off(&mut self, now: Instant) {
        while let Some(entry) = self.due.first_entry()
            && entry.key().0 <= now
        {
            let due = entry.remove();
            // A pod that is gone or another one by now needs nothing any more.
            let _unneeded = match due.what {
                KubeletAction::Remove => {
                    let mut options = DeleteOptions::now();
                    options.uid = Some(due.uid);
                    self.store.delete(&PODS, &due.key, &options)
                }
                KubeletAction::Finish => self.store.update(&PODS, &due.key, |value| {
                    let same = text(value, "/metadata/uid") == due.uid;
                    if same && text(value, "/status/phase") == "Running" {
                        set_succeeded(value);
                    }
                    Ok(())
                }),
            };
        }
    }

    fn next_address(&mut self) -> String {
        self.pod_addresses = self.pod_addresses.wrapping_add(1);
        let bytes = self.pod_addresses.to_be_bytes();
        format!("10.{}.{}.{}", bytes[1] | 0x80, bytes[2], bytes[3])
    }
}

/// Starts the pod with what the device plugin has answered.
fn start_with(pod: &mut Value, address: &str, devices: &Result<bool, String>) {
    match devices {
        Err(problem) => return devices::refuse(pod, problem),
        Ok(true) => devices::confirm(pod),
        Ok(false) => {}
    }
    set_running(pod, address);
}

fn set_running(pod: &mut Value, address: &str) {
    let now = clock::timestamp();
    for condition in ["PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"] {
        set_condition(pod, json!({ "type": condition, "status": "True" }));
    }
    let statuses: Vec<Value> = items(pod, "/spec/containers")
        .iter()
        .map(|container| {
            json!({
                "name": container["name"], "image": text(container, "/image"), "imageID": "",
                "ready": true, "started": true, "restartCount": 0,
                "state": { "running": { "startedAt": now } }, "lastState": {},
            })
        })
        .collect();
    let status = &mut pod["status"];
    status["phase"] = json!("Running");
    status["podIP"] = json!(address);
    status["podIPs"] = json!([{ "ip": address }]);
    status["startTime"] = json!(now);
    status["containerStatuses"] = Value::Array(statuses);
}

fn set_succeeded(pod: &mut Value) {
    for condition in ["ContainersReady", "Ready"] {
        let reason = "PodCompleted";
        set_condition(pod, json!({ "type": condition, "status": "False", "reason": reason }));
    }
    pod["status"]["phase"] = json!("Succeeded");
    let now = clock::timestamp();
    let statuses = pod["status"]["containerStatuses"].as_array_mut().into_iter().flatten();
    for status in statuses {
        let ended = json!({ "exitCode": 0, "reason": "Completed", "finishedAt": now });
        status["ready"] = json!(false);
        status["started"] = json!(false);
        status["state"] = json!({ "terminated": ended });
    }
}
