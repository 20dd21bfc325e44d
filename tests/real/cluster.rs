//! The cluster that a test has for itself: the API server of all tests, emptied, with the shipped
//! manifests, a namespace of its own (namespaces cannot be deleted here) and a simulated kubelet.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::{JoinHandle, block_in_place};

use crate::api::{Api, text, until};
use crate::audit::Audit;
use crate::harness::{End, Harness};
use crate::kubelet;
use crate::objects::{LABEL, gang, name, node, node_of, phase};
use crate::served;

/// One test at a time has it.
static HARNESS: Mutex<Option<Harness>> = Mutex::const_new(None);

pub(crate) const POD_GROUPS: &str = "podgroups";
const VOLCANO: &str = "/apis/scheduling.volcano.sh/v1beta1";
/// Of the namespace of the scheduler.
pub(crate) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases";
/// Collections outside of the namespaces of tests that a test may have filled, and what of them.
const TEMPORARY: [&str; 19] = [
    "/apis/apiregistration.k8s.io/v1/apiservices?labelSelector=",
    "/apis/resource.k8s.io/v1/resourceslices?labelSelector=",
    "/apis/resource.k8s.io/v1/deviceclasses?labelSelector=",
    "/api/v1/nodes?",
    "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases?",
    "/api/v1/namespaces/volcano-system/pods?labelSelector=",
    "/apis/scheduling.k8s.io/v1/priorityclasses?labelSelector=",
    "/api/v1/persistentvolumes?labelSelector=",
    "/apis/storage.k8s.io/v1/storageclasses?labelSelector=",
    "/apis/storage.k8s.io/v1/csinodes?labelSelector=",
    "/apis/scheduling.volcano.sh/v1beta1/queues?",
    "/apis/shard.volcano.sh/v1alpha1/nodeshards?",
    "/apis/topology.volcano.sh/v1alpha1/hypernodes?",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings?",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies?",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations?",
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas?labelSelector=",
    "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations?labelSelector=",
];

pub(crate) struct Cluster {
    harness: MutexGuard<'static, Option<Harness>>,
    pub(crate) api: Api,
    pub(crate) namespace: &'static str,
    /// With the rights of the shipped ServiceAccount.
    pub(crate) scheduler_kubeconfig: PathBuf,
    /// What the scheduler asks for from the start of the test on.
    pub(crate) audit: Audit,
    kubelet: JoinHandle<()>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.kubelet.abort();
    }
}

