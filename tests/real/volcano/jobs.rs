//! vcjobs, queues and cron jobs of Volcano's controllers and webhooks, with our scheduler.

use serde_json::{Value, json};

use super::{JOBS, Volcano, is_built, job, pods_of, takes_jobs};
use crate::api::{code, text, until};
use crate::cluster::Cluster;
use crate::objects::{name, node, node_of, phase};
use crate::process::Scheduler;

const QUEUES: &str = "/apis/scheduling.volcano.sh/v1beta1/queues";

struct Jobs<'a> {
    cluster: &'a Cluster,
}

impl Jobs<'_> {
    fn path(&self, rest: &str) -> String {
        format!("{JOBS}/namespaces/{}/{rest}", self.cluster.namespace)
    }

    async fn submit(&self, name: &str, n_pods: u32) {
        self.cluster.api.create(&job(self.cluster.namespace, name, n_pods)).await.unwrap();
    }

    /// Waits until the controller says this of the job.
    async fn until(&self, job: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let path = self.path(&format!("jobs/{job}"));
        until(&format!("job {job}: {what}"), async || {
            self.cluster.api.get(&path).await.ok().filter(&wanted)
        })
        .await
    }

    async fn in_phase(&self, job: &str, phase: &str) -> Value {
        let is_there = |job: &Value| text(&job["status"]["state"]["phase"]) == phase;
        self.until(job, phase, is_there).await
    }

    /// Waits until so many pods of the job run, each on a node.
    async fn run(&self, job: &str, n_pods: u64) -> Vec<Value> {
        self.in_phase(job, "Running").await;
        self.until(job, "all run", |job| job["status"]["running"] == n_pods).await;
        let pods = pods_of(self.cluster, job).await;
        assert_eq!(pods.len() as u64, n_pods);
        assert!(pods.iter().all(|pod| !node_of(pod).is_empty()));
        pods
    }

    /// The containers of these pods have ended.
    async fn end(&self, pods: &[Value], phase: &str) {
        for pod in pods {
            let path = self.cluster.path(&format!("pods/{}/status", name(pod)));
            let status = json!({"status": {"phase": phase}});
            self.cluster.api.merge(&path, &status).await.unwrap();
        }
    }

    /// What `vcctl` sends to a job or queue.
    async fn command(&self, (number, action): (u32, &str), target: &Value) {
        let namespace = self.cluster.namespace;
        let owner = json!({"apiVersion": target["apiVersion"], "kind": target["kind"],
            "name": target["metadata"]["name"], "uid": target["metadata"]["uid"],
            "controller": true});
        let command = json!({"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command",
            "metadata": {"name": format!("command-{number}"), "namespace": namespace},
            "action": action, "target": owner});
        self.cluster.api.create(&command).await.unwrap();
    }
}

/// From Pending to Completed; with a pod that fails the whole job starts again; and with another number
/// of replicas pods come.
async fn phases(jobs: &Jobs<'_>) {
    jobs.submit("train", 3).await;
    let pods = jobs.run("train", 3).await;
    jobs.cluster.audit.bound_once(pods.iter().map(name)).await;
    jobs.end(&pods, "Succeeded").await;
    jobs.in_phase("train", "Completed").await;

    let mut again = job(jobs.cluster.namespace, "again", 2);
    again["spec"]["policies"] = json!([{"event": "PodFailed", "action": "RestartJob"}]);
    jobs.cluster.api.create(&again).await.unwrap();
    let pods = jobs.run("again", 2).await;
    jobs.end(&pods[..1], "Failed").await;
    jobs.until("again", "a retry", |job| job["status"]["retryCount"] == 1).await;
    jobs.run("again", 2).await;

    let more = json!([{"op": "replace", "path": "/spec/tasks/0/replicas", "value": 4}]);
    let path = jobs.path("jobs/again");
    jobs.cluster.api.patch(&path, "application/json-patch+json", &more).await.unwrap();
    let pods = jobs.run("again", 4).await;
    jobs.end(&pods, "Succeeded").await;
    jobs.in_phase("again", "Completed").await;
}