impl Cluster {
    /// With this many nodes of 8 CPUs.
    pub(crate) async fn take(namespace: &'static str, n_nodes: u32) -> Self {
        let mut harness = HARNESS.lock().await;
        if harness.as_mut().is_none_or(|harness| !harness.is_running()) {
            *harness = Some(block_in_place(Harness::start));
        }
        let running = harness.as_mut().unwrap();
        let (audit, kubeconfig) = (Audit::from_now(running.audit_log()), running.kubeconfig());
        let api = Api::connect(kubeconfig).await;
        install(&api).await;
        let scheduler_kubeconfig = block_in_place(|| running.scheduler_kubeconfig());
        empty(&api).await;
        let own = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace, "labels": {LABEL: ""}}});
        api.create(&own).await.unwrap();
        for index in 0..n_nodes {
            api.create(&node(&format!("node-{index}"), "8")).await.unwrap();
        }
        let kubelet = tokio::spawn(kubelet::run(api.clone()));
        Self { harness, api, namespace, scheduler_kubeconfig, audit, kubelet }
    }

    fn harness(&mut self) -> &mut Harness {
        self.harness.as_mut().unwrap()
    }

    /// Where logs and files of the test are.
    pub(crate) fn dir(&self) -> PathBuf {
        self.harness.as_ref().unwrap().dir.clone()
    }

    /// Of all schedulers of the test.
    pub(crate) fn scheduler_log(&self) -> PathBuf {
        self.dir().join(format!("scheduler-{}.log", self.namespace))
    }

    /// What the scheduler asks for from now on.
    pub(crate) fn audit_from_now(&self) -> Audit {
        Audit::from_now(self.harness.as_ref().unwrap().audit_log())
    }

    /// Nothing runs by itself any more.
    pub(crate) fn without_kubelet(&self) {
        self.kubelet.abort();
    }

    /// Changes what is stored, past the API server.
    pub(crate) fn seed(&mut self, wanted: &Value) {
        block_in_place(|| self.harness().seed(wanted));
    }

    /// A token of the shipped ServiceAccount with this lifetime.
    pub(crate) fn token(&mut self, ttl: &str) -> String {
        block_in_place(|| self.harness().token_for(ttl))
    }

    /// A token of a ServiceAccount of the test's namespace.
    pub(crate) fn token_of(&mut self, account: &str) -> String {
        self.token_in(self.namespace, account)
    }

    /// A token of a ServiceAccount.
    pub(crate) fn token_in(&mut self, namespace: &str, account: &str) -> String {
        block_in_place(|| self.harness().token_of((namespace, account)))
    }

    /// Path of a kubeconfig with these credentials.
    pub(crate) fn kubeconfig_with(&mut self, user: &Value) -> PathBuf {
        let name = self.namespace;
        self.kubeconfig_named(name, user)
    }

    /// Path of a kubeconfig of this name with these credentials.
    pub(crate) fn kubeconfig_named(&mut self, name: &str, user: &Value) -> PathBuf {
        self.harness().kubeconfig_with(user, name)
    }

    /// Ends the API server; meanwhile nobody answers.
    pub(crate) fn end_server(&mut self, end: End) {
        block_in_place(|| self.harness().end(end));
    }

    pub(crate) async fn start_server(&mut self) {
        block_in_place(|| self.harness().start_again());
        served::kinds(&self.api).await;
        served::rights(&self.api).await;
    }

    /// Path of this test's objects of a kind, or of one of them.
    pub(crate) fn path(&self, collection: &str) -> String {
        let prefix = if collection.starts_with(POD_GROUPS) { VOLCANO } else { "/api/v1" };
        format!("{prefix}/namespaces/{}/{collection}", self.namespace)
    }

    /// A gang in the queue `default`.
    pub(crate) async fn submit(&self, name: &str, n_pods: u32, cpu: &str) {
        for object in gang(self.namespace, name, n_pods, cpu) {
            self.api.create(&object).await.unwrap();
        }
    }

    pub(crate) async fn pods(&self, gang: &str) -> Vec<Value> {
        self.api.list(&self.path(&format!("pods?labelSelector=gang%3D{gang}"))).await
    }

    /// Waits until every pod of the gang is bound and runs, and the group says so.
    pub(crate) async fn running(&self, gang: &str, n_pods: usize) -> Vec<Value> {
        self.in_phase(gang, "Running").await;
        until(&format!("{n_pods} running pods of {gang}"), async || {
            let pods = self.pods(gang).await;
            let runs = |pod: &&Value| !node_of(pod).is_empty() && phase(pod) == "Running";
            (pods.iter().filter(runs).count() == n_pods).then_some(pods)
        })
        .await
    }

    /// Waits until the group is in that phase.
    pub(crate) async fn in_phase(&self, gang: &str, wanted: &str) -> Value {
        let path = self.path(&format!("{POD_GROUPS}/{gang}"));
        until(&format!("phase {wanted} of {gang}"), async || {
            let group = self.api.get(&path).await.ok()?;
            (phase(&group) == wanted).then_some(group)
        })
        .await
    }

    /// Waits until a pod is as wanted.
    pub(crate) async fn pod(&self, pod: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let path = self.path(&format!("pods/{pod}"));
        until(&format!("what is expected of pod {pod}"), async || {
            self.api.get(&path).await.ok().filter(&wanted)
        })
        .await
    }

    /// Waits for an event about this object: its type, reason and message.
    pub(crate) async fn event(&self, about: &str, wanted: (&str, &str, &str)) -> Value {
        let is_wanted = |event: &Value| {
            let of = |field: &str| text(&event[field]).to_owned();
            event["involvedObject"]["name"] == about
                && (&*of("type"), &*of("reason"), &*of("message")) == wanted
        };
        until(&format!("event {wanted:?} of {about}"), async || {
            let events = self.api.list(&self.path("events")).await;
            events.into_iter().find(|event| is_wanted(event))
        })
        .await
    }

    /// Waits until the queue says that this much CPU is allocated.
    pub(crate) async fn allocated(&self, queue: &str, cpu: &str) {
        until(&format!("{cpu} CPUs allocated in queue {queue}"), async || {
            let queue = self.api.get(&format!("{VOLCANO}/queues/{queue}")).await.ok()?;
            (queue["status"]["allocated"]["cpu"] == cpu).then_some(())
        })
        .await;
    }
}

/// The shipped manifests, as they are applied: one object after the other.
pub(crate) fn manifests() -> Vec<Value> {
    read_manifests(&Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/manifests"))
}

/// The objects of a file or folder.
pub(crate) fn read_manifests(path: &Path) -> Vec<Value> {
    let read = vc_objects::input::read(&[path.to_owned()]).unwrap();
    assert!(read.unreadable.is_empty(), "{:?}", read.unreadable);
    read.objects.into_iter().map(|object| object.value).collect()
}

/// Applies them all and answers what the server has then.
pub(crate) async fn install(api: &Api) -> Vec<Value> {
    let mut stored = Vec::new();
    for object in manifests() {
        let answer = api.apply(&object).await;
        stored.push(answer.unwrap_or_else(|error| panic!("{}: {error}", name(&object))));
    }
    served::kinds(api).await;
    served::rights(api).await;
    stored
}

/// Takes away what earlier tests have left.
async fn empty(api: &Api) {
    for namespace in api.list(&format!("/api/v1/namespaces?labelSelector={LABEL}")).await {
        let within = format!("namespaces/{}", name(&namespace));
        api.delete(&format!("{VOLCANO}/{within}/podgroups")).await.unwrap();
        api.delete(&format!("/api/v1/{within}/pods")).await.unwrap();
        api.delete(&format!("/api/v1/{within}/persistentvolumeclaims")).await.unwrap();
        let claims = format!("/apis/resource.k8s.io/v1/{within}/resourceclaims");
        for claim in api.list(&claims).await {
            let unprotected = json!({"metadata": {"finalizers": null}});
            api.merge(&format!("{claims}/{}", name(&claim)), &unprotected).await.unwrap();
        }
        api.delete(&claims).await.unwrap();
    }
    for collection in TEMPORARY {
        let of = if collection.ends_with('=') { LABEL } else { "" };
        api.delete(&format!("{collection}{of}")).await.unwrap();
    }
}