/// A job that the cluster cannot hold has no pods (enqueue); with another node it runs. Told to stop and to
/// go on it does so.
async fn room(jobs: &Jobs<'_>) {
    jobs.submit("big", 24).await;
    jobs.submit("small", 1).await;
    jobs.run("small", 1).await;
    jobs.in_phase("big", "Pending").await;
    assert_eq!(pods_of(jobs.cluster, "big").await.len(), 0);
    jobs.cluster.api.create(&node("node-of-room", "16")).await.unwrap();
    let pods = jobs.run("big", 24).await;
    jobs.cluster.audit.bound_once(pods.iter().map(name)).await;
    let big = jobs.cluster.api.get(&jobs.path("jobs/big")).await.unwrap();
    jobs.command((1, "AbortJob"), &big).await;
    jobs.in_phase("big", "Aborted").await;
    jobs.command((2, "ResumeJob"), &big).await;
    let pods = jobs.run("big", 24).await;
    jobs.end(&pods, "Succeeded").await;
    jobs.in_phase("big", "Completed").await;
}

/// A queue that is closed takes no job. Its state is written by the controller and what is allocated in it
/// by the scheduler, into one status.
async fn queues(jobs: &Jobs<'_>) {
    let api = &jobs.cluster.api;
    let queue = json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {"name": "research"}, "spec": {"weight": 2}});
    api.create(&queue).await.unwrap();
    let path = format!("{QUEUES}/research");
    let is = async |what: &str, wanted: &dyn Fn(&Value) -> bool| {
        until(&format!("queue research: {what}"), async || {
            api.get(&path).await.ok().filter(|queue| wanted(&queue["status"]))
        })
        .await
    };
    let queue = is("open", &|status| status["state"] == "Open").await;
    let mut first = job(jobs.cluster.namespace, "first", 2);
    first["spec"]["queue"] = json!("research");
    api.create(&first).await.unwrap();
    let pods = jobs.run("first", 2).await;
    is("allocated", &|status| status["allocated"]["cpu"] == "2").await;
    jobs.command((3, "CloseQueue"), &queue).await;
    is("closing", &|status| status["state"] == "Closing").await;
    let mut late = job(jobs.cluster.namespace, "late", 1);
    late["spec"]["queue"] = json!("research");
    let refused = api.create(&late).await.unwrap_err();
    assert!(refused.to_string().contains("research"), "{refused}");
    jobs.end(&pods, "Succeeded").await;
    jobs.in_phase("first", "Completed").await;
    is("nothing allocated", &|status| matches!(text(&status["allocated"]["cpu"]), "" | "0")).await;
    jobs.command((4, "OpenQueue"), &queue).await;
    is("open again", &|status| status["state"] == "Open").await;
    api.create(&late).await.unwrap();
    jobs.run("late", 1).await;
}

/// A pod without a group gets one of the controller, and a job that can never be whole is refused.
async fn groups(jobs: &Jobs<'_>) {
    let cluster = jobs.cluster;
    let mut impossible = job(cluster.namespace, "impossible", 2);
    impossible["spec"]["minAvailable"] = json!(3);
    let refused = cluster.api.create(&impossible).await.unwrap_err();
    assert!((400..500).contains(&code(&refused)), "{refused}");
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "lonely", "namespace": cluster.namespace},
        "spec": {"schedulerName": "volcano", "containers": [{"name": "main", "image": "x"}]}});
    cluster.api.create(&pod).await.unwrap();
    let pod = cluster.pod("lonely", |pod| phase(pod) == "Running").await;
    let group = text(&pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"]);
    cluster.in_phase(group, "Running").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vcjobs_queues_and_cron_jobs_of_volcanos_controllers() {
    if !is_built() {
        return;
    }
    let mut cluster = Cluster::take("vcjobs", 2).await;
    let volcano = Volcano::install(&mut cluster).await;
    let _scheduler = Scheduler::start(&cluster).await;
    takes_jobs(&cluster).await;
    let jobs = Jobs { cluster: &cluster };
    let every_minute = json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob",
        "metadata": {"name": "nightly", "namespace": cluster.namespace},
        "spec": {"schedule": "* * * * *", "concurrencyPolicy": "Forbid",
            "jobTemplate": {"spec": job(cluster.namespace, "", 1)["spec"]}}});
    cluster.api.create(&every_minute).await.unwrap();
    phases(&jobs).await;
    room(&jobs).await;
    queues(&jobs).await;
    groups(&jobs).await;
    let made = until("the job of the cron job", async || {
        let all = cluster.api.list(&jobs.path("jobs")).await;
        all.into_iter().find(|job| name(job).starts_with("nightly"))
    })
    .await;
    jobs.run(name(&made), 1).await;
    volcano.remove(&cluster.api).await;
}
